// What becomes of the tokens that the page keeps for its reader's own holds.
import assert from "node:assert/strict";
import test from "node:test";
import {fixture_site, refusal} from "./harness.mjs";
import {hold, pool, snapshot} from "./made_up.mjs";
import {open_page} from "./one_browser.mjs";

test("a token that opens nothing is forgotten, and the hold can be taken by force", async (t) => {
  const kept = {...hold("gpu", "0", {holder: "operator ana", workflow: false}), runId: "run-1"};
  const other = {...hold("gpu", "1", {holder: "somebody"}), fence: kept.fence};  // as of a new database
  const site = await fixture_site(t, snapshot({pools: [pool("gpu", [{slot: "0", permit: kept}, {slot: "1", permit: other}])]}),
    async ({method, path}) => {
      if (path.endsWith("/release")) return [400, refusal(9, "LEASE_LOST", "permit:gpu:0 is not held with this token")];
      return [200, method === "GET" ? kept : {...kept, outcome: "force_released"}];
    });
  const page = await open_page(t, site, "#/pools", {prepare: (early) => early.addInitScript(() =>
    localStorage.setItem("permit.tokens", JSON.stringify({"run-1": "old"})))});
  page.expected_errors.push(/400/);
  const menu = (slot) => page.getByRole("button", {name: `Actions on gpu slot ${slot}`}).click();
  await menu(1);
  await page.getByRole("menuitem", {name: "Release by force…"}).waitFor();
  await page.keyboard.press("Escape");
  await menu(0);
  await page.getByRole("menuitem", {name: "Release…"}).click();
  const dialog = page.getByRole("dialog");
  assert.equal(await dialog.getByLabel("Reason").isVisible(), false);
  await dialog.getByRole("button", {name: "Release"}).click();
  await dialog.getByLabel("Reason").fill("rack");
  await dialog.getByLabel("Your name").fill("ana");
  await dialog.getByLabel("Type the slot's name").fill("0");
  await dialog.getByRole("button", {name: "Release"}).click();
  await dialog.waitFor({state: "hidden"});
  assert.deepEqual(site.requests.at(-1).body, {fence: kept.fence, reason: "rack", identity: "ana"});
  await page.check();
});
