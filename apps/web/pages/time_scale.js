// Where on the timeline a time is. Long idle stretches can be folded to a narrow band.

const folded_width = 22;
const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
  172_800, 604_800].map((seconds) => seconds * 1000);

export class TimeScale {
  #parts;  // {from, to, x, width, folded}, side by side

  // `idle`: [[from, to]], in order, the stretches to fold.
  constructor(from, to, width, idle = []) {
    Object.assign(this, {from, to, width});
    const times = [from, ...idle.flat(), to];
    const folded = idle.length;
    const shown = to - from - idle.reduce((sum, [a, b]) => sum + b - a, 0);
    const per_ms = Math.max(0, width - folded * folded_width) / Math.max(1, shown);
    let x = 0;
    this.#parts = times.slice(1).map((end, i) => {
      const is_folded = i % 2 === 1;
      const part = {from: times[i], to: end, x, folded: is_folded,
        width: is_folded ? folded_width : (end - times[i]) * per_ms};
      x += part.width;
      return part;
    });
    this.per_ms = per_ms;
  }

  // Times outside are at the ends.
  x(time) {
    if (time <= this.from) return 0;
    for (const part of this.#parts) {
      if (time < part.to) return part.x + (time - part.from) / (part.to - part.from) * part.width;
    }
    return this.width;
  }

  time(x) {
    const part = this.#parts.find((one) => x < one.x + one.width) ?? this.#parts.at(-1);
    return part.from + Math.min(1, Math.max(0, (x - part.x) / (part.width || 1))) * (part.to - part.from);
  }

  folds() {
    return this.#parts.filter(({folded}) => folded);
  }

  // Round times, at least so many pixels apart, in the reader's zone.
  ticks(apart) {
    const step = steps.find((one) => one * this.per_ms >= apart) ?? steps.at(-1);
    const zone = new Date(this.to).getTimezoneOffset() * 60_000;
    const found = [];
    for (const {from, to, folded} of this.#parts) {
      if (folded) continue;
      for (let time = Math.ceil((from - zone) / step) * step + zone; time <= to && found.length < 200; time += step) {
        found.push({time, x: this.x(time)});
      }
    }
    return found;
  }
}

// The stretches of [from, to], which ends now at the latest, in which none of the rows' holds was open and that are long enough to
// be worth folding; a little is left on both sides. Found in a raster, so it costs one pass.
export function idle_stretches(lists, from, to) {
  const cells = 1500;
  const cell = (to - from) / cells;
  const changes = new Int32Array(cells + 2);
  const at = (time) => Math.min(cells, Math.max(0, Math.floor((time - from) / cell)));
  for (const records of lists) {
    for (const {begin, end} of records) {
      if (begin >= to || end <= from) continue;
      changes[at(begin)]++;
      changes[at(end) + 1]--;
    }
  }
  const idle = [];
  let [open, since] = [0, 0];
  for (let i = 0; i <= cells; ++i) {
    const before = open;
    open += changes[i];
    if (before > 0 && open === 0) since = i;
    const ends = i === cells || open > 0;
    if (!ends || before > 0 || i - since <= cells / 12) continue;
    idle.push([from + (since + cells / 80) * cell, from + (i - cells / 80) * cell]);
  }
  return idle;
}
