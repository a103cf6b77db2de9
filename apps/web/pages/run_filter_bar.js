// What the list of runs is filtered by: fields and switches that read and write the address.
import {glyph_of, h, put, set_attribute} from "../dom.js";
import {filter_names, range_names, read_filter} from "../run_query.js";
import {outcomes, statuses} from "../runs.js";

const typing_pause = 300;
const range_labels = {"": "at any time", "15m": "in the last 15 min", "1h": "in the last hour",
  "6h": "in the last 6 h", "24h": "in the last day", "7d": "in the last 7 days", between: "between…"};

// What an input for a local time shows of a time, and the other way round.
function local_text(time) {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? "" : new Date(date - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
function time_of_local(text) {
  return text ? new Date(text).toISOString().replace(/\.\d+Z/, "Z") : "";
}

export class RunFilterBar {
  #context;
  #changed;
  #timer = 0;
  #inputs = {};    // name -> input
  #switches = {};  // "status" and "outcome" -> word -> button
  #range = h("select", {"aria-label": "Started", onchange: () => this.#range_chosen()},
    [...["", ...range_names], "between"].map((value) => h("option", {value}, `Started ${range_labels[value]}`)));
  #from = this.#time_input("Started from");
  #until = this.#time_input("Started before");
  #between = h("span", {class: "between", hidden: true}, this.#from, h("span", {class: "dim"}, "to"), this.#until);
  #clear = h("button", {type: "button", class: "quiet", onclick: () => this.#clear_all()}, "Clear");
  #problem = h("p", {class: "problem", role: "alert", id: "list-filter-problem"});

  // changed(): after the address has another filter.
  constructor(context, changed) {
    this.#context = context;
    this.#changed = changed;
    this.types = h("datalist", {id: "known-types"});
    this.queues = h("datalist", {id: "known-queues"});
    const text = this.#text_input("q", "List filter: CloseTime > '2026-08-01T12:00:00Z'",
      {class: "mono expert", "aria-describedby": "list-filter-problem"});
    this.id_input = this.#text_input("id", "Workflow ID begins with", {type: "search", class: "filter", "data-filter": true});
    this.element = h("details", {class: "filters"}, h("summary", {}, "Filter"),
      h("div", {class: "filter-row"}, this.#text_input("type", "Type", {list: "known-types"}),
        this.#text_input("queue", "Task queue", {list: "known-queues"}), this.#range, this.#between, text, this.#clear),
      this.#problem,
      h("div", {class: "filter-row"}, this.#switch_group("status", "Status", statuses),
        this.#switch_group("outcome", "Outcome", outcomes)),
      this.types, this.queues);
    const narrow = matchMedia("(max-width: 480px)");
    const fit = () => (this.element.open = !narrow.matches);  // on a phone the list comes first
    narrow.addEventListener("change", fit);
    fit();
    this.show();
  }

  // What the server says about the text, or "".
  complain(text) {
    put(this.#problem, text);
    set_attribute(this.#inputs.q, "aria-invalid", text !== "");
  }

  // Shows what the address says.
  show() {
    const filter = read_filter(this.#context.query);
    for (const [name, input] of Object.entries(this.#inputs)) {
      if (input !== document.activeElement || input.value.trim() !== filter[name]) input.value = filter[name];
    }
    for (const [name, buttons] of Object.entries(this.#switches)) {
      for (const [word, button] of Object.entries(buttons)) set_attribute(button, "aria-pressed", String(filter[name].includes(word)));
    }
    const relative = filter.since in range_labels && !filter.until;
    this.#range.value = relative ? filter.since : "between";
    this.#between.hidden = relative;
    this.#from.value = relative ? "" : local_text(filter.since);
    this.#until.value = local_text(filter.until);
    this.#show_clear();
  }

  #show_clear() {
    this.#clear.hidden = !filter_names.some((name) => this.#context.query.get(name));
  }

  #set(values) {
    this.#context.set_query(values);
    this.#show_clear();
    this.#changed();
  }

  #text_input(name, label, properties) {
    const input = h("input", {type: "text", "aria-label": label, placeholder: label, autocomplete: "off", spellcheck: "false", ...properties,
      oninput: () => {
        clearTimeout(this.#timer);
        this.#timer = setTimeout(() => this.#type(), typing_pause);
      },
      onchange: () => this.#type()});
    this.#inputs[name] = input;
    return input;
  }

  #type() {
    clearTimeout(this.#timer);
    const filter = read_filter(this.#context.query);
    const typed = Object.entries(this.#inputs).map(([name, input]) => [name, input.value.trim()])
      .filter(([name, value]) => value !== filter[name]);
    if (typed.length > 0) this.#set(Object.fromEntries(typed));
  }

  #time_input(label) {
    return h("input", {type: "datetime-local", "aria-label": label, onchange: () => this.#set({
      since: time_of_local(this.#from.value), until: time_of_local(this.#until.value)})});
  }

  #range_chosen() {
    const between = this.#range.value === "between";
    this.#between.hidden = !between;
    if (between) this.#from.focus();
    else this.#set({since: this.#range.value, until: ""});
  }

  #switch_group(name, label, words) {
    this.#switches[name] = {};
    const buttons = words.map((word) => {
      const look = name === "outcome" ? `is-${word}` : null;
      const button = h("button", {type: "button", class: `switch ${look ?? ""}`, "aria-pressed": "false", onclick: () => {
        const chosen = read_filter(this.#context.query)[name];
        const now = chosen.includes(word) ? chosen.filter((known) => known !== word) : [...chosen, word];
        set_attribute(button, "aria-pressed", String(now.includes(word)));
        this.#set({[name]: now.join(",")});
      }}, look && h("span", {class: "glyph", "aria-hidden": "true"}, glyph_of(word)), word);
      this.#switches[name][word] = button;
      return button;
    });
    return h("div", {class: "switches", role: "group", "aria-label": label}, h("span", {class: "dim"}, label), buttons);
  }

  #clear_all() {
    this.#set(Object.fromEntries(filter_names.map((name) => [name, ""])));
    this.show();
    this.id_input.focus();
  }
}
