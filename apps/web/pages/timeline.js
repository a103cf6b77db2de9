// Who held what, when, and how it ended: a row for each slot, a bar for each hold; and as a table.
import {each_second} from "../clock.js";
import {chip, clock_text, copy_button, h, put, run_link, set_attribute, set_text} from "../dom.js";
import {kept_by_server, ledger_of} from "../ledger.js";
import {Gantt} from "./gantt.js";
import {HoldTable} from "./hold_table.js";
import {describe, download, sum_words, words} from "./hold_words.js";
import {bounds_of, panned, range_of, range_query, RangePicker, zoomed} from "./range_picker.js";
import {idle_stretches} from "./time_scale.js";
import {holds_within, outcomes, rows_of} from "./timeline_rows.js";

export const title = "Timeline";

const table_every = 1000;  // while holds come and go
const said_after = 400;    // what is loaded sooner needs no word

export function open(root, context) {
  const page = new TimelinePage(root, context);
  return {update: (changed) => page.update(changed), navigated: () => page.navigated(), close: () => page.close()};
}

class TimelinePage {
  #context;
  #ledger;
  #choice;      // what rows_of() wants
  #range;
  #fold;
  #rows = [];
  #listed;      // {version, at}: the ledger that the table shows
  #frame = 0;
  #unsubscribe;
  #table_timer = 0;
  #closed = false;
  #gantt;
  #table;
  #picker;
  #chips;
  #filter = h("input", {type: "search", class: "filter", "data-filter": true, placeholder: "Filter: slot, holder, reason, fence",
    "aria-label": "Filter by slot, holder, reason, cause, fence or run", autocomplete: "off", spellcheck: "false",
    oninput: () => this.#choose({q: this.#filter.value.trim()})});
  #pool = h("select", {"aria-label": "Pool", onchange: () => this.#choose({pool: this.#pool.value})});
  #folding = h("input", {type: "checkbox", onchange: () => this.#choose({fold: this.#folding.checked ? "1" : ""})});
  #notes = h("div", {class: "notes"});
  #said = [];  // in the notes
  #told = h("div", {class: "looked-at"});
  #picture = h("section", {class: "picture", "aria-label": "Picture"});
  #nothing = h("div");

  constructor(root, context) {
    this.#context = context;
    this.#ledger = ledger_of(context.state);
    this.#gantt = new Gantt({
      describe: (records, row) => describe(records, row, this.#now()), href: ({hold}) => run_link(hold.id, hold.runId),
      tell: (records, row) => this.#tell(records, row), pan: (direction) => this.#set_range(panned(this.#range, direction, this.#now())),
      zoom: (factor, time) => this.#set_range(zoomed(this.#range, factor, time, this.#now())),
      zoom_to: (from, to) => this.#zoom_to(from, to),
    });
    this.#picker = new RangePicker((range) => this.#set_range(range), (kind) => this.#step(kind));
    this.#table = new HoldTable(context.query.get("sort") ?? "-since", (sort) => context.set_query({sort: sort === "-since" ? "" : sort}));
    this.#chips = outcomes.map((name) => h("button", {type: "button", class: "toggle", "aria-pressed": "false", data: {outcome: name},
      onclick: () => this.#toggle(name)}));
    this.#build(root);
    this.#read_query();
    this.#unsubscribe = this.#ledger.subscribe(() => this.#soon());
    each_second(this.#picture, () => this.#refresh());
  }

  #build(root) {
    const {tools} = this.#context;
    put(tools, this.#pool, this.#filter);
    put(this.#picture, this.#gantt.element, this.#told);
    const save = (format, label) => h("button", {type: "button", onclick: () => this.#download(format)}, label);
    put(root, h("div", {class: "timeline-bar"}, this.#picker.element,
      h("label", {class: "fold"}, this.#folding, " Fold idle gaps")),
    h("div", {class: "legend", role: "group", "aria-label": "Outcomes that are shown"}, this.#chips),
    this.#notes, this.#nothing, this.#picture,
    h("div", {class: "table-head"}, h("h2", {}, "As a table"), save("csv", "Download CSV"), save("jsonl", "Download JSONL")),
    this.#table.element);
    this.#tell(null);
  }

  update(changed) {
    if (changed.all || changed.keys.has("removed")) this.#show_pools();
    if (changed.all || changed.keys.has("pools")) this.#soon();
  }

  navigated() {
    this.#read_query();
    this.#table.set_sort(this.#context.query.get("sort") ?? "-since");
    this.#refresh({now: true});
  }

  close() {
    this.#closed = true;
    this.#unsubscribe();
    this.#ledger.cancel();
    this.#gantt.close();
    clearTimeout(this.#table_timer);
    cancelAnimationFrame(this.#frame);
  }

  #now() {
    return this.#context.state.now();
  }

  // --- What is chosen, which is in the address ---

  #read_query() {
    const {query} = this.#context;
    const [pool, q] = [query.get("pool") ?? "", query.get("q") ?? ""];
    const outcome = new Set((query.get("outcome") ?? "").split(",").filter((name) => outcomes.includes(name)));
    this.#choice = {pool, outcome, q: q.toLowerCase(), chosen: JSON.stringify([...outcome, q.toLowerCase()])};
    this.#range = range_of(query);
    this.#fold = query.get("fold") === "1";
    this.#folding.checked = this.#fold;
    if (this.#filter.value.trim() !== q) this.#filter.value = q;
    this.#show_pools();
  }

  #choose(values) {
    this.#context.set_query(values);
    this.#read_query();
    this.#table.first_page();
    this.#refresh({now: true});
  }

  #toggle(name) {
    const {outcome} = this.#choice;
    if (!outcome.delete(name)) outcome.add(name);
    this.#choose({outcome: outcomes.filter((one) => outcome.has(one)).join(",")});
  }

  #set_range(range) {
    this.#choose(range_query(range));
  }

  #step(kind) {
    const now = this.#now();
    const range = this.#range;
    if (kind === "now") this.#set_range({length: range.length ?? Math.round(range.to - range.from)});
    else if (kind === "in" || kind === "out") this.#set_range(zoomed(range, kind === "in" ? .5 : 2, this.#gantt.middle(), now));
    else this.#set_range(panned(range, kind === "earlier" ? -1 : 1, now));
  }

  #zoom_to(from, to) {
    const margin = Math.max(1000, (to - from) * .1);
    this.#set_range({from: Math.round(from - margin), to: Math.round(to + margin)});
    requestAnimationFrame(() => this.#gantt.focus());
  }

  #show_pools() {
    const {pool} = this.#choice ?? {pool: ""};
    const names = this.#context.state.sorted_pools().map((one) => one.pool);
    if (pool !== "" && !names.includes(pool)) names.push(pool);
    const wanted = ["", ...names];
    if (wanted.join("\n") !== [...this.#pool.options].map(({value}) => value).join("\n")) {
      put(this.#pool, wanted.map((name) => h("option", {value: name}, name === "" ? "All pools" : name)));
    }
    this.#pool.value = pool;
  }

  // --- Showing it ---

  #soon() {
    if (this.#frame === 0) this.#frame = requestAnimationFrame(() => this.#refresh());
  }

  // The picture at once, the table behind it; from time to time if the reader did not ask.
  #refresh({now: asked = false} = {}) {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const {state} = this.#context;
    if (!state.loaded) {
      put(this.#nothing, h("p", {class: "dim"}, "Waiting for the server's first word…"));
      return;
    }
    const now = this.#now();
    const bounds = bounds_of(this.#range, now);
    this.#ledger.want(this.#choice.pool, bounds.from);
    this.#rows = rows_of(state, this.#ledger, this.#choice, bounds);
    this.#picker.show(this.#range, now);
    if (!this.#listed) this.#list();
    else if (asked) this.#list_in(0);
    else if (this.#listed.version !== this.#ledger.version) this.#list_in(this.#listed.at + table_every - performance.now());
    const lists = this.#rows.filter(({kind}) => kind === "slot").map(({records}) => records);
    const idle = this.#fold ? idle_stretches(lists, bounds.from, Math.min(bounds.to, now)) : [];
    const folded = idle.reduce((sum, [from, to]) => sum + to - from, 0);
    const to = this.#range.length === undefined ? bounds.to : bounds_of({length: this.#range.length - folded}, now).to;
    this.#gantt.show({rows: this.#rows, from: bounds.from, to, now, idle});
  }

  // Not before the picture has been painted.
  #list_in(milliseconds) {
    if (milliseconds > 0 && this.#table_timer !== 0) return;
    clearTimeout(this.#table_timer);
    this.#table_timer = setTimeout(() => requestAnimationFrame(() => setTimeout(() => this.#list())), Math.max(0, milliseconds));
  }

  #list() {
    if (this.#closed) return;
    const now = this.#now();
    const bounds = bounds_of(this.#range, now);
    clearTimeout(this.#table_timer);
    this.#table_timer = 0;
    const {records, counts, shown, forgotten} = holds_within(this.#rows, bounds);
    this.#table.show(records, now);
    const slots = this.#rows.filter(({kind}) => kind === "slot").length;
    const until = this.#range.length === undefined ? clock_text(bounds.to, now) : "now";
    const summary = `Timeline of ${slots} ${slots === 1 ? "slot" : "slots"} from ${clock_text(bounds.from, now)} to ${until}, ` +
      `${sum_words(records.length, shown)}. The table below has the same.`;
    this.#listed = {version: this.#ledger.version, at: performance.now()};
    this.#gantt.summarize(summary);
    this.#show_legend(counts);
    this.#show_notes(forgotten, now);
    this.#show_nothing(records.length);
  }

  #show_legend(counts) {
    const {outcome} = this.#choice;
    for (const button of this.#chips) {
      const name = button.dataset.outcome;
      set_attribute(button, "aria-pressed", String(outcome.has(name)));
      button.classList.toggle("off", outcome.size > 0 && !outcome.has(name));
      const text = `${counts.get(name).toLocaleString("en")} ${name}`;
      if (button.textContent.endsWith(text) && button.dataset.text === text) continue;
      button.dataset.text = text;
      put(button, chip(name, {text}));
    }
  }

  #show_notes(forgotten, now) {
    const {loading, error} = this.#ledger;
    let progress = "";
    if (loading && (loading.count > 0 || performance.now() - loading.began > said_after)) {
      const back = loading.back_to ? `, back to ${clock_text(loading.back_to, now)}` : "";
      progress = `Loading holds: ${loading.count.toLocaleString("en")} so far${back}…`;
    }
    // A button that is made anew while it is pressed is never clicked.
    const said = [progress, error, forgotten];
    if (said.every((what, i) => what === this.#said[i])) return;
    this.#said = said;
    const notes = [];
    if (progress) notes.push(h("p", {class: "loading"}, progress));
    if (error) {
      notes.push(h("p", {class: "problem", role: "alert"}, `Not all holds could be loaded: ${error.message}. `,
        h("button", {type: "button", onclick: () => {
          this.#ledger.try_again();
          this.#refresh({now: true});
        }}, "Try again")));
    }
    if (forgotten > 0) {
      notes.push(h("p", {class: "dim"}, `Not complete: the server keeps the last ${kept_by_server} holds of a slot, and ` +
        `${forgotten === 1 ? "1 slot has" : `${forgotten} slots have`} had as many or more since. Where a row is dotted, ` +
        "nothing is known any more."));
    }
    put(this.#notes, notes);
  }

  #show_nothing(count) {
    const {state} = this.#context;
    const {pool, q, outcome} = this.#choice;
    this.#picture.hidden = this.#rows.length === 0;
    if (count > 0 || this.#ledger.loading) return put(this.#nothing);
    if (q !== "" || outcome.size > 0) {
      return put(this.#nothing, h("div", {class: "empty small"}, h("p", {}, "No hold in this range is like that."),
        h("button", {type: "button", onclick: () => this.#choose({q: "", outcome: ""})}, "Clear the filters")));
    }
    if (pool !== "" && !state.pools.has(pool)) {
      return put(this.#nothing, h("p", {class: "dim"}, `There is no pool ${pool} now, and none of its holds in this range.`));
    }
    if (state.pools.size === 0) {
      return put(this.#nothing, h("div", {class: "empty"}, h("h2", {}, "There is no pool yet"),
        h("p", {}, "Once there is one, each of its slots has a row here, with a bar for every hold. ",
          h("a", {href: "#/pools"}, "How to make a pool"))));
    }
    const name = pool || state.sorted_pools()[0].pool;
    const command = `permit run -p ${/^[\w.-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`} -- sleep 60`;
    return put(this.#nothing, h("div", {class: "empty small"}, h("p", {}, "Nothing was held in this range. Look further back, or hold something:"),
      h("p", {class: "command"}, h("code", {}, command), copy_button(command, "the command"))));
  }

  #tell(records, row) {
    put(this.#told, records ? words(records, row, this.#now()) :
      h("span", {class: "dim"}, "Point at a bar, or go there with Tab and the arrow keys. + and − zoom, Enter opens the run."));
  }

  async #download(format) {
    const records = this.#table.sorted();
    await download(records, format, this.#now());
    const partial = this.#ledger.loading ? " More is still being loaded." : "";
    this.#context.notify(`${records.length.toLocaleString("en")} holds saved as ${format.toUpperCase()}.${partial}`);
  }
}
