// What runs here and how it is set, who the reader is, the words, and the reference of the API.
import assert from "node:assert/strict";
import {access} from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import {axe_problems, eventually, fits_width, fixture_site, focused, looks, real_server, refusal, repository,
  screenshot, web_files, worst_interaction} from "./harness.mjs";
import {at, lab} from "./made_up.mjs";
import {open_page} from "./one_browser.mjs";

const has_server = await access(process.env.PERMIT_BIN ?? path.join(repository, "build-dev/permit")).then(() => true, () => false);

function server(more = {}) {
  return {version: "0.1.0", revision: "1159841", compiler: "g++ 12.2.0", instance: "0197a1f3-9730", startTime: at(-93_784), now: at(0),
    store: "/var/lib/permit/permit.db", storeBytes: 48_234_496, ready: true, warnings: ["the store's disk is 92 % full"], held: 4, waiting: 2,
    pid: 812, host: "gpu-host-a", settings: [{name: "retention", value: "72h", origin: "default"},
      {name: "listen", value: "127.0.0.1:7376", origin: "file /etc/permit/server.toml"},
      {name: "api_key_file", value: "(set)", origin: "environment", secret: true}, {name: "log_level", value: "info", origin: "flag"}],
    limits: [{name: "payloadBytes", value: "2097152"}, {name: "openRuns", value: "100000"}], ...more};
}

// As large as the real one will ever be.
function openapi(count = 400) {
  const error = {$ref: "#/components/responses/Error"};
  const paths = {"/api/v1/namespaces/{namespace}/pools/{pool}/acquire": {post: {summary: "Take a permit", operationId: "post_pools_pool_acquire",
    tags: ["permits"], parameters: [{name: "namespace", in: "path", required: true, schema: {type: "string"}},
      {name: "pool", in: "path", required: true, schema: {type: "string"}}],
    requestBody: {content: {"application/json": {schema: {$ref: "#/components/schemas/AcquireRequest"}}}},
    responses: {200: {description: "Granted", content: {"application/json": {schema: {$ref: "#/components/schemas/Run"}}}}, default: error}}}};
  for (let i = 0; i < count; ++i) {
    paths[`/api/v1/things-${i}/{id}`] = {get: {summary: `Thing number ${i}`, operationId: `get_thing_${i}`, tags: [["permits", "workflows", "server", "RPC"][i % 4]],
      parameters: [{name: "id", in: "path", required: true, schema: {type: "string"}}, {name: "verbose", in: "query", schema: {type: "boolean"}, description: "tells more"}],
      responses: {200: {description: "Done", content: {"application/json": {schema: {$ref: "#/components/schemas/Run"}}}}, default: error}}};
  }
  return {openapi: "3.1.0", paths, components: {schemas: {
    AcquireRequest: {type: "object", properties: {requestId: {type: "string"}, lease: {$ref: "#/components/schemas/Duration"}, labels: {type: "object",
      additionalProperties: {type: "string"}}, parent: {$ref: "#/components/schemas/Run"}}},
    Run: {type: "object", properties: {runId: {type: "string"}, state: {type: "string", enum: ["held", "closed"]},
      parent: {$ref: "#/components/schemas/Run"}, children: {type: "array", items: {$ref: "#/components/schemas/Run"}}}},
    Duration: {type: "string", description: "Seconds.", examples: ["90s"]}, Status: {type: "object", properties: {code: {type: "integer"}}}},
  responses: {Error: {description: "Refused", content: {"application/json": {schema: {$ref: "#/components/schemas/Status"}}}}}}};
}

function site_with(t, status = server(), document = openapi(12)) {
  return fixture_site(t, lab(), async ({path: asked}) => {
    if (asked === "/api/v1/server") return status && [200, status];
    if (asked === "/openapi.json") return document && [200, document];
    return undefined;
  });
}

function facts_of(page) {
  return page.locator(".about .facts").first().innerText().then((text) => text.replace(/\s+/g, " "));
}

for (const look of looks) {
  test(`nothing keeps anybody out, and it looks well: ${look.name}`, async (t) => {
    const page = await open_page(t, await site_with(t), "#/about", look);
    await page.getByText("Take a permit").waitFor();
    await screenshot(page, `about-${look.name}`);
    await page.getByText("Take a permit").click();
    await page.getByText("parent", {exact: true}).first().click();
    assert.deepEqual(await axe_problems(page), []);
    assert.ok(await fits_width(page), "no sideways scrolling");
    await page.getByRole("link", {name: "Configuration in force"}).click();
    await screenshot(page, `about-settings-${look.name}`);
    await page.getByRole("link", {name: "HTTP API"}).click();
    await screenshot(page, `about-api-${look.name}`);
    await page.check();
  });
}

test("the server tells its version, age, store, settings and where each comes from, and no secret", async (t) => {
  const page = await open_page(t, await site_with(t), "#/about");
  await page.getByText("permit 0.1.0 (1159841), ready").waitFor();
  const text = await facts_of(page);
  for (const part of [/This page of permit 0\.1\.0/, /Compiler g\+\+ 12\.2\.0/, /Up 1d 02h since /, /Runs on gpu-host-a, pid 812/,
    /Store \/var\/lib\/permit\/permit\.db, 46 MiB/, /Now 4 held, 2 waiting/]) assert.match(text, part);
  await page.getByText("the store's disk is 92 % full").waitFor();
  const row = async (name) => (await page.getByRole("row").filter({has: page.getByRole("rowheader", {name, exact: true})}).innerText()).replace(/\s+/g, " ");
  assert.equal(await row("retention"), "retention 72h default");
  assert.equal(await row("listen"), "listen 127.0.0.1:7376 file /etc/permit/server.toml");
  assert.equal(await row("api_key_file"), "api_key_file (set, not shown) environment");
  assert.equal(await row("payloadBytes"), "payloadBytes 2 MiB (2097152)");
  await page.check();
});

test("a server that tells less, or nothing, or does not answer", async (t) => {
  const site = await fixture_site(t, lab(), async ({path: asked}) => (asked === "/permit.api.v1.PermitService/GetServerStatus" ?
    [200, {version: "0.1.0", now: at(0), store: "memory", ready: true}] : undefined));
  const page = await open_page(t, site, "#/about");
  page.expected_errors.push(/404/);
  await page.getByText("in memory: gone when the server ends").waitFor();
  await page.getByText("This server does not tell its settings.").waitFor();
  await page.getByText("The server does not describe its API: the server answered 404.").waitFor();
  await page.check();
  const other = await open_page(t, await site_with(t, null, null), "#/about");
  other.expected_errors.push(/404/);
  await other.getByText("This server does not tell about itself here. Its version is 0.1.0.").waitFor();
  await other.check();
  const third = await open_page(t, await fixture_site(t, lab(), async () => [503, refusal(14, "NOT_READY", "the store is not open")]), "#/about");
  third.expected_errors.push(/503/);
  await third.getByText("! The store is not open. What is shown may be old.").waitFor();
  assert.deepEqual(await axe_problems(third), []);
});

test("a name and a theme are chosen here and kept", async (t) => {
  const site = await site_with(t);
  const page = await open_page(t, site, "#/about?section=you");
  await eventually(async () => await focused(page) === "H2 You", "the section has the focus");
  await page.keyboard.press("Tab");
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.type("ana");
  await page.keyboard.press("Tab");
  await page.locator("#toast").getByText("You go on record as ana.").waitFor();
  await page.getByRole("radio", {name: "Dark"}).check();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await page.reload();
  assert.equal(await page.getByLabel("Your name").inputValue(), "ana");
  await eventually(() => page.getByRole("radio", {name: "Dark"}).isChecked(), "kept");
  await page.getByLabel("Theme").first().selectOption("Light");
  await eventually(() => page.getByRole("radio", {name: "Light"}).isChecked(), "the same choice twice on the page");
  await page.evaluate(() => location.hash = "#/pools");
  await page.getByRole("button", {name: "Actions on gpu-pool", exact: true}).click();
  await page.getByRole("menuitem", {name: "Drain the pool…"}).click();
  assert.equal(await page.getByRole("dialog").getByLabel("Your name").inputValue(), "ana");
  await page.check();
});

test("the words, with what they look like and their causes, and what is not promised", async (t) => {
  const page = await open_page(t, await site_with(t), "#/about");
  for (const word of ["held", "waiting", "released", "lease_expired", "holder_closed", "force_released"]) {
    await page.locator(`.words .chip.is-${word}`).getByText(word).waitFor();
  }
  await page.getByText("that two holders never overlap in real time once a lease has expired").waitFor();
  await page.getByText("g q").waitFor();
  for (const name of await page.locator(".documents code").allInnerTexts()) await access(path.join(repository, name));
});

test("the API: a call is found, opened and copied by keyboard alone", async (t) => {
  const page = await open_page(t, await site_with(t, server(), openapi(40)), "#/about");
  await page.getByText("41 calls").waitFor();
  await page.keyboard.press("/");
  assert.equal(await focused(page), "INPUT Filter the calls of the API");
  await page.keyboard.type("POST permit");
  await page.getByText("1 of 41 calls").waitFor();
  assert.match(page.url(), /q=POST\+permit$/);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  assert.match(await focused(page), /^SUMMARY POST/);
  await page.keyboard.press("Enter");
  const body = page.locator(".call-body");
  await body.getByText(`curl -s '${new URL(page.url()).origin}/api/v1/namespaces/default/pools/POOL/acquire' -H 'Content-Type: application/json' ` +
    `-d '{"requestId":"nightly-17","holder":"nightly backup","lease":"90s"}'`).waitFor();
  await body.getByText('string, like "90s"').waitFor();
  await page.keyboard.press("Tab");
  assert.equal(await focused(page), "BUTTON Copy the example");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");  // what is within the body
  await eventually(async () => await body.getByText("one of held, closed").count() === 1, "a level is open");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");  // and within that, without end
  await eventually(async () => await body.getByText("one of held, closed").count() === 2, "two levels are open");
  await page.reload();
  await page.getByText("1 of 41 calls").waitFor();
  await page.check();
});

test("400 calls: nothing takes 100 ms", async (t) => {
  const page = await open_page(t, await site_with(t, server(), openapi(400)), "#/about");
  await page.getByText("401 calls").waitFor();
  const times = {
    "a letter in the filter": await worst_interaction(page, (i) => {
      const filter = document.querySelector("[data-filter]");
      filter.value = ["thing", "number 7", "x", ""][i];
      filter.dispatchEvent(new Event("input"));
    }, 4),
    "opening a group": await worst_interaction(page, (i) => document.querySelectorAll(".api-group > summary")[i + 1].click(), 3),
    "opening a call": await worst_interaction(page, (i) => document.querySelectorAll(".call > summary")[i].click(), 4),
  };
  for (const [what, milliseconds] of Object.entries(times)) {
    console.log(`${what}: ${milliseconds.toFixed(1)} ms`);
    assert.ok(milliseconds < 100, `${what} took ${milliseconds} ms`);
  }
  await page.check();
});

test("names are text, whatever they look like", async (t) => {
  const evil = "<img src=x onerror=\"globalThis.hit=1\">";
  const document = openapi(1);
  document.paths[`/${evil}`] = {get: {summary: evil, tags: [evil], parameters: [{name: evil, in: "query", schema: {type: evil}, description: evil}],
    responses: {200: {description: evil}}}};
  const page = await open_page(t, await site_with(t, server({host: evil, store: evil, warnings: [evil], revision: evil,
    settings: [{name: evil, value: evil, origin: evil}], limits: [{name: evil, value: evil}]}), document), "#/about?q=onerror");
  await page.getByText("1 of 3 calls").waitFor();
  await page.locator(".call > summary").click();
  await page.locator(".call-body").waitFor();
  assert.equal(await page.locator("img").count(), 0);
  assert.equal(await page.evaluate(() => globalThis.hit), undefined);
  assert.ok(await fits_width(page), "no sideways scrolling");
  await page.check();
});

test("with the real server: its own description of its API, and itself", {skip: !has_server && "no permit is built"}, async (t) => {
  const site = await real_server(t, {args: ["--no-demo-pool", "--ui-asset-path", web_files]});
  const page = await open_page(t, site, "#/about");
  page.expected_errors.push(/404/);  // a part that this server does not have
  await page.getByText(/^\d+ calls$/).waitFor();
  await page.getByText(/^permit \d+\.\d+\.\d+/).first().waitFor();
  await page.getByLabel("Filter the calls of the API").fill("pools acquire");
  await page.locator(".call > summary").first().click();
  await page.locator(".call-body").getByText("requestId", {exact: true}).waitFor();
  const command = await page.locator(".call-body .command code").innerText();
  assert.match(command, /pools\/POOL\/acquire' -H 'Content-Type: application\/json' -d '\{"requestId"/);
  await page.getByLabel("Filter the calls of the API").fill("");
  await page.evaluate(() => document.querySelectorAll(".api-group").forEach((group) => (group.open = true)));
  await eventually(async () => await page.locator(".calls").count() === 4, "all groups are open");
  const calls = await page.locator(".call > summary").all();
  assert.ok(calls.length > 100, `${calls.length} calls`);
  await page.evaluate(() => document.querySelectorAll(".call").forEach((call) => (call.open = true)));
  await eventually(async () => await page.locator(".call-body").count() === calls.length, "each call can be described");
  assert.deepEqual(await page.locator(".call-body .command code").evaluateAll((all) => all.map((code) => code.textContent)
    .filter((text) => /undefined|\[object|\{\w+\}/.test(text))), [], "no example has a hole");
  await page.check();
});
