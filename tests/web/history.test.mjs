// The timeline and the waiters with the real server behind them: what it keeps and tells is shown.
import assert from "node:assert/strict";
import {mkdtemp, rm} from "node:fs/promises";
import {tmpdir} from "node:os";
import path from "node:path";
import test from "node:test";
import {axe_problems, eventually, real_server, web_files} from "./harness.mjs";
import {open_page} from "./one_browser.mjs";


const args = ["--no-demo-pool", "--ui-asset-path", web_files];

test("a hold is on the timeline as it happens, with its overlap when it comes back late, and again after a reload", async (t) => {
  const site = await real_server(t, {args});
  await site.api("PUT", "/pools/gpu", {capacity: 2});
  const page = await open_page(t, site, "#/timeline");
  await page.getByText("Nothing was held in this range.").waitFor();
  const {slots: [slot], token} = await site.api("POST", "/pools/gpu/acquire", {requestId: "a", holder: "train-lost",
    lease: "4s", only: ["1"]});  // so long that a page of a busy machine shows it as held, too
  await page.getByRole("row", {name: /held.*train-lost/}).waitFor();
  await page.getByRole("row", {name: /lease_expired \(timer\).*possible overlap: not given back by its holder.*train-lost/}).waitFor();
  await site.api("POST", `/permits/${slot.id}/release`, {token}).catch((error) => assert.match(error.message, /410/));
  const late = /lease_expired \(timer\).*possible overlap: given back \d+.*after it was lost.*train-lost/;
  await page.getByRole("row", {name: late}).waitFor();
  const next = await site.api("POST", "/pools/gpu/acquire", {requestId: "b", holder: "train-next", only: ["1"]});
  await page.getByRole("row", {name: /held.*train-next/}).waitFor();
  await site.api("POST", `/permits/${slot.id}/force-release`, {fence: next.fence, reason: "test", identity: "ana"});
  await page.getByRole("row", {name: /force_released \(operator\).*train-next/}).waitFor();
  await page.getByRole("button", {name: "1 force_released"}).waitFor();
  await page.reload();
  await page.getByRole("row", {name: late}).waitFor();
  await page.getByRole("row", {name: /force_released.*train-next/}).waitFor();
  assert.deepEqual(await axe_problems(page), []);
  await page.check();
});

test("1,200 holds come in two pages, and a slot's forgotten ones are admitted", async (t) => {
  const directory = await mkdtemp(path.join(process.env.PERMIT_TESTS_DIR ?? tmpdir(), "history-"));
  t.after(() => rm(directory, {recursive: true}));
  const site = await real_server(t, {args: [...args, "--db-filename", `${directory}/history.db`]});
  await site.api("PUT", "/pools/gpu", {capacity: 20});
  await Promise.all(Array.from({length: 20}, async (_, i) => {  // 60 in each slot: none is forgotten yet
    for (let made = 0; made < 60; ++made) {
      const {slots: [slot], token} = await site.api("POST", "/pools/gpu/acquire", {requestId: `r${i}-${made}`, holder: `job-${made}`, only: [String(i)]});
      await site.api("POST", `/permits/${slot.id}/release`, {token});
    }
  }));
  const page = await open_page(t, site, "#/timeline?range=15m");
  await page.getByText(/^1 to 25 of 1,200$/).waitFor();
  assert.equal(page.requests.filter((url) => url.includes("/permits?")).length, 2);
  for (let i = 0; i < 110; ++i) {
    const {slots: [slot], token} = await site.api("POST", "/pools/gpu/acquire", {requestId: `more${i}`, holder: "again", only: ["7"]});
    await site.api("POST", `/permits/${slot.id}/release`, {token});
  }
  let changes = 0;
  await eventually(async () => {
    await site.api("PUT", "/pools/other", {capacity: 1 + changes++ % 2});  // the ledger is trimmed with a commit
    return ((await site.api("GET", "/permits?pool=gpu&slot=7&pageSize=1000")).permits ?? []).length <= 101;
  }, "trimmed", 20_000);
  await page.reload();
  await page.getByText(/^Not complete: the server keeps the last 100 holds of a slot, and \d+ slots? ha(s|ve) had as many or more since/).waitFor();
  await page.check();
});

test("who waits is told why, moves up, is let in, or is taken out of the line", async (t) => {
  const site = await real_server(t, {args});
  await site.api("PUT", "/pools/gpu", {capacity: 1});
  const {slots: [slot], token} = await site.api("POST", "/pools/gpu/acquire", {requestId: "h", holder: "holder", lease: "3600s"});
  const ask = (name) => site.api("POST", "/pools/gpu/acquire", {requestId: name, holder: name, wait: "30s", waitTimeout: "60s"}).catch((error) => error);
  const first = ask("first");
  const page = await open_page(t, site, "#/waiters");
  const row = (name) => page.getByRole("row", {name});
  await row(/first/).getByText("1 slot that would do is held; position 1 in the line").waitFor();
  await row(/first/).getByRole("link", {name: "slot 0"}).waitFor();
  const second = ask("second");
  await row(/second/).getByText("position 2 in the line").waitFor();
  await page.getByText("2 wait for gpu").waitFor();
  await site.api("POST", `/permits/${slot.id}/release`, {token});
  assert.equal((await first).state, "granted");
  await row(/first/).filter({hasText: "Remove"}).waitFor({state: "detached"});
  await row(/second/).getByText("position 1 in the line").waitFor();
  await page.getByRole("button", {name: "Remove second from the line of gpu"}).click();
  await page.getByRole("dialog").getByLabel("Reason").fill("not today");
  await page.getByRole("button", {name: "Remove", exact: true}).click();
  await page.getByRole("heading", {name: "Nobody waits"}).waitFor();
  assert.match((await second).message, /REMOVED_FROM_LINE/);
  assert.deepEqual(await axe_problems(page), []);
  await page.check();
});
