// Questions to the code of a run, and where it stands as far as its history tells.
import {rpc} from "../api.js";
import {each_second} from "../clock.js";
import {h, put, reconcile, set_text} from "../dom.js";
import {json_problem, payload_blocks, payloads_of_json} from "../payload.js";
import {open_lines} from "../run_open.js";

const trace_query = "__stack_trace";  // what Temporal's SDKs answer by themselves

export class QueriesTab {
  #model;
  #waiting = h("ul", {class: "waiting-list"});
  #nothing = h("p", {class: "dim"});
  #name = h("input", {type: "text", id: "query-name", list: "known-queries", autocomplete: "off", spellcheck: "false", required: true});
  #input = h("textarea", {id: "query-input", rows: "2", autocomplete: "off", spellcheck: "false", "aria-describedby": "query-hint"});
  #known = h("datalist", {id: "known-queries"});
  #answer = h("div", {class: "answer", role: "status"});
  #asking = null;

  constructor(model) {
    this.#model = model;
    const form = h("form", {class: "query-form", novalidate: true, onsubmit: (event) => {
      event.preventDefault();
      this.#ask(this.#name.value.trim(), this.#input.value);
    }}, h("div", {class: "field"}, h("label", {for: "query-name"}, "Query"), this.#name, this.#known),
    h("div", {class: "field"}, h("label", {for: "query-input"}, "Input"), this.#input,
      h("p", {class: "hint", id: "query-hint"}, "JSON; nothing for none. Several values: one in each line.")),
    h("div", {class: "filter-row"}, h("button", {type: "submit", class: "primary"}, "Ask"),
      h("button", {type: "button", onclick: () => this.#ask_for_trace()}, "Stack trace, or what can be asked")));
    this.element = h("div", {class: "queries"}, h("section", {}, h("h2", {}, "Waiting at"), this.#waiting, this.#nothing),
      h("section", {}, h("h2", {}, "Ask"), h("p", {class: "dim"}, "A worker that knows the workflow answers; nothing of it is written to the history."),
        form, this.#answer));
    each_second(this.#waiting, (now) => this.#tick(now));
  }

  close() {
    this.#asking?.abort();
  }

  update() {
    this.#tick(this.#model.context.state.now());
  }

  #tick(now) {
    const lines = open_lines(this.#model, now);
    reconcile(this.#waiting, lines, (line) => line.key, (line) => h("li", {}, h("span", {class: "badge"}, line.what), h("span", {class: "ticks"})),
      (item, line) => set_text(item.children[1], line.text));
    set_text(this.#nothing, lines.length > 0 ? "" : this.#model.feed.is_open() ?
      "Nothing that its history tells: a signal, or a condition of its code." : "The run has closed.");
  }

  async #ask_for_trace() {
    const message = await this.#ask(trace_query, "");
    const known = /it has: (.*?)\.?$/.exec(message ?? "")?.[1];
    if (known === undefined) return;
    const names = known === "none" ? [] : known.split(", ");
    put(this.#known, names.map((value) => h("option", {value})));
    put(this.#answer, h("p", {}, names.length === 0 ? "Its code answers no query, and its SDK tells no stack." :
      ["Its SDK tells no stack. It can be asked: ", names.map((name, i) => [i > 0 && ", ", h("button", {type: "button", class: "link", onclick: () => {
        this.#name.value = name;
        this.#ask(name, this.#input.value);
      }}, name)])]));
  }

  // Returns the refusal's message, if it was refused.
  async #ask(name, input) {
    const wrong = name === "" ? "A query has a name." : json_problem(input);
    if (wrong) {
      put(this.#answer, h("p", {class: "problem"}, wrong));
      return undefined;
    }
    this.#asking?.abort();
    const {signal} = this.#asking = new AbortController();
    put(this.#answer, h("p", {class: "dim"}, `Asking ${name}…`));
    try {
      const answer = await rpc("QueryWorkflow", {execution: this.#model.feed.execution,
        query: {queryType: name, queryArgs: payloads_of_json(input)}}, {signal, wait: 60_000});
      put(this.#answer, h("h3", {}, name), answer.queryResult ? payload_blocks(answer.queryResult, `Answer of ${name}`) : h("p", {class: "dim"}, "It answered nothing."));
      return undefined;
    } catch (error) {
      if (!signal.aborted) put(this.#answer, h("p", {class: "problem"}, `${error.message}.`));
      return error.message;
    }
  }
}
