// Who waits, for what, for how long, and why; and which pools are asked for most.
import {api, part} from "../api.js";
import {each_second} from "../clock.js";
import {copy_button, h, put, reconcile, set_text, ticking_text, time_of} from "../dom.js";
import {Contention} from "./contention.js";
import {RecentWaits} from "./recent_waits.js";
import {WaitHistogram} from "./wait_histogram.js";
import {WaiterRow} from "./waiter_row.js";
import {WhyLoader} from "./why_loader.js";

export const title = "Waiters";

const whole_line_every = 2_000;
const rows_at_once = 50;

export function open(root, context) {
  const page = new WaitersPage(root, context);
  return {update: (changed) => page.update(changed), navigated: () => page.read_query(), close: () => page.close()};
}

class WaitersPage {
  #context;
  #pool = "";
  #q = "";
  #rows = new Map();    // waiter id -> WaiterRow
  #whole = new Map();   // pool -> {waiters, asked_at, timer}: lines that were asked for whole
  #recent = new RecentWaits();
  #medians = new Map();
  #histogram = new WaitHistogram();
  #contention = new Contention();
  #why;
  #leaving = new AbortController();
  #select = h("select", {"aria-label": "Pool", onchange: () => this.#choose({pool: this.#select.value})});
  #filter = h("input", {type: "search", class: "filter", "data-filter": true, placeholder: "Filter: holder, reason", "aria-label": "Filter by holder or reason",
    autocomplete: "off", spellcheck: "false", oninput: () => this.#choose({q: this.#filter.value.trim()})});
  #total = h("p", {class: "dim total"});
  #problem = h("div");
  #nothing = h("div");
  #body = h("tbody");
  #limit = rows_at_once;
  #rest_text = h("span");
  #rest = h("div", {class: "more-waiters", hidden: true}, h("div", {}, this.#rest_text, h("button", {type: "button", onclick: () => {
    this.#limit += rows_at_once;
    this.#show();
  }}, `Show ${rows_at_once} more`)));
  #more = h("ul", {class: "more-waiters"});
  #scroll = h("div", {class: "scroll", role: "region", "aria-label": "Who waits", tabindex: "0"},
    h("table", {class: "waiters"}, h("thead", {}, h("tr", {}, [["Place", "right"], ["Who"], ["Waited"], ["Pool"], ["How"], ["Blocked by, soonest first"], ["Action", "right"]]
      .map(([text, side]) => h("th", {scope: "col", class: side}, text)))), this.#body));

  constructor(root, context) {
    this.#context = context;
    this.#why = new WhyLoader(() => context.state.now());
    put(context.tools, this.#select, this.#filter);
    put(root, this.#total, this.#problem, h("div", {class: "stack"}, this.#scroll, this.#rest, this.#more, this.#nothing,
      h("div", {class: "cards"}, this.#contention.element, this.#histogram.element, who_is_first())));
    this.read_query();
    each_second(this.#scroll, (now) => {
      for (const row of this.#rows.values()) if (row.element.isConnected) row.tick(now);
      this.#show_total(now);
    });
  }

  read_query() {
    const {query} = this.#context;
    const before = this.#pool;
    this.#pool = query.get("pool") ?? "";
    this.#q = (query.get("q") ?? "").toLowerCase();
    if (this.#filter.value.trim().toLowerCase() !== this.#q) this.#filter.value = query.get("q") ?? "";
    if (this.#context.state.loaded && (before !== this.#pool || this.#medians.size === 0)) this.#load_recent();
    this.#show();
  }

  update(changed) {
    const {keys} = changed;
    if (changed.all) this.#load_recent();
    this.#recent.add(changed.holds);
    for (const pool of this.#context.state.pools.keys()) {
      if (!changed.all && !keys.has("line:" + pool) && !keys.has("pool:" + pool)) continue;
      this.#medians.delete(pool);
      if (changed.all || keys.has("line:" + pool)) this.#ask_whole_again(pool);
      this.#why.changed(pool);
    }
    this.#show();
  }

  close() {
    this.#leaving.abort();
    this.#why.close();
    for (const {timer} of this.#whole.values()) clearTimeout(timer);
  }

  #choose(values) {
    this.#context.set_query(values);
    this.read_query();
  }

  async #load_recent() {
    try {
      await this.#recent.load(this.#pool, this.#leaving.signal);
      put(this.#problem);
    } catch (error) {
      if (this.#leaving.signal.aborted) return;
      put(this.#problem, h("p", {class: "problem", role: "alert"}, `The waits of late could not be read: ${error.message}. `,
        h("button", {type: "button", onclick: () => this.#load_recent()}, "Try again")));
    }
    this.#medians.clear();
    this.#show();
  }

  // --- The lines ---

  #lines() {
    const {state} = this.#context;
    return state.sorted_pools().filter(({pool}) => this.#pool === "" || pool === this.#pool).map(({pool}) => {
      const {waiting = 0, waiters = []} = state.lines.get(pool) ?? {};
      const whole = this.#whole.get(pool);
      return {pool, waiting, waiters: whole?.waiters && waiting > waiters.length ? whole.waiters : waiters, whole};
    }).filter(({waiting}) => waiting > 0);
  }

  #show() {
    const {state} = this.#context;
    this.#show_pools();
    const lines = this.#lines();
    const alike = lines.flatMap((line) => line.waiters).filter((waiter) => this.#q === "" ||
      [waiter.holder, waiter.reason, waiter.pool].some((text) => text?.toLowerCase().includes(this.#q)));
    const waiters = alike.slice(0, this.#limit);
    this.#forget_all_but(new Set(lines.flatMap((line) => line.waiters.map(({id}) => id))));
    reconcile(this.#body, waiters, ({id}) => id, (waiter) => this.#row_of(waiter).element);
    const now = state.now();
    for (const waiter of waiters) {
      const row = this.#row_of(waiter);
      row.update(waiter, this.#usual(waiter.pool));
      row.tick(now);
    }
    this.#rest.hidden = alike.length <= waiters.length;
    set_text(this.#rest_text, `The first ${waiters.length} of ${alike.length.toLocaleString("en")} are shown.`);
    this.#scroll.hidden = waiters.length === 0;
    this.#show_more(lines);
    this.#show_nothing(waiters.length, lines);
    this.#show_total(now);
    this.#contention.update(state.sorted_pools(), {of: (pool) => this.#usual(pool)});
    const {waits} = this.#usual(this.#pool);
    this.#histogram.update(waits, waits.length === 0 ? "No holds are known yet." :
      `Of the last ${waits.length.toLocaleString("en")} holds ${this.#pool ? `of ${this.#pool}` : "of all pools"}.`);
  }

  // A row is kept while its waiter waits, also while a filter hides it.
  #row_of(waiter) {
    let row = this.#rows.get(waiter.id);
    if (row) return row;
    row = new WaiterRow(this.#context);
    row.update(waiter, this.#usual(waiter.pool));
    this.#rows.set(waiter.id, row);
    this.#why.watch(row);
    return row;
  }

  #forget_all_but(ids) {
    for (const [id, row] of this.#rows) {
      if (ids.has(id)) continue;
      this.#why.forget(row);
      this.#rows.delete(id);
    }
  }

  #usual(pool) {
    if (pool === "") return this.#recent.of("");
    if (!this.#medians.has(pool)) this.#medians.set(pool, this.#recent.of(pool));
    return this.#medians.get(pool);
  }

  #show_pools() {
    const names = this.#context.state.sorted_pools().map(({pool}) => pool);
    if (this.#pool !== "" && !names.includes(this.#pool)) names.push(this.#pool);
    const wanted = ["", ...names];
    if (wanted.join("\n") !== [...this.#select.options].map(({value}) => value).join("\n")) {
      put(this.#select, wanted.map((name) => h("option", {value: name}, name || "All pools")));
    }
    this.#select.value = this.#pool;
  }

  #show_total(now) {
    const lines = this.#lines();
    const waiting = lines.reduce((sum, line) => sum + line.waiting, 0);
    const oldest = lines.map(({pool}) => time_of(this.#context.state.pools.get(pool)?.oldestWait)).filter(Boolean);
    const longest = oldest.length > 0 ? `; the longest has waited ${ticking_text(Math.max(0, now - Math.min(...oldest)))}` : "";
    set_text(this.#total, waiting === 0 ? "" : `${waiting.toLocaleString("en")} ${waiting === 1 ? "waits" : "wait"} for ` +
      `${lines.length === 1 ? lines[0].pool : `${lines.length} pools`}${longest}`);
  }

  // --- Lines that are longer than what the stream tells ---

  #show_more(lines) {
    const longer = lines.filter(({waiting, waiters}) => waiting > waiters.length);
    reconcile(this.#more, longer, ({pool}) => pool, ({pool}) => {
      const text = h("span");
      return h("li", {}, text, h("button", {type: "button", onclick: () => this.#ask_whole(pool)}, "Show all"));
    }, (element, {pool, waiting, waiters, whole}) => {
      set_text(element.firstChild, `and ${(waiting - waiters.length).toLocaleString("en")} more wait for ${pool}` +
        `${whole?.waiters ? ", which are not listed" : ""}${whole?.error ? `: ${whole.error}` : ""}`);
      element.lastChild.hidden = Boolean(whole?.waiters);
    });
  }

  async #ask_whole(pool) {
    const entry = this.#whole.get(pool) ?? {};
    this.#whole.set(pool, Object.assign(entry, {asked_at: performance.now(), timer: 0}));
    try {
      entry.waiters = (await api.get(`/pools/${part(pool)}/waiters`, {signal: this.#leaving.signal})).waiters ?? [];
      entry.error = "";
    } catch (error) {
      if (this.#leaving.signal.aborted) return;
      entry.error = error.message;
    }
    this.#show();
  }

  #ask_whole_again(pool) {
    const entry = this.#whole.get(pool);
    if (!entry?.waiters || entry.timer) return;
    entry.timer = setTimeout(() => this.#ask_whole(pool), Math.max(0, entry.asked_at + whole_line_every - performance.now()));
  }

  // --- Nobody ---

  #show_nothing(shown, lines) {
    const {state} = this.#context;
    if (shown > 0) return put(this.#nothing);
    if (!state.loaded) return put(this.#nothing, h("p", {class: "dim"}, "Waiting for the server's first word…"));
    if (lines.length > 0) {
      return put(this.#nothing, h("div", {class: "empty small"}, h("p", {}, `Nobody who waits is like “${this.#filter.value.trim()}”.`),
        h("button", {type: "button", onclick: () => this.#choose({q: ""})}, "Clear the filter")));
    }
    if (this.#nothing.querySelector("h2")?.dataset.pool === this.#pool) return undefined;
    const name = this.#pool || state.sorted_pools()[0]?.pool || "demo";
    const command = `permit run -p ${/^[\w.-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`} --wait 10m -- sleep 60`;
    return put(this.#nothing, h("div", {class: "empty small"}, h("h2", {data: {pool: this.#pool}}, this.#pool ? `Nobody waits for ${this.#pool}` : "Nobody waits"),
      h("p", {}, "Whoever asks for a slot gets one at once. To see somebody wait, ask for one more than there are; run this until the slots are used up:"),
      h("p", {class: "command"}, h("code", {}, command), copy_button(command, "the command"))));
  }
}

function who_is_first() {
  return h("section", {class: "card first-come", "aria-labelledby": "who-is-first"}, h("h2", {id: "who-is-first"}, "Who comes first"),
    h("p", {}, h("b", {}, "fair"), " is a line: priority 1 before 5, then whoever came first. Nobody overtakes, and a slot that comes free goes to the first of the line in the same moment."),
    h("p", {}, h("b", {}, "any"), " is not first come, first served: it tries, waits a while and tries again, and after some tries stands behind the whole fair line, where a free slot is given by lot. " +
      "Somebody who came later may well be first. A pool can be told to keep a fair line for all: ", h("code", {}, "permit pool set NAME --order fair"), "."));
}
