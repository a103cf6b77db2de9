// The keyboard: "/" goes to the filter, "g" and a letter to a page, "?" tells about it.
import {show_dialog} from "./dialog.js";
import {h} from "./dom.js";

const second_key_within = 1_500;

let known_pages = [];

// What each key does.
export function keys_table() {
  return h("table", {class: "keys"}, h("tbody", {},
    row("/", "filter this page"),
    known_pages.map((page) => row(`g ${page.key}`, page.label)),
    row("Arrow keys", "move among slots, holds and in menus"),
    row("+ −", "zoom the timeline; Shift and arrows move it"),
    row("Enter", "open a slot's menu; do what a dialog asks"),
    row("Esc", "close a menu or a dialog; empty the filter"),
    row("?", "this list")));
}

export function start_keys(pages, navigate) {
  known_pages = pages;
  let after_g = 0;
  const help = () => show_dialog({title: "Keys", content: keys_table()});
  document.getElementById("help").addEventListener("click", help);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (document.querySelector("dialog[open]")) return;
    if (event.target.closest?.("input, textarea, select, [contenteditable]")) {
      leave_filter(event);
      return;
    }
    const goes_on = performance.now() - after_g < second_key_within;
    after_g = 0;
    const page = goes_on && pages.find(({key}) => key === event.key);
    if (page) navigate(`#/${page.name}`);
    else if (event.key === "g") after_g = performance.now();
    else if (event.key === "?") help();
    else if (event.key === "/") focus_filter();
    else return;
    event.preventDefault();
  });
}

function focus_filter() {
  const filter = document.querySelector("#main [data-filter]");
  filter?.focus();
  filter?.select?.();
}

// Esc empties the filter, and leaves it when it is empty.
function leave_filter(event) {
  const {target} = event;
  if (event.key !== "Escape" || !("filter" in target.dataset)) return;
  if (target.value === "") {
    target.blur();
  } else {
    target.value = "";
    target.dispatchEvent(new Event("input", {bubbles: true}));
  }
}

function row(keys, what) {
  return h("tr", {}, h("th", {scope: "row"}, h("kbd", {}, keys)), h("td", {}, what));
}
