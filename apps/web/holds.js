// What a hold tells: whose it is, how long it lasts, whether its holder lives. The words and the
// rules are those of the command line.
import {duration_of, h, put, run_link, set_text, ticking_text, time_of} from "./dom.js";

// Who does the work: the worker of its activities, or the process that asked; "" if unknown.
export function worker_of(hold) {
  for (const {worker} of hold.activities ?? []) if (worker) return worker;
  const {host, pid} = hold.labels ?? {};
  return host ? (pid ? `${pid}@${host}` : host) : "";
}

// How long a lease is that was not told: as for one that was never renewed.
function lease_of(hold) {
  return duration_of(hold.lease) || Math.max(0, time_of(hold.deadline) - time_of(hold.since));
}

// {since, deadline, lease, late: what is left when it is nearly over}, in milliseconds. That is
// under a minute, but a fifth of a short lease, since one that is renewed every third of it must
// not be late all the time; and under a tenth of a long one.
export function times_of(hold) {
  const lease = lease_of(hold);
  return {since: time_of(hold.since), deadline: time_of(hold.deadline), lease,
    late: Math.max(Math.min(60_000, lease / 5), lease / 10)};
}

// "36s", "over". Under the mark that it is nearly over stands the caller's style.
export function left_text(deadline, now) {
  return deadline <= now ? "over" : ticking_text(deadline - now);
}

// When its holder was last heard of; undefined if it need not tell.
export function heartbeat_at(hold) {
  const times = [hold.renewedAt, ...(hold.activities ?? []).map((activity) => activity.lastHeartbeat)]
    .filter(Boolean).map(time_of);
  return times.length > 0 ? Math.max(...times) : undefined;
}

// What its last heartbeat carried, as text: "epoch 3".
export function progress_of(hold) {
  let newest;
  for (const activity of hold.activities ?? []) {
    if (!activity.heartbeatDetails) continue;
    if (!newest || time_of(activity.lastHeartbeat) >= time_of(newest.lastHeartbeat)) newest = activity;
  }
  if (!newest) return "";
  const text = payload_text(newest.heartbeatDetails);
  return text.length > 60 ? text.slice(0, 59) + "…" : text;
}

// Payloads as text: JSON as it is, and bytes by their number.
export function payload_text(payloads) {
  const list = payloads.payloads ?? (Array.isArray(payloads) ? payloads : [payloads]);
  return list.map((payload) => {
    if (payload?.metadata === undefined) return JSON.stringify(payload);
    try {
      const bytes = Uint8Array.from(atob(payload.data ?? ""), (letter) => letter.charCodeAt(0));
      if (!atob(payload.metadata.encoding ?? "").startsWith("json/")) return `${bytes.length} bytes`;
      return new TextDecoder().decode(bytes);
    } catch {
      return "(not readable)";
    }
  }).join(", ");
}

// A renewed lease that is more than half gone has missed its last renewal.
export function seems_alive(hold, now) {
  const renews = Boolean(hold.renewedAt) || (hold.activities ?? []).length > 0;
  const {deadline, lease} = times_of(hold);
  return !renews || deadline - now > lease / 2;
}

// The holder, as a link if it is a workflow.
export function holder_element(hold) {
  const name = hold.holder || "-";
  if (!hold.holderRunId) return h("span", {class: "mono holder", title: name}, name);
  return h("a", {class: "mono holder", href: run_link(hold.holder, hold.holderRunId), title: name}, name);
}

// How a slot stands: the word of its chip.
export function standing_of(slot, pool_drained) {
  if (slot.permit) return slot.leaving ? "leaving" : slot.drained || pool_drained ? "draining" : "held";
  return slot.drained || pool_drained ? "drained" : "free";
}

// How many slots stand how.
export function count_slots(pool) {
  const counts = {held: 0, free: 0, drained: 0};
  for (const slot of pool.slots) {
    if (slot.permit) counts.held++;
    else if (slot.drained || pool.drained || slot.leaving) counts.drained++;
    else counts.free++;
  }
  return counts;
}

// Whether a slot is what somebody looks for. `text` is in lower case.
export function slot_matches(slot, text) {
  const {permit} = slot;
  return [slot.slot, slot.device, permit?.holder, permit?.reason, permit && worker_of(permit),
    permit && `${permit.fence}`].some((known) => known?.toLowerCase().includes(text));
}

// Sets an element to "4s ago", or to nothing.
export function set_ago(element, prefix, time, now) {
  set_text(element, time === undefined ? "" : `${prefix}${ticking_text(Math.max(0, now - time))} ago`);
}

// Two columns of what is known, as dialogs show it.
export function facts(rows) {
  const list = h("dl", {class: "facts"});
  return put(list, rows.filter(Boolean).map(([name, value]) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}
