// Who has to show an API key shows it once: the server gives a cookie for it, which scripts cannot read.
import {api} from "./api.js";
import {ask} from "./dialog.js";

let asking = false;

// Asks for a key, and begins anew with it.
export async function log_in() {
  if (asking) return;
  asking = true;
  await ask({title: "Log in", submit: "Log in", cancel: null,
    content: "This server asks for an API key.",
    fields: [{name: "key", label: "API key", type: "password", required: true}],
    act: ({key}) => api.post("api/v1/login", {key})});
  location.reload();
}

export async function log_out() {
  await api.post("api/v1/logout");
  location.reload();
}
