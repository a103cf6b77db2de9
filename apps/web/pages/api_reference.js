// The reference of the HTTP API, made of the server's own /openapi.json. There are many calls, so
// groups, calls and bodies are made when they are opened.
import {url_of} from "../api.js";
import {copy_button, h, put, set_text} from "../dom.js";
import {example_of, lazy_details, resolved, schema_element, type_text} from "./api_schema.js";

const groups = {
  permits: "Pools, permits and lines",
  workflows: "Workflows, activities and task queues",
  server: "The server, its events and this page",
  RPC: "The same and more, for workers and clients: each a POST of a message",
};
const methods = ["get", "post", "put", "delete", "head"];

// What is sent in the examples of the calls that people try first.
const bodies = {
  post_pools_pool_acquire: {requestId: "nightly-17", holder: "nightly backup", lease: "90s"},
  put_pools_pool: {capacity: 4, reason: "new host"},
  post_pools_pool_drain: {slot: "0", reason: "replacing the fan"},
  post_pools_pool_undrain: {slot: "0"},
  post_permits_id_renew: {token: "TOKEN"},
  post_permits_id_release: {token: "TOKEN"},
  post_permits_id_force_release: {fence: 7, reason: "the rack loses power"},
  post_workflows_workflow_id: {workflowType: {name: "Train"}, taskQueue: {name: "training"}},
  post_workflows_workflow_id_terminate: {reason: "a mistake"},
  post_workflows_workflow_id_cancel: {reason: "not needed any more"},
};

export class ApiReference {
  #document = null;
  #calls = [];
  #filter;
  #count = h("span", {class: "dim"});
  #groups = h("div", {class: "api-groups"}, h("p", {class: "dim"}, "Reading /openapi.json…"));

  constructor(filtered) {
    this.#filter = h("input", {type: "search", class: "filter", "data-filter": true, placeholder: "Filter: path, method, words",
      "aria-label": "Filter the calls of the API", autocomplete: "off", spellcheck: "false", oninput: () => {
        filtered(this.#filter.value.trim());
        this.#show();
      }});
    this.element = h("div", {}, h("div", {class: "api-tools"}, this.#filter, this.#count), this.#groups);
  }

  async load(signal) {
    try {
      const response = await fetch(url_of("openapi.json"), {signal});
      if (!response.ok) throw new Error(`the server answered ${response.status}`);
      this.#document = await response.json();
      this.#calls = calls_of(this.#document);
      this.#show();
    } catch (error) {
      if (signal.aborted) return;
      put(this.#groups, h("p", {class: "dim nothing"}, `The server does not describe its API: ${error.message}. It is told in `,
        h("code", {}, "docs/http.md"), "."));
    }
  }

  set filter(text) {
    if (text === this.#filter.value) return;
    this.#filter.value = text;
    this.#show();
  }

  // Calls that have all of the words, in their groups.
  #show() {
    if (!this.#document) return;
    const words = this.#filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = this.#calls.filter(({text}) => words.every((word) => text.includes(word)));
    set_text(this.#count, words.length > 0 ? `${found.length} of ${this.#calls.length} calls` : `${this.#calls.length} calls`);
    const tags = [...new Set([...Object.keys(groups), ...this.#calls.map(({tag}) => tag)])];
    put(this.#groups, found.length === 0 && h("p", {class: "dim nothing"}, `No call is like “${this.#filter.value.trim()}”.`),
      tags.map((tag) => this.#group(tag, found.filter((call) => call.tag === tag), words.length > 0 && found.length <= 40)));
  }

  #group(tag, calls, open) {
    if (calls.length === 0) return null;
    const title = [h("b", {}, tag), h("span", {class: "dim"}, ` ${groups[tag] ?? ""}`), h("span", {class: "badge"}, String(calls.length))];
    return lazy_details(title, () => h("div", {class: "calls"}, calls.map((call) => this.#call(call))),
      {class: "api-group", open: open || (tag === "permits" && this.#filter.value === "")});
  }

  #call(call) {
    return lazy_details([h("span", {class: "method"}, call.method),
      h("span", {}, h("code", {}, call.path), " ", h("span", {class: "dim"}, call.operation.summary))],
      () => this.#describe(call), {class: "call"});
  }

  #describe({method, path, operation}) {
    const document = this.#document;
    const parameters = operation.parameters ?? [];
    const body = operation.requestBody?.content?.["application/json"]?.schema;
    const command = curl_of(method, path, operation, document);
    return h("div", {class: "call-body"},
      h("p", {class: "command"}, h("code", {}, command), copy_button(command, "the example")),
      parameters.length > 0 && [h("h3", {}, "Parameters"), h("ul", {class: "schema"}, parameters.map((parameter) => h("li", {},
        h("code", {}, parameter.name), h("span", {class: "dim"}, ` in the ${parameter.in}, ${type_text(parameter.schema, document)}`,
          parameter.description && `: ${parameter.description}`))))],
      body && [h("h3", {}, `Body: ${type_text(body, document)}`), schema_element(body, document)],
      h("h3", {}, "Answers"), h("ul", {class: "schema"}, Object.entries(operation.responses ?? {}).map(([status, response]) =>
        this.#answer(status, resolved(response, document).schema))));
  }

  #answer(status, response) {
    const [[type, content] = []] = Object.entries(response.content ?? {});
    const line = [h("b", {}, status === "default" ? "any other" : status), ` ${response.description ?? ""}`,
      type && h("span", {class: "dim"}, ` ${type === "application/json" ? type_text(content.schema, this.#document) : type}`)];
    if (!content?.schema || Object.keys(content.schema).length === 0) return h("li", {}, line);
    return h("li", {}, lazy_details(line, () => schema_element(content.schema, this.#document)));
  }
}

function calls_of(document) {
  const calls = [];
  for (const [path, item] of Object.entries(document.paths ?? {})) {
    for (const method of methods) {
      const operation = item[method];
      if (!operation) continue;
      const tag = operation.tags?.[0] ?? "other";
      calls.push({method: method.toUpperCase(), path, operation, tag,
        text: [method, path, operation.summary, tag].join(" ").toLowerCase()});
    }
  }
  return calls;
}

// The call as it is typed. What stands in capitals is to be filled in.
function curl_of(method, path, operation, document) {
  const filled = path.replace("{namespace}", "default").replace(/\{(\w+)\}/g, (all, name) => name.toUpperCase());
  const query = (operation.parameters ?? []).filter((one) => one.in === "query" && one.required)
    .map(({name}) => `${name}=${name.toUpperCase()}`).join("&");
  const schema = operation.requestBody?.content?.["application/json"]?.schema;
  const streams = Boolean(operation.responses?.["200"]?.content?.["text/event-stream"]);
  return ["curl", streams ? "-sN" : method === "HEAD" ? "-sI" : "-s", !["GET", "HEAD"].includes(method) && !(method === "POST" && schema) && `-X ${method}`,
    quoted(location.origin + filled + (query ? `?${query}` : "")), schema && "-H 'Content-Type: application/json'",
    schema && `-d ${quoted(JSON.stringify(bodies[operation.operationId] ?? example_of(schema, document)))}`].filter(Boolean).join(" ");
}

// For a shell.
function quoted(text) {
  return `'${text.replace(/'/g, "'\\''")}'`;
}
