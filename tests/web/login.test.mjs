// A server that asks for API keys: the page asks for one once, and says what its role may not do.
import assert from "node:assert/strict";
import {execFile} from "node:child_process";
import {mkdtemp, rm} from "node:fs/promises";
import {tmpdir} from "node:os";
import path from "node:path";
import test from "node:test";
import {promisify} from "node:util";
import {axe_problems, permit, real_server} from "./harness.mjs";
import {open_page} from "./one_browser.mjs";

async function guarded_server(t) {
  const directory = await mkdtemp(path.join(process.env.PERMIT_TESTS_DIR ?? tmpdir(), "login-"));
  t.after(() => rm(directory, {recursive: true, force: true}));
  const database = path.join(directory, "keys.db");
  const keys = {};
  for (const role of ["read", "admin"]) {
    const made = await promisify(execFile)(permit, ["api-key", "create", `the-${role}`, "--role", role, "--database", database]);
    keys[role] = made.stdout.trim();
  }
  const site = await real_server(t, {args: ["--no-demo-pool", "--auth", "keys", "--db-filename", database]});
  const headers = {"Authorization": `Bearer ${keys.admin}`, "Content-Type": "application/json"};
  site.as_admin = (method, where, body) => fetch(`${site.origin}/api/v1/namespaces/default${where}`,
    {method, headers, body: body && JSON.stringify(body)});
  await site.as_admin("PUT", "/pools/gpu", {capacity: 2});
  return {site, keys};
}

async function log_in(page, key) {
  await page.getByLabel("API key", {exact: true}).fill(key);
  await page.getByRole("button", {name: "Log in"}).click();
}

test("the page asks for a key once, and hides it from scripts", async (t) => {
  const {site, keys} = await guarded_server(t);
  const page = await open_page(t, site, "#/pools", {wait: false});
  page.expected_errors.push(/401/);
  const dialog = page.getByRole("dialog", {name: "Log in"});
  await dialog.waitFor();
  assert.equal(await page.getByLabel("API key", {exact: true}).getAttribute("type"), "password");
  assert.deepEqual(await axe_problems(page, "dialog"), []);
  await log_in(page, "permit_" + "x".repeat(43));
  await dialog.getByRole("alert").getByText("no API key of this server").waitFor();
  await log_in(page, keys.read);
  await page.waitForFunction(() => document.documentElement.dataset.live === "live");
  await page.locator("#main").getByText("gpu").first().waitFor();
  assert.equal(await page.getByRole("dialog").count(), 0);

  assert.equal(await page.evaluate(() => document.cookie), "");
  const [cookie] = await page.context().cookies();
  assert.deepEqual([cookie.httpOnly, cookie.sameSite], [true, "Strict"]);
  const stored = await page.evaluate(() => JSON.stringify({...localStorage, ...sessionStorage}));
  for (const text of [stored, cookie.value, await page.content(), page.requests.join(" ")]) {
    assert.ok(!text.includes(keys.read), "the key is left somewhere");
  }

  await page.reload();  // the cookie is enough
  await page.waitForFunction(() => document.documentElement.dataset.live === "live");
  assert.equal(await page.getByRole("dialog").count(), 0);
  const refused = await page.evaluate(() => fetch("api/v1/namespaces/default/pools/gpu", {method: "PUT",
    headers: {"Content-Type": "application/json"}, body: "{\"capacity\":9}"}).then((answer) => answer.json()));
  assert.match(refused.message, /takes an API key with the role admin; the-read has the role read/);
  page.expected_errors.push(/403/);

  await page.goto(`${site.origin}/#/about`);
  await page.getByText("the-read, role read").waitFor();
  await page.getByRole("button", {name: "Log out"}).click();
  await dialog.waitFor();
  assert.deepEqual(await page.context().cookies(), []);
  await page.check();
});

test("a key that is revoked ends what the page shows, and it asks again", async (t) => {
  const {site, keys} = await guarded_server(t);
  const page = await open_page(t, site, "#/pools", {wait: false});
  page.expected_errors.push(/401/);
  await log_in(page, keys.read);
  await page.waitForFunction(() => document.documentElement.dataset.live === "live");
  await site.as_admin("DELETE", "/api-keys/the-read");
  await page.getByRole("dialog", {name: "Log in"}).waitFor();
  await log_in(page, keys.admin);
  await page.waitForFunction(() => document.documentElement.dataset.live === "live");
  await page.check();
});
