// The page with the real server behind it: what happens there is seen here, at once and without a gap.
import assert from "node:assert/strict";
import {mkdtemp, rm} from "node:fs/promises";
import {tmpdir} from "node:os";
import path from "node:path";
import test from "node:test";
import {axe_problems, eventually, focused, open_page, real_server} from "./harness.mjs";

test("an acquire is seen within 250 ms, and how it ended", async (t) => {
  const site = await real_server(t);
  await site.api("PUT", "/pools/gpu", {capacity: 2});
  const page = await open_page(t, site);
  await page.getByRole("heading", {name: "gpu"}).waitFor();
  await page.evaluate(() => {
    globalThis.seen = {};
    new MutationObserver(() => {
      for (const [, name] of document.querySelector("main").innerText.matchAll(/(train-\d+)/g)) {
        globalThis.seen[name] ??= performance.timeOrigin + performance.now();
      }
    }).observe(document.querySelector("main"), {subtree: true, childList: true, characterData: true});
  });
  const waits = [];
  for (let i = 0; i < 8; ++i) {
    const asked = performance.timeOrigin + performance.now();
    const {slots: [slot], token} = await site.api("POST", "/pools/gpu/acquire", {requestId: `r${i}`, holder: `train-${i}`});
    await page.getByText(`train-${i}`).first().waitFor();
    waits.push(await page.evaluate((name) => globalThis.seen[name], `train-${i}`) - asked);
    await site.api("POST", `/permits/${slot.id}/release`, {token});
    await page.locator(".tile .is-held").waitFor({state: "detached"});
  }
  console.log(`seen after ${waits.map((wait) => wait.toFixed(0)).join(", ")} ms`);
  waits.sort((a, b) => a - b);
  assert.ok(waits[2] < 250, "three of eight: this machine may be busy at times, a slow page is slow always");
  assert.ok(waits[6] < 2_000, "the others are not left to chance");
  await page.getByText("8 released").waitFor();
  await eventually(async () => await page.locator(".outcomes .is-released").count() === 8, "each end is told");
  await page.check();
});

test("a killed server is called stale within 6 s, and nothing is missed", async (t) => {
  const directory = await mkdtemp(path.join(process.env.PERMIT_TESTS_DIR ?? tmpdir(), "live-"));
  t.after(() => rm(directory, {recursive: true}));
  const site = await real_server(t, {args: ["--no-demo-pool", "--db-filename", `${directory}/live.db`]});
  await site.api("PUT", "/pools/gpu", {capacity: 2});
  await site.api("POST", "/pools/gpu/acquire", {requestId: "a", holder: "before", lease: "3600s"});
  const page = await open_page(t, site);
  page.expected_errors.push(/ERR_|network|Failed to load/);
  await page.getByText("before").waitFor();
  await site.kill();
  const began = performance.now();
  await page.getByText("○ stale - reconnecting").waitFor({timeout: 20_000});
  assert.ok(performance.now() - began < 9_000, "6 s, and what a busy machine adds");
  await site.start();
  await site.api("POST", "/pools/gpu/acquire", {requestId: "b", holder: "meanwhile", lease: "3600s"});
  await page.getByText("meanwhile").waitFor();
  await page.getByText("● live").waitFor();
  await page.getByText("2/2 held").waitFor();
  await site.api("POST", "/pools/gpu/acquire", {requestId: "c", holder: "waits", lease: "3600s", wait: "0.1s", waitTimeout: "30s"});
  await page.getByText("1 waiting").waitFor();
  await page.check();
});

test("an operator releases, drains and changes capacity, and it is on record", async (t) => {
  const site = await real_server(t);
  await site.api("PUT", "/pools/gpu", {capacity: 2});
  const {slots: [slot]} = await site.api("POST", "/pools/gpu/acquire", {requestId: "a", holder: "stuck", lease: "3600s", only: ["1"]});
  const page = await open_page(t, site);
  const act = async (menu, item, fields, button) => {
    await page.getByRole("button", {name: menu, exact: true}).click();
    await page.getByRole("menuitem", {name: item}).click();
    for (const [label, value] of Object.entries(fields)) await page.getByRole("dialog").getByLabel(label).fill(value);
    await page.getByRole("dialog").getByRole("button", {name: button, exact: true}).click();
    await page.getByRole("dialog").waitFor({state: "hidden"});
  };
  await act("Actions on gpu slot 1", "Release by force…", {"Type the slot's name": "1", Reason: "the rack loses power", "Your name": "ana"}, "Release");
  await page.locator(".outcomes .is-force_released").waitFor();
  assert.equal(await focused(page), "BUTTON Actions on gpu slot 1");
  const ended = await site.api("GET", `/permits/${slot.id}?runId=${slot.runId}`);
  assert.equal(ended.outcome, "force_released");
  await act("Actions on gpu slot 0", "Drain the slot…", {Reason: "fan"}, "Drain");
  await page.locator(".tile.is-drained").waitFor();
  await act("Actions on gpu", "Change the capacity…", {Capacity: "3", Reason: "new card"}, "Change");
  await page.getByText("0/3 held").waitFor();
  await act("Actions on gpu slot 2", "Hold for maintenance…", {"For how long": "30m", Reason: "burn-in"}, "Hold");
  await page.getByText("operator ana").waitFor();
  await act("Actions on gpu slot 2", "Release…", {}, "Release");
  await page.locator(".outcomes .is-released").waitFor();
  const {changes} = await site.api("GET", "/pools/gpu");
  assert.deepEqual(changes.slice(0, 2).map(({what, by, reason}) => [what, by, reason]),
    [["set capacity 3", "ana", "new card"], ["drained slot 0", "ana", "fan"]]);
  await page.getByText(/\d+ changes by hand/).click();
  await page.getByRole("cell", {name: "new card"}).waitFor();
  assert.deepEqual(await axe_problems(page), []);
  await page.check();
});
