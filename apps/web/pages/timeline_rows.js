// What the timeline shows for a choice of pool, outcomes and text: its rows, and the holds in them.
import {key_of} from "../ledger.js";
import {by_name} from "../state.js";
import {first_ending_after} from "./bars.js";

export const outcomes = ["held", "released", "lease_expired", "holder_closed", "force_released"];

// What was found of a row before, for as long as neither it nor the choice changes.
const found_before = new WeakMap();  // LedgerRow -> {version, chosen, alike, records}

function records_of(row, {q, outcome, chosen}) {
  const known = found_before.get(row);
  if (known && known.version === row.version && known.chosen === chosen) return known;
  const alike = q === "" ? row.records : row.records.filter(({text}) => text.includes(q));
  const records = outcome.size === 0 ? alike : alike.filter(({kind}) => outcome.has(kind));
  const found = {version: row.version, chosen, alike, records};
  found_before.set(row, found);
  return found;
}

// choice: {pool, outcome: a Set, q: in lower case, chosen: a text that tells choices apart}. Rows are
// {key, kind: "pool" or "slot", label, title}, and those of slots {pool, slot, records, alike: also
// those of other outcomes, kept_from}. With a filter, only slots that have something in the range.
export function rows_of(state, ledger, choice, {from, to}) {
  const filtered = choice.q !== "" || choice.outcome.size > 0;
  const rows = [];
  for (const [pool, slots] of places(state, ledger, choice.pool)) {
    const of_pool = [];
    for (const slot of slots) {
      const key = key_of(pool, slot);
      const known = ledger.rows.get(key);
      const {records, alike} = known ? records_of(known, choice) : {records: [], alike: []};
      if (filtered && !has_some(records, from, to)) continue;
      of_pool.push({key, kind: "slot", label: slot, title: `${pool} slot ${slot}`, pool, slot, records, alike,
        kept_from: known?.kept_from ?? -Infinity});
    }
    if (of_pool.length === 0) continue;
    rows.push({key: key_of(pool), kind: "pool", label: pool}, ...of_pool);
  }
  return rows;
}

// [pool, slots in their order, then those that are gone], by name.
function places(state, ledger, only) {
  const found = new Map(state.sorted_pools().map(({pool, slots}) => [pool, new Set(slots.map(({slot}) => slot))]));
  for (const {pool, slot, records} of ledger.rows.values()) {
    if (records.length === 0) continue;
    if (!found.has(pool)) found.set(pool, new Set());
    found.get(pool).add(slot);
  }
  return [...found].filter(([pool]) => only === "" || pool === only).sort(([a], [b]) => by_name(a, b));
}

function has_some(records, from, to) {
  const first = records[first_ending_after(records, from)];
  return first !== undefined && first.begin < to;
}

// The holds of the rows that are in the range; how many there are of each outcome, of those shown
// and of all whichever are chosen; and of how many slots the server has forgotten some.
export function holds_within(rows, {from, to}) {
  const records = [];
  const counts = new Map(outcomes.map((name) => [name, 0]));
  const shown = new Map(counts);
  let forgotten = 0;
  const each_within = (list, use) => {
    for (let i = first_ending_after(list, from); i < list.length && list[i].begin < to; ++i) use(list[i]);
  };
  for (const row of rows) {
    if (row.kind !== "slot") continue;
    if (row.kept_from > from) forgotten++;
    each_within(row.alike, ({kind}) => counts.set(kind, counts.get(kind) + 1));
    each_within(row.records, (record) => {
      records.push(record);
      shown.set(record.kind, shown.get(record.kind) + 1);
    });
  }
  return {records, counts, shown, forgotten};
}
