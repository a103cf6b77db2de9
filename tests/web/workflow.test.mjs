// The page of one run: what it shows of it, its tabs, its history, and what can be done with it.
import assert from "node:assert/strict";
import {readFile} from "node:fs/promises";
import test from "node:test";
import {pretty_json} from "../../apps/web/payload.js";
import {axe_problems, eventually, focused, refusal, worst_interaction} from "./harness.mjs";
import {at, hold, lab, run_id, waiter} from "./made_up.mjs";
import {address_of, History, site_of_run, tab_names, training, wake} from "./made_up_histories.mjs";
import {payloads, permit_run} from "./made_up_runs.mjs";
import {open_page} from "./one_browser.mjs";

test("the head says how it stands, what it holds and what it waits for", async (t) => {
  const known = training();
  const {runId} = known.info.execution;
  const state = lab();
  state.lines[0].waiters.push(waiter("gpu-pool", 9, "train-llama-14", 64, {holderRunId: runId, position: 3}));
  const site = await site_of_run(t, known, {state, more: ({path}) => (path === "/waiters/9/why" ?
    [200, {message: "all 4 slots are held; the first lease ends in 14 s"}] : undefined)});
  const page = await open_page(t, site, address_of(known));
  const head = page.getByRole("region", {name: "Summary"});
  await head.getByText("Waiting").waitFor();
  await head.getByText("permit:gpu-pool:0").waitFor();
  await head.getByText(/^4\dm \d\ds left$/).waitFor();
  await head.getByText(/a slot of gpu-pool, for 1m \d\ds, position 3/).waitFor();
  await head.getByText("all 4 slots are held; the first lease ends in 14 s").waitFor();
  await head.getByText(/train_epoch, attempt 2 of 5 on worker-2@gpu-host-b for \d+m \d\ds, heartbeat \ds ago/).waitFor();
  await head.getByText("{\"epoch\":2,\"step\":41,\"loss\":1.402}").waitFor();
  await head.getByText(/7, fires in/).waitFor();
  await head.getByText("\"model\": \"llama-7b\"").waitFor();
  const left = head.getByRole("timer").first();
  const before = await left.textContent();
  await eventually(async () => await left.textContent() !== before, "the lease ticks");
  await page.check();
});

test("a permit's page says whose it is, until when, and how it ended", async (t) => {
  const known = {info: permit_run("gpu-pool", "0", null, {fence: 1041}), history: new History()};
  known.history.add("WorkflowExecutionStarted", {workflowType: {name: "PermitSlotWorkflow"}, permit: {fence: 1041}}, -130);
  known.description = () => ({workflowExecutionInfo: {...known.info, historyLength: "1"}});
  let permit = {...hold("gpu-pool", "0", {holder: "train-llama-14", reason: "nightly", left: 480}), runId: known.info.execution.runId, fence: 1041};
  const released = [];
  const site = await site_of_run(t, known, {more: ({method, path, body}) => {
    if (path !== "/permits/permit:gpu-pool:0" && path !== "/permits/permit:gpu-pool:0/force-release") return undefined;
    if (method === "POST") released.push(body);
    return [200, permit];
  }});
  const page = await open_page(t, site, address_of(known));
  const head = page.getByRole("region", {name: "Summary"});
  await head.getByRole("link", {name: "train-llama-14"}).first().waitFor();
  await head.getByText("1041", {exact: true}).waitFor();
  await head.getByText(/release, or the end of the lease, 7m \d\ds left/).waitFor();
  await page.getByRole("button", {name: "Actions"}).click();
  await page.getByRole("menuitem", {name: "Release by force…"}).click();
  const dialog = page.getByRole("dialog", {name: "Release permit:gpu-pool:0?"});
  await dialog.getByLabel(/Type the slot's name/).fill("0");
  await dialog.getByLabel("Reason").fill("stuck");
  await page.keyboard.press("Enter");
  await dialog.waitFor({state: "hidden"});
  assert.deepEqual(released, [{fence: 1041, reason: "stuck", identity: "page"}]);
  permit = {...permit, state: "closed", outcome: "force_released", cause: "operator", closedAt: at(0), possibleOverlap: true};
  Object.assign(known.info, {status: "WORKFLOW_EXECUTION_STATUS_TERMINATED", closeTime: at(0), outcome: "force_released", cause: "operator"});
  site.send("changes", {holds: [permit]});
  await head.getByText("force_released").waitFor();
  await head.getByText("cause operator").waitFor();
  await head.getByText("possible: its holder may have worked on").waitFor();
  await page.check();
});

test("new events come while it is open, and how it ended", async (t) => {
  const known = training();
  const site = await site_of_run(t, known);
  const page = await open_page(t, site, address_of(known, "history"));
  await page.getByText("20 events (9 of workflow tasks hidden)").waitFor();
  await eventually(() => site.polls.length === 1, "the page waits for the next event");
  known.history.add("WorkflowExecutionSignaled", {signalName: "stop", input: payloads("now")});
  wake(site);
  await page.getByRole("cell", {name: "stop \"now\""}).waitFor();
  known.history.add("WorkflowExecutionCompleted", {result: payloads({checkpoint: "x.ckpt"})});
  Object.assign(known.info, {closeTime: at(0), status: "WORKFLOW_EXECUTION_STATUS_COMPLETED"});
  wake(site);
  await page.getByRole("region", {name: "Summary"}).getByText("Completed").waitFor();
  await page.getByRole("region", {name: "Summary"}).getByText("\"checkpoint\": \"x.ckpt\"").waitFor();
  const asked = site.requests.length;
  await eventually(() => site.polls.length === 0, "nothing is waited for any more");
  assert.ok(asked < 30, `${asked} requests`);
  await page.check();
});

test("a run that nobody knows is said to be so, with the others of its id", async (t) => {
  const known = training();
  const site = await site_of_run(t, known);
  const page = await open_page(t, site, `#/workflows/train-llama-14/${run_id()}`);
  page.expected_errors.push(/404/);
  await page.getByRole("heading", {name: "There is no such run"}).waitFor();
  await page.getByRole("link", {name: known.info.execution.runId}).click();
  await page.getByRole("tab", {name: "Timeline"}).waitFor();
  await page.goto(`${site.origin}/#/workflows/never-was`);
  await page.getByText("No workflow never-was is known.").waitFor();
  assert.deepEqual(await axe_problems(page), []);
  await page.check();
});

test("without a run id the last run is meant, and a later one is told", async (t) => {
  const known = training();
  const site = await site_of_run(t, known);
  const page = await open_page(t, site, "#/workflows/train-llama-14");
  await page.getByRole("tab", {name: "Timeline"}).waitFor();
  assert.equal(site.requests.find(({path}) => path === "/DescribeWorkflowExecution").body.execution.runId, "");
  const later = `${known.info.execution.runId.slice(0, -8)}ffffffff`;
  site.send("changes", {workflows: [{workflowId: "train-llama-14", runId: later, status: "WORKFLOW_EXECUTION_STATUS_RUNNING", startTime: at(0)}]});
  const link = page.getByText("A later run of this workflow has started.").getByRole("link");
  assert.match(await link.getAttribute("href"), new RegExp(`${later}$`));
  await page.check();
});

test("how a permit ended that its holder's end has ended is known from the ledger", async (t) => {
  const known = training("done", {closed: true});
  const site = await site_of_run(t, known);
  const page = await open_page(t, site, address_of(known, "relations"));
  const row = (id) => page.getByRole("row").filter({has: page.getByRole("link", {name: id})});
  await row("permit:gpu-pool:0").getByText("released").waitFor();
  await row("permit:gpu-pool:1").getByText("lease_expired").waitFor();
  await page.check();
});

test("a run that continued as new leads to the runs before and after it", async (t) => {
  const known = training("chain");
  const [before, after] = [run_id(), run_id()];
  known.history.events[0].workflowExecutionStartedEventAttributes.continuedExecutionRunId = before;
  known.history.add("WorkflowExecutionContinuedAsNew", {newExecutionRunId: after});
  Object.assign(known.info, {closeTime: at(0), status: "WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW"});
  const page = await open_page(t, await site_of_run(t, known), address_of(known));
  assert.equal(await page.getByRole("link", {name: "next run"}).getAttribute("href"), `#/workflows/chain/${after}`);
  assert.equal(await page.getByRole("link", {name: "previous run"}).getAttribute("href"), `#/workflows/chain/${before}`);
});

test("tabs go by keyboard, and the open one is in the address", async (t) => {
  const site = await site_of_run(t);
  const page = await open_page(t, site, address_of(site.run, "pending"));
  await page.getByRole("tabpanel", {name: "Pending"}).getByText("the worker did not heartbeat for 60s").waitFor();
  await page.getByRole("tab", {name: "Pending"}).focus();
  await page.keyboard.press("ArrowRight");
  assert.equal(await focused(page), "BUTTON Queries");
  assert.match(page.url(), /tab=queries$/);
  await page.keyboard.press("End");
  await page.keyboard.press("ArrowRight");
  assert.equal(await focused(page), "BUTTON Timeline");
  assert.doesNotMatch(page.url(), /tab=/);
  await page.keyboard.press("ArrowLeft");
  await page.getByRole("tabpanel", {name: "Workers"}).getByText("worker-2@gpu-host-b").first().waitFor();
  await page.check();
});

test("what a file of the history has is what the server gave, to the letter", async (t) => {
  const known = training("a/b \"c\"", {closed: true});
  known.history.events[0].workflowExecutionStartedEventAttributes.input.payloads.push({metadata: {encoding: btoa("json/plain")},
    data: btoa("{\"big\": 12345678901234567890.10,\n \"x\":1}")}, {metadata: {encoding: btoa("binary/plain")}, data: btoa("\x00\xff")});
  const site = await site_of_run(t, known);
  const page = await open_page(t, site, address_of(known, "history"));
  await page.getByText(/^\d+ events \(\d+ of workflow tasks hidden\)$/).waitFor();
  await page.getByText("\"big\": 12345678901234567890.10").waitFor();
  await page.getByText("2 bytes of binary/plain").waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", {name: "Download"}).click()]);
  assert.match(download.suggestedFilename(), /^a_b_c_-[0-9a-f]{8}\.json$/); // case 79
  assert.deepEqual(JSON.parse(await readFile(await download.path(), "utf8")), {events: known.history.events});
  await page.check();
});

test("10,000 events: filtered, turned and opened, and nothing takes 100 ms", async (t) => {
  const known = training("long", {closed: true});
  const end = known.history.events.pop();
  for (let i = 0; known.history.events.length < 9_996; ++i) known.history.activity("step", {i}, -2000 + i / 10, {until: -1999 + i / 10});
  known.history.events.push({...end, eventId: String(known.history.events.length + 1)});
  const site = await site_of_run(t, known);
  const page = await open_page(t, site, address_of(known, "history"));
  await page.getByText(/^9,9\d\d events \(1\d of workflow tasks hidden\)$/).waitFor({timeout: 20_000});
  await page.evaluate(() => {
    globalThis.press = (name) => [...document.querySelectorAll(".history button")].find((button) => button.textContent === name).click();
  });
  const times = {
    "a letter in the filter": await worst_interaction(page, (i) => {
      const filter = document.querySelector(".history [data-filter]");
      filter.value = i % 2 ? "" : `"i":${i}`;
      filter.dispatchEvent(new Event("input"));
    }, 2),
    "the next page": await worst_interaction(page, () => globalThis.press("Next"), 2),
    "in full": await worst_interaction(page, (i) => globalThis.press(i % 2 ? "Compact" : "Full"), 2),
    "as JSON": await worst_interaction(page, (i) => globalThis.press(i % 2 ? "Compact" : "JSON"), 2),
    "an event": await worst_interaction(page, (i) => document.querySelectorAll("[data-event]")[i].click(), 2),
    "the timeline": await worst_interaction(page, (i) => document.getElementById(i % 2 ? "tab-pending" : "tab-timeline").click(), 2),
  };
  for (const [what, milliseconds] of Object.entries(times)) {
    console.log(`${what}: ${milliseconds.toFixed(1)} ms`);
    assert.ok(milliseconds < 100, `${what} took ${milliseconds} ms`);
  }
  await page.check();
});

// case 75 of tests/end_to_end/abuse.py
test("names, payloads and failures are text", async (t) => {
  const evil = "<img src=x onerror=\"globalThis.hit=1\">";
  const known = training(evil);
  const {events} = known.history;
  known.history.activity(evil, {[evil]: evil}, -5, {until: -4, failure: evil, queue: evil});
  known.history.add("WorkflowExecutionSignaled", {signalName: evil, input: payloads(evil), identity: evil});
  known.history.add("WorkflowTaskFailed", {failure: {message: evil, stackTrace: evil}, identity: evil, cause: evil});
  assert.ok(events.length > 30);
  const site = await site_of_run(t, known);
  const page = await open_page(t, site, address_of(known));
  for (const name of tab_names) {
    await page.getByRole("tab", {name}).click();
    if (name === "History") await page.getByRole("button", {name: "Full"}).click();
  }
  assert.equal(await page.locator("img").count(), 0);
  assert.equal(await page.evaluate(() => globalThis.hit), undefined);
  await page.check();
});

test("JSON is shown with a member a line and its numbers as they were written", () => {
  for (const text of ["{\"a\":[1,{\"b\":[]}],\"c\":{}}", "[]", "\"a{\\\"\"", "12345678901234567890.10", "{\"a\":{\"b\":null}}"]) {
    assert.equal(pretty_json(text).replaceAll(/\n\s*/g, "").replaceAll(": ", ":"), text);
  }
  assert.equal(pretty_json("{\"a\":[1,2],\"b\":{}}"), "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}");
});

test("who acts says why, and an error stays in its dialog", async (t) => {
  const asked = [];
  let refuse = true;
  const site = await site_of_run(t, training(), {more: ({path, body}) => {
    if (!/Cancel|Terminate|Signal/.test(path)) return undefined;
    asked.push([path, body]);
    return refuse ? [404, refusal(5, "WORKFLOW_ALREADY_COMPLETED", "workflow execution already completed")] : [200, {}];
  }});
  const page = await open_page(t, site, address_of(site.run));
  page.expected_errors.push(/404/);
  const execution = site.run.info.execution;
  const open = async (item) => {
    await page.getByRole("button", {name: "Actions"}).click();
    await page.getByRole("menuitem", {name: item}).click();
    return page.getByRole("dialog");
  };
  let dialog = await open("Terminate…");
  await dialog.getByLabel("Reason").fill("fan");
  await dialog.getByRole("button", {name: "Terminate"}).click();
  await dialog.getByText("Workflow execution already completed.").waitFor();
  refuse = false;
  await dialog.getByRole("button", {name: "Terminate"}).click();
  await dialog.waitFor({state: "hidden"});
  assert.deepEqual(asked.at(-1), ["/TerminateWorkflowExecution", {namespace: "default", workflowExecution: execution, reason: "fan", identity: "page"}]);
  dialog = await open("Send a signal…");
  await dialog.getByLabel("Signal").fill("rate/über");
  await dialog.getByLabel("Input").fill("fast");
  await dialog.getByRole("button", {name: "Send"}).click();
  await dialog.getByText("fast is not JSON. A text has quotes: \"fast\".").waitFor();
  await dialog.getByLabel("Input").fill("0.50\n\"ü\"");
  await dialog.getByRole("button", {name: "Send"}).click();
  await dialog.waitFor({state: "hidden"});
  const [path, {requestId, ...body}] = asked.at(-1);
  assert.equal(path, "/SignalWorkflowExecution");
  assert.match(requestId, /^page-/);
  assert.deepEqual(body.input.payloads.map(({data}) => Buffer.from(data, "base64").toString()), ["0.50", "\"ü\""]);
  assert.equal(body.signalName, "rate/über");
  await page.check();
});
