// The bars of one row of the timeline: from holds to pixels. What is narrower than a pixel is
// merged with its like beside it, and counted.

// What a merged bar looks like is what most needs looking at.
const ranks = ["released", "held", "holder_closed", "force_released", "lease_expired"];

// Bars from left to right: {x, end, kind, first, last: places in `records`, count, overlap: {x, end,
// known}, lease: {x, end}}. A bar of one hold has count 1.
export function bars_of(records, scale, now) {
  const bars = [];
  let last;
  for (let i = first_ending_after(records, scale.from); i < records.length; ++i) {
    const record = records[i];
    if (record.begin >= scale.to) break;
    const x = scale.x(record.begin);
    const end = Math.max(x, scale.x(Math.min(record.end, now)));
    const thin = end - x < 1;
    if (thin && last?.thin && x - last.end < 1) {
      last.end = Math.max(last.end, end);
      last.last = i;
      last.count++;
      if (ranks.indexOf(record.kind) > ranks.indexOf(last.kind)) last.kind = record.kind;
      last.overlap ??= overlap_of(record, scale, end);
      continue;
    }
    last = {x, end, thin, kind: record.kind, first: i, last: i, count: 1, overlap: overlap_of(record, scale, end),
      lease: record.end === Infinity && record.deadline > now ? {x: end, end: scale.x(record.deadline)} : undefined};
    bars.push(last);
  }
  return bars;
}

// How long two holders may have worked at once: until the first gave back, or nobody knows.
function overlap_of({late, hold, end}, scale, x) {
  if (late !== undefined && late > end) return {x, end: Math.max(x + 3, scale.x(late)), known: true};
  return hold.possibleOverlap ? {x, end: Math.min(x + 16, scale.width), known: false} : undefined;
}

// Holds of a slot end in the order in which they begin.
export function first_ending_after(records, time) {
  let [low, high] = [0, records.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (records[middle].end < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

// The bar at x, with a little help for those that are hard to hit.
export function bar_at(bars, x) {
  let best;
  let distance = 5;
  for (const bar of bars) {
    const away = Math.max(bar.x - x, x - Math.max(bar.end, bar.x + 2), 0);
    if (away < distance) [best, distance] = [bar, away];
  }
  return best;
}
