// The top of a run's page: how it stands, since when, what it holds, and what it waits for.
import {release} from "../actions.js";
import {api} from "../api.js";
import {each_second} from "../clock.js";
import {chip, copy_button, copy_text, duration_text, h, put, reconcile, run_link, set_text, ticking_text, time_element,
  time_of} from "../dom.js";
import {failure_line} from "../events.js";
import {facts, holder_element, left_text} from "../holds.js";
import {limits_text, open_lines} from "../run_open.js";
import {payload_blocks, size_text} from "../payload.js";
import {ask_to_end, signal_run, verbs} from "../run_actions.js";
import {outcome_chip, run_element, standing_word, status_element, took} from "../runs.js";

const why_every = 2_000;

// What can be done with it.
export function run_items({context, feed}) {
  const {run, permit} = feed;
  const open = feed.is_open();
  const copy = (what, text) => ({label: `Copy the ${what}`, act: async () => {
    context.notify(await copy_text(text) ? `Copied ${text}.` : `Could not copy ${text}.`);
  }});
  return [
    copy("workflow id", run.id), copy("run id", run.run),
    {label: "All runs of this id", act: () => context.navigate(`#/workflows?id=${encodeURIComponent(run.id)}`)},
    null,
    open && {label: "Send a signal…", act: () => signal_run(context, run)},
    open && {label: "Cancel…", act: () => ask_to_end(context, verbs.cancel, run)},
    open && null,
    open && permit?.state === "held" && {label: "Release by force…", dangerous: true, act: () => release(context, permit)},
    open && {label: "Terminate…", dangerous: true, act: () => ask_to_end(context, verbs.terminate, run)},
  ].filter((item) => item === null || item);
}

export class RunHead {
  #model;
  #line = h("div", {class: "run-line"});
  #facts = h("div");
  #facts_shown = "";
  #holds = h("ul", {class: "held-list", "aria-label": "Permits it holds"});
  #waiting = h("ul", {class: "waiting-list"});
  #open = h("section", {class: "run-open", "aria-label": "What it holds and waits for"},
    h("h2", {}, "Now"), this.#holds, this.#waiting);
  #values = h("div", {class: "run-values"});
  #values_shown = "";
  #why = new Map();  // key of a line -> why it waits
  #why_asked = "";
  #why_asked_at = -Infinity;

  constructor(model) {
    this.#model = model;
    this.element = h("section", {class: "run-head", "aria-label": "Summary"}, this.#line, this.#facts, this.#open, this.#values);
    each_second(this.#open, (now) => this.#tick(now));
  }

  update() {
    this.#show_facts();
    this.update_live();
    this.update_events();
  }

  // What the stream tells.
  update_live() {
    this.#show_line();
    this.#show_holds();
    this.#ask_why();
  }

  // What the history tells.
  update_events() {
    this.#show_facts();
    this.#show_values();
    this.#tick(this.#model.context.state.now());
  }

  #show_line() {
    const {feed, waits} = this.#model;
    const {run, description} = feed;
    const lost = feed.error && h("span", {class: "problem"}, feed.error.status === 404 ? "It is not kept any more." : "The server does not answer.");
    put(this.#line, status_element(standing_word(run, waits)), run.outcome && outcome_chip(run),
      run.cause && h("span", {class: "dim"}, `cause ${run.cause}`),
      description.workflowExtendedInfo?.cancelRequested && feed.is_open() && h("span", {class: "badge"}, "asked to cancel"), lost);
  }

  // Made anew only when something is another, so that the focus stays.
  #show_facts() {
    const {context, feed} = this.#model;
    const {run, description, fold, permit} = feed;
    const info = description.workflowExecutionInfo;
    const shown = JSON.stringify([info, description.executionConfig, permit, fold.next_run, fold.started.continuedExecutionRunId]);
    if (shown === this.#facts_shown) return;
    this.#facts_shown = shown;
    const now = context.state.now();
    const age = h("span", {class: "ticks"});
    if (!run.close) each_second(age, (time) => set_text(age, ticking_text(took(run, time))));
    const link = (id, run_id) => h("a", {class: "mono", href: run_link(id, run_id)}, id);
    const in_chain = (run_id, what) => run_id && run_id !== run.run && [h("a", {href: run_link(run.id, run_id), title: run_id}, what), " "];
    const next = fold.next_run;
    const chain = [in_chain(info.firstRunId, "first run"), in_chain(fold.started.continuedExecutionRunId, "previous run"), in_chain(next, "next run")].filter(Boolean);
    const limits = limits_text(description.executionConfig ?? {}, duration_text);
    put(this.#facts, facts([
      ["Run", [run_element(run.run), copy_button(run.run, "the run id")]],
      ["Type", run.type],
      ["Task queue", h("a", {href: "#/queues"}, description.executionConfig?.taskQueue?.name ?? run.queue)],
      ["Started", time_element(run.started_at, now)],
      run.close ? ["Closed", [time_element(run.closed_at, now), ` after ${duration_text(took(run, now))}`]] : ["Open for", age],
      ["History", `${Number(info.historyLength ?? 0).toLocaleString("en")} events, ${size_text(Number(info.historySizeBytes ?? 0))}`],
      limits && ["Limits", limits],
      run.parent && ["Parent", link(run.parent, run.parent_run)],
      chain.length > 0 && ["Chain", chain],
      ...(permit ? this.#permit_facts(permit, now) : []),
    ]));
  }

  #permit_facts(permit, now) {
    const left = h("b", {class: "ticks", role: "timer"});
    if (permit.state === "held") each_second(left, (time) => set_text(left, left_text(time_of(permit.deadline), time)));
    return [
      ["Holder", holder_element(permit)],
      permit.reason && ["Reason", permit.reason],
      ["Pool", h("a", {href: `#/pools?q=${encodeURIComponent(permit.pool)}`}, `${permit.pool}, slot ${permit.slot}`)],
      ["Fence", String(permit.fence)],
      permit.state === "held" ? ["Lease left", [left, " until ", time_element(permit.deadline, now)]] :
        ["Held", duration_text(time_of(permit.closedAt) - time_of(permit.since))],
      permit.possibleOverlap && ["Overlap", h("span", {class: "problem"}, permit.lateReleaseAt ?
        `its holder went on for ${duration_text(time_of(permit.lateReleaseAt) - time_of(permit.closedAt))}` : "possible: its holder may have worked on")],
    ];
  }

  // --- Now ---

  #show_holds() {
    const {context, feed} = this.#model;
    const holds = context.state.open_holds().filter((hold) => hold.holderRunId === feed.run.run);
    reconcile(this.#holds, holds, (hold) => hold.runId, (hold) => {
      const left = h("b", {class: "ticks", role: "timer", "aria-label": `lease left on ${hold.id}`});
      return h("li", {}, chip("held"), h("a", {class: "mono", href: run_link(hold.id, hold.runId)}, hold.id),
        h("span", {}, "lease ", left), h("span", {class: "dim"}, `fence ${hold.fence}`));
    }, (item, hold) => each_second(item, (now) => {
      const deadline = time_of(hold.deadline);
      set_text(item.querySelector("[role=timer]"), `${left_text(deadline, now)}${deadline > now ? " left" : ""}`);
    }));
    this.#holds.hidden = holds.length === 0;
  }

  #tick(now) {
    const lines = open_lines(this.#model, now);
    reconcile(this.#waiting, lines, (line) => line.key, (line) => h("li", {},
      h("span", {class: "badge"}, line.what), h("span", {class: "ticks"}), h("span", {class: "dim"})), (item, line) => {
      set_text(item.children[1], line.text);
      set_text(item.children[2], this.#why.get(line.key) ?? line.more ?? "");
    });
    this.#waiting.hidden = lines.length === 0;
    this.#open.hidden = lines.length === 0 && this.#holds.hidden;
  }

  async #ask_why() {
    const {feed, waits} = this.#model;
    const waiters = waits.of(feed.run.run);
    const asked = waiters.map((waiter) => waiter.id).join();
    if (asked === this.#why_asked && performance.now() - this.#why_asked_at < why_every) return;
    this.#why_asked = asked;
    this.#why_asked_at = performance.now();
    for (const waiter of waiters) {
      try {
        this.#why.set(`waiter ${waiter.id}`, (await api.get(`/waiters/${waiter.id}/why`)).message ?? "");
      } catch {
        this.#why.delete(`waiter ${waiter.id}`);  // it has its slot by now
      }
    }
    if (this.#why.size > 0) this.#tick(this.#model.context.state.now());
  }

  // --- Input, result, failure ---

  #show_values() {
    const {fold} = this.#model.feed;
    const shown = `${fold.started.input !== undefined} ${fold.end?.id}`;
    if (shown === this.#values_shown) return;
    this.#values_shown = shown;
    const {attributes = {}, name = ""} = fold.end ?? {};
    const failure = failure_line(attributes.failure);
    const memo = fold.started.memo?.fields ?? {};
    const part = (label, content) => h("section", {}, h("h2", {}, label), content);
    put(this.#values, fold.started.input && part("Input", payload_blocks(fold.started.input, "Input")),
      Object.keys(memo).length > 0 && part("Memo", Object.entries(memo).map(([key, value]) => [h("p", {class: "dim"}, key), payload_blocks({payloads: [value]}, key)])),
      attributes.result && part("Result", payload_blocks(attributes.result, "Result")),
      failure && part("Failure", [h("p", {class: "caution"}, failure), attributes.failure.stackTrace &&
        h("details", {}, h("summary", {}, "Stack trace"), h("pre", {class: "block", tabindex: "0"}, attributes.failure.stackTrace))]),
      name === "WorkflowExecutionTerminated" && part("Terminated", h("p", {class: "caution"},
        `${attributes.reason || "no reason given"}${attributes.identity ? `, by ${attributes.identity}` : ""}`)));
  }
}
