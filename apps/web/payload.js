// Payloads for people: JSON as it was written, bytes by their number, long ones shortened.
import {copy_button, h, put} from "./dom.js";

const shown_max = 4_000;  // letters, before "show all"

function bytes_of(base64 = "") {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

export function size_text(bytes) {
  if (bytes < 1024) return `${bytes} bytes`;
  const [size, unit] = bytes < 1024 ** 2 ? [bytes / 1024, "KiB"] : [bytes / 1024 ** 2, "MiB"];
  return `${size.toFixed(size < 10 ? 1 : 0)} ${unit}`;
}

// A payload in the long form as {text, is_json, size}. What is no JSON has its size as text.
export function read_payload({metadata = {}, data} = {}) {
  try {
    const encoding = atob(metadata.encoding ?? "");
    const bytes = bytes_of(data);
    if (encoding === "binary/null") return {text: "null", is_json: true, size: 0};
    if (!encoding.startsWith("json/")) return {text: `${size_text(bytes.length)}${encoding && ` of ${encoding}`}`, size: bytes.length};
    return {text: new TextDecoder("utf-8", {fatal: true}).decode(bytes), is_json: true, size: bytes.length};
  } catch {
    return {text: "(not readable)", size: 0};
  }
}

// The values in one line: what they are called by where there is little room.
export function payloads_line(payloads, letters = 60) {
  const text = (payloads?.payloads ?? []).map((payload) => read_payload(payload).text).join(", ")
    .replace(/\s+/g, " ");
  return text.length > letters ? `${text.slice(0, letters - 1)}…` : text;
}

// JSON text with a member a line. Only the space between tokens changes: numbers stay as they were
// written, and so does what a browser would read wrongly.
export function pretty_json(text) {
  const out = [];
  let depth = 0;
  let opened = false;  // the last token was a bracket, which may be closed at once
  const line = () => out.push(`\n${"  ".repeat(depth)}`);
  for (const [token] of text.matchAll(/"(?:[^"\\]+|\\.)*"?|[{}[\],:]|[^\s{}[\],:"]+/gs)) {
    const closes = token === "}" || token === "]";
    if (closes) depth = Math.max(0, depth - 1);
    if (opened !== closes) line();
    opened = token === "{" || token === "[";
    if (opened) depth++;
    out.push(token === ":" ? ": " : token);
    if (token === ",") line();
  }
  return out.join("");
}

// A text of any length in a box, with all of it on demand.
export function text_block(text, what) {
  const pre = h("pre", {class: "block", tabindex: "0", role: "region", "aria-label": what});
  const box = h("div", {class: "block-box"}, pre, copy_button(text, what));
  if (text.length <= shown_max) return put(pre, text) && box;
  put(pre, `${text.slice(0, shown_max)}…`);
  box.append(h("button", {type: "button", class: "quiet", onclick: ({target}) => {
    put(pre, text);
    pre.focus({preventScroll: true});
    target.remove();
  }}, `Show all ${text.length.toLocaleString("en")} letters`));
  return box;
}

// Payloads, each in a box of its own.
export function payload_blocks(payloads, what) {
  const list = payloads?.payloads ?? [];
  return list.map((payload, i) => {
    const {text, is_json} = read_payload(payload);
    const name = list.length > 1 ? `${what} ${i + 1}` : what;
    return is_json ? text_block(pretty_json(text), name) : h("p", {class: "dim"}, text);
  });
}

// --- What a person types ---

function values_of(text) {
  const all = text.trim();
  if (all === "") return [];
  try {
    JSON.parse(all);
    return [all];
  } catch {
    return all.split("\n").map((line) => line.trim()).filter(Boolean);
  }
}

// What is wrong with the text as the values of an input, or "".
export function json_problem(text) {
  for (const value of values_of(text)) {
    try {
      JSON.parse(value);
    } catch {
      const shown = value.length > 30 ? `${value.slice(0, 29)}…` : value;
      return `${shown} is not JSON. A text has quotes: "${shown.replaceAll(/["\\]/g, "")}".`;
    }
  }
  return "";
}

// The bytes of each value as they were typed.
export function payloads_of_json(text) {
  const payloads = values_of(text).map((value) => {
    const bytes = new TextEncoder().encode(value);
    const letters = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
    return {metadata: {encoding: btoa("json/plain")}, data: btoa(letters)};
  });
  return payloads.length > 0 ? {payloads} : undefined;
}
