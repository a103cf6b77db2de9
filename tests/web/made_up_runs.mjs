// Makes up runs and their histories, in the shape of Temporal's API, and the server that has them.
import {fixture_site, refusal} from "./harness.mjs";
import {at, run_id, snapshot} from "./made_up.mjs";

const types = ["TrainModel", "Evaluate", "NightlyBackup", "PermitSlotWorkflow"];

export function payload(value) {
  return {metadata: {encoding: btoa("json/plain")}, data: Buffer.from(JSON.stringify(value)).toString("base64")};
}
export function payloads(...values) {
  return {payloads: values.map(payload)};
}

// A run as lists have it. `started` and `closed` are seconds from now; `more` overrides anything.
export function run(id, {run: runId = run_id(), status = "RUNNING", type = "TrainModel", queue = "training", started = -300, closed, ...more} = {}) {
  return {execution: {workflowId: id, runId}, type: {name: type}, startTime: at(started), taskQueue: queue,
    status: `WORKFLOW_EXECUTION_STATUS_${status}`, historyLength: "12", historySizeBytes: "3456",
    ...(closed === undefined ? {} : {closeTime: at(closed)}), ...more};
}

export function permit_run(pool, slot, outcome, more = {}) {
  return run(`permit:${pool}:${slot}`, {type: "PermitSlotWorkflow", queue: "permits", fence: 1000,
    ...(outcome ? {outcome, status: outcome === "force_released" ? "TERMINATED" : "COMPLETED", closed: -20} : {deadline: at(400)}),
    parentExecution: {workflowId: "train-llama-14", runId: run_id()}, ...more});
}

// As a lab has them.
export function lab_runs() {
  return [
    run("train-gan-42", {started: -12}), run("eval-nightly", {type: "Evaluate", started: -64}),
    permit_run("gpu-pool", "0", null, {started: -130}), run("train-llama-14", {started: -136}),
    run("backup-2026-11-18", {type: "NightlyBackup", queue: "ops", status: "COMPLETED", started: -3600, closed: -3000}),
    permit_run("gpu-pool", "3", "force_released", {cause: "operator", started: -400, closed: -82}),
    permit_run("gpu-pool", "0", "released", {started: -700, closed: -140}),
    permit_run("gpu-pool", "1", "lease_expired", {cause: "timer", started: -900, closed: -260}),
    permit_run("gpu-pool", "2", "holder_closed", {cause: "completed", started: -950, closed: -300}),
    run("train-bert-77", {status: "FAILED", started: -4000, closed: -900}),
    run("train-vit-03", {status: "CANCELED", started: -5000, closed: -4100}),
    run("migrate-shard-7", {type: "MigrateShard", queue: "migrations", status: "TIMED_OUT", started: -90_000, closed: -86_000}),
    run("train-old", {status: "TERMINATED", started: -91_000, closed: -90_500}),
    run("counter", {type: "Counter", status: "CONTINUED_AS_NEW", started: -92_000, closed: -91_500}),
  ];
}

export function many_runs(count) {
  return Array.from({length: count}, (_, i) => run(`job-${i}`, {type: types[i % 3], started: -i - 1,
    ...(i % 4 === 0 ? {} : {status: i % 4 === 1 ? "COMPLETED" : "FAILED", closed: -i / 2})}));
}

// Answers lists and counts from `site.runs`.
export function list_answer(site) {
  return async ({path, body}) => {
    if (path === "/ListWorkflowExecutions") {
      const found = site.runs.filter((known) => found_by(body.query, known));
      const begin = Number(body.nextPageToken || 0);
      const end = begin + (body.pageSize || 100);
      return [200, {executions: found.slice(begin, end), ...(end < found.length ? {nextPageToken: String(end)} : {})}];
    }
    if (path === "/CountWorkflowExecutions") {
      return [200, {count: String(site.runs.filter((known) => found_by(body.query, known)).length)}];
    }
    return undefined;
  };
}

// A site with these runs. `more` answers what lists and counts do not.
export async function site_of(t, runs, {state = snapshot(), more = () => undefined} = {}) {
  const site = await fixture_site(t, state, async (asked) => await more(asked) ?? list_answer(site)(asked));
  site.runs = runs;
  return site;
}

// The terms that the tests' queries have.
function found_by(query = "", {execution, status, outcome}) {
  const ids = /RunId IN \(([^)]*)\)/.exec(query);
  if (ids && !ids[1].includes(`'${execution.runId}'`)) return false;
  const prefix = /WorkflowId STARTS_WITH '((?:[^']|'')*)'/.exec(query);
  if (prefix && !execution.workflowId.startsWith(prefix[1].replaceAll("''", "'"))) return false;
  const id = /(?<!Parent)WorkflowId = '((?:[^']|'')*)'/.exec(query);
  if (id && execution.workflowId !== id[1].replaceAll("''", "'")) return false;
  if (/ExecutionStatus = 'Running'/.test(query) && !status.endsWith("_RUNNING")) return false;
  if (/ExecutionStatus = 'Failed'/.test(query) && !status.endsWith("_FAILED")) return false;
  const outcomes = /Outcome (?:= ('\w+')|IN \(([^)]*)\))/.exec(query);
  return !outcomes || Boolean(outcome && (outcomes[1] ?? outcomes[2]).includes(`'${outcome}'`));
}

export const filter_refusal = [400, refusal(3, "FILTER_INVALID",
  "query, position 1: no field has the name Status; did you mean ExecutionStatus?")];
