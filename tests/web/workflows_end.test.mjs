// Ending runs from their list: those chosen, all that match, and by keyboard alone.
import assert from "node:assert/strict";
import test from "node:test";
import {eventually, focused, refusal} from "./harness.mjs";
import {many_runs, run, site_of} from "./made_up_runs.mjs";
import {open_page} from "./one_browser.mjs";

const record = {reason: "wrong data", identity: "ana"};

async function fill_record(dialog) {
  await dialog.getByLabel("Reason").fill(record.reason);
  await dialog.getByLabel("Your name").fill(record.identity);
}

test("those chosen are ended on record, four at a time, and what is refused can be tried again", async (t) => {
  const runs = many_runs(40).map((known, i) => run(`job-${i}`, {run: known.execution.runId}));
  let [at_once, most, refuse] = [0, 0, true];
  const ended = [];
  const site = await site_of(t, runs, {more: async ({path, body}) => {
    if (path !== "/TerminateWorkflowExecution") return undefined;
    most = Math.max(most, ++at_once);
    await new Promise((done) => setTimeout(done, 5));
    --at_once;
    const {workflowId} = body.workflowExecution;
    if (workflowId === "job-7") return [404, refusal(5, "WORKFLOW_ALREADY_COMPLETED", "workflow execution already completed")];
    if (workflowId === "job-3" && refuse) return [429, refusal(8, "LIMIT", "too many at once")];
    ended.push(body);
    return [200, {}];
  }});
  const page = await open_page(t, site, "#/workflows");
  page.expected_errors.push(/404|429/);
  await page.getByLabel("Choose all that are loaded").check();
  await page.getByText("40 chosen").waitFor();
  await page.getByRole("button", {name: "Terminate chosen…"}).click();
  const dialog = page.getByRole("dialog", {name: "Terminate 40 runs?"});
  await dialog.getByRole("button", {name: "Terminate"}).click();
  await dialog.getByText("This is needed.").first().waitFor();
  await fill_record(dialog);
  await dialog.getByRole("button", {name: "Terminate"}).click();
  await dialog.getByText("38 of 40 runs terminated, 1 had closed already, 1 refused").waitFor();
  await dialog.getByRole("link", {name: "job-3"}).waitFor();
  await dialog.getByText("too many at once").waitFor();
  assert.ok(most <= 4, `${most} at once`);
  assert.equal(ended.length, 38);
  const first = ended.find((body) => body.workflowExecution.workflowId === "job-0");  // of four at a time, any may arrive first
  assert.deepEqual([first.reason, first.identity, first.workflowExecution], [record.reason, record.identity, runs[0].execution]);
  refuse = false;
  await dialog.getByRole("button", {name: "Terminate"}).click();
  await dialog.waitFor({state: "hidden"});
  assert.deepEqual(ended.slice(38).map((body) => body.workflowExecution.workflowId), ["job-3"]);
  await page.getByText("40 chosen").waitFor({state: "hidden"});
  await page.check();
});

test("all that match are counted, typed and ended, and only open ones", async (t) => {
  const ended = [];
  const site = await site_of(t, many_runs(1200), {more: ({path, body}) => {
    if (path !== "/RequestCancelWorkflowExecution") return undefined;
    ended.push(body.workflowExecution.workflowId);
    return [200, {}];
  }});
  const page = await open_page(t, site, "#/workflows?id=job-1");
  await page.getByText(/runs match/).waitFor();
  const matching = site.runs.filter(({execution, status}) => execution.workflowId.startsWith("job-1") && status.endsWith("RUNNING"));
  await page.getByRole("button", {name: "Cancel all that match…"}).click();
  const dialog = page.getByRole("dialog", {name: `Cancel ${matching.length} runs?`});
  await fill_record(dialog);
  await dialog.getByRole("button", {name: "Cancel", exact: true}).click();
  await dialog.getByText(`Type ${matching.length}, or do not.`).waitFor();
  assert.equal(ended.length, 0);
  await dialog.getByLabel(`Type ${matching.length} to cancel them all`).fill(String(matching.length));
  await dialog.getByRole("button", {name: "Cancel", exact: true}).click();
  await dialog.waitFor({state: "hidden"});
  assert.deepEqual(ended.sort(), matching.map((known) => known.execution.workflowId).sort());
  await page.check();
});

test("by keyboard alone a run is chosen and canceled, and another opened", async (t) => {
  const asked = [];
  const site = await site_of(t, [run("train-1"), run("train-2")], {more: ({path, body}) => {
    if (path === "/RequestCancelWorkflowExecution") asked.push(body);
    return path === "/RequestCancelWorkflowExecution" ? [200, {}] : undefined;
  }});
  const page = await open_page(t, site, "#/workflows");
  await page.getByLabel("Choose train-2").waitFor();
  const tab_to = async (name) => {
    for (let i = 0; i < 70 && await focused(page) !== name; ++i) await page.keyboard.press("Tab");
    assert.equal(await focused(page), name);
  };
  await tab_to("INPUT Choose train-1");
  await page.keyboard.press("Space");
  await page.keyboard.press("Shift+Tab");
  for (let i = 0; i < 30 && await focused(page) !== "BUTTON Cancel chosen…"; ++i) await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Enter");
  await page.keyboard.type("wrong data");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor({state: "hidden"});
  assert.deepEqual(asked.map((body) => body.workflowExecution.workflowId), ["train-1"]);
  await tab_to("A train-2");
  page.expected_errors.push(/404/);
  await page.keyboard.press("Enter");
  await eventually(async () => await focused(page) === "H1 train-2", "the run's page");
  await page.check();
});
