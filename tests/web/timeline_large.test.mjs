// The timeline with all that a server may know: fifty thousand holds.
import assert from "node:assert/strict";
import test from "node:test";
import {fixture_site, open_page, screenshot, worst_change, worst_interaction} from "./harness.mjs";
import {at, hold, pool, run_id, serve_ledger, snapshot} from "./made_up.mjs";

test("50,000 holds on 512 slots load page by page, and nothing takes 100 ms", async (t) => {
  const slots = Array.from({length: 512}, (_, i) => String(i));
  const ledger = [];
  const kinds = ["released", "released", "released", "lease_expired", "holder_closed", "force_released"];
  for (let i = 0; i < 50_000; ++i) {
    const ago = i * 1.6 + 30;
    ledger.push({id: `permit:cluster:${i % 512}`, runId: `${run_id()}-${i}`, pool: "cluster", slot: String(i % 512), fence: 900_000 - i, state: "closed",
      holder: `train-${i % 7000}`, outcome: kinds[i % 6], cause: "timer", since: at(-ago - 700), closedAt: at(-ago)});
  }
  let asked = 0;
  let more = () => undefined;
  const serve = serve_ledger(() => ledger);
  const site = await fixture_site(t, snapshot({pools: [pool("cluster", slots.map((slot) => ({slot})))]}), async (request) => {
    if (++asked === 4) await new Promise((go) => (more = go));
    return serve(request);
  });
  const page = await open_page(t, site, "#/timeline?range=24h");
  await page.getByText(/Loading holds: 3,000 so far, back to/).waitFor();
  await page.getByRole("link", {name: "Pools"}).click();
  await page.getByRole("heading", {name: "cluster"}).waitFor();
  more();
  assert.equal(asked, 4, "left off");
  await page.goBack();
  await page.getByText("1 to 25 of 50,000").waitFor({timeout: 30_000});
  assert.equal(asked, 51, "and gone on with where it was");
  await screenshot(page, "timeline-large");
  assert.ok(await page.evaluate(() => document.querySelectorAll("main *").length) < 900, "only what is in view is there");

  const times = {
    scrolling: await worst_interaction(page, (i) => {
      document.querySelector(".gantt-scroll").scrollTop = i * 1300;
    }, 5),
    "another range": await worst_interaction(page, (i) => document.querySelectorAll(".ranges button")[[3, 2, 1, 0][i % 4]].click(), 4),
    "zooming out to all of it": await worst_interaction(page, (i) => document.querySelectorAll(".ranges button")[i % 2 ? 0 : 3].click(), 4),
    "a letter in the filter": await worst_interaction(page, (i) => {
      const filter = document.querySelector("[data-filter]");
      filter.value = ["t", "tr", "train-7", "train-77", ""][i % 5];
      filter.dispatchEvent(new Event("input"));
    }, 5),
    "an outcome": await worst_interaction(page, (i) => document.querySelectorAll(".legend button")[1 + (i >> 1) % 4].click(), 4),
    "folding": await worst_interaction(page, () => document.querySelector(".fold input").click(), 4),
    "sorting": await worst_interaction(page, (i) => document.querySelectorAll(".sort")[i % 8].click(), 4),
    "a page of the table": await worst_interaction(page, (i) => document.querySelectorAll(".pager button")[i % 2 ? 0 : 1].click(), 4),
  };
  await page.locator(".gantt a").first().focus();
  times["an arrow key"] = await worst_interaction(page, (i) => document.activeElement.dispatchEvent(
    new KeyboardEvent("keydown", {key: ["ArrowDown", "ArrowLeft", "PageDown", "Home"][i % 4], bubbles: true})), 12);
  times["pointing at a bar"] = await worst_interaction(page, (i) => {
    const scroll = document.querySelector(".gantt-scroll");
    const box = scroll.getBoundingClientRect();
    scroll.dispatchEvent(new PointerEvent("pointermove", {bubbles: true, clientX: box.x + 300 + i * 40, clientY: box.y + 60 + i * 20}));
  }, 5);
  times["a live change"] = await worst_change(page, async (i) => {
    const open = hold("cluster", String(i), {holder: `live-${i}`, held: 0, fence: 990_000 + i});
    site.send("changes", {holds: [open], pools: [{...pool("cluster", [{slot: String(i), permit: open}]), partial: true}]});
    await page.getByRole("button", {name: `${i + 1} held`}).waitFor();
  });
  for (const [what, milliseconds] of Object.entries(times)) {
    console.log(`${what}: ${milliseconds.toFixed(1)} ms`);
    assert.ok(milliseconds < 100, `${what} took ${milliseconds} ms`);
  }
  await page.check();
});
