// Ends many runs: shows how many before, how far it has come meanwhile, and which were refused.
import {ask_on_record} from "../actions.js";
import {rpc} from "../api.js";
import {h, put, run_link, set_text} from "../dom.js";
import {end_run, verbs} from "../run_actions.js";
import {run_of} from "../runs.js";

const at_once = 4;          // a browser opens six connections to one origin
const found_max = 100_000;  // as the command line
const named_max = 8;

// Every open run that the list query finds.
export async function open_runs(query) {
  const asked = {query: [query, "ExecutionStatus = 'Running'"].filter(Boolean).join(" AND "), pageSize: 1000};
  const runs = [];
  let token;
  do {
    const page = await rpc("ListWorkflowExecutions", {...asked, nextPageToken: token});
    runs.push(...(page.executions ?? []).map(run_of));
    token = page.nextPageToken;
  } while (token && runs.length < found_max);
  return runs;
}

function named(runs) {
  const more = runs.length - named_max;
  return h("ul", {class: "named"}, runs.slice(0, named_max).map((run) => h("li", {class: "mono"}, run.id)),
    more > 0 && h("li", {class: "dim"}, `and ${more} more`));
}

function refused_list(refused) {
  return [h("p", {}, "The server refused these:"), h("ul", {class: "named refused"}, refused.map(({run, error}) =>
    h("li", {}, h("a", {class: "mono", href: run_link(run.id, run.run)}, run.id), ` ${error.message}`)))];
}

// verb: of `verbs`. typed: the count has to be typed, since the reader has not seen them all.
export function end_many(context, verb, runs, {typed}) {
  const total = runs.length;
  const count = total === 1 ? "1 run" : `${total.toLocaleString("en")} runs`;
  const bar = h("progress", {max: total, value: 0, "aria-label": "How many are done"});
  const words = h("p", {role: "status"});
  const progress = h("div", {class: "progress-box", hidden: true}, bar, words);
  const content = h("div", {class: "dialog-content"}, named(runs),
    h("p", {class: verb.danger ? "caution" : null}, `Each workflow ${verb.what}`));
  let left = runs;
  let done = 0;
  let gone = 0;

  // Until all are done, or the dialog was closed, or the server is away.
  async function end_left(record) {
    const queue = [...left];
    const refused = [];
    let away = null;
    const work = async () => {
      while (queue.length > 0 && content.isConnected && !away) {
        const run = queue.shift();
        try {
          await end_run(verb, run, record);
          done++;
        } catch (error) {
          if (error.status === 404) gone++;  // it has closed by itself meanwhile
          else if (error.status === 0) away = error;
          else refused.push({run, error});
          if (away) queue.push(run);
        }
        bar.value = done + gone;
        set_text(words, result_text(refused.length));
      }
    };
    progress.hidden = false;
    await Promise.all(Array.from({length: at_once}, work));
    left = [...queue, ...refused.map(({run}) => run)];
    return {refused, away};
  }

  function result_text(refused) {
    return `${done} of ${count} ${verb.done}${gone > 0 ? `, ${gone} had closed already` : ""}` +
      `${refused > 0 ? `, ${refused} refused` : ""}`;
  }

  return ask_on_record({
    title: `${verb.title} ${count}?`, submit: verb.title, cancel: "Do not", danger: verb.danger,
    content: () => [content, progress],
    fields: typed && total > 1 ? [{name: "count", label: `Type ${total} to ${verb.title.toLowerCase()} them all`,
      check: (value) => (value.replaceAll(/[,. ]/g, "") === String(total) ? "" : `Type ${total}, or do not.`)}] : [],
    act: async (values, record) => {
      const {refused, away} = await end_left(record);
      if (!content.isConnected) {
        context.notify(`Stopped: ${result_text(refused.length)}.`);
        return {done, gone, refused: refused.length};
      }
      if (away) throw away;
      if (refused.length > 0) {
        put(content, refused_list(refused));
        throw new Error(`${refused.length} of ${count} refused; try those again, or leave it`);
      }
      context.notify(`${result_text(0)}.`);
      return {done, gone, refused: 0};
    },
  });
}

export const bulk_verbs = [verbs.cancel, verbs.terminate];
