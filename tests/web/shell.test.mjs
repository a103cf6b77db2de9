// The page's frame: the stream, how fresh it is, navigation, theme, keyboard.
import assert from "node:assert/strict";
import test from "node:test";
import {eventually, fixture_site, focused, open_page, start_chromium} from "./harness.mjs";
import {ended, hold, lab, pool, snapshot} from "./made_up.mjs";

test("the page shows the pools of the stream, and asks nobody else for anything", async (t) => {
  const site = await fixture_site(t, lab());
  const page = await open_page(t, site);
  await page.getByText("● live").waitFor();
  await page.getByRole("heading", {name: "gpu-pool"}).waitFor();
  assert.equal(await page.title(), "Pools · Permit");
  await page.check();
});

test("a silent server is called stale within 6 s, and live again by itself", async (t) => {
  const site = await fixture_site(t, lab());
  const page = await open_page(t, site);
  await page.getByText("● live").waitFor();
  site.silent = true;
  const began = performance.now();
  await page.getByText("○ stale - reconnecting").waitFor({timeout: 20_000});
  assert.ok(performance.now() - began < 6_000 + 5_000, "silent since the last ping, and what a busy machine adds");
  site.silent = false;
  await page.getByText("● live").waitFor();
  await page.check();
});

test("after the server was away the page goes on where it was", async (t) => {
  const site = await fixture_site(t, snapshot({pools: [pool("gpu", [{slot: "0"}])]}));
  const page = await open_page(t, site);
  page.expected_errors.push(/503/, /ERR_INCOMPLETE|ERR_CONNECTION|network/);
  await page.getByText("● live").waitFor();
  site.send("changes", {pools: [pool("gpu", [{slot: "0", permit: hold("gpu", "0", {holder: "first"})}])]});
  await page.getByText("first").waitFor();
  const seen = site.snapshot.seq;
  site.refuse = true;
  site.cut();
  const began = performance.now();
  await page.getByText("○ stale - reconnecting").waitFor({timeout: 20_000});
  assert.ok(performance.now() - began < 9_000, "stale within 6 s, and what a busy machine adds");
  site.snapshot = {...site.snapshot, seq: seen + 5,
    pools: [pool("gpu", [{slot: "0", permit: hold("gpu", "0", {holder: "second"})}])]};
  site.refuse = false;
  await page.getByText("second").waitFor();
  await page.getByText("● live").waitFor();
  assert.equal(site.last_event_id, String(seen));
});

for (const [where, host] of [["this machine", "127.0.0.1"], ["a plain host name", "gpu-host"]]) {
  test(`eight tabs share one stream, on ${where}`, async (t) => {
    const site = await fixture_site(t, snapshot({pools: [pool("gpu", [{slot: "0"}])]}));
    const browser = await start_chromium(t, {hosts: ["gpu-host"]});
    const context = await browser.newContext();
    const origin = `http://${host}:${site.port}`;
    const tabs = [];
    for (let i = 0; i < 8; ++i) tabs.push(await open_page(t, site, "#/pools", {context, origin}));
    for (const tab of tabs) await tab.getByText("● live").waitFor();
    assert.equal(await tabs[0].evaluate(() => isSecureContext), host === "127.0.0.1");
    assert.equal(site.streams_ever, 1);
    site.send("changes", {pools: [pool("gpu", [{slot: "0", permit: hold("gpu", "0", {holder: "train-1"})}])]});
    for (const tab of tabs) await tab.getByText("train-1").waitFor();
    for (const tab of tabs.splice(1)) await tab.close();
    assert.equal(site.streams, 1);
    await tabs[0].goto("about:blank");
    await eventually(() => site.streams === 0, "the stream ends with the last tab");
  });
}

test("whoever goes elsewhere and comes back finds the page live", async (t) => {
  const site = await fixture_site(t, lab());
  const page = await open_page(t, site);
  await page.goto("about:blank");
  await page.goBack();
  await page.getByText("● live").waitFor();
  await page.getByRole("heading", {name: "gpu-pool"}).waitFor();
  await eventually(() => site.streams === 1, "the stream of before has ended");
});

test("where there is no shared worker, the tab reads the stream itself", async (t) => {
  const site = await fixture_site(t, lab());
  const page = await open_page(t, site, "#/pools", {prepare: (early) => early.addInitScript(() => {
    delete globalThis.SharedWorker;
  })});
  await page.getByText("● live").waitFor();
  await page.getByRole("heading", {name: "gpu-pool"}).waitFor();
  await page.check();
});

for (const hours of [-3, 5]) {
  test(`countdowns go by the server's clock when the reader's is ${hours} h off`, async (t) => {
    const open = hold("gpu", "0", {left: 100, held: 20});
    const site = await fixture_site(t, snapshot({pools: [pool("gpu", [{slot: "0", permit: open}])]}));
    const page = await open_page(t, site, "#/pools", {prepare: (early) => early.addInitScript((ms) => {
      const Real = Date;
      globalThis.Date = class extends Real {
        constructor(...values) {
          super(...(values.length === 0 ? [Real.now() + ms] : values));
        }
        static now() {
          return Real.now() + ms;
        }
      };
    }, hours * 3_600_000)});
    const timer = page.getByRole("timer");
    const seen = new Set();
    const left = () => (Date.parse(open.deadline) - Date.now()) / 1000;
    const end = performance.now() + 10_000;
    while (seen.size < 4 && performance.now() < end) {
      const most = left();
      const text = await timer.textContent();
      const least = left();
      const [, minutes = 0, seconds] = /^(?:(\d+)m )?(\d+)s left$/.exec(text);
      const shown = Number(minutes) * 60 + Number(seconds);
      // A second may be shown for a little longer than it lasts: hours are what would be wrong.
      assert.ok(least - 1.1 <= shown && shown <= most + 3, `${text} where ${least.toFixed(2)} s are left`);
      seen.add(text);
      await new Promise((done) => setTimeout(done, 100));
    }
    assert.ok(seen.size >= 4, `it ticks: ${[...seen].join(", ")}`);
    await page.check();
  });
}

test("the theme is kept, in all tabs", async (t) => {
  const site = await fixture_site(t, lab());
  const page = await open_page(t, site);
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await background();
  await page.getByLabel("Theme").selectOption("Dark");
  const dark = await background();
  assert.notEqual(dark, light);
  const other = await open_page(t, site, "#/pools", {context: page.context()});
  assert.equal(await other.getByLabel("Theme").inputValue(), "dark");
  await page.getByLabel("Theme").selectOption("Light");
  await eventually(() => other.evaluate(() => document.documentElement.dataset.theme === "light"), "the other tab follows");
  await page.reload();
  assert.equal(await background(), light);
});

test("the keyboard reaches pages, filter and help", async (t) => {
  const site = await fixture_site(t, lab());
  const page = await open_page(t, site);
  await page.getByRole("heading", {name: "gpu-pool"}).waitFor();
  await page.keyboard.press("/");
  assert.equal(await focused(page), "INPUT Filter by pool, slot or holder");
  await page.keyboard.type("rig-a");
  await page.getByRole("heading", {name: "gpu-pool"}).waitFor({state: "hidden"});
  assert.match(page.url(), /#\/pools\?q=rig-a$/);
  await page.reload();
  assert.equal(await page.getByLabel("Filter by pool, slot or holder").inputValue(), "rig-a");
  await page.keyboard.press("/");
  await page.keyboard.press("Escape");
  await page.getByRole("heading", {name: "gpu-pool"}).waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("?");
  await page.getByRole("dialog", {name: "Keys"}).waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("g");
  await page.keyboard.press("a");
  await eventually(async () => await focused(page) === "H1 About", "the heading of the page has the focus");
  await page.keyboard.press("g");
  await page.keyboard.press("p");
  await page.getByRole("heading", {name: "gpu-pool"}).waitFor();
  assert.equal(await focused(page), "H1 Pools");
});

test("screen readers are told what happened, not more often than each 5 s", async (t) => {
  const site = await fixture_site(t, lab());
  const page = await open_page(t, site);
  await page.getByText("● live").waitFor();
  await page.evaluate(() => {
    globalThis.said = [];
    new MutationObserver(() => said.push([performance.now(), document.getElementById("say").textContent]))
      .observe(document.getElementById("say"), {childList: true, characterData: true, subtree: true});
  });
  // For longer than 5 s, and until it has said something twice, which a busy machine may do late.
  const began = performance.now();
  let said = [];
  for (let i = 0; performance.now() < began + 6_500 || (said.length < 2 && performance.now() < began + 20_000); ++i) {
    site.send("changes", {holds: [ended("gpu-pool", String(i % 4), "lease_expired", 0, {cause: "timer"})]});
    await new Promise((done) => setTimeout(done, 250));
    said = await page.evaluate(() => globalThis.said);
  }
  assert.ok(said.length >= 2, JSON.stringify(said));
  assert.match(said[0][1], /^\d+ lease expired: gpu-pool 0/);
  for (let i = 1; i < said.length; ++i) assert.ok(said[i][0] - said[i - 1][0] > 4_900);
  assert.equal(await page.locator("[aria-live=polite]").count(), 1);
});

test("an upgraded server asks for the page to be loaded again", async (t) => {
  const site = await fixture_site(t, lab());
  const page = await open_page(t, site);
  await page.getByText("● live").waitFor();
  site.send("snapshot", {...site.snapshot, version: "9.9.9"});
  await page.getByText("The server has been upgraded to 9.9.9.").waitFor();
  await page.getByRole("button", {name: "Reload this page"}).click();
  await page.getByText("● live").waitFor();
});

test("words on every colour have a contrast of 4.5 : 1 or more", async (t) => {
  const page = await open_page(t, await fixture_site(t, lab()));
  for (const theme of ["light", "dark"]) {
    await page.getByLabel("Theme").selectOption(theme);
    const poor = await page.evaluate(() => {
      const probe = document.body.appendChild(document.createElement("p"));
      const luminance = (color) => {
        const [r, g, b] = color.match(/[\d.]+/g).map((part) => part / 255).map((part) =>
          (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const contrast = (ink, paper) => {
        probe.style.setProperty("color", ink);
        probe.style.setProperty("background-color", paper);
        const {color, backgroundColor} = getComputedStyle(probe);
        const [a, b] = [luminance(color), luminance(backgroundColor)].sort((x, y) => y - x);
        return (a + 0.05) / (b + 0.05);
      };
      const pairs = ["bg", "card", "raised", "sunk", "expired-bg", "danger-bg", "held-bg"].flatMap((paper) =>
        [["fg", paper], ...(paper === "danger-bg" ? [] : [["dim", paper]])]);
      for (const name of ["held", "released", "expired", "closed", "forced", "danger"]) pairs.push([name, `${name}-bg`], [name, "card"]);
      for (const paper of ["bg", "card", "sunk", "raised"]) pairs.push(["link", paper]);
      pairs.push(["on-accent", "accent"]);
      return pairs.map(([ink, paper]) => [ink, paper, contrast(`var(--${ink})`, `var(--${paper})`)])
        .filter(([, , ratio]) => ratio < 4.5);
    });
    assert.deepEqual(poor, [], theme);
  }
});
