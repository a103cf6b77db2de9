// What the page's tests share: a real Chromium; the real server, or a small one that serves the
// page's files and whatever state a test makes up; and what every test checks of a page.
//
//   test("...", async (t) => {
//     const site = await real_server(t);            // or fixture_site(t, snapshot({...}))
//     const page = await open_page(t, site, "#/pools", {width: 320, dark: true});
//     ...
//     await page.check();                           // no console error, nothing from elsewhere
//   });
//
// Everything ends with its test. Environment: PERMIT_BIN (the server), PERMIT_TESTS_DIR (scratch),
// PERMIT_SCREENSHOTS (a directory: screenshot() writes there, and nowhere without it).
import assert from "node:assert/strict";
import {spawn} from "node:child_process";
import {readFile} from "node:fs/promises";
import {createServer} from "node:http";
import {createRequire} from "node:module";
import path from "node:path";
import {fileURLToPath} from "node:url";
import {chromium} from "playwright-core";

export {worst_change, worst_interaction} from "./interaction.mjs";

export const repository = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
export const web_files = path.join(repository, "apps/web");
export const permit = process.env.PERMIT_BIN ?? path.join(repository, "build-dev/permit");
const axe_source = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
export const namespace_path = "/api/v1/namespaces/default";
export const content_security_policy = "default-src 'none'; script-src 'self'; style-src 'self'; " +
  "connect-src 'self'; img-src 'self' data:; worker-src 'self'; base-uri 'none'; " +
  "form-action 'none'; frame-ancestors 'none'";

// --- Chromium ---

// A browser of its own for the test. `hosts`: names that lead to this machine, as a host in the lab
// would, so that the page is not in a secure context.
export async function start_chromium(t, {hosts = []} = {}) {
  const rules = hosts.map((host) => `MAP ${host} 127.0.0.1`).join(", ");
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--disable-sync",
      ...(rules ? [`--host-resolver-rules=${rules}`] : [])],
  });
  t.after(() => browser.close());
  return browser;
}

const browsers = new Map();  // test -> its browser

// Opens the page. options: hash; width, height, dark, reduced_motion; browser, context (to share);
// prepare(page): before anything is loaded; origin: instead of the site's own. Returns when there is
// something to see and the stream is live; with wait: false at once.
export async function open_page(t, site, hash = "#/pools", options = {}) {
  const {width = 1280, height = 800, dark = false, prepare} = options;
  let {context} = options;
  if (!context) {
    const browser = options.browser ?? browsers.get(t) ?? await start_chromium(t);
    browsers.set(t, browser);
    context = await browser.newContext({viewport: {width, height}, timezoneId: "UTC", locale: "en-GB",
      colorScheme: dark ? "dark" : "light",
      reducedMotion: options.reduced_motion ? "reduce" : "no-preference"});
  }
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  watch(page, options.origin ?? site.origin);
  if (prepare) await prepare(page);
  await page.goto(`${options.origin ?? site.origin}/${hash}`);
  if (options.wait === false) return page;
  await page.waitForFunction(() => document.documentElement.dataset.live === "live" &&
    document.querySelector("#main .page > *"));
  return page;
}

// Collects what must not happen; page.check() fails if it did. page.expected_errors: patterns of
// console errors that the test causes on purpose.
function watch(page, origin) {
  const errors = [];
  page.requests = [];
  page.expected_errors = [];
  page.on("console", (message) => {
    if (message.type() === "error") errors.push(message.text());
  });
  page.on("pageerror", (error) => errors.push(String(error.stack ?? error)));
  page.on("request", (request) => page.requests.push(request.url()));
  page.check = () => {
    const unexpected = errors.filter((text) =>
      !page.expected_errors.some((pattern) => pattern.test(text)));
    assert.deepEqual(unexpected, [], "errors in the console");
    const elsewhere = page.requests.filter((url) =>
      !url.startsWith(origin) && !url.startsWith("data:"));
    assert.deepEqual(elsewhere, [], "requests to elsewhere");
  };
}

// What axe-core finds wrong, as text; the whole page or what `scope` selects.
export async function axe_problems(page, scope) {
  await page.evaluate(() => Promise.all(document.getAnimations()  // half shown is no contrast
    .filter((animation) => animation.effect.getComputedTiming().endTime !== Infinity)
    .map((animation) => animation.finished.catch(() => {}))));
  await page.evaluate(await readFile(axe_source, "utf8"));  // which no policy of the page forbids
  const result = await page.evaluate((where) => globalThis.axe.run(where ?? document, {
    runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
  }), scope);
  return result.violations.map((violation) => `${violation.id}: ${violation.help}\n` +
    violation.nodes.slice(0, 5).map((node) => `    ${node.html}\n    ${node.failureSummary}`).join("\n"));
}

// True if nothing on the page is wider than the window.
export function fits_width(page) {
  return page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
}

// The four looks in which a page is checked.
export const looks = [
  {name: "light", width: 1280, height: 800},
  {name: "dark", width: 1280, height: 800, dark: true},
  {name: "phone-light", width: 320, height: 640},
  {name: "phone-dark", width: 320, height: 640, dark: true},
];

export async function screenshot(page, name) {
  const directory = process.env.PERMIT_SCREENSHOTS;
  if (directory) await page.screenshot({path: path.join(directory, `${name}.png`)});
}

// --- The real server ---

// Starts `permit server start-dev` on a free port; `args` are further options of it. Has origin,
// api(method, path, body), kill() (as kill -9) and restart() on the same port.
export async function real_server(t, {args = ["--no-demo-pool"]} = {}) {
  const site = {process: null, port: 0};
  site.start = async () => {
    site.process = spawn(permit, ["server", "start-dev", "--port", String(site.port), "--log-level", "warn", ...args],
      {stdio: ["ignore", "pipe", "inherit"]});
    const {port} = await first_match(site.process, /API\s+http:\/\/127\.0\.0\.1:(?<port>\d+)/);
    site.port = Number(port);
    site.origin = `http://127.0.0.1:${port}`;
  };
  site.kill = async () => {
    const {process} = site;
    if (process.exitCode !== null || process.signalCode !== null) return;
    const gone = new Promise((done) => process.once("exit", done));
    process.kill("SIGKILL");
    await gone;
  };
  site.restart = async () => {
    await site.kill();
    await site.start();
  };
  site.api = async (method, where, body) => {
    const response = await fetch(site.origin + namespace_path + where, {method,
      headers: body === undefined ? {} : {"Content-Type": "application/json"},
      body: body === undefined ? undefined : JSON.stringify(body)});
    const answer = await response.json();
    if (!response.ok) throw new Error(`${method} ${where}: ${response.status} ${JSON.stringify(answer)}`);
    return answer;
  };
  t.after(() => site.kill());
  await site.start();
  return site;
}

function first_match(child, pattern) {
  return new Promise((resolve, reject) => {
    let text = "";
    child.stdout.setEncoding("utf8");
    child.stdout.on("data", (more) => {
      text += more;
      const found = pattern.exec(text);
      if (found) resolve(found.groups);
    });
    child.once("error", reject);
    child.once("exit", () => reject(new Error(`the server did not start:\n${text}`)));
  });
}

// --- A server that a test makes up ---

const types = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8"};

// Serves the page's files with the policy of the real server, one event stream, and `answer`:
// an async function ({method, path, query, body}) -> [status, object] or undefined, for the rest.
// Has origin; send(event, data) to all streams (changes get their seq and now); streams, a count;
// requests, what was asked of the API; snapshot, what new streams are told; silent: true lets
// streams be opened but tells them nothing; refuse: true turns them away; cut() ends them.
export async function fixture_site(t, snapshot, answer = async () => undefined) {
  const open = new Set();
  const site = {snapshot, requests: [], silent: false, refuse: false, streams_ever: 0,
    get streams() {
      return open.size;
    }};
  const now = () => new Date().toISOString();
  const write = (response, event, data, id) => response.write(
    `event: ${event}\n${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`);
  site.send = (event, data) => {
    const seq = ++site.snapshot.seq;
    for (const response of open) write(response, event, {seq, now: now(), ...data}, seq);
  };
  site.cut = () => open.forEach((response) => response.destroy());
  const ping = setInterval(() => {
    if (!site.silent) open.forEach((response) => write(response, "ping", {now: now()}));
  }, 2_000);
  const stream = (request, response) => {
    if (site.refuse) {
      response.writeHead(503).end();
      return;
    }
    site.streams_ever++;
    site.last_event_id = request.headers["last-event-id"];
    response.writeHead(200, {"Content-Type": "text/event-stream", "Cache-Control": "no-store"});
    response.write("retry: 1000\n\n");
    if (!site.silent) write(response, "snapshot", {...site.snapshot, now: now()}, site.snapshot.seq);
    open.add(response);
    response.on("close", () => open.delete(response));
  };
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, "http://localhost");
    if (url.pathname === `${namespace_path}/events`) return stream(request, response);
    if (/^\/(api\/|permit\.api\.|temporal\.api\.|openapi\.json$)/.test(url.pathname)) {
      const asked = {method: request.method, path: decodeURIComponent(url.pathname).replace(namespace_path, "")
        .replace("temporal.api.workflowservice.v1.WorkflowService/", ""), query: url.searchParams, body: await body_of(request)};
      site.requests.push(asked);
      const [status, body] = await answer(asked) ?? [404, refusal(5, "NOT_FOUND", "not made up")];
      response.writeHead(status, {"Content-Type": "application/json"}).end(JSON.stringify(body));
      return undefined;
    }
    const name = url.pathname === "/" ? "index.html" : url.pathname.replace(/^\/assets\//, "");
    try {
      const content = await readFile(path.join(web_files, path.normalize(`/${name}`)));
      response.writeHead(200, {"Content-Type": types[path.extname(name)] ?? "text/plain",
        "Content-Security-Policy": content_security_policy}).end(content);
    } catch {
      response.writeHead(404).end();
    }
    return undefined;
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  t.after(() => {
    clearInterval(ping);
    server.closeAllConnections();
    server.close();
  });
  site.port = server.address().port;
  site.origin = `http://127.0.0.1:${site.port}`;
  return site;
}

async function body_of(request) {
  let text = "";
  for await (const chunk of request) text += chunk;
  return text === "" ? undefined : JSON.parse(text);
}

// An error as the server answers it.
export function refusal(code, reason, message) {
  return {code, message, details: [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", reason, domain: "permit"}]};
}

// What has the focus: "H1 Pools".
export function focused(page) {
  return page.evaluate(() => {
    const {tagName, ariaLabel, textContent} = document.activeElement;
    return `${tagName} ${ariaLabel ?? textContent.slice(0, 80)}`;
  });
}

// Waits until condition() holds, and returns what it returned.
export async function eventually(condition, what, milliseconds = 10_000) {
  const end = performance.now() + milliseconds;
  for (;;) {
    const result = await condition();
    if (result) return result;
    if (performance.now() > end) throw new Error(`not within ${milliseconds} ms: ${what}`);
    await new Promise((done) => setTimeout(done, 20));
  }
}
