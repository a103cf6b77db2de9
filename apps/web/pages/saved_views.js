// Filters that the reader has named, kept in this browser.
import {ask} from "../dialog.js";
import {h} from "../dom.js";
import {menu_button} from "../menu.js";
import {by_name} from "../state.js";
import {keep, kept} from "../theme.js";

const views_key = "permit.views";

// [{name, query}], by name.
export function saved_views() {
  try {
    const views = JSON.parse(kept(views_key, "[]"));
    return views.filter((view) => typeof view.name === "string" && typeof view.query === "string")
      .sort((a, b) => by_name(a.name, b.name));
  } catch {
    return [];
  }
}

function save(context, query) {
  return ask({title: "Save this view", submit: "Save",
    content: () => h("p", {}, "The filter and the order, under a name, in this browser. One of the same name is replaced."),
    fields: [{name: "name", label: "Name", required: true, maxlength: 60}],
    act: async ({name}) => {
      keep(views_key, JSON.stringify([...saved_views().filter((view) => view.name !== name), {name, query}]));
      context.notify(`Saved as ${name}.`);
      return true;
    }});
}

function remove(context) {
  return ask({title: "Delete a view", submit: "Delete", danger: true,
    fields: [{name: "name", type: "select", label: "View", options: saved_views().map(({name}) => ({value: name}))}],
    act: async ({name}) => {
      keep(views_key, JSON.stringify(saved_views().filter((view) => view.name !== name)));
      context.notify(`Deleted ${name}.`);
      return true;
    }});
}

// A button with a menu of them.
export function views_button(context) {
  return menu_button("Views", ["Views", h("span", {class: "down", "aria-hidden": "true"})], () => {
    const views = saved_views();
    return [
      {label: "All runs", act: () => context.navigate("#/workflows")},
      {label: "Open runs", act: () => context.navigate("#/workflows?status=Running")},
      {label: "Failed in the last day", act: () => context.navigate("#/workflows?status=Failed%2CTimedOut&since=24h")},
      {label: "Holds that did not end well", act: () =>
        context.navigate("#/workflows?outcome=lease_expired%2Cforce_released")},
      null,
      ...views.map(({name, query}) => ({label: name, act: () => context.navigate(`#/workflows?${query}`)})),
      null,
      {label: "Save this view…", act: () => save(context, context.query.toString())},
      ...(views.length > 0 ? [{label: "Delete a view…", act: () => remove(context)}] : []),
    ];
  });
}
