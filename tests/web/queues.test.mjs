// Task queues and workers: who polls, what waits, who is silent, and that it is asked for only while
// somebody looks.
import assert from "node:assert/strict";
import {access} from "node:fs/promises";
import path from "node:path";
import test, {describe} from "node:test";
import {axe_problems, eventually, fits_width, fixture_site, focused, looks, real_server, repository, screenshot,
  web_files, worst_interaction} from "./harness.mjs";
import {at, heartbeat, lab, queue, snapshot} from "./made_up.mjs";
import {open_page} from "./one_browser.mjs";

const has_server = await access(process.env.PERMIT_BIN ?? path.join(repository, "build-dev/permit")).then(() => true, () => false);
const list_queues = "/permit.api.v1.PermitService/ListTaskQueues";

function queues() {
  return [
    queue("permits", {polled: {"7371@gpu-host-a (built in)": 12}}),
    queue("training", {polled: {"4121@gpu-host-a": 3, "880@gpu-host-b": 31}, backlog: 2, oldest: 1, addedPerSecond: 3.42, dispatchedPerSecond: 3.4}),
    queue("training", {kind: "activity", polled: {"4121@gpu-host-a": 8, "902@gpu-host-c": 2}, addedPerSecond: 0.05}),
    queue("evaluation", {kind: "activity", backlog: 3, oldest: 91}),
    queue("nightly-reports"),
    queue("sticky:4121@gpu-host-a:0197", {polled: {"4121@gpu-host-a": 3}}),
  ];
}

function heartbeats() {
  return [
    heartbeat("4121@gpu-host-a", "training"),
    heartbeat("880@gpu-host-b", "training", {ago: 47, used: 10, free: 0, activityTaskSlotsInfo: {currentUsedSlots: 1, currentAvailableSlots: 3,
      totalProcessedTasks: 9, totalFailedTasks: "3"}}),
    heartbeat("17@gpu-host-d", "evaluation", {status: "WORKER_STATUS_SHUTDOWN", ago: 200, used: 0, free: 10}),
    heartbeat("18@gpu-host-d", "evaluation", {status: "WORKER_STATUS_SHUTTING_DOWN", used: 1, workflowTaskSlotsInfo: {currentUsedSlots: 5,
      currentAvailableSlots: -1}}),
  ];
}

// The page with these queues in the stream and when asked for, and these heartbeats.
async function site_with(t, known = queues(), beats = heartbeats()) {
  const site = await fixture_site(t, {...lab(), queues: known}, async ({path, query}) => {
    if (path === list_queues) return [200, {queues: site.known}];
    if (path !== "/workers") return undefined;
    const from = Number(query.get("nextPageToken") ?? 0);  // pages of 300
    return [200, {workersInfo: site.beats.slice(from, from + 300).map((beat) => ({workerHeartbeat: beat})),
      ...(site.beats.length > from + 300 ? {nextPageToken: String(from + 300)} : {})}];
  });
  return Object.assign(site, {known, beats});
}

function row(page, name, kind = "") {
  return page.getByRole("row").filter({has: page.getByRole("rowheader", {name})}).filter({hasText: kind}).first();
}

for (const look of looks) {
  test(`nothing keeps anybody out, and it looks well: ${look.name}`, async (t) => {
    const site = await site_with(t);
    const page = await open_page(t, site, "#/queues?sticky=1&sort=-backlog", look);
    await page.getByText("880@gpu-host-b").first().waitFor();
    await page.getByRole("button", {name: "training"}).first().click();
    assert.deepEqual(await axe_problems(page), []);
    assert.ok(await fits_width(page), "no sideways scrolling");
    await screenshot(page, `queues-${look.name}`);
    await page.check();
  });
}

test("a queue with tasks and nobody who polls is red, says for how long, and how to help it", async (t) => {
  const page = await open_page(t, await site_with(t), "#/queues");
  const bad = row(page, "evaluation");
  await bad.waitFor();
  assert.match(await page.locator("tbody tr").first().innerText(), /evaluation/, "trouble comes first");
  assert.match(await bad.innerText(), /✕ none\s+3\s+1m [3-5]\ds/);
  const more = page.locator("tr.more:visible").first();
  assert.match(await more.innerText(), /✕ No worker polls this queue\.\s*3 tasks wait, the first for 1m [3-5]\ds\./);
  await more.getByText('permit.Worker("evaluation", activities=[…]).run()').waitFor();
  await page.getByText("5 queues, 1 without a worker · 5 workers, 1 silent · 16 of 43 slots in use").waitFor();
  await page.check();
});

test("that the last poller has left is seen as soon as the stream tells it", async (t) => {
  const before = [queue("permits", {polled: {"7371@gpu-host-a": 2}}), queue("training", {polled: {"4121@gpu-host-a": 3}})];
  const site = await site_with(t, before, []);
  const page = await open_page(t, site, "#/queues");
  await row(page, "training").waitFor();
  assert.equal(await page.getByText("No worker polls this queue.").count(), 0);
  const told = async (queues, text) => {
    site.known = queues;
    const began = performance.now();
    site.send("changes", {queues, queuesChanged: true});
    await page.getByText(text).waitFor();
    assert.ok(performance.now() - began < 4_500, `${text} before it is asked for, every 5 s`);
  };
  await told([before[0], queue("training")], "No worker polls this queue.");
  await told([before[0], queue("training", {backlog: 1, oldest: 0})], "1 task waits, the first for");
  await told([queue("permits", {backlog: 2, oldest: 9}), before[1]], "permit worker start --task-queue permits");
  await page.getByText("2 tasks wait").waitFor();
  assert.equal(await page.getByText("No worker polls this queue.").count(), 1);
  await page.check();
});

test("workers: slots, cache, what they did, and how they stand, in words", async (t) => {
  const page = await open_page(t, await site_with(t), "#/queues");
  const text = async (name) => (await row(page, name).innerText()).replace(/\s+/g, " ");
  await row(page, "18@gpu-host-d").waitFor();
  assert.match(await text("4121@gpu-host-a"),
    /gpu-host-a · pid 4121 ● running permit-cpp 0\.1\.0 2026-11-18\.3 training 2 of 10 2 of 10 41 98% hits 1\.6k \d+s ago/);
  assert.match(await text("880@gpu-host-b"), /! silent .* 10 of 10, full 1 of 4 .* ! 3 failed \d\ds ago/);
  assert.match(await text("17@gpu-host-d"), /■ stopped/);
  assert.match(await text("18@gpu-host-d"), /– draining .* 5 in use 1 of 9/);
  assert.match(await text("902@gpu-host-c"), /gpu-host-c · pid 902 ○ polling sends no heartbeat training – – – – [1-3]?\ds ago/);
  assert.equal(await page.getByRole("row").filter({hasText: "4121@gpu-host-a"}).count(), 1, "one line for heartbeats and polls");
});

test("by keyboard alone: sort, filter, see who polls, go to the workflows", async (t) => {
  const page = await open_page(t, await site_with(t), "#/queues");
  await row(page, "18@gpu-host-d").waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("gpu-host-b");
  await row(page, "evaluation").waitFor({state: "detached"});
  assert.match(page.url(), /#\/queues\?q=gpu-host-b$/);
  await page.keyboard.press("Escape");
  await row(page, "evaluation").waitFor();
  for (let i = 0; i < 20 && await focused(page) !== "BUTTON Backlog"; ++i) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  const names = () => page.getByRole("table").first().getByRole("rowheader").allInnerTexts();
  assert.deepEqual((await names()).slice(0, 2), ["evaluation", "training"]);
  assert.equal(await page.getByRole("columnheader", {name: "Backlog"}).getAttribute("aria-sort"), "descending");
  await page.keyboard.press("Enter");
  assert.equal((await names()).at(-1), "evaluation");
  assert.match(page.url(), /sort=backlog$/);
  assert.equal(await focused(page), "BUTTON Backlog");
  await page.reload();
  await row(page, "evaluation").waitFor();
  assert.equal((await names()).at(-1), "evaluation", "the order is in the address");
  await row(page, "training", "workflow").getByRole("button").focus();
  await page.keyboard.press("Enter");
  await page.getByRole("list", {name: "Pollers"}).getByText(/^polled \d+s ago$/).first().waitFor();
  await page.keyboard.press("Tab");
  assert.match(await focused(page), /^A Workflows of the queue training$/);
  await page.keyboard.press("Enter");
  await page.waitForURL(/#\/workflows\?query=TaskQueue%20%3D%20%22training%22$/);
});

test("sticky queues are shown on demand", async (t) => {
  const page = await open_page(t, await site_with(t), "#/queues");
  await row(page, "permits").waitFor();
  assert.equal(await row(page, "sticky:").count(), 0);
  await page.getByLabel("Sticky queues (1)").check();
  await row(page, "sticky:").waitFor();
  assert.match(page.url(), /sticky=1/);
});

test("names are text, whatever they look like", async (t) => {
  const evil = "<img src=x onerror=\"globalThis.hit=1\">";
  const long = "q".repeat(300);
  const site = await site_with(t, [queue(evil, {polled: {[evil]: 3}}), queue(evil, {kind: "activity", backlog: 1, oldest: 5}),
    queue(long, {polled: {[long]: 2}})], [heartbeat(evil, evil, {sdkName: evil, hostInfo: {hostName: evil, processId: evil},
    deploymentVersion: {buildId: evil}}), {}]);
  const page = await open_page(t, site, "#/queues");
  await page.getByText(evil, {exact: true}).first().waitFor();
  for (const button of await page.locator(".disclose").all()) await button.click();
  await page.getByText("sends no heartbeat").first().waitFor();
  assert.equal(await page.locator("img").count(), 0);
  assert.equal(await page.evaluate(() => globalThis.hit), undefined);
  assert.match(await page.locator("tbody a").first().getAttribute("href"), /%20%3D%20%22%3Cimg%20src%3Dx%20onerror%3D%5C%22/);
  assert.ok(await fits_width(page), "no sideways scrolling");
  await page.check();
});

test("before anything is known the page says so", async (t) => {
  const page = await open_page(t, await site_with(t, [], []), "#/queues");
  await page.getByText("No queue is known yet.").waitFor();
  await page.getByText("No worker is known.").waitFor();
  assert.deepEqual(await axe_problems(page), []);
});

describe("what takes its time", {concurrency: true}, () => {
  test("who polled too long ago does not poll, unless only the stream says when", async (t) => {
    const old = [queue("training", {polled: {"4121@gpu-host-a": 200}, backlog: 1, oldest: 100})];
    const page = await open_page(t, await site_with(t, old, []), "#/queues");
    await page.getByText("No worker polls this queue.").waitFor();
    await page.locator(".is-silent").waitFor();
    const site = await fixture_site(t, {...lab(), queues: old});
    const other = await open_page(t, site, "#/queues");
    other.expected_errors.push(/404/);
    await other.getByText("This server does not collect heartbeats of workers.").waitFor();
    assert.equal(await other.getByText("No worker polls this queue.").count(), 0);
    const asked = site.requests.length;
    await new Promise((done) => setTimeout(done, 6_000));
    assert.equal(site.requests.length, asked, "what is not there is not asked for again");
    await other.check();
  });

  test("heartbeats are asked for every 5 s, and not while the page is hidden", async (t) => {
    const site = await site_with(t);
    const page = await open_page(t, site, "#/queues");
    const asked = () => site.requests.filter(({path}) => path === "/workers").length;
    await eventually(() => asked() > 0, "asked at once");
    site.beats = [heartbeat("55@gpu-host-z", "training")];
    await page.getByText("55@gpu-host-z").first().waitFor();
    // By the page's own account of its requests, which knows nothing of how long the test takes.
    const begun = await page.evaluate(() => performance.getEntriesByType("resource")
      .filter(({name}) => /\/workers$/.test(name)).map(({startTime}) => startTime));
    assert.ok(begun.length > 1, "asked again");
    const waits = begun.slice(1).map((time, i) => time - begun[i]);
    assert.ok(waits.every((wait) => wait > 4_900 && wait < 9_500), `${waits} ms`);
    await page.evaluate(() => {
      Object.defineProperty(document, "hidden", {value: true, configurable: true});
      document.dispatchEvent(new Event("visibilitychange"));
    });
    const before = asked();
    await new Promise((done) => setTimeout(done, 6_500));
    assert.equal(asked(), before, "nobody looks");
    await page.evaluate(() => {
      delete document.hidden;
      document.dispatchEvent(new Event("visibilitychange"));
    });
    await eventually(() => asked() > before, "asked at once, when somebody looks again", 4_500);
    await page.evaluate(() => location.hash = "#/pools");
    await page.getByRole("heading", {name: "gpu-pool"}).waitFor();
    const last = asked();
    await new Promise((done) => setTimeout(done, 5_500));
    assert.equal(asked(), last, "the page is closed");
    await page.check();
  });
});

test("500 queues and 500 workers: nothing takes 100 ms", async (t) => {
  const many = [];
  const beats = [];
  for (let i = 0; i < 500; ++i) {
    const identity = `${1000 + i}@host-${i % 40}`;
    many.push(queue(`queue-${i}`, {polled: i % 9 ? {[identity]: i % 30} : {}, ...(i % 9 ? {} : {backlog: i, oldest: i})}));
    beats.push(heartbeat(identity, `queue-${i}`, {used: i % 10}));
  }
  const page = await open_page(t, await site_with(t, many, beats), "#/queues");
  await page.getByText("500 workers").waitFor();
  assert.equal(await page.locator("table").first().locator("tbody tr:not(.more)").count(), 25);
  const times = {
    "a letter in the filter": await worst_interaction(page, (i) => {
      const filter = document.querySelector("[data-filter]");
      filter.value = i % 2 ? "" : `host-${i}`;
      filter.dispatchEvent(new Event("input"));
    }, 4),
    "sorting the queues": await worst_interaction(page, () => document.querySelectorAll(".sort")[3].click(), 4),
    "sorting the workers": await worst_interaction(page, () => document.querySelectorAll("table")[1].querySelector(".sort").click(), 4),
    "opening a queue": await worst_interaction(page, (i) => document.querySelectorAll(".disclose")[i].click(), 4),
  };
  for (const [what, milliseconds] of Object.entries(times)) {
    console.log(`${what}: ${milliseconds.toFixed(1)} ms`);
    assert.ok(milliseconds < 100, `${what} took ${milliseconds} ms`);
  }
  await page.getByRole("button", {name: "Show more: 25 of 500 are shown"}).first().click();
  await page.getByRole("button", {name: "Show more: 100 of 500 are shown"}).first().waitFor();
  await page.check();
});

test("with the real server: a poller comes, and its leaving is seen within 5 s", {skip: !has_server && "no permit is built"}, async (t) => {
  const site = await real_server(t, {args: ["--no-demo-pool", "--ui-asset-path", web_files]});
  const page = await open_page(t, site, "#/queues");
  page.expected_errors.push(/404/);  // a server that does not list workers
  await row(page, "permits").waitFor();
  const leave = new AbortController();
  const poll = fetch(`${site.origin}/temporal.api.workflowservice.v1.WorkflowService/PollWorkflowTaskQueue`, {method: "POST",
    headers: {"Content-Type": "application/json"}, signal: leave.signal,
    body: JSON.stringify({namespace: "default", taskQueue: {name: "work"}, identity: "77@gpu-host-q", pollWait: "30s"})}).catch(() => null);
  await row(page, "work").waitFor();
  await page.getByText("77@gpu-host-q").waitFor();
  assert.equal(await page.getByText("No worker polls this queue.").count(), 0);
  leave.abort();
  await poll;
  const began = performance.now();
  await page.getByText("No worker polls this queue.").waitFor({timeout: 20_000});
  assert.ok(performance.now() - began < 9_000, `seen after ${performance.now() - began} ms`);
  await site.api("POST", "/workflows/job-1", {workflowType: {name: "Job"}, taskQueue: {name: "work"}});
  await page.getByText("1 task waits, the first for").waitFor();
  await screenshot(page, "queues-real");
  await page.check();
});
