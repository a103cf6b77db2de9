// What a hold of the timeline is in words, the same for its bar, its row in the table and its files.
import {chip, duration_text, h, run_link, short_id, time_element, time_of} from "../dom.js";
import {holder_element} from "../holds.js";

// How long it has been held, in milliseconds.
export function length_of(record, now) {
  return Math.max(0, Math.min(record.end, now) - record.begin);
}

// "may have overlapped the next hold", "given back 12s late"; "" if neither.
export function overlap_words({hold, late, end}) {
  if (late !== undefined && late > end) return `possible overlap: given back ${duration_text(late - end)} after it was lost`;
  return hold.possibleOverlap ? "possible overlap: not given back by its holder" : "";
}

// One sentence, for those who cannot see the bar.
export function describe(records, row, now) {
  if (records.length > 1) return `${row.pool} slot ${row.slot}: ${sum_of(records)}; Enter shows them larger`;
  const [record] = records;
  const {hold} = record;
  return [`${hold.pool} slot ${hold.slot}: ${record.kind}${hold.cause ? ` (${hold.cause})` : ""}`, hold.holder,
    `held ${duration_text(length_of(record, now))}`, `since ${new Date(record.begin).toLocaleString()}`,
    overlap_words(record), `fence ${hold.fence}`].filter(Boolean).join(", ");
}

// "12 holds: 10 released, 2 lease_expired"
export function sum_words(holds, counts) {
  const all = `${holds.toLocaleString("en")} ${holds === 1 ? "hold" : "holds"}`;
  const each = [...counts].filter(([, count]) => count > 0).map(([kind, count]) => `${count.toLocaleString("en")} ${kind}`);
  return [all, each.join(", ")].filter(Boolean).join(": ");
}

function sum_of(records) {
  const counts = new Map();
  for (const {kind} of records) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return sum_words(records.length, counts);
}

// The same as elements, below the picture.
export function words(records, row, now) {
  const place = h("b", {class: "mono"}, `${row.pool} ${row.slot}`);
  if (records.length > 1) {
    return [place, h("span", {}, sum_of(records)), h("span", {class: "dim"}, "within a pixel: zoom in to tell them apart")];
  }
  const [record] = records;
  const {hold} = record;
  const left = record.deadline > now ? `, lease ${duration_text(record.deadline - now)} left` : "";
  return [place, h("a", {class: "run", href: run_link(hold.id, hold.runId)}, chip(record.kind, {cause: hold.cause})),
    holder_element(hold), hold.reason && h("span", {class: "dim"}, hold.reason),
    h("span", {}, `held ${duration_text(length_of(record, now))}`, left),
    h("span", {class: "dim"}, "since ", time_element(hold.since, now), hold.closedAt && " until ",
      hold.closedAt && time_element(hold.closedAt, now)),
    h("span", {class: "dim"}, `fence ${hold.fence}, run ${short_id(hold.runId)}`),
    overlap_words(record) && h("b", {class: "alarm-text"}, `! ${overlap_words(record)}`)];
}

// --- As files ---

const columns = [
  ["permit", ({hold}) => hold.id], ["pool", ({hold}) => hold.pool], ["slot", ({hold}) => hold.slot],
  ["outcome", ({kind}) => kind], ["cause", ({hold}) => hold.cause], ["holder", ({hold}) => hold.holder],
  ["holderRunId", ({hold}) => hold.holderRunId], ["reason", ({hold}) => hold.reason],
  ["requestedAt", ({hold}) => hold.requestedAt], ["since", ({hold}) => hold.since],
  ["closedAt", ({hold}) => hold.closedAt], ["deadline", ({hold, end}) => (end === Infinity ? hold.deadline : "")],
  ["heldSeconds", (record, now) => length_of(record, now) / 1000],
  ["possibleOverlap", ({hold}) => Boolean(hold.possibleOverlap)],
  ["lateReleaseAt", ({hold}) => hold.lateReleaseAt], ["fence", ({hold}) => hold.fence],
  ["runId", ({hold}) => hold.runId],
];

// A cell of a CSV file. A spreadsheet takes what begins with one of = + - @ for a formula, and runs
// it; an apostrophe in front keeps it text. Numbers are written as they are.
export function csv_cell(value) {
  if (value === undefined || value === null) return "";
  if (typeof value !== "string") return String(value);
  const text = /^[=+\-@\t\r\n]/.test(value) ? `'${value}` : value;
  return /[",\r\n']/.test(text) ? `"${text.replaceAll("\"", "\"\"")}"` : text;
}

const formats = {
  csv: {type: "text/csv", head: columns.map(([name]) => name).join(",") + "\r\n",
    line: (record, now) => columns.map(([, of]) => csv_cell(of(record, now))).join(",") + "\r\n"},
  jsonl: {type: "application/jsonl", head: "", line: ({hold}) => JSON.stringify(hold) + "\n"},
};

// Gives the reader a file, a part at a time so that the page goes on meanwhile.
export async function download(records, format, now) {
  const {type, head, line} = formats[format];
  const parts = [head];
  for (let i = 0; i < records.length; i += 2000) {
    parts.push(records.slice(i, i + 2000).map((record) => line(record, now)).join(""));
    await new Promise((done) => setTimeout(done));
  }
  const url = URL.createObjectURL(new Blob(parts, {type: `${type};charset=utf-8`}));
  const stamp = new Date(now).toISOString().slice(0, 19).replace(/[:T]/g, "-");
  h("a", {href: url, download: `permits-${stamp}.${format}`}).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

// How a hold sorts, for each column of the table.
export const sort_keys = {
  pool: ({hold}) => `${hold.pool}\n${hold.slot}`, outcome: ({kind}) => kind, holder: ({hold}) => hold.holder ?? "",
  held: length_of, since: ({begin}) => begin, ended: ({hold}) => time_of(hold.closedAt) ?? Infinity,
  fence: ({hold}) => hold.fence, run: ({hold}) => short_id(hold.runId),
};
