// The runs of workflows, of permits too: found by a filter, in the order of the reader, live.
import {copy_button, h, put, sentence, set_text} from "../dom.js";
import {RunList} from "../run_list.js";
import {list_command, list_query, permit_command, read_filter} from "../run_query.js";
import {Waits} from "../waits.js";
import {bulk_verbs, end_many, open_runs} from "./bulk.js";
import {RunFilterBar} from "./run_filter_bar.js";
import {RunTable} from "./run_table.js";
import {views_button} from "./saved_views.js";

export const title = "Workflows";

export function open(root, context) {
  const {state} = context;
  const waits = new Waits(state, () => table.standings_changed());
  const bar = new RunFilterBar(context, () => load());
  const list = new RunList(() => show());
  const table = new RunTable(context, waits, () => {
    context.set_query({sort: table.sort});
    show_summary();
  });
  const summary = h("p", {class: "list-summary"});
  const news = h("button", {type: "button", class: "news", hidden: true, onclick: take_news});
  const actions = h("div", {class: "list-actions"});
  const command = h("div", {class: "command"});
  const more = h("button", {type: "button", onclick: () => list.load_more()}, "Load more");
  const nothing = h("div");
  const foot = h("div", {class: "list-foot"}, more);
  put(context.tools, bar.id_input, views_button(context));
  bar.element.append(command);
  put(root, bar.element, h("div", {class: "list-head"}, summary, news, actions), table.element, foot, nothing);
  table.sort = context.query.get("sort") ?? "";
  let asked;  // the runs that the summary and the buttons were made for

  function load() {
    table.clear_choice();
    list.load(list_query(read_filter(context.query), state.now()));
    show_command();
  }

  function take_news() {
    if (list.more_news) load();
    else list.take_news();
    table.scroll_to_start();
    table.element.focus({preventScroll: true});
  }

  function show_command() {
    const text = list_command(list.query);
    put(command, h("code", {"aria-label": "The same on the command line"}, text), copy_button(text, "the command"));
  }

  function show() {
    const {error, runs} = list;
    const about_filter = error && /^FILTER_|QUERY_TOO_EXPENSIVE/.test(error.reason);
    bar.complain(about_filter ? sentence(error.message) : "");
    table.show(runs);
    table.element.hidden = runs.length === 0;
    put(bar.types, options_of(runs, "type"));
    put(bar.queues, options_of(runs, "queue"));
    more.hidden = !list.token;
    more.disabled = list.loading;
    const began = list.news.length;
    news.hidden = began === 0 && !list.more_news;
    set_text(news, list.more_news ? "There is more: load it anew" : `${began} new`);
    show_nothing(about_filter);
    show_summary();
  }

  function show_nothing(about_filter) {
    const {error, runs, loading} = list;
    if (error && !about_filter) {
      put(nothing, h("div", {class: "empty"}, h("p", {}, sentence(error.message)),
        h("button", {type: "button", onclick: load}, "Try again")));
    } else if (runs.length > 0 || about_filter) put(nothing);
    else if (loading) put(nothing, h("p", {class: "dim"}, "Asking the server…"));
    else put(nothing, list.query ? no_match() : no_runs());
  }

  function show_summary() {
    const {runs, total, loading, query} = list;
    const count = (number) => number.toLocaleString("en");
    const key = [runs.length, total, loading, query, table.sort, table.chosen.size].join();
    if (key === asked) return;
    asked = key;
    const words = total === undefined ? `${count(runs.length)} runs loaded` :
      `${count(total)} ${total === 1 ? "run" : "runs"}${query ? (total === 1 ? " matches" : " match") : ""}` +
      `${runs.length < total ? `, ${count(runs.length)} loaded` : ""}`;
    const order = table.sort ? (list.token ? "only what is loaded is sorted" : "") : "newest first";
    put(summary, h("b", {}, loading && runs.length === 0 ? "" : words), order && h("span", {class: "dim"}, order));
    put(actions, table.chosen.size > 0 ? chosen_buttons() : runs.length > 0 && all_buttons());
  }

  // --- Ending many ---

  function chosen_buttons() {
    const chosen = () => list.runs.filter((run) => table.chosen.has(run.run));
    const open = chosen().filter((run) => run.status === "Running");
    return [h("span", {class: "dim"}, `${table.chosen.size} chosen${open.length < table.chosen.size ? `, ${open.length} open` : ""}`),
      bulk_verbs.map((verb) => h("button", {type: "button", disabled: open.length === 0, onclick: async () => {
        if (await end_many(context, verb, open, {typed: false})) table.clear_choice();
        show_summary();
      }}, `${verb.title} chosen…`)),
      h("button", {type: "button", class: "quiet", onclick: () => {
        table.clear_choice();
        show_summary();
        table.element.focus({preventScroll: true});
      }}, "Choose none")];
  }

  function all_buttons() {
    return bulk_verbs.map((verb) => h("button", {type: "button", class: "quiet", onclick: async ({target}) => {
      target.disabled = true;
      try {
        const runs = await open_runs(list.query);
        target.disabled = false;
        target.focus({preventScroll: true});
        if (runs.length === 0) context.notify("No open run matches.");
        else await end_many(context, verb, runs, {typed: true});
      } catch (error) {
        context.notify(sentence(error.message));
      } finally {
        target.disabled = false;
      }
    }}, `${verb.title} all that match…`));
  }

  load();
  return {
    update(changed) {
      if (changed.all || changed.keys.has("lines")) {
        waits.update();
        table.standings_changed();
      }
      list.update(changed);
    },
    navigated() {
      bar.show();
      table.sort = context.query.get("sort") ?? "";
      load();
    },
    close() {
      list.close();
      waits.close();
    },
  };
}

function options_of(runs, name) {
  return [...new Set(runs.map((run) => run[name]))].slice(0, 50).map((value) => h("option", {value}));
}

function no_match() {
  return h("div", {class: "empty"}, h("h2", {}, "No run matches"),
    h("p", {}, "Closed runs are kept for a time, 72 hours if the server was not told otherwise. A shorter filter finds more."));
}

function no_runs() {
  const text = permit_command(["workflow", "start", "train-1", "--type", "Train", "--task-queue", "training"]);
  return h("div", {class: "empty"}, h("h2", {}, "Nothing has run yet"),
    h("p", {}, "Workflows are code of yours that a worker runs. Each hold of a permit is a run as well. Start one:"),
    h("p", {class: "command"}, h("code", {}, text), copy_button(text, "the command")));
}
