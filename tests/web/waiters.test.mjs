// The page of those who wait: their place, their wait, and what stands between them and a slot.
import assert from "node:assert/strict";
import test from "node:test";
import {counts_of} from "../../apps/web/pages/wait_histogram.js";
import {median} from "../../apps/web/pages/recent_waits.js";
import {level_of, ratio_text} from "../../apps/web/pages/waiter_row.js";
import {axe_problems, eventually, fits_width, fixture_site, focused, looks, refusal, screenshot,
  worst_interaction} from "./harness.mjs";
import {open_page} from "./one_browser.mjs";
import {at, hold, in_order, lab, past, pool, serve_ledger, snapshot, waiter} from "./made_up.mjs";


// A lab in which many wait; and its ledger.
function crowd() {
  const state = lab();
  const [gpu, , rigs] = state.pools;
  Object.assign(gpu, {waiting: 4, held: 3});
  Object.assign(rigs, {waiting: 1, oldestWait: at(-400)});
  state.lines = [
    {pool: "gpu-pool", waiting: 4, waiters: [
      waiter("gpu-pool", 1, "eval-nightly", 61, {priority: 1, reason: "the report of the morning"}),
      waiter("gpu-pool", 2, "python sweep.py (ana@gpu-host-a:771)", 12, {priority: 3, count: 2, expires: at(588), holderRunId: ""}),
      waiter("gpu-pool", 3, "train-gan-42", 3, {order: "any", priority: 3, probes: 5}),
      waiter("gpu-pool", 4, "train-gan-43", 41, {state: "backing_off", position: undefined, order: "any", probes: 2, expires: at(17)})]},
    {pool: "lab-rig", waiting: 1, waiters: [waiter("lab-rig", 9, "hil-test-100", 400, {position: 1, priority: 3})]},
  ];
  const ended = [];
  for (let i = 0; i < 60; ++i) {
    const waited = [0, 0, 0, .4, 3, 20, 45][i % 7];
    ended.push(past("gpu-pool", String(i % 4), "released", 400 + i * 120, 400 + i * 120 - 100, {holder: `old-${i}`, ...(waited ? {requestedAt: at(-400 - i * 120 - waited)} : {})}));
  }
  return {state, ledger: in_order(ended)};
}

// Answers as the server does: the ledger, and why somebody waits.
function serve({state, ledger, all}, more = async () => undefined) {
  const ledger_answer = serve_ledger(() => ledger);
  return async (asked) => {
    const other = await more(asked);
    if (other) return other;
    const [, id] = /^\/waiters\/(\d+)\/why$/.exec(asked.path) ?? [];
    if (!id) return ledger_answer(asked);
    const waiters = all ?? state.lines.flatMap((line) => line.waiters);
    const found = waiters.find((one) => one.id === Number(id));
    const blockedBy = state.pools.find((one) => one.pool === found.pool).slots.map(({permit}) => permit).filter(Boolean);
    return [200, {waiter: found, reason: "slots_held", blockedBy, message: (blockedBy.length === 1 ? "1 slot that would do is held; " : `${blockedBy.length} slots that would do are held; `) +
      (found.position ? `position ${found.position} in the line` : `rounds that found no slot: ${found.probes}`)}];
  };
}

const row = (page, name) => page.getByRole("row", {name});

for (const look of looks) {
  test(`it looks well, and keeps nobody out: ${look.name}`, async (t) => {
    const made = crowd();
    const page = await open_page(t, await fixture_site(t, made.state, serve(made)), "#/waiters", look);
    await page.getByText("3 slots that would do are held").first().waitFor();
    await page.getByText("Of the last 60 holds of all pools.").waitFor();
    assert.deepEqual(await axe_problems(page), []);
    assert.ok(await fits_width(page), "no sideways scrolling");
    await screenshot(page, `waiters-${look.name}`);
    await page.check();
  });
}

test("each who waits is told with place, wait, ratio and what blocks it, soonest first", async (t) => {
  const made = crowd();
  const page = await open_page(t, await fixture_site(t, made.state, serve(made)), "#/waiters");
  await row(page, /eval-nightly/).getByText("3 slots that would do are held; position 1 in the line").waitFor();
  await page.getByText("5 wait for 2 pools; the longest has waited 6m").waitFor();
  const text = async (name) => (await row(page, name).innerText()).replace(/\s+/g, " ");
  assert.match(await text(/eval-nightly/), /^1 eval-nightly the report of the morning 1m [0-3]\ds ! long \d+\.\d × median wait \(3s\) gpu-pool … waiting fair, priority 1 slot 1 train-vit-04 lease (\ds|1\ds) and 2 more/);
  assert.match(await text(/sweep\.py/), /2 python sweep\.py \(ana@gpu-host-a:771\) [12]\ds ! slow .*gpu-pool … waiting fair, priority 3, wants 2 slots gives up in 9m \d\ds/);
  assert.match(await text(/train-gan-42/), /3 train-gan-42 [1-3]?\ds .*any, asked 5 times before/);
  assert.match(await text(/train-gan-43/), /^- train-gan-43 [45]\ds ! long .*… waiting any, asked 2 times before asks again in 1?\ds, or when a slot is free .* asks by itself$/);
  assert.match(await text(/hil-test-100/), /6m \d\ds ! very long/);
  await row(page, /eval-nightly/).getByText("and 2 more").click();
  assert.deepEqual(await row(page, /eval-nightly/).locator(".blocker .holder").allTextContents(),
    ["train-vit-04", "python train.py (ana@gpu-host-a:4121)", "train-llama-14"]);
  await page.getByText("is not first come, first served").waitFor();
  await page.check();
});

test("a wait turns slow before one's eyes, and thresholds have words", async (t) => {
  const made = crowd();
  made.state.lines[0].waiters[2].since = at(-3);
  const page = await open_page(t, await fixture_site(t, made.state, serve(made)), "#/waiters?q=gan-42");
  await row(page, /train-gan-42/).getByText("! slow").waitFor();
  assert.equal(await page.locator("table.waiters tbody tr").count(), 1, "the filter of the address");
  assert.deepEqual([4999, 5000, 30_000, 300_000].map((ms) => level_of(ms)?.word), [undefined, "slow", "long", "very long"]);
  assert.equal(ratio_text(45_000, {wait: 20_000, hold: 5}), "2.3 × median wait (20s)");
  assert.equal(ratio_text(45_000, {hold: 300_000}), "0.1 × median hold (5m 00s)");
  assert.equal(ratio_text(45_000, {}), "");
  assert.equal(median([3, 1]), undefined);
  assert.equal(median([9, 1, 3, 5]), 4);
  assert.deepEqual(counts_of([0, 0, 900, 5000, 29_000, 61_000, 1e9]), [2, 1, 1, 1, 1, 0, 1]);
});

test("the line moves as it happens, and why is asked again", async (t) => {
  const made = crowd();
  const site = await fixture_site(t, made.state, serve(made));
  const page = await open_page(t, site, "#/waiters?pool=gpu-pool");
  await row(page, /eval-nightly/).getByText("position 1 in the line").waitFor();
  assert.equal(await row(page, /hil-test-100/).count(), 0);
  const asked = () => site.requests.filter(({path}) => path === "/waiters/2/why").length;
  const before = asked();
  const [, second, ...rest] = made.state.lines[0].waiters;
  made.state.lines[0] = {pool: "gpu-pool", waiting: 4, waiters: [{...second, position: 1}, ...rest, waiter("gpu-pool", 5, "train-new", 0)]};
  site.send("changes", {lines: [made.state.lines[0]], pools: [{...made.state.pools[0], partial: true, slots: []}]});
  await row(page, /train-new/).waitFor();
  await row(page, /eval-nightly/).waitFor({state: "detached"});
  assert.match(await row(page, /sweep\.py/).innerText(), /^1\b/);
  await eventually(() => asked() > before, "asked again");
  await row(page, /sweep\.py/).getByText("position 1 in the line").waitFor();
  site.send("changes", {lines: [{pool: "gpu-pool", waiting: 0, waiters: []}], pools: [{...made.state.pools[0], waiting: 0, partial: true, slots: []}]});
  await page.getByRole("heading", {name: "Nobody waits for gpu-pool"}).waitFor();
  await page.getByText("permit run -p gpu-pool --wait 10m -- sleep 60").waitFor();
  assert.deepEqual(await axe_problems(page), []);
  await page.check();
});

test("somebody is removed from the line by keyboard alone, and it is on record", async (t) => {
  const made = crowd();
  const site = await fixture_site(t, made.state, serve(made, async ({method}) => (method === "DELETE" ? [200, {}] : undefined)));
  const page = await open_page(t, site, "#/waiters");
  await row(page, /eval-nightly/).waitFor();
  for (let i = 0; i < 60 && !/Remove eval-nightly/.test(await focused(page)); ++i) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", {name: "Remove eval-nightly from the line of gpu-pool?"});
  await dialog.getByText("is number 1 in line").waitFor();
  await page.keyboard.type("the report can wait");
  await page.keyboard.press("Enter");
  await dialog.waitFor({state: "hidden"});
  const {path, query} = site.requests.find(({method}) => method === "DELETE");
  assert.deepEqual([path, query.get("reason"), query.get("identity")], ["/waiters/1", "the report can wait", "page"]);
  assert.equal(await row(page, /train-gan-43/).getByRole("button").count(), 0, "who stands in no line cannot be removed from it");
  await page.check();
});

test("a long line is told by its head, and as a whole when asked; 1,000 are no burden", async (t) => {
  const all = Array.from({length: 1000}, (_, i) => waiter("cluster", i + 1, `train-${i}`, 2000 - i, {priority: 3}));
  const slots = [{slot: "0", permit: hold("cluster", "0")}];
  const made = {state: snapshot({pools: [pool("cluster", slots, {waiting: 1200, oldestWait: at(-2000)})], lines: [{pool: "cluster", waiting: 1200, waiters: all.slice(0, 50)}]}), ledger: [], all};
  let fails = true;
  const site = await fixture_site(t, made.state, serve(made, async ({path}) => (path !== "/pools/cluster/waiters" ? undefined :
    fails ? [503, refusal(14, "UNAVAILABLE", "busy")] : [200, {waiters: all}])));
  const page = await open_page(t, site, "#/waiters");
  page.expected_errors.push(/503/);
  await page.getByText("and 1,150 more wait for cluster").waitFor();
  await page.getByRole("button", {name: "Show all"}).click();
  await page.getByText("and 1,150 more wait for cluster: busy").waitFor();
  fails = false;
  await page.getByRole("button", {name: "Show all"}).click();
  await page.getByText("and 200 more wait for cluster, which are not listed").waitFor();
  await page.getByText("The first 50 of 1,000 are shown.").waitFor();
  assert.ok(site.requests.filter(({path}) => path.endsWith("/why")).length < 60, "only of those in view");
  const times = {
    "a letter in the filter": await worst_interaction(page, (i) => {
      const filter = document.querySelector("[data-filter]");
      filter.value = ["train-9", "train-99", "train-9", "train-99"][i % 4];
      filter.dispatchEvent(new Event("input"));
    }, 4),
    scrolling: await worst_interaction(page, (i) => scrollTo(0, i * 900), 9),
  };
  await page.getByRole("searchbox").fill("");
  await page.getByRole("button", {name: "Show 50 more"}).click();
  await page.getByText("The first 100 of 1,000 are shown.").waitFor();
  assert.equal(await page.locator("table.waiters tbody tr").count(), 100);
  for (const [what, milliseconds] of Object.entries(times)) {
    console.log(`${what}: ${milliseconds.toFixed(1)} ms`);
    assert.ok(milliseconds < 100, `${what} took ${milliseconds} ms`);
  }
  await page.check();
});

test("names are text, and what the server cannot say is said", async (t) => {
  const evil = "<img src=x onerror=\"globalThis.hit=1\">";
  const made = crowd();
  made.state.lines[0].waiters[0] = waiter("gpu-pool", 1, evil, 64, {reason: evil});
  made.state.pools[0].slots[1].permit.holder = evil;
  const site = await fixture_site(t, made.state, serve(made, async ({path}) => (path === "/permits" || path === "/waiters/2/why" ?
    [503, refusal(14, "UNAVAILABLE", evil)] : undefined)));
  const page = await open_page(t, site, "#/waiters");
  page.expected_errors.push(/503/);
  await page.getByRole("alert").getByText(`The waits of late could not be read: ${evil}`).waitFor();
  await row(page, /sweep\.py/).getByText(`why is not known: ${evil}`).waitFor();
  assert.equal(await page.locator("img").count(), 0);
  assert.equal(await page.evaluate(() => globalThis.hit), undefined);
  await page.check();
});

test("the pools page leads to both pages, and they lead on", async (t) => {
  const made = crowd();
  const page = await open_page(t, await fixture_site(t, made.state, serve(made)), "#/pools");
  await page.getByRole("link", {name: "4 waiting"}).click();
  await row(page, /eval-nightly/).waitFor();
  assert.match(page.url(), /#\/waiters\?pool=gpu-pool$/);
  assert.equal(await page.getByLabel("Pool", {exact: true}).inputValue(), "gpu-pool");
  await page.getByRole("link", {name: "Timeline of gpu-pool"}).click();
  await page.getByRole("heading", {name: "As a table"}).waitFor();
  assert.match(page.url(), /#\/timeline\?pool=gpu-pool$/);
  await page.goto(`${page.url().split("#")[0]}#/pools`);
  await page.getByRole("button", {name: "Actions on lab-rig", exact: true}).click();
  await page.getByRole("menuitem", {name: "Who waits for it"}).click();
  await row(page, /hil-test-100/).waitFor();
  await page.check();
});
