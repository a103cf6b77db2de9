// The list of runs: filters, the command that shows the same, what is live, and ending many.
import assert from "node:assert/strict";
import {execFile} from "node:child_process";
import test from "node:test";
import {promisify} from "node:util";
import {list_command, list_query, read_filter, shell_text, value_text} from "../../apps/web/run_query.js";
import {axe_problems, eventually, fits_width, looks, refusal, screenshot, worst_interaction} from "./harness.mjs";
import {at, lab, run_id, waiter} from "./made_up.mjs";
import {filter_refusal, lab_runs, many_runs, permit_run, run, site_of} from "./made_up_runs.mjs";
import {open_page} from "./one_browser.mjs";

for (const look of looks) {
  test(`nothing keeps anybody out, and it looks well: ${look.name}`, async (t) => {
    const state = lab();
    const runs = lab_runs();
    runs[1].execution.runId = state.lines[0].waiters[0].holderRunId;
    const page = await open_page(t, await site_of(t, runs, {state}), "#/workflows", look);
    await page.getByText("14 runs").waitFor();
    await screenshot(page, `workflows-${look.name}`);
    assert.deepEqual(await axe_problems(page), []);
    assert.ok(await fits_width(page), "no sideways scrolling");
    await page.getByLabel("Choose train-gan-42").check();
    await page.getByRole("button", {name: "Views"}).click();
    assert.deepEqual(await axe_problems(page), []);
    await page.keyboard.press("Escape");
    await page.getByRole("button", {name: "Terminate chosen…"}).click();
    await page.getByRole("dialog").waitFor();
    assert.deepEqual(await axe_problems(page), []);
    assert.ok(await fits_width(page), "no sideways scrolling");
    await page.check();
  });
}

test("a run in a line is called Waiting, also one far back, and Running once it has its slot", async (t) => {
  const state = lab();
  const [first] = state.lines[0].waiters;
  const far = run_id();
  state.lines[0].waiting = 60;
  const runs = [run("in-line", {run: first.holderRunId}), run("far-back", {run: far}), run("busy")];
  const site = await site_of(t, runs, {state, more: ({path}) => (path === "/pools/gpu-pool/waiters" ?
    [200, {waiters: [first, waiter("gpu-pool", 60, "far-back", 5, {holderRunId: far})]}] : undefined)});
  const page = await open_page(t, site, "#/workflows");
  const status = (id) => page.getByRole("row").filter({has: page.getByRole("link", {name: id})}).locator(".status");
  await status("far-back").getByText("Waiting").waitFor();
  assert.match(await status("in-line").textContent(), /Waiting/);
  assert.match(await status("busy").textContent(), /Running/);
  site.send("changes", {lines: [{pool: "gpu-pool", waiting: 0, waiters: []}]});
  await status("in-line").getByText("Running").waitFor();
  await page.check();
});

test("names are text, and any id has its link", async (t) => {
  const evil = "<img src=x onerror=\"globalThis.hit=1\">";
  const ids = [evil, "a/b?c#d%2F e'\"\\", "..", "ünï 🦆 中文", "x".repeat(1000)];
  const site = await site_of(t, ids.map((id) => run(id, {type: evil, queue: evil, parentExecution: {workflowId: id, runId: run_id()}})));
  const page = await open_page(t, site, "#/workflows");
  for (const id of ids) await page.getByRole("link", {name: id, exact: true}).first().waitFor();
  assert.equal(await page.locator("img").count(), 0);
  assert.equal(await page.evaluate(() => globalThis.hit), undefined);
  for (const id of ids) {
    const link = page.getByRole("link", {name: id, exact: true}).first();
    const href = await link.getAttribute("href");
    assert.equal(decodeURIComponent(href.split("/")[2]), id);
  }
  page.expected_errors.push(/404/);
  await page.getByRole("link", {name: ids[1], exact: true}).first().click();
  await page.getByRole("heading", {name: ids[1], exact: true}).waitFor();
  await eventually(() => site.requests.some(({path, body}) => path === "/DescribeWorkflowExecution" && body.execution.workflowId === ids[1]), "it is asked for");
  await page.check();
});

test("the filter is in the address, in the query and in the command, and survives a reload", async (t) => {
  const site = await site_of(t, lab_runs());
  const page = await open_page(t, site, "#/workflows");
  await page.getByText("14 runs").waitFor();
  await page.getByRole("button", {name: "lease_expired"}).click();
  await page.getByRole("button", {name: "force_released"}).click();
  await page.keyboard.press("/");
  await page.keyboard.type("permit:");
  await page.getByLabel("List filter").fill("ParentWorkflowId = 'it''s'");
  await page.keyboard.press("Enter");
  const query = "WorkflowId STARTS_WITH 'permit:' AND Outcome IN ('lease_expired', 'force_released') AND ParentWorkflowId = 'it''s'";
  await eventually(() => site.requests.at(-1).body.query === query, "the server is asked");
  await page.getByText("2 runs match").waitFor();
  assert.equal(await page.locator(".command code").textContent(), `permit workflow list --query "${query}" --address ${site.origin}`);
  await page.reload();
  await page.getByText("2 runs match").waitFor();
  assert.equal(await page.getByRole("button", {name: "lease_expired"}).getAttribute("aria-pressed"), "true");
  assert.equal(await page.getByLabel("Workflow ID begins with").inputValue(), "permit:");
  await page.getByRole("button", {name: "Clear"}).click();
  await page.getByText("14 runs").waitFor();
  assert.match(page.url(), /#\/workflows$/);
  await page.getByLabel("Started", {exact: true}).selectOption("1h");
  await eventually(() => /^StartTime >= '.*Z'$/.test(site.requests.at(-1).body.query), "the last hour");
  await page.check();
});

test("a value means itself, in the query and in a shell", async () => {
  const odd = ["it's", "a\\b", "\"quoted\"", "$HOME `id` !x", "two\nlines", "plain", "-x", "ünï", "'", "\\'"];
  for (const text of odd) {
    const filter = read_filter(new URLSearchParams({id: text.trim()}));
    assert.equal(list_query(filter, 0), `WorkflowId STARTS_WITH ${value_text(text)}`);
    const {stdout} = await promisify(execFile)("sh", ["-c", `printf %s ${shell_text(value_text(text))}`]);
    assert.equal(stdout, value_text(text));
  }
  assert.equal(value_text("it's a\\b"), "'it''s a\\\\b'");
  assert.equal(list_command("", "http://127.0.0.1:7376"), "permit workflow list");
  assert.equal(list_command("Outcome = 'held'", "http://127.0.0.1:7376"), "permit workflow list --query \"Outcome = 'held'\"");
});

test("what the server says about a filter is shown beside it", async (t) => {
  const site = await site_of(t, lab_runs(), {more: ({body}) => (/^Status/.test(body?.query) ? filter_refusal : undefined)});
  const page = await open_page(t, site, "#/workflows");
  page.expected_errors.push(/400/);
  await page.getByLabel("List filter").fill("Status = 'Running'");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").getByText("did you mean ExecutionStatus?").waitFor();
  assert.equal(await page.getByLabel("List filter").getAttribute("aria-invalid"), "true");
  assert.deepEqual(await axe_problems(page), []);
  await page.getByLabel("List filter").fill("");
  await page.keyboard.press("Enter");
  await page.getByText("14 runs").waitFor();
  await page.check();
});

test("views are saved, opened and deleted", async (t) => {
  const site = await site_of(t, lab_runs());
  const page = await open_page(t, site, "#/workflows?status=Failed");
  const menu = async (item) => {
    await page.getByRole("button", {name: "Views"}).click();
    await page.getByRole("menuitem", {name: item}).click();
  };
  await menu("Save this view…");
  await page.getByRole("dialog").getByLabel("Name").fill("what <failed>");
  await page.keyboard.press("Enter");
  await menu("All runs");
  await page.getByText("14 runs").waitFor();
  await page.reload();
  await menu("what <failed>");
  await page.getByText("1 run matches").waitFor();
  assert.match(page.url(), /status=Failed/);
  await menu("Delete a view…");
  await page.getByRole("dialog").getByRole("button", {name: "Delete"}).click();
  await page.getByRole("button", {name: "Views"}).click();
  assert.equal(await page.getByRole("menuitem", {name: "what <failed>"}).count(), 0);
  await page.check();
});

test("what happens is seen at once, and nothing jumps", async (t) => {
  const runs = [run("old"), permit_run("gpu", "0", null)];
  const site = await site_of(t, runs);
  const page = await open_page(t, site, "#/workflows?status=Running");
  const row = (id) => page.getByRole("row").filter({has: page.getByRole("link", {name: id})});
  await row("old").waitFor();
  const news = [run("new-1"), run("new-2"), run("other", {status: "COMPLETED", closed: 0})];
  site.runs = [...news, ...runs];
  site.send("changes", {workflows: [...news, runs[0]].map((known) => ({workflowId: known.execution.workflowId, runId: known.execution.runId,
    status: known === runs[0] ? "WORKFLOW_EXECUTION_STATUS_FAILED" : "WORKFLOW_EXECUTION_STATUS_RUNNING", startTime: known.startTime,
    ...(known === runs[0] ? {closeTime: at(0)} : {})})),
  holds: [{runId: runs[1].execution.runId, pool: "gpu", slot: "0", state: "closed", outcome: "released", closedAt: at(0)}]});
  await row("old").getByText("Failed").waitFor();
  await row("permit:gpu:0").getByText("released").waitFor();
  await page.getByRole("button", {name: "2 new"}).waitFor();
  assert.equal(await page.getByRole("row").count(), 3, "the head and the two of before");
  await page.getByRole("button", {name: "2 new"}).click();
  await row("new-1").waitFor();
  assert.equal(await page.getByRole("row").count(), 5);
  assert.equal(await page.getByRole("button", {name: /new$/}).count(), 0);
  await page.check();
});

test("1,000 rows: sorted as far as they are loaded, and nothing takes 100 ms", async (t) => {
  const site = await site_of(t, many_runs(1100));
  const page = await open_page(t, site, "#/workflows");
  for (let loaded = 100; loaded < 1000; loaded += 100) {
    await page.getByText(`${loaded.toLocaleString("en")} loaded`).waitFor();
    await page.getByRole("button", {name: "Load more"}).click();
  }
  await page.getByText("1,100 runs, 1,000 loaded").waitFor();
  await page.getByRole("button", {name: "Workflow ID"}).click();
  await page.getByText("only what is loaded is sorted").waitFor();
  assert.equal(await page.getByRole("columnheader", {name: "Workflow ID"}).getAttribute("aria-sort"), "ascending");
  const ids = async () => page.locator(".long tbody a").allTextContents();
  assert.deepEqual((await ids()).slice(0, 3), ["job-0", "job-1", "job-2"]);
  const times = {
    "a sort": await worst_interaction(page, (i) => document.querySelectorAll(".sort")[i % 9].click(), 5),
    "choosing all": await worst_interaction(page, () => document.querySelector(".long thead input").click(), 5),
    "scrolling": await worst_interaction(page, (i) => {
      document.querySelector(".long").scrollTop = i * 3000;
    }, 5),
    "a letter in the filter": await worst_interaction(page, () => {
      const filter = document.querySelector("[data-filter]");
      filter.value = "";
      filter.dispatchEvent(new Event("input"));
    }, 5),
  };
  for (const [what, milliseconds] of Object.entries(times)) {
    console.log(`${what}: ${milliseconds.toFixed(1)} ms`);
    assert.ok(milliseconds < 100, `${what} took ${milliseconds} ms`);
  }
  assert.ok(await page.locator(".long tbody tr").count() < 100, "only the rows in sight are there");
  await page.evaluate(() => {
    document.querySelector(".long").scrollTop = 1e9;
  });
  await eventually(async () => (await page.locator(".long tbody:not(.spacer) tr").last().getAttribute("aria-rowindex")) === "1001", "the last row");
  await page.check();
});

test("an empty server says what to type, and one that is away can be asked again", async (t) => {
  let away = true;
  const site = await site_of(t, [], {more: () => (away ? [503, refusal(14, "UNAVAILABLE", "the server is stopping")] : undefined)});
  const page = await open_page(t, site, "#/workflows", {wait: false});
  page.expected_errors.push(/503/);
  await page.getByText("The server is stopping.").waitFor();
  away = false;
  await page.getByRole("button", {name: "Try again"}).click();
  await page.getByText("Nothing has run yet").waitFor();
  await page.getByText(/permit workflow start train-1/).waitFor();
  assert.deepEqual(await axe_problems(page), []);
  await page.check();
});
