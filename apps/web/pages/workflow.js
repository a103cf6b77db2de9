// One run: how it stands, what it holds and waits for, and all that happened in it.
import {rpc} from "../api.js";
import {duration_text, h, put, run_link, set_attribute, set_text, time_element} from "../dom.js";
import {menu_button} from "../menu.js";
import {value_text} from "../run_query.js";
import {RunFeed} from "../run_feed.js";
import {run_of, status_element, took} from "../runs.js";
import {Waits} from "../waits.js";
import {HistoryTab} from "./run_history.js";
import {RunHead, run_items} from "./run_head.js";
import {PendingTab} from "./run_pending.js";
import {QueriesTab} from "./run_queries.js";
import {RelationsTab} from "./run_relations.js";
import {TimelineTab} from "./run_timeline.js";
import {WorkersTab} from "./run_workers.js";

export const title = (params) => params.id;

const tabs = [
  {name: "timeline", label: "Timeline", Tab: TimelineTab}, {name: "history", label: "History", Tab: HistoryTab},
  {name: "relations", label: "Relationships", Tab: RelationsTab}, {name: "pending", label: "Pending", Tab: PendingTab},
  {name: "queries", label: "Queries", Tab: QueriesTab}, {name: "workers", label: "Workers", Tab: WorkersTab},
];

export function open(root, context) {
  const {state, params} = context;
  const waits = new Waits(state, () => show_live());
  const feed = new RunFeed({workflowId: params.id, runId: params.runId}, (what) => tell(what));
  const model = {context, feed, waits};
  const head = new RunHead(model);
  const newer = h("div", {class: "notice", hidden: true});
  const panel = h("div", {class: "tab-panel", role: "tabpanel", id: "tab-panel", tabindex: "0"});
  const buttons = tabs.map(({name, label}) => h("button", {type: "button", role: "tab", id: `tab-${name}`,
    "aria-controls": "tab-panel", onclick: () => choose(name)}, label));
  const list = h("div", {class: "tabs", role: "tablist", "aria-label": "About this run", onkeydown: on_key}, buttons);
  const place = h("div", {}, h("p", {class: "dim"}, "Asking the server…"));
  put(context.tools, menu_button("Actions", ["Actions", h("span", {class: "down", "aria-hidden": "true"})],
    () => run_items(model)));
  put(root, newer, place);
  context.tools.hidden = true;
  let current;  // {name, tab}
  let shown = false;
  let drawing = 0;
  const to_tell = new Set();

  // At most once a frame: a long history comes in many pages.
  function tell(what) {
    to_tell.add(what);
    drawing ||= requestAnimationFrame(() => {
      drawing = 0;
      const told = new Set(to_tell);
      to_tell.clear();
      show(told);
    });
  }

  function show(what) {
    if (feed.error && !shown) {
      show_failure(place, model, feed.error);
      return;
    }
    if (!feed.run) return;
    if (!shown) {
      shown = true;
      context.tools.hidden = false;
      put(place, head.element, list, panel);
      choose(context.query.get("tab") ?? "");
    }
    if (what.has("description")) {
      buttons[3].dataset.count = pending_count(feed.description) || "";
      head.update();
    } else if (what.has("events") || what.has("permits")) {
      head.update_events();
    }
    current.tab.update(what);
    show_newer();
  }

  // What the stream alone tells: leases, lines and queues.
  function show_live() {
    if (!shown) return;
    head.update_live();
    current.tab.update(new Set(["live"]));
    show_newer();
  }

  function show_newer() {
    newer.hidden = !feed.newer;
    if (feed.newer) put(newer, "A later run of this workflow has started. ", h("a", {href: run_link(params.id, feed.newer)}, "See it"));
  }

  // --- Tabs ---

  function choose(wanted, focus = false) {
    const at = Math.max(0, tabs.findIndex(({name}) => name === wanted));
    const {name, Tab} = tabs[at];
    buttons.forEach((button, i) => {
      set_attribute(button, "aria-selected", String(i === at));
      set_attribute(button, "tabindex", i === at ? "0" : "-1");
    });
    if (focus) buttons[at].focus();
    list.scrollLeft = buttons[at].offsetLeft - list.offsetLeft - 40;
    if (current?.name === name) return;
    current?.tab.close?.();
    current = {name, tab: new Tab(model)};
    context.set_query({tab: at === 0 ? "" : name});
    set_attribute(panel, "aria-labelledby", `tab-${name}`);
    put(panel, current.tab.element);
    current.tab.update(new Set(["description", "events", "permits", "live"]));
  }

  function on_key(event) {
    const at = buttons.indexOf(document.activeElement);
    const to = {ArrowLeft: (at + tabs.length - 1) % tabs.length, ArrowRight: (at + 1) % tabs.length, Home: 0,
      End: tabs.length - 1}[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    choose(tabs[to].name, true);
  }

  return {
    update(changed) {
      if (changed.keys.has("lines") || changed.all) waits.update();
      feed.update(changed);
      const run = feed.execution.runId;
      const of_run = changed.all || changed.keys.has("lines") || changed.keys.has("queues") ||
        changed.holds.some((hold) => hold.holderRunId === run || hold.runId === run);
      if (of_run) show_live();
    },
    navigated() {
      if (shown) choose(context.query.get("tab") ?? "");
    },
    close() {
      cancelAnimationFrame(drawing);
      current?.tab.close?.();
      feed.close();
      waits.close();
    },
  };
}

function pending_count({pendingActivities = [], pendingChildren = []}) {
  return pendingActivities.length + pendingChildren.length;
}

// There is no such run, or no answer: what else there is of this id.
async function show_failure(place, {context}, error) {
  const {id, runId} = context.params;
  const again = h("button", {type: "button", onclick: () => location.reload()}, "Try again");
  if (error.status !== 404) {
    put(place, h("div", {class: "empty"}, h("p", {}, `${error.message}.`), again));
    return;
  }
  const others = h("div");
  put(place, h("div", {class: "empty"}, h("h2", {}, "There is no such run"),
    h("p", {}, runId ? ["No run ", h("code", {}, runId), " of ", h("code", {}, id), " is known."] : ["No workflow ", h("code", {}, id), " is known."],
      " Closed runs are forgotten after a time, 72 hours if the server was not told otherwise."), others,
    h("p", {}, h("a", {href: `#/workflows?id=${encodeURIComponent(id)}`}, "Look for ids that begin like this"))));
  try {
    const page = await rpc("ListWorkflowExecutions", {query: `WorkflowId = ${value_text(id)}`, pageSize: 20});
    const runs = (page.executions ?? []).map(run_of);
    if (runs.length === 0) return;
    const now = context.state.now();
    put(others, h("h3", {}, "Runs of this id"), h("ul", {class: "other-runs"}, runs.map((run) => h("li", {}, status_element(run.status), " ",
      h("a", {class: "mono", href: run_link(run.id, run.run)}, run.run), " ", h("span", {class: "dim"}, "started ",
        time_element(run.started_at, now), `, ${run.close ? "took" : "runs for"} ${duration_text(took(run, now))}`)))));
  } catch {
    set_text(others, "");
  }
}
