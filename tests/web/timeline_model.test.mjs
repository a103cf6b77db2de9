// What the timeline does without a browser: scales, bars, order, ranges.
import assert from "node:assert/strict";
import test from "node:test";
import {record_of} from "../../apps/web/ledger.js";
import {bar_at, bars_of} from "../../apps/web/pages/bars.js";
import {part_sorted, unsorted} from "../../apps/web/pages/hold_table.js";
import {bounds_of, panned, range_of, range_query, zoomed} from "../../apps/web/pages/range_picker.js";
import {idle_stretches, TimeScale} from "../../apps/web/pages/time_scale.js";

const minute = 60_000;
const start = Date.parse("2026-11-19T02:00:00Z");
const time = (minutes) => new Date(start + minutes * minute).toISOString();

// A hold from so many minutes after the start to so many, or open.
function record(from, to, more = {}) {
  return record_of({pool: "gpu", slot: "0", fence: Math.round(from * 1000), holder: `job-${from}`, runId: `r${from}`, since: time(from),
    ...(to === undefined ? {state: "held"} : {state: "closed", outcome: "released", closedAt: time(to)}), ...more});
}

test("a scale leads from times to pixels and back, also over folded stretches", () => {
  const scale = new TimeScale(start, start + 100 * minute, 1000, [[start + 20 * minute, start + 60 * minute]]);
  const [fold] = scale.folds();
  assert.equal(scale.x(start), 0);
  assert.equal(scale.x(start + 100 * minute), 1000);
  assert.ok(fold.width < 30 && Math.abs(scale.x(start + 20 * minute) - fold.x) < 1e-6);
  for (const minutes of [0, 3, 19.9, 30, 61, 99]) {
    assert.ok(Math.abs(scale.time(scale.x(start + minutes * minute)) - start - minutes * minute) < 1, `${minutes} min`);
  }
  assert.ok(scale.ticks(90).every(({time: at}) => at % (5 * minute) === 0 && (at <= start + 20 * minute || at >= start + 60 * minute)));
});

test("only stretches in which no slot is held are folded, and only long ones", () => {
  const rows = [[record(0, 10), record(70)], [record(12, 20)]];
  const idle = idle_stretches(rows, start, start + 100 * minute);
  assert.equal(idle.length, 1, "not the 2 minutes between, nor the open hold's");
  const [[from, to]] = idle.map((stretch) => stretch.map((at) => (at - start) / minute));
  assert.ok(from > 20 && from < 23 && to < 70 && to > 67, `${from} to ${to}`);
  assert.equal(idle_stretches([[]], start, start + minute).length, 1, "nothing at all");
  assert.equal(idle_stretches([[record(-50, 200)]], start, start + 100 * minute).length, 0);
});

test("bars under a pixel merge with their like, count, and look like the worst of them", () => {
  const scale = new TimeScale(start, start + 100 * minute, 100);
  const records = [record(0, 10), ...Array.from({length: 20}, (_, i) => record(20 + i * .2, 20.1 + i * .2, i === 9 ? {outcome: "lease_expired"} : {})), record(50)];
  const bars = bars_of(records, scale, start + 60 * minute);
  assert.deepEqual(bars.map(({count, kind}) => [count, kind]), [[1, "released"], [20, "lease_expired"], [1, "held"]]);
  assert.equal(bars[2].end, 60, "an open one ends now");
  assert.equal(bar_at(bars, 5), bars[0]);
  assert.equal(bar_at(bars, 26), bars[1]);
  assert.equal(bar_at(bars, 40), undefined);
});

test("an overlap lasts until the slot was given back, or is left open", () => {
  const scale = new TimeScale(start, start + 100 * minute, 1000);
  const lost = {outcome: "lease_expired", possibleOverlap: true};
  const [late, open] = bars_of([record(0, 10, {...lost, lateReleaseAt: time(20)}), record(30, 40, lost)], scale, start + 60 * minute);
  assert.deepEqual(late.overlap, {x: 100, end: 200, known: true});
  assert.equal(open.overlap.known, false);
  assert.equal(bars_of([record(0, 10)], scale, start)[0].overlap, undefined);
});

test("a page of the table is what a whole sort would give, in every order", () => {
  let seed = 1;
  const random = (most) => (seed = seed * 48_271 % 2_147_483_647) % most;
  const records = Array.from({length: 700}, (_, i) => record(random(500) + i / 1000, 501 + random(50), {holder: `job-${random(30)}`, slot: String(random(12)),
    outcome: ["released", "lease_expired"][random(2)]}));
  for (const sort of ["-since", "held", "holder", "-pool", "outcome", "-fence", "run", "ended"]) {
    const whole = part_sorted(unsorted(records, sort, start), 0, records.length);
    const parts = unsorted(records, sort, start);
    for (const first of [75, 0, 675, 300]) {
      assert.deepEqual(part_sorted(parts, first, first + 25).map(({hold}) => hold.runId), whole.slice(first, first + 25).map(({hold}) => hold.runId), `${sort} from ${first}`);
    }
  }
  const slots = part_sorted(unsorted(records, "pool", start), 0, 700).map(({hold}) => Number(hold.slot));
  assert.deepEqual(slots, slots.toSorted((a, b) => a - b), "2 before 10");
});

test("a range is read from the address and written to it; what is none is the last hour", () => {
  const read = (text) => range_of(new URLSearchParams(text));
  assert.deepEqual(read("range=15m"), {length: 15 * minute});
  for (const text of ["", "range=x", "range=-1h", "range=9999d", "from=2026-11-19T02:00:00Z", "from=2026-11-19T02:00:00Z&to=2026-11-19T01:00:00Z"]) {
    assert.deepEqual(read(text), {length: 60 * minute}, text);
  }
  for (const range of [{length: 15 * minute}, {length: 90_000}, {from: start, to: start + minute}]) {
    assert.deepEqual(read(new URLSearchParams(range_query(range))), range);
  }
  const {from, to} = bounds_of({length: 60 * minute}, start);
  assert.ok(from === start - 60 * minute && to > start, "with room for the leases that are left");
  assert.deepEqual(zoomed({length: 60 * minute}, .5, undefined, start), {length: 30 * minute}, "ends now still");
  assert.deepEqual(zoomed({from: 0, to: 1_000_000}, .5, 500_000, start), {from: 250_000, to: 750_000});
  assert.deepEqual(panned({length: minute}, 1, start), {length: minute}, "there is nothing later than now");
  assert.deepEqual(panned({from: 0, to: 1000}, 1, start), {from: 500, to: 1500});
  assert.ok(panned({from: start - 2 * minute, to: start - 1000}, 1, start).length > 0, "and so to now");
});
