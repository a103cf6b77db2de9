// Builds the page's elements. Whatever a user can name reaches the page through here, as text
// nodes and attributes: nothing is ever parsed as HTML.

const svg_names = new Set(["svg", "g", "rect", "line", "path", "circle", "polyline", "text",
  "title", "defs", "pattern", "clipPath", "use"]);
const svg_space = "http://www.w3.org/2000/svg";

// h("p", {class: "dim", onclick: f}, "text", child, [more]): an element. A property that is a
// function and begins with "on" is a listener; `data` and `style` are objects (style: custom
// properties and the like, set through the CSSOM as the content security policy asks); null,
// undefined and false are left out, true is an attribute without a value.
export function h(tag, properties, ...children) {
  return fill(document.createElement(tag), properties, children);
}

// The same for SVG.
export function s(tag, properties, ...children) {
  if (!svg_names.has(tag)) throw new Error(`not an SVG element: ${tag}`);
  return fill(document.createElementNS(svg_space, tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on") && typeof value === "function") {
      element.addEventListener(name.slice(2), value);
    } else if (name === "data") {
      Object.assign(element.dataset, value);
    } else if (name === "style") {
      for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  put(element, children);
  return element;
}

// Replaces an element's children.
export function put(element, ...children) {
  const nodes = children.flat(Infinity).filter((child) => child !== null && child !== undefined &&
    child !== false && child !== "");
  element.replaceChildren(...nodes.map((node) => (node instanceof Node ? node : String(node))));
  return element;
}

// Sets text or an attribute only if it differs, so that nothing is laid out for nothing.
export function set_text(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
export function set_attribute(element, name, value) {
  if (value === null || value === undefined || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
  } else if (element.getAttribute(name) !== String(value)) {
    element.setAttribute(name, String(value));
  }
}

// Makes the children of `parent` those of `items`, in order, each known by its key. `create(item)`
// makes an element; `update(element, item)`, if given, is called for old and new ones. An element
// that stays keeps its identity, and so its focus.
export function reconcile(parent, items, key_of, create, update) {
  const known = parent.by_key ??= new Map();
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  const wanted = new Set(items.map(key_of));
  for (const [key, element] of known) {
    if (wanted.has(key)) continue;
    element.remove();
    known.delete(key);
  }
  let next = parent.firstElementChild;
  for (const item of items) {
    const key = key_of(item);
    let element = known.get(key);
    if (!element) known.set(key, element = create(item));
    if (update) update(element, item);
    if (element === next) next = next.nextElementSibling;
    else parent.insertBefore(element, next);
  }
  if (focused?.isConnected && document.activeElement !== focused) {
    focused.focus({preventScroll: true});
  }
}

// --- Times, in the words of the command line ---

// "2m 31s", "1h 05m", "3d 02h": cut, never rounded up. `milliseconds` may be negative.
export function duration_text(milliseconds) {
  if (milliseconds < 0) return "-" + duration_text(-milliseconds);
  if (milliseconds < 1000) return `${Math.trunc(milliseconds)}ms`;
  const seconds = Math.trunc(milliseconds / 1000);
  const two = (number) => String(number).padStart(2, "0");
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.trunc(seconds / 60)}m ${two(seconds % 60)}s`;
  const minutes = Math.trunc(seconds / 60);
  if (minutes < 24 * 60) return `${Math.trunc(minutes / 60)}h ${two(minutes % 60)}m`;
  const hours = Math.trunc(minutes / 60);
  return `${Math.trunc(hours / 24)}d ${two(hours % 24)}h`;
}

// The same for what ticks: under a second it is "0s", so that no number races.
export function ticking_text(milliseconds) {
  return Math.abs(milliseconds) < 1000 ? "0s" : duration_text(milliseconds);
}

// A duration as the API writes it ("90s", "0.5s") in milliseconds.
export function duration_of(text) {
  return text ? Number.parseFloat(text) * 1000 : 0;
}

// A time as the API writes it, in milliseconds since 1970; undefined if there is none.
export function time_of(text) {
  return text ? Date.parse(text) : undefined;
}

const clock_format = new Intl.DateTimeFormat(undefined,
  {hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23"});
const day_format = new Intl.DateTimeFormat(undefined, {month: "short", day: "numeric"});

// "14:03:27", or with the day in front if that is not the day of `now`. In the reader's zone.
export function clock_text(text, now) {
  const date = new Date(text);
  const same_day = date.toDateString() === new Date(now).toDateString();
  return (same_day ? "" : day_format.format(date) + " ") + clock_format.format(date);
}

// A <time> that shows clock_text() and has the whole time as its title.
export function time_element(text, now) {
  return h("time", {datetime: text, title: text}, clock_text(text, now));
}

// --- Names ---

// What the server or the code says, as a sentence.
export function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
}

// The last 8 characters of a run's id: the first ones are the time.
export function short_id(id) {
  return id.slice(-8);
}

// How something stands or ended: word, glyph, and a class for colour and pattern.
const glyphs = {
  held: "●", released: "✓", lease_expired: "!", holder_closed: "■", force_released: "✕",
  waiting: "…", free: "○", drained: "–", draining: "–", leaving: "–", backing_off: "…",
};
export function glyph_of(outcome) {
  return glyphs[outcome] ?? "○";
}

// chip("lease_expired"), chip("lease_expired", {cause: "timer"}), chip("released", {text: "41 released"})
export function chip(outcome, {cause, text, href, title} = {}) {
  const content = [h("span", {class: "glyph", "aria-hidden": "true"}, glyph_of(outcome)),
    text ?? outcome + (cause ? ` (${cause})` : "")];
  const properties = {class: `chip is-${outcome}`, title};
  return href ? h("a", {...properties, href}, content) : h("span", properties, content);
}

// Where a run is shown.
export function run_link(workflow_id, run_id) {
  const path = [workflow_id, run_id].filter(Boolean).map(encodeURIComponent).join("/");
  return `#/workflows/${path}`;
}

// --- Copying ---

// navigator.clipboard is missing where the page comes by plain http from another host.
export async function copy_text(text) {
  if (navigator.clipboard) {
    try {
      return await navigator.clipboard.writeText(text).then(() => true);
    } catch {
      // Not allowed: try the old way.
    }
  }
  const area = h("textarea", {class: "off-screen", readonly: true, tabindex: "-1"});
  area.value = text;
  const focused = document.activeElement;
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  focused?.focus({preventScroll: true});
  return copied;
}

export function copy_button(text, what) {
  const button = h("button", {type: "button", class: "copy", "aria-label": `Copy ${what}`,
    title: `Copy ${what}`, onclick: async () => {
      const copied = await copy_text(text);
      button.classList.toggle("copied", copied);
      button.setAttribute("aria-label", copied ? `Copied ${what}` : `Could not copy ${what}`);
      setTimeout(() => {
        button.classList.remove("copied");
        button.setAttribute("aria-label", `Copy ${what}`);
      }, 1500);
    }});
  return button;
}

// --- Tables ---

// A real table in a region of its own that can be scrolled, also with the keyboard. `columns` are
// strings or {text, class}; rows are put into the `body` that comes with it.
export function table(label, columns) {
  const head = columns.map((column) => (typeof column === "string" ? {text: column} : column));
  const body = h("tbody");
  const element = h("div", {class: "scroll", role: "region", "aria-label": label, tabindex: "0"},
    h("table", {}, h("thead", {}, h("tr", {}, head.map((column) =>
      h("th", {scope: "col", class: column.class}, column.text)))), body));
  return {element, body};
}
