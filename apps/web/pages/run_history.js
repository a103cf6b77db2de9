// The events of a run: in short, in full or as JSON, a page at a time, and as a file to replay.
import {clock_text, duration_text, h, put, reconcile, run_link, set_attribute, set_text, table} from "../dom.js";
import {failure_line, readable_json, words_of} from "../events.js";
import {facts} from "../holds.js";
import {Pager} from "../pager.js";
import {payload_blocks, pretty_json, text_block} from "../payload.js";
import {permit_command} from "../run_query.js";

const views = [{name: "compact", label: "Compact", page: 60}, {name: "full", label: "Full", page: 20}, {name: "json", label: "JSON", page: 20}];

export class HistoryTab {
  #model;
  #view;
  #newest;
  #found = [];
  #json_shown = "";    // as JSON
  #opened = new Set(); // ids of the events whose attributes are shown
  #rows = table("Events", [{text: "Event", class: "right w-number"}, {text: "Time", class: "w-clock"},
    {text: "Since start", class: "w-since"}, {text: "What", class: "w-event"}, "More"]);
  #json = h("div");
  #pager = new Pager(views[0].page, () => this.#draw());
  #words = h("span", {class: "dim"});
  #none = h("p", {class: "dim"});
  #filter;
  #switches;
  #order;

  constructor(model) {
    this.#model = model;
    const {query} = model.context;
    this.#view = views.find(({name}) => name === query.get("view")) ?? views[0];
    this.#newest = query.get("order") === "newest";
    this.#filter = h("input", {type: "search", class: "filter", "data-filter": true, placeholder: "Filter: name or content",
      "aria-label": "Filter events by name or content", autocomplete: "off", spellcheck: "false", oninput: () => {
        model.context.set_query({q: this.#filter.value.trim()});
        this.#pager.to_start();
        this.#search();
      }});
    this.#filter.value = query.get("q") ?? "";
    this.#switches = views.map((view) => h("button", {type: "button", class: "switch", onclick: () => this.#choose(view)}, view.label));
    this.#order = h("button", {type: "button", class: "quiet", onclick: () => this.#turn()});
    this.element = h("div", {class: "history"}, h("div", {class: "filter-row"}, this.#filter,
      h("div", {class: "switches", role: "group", "aria-label": "How much of each event"}, this.#switches), this.#order,
      h("button", {type: "button", onclick: () => this.#download()}, "Download"), this.#words, this.#pager.element),
    this.#rows.element, this.#none, this.#json);
    this.#rows.body.addEventListener("click", (event) => this.#toggle(event));
    this.#show_controls();
  }

  update(what) {
    if (what.has("events")) this.#search();
  }

  #choose(view) {
    this.#view = view;
    this.#model.context.set_query({view: view.name === "compact" ? "" : view.name});
    this.#show_controls();
    this.#search();
  }

  #turn() {
    this.#newest = !this.#newest;
    this.#model.context.set_query({order: this.#newest ? "newest" : ""});
    this.#pager.to_start();
    this.#show_controls();
    this.#search();
  }

  #show_controls() {
    views.forEach((view, i) => set_attribute(this.#switches[i], "aria-pressed", String(view === this.#view)));
    set_text(this.#order, this.#newest ? "Newest first" : "Oldest first");
  }

  #search() {
    const {events, complete} = this.#model.feed;
    const text = this.#filter.value.trim().toLowerCase();
    const compact = this.#view.name === "compact";
    this.#found = events.filter((event) => (!compact || !event.of_task || text !== "") && (text === "" || event.search.includes(text)));
    if (this.#newest) this.#found.reverse();
    const hidden = compact && text === "" ? events.length - this.#found.length : 0;
    const count = (number, word) => `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
    set_text(this.#words, (text ? `${count(this.#found.length, "event")} of ${events.length.toLocaleString("en")}` : count(this.#found.length, "event")) +
      (hidden > 0 ? ` (${hidden.toLocaleString("en")} of workflow tasks hidden)` : "") + (complete ? "" : ", more are coming…"));
    this.#pager.set_count(this.#found.length, this.#view.page);
    this.#draw();
  }

  #draw() {
    const events = this.#found.slice(this.#pager.first, this.#pager.last);
    const as_json = this.#view.name === "json";
    this.#rows.element.hidden = as_json;
    set_text(this.#none, "");
    if (as_json) {
      const text = pretty_json(`[${events.map((event) => readable_json(event.raw)).join(",")}]`);
      if (text !== this.#json_shown) put(this.#json, text_block(text, "events"));
      this.#json_shown = text;
      return;
    }
    this.#json_shown = "";
    put(this.#json);
    const full = this.#view.name === "full";
    const began = this.#model.feed.events[0]?.at ?? 0;
    const now = this.#model.context.state.now();
    const key_of = (event) => `${event.id} ${full || this.#opened.has(event.id)}`;
    reconcile(this.#rows.body, events, key_of, (event) => event_row(event, began, now, full || this.#opened.has(event.id), full));
    this.#rows.element.hidden = events.length === 0;
    set_text(this.#none, events.length > 0 ? "" : this.#filter.value ? "No event is like that." : "Reading the history…");
  }

  // Opens and closes the attributes of an event.
  #toggle(event) {
    const button = event.target.closest("[data-event]");
    if (!button) return;
    const id = Number(button.dataset.event);
    if (!this.#opened.delete(id)) this.#opened.add(id);
    this.#draw();
    this.#rows.body.querySelector(`[data-event="${id}"]`)?.focus({preventScroll: true});
  }

  #download() {
    const {feed, context} = this.#model;
    if (!feed.complete) {
      context.notify("The history is still coming. Try again in a moment.");
      return;
    }
    const text = JSON.stringify({events: feed.events.map((event) => event.raw)});
    const url = URL.createObjectURL(new Blob([text], {type: "application/json"}));
    const {id, run} = feed.run;
    const link = h("a", {href: url, download: `${id.replace(/[^\w.-]+/g, "_").slice(0, 80)}-${run.slice(-8)}.json`});
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
    context.notify(`${feed.events.length} events, as of ${permit_command(["workflow", "show", id, "-o", "json"])}.`);
  }
}

function event_row(event, began, now, open, full) {
  const name = full ? event.name : h("button", {type: "button", class: "plain", "aria-expanded": String(open), data: {event: event.id}}, event.name);
  return h("tr", {class: event.of_task ? "of-task" : null}, h("td", {class: "right dim"}, String(event.id)),
    h("td", {class: "nowrap"}, h("time", {datetime: event.time, title: event.time}, clock_text(event.time, now))),
    h("td", {class: "nowrap dim"}, `+${duration_text(event.at - began)}`), h("td", {class: "event-name"}, name),
    h("td", {class: "gist"}, open ? event_details(event) : event.gist));
}

// All that an event says: payloads as values, runs as links.
function event_details({attributes}) {
  const rows = Object.entries(attributes).map(([name, value]) => [label_of(name), shown(name, value)]);
  return rows.length > 0 ? facts(rows) : h("span", {class: "dim"}, "It says no more.");
}

// "startToFireTimeout": "start to fire timeout"
function label_of(name) {
  return words_of(name.replace(/[A-Z]/g, (letter) => `_${letter}`));
}

function shown(name, value) {
  if (value === null || typeof value !== "object") return String(value);
  if (Array.isArray(value.payloads)) return payload_blocks(value, label_of(name));
  if (/failure$/i.test(name)) return failure_part(value);
  if (value.workflowId) return h("a", {class: "mono", href: run_link(value.workflowId, value.runId)}, value.workflowId);
  if (typeof value.name === "string" && Object.keys(value).every((key) => ["name", "kind"].includes(key))) return value.name;
  return text_block(pretty_json(readable_json(value)), label_of(name));
}

function failure_part(failure) {
  const {message, stackTrace, cause, ...rest} = failure;
  const more = Object.keys(rest).length > 0 && text_block(pretty_json(readable_json(rest)), "failure");
  return [h("span", {class: "problem"}, failure_line(failure)), stackTrace && h("pre", {class: "block", tabindex: "0"}, stackTrace), more];
}
