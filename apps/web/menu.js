// Menus of actions, as the keyboard expects them: arrows move, Enter chooses, Esc goes back.
import {h} from "./dom.js";

let open_menu = null;

// Opens a menu at an element. `items`: [{label, act(), dangerous}], null for a line between them.
export function show_menu(anchor, label, items) {
  const again = open_menu?.anchor === anchor;
  close_menu(again);
  if (again) return;
  const entries = items.filter((item, i) => item || (items[i - 1] && i + 1 < items.length));
  const menu = h("div", {class: "menu", role: "menu", "aria-label": label, popover: "manual"},
    entries.map((item) => (item === null ? h("div", {role: "separator"}) :
      h("button", {type: "button", role: "menuitem", tabindex: "-1",
        class: item.dangerous ? "dangerous" : null, onclick: () => {
          close_menu(true);
          item.act();
        }}, item.label))));
  menu.addEventListener("keydown", (event) => on_key(event, menu));
  document.getElementById("main").append(menu);
  open_menu = {menu, anchor};
  anchor.setAttribute("aria-expanded", "true");
  if (menu.showPopover) menu.showPopover();
  place(menu, anchor);
  menu.querySelector("[role=menuitem]")?.focus({preventScroll: true});
}

function close_menu(back = false) {
  if (!open_menu) return;
  const {menu, anchor} = open_menu;
  open_menu = null;
  anchor.setAttribute("aria-expanded", "false");
  menu.remove();
  if (!back) return;
  if (anchor.isConnected) anchor.focus({preventScroll: true});
  else document.querySelector("h1")?.focus({preventScroll: true});
}

// A click elsewhere closes the menu; it follows its element when the page scrolls.
document.addEventListener("pointerdown", ({target}) => {
  if (open_menu && !open_menu.menu.contains(target) && !open_menu.anchor.contains(target)) close_menu();
});
addEventListener("scroll", () => open_menu && place(open_menu.menu, open_menu.anchor), {passive: true});
addEventListener("hashchange", () => close_menu());

// Below the element and within the window; above it if there is more room.
function place(menu, anchor) {
  const at = anchor.getBoundingClientRect();
  const {offsetWidth: width, offsetHeight: height} = menu;
  const below = at.bottom + 4;
  const top = below + height <= innerHeight ? below : Math.max(4, at.top - height - 4);
  const left = Math.min(Math.max(4, at.right - width), innerWidth - width - 4);
  menu.style.setProperty("top", `${top}px`);
  menu.style.setProperty("left", `${Math.max(4, left)}px`);
}

function on_key(event, menu) {
  const items = [...menu.querySelectorAll("[role=menuitem]")];
  const at = items.indexOf(document.activeElement);
  const to = {ArrowDown: (at + 1) % items.length, ArrowUp: (at + items.length - 1) % items.length,
    Home: 0, End: items.length - 1}[event.key];
  if (to !== undefined) items[to].focus();
  else if (event.key === "Escape" || event.key === "Tab") close_menu(true);
  else if (/^[a-z]$/i.test(event.key)) {
    const order = [...items.slice(at + 1), ...items.slice(0, at + 1)];
    order.find((item) => item.textContent.toLowerCase().startsWith(event.key.toLowerCase()))?.focus();
  } else return;
  event.preventDefault();
  event.stopPropagation();
}

// A button that opens a menu; `items()` says what is in it at that time.
export function menu_button(label, content, items, properties = {}) {
  const button = h("button", {type: "button", "aria-haspopup": "menu", "aria-expanded": "false",
    "aria-label": label, ...properties, onclick: () => open()}, content);
  const open = () => show_menu(button, button.getAttribute("aria-label"), items());
  button.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown") return;
    event.preventDefault();
    open();
  });
  return button;
}
