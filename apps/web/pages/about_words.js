// What the words mean that Permit uses everywhere, and what it promises.
import {chip, h} from "../dom.js";

const words = [
  ["held", "Somebody has the slot, until they give it back or the lease ends.", ""],
  ["waiting", "Somebody asked and has none yet: in line, or asleep until the next try.", ""],
  ["released", "Its holder gave it back.", ""],
  ["lease_expired", "Nobody renewed it in time.", "timer: at its deadline. backstop: a little later, by the server itself, since no worker of permits was there."],
  ["holder_closed", "The workflow that held it has ended, and the permit with it.",
    "how the workflow ended: completed, failed, canceled, terminated, timed_out, continued_as_new."],
  ["force_released", "It was taken from its holder.", "operator: by a person, with a reason on record. canceled: by a request from outside. failed: the permit's own workflow failed."],
];

const promises = [
  "A slot has at most one holder, and a workflow id at most one open run. Also across a killed server, loss of power and a restart.",
  "A slot never leaks. It is free when its holder gives it back or ends, when the lease runs out, and at the latest a little after that.",
  "Releasing an old permit never frees or shortens a newer one.",
  "What was acknowledged is on disk. What was refused did not happen. What got no answer happened once or not at all: ask again with the same requestId.",
  "Waiting costs nothing. A slot that comes free is granted to the next in line in the same commit.",
  "Every grant carries a fence, a number that only ever grows.",
];

const documents = [
  ["README.md", "what Permit is, and a first session"], ["docs/cli.md", "the command, and what happens in each crash"],
  ["docs/http.md", "Permit with curl"], ["docs/python.md", "Permit from Python"], ["docs/configuration.md", "every setting"],
  ["docs/errors.md", "every code, what it means and the way out"], ["docs/install.md", "packages and services"],
  ["docs/page.md", "this page"], ["docs/monitoring.md", "metrics, alerts, a dashboard"], ["docs/logs.md", "logs, traces and health"],
  ["docs/decisions.md", "why it is as it is"],
];

export function words_element() {
  return h("dl", {class: "words"}, words.map(([word, meaning, causes]) => h("div", {}, h("dt", {}, chip(word)),
    h("dd", {}, meaning, causes && h("p", {class: "dim"}, "Cause: ", causes)))));
}

export function promises_element() {
  return [h("ol", {class: "promises"}, promises.map((promise) => h("li", {}, promise))),
    h("p", {class: "caution"}, h("b", {}, "What nobody can promise: "), "that two holders never overlap in real time once a lease has expired. " +
      "A job can be frozen, wake up and write on, not knowing that somebody else has the slot. Send the fence along with each write, and let " +
      "what you write to refuse any that is lower than the highest it has seen. Holds that may have overlapped are marked.")];
}

export function documents_element() {
  return [h("p", {}, "In the sources, and as installed under ", h("code", {}, "share/doc/permit"), "; ", h("code", {}, "man permit"), " has the command's pages."),
    h("ul", {class: "documents"}, documents.map(([name, what]) => h("li", {}, h("code", {}, name), h("span", {class: "dim"}, ` ${what}`))))];
}
