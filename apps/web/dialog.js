// Modal dialogs. The browser keeps the focus inside and gives it back afterwards; Esc cancels.
import {h, put, sentence} from "./dom.js";

let count = 0;

// Something to read, with a button that closes it.
export function show_dialog({title, content}) {
  return ask({title, content, submit: "Close", cancel: null});
}

// Asks, and resolves to what `act` returned, or to null if it was canceled.
//   content   what the reader should know: an element, or a function that makes it
//   fields    [{name, label, value, hint, type: "text"|"number"|"password"|"textarea"|"select", required, options,
//              maxlength, check(value) -> what is wrong, if anything, needed() -> whether it is shown}]
//              A label may be a function. Both are asked again when the content is refreshed.
//   submit    the word on the button; danger: true makes it red
//   act       async (values) -> result. While it runs, the dialog waits; what it throws is shown in
//             the dialog, which stays open. The error may have `refresh`: content put in place of
//             the old one.
export function ask({title, content, fields = [], submit, cancel = "Cancel", danger = false,
    act = async () => true}) {
  const id = `dialog-${++count}`;
  const opener = document.activeElement;
  const description = h("div", {class: "dialog-content", id: `${id}-content`}, made(content));
  const problem = h("p", {class: "problem", role: "alert", hidden: true});
  const inputs = fields.map((field) => new Field(`${id}-${field.name}`, field));
  const go = h("button", {type: "submit", class: danger ? "danger" : "primary"}, submit);
  const form = h("form", {novalidate: true}, h("h2", {id: `${id}-title`}, title), description,
    inputs.map((input) => input.element), problem,
    h("div", {class: "dialog-buttons"},
      cancel && h("button", {type: "button", onclick: () => dialog.close()}, cancel), go));
  const dialog = h("dialog", {"aria-labelledby": `${id}-title`,
    "aria-describedby": `${id}-content`}, form);

  return new Promise((resolve) => {
    let result = null;
    const complain = (text) => {
      problem.textContent = text;
      problem.hidden = !text;
    };
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (go.disabled) return;
      complain("");
      const wrong = inputs.filter((input) => !input.check());
      if (wrong.length > 0) {
        wrong[0].focus();
        return;
      }
      go.disabled = true;
      dialog.setAttribute("aria-busy", "true");
      try {
        result = await act(Object.fromEntries(inputs.map((input) => [input.name, input.value])));
        dialog.close();
      } catch (error) {
        complain(sentence(error.message));
        if (error.refresh) {
          put(description, made(error.refresh));
          for (const input of inputs) input.renew();
        }
      } finally {
        go.disabled = false;
        dialog.removeAttribute("aria-busy");
      }
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      if (opener?.isConnected) opener.focus({preventScroll: true});
      else document.querySelector("h1")?.focus({preventScroll: true});
      resolve(result);
    });
    dialog.addEventListener("pointerdown", (event) => {
      if (event.target === dialog && outside(dialog, event)) dialog.close();
    });
    document.body.append(dialog);
    dialog.showModal();
    (inputs.find((input) => !input.element.hidden) ?? go).focus();
  });
}

function made(content) {
  return typeof content === "function" ? content() : content;
}

function outside(dialog, {clientX, clientY}) {
  const box = dialog.getBoundingClientRect();
  return clientX < box.left || clientX > box.right || clientY < box.top || clientY > box.bottom;
}

// One labelled field, which says below itself what is wrong with it.
class Field {
  #field;
  #input;
  #label;
  #problem;

  constructor(id, field) {
    this.#field = field;
    const {type = "text", hint} = field;
    const attributes = {id, name: field.name, autocomplete: "off", spellcheck: "false",
      "aria-describedby": `${hint ? `${id}-hint ` : ""}${id}-problem`, "aria-required": field.required ? "true" : null};
    if (type === "select") {
      this.#input = h("select", attributes, field.options.map(({value, label}) =>
        h("option", {value}, label ?? value)));
    } else if (type === "textarea") {
      this.#input = h("textarea", {...attributes, rows: "2"});
    } else {
      this.#input = h("input", {...attributes, type: type === "password" ? type : "text", maxlength: field.maxlength,
        inputmode: type === "number" ? "numeric" : null});
    }
    if (field.value !== undefined) this.#input.value = field.value;
    this.#label = h("label", {for: id}, made(field.label));
    this.#problem = h("p", {class: "problem", id: `${id}-problem`});
    this.element = h("div", {class: "field"}, this.#label, this.#input,
      hint && h("p", {class: "hint", id: `${id}-hint`}, hint), this.#problem);
    this.element.hidden = field.needed?.() === false;
  }

  get name() {
    return this.#field.name;
  }
  get value() {
    return this.#input.value.trim();
  }
  focus() {
    this.#input.focus();
  }

  check() {
    if (this.element.hidden) return true;
    const {required, check} = this.#field;
    const wrong = required && this.value === "" ? "This is needed." : check?.(this.value) ?? "";
    this.#problem.textContent = wrong;
    this.#input.setAttribute("aria-invalid", String(wrong !== ""));
    return wrong === "";
  }

  // After what the dialog is about has changed: what confirmed the old is not a confirmation.
  renew() {
    const {label, needed} = this.#field;
    if (!needed) return;
    put(this.#label, made(label));
    this.#input.value = "";
    this.element.hidden = !needed();
  }
}
