// What an operator can do with one run. As in actions.js, each asks first and goes on record.
import {ask_on_record} from "./actions.js";
import {new_request_id, rpc} from "./api.js";
import {ask} from "./dialog.js";
import {duration_text, h} from "./dom.js";
import {facts} from "./holds.js";
import {json_problem, payloads_of_json} from "./payload.js";
import {status_element, took} from "./runs.js";

// The two ways to end a run, for one and for many.
export const verbs = {
  cancel: {title: "Cancel", done: "asked to cancel", call: "RequestCancelWorkflowExecution",
    what: "is asked to stop. It may clean up first, and ends when its code lets it."},
  terminate: {title: "Terminate", done: "terminated", call: "TerminateWorkflowExecution", danger: true,
    what: "ends at once, without cleaning up, and its permits with it. Work that its worker is doing now " +
      "learns of it with the next heartbeat, and may go on until then."},
};

export function end_run(verb, run, record) {
  return rpc(verb.call, {workflowExecution: {workflowId: run.id, runId: run.run}, ...record});
}

function about_run(context, run) {
  return facts([
    ["Workflow", h("span", {class: "mono"}, run.id)],
    ["Run", h("span", {class: "mono"}, run.run)],
    ["Type", run.type],
    ["Status", status_element(run.status)],
    ["Started", `${duration_text(took(run, context.state.now()))} ago`],
  ]);
}

export function ask_to_end(context, verb, run) {
  return ask_on_record({
    title: `${verb.title} ${run.id}?`, submit: verb.title, cancel: "Do not", danger: verb.danger,
    content: () => [about_run(context, run), h("p", {class: verb.danger ? "caution" : null}, `The workflow ${verb.what}`)],
    act: async (values, record) => {
      const answer = await end_run(verb, run, record);
      context.notify(`${run.id} ${verb.done}.`);
      return answer;
    },
  });
}

export function signal_run(context, run) {
  const request_id = new_request_id();  // so that a second try of one dialog is no second signal
  return ask({
    title: `Send a signal to ${run.id}`, submit: "Send",
    content: () => h("p", {}, "Its code gets the signal with its next task, if it is still open by then."),
    fields: [
      {name: "name", label: "Signal", required: true},
      {name: "input", type: "textarea", label: "Input", hint: "JSON; nothing for none. Several values: one in each line.",
        check: json_problem},
    ],
    act: async ({name, input}) => {
      const answer = await rpc("SignalWorkflowExecution", {workflowExecution: {workflowId: run.id, runId: run.run},
        signalName: name, input: payloads_of_json(input), identity: "page", requestId: request_id});
      context.notify(`${run.id} got the signal ${name}.`);
      return answer;
    },
  });
}
