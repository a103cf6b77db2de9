// Who can work for a run: the workers that poll its queues, and the one that has it in memory.
import {each_second} from "../clock.js";
import {h, put, set_text, table, ticking_text, time_of} from "../dom.js";
import {set_ago} from "../holds.js";

export class WorkersTab {
  element = h("div", {class: "workers"});
  #model;
  #shown = "";

  constructor(model) {
    this.#model = model;
  }

  update() {
    const {feed, context} = this.#model;
    const {run, fold, description} = feed;
    const {queues} = context.state;
    const queue = description.executionConfig?.taskQueue?.name ?? run.queue;
    const activities = [...new Set([...fold.queues].filter(Boolean))].sort();
    const shown = JSON.stringify([queues, activities, fold.last_worker, fold.last_worker_at, run.status]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    const ago = h("span", {class: "dim"});
    if (fold.last_worker) each_second(ago, (now) => set_ago(ago, "", fold.last_worker_at, now));
    put(this.element, h("p", {}, fold.last_worker ? ["Its last workflow task went to ", h("b", {class: "mono"}, fold.last_worker), " ", ago,
      feed.is_open() ? ", who has it in memory and is asked first." : "."] : "No worker has had a task of it yet."),
    queue_part(queues, queue, "workflow", "Workflow tasks", fold.last_worker, feed.is_open()),
    activities.map((name) => queue_part(queues, name, "activity", "Activities", "", feed.is_open())),
    h("p", {}, h("a", {href: "#/queues"}, "All queues and workers")));
  }
}

function queue_part(queues, name, kind, title, last_worker, open) {
  const info = queues.find((queue) => queue.name === name && queue.kind === kind);
  const pollers = info?.pollers ?? [];
  const list = table(`Workers that poll ${name} for ${title.toLowerCase()}`, ["Worker", "Last seen", "Note"]);
  put(list.body, pollers.map((poller) => {
    const seen = h("td", {class: "ticks"});
    each_second(seen, (now) => set_text(seen, `${ticking_text(Math.max(0, now - time_of(poller.lastAccessTime)))} ago`));
    return h("tr", {}, h("td", {class: "mono"}, poller.identity || "-"), seen, h("td", {}, poller.identity === last_worker && h("span", {class: "badge"}, "had its last task")));
  }));
  return h("section", {}, h("h2", {}, `${title}: `, h("span", {class: "mono"}, name)), info?.backlog > 0 && h("p", {class: "dim"}, `${info.backlog} tasks wait.`),
    pollers.length > 0 ? list.element : h("p", {class: open ? "caution" : "dim"}, open ? "No worker polls this queue: nothing of it goes on until one does." : "No worker polls this queue."));
}
