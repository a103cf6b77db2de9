// The server's metrics over time: numbers for people, charts for the eye, the keyboard and the ear.
import assert from "node:assert/strict";
import test from "node:test";
import {axe_problems, eventually, fits_width, fixture_site, focused, looks, refusal, screenshot} from "./harness.mjs";
import {lab} from "./made_up.mjs";
import {open_page} from "./one_browser.mjs";

const series = [["acquires", "permit_acquires_total", "1/s"], ["conflicts", "permit_acquire_conflicts_total", "1/s"],
  ["wait_p50", "permit_acquire_wait_seconds", "s"], ["wait_p95", "permit_acquire_wait_seconds", "s"],
  ["holds", "permit_pool_slots_held", ""], ["waiting", "permit_pool_waiters", ""], ["expiries", "permit_closed_total", "1/h"],
  ["task_latency_p95", "permit_workflow_task_schedule_to_start_latency_seconds", "s"],
  ["timer_lag_p99", "permit_timer_lateness_seconds", "s"], ["commit_latency_p95", "permit_persistence_latency_seconds", "s"],
  ["requests", "http_server_request_duration_seconds", "1/s"], ["long_polls", "permit_long_polls", ""],
  ["event_streams", "permit_event_streams", ""], ["backlog", "permit_task_queue_backlog", ""]];

// A day of a lab, more or less, and always the same.
function wave(i, step) {
  return (1.2 + Math.sin(i / 70 + step) + Math.sin(i / 9 + step) ** 3 / 5) * (4 + Math.sin(i * 12.9898) ** 8) / 5;
}
const scale = {acquires: 4, conflicts: 0.8, wait_p50: 0.04, wait_p95: 8, holds: 6, waiting: 3, expiries: 20, task_latency_p95: 0.004,
  timer_lag_p99: 0.0009, commit_latency_p95: 0.0006, requests: 900, long_polls: 30, event_streams: 4, backlog: 2};

function history({step = "1s", count = 900, end = Date.now(), value} = {}) {
  const step_ms = Number.parseInt(step) * 1000;
  const last = Math.floor(end / step_ms);
  return {step, end: new Date(last * step_ms).toISOString(), series: series.map(([name, metric, unit], n) => ({name, metric,
    ...(unit ? {unit} : {}), values: Array.from({length: count}, (_, i) => {
      const at = last - count + 1 + i;
      if (value) return value(name, i, count);
      if (/wait|lag|task/.test(name) && unit === "s" && at % 100 < 25) return null;
      const number = wave(at, n) * scale[name];
      return unit === "" ? Math.round(number) : Number(number.toPrecision(3));
    })}))};
}

function site_with(t, answer = (step) => [200, history({step, count: 60})]) {
  return fixture_site(t, lab(), async ({path, query}) => (path === "/api/v1/server/history" ? answer(query.get("step")) : undefined));
}

function chart(page, title) {
  return page.getByRole("region", {name: title, exact: true});
}

const full = history();

for (const look of looks) {
  test(`nothing keeps anybody out, and it looks well: ${look.name}`, async (t) => {
    let shown = full;
    const page = await open_page(t, await site_with(t, () => [200, shown]), "#/metrics", look);
    await chart(page, "Acquires").waitFor();
    await screenshot(page, `metrics-${look.name}`);
    shown = history({count: 30});  // for axe takes its time with each row
    await page.getByText("There are values since").waitFor();
    await chart(page, "Wait").getByText("As a table").click();
    await page.getByRole("region", {name: "Wait, all values"}).waitFor();
    await chart(page, "Wait").getByRole("slider").hover();
    assert.deepEqual(await axe_problems(page), []);
    assert.ok(await fits_width(page), "no sideways scrolling");
    await screenshot(page, `metrics-open-${look.name}`);
    await page.check();
  });
}

test("each chart says what it is now, between what and what it was, and its name for Prometheus", async (t) => {
  const values = {acquires: (i) => i / 300, wait_p50: (i) => (i < 890 ? 0.0034 : null), wait_p95: () => 1.26, holds: () => 1234, expiries: () => 12};
  const page = await open_page(t, await site_with(t, () => [200, history({end: Date.parse("2026-11-18T12:00:00Z"),
    value: (name, i) => values[name]?.(i) ?? (name === "wait_p50" || /lag/.test(name) ? null : 0)})]), "#/metrics");
  const text = async (title) => (await chart(page, title).innerText()).replace(/\s+/g, " ");
  await chart(page, "Acquires").waitFor();
  assert.match(await text("Acquires"), /^Acquires 3\/s granted min 0\/s · max 3\/s 5\/s 0 15 min ago now permit_acquires_total As a table$/);
  assert.match(await text("Wait"), /p50 3\.4 ms p95 1\.3 s at 11:59:50 min 3\.4 ms · max 1\.3 s/);
  assert.match(await text("Slots held"), /1\.2k/);
  assert.match(await text("Leases expired"), /12\/h/);
  assert.match(await text("Timer lag p99"), /Timer lag p99 – after due nothing observed/);
  assert.equal(await page.getByRole("region").filter({has: page.getByRole("slider")}).count(), 13, "p50 and p95 are one chart");
  await chart(page, "Acquires").getByRole("button", {name: "Copy the name permit_acquires_total"}).waitFor();
  assert.equal(await page.getByRole("link", {name: "/metrics"}).getAttribute("href"), "/metrics");
  await page.getByText("A value each second.", {exact: true}).waitFor();
  await page.check();
});

test("lines have gaps where nothing was observed, and begin at 0", async (t) => {
  const values = [0, 1, 2, null, null, 4, null, 2];
  const page = await open_page(t, await site_with(t, () => [200, history({count: 8, value: (name, i) => values[i]})]), "#/metrics");
  await chart(page, "Acquires").waitFor();
  const line = await chart(page, "Acquires").locator("path.line").getAttribute("d");
  assert.equal(line.match(/M/g).length, 3, "three pieces");
  assert.deepEqual([...line.matchAll(/[ML]([\d.]+) ([\d.]+)/g)].map(([, x, y]) => `${x} ${y}`).filter((at, i, all) => at !== all[i - 1]),
    ["892.5 100.0", "893.5 80.0", "894.5 60.0", "897.5 20.0", "899.5 60.0"], "at the right edge, from 0 to 5");
});

test("values of a time are told to whoever points or moves with the keys", async (t) => {
  const end = Date.parse("2026-11-18T12:00:00Z");
  const page = await open_page(t, await site_with(t, () => [200, history({end, value: (name, i) => i})]), "#/metrics");
  await chart(page, "Acquires").waitFor();
  for (let i = 0; i < 40 && !/Acquires over time/.test(await focused(page)); ++i) await page.keyboard.press("Tab");
  const slider = chart(page, "Acquires").getByRole("slider");
  const at = () => slider.getAttribute("aria-valuetext");
  assert.equal(await at(), "899/s at 12:00:00");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowLeft");
  assert.equal(await at(), "897/s at 11:59:58");
  await chart(page, "Acquires").getByText("11:59:58 897/s").waitFor();
  await page.keyboard.press("PageUp");
  assert.equal(await at(), "837/s at 11:58:58");
  await page.keyboard.press("Home");
  assert.equal(await at(), "0/s at 11:45:01");
  await page.keyboard.press("Escape");
  await chart(page, "Acquires").getByText("15 min ago").waitFor();
  const box = await slider.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 20);
  await chart(page, "Acquires").getByText(/11:52:3\d \d+\/s/).waitFor();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  assert.equal(await focused(page), "SUMMARY As a table");
  await page.keyboard.press("Enter");
  const rows = page.getByRole("region", {name: "Acquires, all values"}).locator("tbody tr");
  await rows.nth(899).waitFor();
  assert.equal(await rows.count(), 900);
  assert.match(await rows.first().innerText(), /12:00:00\s+899\/s/);
});

test("it is asked for each second, each minute for a day, and never while the page is hidden", async (t) => {
  const site = await site_with(t);
  const page = await open_page(t, site, "#/metrics");
  const asked = (step) => site.requests.filter(({query}) => query.get("step") === step).length;
  // How often the page has begun to ask since then, by its own clock: what is under way was begun before.
  const asked_since = (step, then) => page.evaluate(([wanted, from]) => performance.getEntriesByType("resource")
    .filter(({name, startTime}) => name.endsWith(`step=${wanted}`) && startTime > from).length, [step, then]);
  await eventually(() => asked("1s") >= 3, "three times in three seconds", 8_000);
  const before = await chart(page, "Acquires").locator("path.line").getAttribute("d");
  await eventually(async () => await chart(page, "Acquires").locator("path.line").getAttribute("d") !== before, "it moves on");
  await page.getByRole("radio", {name: "24 h"}).check();
  await chart(page, "Acquires").getByText("24 h ago").waitFor();
  await page.getByText("A value each minute. There are values since").waitFor();
  assert.match(page.url(), /range=24h$/);
  assert.ok(await asked_since("1s", 0) >= 3, "the page has it written down");
  const minutes_since = await page.evaluate(() => performance.now());
  await new Promise((done) => setTimeout(done, 2_500));
  assert.deepEqual([await asked_since("1s", minutes_since), asked("60s")], [0, 1]);
  const seconds = asked("1s");
  await page.reload();
  await chart(page, "Acquires").getByText("24 h ago").waitFor();
  assert.ok(await page.getByRole("radio", {name: "24 h"}).isChecked());
  await page.getByRole("radio", {name: "24 h"}).focus();
  await page.keyboard.press("ArrowLeft");
  await eventually(() => asked("1s") > seconds, "by keyboard, too");
  const hidden_since = await page.evaluate(() => {
    Object.defineProperty(document, "hidden", {value: true, configurable: true});
    document.dispatchEvent(new Event("visibilitychange"));
    return performance.now();
  });
  await new Promise((done) => setTimeout(done, 2_500));
  assert.equal(await asked_since("1s", hidden_since), 0, "nobody looks");
  await page.check();
});

test("a server that has just started says since when it has values", async (t) => {
  let count = 0;
  const page = await open_page(t, await site_with(t, (step) => [200, history({step, count, end: Date.parse("2026-11-18T12:00:00Z"),
    ...(count ? {} : {value: () => 0})})]), "#/metrics");
  await page.getByText("The server has just started: the first values come within a second.").waitFor();
  await chart(page, "Acquires").getByText("nothing observed").waitFor();
  assert.deepEqual(await axe_problems(page), []);
  count = 120;
  await page.getByText("There are values since 11:58:00: the server keeps them in memory, and begins anew when it starts.").waitFor();
});

test("a server without this memory, and one that is away, are told in words", async (t) => {
  const page = await open_page(t, await site_with(t, () => [404, refusal(5, "ROUTE_NOT_FOUND", "there is nothing at this path")]), "#/metrics");
  page.expected_errors.push(/404/);
  await page.getByText("This server does not remember its metrics.").waitFor();
  assert.deepEqual(await axe_problems(page), []);
  let away = false;
  const site = await site_with(t, () => (away ? [503, refusal(14, "NOT_READY", "the store is not open")] : [200, full]));
  const other = await open_page(t, site, "#/metrics");
  other.expected_errors.push(/503/);
  await chart(other, "Acquires").waitFor();
  away = true;
  await other.getByText(/^! The store is not open\. What is shown ends at \d\d:\d\d:\d\d\.$/).waitFor();
  away = false;
  await other.getByText("A value each second.", {exact: true}).waitFor();
  await other.check();
});

test("names are text, and series nobody knows are shown, too", async (t) => {
  const evil = "<img src=x onerror=\"globalThis.hit=1\">";
  const made = history();
  made.series.push({name: evil, metric: evil, unit: evil, values: made.series[0].values});
  const page = await open_page(t, await site_with(t, () => [200, made]), "#/metrics");
  await page.getByRole("heading", {name: evil}).waitFor();
  assert.equal(await page.locator("img").count(), 0);
  assert.equal(await page.evaluate(() => globalThis.hit), undefined);
  assert.ok(await fits_width(page), "no sideways scrolling");
});
