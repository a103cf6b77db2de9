// One task queue in its table: a line of numbers, and below it what is wrong and who polls.
import {copy_button, h, put, reconcile, set_attribute, set_text, ticking_text, time_of} from "../dom.js";
import {set_ago} from "../holds.js";
import {number_text} from "../numbers.js";
import {is_polled, is_sticky, last_poll} from "../workers.js";

export const queue_columns = [
  {key: "name", text: "Queue", value: (queue) => queue.name},
  {key: "kind", text: "Kind", class: "w7", value: (queue) => queue.kind},
  {key: "pollers", text: "Pollers", class: "right w7", first: "down", value: (queue) => (queue.pollers ?? []).length},
  {key: "backlog", text: "Backlog", class: "right w7", first: "down", value: (queue) => queue.backlog ?? 0},
  {key: "oldest", text: "Oldest task", class: "right w8", value: (queue) => time_of(queue.oldestTask)},
  {key: "added", text: "Added", class: "right w7", first: "down", value: (queue) => queue.addedPerSecond ?? 0},
  {key: "dispatched", text: "Dispatched", class: "right w8", first: "down", value: (queue) => queue.dispatchedPerSecond ?? 0},
  {key: "polled", text: "Last poll", class: "right w7", first: "down", value: last_poll},
  {key: "runs", class: "w7", text: h("span", {class: "off-screen"}, "Its workflows")},
];

// What a queue lacks: "tasks" (they wait, and nobody polls), "pollers" (nobody polls), "" nothing.
export function lack_of(queue, now, fresh) {
  if (is_polled(queue, now, fresh)) return "";
  if (queue.backlog > 0 || queue.oldestTask) return "tasks";
  return is_sticky(queue) ? "" : "pollers";
}

export class QueueRow {
  key;
  #cells = {};
  #button;
  #notice = h("div");
  #notice_shown = "";
  #waits = h("b", {class: "ticks"});
  #pollers = h("ul", {class: "pollers", "aria-label": "Pollers"});
  #open = false;
  #queue;
  #lack = "";

  constructor(key, queue) {
    this.key = key;
    const cell = (name) => (this.#cells[name] = h("td", {class: "right nowrap"}));
    this.#button = h("button", {type: "button", class: "disclose", "aria-expanded": "false", onclick: () => {
      this.#open = !this.#open;
      this.#show_more();
    }}, h("span", {class: "turn", "aria-hidden": "true"}), h("span", {class: "mono"}, queue.name));
    this.element = h("tr", {}, h("th", {scope: "row", class: "queue-name"}, this.#button),
      h("td", {class: "nowrap"}, queue.kind), ["pollers", "backlog", "oldest", "added", "dispatched", "polled"].map(cell),
      h("td", {class: "right"}, queue.kind === "workflow" && !is_sticky(queue) && h("a", {href: workflows_of(queue.name),
        "aria-label": `Workflows of the queue ${queue.name}`}, "workflows")));
    this.more = h("tr", {class: "more"}, h("td", {colspan: "9"}, this.#notice, this.#pollers));
  }

  update(queue, {now, fresh, rates}) {
    this.#queue = queue;
    const {pollers = [], backlog = 0} = queue;
    this.#lack = lack_of(queue, now, fresh);
    const mark = this.#lack === "tasks" ? "✕ " : this.#lack ? "! " : "";
    set_text(this.#cells.pollers, mark + (pollers.length > 0 ? number_text(pollers.length) : "none"));
    set_text(this.#cells.backlog, number_text(backlog));
    set_text(this.#cells.added, rates ? `${number_text(queue.addedPerSecond ?? 0)}/s` : "–");
    set_text(this.#cells.dispatched, rates ? `${number_text(queue.dispatchedPerSecond ?? 0)}/s` : "–");
    this.#show_notice(backlog);
    this.#show_more();
    this.tick(now);
  }

  // What counts, once a second.
  tick(now) {
    const {oldestTask, pollers = []} = this.#queue;
    const waits = oldestTask ? ticking_text(Math.max(0, now - time_of(oldestTask))) : "–";
    set_text(this.#cells.oldest, waits);
    set_text(this.#waits, waits);
    set_ago(this.#cells.polled, "", last_poll(this.#queue), now);
    if (this.#cells.polled.textContent === "") set_text(this.#cells.polled, "–");
    if (!this.#open) return;
    for (const {identity, lastAccessTime} of pollers) {
      const ago = this.#pollers.by_key?.get(identity)?.lastElementChild;
      if (ago) set_ago(ago, "polled ", time_of(lastAccessTime), now);
    }
  }

  #show_notice(backlog) {
    const shown = `${this.#lack} ${backlog}`;
    if (shown === this.#notice_shown) return;
    this.#notice_shown = shown;
    if (!this.#lack) {
      put(this.#notice);
      return;
    }
    const tasks = backlog === 1 ? "1 task waits" : `${backlog} tasks wait`;
    put(this.#notice, h("p", {class: this.#lack === "tasks" ? "notice bad" : "notice"},
      h("b", {}, h("span", {class: "glyph", "aria-hidden": "true"}, this.#lack === "tasks" ? "✕ " : "! "),
        "No worker polls this queue."), this.#lack === "tasks" ?
        h("span", {}, `${tasks}, the first for `, this.#waits, ".") : h("span", {}, "Nothing waits in it.")),
    this.#lack === "tasks" && !is_sticky(this.#queue) && way_out(this.#queue));
  }

  #show_more() {
    set_attribute(this.#button, "aria-expanded", String(this.#open));
    this.more.hidden = !this.#open && !this.#lack;
    set_attribute(this.element, "class", [this.#lack && `lacks-${this.#lack}`, !this.more.hidden && "has-more"].filter(Boolean).join(" "));
    this.#pollers.hidden = !this.#open;
    if (!this.#open) return;
    const pollers = this.#queue.pollers ?? [];
    if (pollers.length === 0) {
      this.#pollers.by_key?.clear();
      put(this.#pollers, h("li", {class: "dim"}, "Nobody has polled it in the last five minutes."));
      return;
    }
    if (!this.#pollers.by_key?.size) put(this.#pollers);
    reconcile(this.#pollers, pollers, ({identity}) => identity, ({identity, lastAccessTime}) => h("li", {},
      h("span", {class: "mono"}, identity || "(no identity)"), h("span", {class: "dim ticks nowrap"}, lastAccessTime ? "" : "polls")));
  }
}

// "TaskQueue = "x"" as the filter of the list of workflows.
function workflows_of(name) {
  const query = `TaskQueue = "${name.replace(/[\\"]/g, "\\$&")}"`;
  return `#/workflows?query=${encodeURIComponent(query)}`;
}

// How such a queue gets a worker.
function way_out({name, kind}) {
  const standard = ["http://127.0.0.1:7376", "http://localhost:7376"].includes(location.origin);
  const address = standard ? "" : `PERMIT_ADDRESS=${location.origin} `;
  const command = (words, text, what) => [h("p", {}, words),
    h("p", {class: "command"}, h("code", {}, text), copy_button(text, what))];
  if (name === "permits") {
    return command("Start a worker of permits; without one, a lease that runs out is ended later:",
      `${address}permit worker start --task-queue permits`, "the command");
  }
  const quoted = JSON.stringify(name);
  const source = kind === "activity" ? `permit.Worker(${quoted}, activities=[…]).run()` :
    `Worker worker(transport, registry, WorkerOptions(${quoted}));`;
  const where = standard ? "" : ` with PERMIT_ADDRESS=${location.origin} in its environment`;
  return command(`Start the program that serves it${where}. It is the one that says, in ${kind === "activity" ? "Python" : "C++"}:`,
    source, "the line");
}
