// The timeline: who held what, when, and how it ended; as a picture and as a table.
import assert from "node:assert/strict";
import test from "node:test";
import {readFile} from "node:fs/promises";
import {csv_cell} from "../../apps/web/pages/hold_words.js";
import {axe_problems, eventually, fits_width, fixture_site, focused, looks, refusal,
  screenshot} from "./harness.mjs";
import {open_page} from "./one_browser.mjs";
import {at, hold, in_order, lab, past, pool, serve_ledger, snapshot} from "./made_up.mjs";


// The ledger of lab(): what its page shows for an hour.
function lab_ledger(state) {
  const open = state.pools.flatMap(({slots}) => slots.map(({permit}) => permit).filter(Boolean));
  const ended = [
    past("gpu-pool", "0", "released", 2900, 1900, {holder: "train-llama-12"}), past("gpu-pool", "0", "released", 1800, 160, {holder: "train-llama-13"}),
    past("gpu-pool", "1", "lease_expired", 3300, 1500, {holder: "train-bert-77", cause: "timer", possibleOverlap: true, lateReleaseAt: at(-1290)}),
    past("gpu-pool", "1", "lease_expired", 1400, 300, {holder: "train-bert-78", cause: "backstop", possibleOverlap: true}),
    past("gpu-pool", "2", "holder_closed", 3000, 2500, {holder: "eval-1", cause: "completed"}), past("gpu-pool", "2", "released", 2450, 700, {holder: "train-gan-40"}),
    past("gpu-pool", "3", "released", 3590, 2700, {holder: "train-asr-5"}), past("gpu-pool", "3", "force_released", 2600, 82, {holder: "train-asr-6", cause: "operator"}),
    past("shard-migrate", "0", "released", 1300, 76, {holder: "migrate-eu-1"}),
  ];
  for (let i = 0; i < 60; ++i) ended.push(past("lab-rig", "rig-c", i % 9 ? "released" : "force_released", 2000 - i * 2, 1999 - i * 2, {holder: `hil-${i}`}));
  return in_order([...open, ...ended]);
}

for (const look of looks) {
  test(`it looks well, and keeps nobody out: ${look.name}`, async (t) => {
    const state = {...lab(), holds: []};
    const ledger = lab_ledger(state);
    const page = await open_page(t, await fixture_site(t, state, serve_ledger(() => ledger)), "#/timeline", look);
    await page.getByRole("cell", {name: "migrate-eu-1"}).waitFor();
    assert.deepEqual(await axe_problems(page), []);
    assert.ok(await fits_width(page), "no sideways scrolling");
    await screenshot(page, `timeline-${look.name}`);
    await page.check();
  });
}

// What the picture says of the bar that has the keyboard's focus.
const current = (page) => page.evaluate(() => document.activeElement.getAttribute("aria-label"));
const rows_shown = (page) => page.locator("table.holds tbody tr").count();

// Pool gpu with two slots, and what they went through.
function small(more = []) {
  const open = hold("gpu", "0", {holder: "train-now", held: 60, left: 540});
  const state = snapshot({pools: [pool("gpu", [{slot: "0", permit: open}, {slot: "1"}])]});
  const ledger = in_order([open, past("gpu", "0", "lease_expired", 900, 300, {holder: "train-lost", cause: "timer", possibleOverlap: true, lateReleaseAt: at(-240)}),
    past("gpu", "1", "released", 1500, 800, {holder: "train-b"}), past("gpu", "1", "force_released", 2500, 2000, {holder: "train-a", cause: "operator"}), ...more]);
  return {state, ledger, open};
}

test("the arrow keys move among bars and rows, say each in words, and Enter opens its run", async (t) => {
  const {state, ledger, open} = small();
  const page = await open_page(t, await fixture_site(t, state, serve_ledger(() => ledger)), "#/timeline");
  await page.getByRole("cell", {name: "train-a"}).waitFor();
  assert.equal(await page.locator(".gantt [tabindex='0'], .gantt a:not([tabindex='-1']):not([hidden])").count(), 1, "one tab stop");
  await page.getByRole("button", {name: /force_released/}).focus();
  await page.keyboard.press("Tab");
  assert.match(await current(page), /^gpu slot 0: held, train-now, held 1m [0-3]\ds, since .*, fence \d+$/);
  await page.keyboard.press("ArrowLeft");
  assert.match(await current(page), /^gpu slot 0: lease_expired \(timer\), train-lost, held 10m 00s, .*possible overlap: given back 1m 00s after it was lost/);
  await page.locator(".looked-at").getByText("train-lost").waitFor();
  await page.locator(".looked-at").getByText("! possible overlap: given back 1m 00s after it was lost").waitFor();
  await page.keyboard.press("ArrowDown");
  assert.match(await current(page), /^gpu slot 1: released, train-b/, "the nearest in time");
  await page.keyboard.press("Home");
  assert.match(await current(page), /train-a/);
  await page.keyboard.press("End");
  assert.match(await current(page), /train-b/);
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("End");
  assert.match(await current(page), /train-now/);
  await page.keyboard.press("+");
  await page.waitForURL(/from=.*&to=/);  // about the bar
  assert.match(await current(page), /train-now/, "the focus stays");
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => url.hash === `#/workflows/permit%3Agpu%3A0/${open.runId}`);
  await page.check();
});

test("pointing at a bar says what it is, and a click opens its run", async (t) => {
  const {state, ledger, open} = small();
  const page = await open_page(t, await fixture_site(t, state, serve_ledger(() => ledger)), "#/timeline");
  await page.getByRole("cell", {name: "train-a"}).waitFor();
  const box = await page.locator(".gantt-scroll").boundingBox();
  const now_x = await page.locator(".gantt-axis .now").evaluate((now) => now.getBoundingClientRect().x + now.offsetWidth / 2);
  await page.mouse.move(now_x - 8, box.y + 26 + 14);
  await page.locator(".looked-at").getByText("train-now").waitFor();
  await page.mouse.click(now_x - 8, box.y + 26 + 14);
  await page.waitForURL((url) => url.hash.endsWith(open.runId));
});

test("what is chosen is in the address, and survives a reload", async (t) => {
  const {state, ledger} = small();
  state.pools.push(pool("other", [{slot: "x"}]));
  const site = await fixture_site(t, state, serve_ledger(() => ledger));
  const page = await open_page(t, site, "#/timeline");
  await page.getByRole("cell", {name: "train-a"}).waitFor();
  assert.equal(await rows_shown(page), 4);
  await page.getByRole("button", {name: "6h", exact: true}).click();
  await page.getByLabel("Pool").selectOption("gpu");
  await page.getByRole("button", {name: /lease_expired/}).click();
  await page.getByRole("button", {name: /force_released/}).click();
  await page.getByLabel("Fold idle gaps").check();
  await eventually(async () => await rows_shown(page) === 2, "two holds ended so");
  await page.getByLabel(/^Filter by/).fill("TRAIN-L");
  await eventually(async () => await rows_shown(page) === 1, "one is called so");
  await page.getByRole("columnheader", {name: "Holder"}).getByRole("button").click();
  const query = new URLSearchParams((await page.evaluate(() => location.hash)).split("?")[1]);
  assert.deepEqual(Object.fromEntries(query), {range: "6h", pool: "gpu", outcome: "lease_expired,force_released", fold: "1", q: "TRAIN-L", sort: "holder"});
  await page.reload();
  await page.getByRole("cell", {name: "train-lost"}).waitFor();
  assert.equal(await rows_shown(page), 1);
  assert.equal(await page.getByRole("button", {name: "6h", exact: true}).getAttribute("aria-pressed"), "true");
  assert.equal(await page.getByLabel("Pool").inputValue(), "gpu");
  assert.ok(await page.getByLabel("Fold idle gaps").isChecked());
  assert.equal(await page.getByRole("columnheader", {name: "Holder"}).getAttribute("aria-sort"), "ascending");
  await page.getByLabel(/^Filter by/).fill("nobody");
  await page.getByText("No hold in this range is like that.").waitFor();
  await page.getByRole("button", {name: "Clear the filters"}).click();
  await eventually(async () => await rows_shown(page) === 4, "all again");
  await page.check();
});

test("a range from one time to another is asked for, shown, and refused if it is none", async (t) => {
  const {state, ledger} = small([past("gpu", "1", "released", 90_000, 89_000, {holder: "yesterday"})]);
  const page = await open_page(t, await fixture_site(t, state, serve_ledger(() => ledger)), "#/timeline");
  await page.getByRole("cell", {name: "train-a"}).waitFor();
  assert.equal(await page.getByRole("cell", {name: "yesterday"}).count(), 0);
  await page.getByRole("button", {name: "Custom…"}).click();
  assert.equal(await focused(page), "INPUT ");
  await page.getByLabel("From", {exact: true}).fill(at(-88_000).slice(0, 19));
  await page.getByLabel("to", {exact: true}).fill(at(-91_000).slice(0, 19));
  await page.keyboard.press("Enter");
  await page.getByText("The second time must be after the first one.").waitFor();
  await page.getByLabel("From", {exact: true}).fill(at(-91_000).slice(0, 19));
  await page.getByLabel("to", {exact: true}).fill(at(-88_000).slice(0, 19));
  await page.keyboard.press("Enter");
  await page.getByRole("cell", {name: "yesterday"}).waitFor();
  assert.equal(await rows_shown(page), 1);
  assert.equal(await page.locator(".gantt-axis .now").count(), 0);
  await page.getByRole("button", {name: "Now"}).click();
  await page.locator(".gantt-axis .now").waitFor();
  await page.waitForURL(/range=30[0-3]\ds/);
  await page.getByRole("button", {name: "Zoom in"}).click();
  await page.waitForURL(/range=15[01]\d(\.5)?s/);
  await page.getByRole("button", {name: "Earlier"}).click();
  await page.waitForURL(/from=/);
  await page.check();
});

test("an acquire, its end and a late release appear as they happen", async (t) => {
  const {state, ledger} = small();
  const site = await fixture_site(t, state, serve_ledger(() => ledger));
  const page = await open_page(t, site, "#/timeline");
  await page.getByRole("cell", {name: "train-a"}).waitFor();
  const open = hold("gpu", "1", {holder: "train-new", held: 0, left: 300, fence: 9000});
  site.send("changes", {holds: [open], pools: [{...pool("gpu", [{slot: "1", permit: open}]), partial: true}]});
  await page.getByRole("row", {name: /held.*train-new/}).waitFor();
  await page.getByRole("button", {name: "2 held"}).waitFor();
  const lost = {...open, state: "closed", outcome: "lease_expired", cause: "timer", closedAt: at(0), possibleOverlap: true};
  site.send("changes", {holds: [lost]});
  await page.getByRole("row", {name: /lease_expired \(timer\).*possible overlap: not given back by its holder.*train-new/}).waitFor();
  site.send("changes", {holds: [{...lost, lateReleaseAt: new Date(Date.parse(lost.closedAt) + 12_000).toISOString()}]});
  await page.getByRole("row", {name: /given back 12s after it was lost.*train-new/}).waitFor();
  assert.equal(site.requests.length, 1, "nothing more was asked for");
  await page.getByRole("link", {name: "Pools"}).click();
  await page.getByRole("heading", {name: "gpu"}).waitFor();
  await page.getByRole("link", {name: "Timeline"}).click();
  await page.getByRole("cell", {name: "train-new"}).waitFor();
  assert.equal(site.requests.length, 1, "the tab remembers");
  await page.check();
});

test("what ended while the stream was lost is read again, and nothing else", async (t) => {
  const {state, ledger, open} = small();
  const site = await fixture_site(t, state, serve_ledger(() => ledger));
  const page = await open_page(t, site, "#/timeline");
  await page.getByRole("row", {name: /held.*train-now/}).waitFor();
  await eventually(() => site.requests.length === 1, "the hour is read");
  await page.getByRole("cell", {name: "train-a"}).waitFor();
  ledger[ledger.indexOf(open)] = {...open, state: "closed", outcome: "holder_closed", cause: "failed", closedAt: at(1)};
  ledger.unshift(past("gpu", "1", "released", -1, -2, {holder: "unseen", fence: 9000}));
  site.send("snapshot", {...state, now: at(0), pools: [pool("gpu", [{slot: "0"}, {slot: "1"}])]});
  await page.getByRole("row", {name: /holder_closed \(failed\).*train-now/}).waitFor();
  await page.getByRole("cell", {name: "unseen"}).waitFor();
  assert.equal(site.requests.length, 2);
  const since = Date.parse(site.requests[1].query.get("since"));
  assert.ok(since > Date.now() - 60_000, "since a little before it was lost");
  await page.check();
});

test("an overlap is underlined in red, a lease that is left is dashed, and patterns differ", async (t) => {
  const {state, ledger} = small();
  const page = await open_page(t, await fixture_site(t, state, serve_ledger(() => ledger)), "#/timeline");
  await page.getByRole("cell", {name: "train-a"}).waitFor();
  const colors = await page.evaluate(() => {
    const canvas = document.querySelector(".gantt canvas");
    const context = canvas.getContext("2d");
    const of_row = (top, height) => {
      const {data} = context.getImageData(0, top, canvas.width, height);
      const counts = {};
      for (let i = 0; i < data.length; i += 4) {
        if (data[i + 3] === 255) counts[[data[i], data[i + 1], data[i + 2]].join()] = (counts[[data[i], data[i + 1], data[i + 2]].join()] ?? 0) + 1;
      }
      return counts;
    };
    const ink = (name) => getComputedStyle(document.querySelector(`.probe.${name}`)).color.match(/\d+/g).join();
    return {row0: of_row(26, 28), row1: of_row(54, 28), alarm: ink("alarm"), expired: ink("is-lease_expired"), forced: ink("is-force_released"), held: ink("is-held")};
  });
  assert.ok(colors.row0[colors.alarm] > 30, "an under-line");
  assert.equal(colors.row1[colors.alarm], undefined);
  assert.ok(colors.row0[colors.expired] > 100 && colors.row0[colors.held] > 30 && colors.row1[colors.forced] > 100);
});

test("holds within a pixel are one bar with their count, which leads to them", async (t) => {
  const many = [];
  for (let i = 0; i < 40; ++i) many.push(past("gpu", "1", i === 7 ? "lease_expired" : "released", 700 - i * .1, 699.95 - i * .1, {holder: `short-${i}`}));
  const {state, ledger} = small(many);
  const page = await open_page(t, await fixture_site(t, state, serve_ledger(() => ledger)), "#/timeline");
  await page.getByRole("button", {name: /4\d|39/}).first().waitFor();
  await eventually(async () => /44 holds/.test(await page.locator(".gantt canvas").getAttribute("aria-label")), "all are there");
  await page.locator(".gantt a").first().focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("End");
  assert.match(await current(page), /^gpu slot 1: \d+ holds: \d+ released.*; Enter shows them larger$/);
  await page.keyboard.press("Enter");
  await eventually(async () => /^gpu slot 1: (released|lease_expired), short-/.test(await current(page) ?? ""), "one of them, told apart");
  assert.match(page.url(), /from=/);
  await page.check();
});

test("names are text, also in files, where no spreadsheet takes them for formulas", async (t) => {
  const evil = "<img src=x onerror=\"globalThis.hit=1\">";
  const {state, ledger} = small([past("gpu", "1", "released", 3000, 2900, {holder: "=HYPERLINK(\"http://x\")", reason: evil, workflow: false}),
    past("gpu", "1", "released", 3200, 3100, {holder: evil, reason: "two\nlines, and a comma", workflow: false})]);
  const page = await open_page(t, await fixture_site(t, state, serve_ledger(() => ledger)), "#/timeline");
  await page.getByRole("cell", {name: "=HYPERLINK"}).waitFor();
  const saved = async (name) => {
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", {name}).click()]);
    return [file.suggestedFilename(), await readFile(await file.path(), "utf8")];
  };
  const [csv_name, csv] = await saved("Download CSV");
  assert.match(csv_name, /^permits-\d{4}(-\d\d){5}\.csv$/);
  const lines = csv.split("\r\n");
  assert.match(lines[0], /^permit,pool,slot,outcome,cause,holder,/);
  assert.equal(lines.length, 1 + 6 + 1);
  assert.ok(csv.includes(",\"'=HYPERLINK(\"\"http://x\"\")\",,\"<img src=x onerror=\"\"globalThis.hit=1\"\">\","), csv);
  assert.ok(csv.includes("\"two\nlines, and a comma\""));
  const [, jsonl] = await saved("Download JSONL");
  const holds = jsonl.trim().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(holds.map(({runId}) => runId), ledger.map(({runId}) => runId), "newest first, as in the table");
  assert.equal(holds.at(-1).holder, evil);
  assert.equal(await page.locator("img").count(), 0);
  assert.equal(await page.evaluate(() => globalThis.hit), undefined);
  for (const text of ["=1", "+1", "-1", "@x", "\tx", "\rx"]) assert.match(csv_cell(text), /^"'/, JSON.stringify(text));
  assert.equal(csv_cell("train-1"), "train-1");
  assert.equal(csv_cell(-5), "-5");
  await page.check();
});

test("what the server has forgotten is said, and what could not be loaded", async (t) => {
  const many = [];
  for (let i = 0; i < 100; ++i) many.push(past("gpu", "1", "released", 1000 + i * 10, 995 + i * 10, {holder: `job-${i}`}));
  const {state, ledger} = small();
  const whole = in_order([ledger[0], ...many]);
  let fails = true;
  const serve = serve_ledger(() => whole, {page_max: 40});
  const site = await fixture_site(t, state, async (asked) => (fails && asked.query.get("nextPageToken") === "40" ?
    [503, refusal(14, "UNAVAILABLE", "the disk is on fire")] : serve(asked)));
  const page = await open_page(t, site, "#/timeline");
  page.expected_errors.push(/503/);
  await page.getByRole("alert").getByText("Not all holds could be loaded: the disk is on fire.").waitFor();
  assert.deepEqual(await axe_problems(page), []);
  // Put back by a clock, the range begins a little earlier: no reason to ask once more by itself.
  site.send("changes", {now: at(-3), pools: [pool("late", [{slot: "0"}])]});
  await page.locator("option[value=late]").waitFor({state: "attached"});
  fails = false;
  await page.getByRole("button", {name: "Try again"}).click();
  await page.getByText(/^Not complete: the server keeps the last 100 holds of a slot, and 1 slot has had as many/).waitFor();
  assert.deepEqual(site.requests.map(({query}) => query.get("nextPageToken")), [null, "40", "40", "80"], "goes on where it was");
  await page.getByText(/1 to 25 of 101/).waitFor();
  await page.check();
});

test("an empty timeline says what to do", async (t) => {
  const site = await fixture_site(t, snapshot({pools: [pool("gpu", [{slot: "0"}])]}), serve_ledger(() => []));
  const page = await open_page(t, site, "#/timeline");
  await page.getByText("Nothing was held in this range.").waitFor();
  await page.getByText("permit run -p gpu -- sleep 60").waitFor();
  assert.deepEqual(await axe_problems(page), []);
  await page.goto(`${site.origin}/#/timeline?pool=gone`);
  await page.getByText("There is no pool gone now").waitFor();
  site.snapshot = snapshot();
  const other = await open_page(t, await fixture_site(t, snapshot(), serve_ledger(() => [])), "#/timeline");
  await other.getByText("There is no pool yet").waitFor();
  assert.deepEqual(await axe_problems(other), []);
  await page.check();
});
