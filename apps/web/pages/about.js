// What runs here and how it is set; who you are; the words, the keys, and the reference of the API.
import {identity_key} from "../actions.js";
import {api, namespace_path} from "../api.js";
import {each_second} from "../clock.js";
import {duration_text, h, put, set_attribute, set_text, table, time_element, time_of} from "../dom.js";
import {facts} from "../holds.js";
import {keys_table} from "../keys.js";
import {log_out} from "../login.js";
import {bytes_text} from "../numbers.js";
import {keep, kept} from "../theme.js";
import {while_visible} from "../visible.js";
import {documents_element, promises_element, words_element} from "./about_words.js";
import {ApiReference} from "./api_reference.js";

export const title = "About";

const ask_every = 10_000;
const namespace = namespace_path.split("/").pop();

export function open(root, context) {
  const {query} = context;
  const abort = new AbortController();
  const server = new ServerFacts(context);
  const reference = new ApiReference((text) => context.set_query({q: text}));
  const sections = [
    ["server", "This server", server.element],
    ["you", "You", you_element(context)],
    ["settings", "Configuration in force", server.settings],
    ["words", "Words", words_element()],
    ["promises", "What Permit promises", promises_element()],
    ["keys", "Keys", h("div", {class: "card"}, keys_table())],
    ["documents", "Documentation", documents_element()],
    ["api", "HTTP API", reference.element],
  ];
  const links = h("nav", {class: "contents", "aria-label": "On this page"}, sections.map(([name, label]) =>
    h("a", {href: `#/about?section=${name}`}, label)));
  put(root, links, sections.map(([name, label, content]) => h("section", {class: "about", "aria-labelledby": `about-${name}`},
    h("h2", {id: `about-${name}`, tabindex: "-1"}, label), content)));

  function go_to_section() {
    const name = context.query.get("section");
    const heading = sections.some(([known]) => known === name) && document.getElementById(`about-${name}`);
    for (const link of links.children) set_attribute(link, "aria-current", link.hash.endsWith(`=${name}`) ? "true" : null);
    if (!heading) return;
    heading.scrollIntoView({block: "start"});
    heading.focus({preventScroll: true});
  }

  reference.filter = query.get("q") ?? "";
  const loaded = reference.load(abort.signal);
  const stop = while_visible(ask_every, (signal) => server.ask(signal));
  if (query.get("section")) Promise.all([loaded, server.asked]).then(() => !abort.signal.aborted && go_to_section());
  return {
    update: () => server.update(),
    navigated() {
      reference.filter = context.query.get("q") ?? "";
      go_to_section();
    },
    close() {
      abort.abort();
      stop();
    },
  };
}

// The name that goes on record with what one does here, and the look.
function you_element(context) {
  const name = h("input", {id: "identity", type: "text", maxlength: "200", autocomplete: "off", spellcheck: "false",
    "aria-describedby": "identity-hint", onchange: () => {
      const identity = name.value.trim() || "page";
      name.value = identity;
      keep(identity_key, identity);
      context.notify(`You go on record as ${identity}.`);
    }});
  name.value = kept(identity_key, "page");
  const theme = document.getElementById("theme");
  const choices = [...theme.options].map(({value, text}) => {
    const input = h("input", {type: "radio", name: "about-theme", value, onchange: () => {
      theme.value = value;
      theme.dispatchEvent(new Event("change"));
    }});
    return h("label", {}, input, h("span", {}, text));
  });
  const element = h("div", {class: "card you"}, h("div", {class: "field"}, h("label", {for: "identity"}, "Your name"), name,
    h("p", {class: "hint", id: "identity-hint"}, "Goes on record with what you do here, and is remembered in this browser. It is not a login.")),
  h("div", {class: "field"}, h("span", {class: "label", id: "theme-label"}, "Theme"),
    h("fieldset", {class: "choice", "aria-labelledby": "theme-label"}, choices)));
  return each_second(element, () => {  // the theme is also set in the frame, and in other tabs
    for (const input of element.querySelectorAll("[type=radio]")) input.checked = input.value === theme.value;
  });
}

// What the server says of itself.
class ServerFacts {
  element = h("div", {}, h("p", {class: "dim"}, "Asking the server…"));
  settings = h("div", {}, h("p", {class: "dim"}, "Asking the server…"));
  #context;
  #shown = "";
  #uptime = h("span", {class: "ticks"});
  #version = h("span");
  #problem = h("p", {class: "notice bad", hidden: true});
  #done;
  asked = new Promise((resolve) => (this.#done = resolve));

  constructor(context) {
    this.#context = context;
  }

  // After the stream has told something: whose page this is.
  update() {
    set_text(this.#version, this.#context.state.page_version || "?");
  }

  async ask(signal) {
    let goes_on = true;
    try {
      const status = await this.#status(signal);
      if (signal.aborted) return false;
      this.#problem.hidden = true;
      this.#show(status);
    } catch (error) {
      if (signal.aborted) return false;
      if (error.status === 404) {
        goes_on = false;
        put(this.element, h("p", {class: "dim nothing"}, "This server does not tell about itself here. Its version is ", this.#version, "."));
        put(this.settings, not_told("settings"));
      } else {
        set_text(this.#problem, `! ${error.message.charAt(0).toUpperCase()}${error.message.slice(1)}. What is shown may be old.`);
        this.#problem.hidden = false;
        if (this.#shown === "") put(this.element, this.#problem);
      }
    }
    this.#done();
    return goes_on;
  }

  // Servers of before tell less, and only by the call that `permit doctor` makes.
  async #status(signal) {
    try {
      return await api.get("api/v1/server", {signal});
    } catch (error) {
      if (error.status !== 404) throw error;
      return api.post("permit.api.v1.PermitService/GetServerStatus", {namespace});
    }
  }

  #show(status) {
    const {now, ...rest} = status;
    const shown = JSON.stringify(rest);
    if (shown === this.#shown) return;
    this.#shown = shown;
    const {state} = this.#context;
    const started = time_of(status.startTime);
    const warnings = status.warnings ?? [];
    put(this.element, this.#problem, warnings.map((text) => h("p", {class: "notice"}, h("b", {}, "! warning"), text)), facts([
      ["Server", [`permit ${status.version ?? "?"}`, status.revision && ` (${status.revision})`, status.ready ? ", ready" : ", not ready"]],
      ["This page", ["of permit ", this.#version]],
      status.compiler && ["Compiler", status.compiler],
      started && ["Up", [this.#uptime, " since ", time_element(status.startTime, state.now())]],
      status.host && ["Runs on", `${status.host}${status.pid ? `, pid ${status.pid}` : ""}`],
      ["Store", [status.store === "memory" ? "in memory: gone when the server ends" : h("span", {class: "mono"}, status.store ?? "?"),
        status.storeBytes !== undefined && `, ${bytes_text(Number(status.storeBytes))}`]],
      ["Now", `${status.held ?? 0} held, ${status.waiting ?? 0} waiting`],
      status.key && ["Your key", [`${status.key}, role ${status.role} `, h("button", {type: "button", onclick: log_out}, "Log out")]],
      status.instance && ["Instance", h("span", {class: "mono"}, status.instance)],
    ]));
    if (started) each_second(this.#uptime, (time) => set_text(this.#uptime, duration_text(Math.max(0, time - started))));
    put(this.settings, settings_element(status.settings), limits_element(status.limits));
  }
}

function not_told(what) {
  return h("p", {class: "dim nothing"}, `This server does not tell its ${what}.`);
}

function settings_element(settings) {
  if (!settings) return not_told("settings");
  const {element, body} = table("Settings", ["Setting", "Value", "From"]);
  put(body, settings.map(({name, value, origin, secret}) => h("tr", {}, h("th", {scope: "row", class: "mono nowrap"}, name),
    h("td", {class: "mono"}, secret ? h("span", {class: "dim"}, value ? "(set, not shown)" : "(not set)") : value || h("span", {class: "dim"}, "–")),
    h("td", {class: origin && origin !== "default" ? "" : "dim"}, origin || "default"))));
  return element;
}

function limits_element(limits) {
  if (!limits?.length) return null;
  const {element, body} = table("Limits", ["Limit", "Value"]);
  put(body, limits.map(({name, value}) => h("tr", {}, h("th", {scope: "row", class: "mono nowrap"}, name),
    h("td", {}, /bytes$/i.test(name) && Number(value) >= 1000 ? `${bytes_text(Number(value))} (${value})` : String(value ?? "–")))));
  return [h("h3", {}, "Limits"), element];
}
