// The page's frame: which page is open, and what all pages share.
//
// A page is a module in pages/ with
//   export const title = "Pools";             the heading; or a function (params) => string
//   export function open(root, context)       builds itself into `root`, which is empty and has the
//                                             heading (h1) above it; returns
//     {update(changed), close(), navigated()} all optional. `update` is called at most once a frame
//                                             after the state changed, with what State.subscribe()
//                                             tells (several messages joined), and once right after
//                                             open(), with all: true. `navigated` is called when
//                                             only the query has changed; without it, such a change
//                                             opens the page anew. What the page itself set with
//                                             set_query() is not told.
// context has
//   params              what the address names: {id, runId} for #/workflows/<id>/<runId>
//   query               URLSearchParams of what is after the ? of the address, always the current
//   set_query(object)   changes parts of it, without a step in the browser's history
//   navigate(hash)      goes elsewhere: navigate("#/waiters?pool=gpu")
//   set_title(text)     another heading and document title
//   tools               an element on the right of the heading, for filters and buttons; the field
//                       with the attribute data-filter is what "/" goes to
//   state, api          state.js and api.js
//   say(text)           tells screen readers, with the next batch (at most one each 5 s)
//   notify(text)        shows a short note, and tells screen readers at once
// A countdown is each_second() of clock.js with state.now(); actions are in actions.js.
import {api} from "./api.js";
import {start_clock, tick_now} from "./clock.js";
import {h, put, set_attribute} from "./dom.js";
import {start_keys} from "./keys.js";
import {Live} from "./live.js";
import {log_in} from "./login.js";
import {State} from "./state.js";
import {follow} from "./stream.js";
import {start_theme} from "./theme.js";

// The pages: what the address and the navigation call them. `key` is the second key after g.
export const pages = [
  {name: "pools", label: "Pools", key: "p", load: () => import("./pages/pools.js")},
  {name: "timeline", label: "Timeline", key: "t", load: () => import("./pages/timeline.js")},
  {name: "waiters", label: "Waiters", key: "w", load: () => import("./pages/waiters.js")},
  {name: "workflows", label: "Workflows", key: "f", load: () => import("./pages/workflows.js")},
  {name: "queues", label: "Queues", key: "q", load: () => import("./pages/queues.js")},
  {name: "metrics", label: "Metrics", key: "m", load: () => import("./pages/metrics.js")},
  {name: "about", label: "About", key: "a", load: () => import("./pages/about.js")},
];
const workflow_page = {name: "workflow", label: "Workflow", under: "workflows",
  load: () => import("./pages/workflow.js")};

const state = new State();
const live = new Live(state);
const main = document.getElementById("main");
let current = null;  // {path, query_text, context, page, heading}
let pending = null;  // what changed since the page was last told

// --- Where we are ---

// "#/workflows/permit%3Agpu%3A0/0197?x=y": the page, its parameters and the query.
function read_address() {
  const [path, query_text = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const parts = path.split("/").filter(Boolean).map(decoded);
  const query = new URLSearchParams(query_text);
  if (parts[0] === "workflows" && parts.length > 1) {
    const params = {id: parts[1], runId: parts[2] ?? ""};
    return {path, query, query_text, route: workflow_page, params};
  }
  const route = pages.find((page) => page.name === parts[0]) ?? pages[0];
  return {path: route.name, query, query_text, route, params: {}};
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function navigate(hash) {
  if (location.hash === hash) go();
  else location.hash = hash;
}

function show_navigation(route) {
  for (const link of document.querySelectorAll("#nav a")) {
    const here = link.dataset.name === (route.under ?? route.name);
    set_attribute(link, "aria-current", here ? "page" : null);
    if (here) link.scrollIntoView({block: "nearest", inline: "nearest"});
  }
}

// --- Opening a page ---

async function go() {
  if (location.hash === "#main") return;  // the skip link
  const address = read_address();
  if (current && current.path === address.path) {
    if (current.query_text === address.query_text) return;
    current.query_text = address.query_text;
    current.context.query = address.query;
    if (current.page?.navigated) {
      current.page.navigated();
      return;
    }
  }
  const moved = current !== null;
  current?.page?.close?.();
  const heading = h("h1", {tabindex: "-1"}, address.route.label);
  const context = make_context(address, heading);
  const root = h("div", {class: `page page-${address.route.name}`});
  const opened = current = {path: address.path, query_text: address.query_text, context};
  put(main, h("div", {class: "head"}, heading, context.tools), root);
  show_navigation(address.route);
  context.set_title(address.route.label);
  if (moved) {
    scrollTo(0, 0);
    heading.focus({preventScroll: true});
  }
  try {
    const module = await address.route.load();
    if (current !== opened) return;  // gone elsewhere meanwhile
    const title = typeof module.title === "function" ? module.title(address.params) : module.title;
    context.set_title(title ?? address.route.label);
    opened.page = module.open(root, context) ?? {};
    opened.page.update?.(everything());
  } catch (error) {
    console.error(error);
    if (current === opened) show_failure(root, opened);
  }
}

function make_context({query, params}, heading) {
  const context = {
    query, params, state, api, navigate,
    tools: h("div", {class: "tools"}),
    say: (text) => live.say(text),
    notify: (text) => live.notify(text),
    set_title(text) {
      if (heading.textContent !== text) heading.textContent = text;
      document.title = `${text} · Permit`;
    },
    set_query(values) {
      for (const [name, value] of Object.entries(values)) {
        if (value === undefined || value === null || value === "") context.query.delete(name);
        else context.query.set(name, value);
      }
      const text = context.query.toString();
      if (current.context !== context || text === current.query_text) return;
      current.query_text = text;
      const path = location.hash.split("?")[0] || `#/${current.path}`;
      history.replaceState(null, "", text ? `${path}?${text}` : path);
    },
  };
  return context;
}

function show_failure(root, opened) {
  put(root, h("div", {class: "empty"}, h("p", {}, "This page could not be shown. If the server is away, it may help to try again."),
    h("button", {type: "button", onclick: () => {
      if (current === opened) {
        current = null;
        go();
      }
    }}, "Try again")));
}

// --- Telling the page what changed ---

function everything() {
  const keys = new Set(["pools", "removed", "lines", "holds", "workflows", "queues", "alerts"]);
  for (const name of state.pools.keys()) keys.add("pool:" + name).add("line:" + name);
  return {all: true, keys, holds: [], workflows: [], more_workflows: true};
}

function remember(changed) {
  if (pending === null) {
    pending = changed;
    const soon = document.hidden ? (f) => setTimeout(f, 200) : requestAnimationFrame;
    soon(() => {
      const told = pending;
      pending = null;
      current?.page?.update?.(told);
    });
    return;
  }
  pending = {
    all: pending.all || changed.all,
    keys: new Set([...pending.keys, ...changed.keys]),
    holds: [...pending.holds, ...changed.holds],
    workflows: [...pending.workflows, ...changed.workflows],
    more_workflows: pending.more_workflows || changed.more_workflows,
  };
}

// --- Start ---

put(document.getElementById("nav"), pages.map(({name, label}) =>
  h("a", {href: `#/${name}`, data: {name}}, label)));
start_theme(document.getElementById("theme"));
start_clock(() => state.now());
start_keys(pages, navigate);
state.subscribe(remember);
addEventListener("denied", log_in);
follow(({event, data}) => {
  if (event === "denied") {
    log_in();
    return;
  }
  const first = !state.loaded;
  live.heard(event, data);
  state.apply(event, data);
  if (first && state.loaded) tick_now();
});
addEventListener("hashchange", go);
go();
