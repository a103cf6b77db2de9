// Every tab of a run's page in each of the four looks.
import assert from "node:assert/strict";
import test from "node:test";
import {axe_problems, fits_width, looks, screenshot} from "./harness.mjs";
import {address_of, site_of_run, tab_names} from "./made_up_histories.mjs";
import {open_page} from "./one_browser.mjs";

for (const look of looks) {
  test(`nothing keeps anybody out, and it looks well: ${look.name}`, async (t) => {
    const site = await site_of_run(t);
    const page = await open_page(t, site, address_of(site.run), look);
    for (const name of tab_names) {
      await page.getByRole("tab", {name}).click();
      await page.getByRole("tabpanel", {name}).waitFor();
      if (name === "History") await page.getByRole("button", {name: "ActivityTaskFailed"}).click();
      await screenshot(page, `workflow-${name.toLowerCase()}-${look.name}`);
      assert.deepEqual(await axe_problems(page, name === tab_names[0] ? undefined : "#tab-panel"), [], name);
      assert.ok(await fits_width(page), `no sideways scrolling: ${name}`);
    }
    await page.check();
  });
}
