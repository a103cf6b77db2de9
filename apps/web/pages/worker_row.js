// One worker in its table.
import {h, put, set_text} from "../dom.js";
import {set_ago} from "../holds.js";
import {number_text} from "../numbers.js";
import {status_chip, status_of} from "../workers.js";

const load_of = (slots) => (slots?.total > 0 ? slots.used / slots.total : undefined);
const queues_shown = 3;

export const worker_columns = [
  {key: "identity", text: "Worker", value: (worker) => worker.identity},
  {key: "status", text: "Status", class: "w7", value: (worker) => worker.status},
  {key: "sdk", text: "SDK and build", class: "w10", value: (worker) => `${worker.sdk ?? ""} ${worker.build ?? ""}`.trim()},
  {key: "queues", text: "Queues", class: "w10", value: (worker) => worker.queues[0]},
  {key: "workflow", text: "Workflow slots", class: "w8", first: "down", value: (worker) => load_of(worker.workflow)},
  {key: "activity", text: "Activity slots", class: "w8", first: "down", value: (worker) => load_of(worker.activity)},
  {key: "cache", text: "Cache", class: "right w6", first: "down", value: (worker) => worker.cache?.size},
  {key: "done", text: "Tasks done", class: "right w7", first: "down", value: (worker) => worker.done},
  {key: "seen", text: "Last seen", class: "right w7", first: "down", value: (worker) => worker.seen},
];

export class WorkerRow {
  #status = h("td");
  #seen = h("td", {class: "right nowrap ticks"});
  #cells = ["sdk", "queues", "workflow", "activity", "cache", "done"].map(() => h("td"));
  #shown = "";
  #shown_status = "";
  #worker;

  constructor(worker) {
    const place = [worker.host, worker.pid && `pid ${worker.pid}`].filter(Boolean).join(" · ");
    const [sdk, queues, workflow, activity, cache, done] = this.#cells;
    cache.className = done.className = "right nowrap";
    this.element = h("tr", {}, h("th", {scope: "row", class: "worker-name"},
      h("span", {class: "mono"}, worker.identity || "(no identity)"), place && h("div", {class: "dim"}, place)),
    this.#status, sdk, queues, workflow, activity, cache, done, this.#seen);
  }

  update(worker, now) {
    this.#worker = worker;
    const {seen, status, ...rest} = worker;
    const shown = JSON.stringify(rest);
    if (shown !== this.#shown) {
      this.#shown = shown;
      this.#show(worker);
    }
    this.tick(now);
  }

  tick(now) {
    const status = status_of(this.#worker, now);
    if (status !== this.#shown_status) {
      this.#shown_status = status;
      put(this.#status, status_chip(status));
    }
    set_ago(this.#seen, "", this.#worker.seen, now);
    if (this.#worker.seen === undefined) set_text(this.#seen, "–");
  }

  #show(worker) {
    const [sdk, queues, workflow, activity, cache, done] = this.#cells;
    put(sdk, worker.beats ? worker.sdk || "–" : h("span", {class: "dim"}, "sends no heartbeat"),
      worker.build && h("div", {class: "dim mono"}, worker.build));
    const more = worker.queues.length - queues_shown;
    put(queues, worker.queues.length === 0 ? "–" : worker.queues.slice(0, queues_shown).map((name) => h("div", {class: "mono"}, name)),
      more > 0 && h("div", {class: "dim", title: worker.queues.slice(queues_shown).join(", ")}, `and ${more} more`));
    put(workflow, slots_element(worker.workflow));
    put(activity, slots_element(worker.activity));
    put(cache, cache_content(worker.cache));
    put(done, worker.done === undefined ? "–" : number_text(worker.done),
      worker.failed > 0 && h("div", {class: "failed"}, `! ${number_text(worker.failed)} failed`));
  }
}

// "3 of 10" above a bar.
function slots_element(slots) {
  if (!slots) return "–";
  if (slots.total === undefined) return `${slots.used} in use`;
  const bar = h("i");
  bar.style.setProperty("transform", `scaleX(${slots.total > 0 ? (slots.used / slots.total).toFixed(3) : 0})`);
  const full = slots.total > 0 && slots.used >= slots.total;
  return h("div", {class: full ? "slots full" : "slots"}, `${slots.used} of ${slots.total}${full ? ", full" : ""}`,
    h("div", {class: "bar", "aria-hidden": "true"}, bar));
}

function cache_content(cache) {
  if (!cache) return "–";
  const asked = cache.hits + cache.misses;
  return [number_text(cache.size), asked > 0 && h("div", {class: "dim"}, `${Math.floor(100 * cache.hits / asked)}% hits`)];
}
