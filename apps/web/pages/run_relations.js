// Whose run this is and which runs are its own: parent, children, permits, the runs before and after.
import {rpc} from "../api.js";
import {duration_text, h, put, run_link, table, time_element} from "../dom.js";
import {value_text} from "../run_query.js";
import {outcome_chip, run_of, status_element, took} from "../runs.js";
import {span_row} from "./run_timeline.js";

const others_shown = 20;
const children_shown = 500;

export class RelationsTab {
  element = h("div", {class: "relations"});
  #model;
  #family = h("section", {}, h("h2", {}, "Above"));
  #children = table("Children and permits", ["What", "Name", "State", "Began", {text: "Took", class: "right"}, "More"]);
  #none = h("p", {class: "dim"});
  #others = table("Runs of this id", ["Status", "Outcome", "Run", "Started", {text: "Took", class: "right"}]);
  #asked = "";
  #shown = "";

  constructor(model) {
    this.#model = model;
    put(this.element, this.#family, h("section", {}, h("h2", {}, "Children and permits"), this.#children.element, this.#none),
      h("section", {}, h("h2", {}, "Runs of this id"), this.#others.element));
  }

  update() {
    const {feed, context} = this.#model;
    const {run, fold, description} = feed;
    this.#ask_others(`${run.status} ${feed.newer}`);
    const state = JSON.stringify([fold.spans.map((span) => [span.key, span.state, span.to, span.run])]);
    if (state === this.#shown) return;
    this.#shown = state;
    const now = context.state.now();
    const {parentExecution, rootExecution} = description.workflowExecutionInfo;
    const link = ({workflowId, runId}, what) => h("li", {}, h("span", {class: "badge"}, what), " ",
      h("a", {class: "mono", href: run_link(workflowId, runId)}, workflowId));
    const far = rootExecution && rootExecution.runId !== run.run && rootExecution.runId !== parentExecution?.runId;
    put(this.#family, h("h2", {}, "Above"), parentExecution || far ? h("ul", {class: "other-runs"},
      far && link(rootExecution, "root"), parentExecution && link(parentExecution, "parent")) :
      h("p", {class: "dim"}, "Nobody started it but a client: it has no parent."));
    const spans = fold.spans.filter((span) => span.run || (span.kind === "wait" && span.to === undefined));
    const shown = spans.slice(-children_shown);
    put(this.#children.body, shown.map((span) => span_row(span, now, feed)));
    this.#children.element.hidden = shown.length === 0;
    put(this.#none, shown.length === 0 ? "It has started no child, and held no permit." : spans.length > shown.length ? `The last ${shown.length} of ${spans.length}.` : "");
  }

  async #ask_others(key) {
    if (this.#asked === key) return;
    this.#asked = key;
    const {run} = this.#model.feed;
    try {
      const page = await rpc("ListWorkflowExecutions", {query: `WorkflowId = ${value_text(run.id)}`, pageSize: others_shown});
      const now = this.#model.context.state.now();
      put(this.#others.body, (page.executions ?? []).map(run_of).map((other) => h("tr", {}, h("td", {}, status_element(other.status)),
        h("td", {}, outcome_chip(other)), h("td", {}, other.run === run.run ? [h("span", {class: "mono"}, other.run), " (this one)"] :
          h("a", {class: "mono", href: run_link(other.id, other.run)}, other.run)), h("td", {class: "nowrap"}, time_element(other.started_at, now)),
        h("td", {class: "right"}, other.close ? duration_text(took(other, now)) : "-"))));
    } catch (error) {
      put(this.#others.body, h("tr", {}, h("td", {colspan: "5", class: "problem"}, `${error.message}.`)));
    }
  }
}
