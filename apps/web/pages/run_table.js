// The table of runs: one line each, in an order of the reader's, some of them chosen.
import {each_second} from "../clock.js";
import {copy_button, duration_text, h, put, run_link, set_attribute, set_text, ticking_text, time_element} from "../dom.js";
import {LongTable} from "../long_table.js";
import {outcome_chip, run_element, standing_word, status_element, took} from "../runs.js";
import {sort_button} from "../sorting.js";
import {by_name} from "../state.js";

const last = Number.MAX_SAFE_INTEGER;  // runs that are open end last

const by_number = (a, b) => a - b;
const text = (key) => ({key, compare: by_name});
const number = (key) => ({key, compare: by_number});

// What is sorted by: the key of a run, and how keys compare.
const orders = {
  status: text((run, now, waits) => standing_word(run, waits)), outcome: text((run) => run.outcome), id: text((run) => run.id),
  run: {key: (run) => run.run, compare: (a, b) => (a < b ? -1 : 1)}, type: text((run) => run.type), queue: text((run) => run.queue),
  start: number((run) => run.start), end: number((run) => run.close ?? last), duration: number(took), parent: text((run) => run.parent),
};

const columns = [
  {name: "status", label: "Status", class: "w-status"}, {name: "outcome", label: "Outcome", class: "w-outcome"},
  {name: "id", label: "Workflow ID", class: "w-id"}, {name: "run", label: "Run", class: "w-run"},
  {name: "type", label: "Type", class: "w-type"}, {name: "queue", label: "Task queue", class: "w-queue"},
  {name: "start", label: "Start", class: "w-time"}, {name: "end", label: "End", class: "w-time"},
  {name: "duration", label: "Duration", class: "w-took right"}, {name: "parent", label: "Parent", class: "w-type"},
];

export class RunTable {
  chosen = new Set();  // run ids
  #context;
  #waits;
  #runs = [];          // newest first, as the server has them
  #sort = "";          // "type", or "-type" for the other way round
  #all = h("input", {type: "checkbox", "aria-label": "Choose all that are loaded", onchange: () => this.#choose_all()});
  #told;
  #table;

  // told(): after the reader has chosen or sorted.
  constructor(context, waits, told) {
    this.#context = context;
    this.#waits = waits;
    this.#told = told;
    const heads = columns.map((column) => ({...column, class: `${column.class ?? ""} sorts`.trim(),
      head: sort_button(column.label, () => this.#sort_by(column.name))}));
    this.#table = new LongTable({label: "Runs of workflows", key_of: (run) => run.run,
      columns: [{name: "choose", class: "w-choose", head: this.#all}, ...heads], fill: (row, run) => this.#fill(row, run)});
    this.element = this.#table.element;
    this.element.addEventListener("change", ({target}) => this.#choose(target));
    each_second(this.element, (now) => this.#tick(now));
  }

  get sort() {
    return this.#sort;
  }
  set sort(text) {
    this.#sort = Object.hasOwn(orders, text.replace(/^-/, "")) ? text : "";
    this.#show_sort();
  }

  show(runs) {
    this.#runs = runs;
    const known = new Set(runs.map((run) => run.run));
    for (const run of this.chosen) if (!known.has(run)) this.chosen.delete(run);
    this.#draw();
  }

  clear_choice() {
    this.chosen.clear();
    this.#table.refill();
    this.#show_all();
  }

  // After some run has begun to wait, or has its permit.
  standings_changed() {
    if (/status/.test(this.#sort)) this.#draw();
    this.#table.each((row, run) => this.#show_standing(row, run));
  }

  scroll_to_start() {
    this.#table.scroll_to_start();
  }

  #draw() {
    const order = orders[this.#sort.replace(/^-/, "")];
    let shown = this.#runs;
    if (order) {
      const now = this.#context.state.now();
      const sign = this.#sort.startsWith("-") ? -1 : 1;
      const keyed = shown.map((run) => ({run, key: order.key(run, now, this.#waits)}));
      shown = keyed.sort((a, b) => sign * order.compare(a.key, b.key)).map((entry) => entry.run);
    }
    this.#table.set(shown);
    this.#show_all();
    this.#tick(this.#context.state.now());
  }

  // --- A row ---

  #fill(row, run) {
    const now = this.#context.state.now();
    const cell = (content, properties) => h("td", properties, content);
    const box = h("input", {type: "checkbox", "aria-label": `Choose ${run.id}`, data: {run: run.run}});
    box.checked = this.chosen.has(run.run);
    put(row, cell(box), cell(null), cell(outcome_chip(run)),
      cell(h("a", {class: "mono", href: run_link(run.id, run.run), title: run.id}, run.id)),
      cell([run_element(run.run), copy_button(run.run, `the run id of ${run.id}`)], {class: "nowrap"}),
      cell(run.type, {title: run.type}), cell(run.queue, {title: run.queue}),
      cell(time_element(run.started_at, now)), cell(run.closed_at ? time_element(run.closed_at, now) : "-"),
      cell(run.close ? duration_text(took(run, now)) : "", {class: "right ticks"}),
      cell(run.parent ? h("a", {class: "mono", href: run_link(run.parent, run.parent_run), title: run.parent}, run.parent) : "-"));
    row.classList.toggle("chosen", box.checked);
    this.#show_standing(row, run);
  }

  #show_standing(row, run) {
    const cell = row.cells[1];
    const word = standing_word(run, this.#waits);
    if (cell.dataset.word === word) return;
    cell.dataset.word = word;
    put(cell, status_element(word));
  }

  #tick(now) {
    this.#table.each((row, run) => {
      if (!run.close) set_text(row.cells[9], ticking_text(took(run, now)));
    });
  }

  // --- Order ---

  #sort_by(name) {
    this.sort = this.#sort === name ? `-${name}` : this.#sort === `-${name}` ? "" : name;
    this.#draw();
    this.#told();
  }

  #show_sort() {
    columns.forEach(({name}, i) => set_attribute(this.#table.heads[i + 1], "aria-sort",
      this.#sort === name ? "ascending" : this.#sort === `-${name}` ? "descending" : null));
  }

  // --- Choice ---

  #choose({dataset, checked}) {
    if (!dataset.run) return;
    if (checked) this.chosen.add(dataset.run);
    else this.chosen.delete(dataset.run);
    this.#table.each((row, run) => row.classList.toggle("chosen", this.chosen.has(run.run)));
    this.#show_all();
    this.#told();
  }

  #choose_all() {
    this.chosen = new Set(this.#all.checked ? this.#runs.map((run) => run.run) : []);
    this.#table.each((row, run) => {
      row.cells[0].firstElementChild.checked = this.chosen.has(run.run);
      row.classList.toggle("chosen", this.chosen.has(run.run));
    });
    this.#show_all();
    this.#told();
  }

  #show_all() {
    this.#all.checked = this.chosen.size > 0 && this.chosen.size === this.#runs.length;
    this.#all.indeterminate = this.chosen.size > 0 && !this.#all.checked;
  }
}
