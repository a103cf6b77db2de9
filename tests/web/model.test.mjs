// What the page does without a browser: the reading of a stream, the model, the wording of times.
import assert from "node:assert/strict";
import test from "node:test";
import {clock_text, duration_text, glyph_of, short_id} from "../../apps/web/dom.js";
import {left_text, payload_text, seems_alive, times_of, worker_of} from "../../apps/web/holds.js";
import {State} from "../../apps/web/state.js";
import {MessageParser} from "../../apps/web/stream.js";
import {at, ended, hold, lab, pool, waiter} from "./made_up.mjs";

test("a stream's messages are the same however its text is cut", () => {
  const text = "retry: 1000\n\n: a comment\nid: 7\nevent: snapshot\ndata: {\"a\":\ndata: 1}\n\n" +
    "event: ping\r\ndata: {}\r\n\r\ndata: x\n\n";
  const expected = [{event: "snapshot", data: "{\"a\":\n1}", id: "7"},
    {event: "ping", data: "{}", id: undefined}, {event: "message", data: "x", id: undefined}];
  for (let cut = 0; cut <= text.length; ++cut) {
    const parser = new MessageParser();
    const messages = [];
    parser.push(text.slice(0, cut), (message) => messages.push(message));
    parser.push(text.slice(cut), (message) => messages.push(message));
    assert.deepEqual(messages, expected, `cut at ${cut}`);
  }
});

function loaded() {
  const state = new State();
  const told = [];
  state.subscribe((changed) => told.push(changed));
  state.apply("snapshot", lab());
  return {state, told};
}

test("a snapshot replaces everything", () => {
  const {state, told} = loaded();
  assert.deepEqual(state.sorted_pools().map((known) => known.pool), ["gpu-pool", "lab-rig", "shard-migrate"]);
  assert.equal(told[0].all, true);
  state.apply("snapshot", {seq: 9, pools: [pool("other", [])]});
  assert.deepEqual([...state.pools.keys()], ["other"]);
  assert.deepEqual([state.alerts, state.queues, state.holds_of("gpu-pool"), state.seq], [[], [], [], 9]);
});

test("a partial pool changes only the slots it has", () => {
  const {state, told} = loaded();
  const before = state.slot("gpu-pool", "0");
  const {slots, changes, ...rest} = state.pools.get("gpu-pool");
  const news = {slot: "3", permit: hold("gpu-pool", "3")};
  state.apply("changes", {seq: 2, pools: [{...rest, held: 4, partial: true, slots: [news]}]});
  assert.equal(state.slot("gpu-pool", "0"), before);
  assert.equal(state.slot("gpu-pool", "3"), news);
  assert.equal(state.pools.get("gpu-pool").held, 4);
  assert.equal(state.pools.get("gpu-pool").changes, changes);
  assert.deepEqual([...told[1].keys], ["pools", "pool:gpu-pool"]);
});

test("a pool without slots is a pool", () => {
  const state = new State();
  state.apply("snapshot", {seq: 1, pools: [{pool: "empty"}]});
  state.apply("changes", {seq: 2, pools: [{pool: "new"}]});
  assert.deepEqual(state.sorted_pools().map((known) => [known.pool, known.slots]), [["empty", []], ["new", []]]);
  assert.deepEqual(state.open_holds(), []);
});

test("pools come and go, lines and queues and alerts are replaced whole", () => {
  const {state, told} = loaded();
  state.apply("changes", {seq: 2, removed: ["lab-rig"], pools: [pool("new", [{slot: "0"}])],
    lines: [{pool: "gpu-pool", waiting: 1, waiters: [waiter("gpu-pool", 2, "x", 1)]}], alertsChanged: true,
    queues: [{name: "q"}]});
  assert.deepEqual([...state.pools.keys()].sort(), ["gpu-pool", "new", "shard-migrate"]);
  assert.equal(state.lines.get("gpu-pool").waiters.length, 1);
  assert.deepEqual([state.alerts, state.queues], [[], [{name: "q"}]]);
  for (const key of ["removed", "pool:new", "line:gpu-pool", "alerts", "queues"]) assert.ok(told[1].keys.has(key), key);
});

test("ended holds are kept the newest first, each once", () => {
  const {state} = loaded();
  const known = state.holds_of("gpu-pool").map((one) => one.runId);
  const late = ended("gpu-pool", "1", "lease_expired", 1);
  state.apply("changes", {seq: 2, holds: [late]});
  state.apply("changes", {seq: 3, holds: [{...late, possibleOverlap: true}]});
  assert.deepEqual(state.holds_of("gpu-pool").map((one) => one.runId), [late.runId, ...known]);
  assert.equal(state.holds_of("gpu-pool")[0].possibleOverlap, true);
});

test("what one model tells, another understands", () => {
  const {state} = loaded();
  const other = new State();
  other.apply("snapshot", JSON.parse(JSON.stringify(state.snapshot())));
  assert.deepEqual({...other.snapshot(), now: 0}, {...state.snapshot(), now: 0});
});

test("the server's clock is the earliest it can be, unless a clock was set", (t) => {
  const state = new State();
  const real = Date.now;
  t.after(() => Date.now = real);
  Date.now = () => 1_000_000;
  const server = (ms) => state.apply("ping", {now: new Date(ms).toISOString()});
  server(5_000_000);
  assert.equal(state.now(), 5_000_000);
  server(4_999_800);  // this one was 200 ms under way
  assert.equal(state.now(), 5_000_000);
  server(5_000_100);
  assert.equal(state.now(), 5_000_100);
  server(2_000_000);  // the server's clock was set back
  assert.equal(state.now(), 2_000_000);
});

test("durations are worded as by the command", () => {
  const cases = [[0, "0ms"], [999, "999ms"], [1000, "1s"], [59_999, "59s"], [60_000, "1m 00s"], [151_000, "2m 31s"],
    [3_599_999, "59m 59s"], [3_600_000, "1h 00m"], [86_399_000, "23h 59m"], [86_400_000, "1d 00h"],
    [183_600_000, "2d 03h"], [-5_000, "-5s"]];
  for (const [milliseconds, text] of cases) assert.equal(duration_text(milliseconds), text);
  assert.equal(short_id("01a1f13f-9730-7000-98fe-6b08764f82b9"), "764f82b9");
  const noon = new Date(2026, 4, 3, 12, 0, 5);
  assert.equal(clock_text(noon.toISOString(), noon), "12:00:05");
});

test("every outcome has a glyph of its own", () => {
  const words = ["held", "released", "lease_expired", "holder_closed", "force_released", "waiting"];
  assert.equal(new Set(words.map(glyph_of)).size, words.length);
});

test("a hold says whose it is, how long it lasts and whether its holder lives", () => {
  const now = Date.now();
  const renewed = hold("gpu", "0", {workflow: false, held: 10, left: 80, labels: {host: "h", pid: "7"}});
  assert.equal(worker_of(renewed), "7@h");
  assert.equal(worker_of(hold("gpu", "0")), "worker-1@gpu-host-a");
  assert.equal(seems_alive(renewed, now), true);
  assert.equal(seems_alive({...renewed, deadline: at(40)}, now), false);
  assert.equal(seems_alive({...renewed, deadline: at(40), renewedAt: undefined}, now), true);
  const late_of = (lease) => times_of({...renewed, lease}).late / 1000;
  assert.deepEqual(["30s", "300s", "600s", "36000s"].map(late_of), [6, 60, 60, 3600]);
  assert.equal(left_text(now - 5, now), "over");
});

test("payloads are shown as text, whatever they are", () => {
  const payload = (data, encoding = "json/plain") => ({metadata: {encoding: btoa(encoding)}, data: btoa(data)});
  assert.equal(payload_text({payloads: [payload("{\"epoch\":3}"), payload("1")]}), "{\"epoch\":3}, 1");
  assert.equal(payload_text({payloads: [payload("abc", "binary/plain")]}), "3 bytes");
  assert.equal(payload_text({payloads: [{metadata: {encoding: "%"}, data: "%"}]}), "(not readable)");
  assert.equal(payload_text([3, "x"]), "3, \"x\"");
});
