// The pages of runs with the real server behind them: what its data is decides.
import assert from "node:assert/strict";
import {execFile} from "node:child_process";
import {readFile} from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import {promisify} from "node:util";
import {eventually, permit, real_server, web_files} from "./harness.mjs";
import {open_page} from "./one_browser.mjs";

const run = promisify(execFile);
const these_files = {args: ["--no-demo-pool", "--ui-asset-path", web_files]};

async function rpc(site, name, body) {
  const response = await fetch(`${site.origin}/temporal.api.workflowservice.v1.WorkflowService/${name}`, {method: "POST",
    headers: {"Content-Type": "application/json"}, body: JSON.stringify({namespace: "default", ...body})});
  const answer = await response.json();
  if (!response.ok) throw new Error(`${name}: ${JSON.stringify(answer)}`);
  return answer;
}

function start(site, workflowId, type = "Train", queue = "training") {
  return rpc(site, "StartWorkflowExecution", {workflowId, workflowType: {name: type}, taskQueue: {name: queue}, requestId: workflowId});
}

// A pool with holds that were released, taken away and kept.
async function holds(site) {
  await site.api("PUT", "/pools/gpu", {capacity: 3});
  const taken = [];
  for (const slot of ["0", "1", "2"]) {
    taken.push(await site.api("POST", "/pools/gpu/acquire", {requestId: slot, holder: `job-${slot}`, only: [slot], lease: "3600s"}));
  }
  await site.api("POST", "/permits/permit:gpu:0/release", {token: taken[0].token});
  await site.api("POST", "/permits/permit:gpu:1/force-release", {fence: taken[1].slots[0].fence, reason: "fan", identity: "ana"});
  return taken.map(({slots: [slot]}) => slot);
}

// What a command of the page prints, as JSON.
async function printed(command) {
  const {stdout} = await run("sh", ["-c", `permit() { "${permit}" "$@"; }; ${command} -o json`]);
  return JSON.parse(stdout);
}

const ids_shown = (page) => page.locator(".long tbody:not(.spacer) tr td:nth-child(4)").allTextContents();

test("a filter finds what its command finds, after a reload as well", async (t) => {
  const site = await real_server(t, these_files);
  await holds(site);
  for (const [id, type, queue] of [["a/..:@+-/b", "it's \"a\" \\ $x", "training"], ["train-1", "Train", "training"], ["eval-1", "Eval", "training"],
    ["train-2", "Train", "cpu"]]) await start(site, id, type, queue);
  const page = await open_page(t, site, "#/workflows");
  const filters = ["outcome=released%2Cforce_released", "outcome=held", "type=Train&queue=training", "type=it%27s+%22a%22+%5C+%24x", "status=Running&since=1h",
    "status=Completed%2CTerminated", "q=WorkflowId%20%3C%20%27f%27"];
  const found = [];
  for (const filter of filters) {
    await page.goto(`${site.origin}/#/workflows?${filter}`);
    await page.reload();
    await page.getByText(/runs? match/).waitFor();
    const command = await page.locator(".command code").textContent();
    const {executions} = await printed(command);
    assert.deepEqual(await ids_shown(page), executions.map(({execution}) => execution.workflowId), command);
    found.push(executions.length);
  }
  assert.deepEqual(found, [2, 1, 1, 1, 5, 2, 2]);
  await page.check();
});

test("runs that begin and end are seen, and those chosen are terminated on record", async (t) => {
  const site = await real_server(t, these_files);
  await start(site, "a/../b:c@d+e");
  const page = await open_page(t, site, "#/workflows?type=Train");
  await page.getByRole("link", {name: "a/../b:c@d+e"}).waitFor();
  await start(site, "other", "Eval");
  await start(site, "later");
  await page.getByRole("button", {name: "1 new"}).click();
  await page.getByRole("link", {name: "later"}).waitFor();
  await page.getByLabel("Choose all that are loaded").check();
  await page.getByRole("button", {name: "Terminate chosen…"}).click();
  const dialog = page.getByRole("dialog", {name: "Terminate 2 runs?"});
  await dialog.getByLabel("Reason").fill("wrong data");
  await dialog.getByLabel("Your name").fill("ana");
  await dialog.getByRole("button", {name: "Terminate"}).click();
  await dialog.waitFor({state: "hidden"});
  await page.locator(".status").getByText("Terminated").nth(1).waitFor();
  await page.getByRole("link", {name: "a/../b:c@d+e"}).click();
  await page.getByText("wrong data, by ana").first().waitFor();
  await page.check();
});

test("a run's new events come by themselves, and a signal of the page reaches it", async (t) => {
  const site = await real_server(t, these_files);
  await start(site, "train-1");
  const page = await open_page(t, site, "#/workflows/train-1?tab=history");
  await page.getByText("waits for a worker for").first().waitFor();
  const task = await rpc(site, "PollWorkflowTaskQueue", {taskQueue: {name: "training"}, identity: "worker-1"});
  await rpc(site, "RespondWorkflowTaskCompleted", {taskToken: task.taskToken, identity: "worker-1", commands: [
    {commandType: "COMMAND_TYPE_START_TIMER", startTimerCommandAttributes: {timerId: "1", startToFireTimeout: "3600s"}},
    {commandType: "COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK", scheduleActivityTaskCommandAttributes: {activityId: "2", activityType: {name: "train_epoch"},
      taskQueue: {name: "training"}, startToCloseTimeout: "60s"}}]});
  await page.getByRole("button", {name: "TimerStarted"}).waitFor();
  const head = page.getByRole("region", {name: "Summary"});
  await head.getByText(/1, fires in 59m/).waitFor();
  await head.getByText(/train_epoch, attempt 1, waits for a worker/).waitFor();
  await page.getByRole("button", {name: "Actions"}).click();
  await page.getByRole("menuitem", {name: "Send a signal…"}).click();
  await page.getByRole("dialog").getByLabel("Signal").fill("rate");
  await page.getByRole("dialog").getByLabel("Input").fill("0.50");
  await page.getByRole("dialog").getByRole("button", {name: "Send"}).click();
  await page.getByRole("cell", {name: "rate 0.50"}).waitFor();
  await page.check();
});

test("a permit is shown with its holder, answers queries, and its history is a file to replay", async (t) => {
  const site = await real_server(t, these_files);
  const [, , held] = await holds(site);
  const page = await open_page(t, site, "#/workflows/permit%3Agpu%3A2");
  const head = page.getByRole("region", {name: "Summary"});
  await head.getByText("job-2").waitFor();
  await head.getByText(String(held.fence), {exact: true}).waitFor();
  await page.getByRole("tab", {name: "Queries"}).click();
  await page.getByRole("button", {name: "Stack trace, or what can be asked"}).click();
  page.expected_errors.push(/400/);
  await page.getByRole("button", {name: "held", exact: true}).click();
  await page.getByRole("region", {name: "Answer of held"}).getByText("true").waitFor();
  await page.getByRole("button", {name: "Actions"}).click();
  await page.getByRole("menuitem", {name: "Release by force…"}).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(/Type the slot's name/).fill("2");
  await dialog.getByLabel("Reason").fill("fan");
  await dialog.getByRole("button", {name: "Release"}).click();
  await head.getByText("force_released").waitFor();
  await page.getByRole("tab", {name: "History"}).click();
  await page.getByRole("button", {name: "WorkflowExecutionTerminated"}).or(page.getByRole("button", {name: "WorkflowExecutionCompleted"})).first().waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", {name: "Download"}).click()]);
  const file = JSON.parse(await readFile(await download.path(), "utf8"));
  const command = `permit workflow show permit:gpu:2 -r ${held.runId} --address ${site.origin}`;
  assert.deepEqual(file, await printed(command));
  if (process.env.PERMIT_SCREENSHOTS) await download.saveAs(path.join(process.env.PERMIT_SCREENSHOTS, "history.json"));
  await eventually(async () => (await page.getByText("The run has closed.").count()) === 0, "the history is open");
  await page.check();
});
