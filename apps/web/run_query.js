// The filter of the list of runs: what the address says of it, the list query that the server
// takes, and the command that shows the same.
import {outcomes, statuses} from "./runs.js";

const ranges = {"15m": 15, "1h": 60, "6h": 360, "24h": 1_440, "7d": 10_080};
export const range_names = Object.keys(ranges);

// The parts of the address that make the filter, in the order of the query.
export const filter_names = ["id", "status", "outcome", "type", "queue", "since", "until", "q"];

function list_of(text, known) {
  return (text ?? "").split(",").filter((word) => known.includes(word));
}

export function read_filter(query) {
  const filter = Object.fromEntries(filter_names.map((name) => [name, (query.get(name) ?? "").trim()]));
  return {...filter, status: list_of(filter.status, statuses), outcome: list_of(filter.outcome, outcomes)};
}

// A text as a value of the list query.
export function value_text(text) {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`;
}

function one_of(field, words) {
  if (words.length === 0) return "";
  if (words.length === 1) return `${field} = ${value_text(words[0])}`;
  return `${field} IN (${words.map(value_text).join(", ")})`;
}

// "1h" is the time an hour before `now`; a time is itself.
function time_text(text, now) {
  return Object.hasOwn(ranges, text) ? new Date(now - ranges[text] * 60_000).toISOString().replace(/\.\d+Z/, "Z") : text;
}

// The list query; "" finds every run.
export function list_query(filter, now) {
  const {id, status, outcome, type, queue, since, until, q} = filter;
  return [
    id && `WorkflowId STARTS_WITH ${value_text(id)}`,
    one_of("ExecutionStatus", status),
    one_of("Outcome", outcome),
    type && `WorkflowType = ${value_text(type)}`,
    queue && `TaskQueue = ${value_text(queue)}`,
    since && `StartTime >= ${value_text(time_text(since, now))}`,
    until && `StartTime < ${value_text(time_text(until, now))}`,
    q,
  ].filter(Boolean).join(" AND ");
}

// A word for a POSIX shell. Double quotes are easier to read around a query, where nothing in them
// means something to the shell.
export function shell_text(text) {
  if (text.includes("'") && !/["$\x60\\!]/.test(text)) return `"${text}"`;
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

// `permit`, with the address of this server if it is not the one that it takes by itself.
export function permit_command(words, origin = location.origin) {
  const standard = ["http://127.0.0.1:7376", "http://localhost:7376"].includes(origin);
  return ["permit", ...words, ...(standard ? [] : ["--address", origin])].map(shell_text).join(" ");
}

export function list_command(text, origin) {
  return permit_command(["workflow", "list", ...(text ? ["--query", text] : [])], origin);
}
