// The first page: pools, their slots, what is wrong, and what an operator can do about it.
import assert from "node:assert/strict";
import test from "node:test";
import {axe_problems, eventually, fits_width, fixture_site, focused, looks, open_page, refusal, screenshot,
  worst_change, worst_interaction} from "./harness.mjs";
import {at, ended, hold, lab, pool, snapshot} from "./made_up.mjs";

function large(count) {
  const slots = [];
  for (let i = 0; i < count; ++i) {
    const held = {slot: String(i), permit: hold("cluster", String(i), {holder: `train-${i}`, left: i % 7 === 1 ? 20 : 3000})};
    slots.push(i % 3 > 0 ? held : {slot: String(i), ...(i % 9 === 0 ? {drained: true} : {freeSince: at(-i)})});
  }
  return pool("cluster", slots);
}

for (const look of looks) {
  test(`nothing keeps anybody out: ${look.name}`, async (t) => {
    const state = lab();
    state.pools.unshift(large(130));
    const site = await fixture_site(t, state);
    const page = await open_page(t, site, "#/pools", look);
    assert.deepEqual(await axe_problems(page), []);
    assert.ok(await fits_width(page), "no sideways scrolling");
    await page.getByText("2 changes by hand").click();
    await page.getByRole("button", {name: "Actions on gpu-pool slot 0"}).click();
    assert.deepEqual(await axe_problems(page), []);
    await page.getByRole("menuitem", {name: "Release by force…"}).click();
    await page.getByRole("button", {name: "Release"}).click();
    assert.deepEqual(await axe_problems(page), []);
    assert.ok(await fits_width(page), "no sideways scrolling");
    await page.check();
  });

  test(`it looks well: ${look.name}`, async (t) => {
    const page = await open_page(t, await fixture_site(t, lab()), "#/pools", look);
    await screenshot(page, `pools-${look.name}`);
    await page.check();
  });
}

test("without a pool the page says what to type", async (t) => {
  const page = await open_page(t, await fixture_site(t, snapshot()));
  await page.getByText("There is no pool yet").waitFor();
  await page.getByText(/permit .*pool set gpu --capacity 4/).waitFor();
  await page.getByText(/permit .*run -p gpu -- sleep 60/).waitFor();
  assert.deepEqual(await axe_problems(page), []);
});

// case 75 of tests/end_to_end/abuse.py; the other pages have tests of the same name.
test("names are text, whatever they look like", async (t) => {
  const evil = "<img src=x onerror=\"globalThis.hit=1\">";
  const open = hold("gpu", "0", {holder: evil, reason: evil, worker: evil, labels: {user: evil}});
  const site = await fixture_site(t, snapshot({
    pools: [pool("gpu", [{slot: "0", device: evil, permit: open}], {changes: [{at: at(-5), what: evil, by: evil, reason: evil}]})],
    holds: [ended("gpu", "0", "released", 5, {holder: evil})],
    alerts: [{kind: "long_wait", severity: "warning", since: at(-5), message: evil, wayOut: evil}],
  }));
  const page = await open_page(t, site);
  await page.getByText(evil, {exact: true}).first().waitFor();
  await page.getByRole("button", {name: "Actions on gpu slot 0"}).click();
  await page.getByRole("menuitem", {name: "Release by force…"}).click();
  await page.getByRole("dialog").waitFor();
  assert.equal(await page.locator("img").count(), 0);
  assert.equal(await page.evaluate(() => globalThis.hit), undefined);
  await page.check();
});

test("a lease that is nearly over turns its tile orange, and says so in words", async (t) => {
  const site = await fixture_site(t, snapshot({pools: [pool("gpu", [{slot: "0"}, {slot: "1"}])]}));
  const page = await open_page(t, site);
  await page.getByText("● live").waitFor();
  // Only now: the time that a browser takes to start would be off the leases. What a tile says and how
  // it looks are read at once.
  site.send("changes", {pools: [pool("gpu", [
    {slot: "0", permit: hold("gpu", "0", {left: 74, held: 600})}, {slot: "1", permit: hold("gpu", "1", {left: 25, held: 5})}])]});
  await page.getByRole("timer").nth(1).waitFor();
  const look = (number) => page.evaluate((i) => {
    const tile = document.querySelectorAll(".tile")[i];
    const [, minutes = 0, seconds] = /^(?:(\d+)m )?(\d+)s left$/.exec(tile.querySelector("[role=timer]").textContent);
    return {left: Number(minutes) * 60 + Number(seconds), late: tile.classList.contains("late")};
  }, number);
  assert.equal((await look(1)).late, false, "25 s of a lease of 30 s are plenty");
  const looks_of_first = [];
  await eventually(async () => looks_of_first.push(await look(0)) && looks_of_first.at(-1).late, "late below 67 s, a tenth of the lease", 20_000);
  assert.equal(looks_of_first[0].late, false, `at first: ${JSON.stringify(looks_of_first[0])}`);
  for (const {left, late} of looks_of_first) assert.equal(late, left < 67 || (late && left === 67), `${late} at ${left} s`);
  await page.locator(".tile").first().getByText("!").waitFor();
});

test("a renewal moves the countdown, and leaves the focus where it is", async (t) => {
  const open = hold("gpu", "0", {left: 40, workflow: false});
  const site = await fixture_site(t, snapshot({pools: [pool("gpu", [{slot: "0", permit: open}])]}));
  const page = await open_page(t, site);
  const menu = page.getByRole("button", {name: "Actions on gpu slot 0"});
  await menu.focus();
  site.send("changes", {pools: [pool("gpu", [{slot: "0", permit: {...open, deadline: at(400), renewedAt: at(0)}}])]});
  await page.getByText(/6m \d\ds left/).waitFor();
  assert.equal(await focused(page), "BUTTON Actions on gpu slot 0");
  site.send("changes", {pools: [pool("gpu", [{slot: "0", freeSince: at(0)}])], holds: [ended("gpu", "0", "released", 0)]});
  await page.getByText("free for").waitFor();
  assert.equal(await focused(page), "BUTTON Actions on gpu slot 0");
});

test("a slot is released by keyboard alone", async (t) => {
  const state = lab();
  const {permit} = state.pools[0].slots[0];
  const site = await fixture_site(t, state, async ({method}) =>
    (method === "POST" ? [200, {...permit, state: "closed", outcome: "force_released"}] : undefined));
  const page = await open_page(t, site);
  await page.getByText("● live").waitFor();
  for (let i = 0; i < 60 && !/Actions on gpu-pool slot 0/.test(await focused(page)); ++i) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  assert.equal(await focused(page), "BUTTON Describe this hold");
  await page.keyboard.press("r");
  assert.equal(await focused(page), "BUTTON Release by force…");
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", {name: "Release permit:gpu-pool:0?"});
  await dialog.getByText("Its holder is alive.").waitFor();
  await dialog.getByText("train-llama-14").first().waitFor();
  await page.keyboard.press("Enter");
  await dialog.getByText("Type 0, or cancel.").waitFor();
  assert.equal(site.requests.length, 0);
  await page.keyboard.type("0");
  await page.keyboard.press("Tab");
  await page.keyboard.type("the rack loses power");
  await page.keyboard.press("Enter");
  await dialog.waitFor({state: "hidden"});
  assert.deepEqual(site.requests.map(({method, path, body}) => ({method, path, body})), [{method: "POST",
    path: "/permits/permit:gpu-pool:0/force-release",
    body: {fence: permit.fence, reason: "the rack loses power", identity: "page"}}]);
  assert.equal(await focused(page), "BUTTON Actions on gpu-pool slot 0");
  assert.match(await page.locator("#say").textContent(), /permit:gpu-pool:0 force_released\. Fence \d+ is void\./);
  await page.check();
});

test("a changed holder is not released, but shown", async (t) => {
  const state = lab();
  const next = hold("gpu-pool", "0", {holder: "train-next"});
  let fence;
  const site = await fixture_site(t, state, async ({method, body}) => {
    if (method === "GET") return [200, next];
    fence = body.fence;
    return body.fence === next.fence ? [200, {...next, outcome: "force_released"}] :
      [409, refusal(10, "HOLDER_CHANGED", "another run holds it")];
  });
  const page = await open_page(t, site);
  page.expected_errors.push(/409/);
  await page.getByRole("button", {name: "Actions on gpu-pool slot 0"}).click();
  await page.getByRole("menuitem", {name: "Release by force…"}).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(/Type the slot's name/).fill("0");
  await dialog.getByLabel("Reason").fill("stuck");
  await page.keyboard.press("Enter");
  await dialog.getByText("Nothing was released: the slot has another holder by now, train-next").waitFor();
  assert.equal(fence, state.pools[0].slots[0].permit.fence);
  assert.equal(await dialog.getByLabel(/Type the slot's name/).inputValue(), "", "asked anew");
  await dialog.getByLabel(/Type the slot's name/).fill("0");
  await dialog.getByRole("button", {name: "Release"}).click();
  await dialog.waitFor({state: "hidden"});
  assert.equal(fence, next.fence);
  await page.check();
});

test("every action asks for a reason, and tells who and why", async (t) => {
  const state = lab();
  const [gpu] = state.pools;
  const site = await fixture_site(t, state, async ({path}) => [200, path.endsWith("/acquire") ?
    {slots: [{id: "permit:gpu-pool:3", fence: 77, runId: "run-77"}], token: "secret"} : {}]);
  const page = await open_page(t, site);
  await page.getByText("● live").waitFor();
  const act = async (menu, item, fields, button) => {
    await page.getByRole("button", {name: menu, exact: true}).click();
    await page.getByRole("menuitem", {name: item}).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", {name: button, exact: true}).click();
    await dialog.getByText("This is needed.").waitFor();
    for (const [label, value] of Object.entries(fields)) await dialog.getByLabel(label).fill(value);
    await dialog.getByLabel("Reason").fill("fan");
    await dialog.getByRole("button", {name: button, exact: true}).click();
    await dialog.waitFor({state: "hidden"});
    const {method, path, body} = site.requests.at(-1);
    return [`${method} ${path}`, body];
  };
  const {permit} = gpu.slots[0];
  const record = {reason: "fan", identity: "ana"};
  assert.deepEqual(await act("Actions on gpu-pool slot 0", "Cancel the holder…", {"Your name": "ana"}, "Cancel"),
    ["POST /RequestCancelWorkflowExecution", {namespace: "default", workflowExecution: {workflowId: "train-llama-14", runId: permit.holderRunId}, ...record}]);
  assert.deepEqual(await act("Actions on gpu-pool slot 0", "Terminate the holder…", {}, "Terminate"),
    ["POST /TerminateWorkflowExecution", {namespace: "default", workflowExecution: {workflowId: "train-llama-14", runId: permit.holderRunId}, ...record}]);
  assert.deepEqual(await act("Actions on gpu-pool slot 3", "Drain the slot…", {}, "Drain"),
    ["POST /pools/gpu-pool/drain", {slot: "3", ...record}]);
  assert.deepEqual(await act("Actions on lab-rig slot rig-b", "Undrain the slot…", {}, "Undrain"),
    ["POST /pools/lab-rig/undrain", {slot: "rig-b", ...record}]);
  assert.deepEqual(await act("Actions on gpu-pool", "Drain the pool…", {}, "Drain"), ["POST /pools/gpu-pool/drain", record]);
  assert.deepEqual(await act("Actions on gpu-pool", "Change the capacity…", {Capacity: "6"}, "Change"),
    ["PUT /pools/gpu-pool", {capacity: 6, ...record}]);
  assert.deepEqual(await act("Actions on lab-rig", "Change the capacity…", {Slots: "rig-a rig-c"}, "Change"),
    ["PUT /pools/lab-rig", {slots: ["rig-a", "rig-c"], ...record}]);
  const [asked, {requestId, ...body}] = await act("Actions on gpu-pool slot 3", "Hold for maintenance…", {"For how long": "1h30m"}, "Hold");
  assert.equal(asked, "POST /pools/gpu-pool/acquire");
  assert.match(requestId, /^page-[0-9a-f]{32}$/);
  assert.deepEqual(body, {holder: "operator ana", only: ["3"], lease: "5400s", wait: "0s", reason: "fan", labels: {user: "ana"}});

  // What was taken here is given back as it is given back by any holder.
  const own = {...hold("gpu-pool", "3", {holder: "operator ana", workflow: false}), fence: 77, runId: "run-77"};
  site.send("changes", {pools: [pool("gpu-pool", [...gpu.slots.slice(0, 3), {slot: "3", permit: own}])]});
  await page.getByText("operator ana").waitFor();
  await page.getByRole("button", {name: "Actions on gpu-pool slot 3"}).click();
  await page.getByRole("menuitem", {name: "Release…"}).click();
  await page.getByRole("dialog").getByRole("button", {name: "Release"}).click();
  await page.getByRole("dialog").waitFor({state: "hidden"});
  assert.deepEqual([site.requests.at(-1).path, site.requests.at(-1).body], ["/permits/permit:gpu-pool:3/release", {token: "secret"}]);
  await page.check();
});

test("an error stays in its dialog, and what may have happened is said", async (t) => {
  const site = await fixture_site(t, lab(), async () => [409, refusal(9, "POOL_FULL", "no slot of gpu-pool is free")]);
  const page = await open_page(t, site);
  page.expected_errors.push(/409/);
  await page.getByRole("button", {name: "Actions on gpu-pool slot 3"}).click();
  await page.getByRole("menuitem", {name: "Hold for maintenance…"}).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Reason").fill("fan");
  await page.keyboard.press("Enter");
  await dialog.getByRole("alert").getByText("No slot of gpu-pool is free.").waitFor();
  assert.deepEqual(await axe_problems(page), []);
  await page.keyboard.press("Escape");
  await dialog.waitFor({state: "hidden"});
  assert.equal(await focused(page), "BUTTON Actions on gpu-pool slot 3");
});

test("512 slots: the arrows move, words follow, and nothing takes 100 ms", async (t) => {
  const big = large(512);
  const site = await fixture_site(t, snapshot({pools: [big]}));
  const page = await open_page(t, site);
  const square = (name) => page.locator(`.squares [data-slot="${name}"]`);
  await square(511).waitFor();
  await square(0).focus();
  await page.keyboard.press("ArrowRight");
  await page.locator(".looked-at").getByText("train-1").waitFor();
  await page.keyboard.press("End");
  assert.equal(await focused(page), "BUTTON 511 held");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowDown");
  assert.equal(await focused(page), "BUTTON 511 held");
  assert.equal(await page.locator(".squares [tabindex='0']").count(), 1);
  await page.keyboard.press("Enter");
  await page.getByRole("menuitem", {name: "Release by force…"}).waitFor();
  await page.keyboard.press("Escape");
  assert.equal(await focused(page), "BUTTON 511 held");

  const times = {
    "an arrow key": await worst_interaction(page, () => document.activeElement.dispatchEvent(
      new KeyboardEvent("keydown", {key: "ArrowUp", bubbles: true})), 9),
    "pointing at a square": await worst_interaction(page, (i) => document.querySelector(`[data-slot="${i * 7}"]`)
      .dispatchEvent(new PointerEvent("pointerover", {bubbles: true})), 9),
    "a letter in the filter": await worst_interaction(page, (i) => {
      const filter = document.querySelector("[data-filter]");
      filter.value = i % 2 ? "" : `train-${i}`;
      filter.dispatchEvent(new Event("input"));
    }, 10),
    "opening a menu": await worst_interaction(page, (i) => document.querySelector(`[data-slot="${i}"]`).click(), 9),
    "the theme": await worst_interaction(page, (i) => {
      const theme = document.getElementById("theme");
      theme.value = i % 2 ? "light" : "dark";
      theme.dispatchEvent(new Event("change"));
    }, 9),
  };
  times["a change of all slots"] = await worst_change(page, async (i) => {
    site.send("changes", {pools: [{...large(512), changes: Array(i + 1).fill({at: at(0), what: "round"})}]});
    await page.getByText(new RegExp(`^${i + 1} changes? by hand$`)).waitFor();
  }, 10);
  for (const [what, milliseconds] of Object.entries(times)) {
    console.log(`${what}: ${milliseconds.toFixed(1)} ms`);
    assert.ok(milliseconds < 100, `${what} took ${milliseconds} ms`);
  }
  await page.check();
});
