// Task queues, who polls them and what waits in them; and the workers.
import {api, namespace_path} from "../api.js";
import {each_second} from "../clock.js";
import {h, put, reconcile, set_text, time_of} from "../dom.js";
import {SortedTable} from "../sorting.js";
import {by_name} from "../state.js";
import {while_visible} from "../visible.js";
import {is_sticky, queue_key, status_of, workers_of} from "../workers.js";
import {lack_of, queue_columns, QueueRow} from "./queue_row.js";
import {worker_columns, WorkerRow} from "./worker_row.js";

export const title = "Queues and workers";

const ask_every = 5_000;
const pages_max = 10;
const rows_first = 25;
const rows_kept = 1000;
const namespace = namespace_path.split("/").pop();

export function open(root, context) {
  return new QueuesPage(root, context);
}

class QueuesPage {
  #context;
  #queues = [];
  #heartbeats = [];
  #fresh = false;      // the times of the last polls are of a few seconds ago
  #unlisted = false;   // the server does not list workers
  #listed = false;     // it does, and so it also counts tasks: a rate that it leaves out is 0
  #filter;
  #sticky = h("input", {type: "checkbox", onchange: () => this.#choose({sticky: this.#sticky.checked ? "1" : ""})});
  #sticky_text = h("span");
  #sticky_label = h("label", {class: "check"}, this.#sticky, this.#sticky_text);
  #total = h("p", {class: "dim total"});
  #note = h("p", {class: "dim note", hidden: true});
  #queue_list;
  #worker_list;
  #stop;

  constructor(root, context) {
    this.#context = context;
    this.#filter = h("input", {type: "search", class: "filter", "data-filter": true, placeholder: "Filter: queue, worker, host",
      "aria-label": "Filter by queue, worker or host", autocomplete: "off", spellcheck: "false",
      oninput: () => this.#choose({q: this.#filter.value.trim()})});
    this.#queue_list = new RowList("Queues", queue_columns, (sort) => this.#choose({sort}));
    this.#worker_list = new RowList("Workers", worker_columns, (sort) => this.#choose({wsort: sort}));
    put(context.tools, this.#sticky_label, this.#filter);
    put(root, this.#total, this.#queue_list.element, this.#worker_list.element, this.#note);
    this.navigated();
    each_second(root, (now) => {
      this.#queue_list.tick(now);
      this.#worker_list.tick(now);
    });
    this.#stop = while_visible(ask_every, (signal) => this.#ask(signal));
  }

  update({all, keys}) {
    if (!all && !keys.has("queues")) return;
    this.#queues = with_newer_polls(this.#context.state.queues, this.#queues);
    this.#show();
  }

  navigated() {
    const {query} = this.#context;
    this.#filter.value = query.get("q") ?? "";
    this.#sticky.checked = query.get("sticky") === "1";
    this.#queue_list.sorted = query.get("sort") ?? "";
    this.#worker_list.sorted = query.get("wsort") ?? "";
    this.#show();
  }

  close() {
    this.#stop();
  }

  #choose(values) {
    this.#context.set_query(values);
    if ("sort" in values) this.#queue_list.sorted = values.sort;
    if ("wsort" in values) this.#worker_list.sorted = values.wsort;
    this.#show();
  }

  // The heartbeats, and when each poller has polled last, which the stream does not keep telling.
  async #ask(signal) {
    const [workers, queues] = await Promise.allSettled([
      this.#unlisted ? Promise.reject() : all_workers(signal),
      api.post("permit.api.v1.PermitService/ListTaskQueues", {namespace})]);
    if (signal.aborted) return false;
    if (workers.value) this.#heartbeats = workers.value;
    else if (workers.reason?.status === 404 || workers.reason?.status === 501) this.#unlisted = true;
    this.#listed = workers.status === "fulfilled" || this.#listed;
    this.#fresh = queues.status === "fulfilled";
    if (this.#fresh) this.#queues = with_newer_polls(queues.value.queues ?? [], this.#queues);
    this.#show();
    return !this.#unlisted || queues.reason?.status !== 404;
  }

  #show() {
    const {state} = this.#context;
    if (!state.loaded) {
      put(this.#total, "Waiting for the server's first word…");
      return;
    }
    const now = state.now();
    const text = this.#filter.value.trim().toLowerCase();
    const sticky = this.#queues.filter(is_sticky).length;
    this.#sticky_label.hidden = sticky === 0;
    set_text(this.#sticky_text, `Sticky queues (${sticky})`);
    const shown = this.#queues.filter((queue) => this.#sticky.checked || !is_sticky(queue));
    const workers = workers_of(this.#heartbeats, this.#queues);
    for (const worker of workers) worker.status = status_of(worker, now);
    this.#show_queues(shown, text, now);
    this.#show_workers(workers, text, now);
    set_text(this.#total, total_text(shown, workers, (queue) => lack_of(queue, now, this.#fresh)));
    this.#note.hidden = !this.#unlisted;
    set_text(this.#note, "This server does not collect heartbeats of workers. Shown is who polls.");
  }

  #show_queues(queues, text, now) {
    const rates = queues.some((queue) => queue.addedPerSecond > 0 || queue.dispatchedPerSecond > 0) || this.#listed;
    const lacks = new Map(queues.map((queue) => [queue, lack_of(queue, now, this.#fresh)]));
    const rank = {tasks: 0, pollers: 1, "": 2};
    const found = queues.filter((queue) => text === "" ||
      [queue.name, ...(queue.pollers ?? []).map(({identity}) => identity)].some((name) => name.toLowerCase().includes(text)));
    found.sort((a, b) => rank[lacks.get(a)] - rank[lacks.get(b)] || by_name(a.name, b.name) || (a.kind < b.kind ? 1 : -1));
    this.#queue_list.show(found, queue_key, (key, queue) => new QueueRow(key, queue),
      (row, queue) => row.update(queue, {now, fresh: this.#fresh, rates}),
      queues.length === 0 ? "No queue is known yet. It appears with the first worker that polls it, or the first task." :
        `No queue is like “${this.#filter.value.trim()}”.`);
  }

  #show_workers(workers, text, now) {
    const rank = {silent: 0, draining: 1, running: 2, polling: 2, stopped: 3};
    const found = workers.filter(({identity, host, sdk, build, status, queues}) => text === "" ||
      [identity, host, sdk, build, status, ...queues].some((word) => word?.toLowerCase().includes(text)));
    found.sort((a, b) => rank[a.status] - rank[b.status] || by_name(a.identity, b.identity));
    this.#worker_list.show(found, ({key}) => key, (key, worker) => new WorkerRow(worker),
      (row, worker) => row.update(worker, now),
      workers.length === 0 ? "No worker is known. One is, as soon as it polls a queue." :
        `No worker is like “${this.#filter.value.trim()}”.`);
  }
}

// The heartbeats of all workers, page by page.
async function all_workers(signal) {
  const found = [];
  let nextPageToken;
  for (let page = 0; page < pages_max && (page === 0 || nextPageToken); ++page) {
    const answer = await api.get("/workers", {signal, parameters: {nextPageToken}});
    found.push(...(answer.workersInfo ?? []).map((info) => info.workerHeartbeat ?? {}));
    ({nextPageToken} = answer);
  }
  return found;
}

// The queues, with the later of the two times that are known of each poller.
function with_newer_polls(queues, before) {
  const times = new Map();
  for (const queue of before) {
    for (const {identity, lastAccessTime} of queue.pollers ?? []) times.set(`${queue_key(queue)} ${identity}`, lastAccessTime);
  }
  return queues.map((queue) => ({...queue, pollers: (queue.pollers ?? []).map((poller) => {
    const known = times.get(`${queue_key(queue)} ${poller.identity}`);
    return known && !(time_of(poller.lastAccessTime) > time_of(known)) ? {...poller, lastAccessTime: known} : poller;
  })}));
}

// "6 queues, 1 without a worker · 4 workers, 1 silent · 7 of 20 slots in use"
function total_text(queues, workers, lack) {
  const number = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
  const unserved = queues.filter((queue) => lack(queue) === "tasks").length;
  const live = workers.filter(({status}) => status !== "stopped");
  const silent = workers.filter(({status}) => status === "silent").length;
  let [used, total] = [0, 0];
  for (const {workflow, activity} of live) {
    for (const slots of [workflow, activity]) {
      if (slots?.total === undefined) continue;
      used += slots.used;
      total += slots.total;
    }
  }
  return [number(queues.length, "queue") + (unserved > 0 ? `, ${unserved} without a worker` : ""),
    number(live.length, "worker") + (silent > 0 ? `, ${silent} silent` : ""),
    total > 0 && `${used} of ${total} slots in use`].filter(Boolean).join(" · ");
}

// A sorted table of rows that are known by a key, the first 25 of them until more is asked for.
class RowList {
  #table;
  #known = new Map();  // key -> row, also of those that are not shown
  #shown = [];
  #empty = h("p", {class: "dim nothing", hidden: true});
  #more = h("button", {type: "button", hidden: true, onclick: () => {
    this.#limit *= 4;
    this.#again();
  }});
  #limit = rows_first;
  #again = () => {};

  constructor(label, columns, changed) {
    this.#table = new SortedTable(label, columns, changed);
    this.element = h("div", {class: "row-list"}, h("h2", {}, label), this.#table.element,
      this.#empty, this.#more);
  }

  set sorted(sorted) {
    this.#table.sorted = sorted;
  }

  show(items, key_of, create, update, nothing) {
    this.#again = () => this.show(items, key_of, create, update, nothing);
    const shown = this.#table.sort(items).slice(0, this.#limit);
    if (this.#known.size > items.length + rows_kept) this.#known.clear();
    const keyed = new Map(shown.map((item) => [key_of(item), item]));
    this.#shown = [...keyed].map(([key, item]) => {
      if (!this.#known.has(key)) this.#known.set(key, create(key, item));
      const row = this.#known.get(key);
      update(row, item);
      return row;
    });
    const elements = [...keyed.keys()].flatMap((key) => {
      const {element, more} = this.#known.get(key);
      return more ? [[key, element], [`${key} more`, more]] : [[key, element]];
    });
    reconcile(this.#table.body, elements, ([key]) => key, ([, element]) => element);
    this.#table.element.hidden = items.length === 0;
    this.#empty.hidden = items.length > 0;
    set_text(this.#empty, nothing);
    this.#more.hidden = shown.length === items.length;
    set_text(this.#more, `Show more: ${shown.length} of ${items.length} are shown`);
  }

  tick(now) {
    for (const row of this.#shown) row.tick(now);
  }
}
