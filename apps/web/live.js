// How fresh the page is, and the one voice with which it tells screen readers what happened.
import {glyph_of, h, put, set_text} from "./dom.js";

const silence_max = 6_000;  // the server says something every 2 s
const lost_max = 2_000;     // a connection that comes back sooner was never missed
const say_every = 5_000;

export class Live {
  #state;
  #heard_at;  // by performance.now(), which no one can set
  #lost_at;
  #shown = "connecting";
  #queue = [];
  #ended = new Map();  // outcome -> the slots whose holds ended so
  #alerts;
  #said_at = -Infinity;
  #say_timer = 0;
  #toast_timer = 0;

  constructor(state) {
    this.#state = state;
    setInterval(() => this.#show(), 500);
  }

  // Before the state has taken the message in.
  heard(event, data) {
    if (event === "lost") {
      this.#lost_at ??= performance.now();
      return;
    }
    this.#heard_at = performance.now();
    this.#lost_at = undefined;
    if (event === "snapshot" && this.#state.version && data.version !== this.#state.version) {
      this.#offer_reload(data.version);
    }
    if (event === "changes") this.#collect(data);
    if (this.#shown !== "live") this.#show();
  }

  is_stale() {
    const now = performance.now();
    if (this.#heard_at === undefined) return false;
    return now - this.#heard_at >= silence_max || now - (this.#lost_at ?? Infinity) >= lost_max;
  }

  #show() {
    const shown = this.is_stale() ? "stale" : this.#heard_at === undefined ? "connecting" : "live";
    if (shown === "connecting" && this.#lost_at !== undefined) {
      set_text(document.getElementById("live"), "○ no answer - connecting…");
    }
    if (shown === this.#shown) return;
    if (shown === "stale") this.say("Connection to the server lost. What is shown may be old.");
    else if (this.#shown === "stale") this.say("Connected again.");
    this.#shown = shown;
    document.documentElement.dataset.live = shown;
    const words = {live: "● live", stale: "○ stale - reconnecting", connecting: "connecting…"};
    set_text(document.getElementById("live"), words[shown]);
  }

  #offer_reload(version) {
    const banner = document.getElementById("banner");
    put(banner, h("span", {}, `The server has been upgraded to ${version}.`), " ",
      h("button", {type: "button", onclick: () => location.reload()}, "Reload this page"));
    banner.hidden = false;
  }

  // --- Telling ---

  // What ended otherwise than by its release, and new alerts.
  #collect(data) {
    for (const hold of data.holds ?? []) {
      if (hold.state === "held" || !hold.outcome || hold.outcome === "released") continue;
      const slots = this.#ended.get(hold.outcome) ?? [];
      slots.push(`${hold.pool} ${hold.slot}`);
      this.#ended.set(hold.outcome, slots);
      this.#schedule();
    }
    if (!data.alertsChanged && !data.alerts) return;
    const known = this.#alerts ?? new Set(this.#state.alerts.map((alert) => alert.message));
    for (const {message} of data.alerts ?? []) {
      if (!known.has(message)) this.say(`Alert: ${message}`);
    }
    this.#alerts = new Set((data.alerts ?? []).map((alert) => alert.message));
  }

  say(text) {
    if (!this.#queue.includes(text)) this.#queue.push(text);
    this.#schedule();
  }

  // For what the reader has just done: seen and said at once.
  notify(text, outcome) {
    const toast = document.getElementById("toast");
    put(toast, outcome && h("span", {class: "glyph"}, glyph_of(outcome)), text);
    toast.classList.add("shown");
    clearTimeout(this.#toast_timer);
    this.#toast_timer = setTimeout(() => toast.classList.remove("shown"), 6_000);
    set_text(document.getElementById("say"), text);
    this.#said_at = performance.now();
  }

  #schedule() {
    if (this.#say_timer !== 0) return;
    const wait = Math.max(300, this.#said_at + say_every - performance.now());
    this.#say_timer = setTimeout(() => {
      this.#say_timer = 0;
      this.#said_at = performance.now();
      const ends = [...this.#ended].map(([outcome, slots]) => `${slots.length} ` +
        `${outcome.replace("_", " ")}: ${slots.slice(0, 3).join(", ")}${slots.length > 3 ? ", …" : ""}`);
      document.getElementById("say").textContent = [...ends, ...this.#queue].join(". ");
      this.#ended.clear();
      this.#queue = [];
    }, wait);
  }
}
