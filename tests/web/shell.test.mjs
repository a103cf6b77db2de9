// The page's frame: the stream, how fresh it is, navigation, theme, keyboard.
import assert from "node:assert/strict";
import test from "node:test";
import {fixture_site, open_page} from "./harness.mjs";
import {lab} from "./made_up.mjs";

test("the page shows the pools of the stream, and asks nobody else for anything", async (t) => {
  const site = await fixture_site(t, lab());
  const page = await open_page(t, site);
  await page.getByText("● live").waitFor();
  await page.getByRole("heading", {name: "gpu-pool"}).waitFor();
  assert.equal(await page.title(), "Pools · Permit");
  await page.check();
});
