// What an operator can do. Each action asks first, and goes on record with a name and a reason.
// All take the page's context (see main.js) and resolve to the server's answer, or to null.
import {api, ApiError, new_request_id, part, rpc} from "./api.js";
import {each_second} from "./clock.js";
import {ask} from "./dialog.js";
import {duration_text, h, set_text, ticking_text, time_element, time_of} from "./dom.js";
import {facts, heartbeat_at, holder_element, left_text, progress_of, seems_alive, times_of,
  worker_of} from "./holds.js";
import {keep, kept} from "./theme.js";

export const identity_key = "permit.identity";  // where the reader's name is kept
const tokens_key = "permit.tokens";
const tokens_kept = 50;

const reason_field = {name: "reason", label: "Reason", required: true,
  hint: "Goes on record, for those who will ask why."};

// The reader says who they are, once. The server adds the name of their key, if they have one.
function identity_field() {
  return {name: "identity", label: "Your name", required: true, value: kept(identity_key, "page"),
    maxlength: 200, hint: "Goes on record, and is remembered in this browser."};
}

// ask(), with the reason and the name, which `act` is given as its second argument.
// `unless` says when they are not asked for.
export function ask_on_record({fields = [], act, unless, ...dialog}) {
  const asked = [reason_field, identity_field()].map((field) => (unless ? {...field, needed: () => !unless()} : field));
  return ask({...dialog, fields: [...fields, ...asked], act: (values) => {
    keep(identity_key, values.identity);
    return act(values, {reason: values.reason, identity: values.identity});
  }});
}

// --- A hold ---

// What stands on top of every dialog about a hold: whose it is, since when, how long, alive or not.
function about_hold(context, hold) {
  const times = times_of(hold);
  const left = h("b", {role: "timer", class: "ticks"});
  const held = h("span", {class: "ticks"});
  const heard = h("span", {class: "ticks"});
  const heartbeat = heartbeat_at(hold);
  const list = facts([
    ["Holder", [holder_element(hold), hold.labels?.user && ` (user ${hold.labels.user})`]],
    worker_of(hold) && ["Worker", worker_of(hold)],
    hold.reason && ["Reason", hold.reason],
    ["Held", [held, " since ", time_element(hold.since, context.state.now())]],
    ["Lease left", left],
    heartbeat && ["Heartbeat", [heard, progress_of(hold) && `, ${progress_of(hold)}`]],
    ["Fence", String(hold.fence)],
  ]);
  return each_second(list, (now) => {
    set_text(left, left_text(times.deadline, now));
    set_text(held, ticking_text(Math.max(0, now - times.since)));
    set_text(heard, heartbeat ? `${ticking_text(Math.max(0, now - heartbeat))} ago` : "");
  });
}

function about_release(context, hold, mine) {
  if (mine) return [about_hold(context, hold), h("p", {}, "You took this slot here, and give it back.")];
  const alive = seems_alive(hold, context.state.now());
  const stop = hold.holderRunId ? " To stop the job instead, cancel its holder." : "";
  return [about_hold(context, hold), alive ?
    h("p", {class: "caution"}, h("b", {}, "Its holder is alive. "), "Releasing frees the slot but does not " +
      `stop the job: two jobs may use it at once unless the job checks its fence.${stop}`) :
    h("p", {class: "caution"}, h("b", {}, "Its holder has been silent "), "for more than half of its lease.")];
}

// Takes the slot away from its holder, if that is still the one the dialog shows.
export function release(context, shown) {
  let hold = shown;
  let token = kept_tokens()[hold.runId];
  const must_type = () => !token && seems_alive(hold, context.state.now());
  const typed = {name: "slot", needed: must_type, label: () =>
    `Type the slot's name (${hold.slot}) to release it anyway`,
  check: (value) => (value === hold.slot ? "" : `Type ${hold.slot}, or cancel.`)};
  return ask_on_record({
    title: `Release ${hold.id}?`, submit: "Release", danger: true, fields: [typed], unless: token && (() => Boolean(token)),
    content: () => about_release(context, hold, Boolean(token)),
    act: async (values, record) => {
      try {
        const ended = await end_hold(hold, token, record);
        forget_token(hold.runId);
        context.notify(`${hold.id} ${ended.outcome}. Fence ${hold.fence} is void.`, ended.outcome);
        return ended;
      } catch (error) {
        if (error.reason !== "HOLDER_CHANGED" && !(token && error.reason === "LEASE_LOST")) throw error;
        forget_token(hold.runId);
        hold = await api.get(`/permits/${part(hold.id)}`);
        token = undefined;
        const changed = new ApiError(error.status, error.reason, "Nothing was released: the slot has " +
          `another holder by now, ${hold.holder} (fence ${hold.fence}). This is what it is like now.`);
        changed.refresh = () => about_release(context, hold, false);
        throw changed;
      }
    },
  });
}

function end_hold(hold, token, record) {
  const path = `/permits/${part(hold.id)}`;
  if (token) return api.post(`${path}/release`, {token});
  return api.post(`${path}/force-release`, {fence: hold.fence, ...record});
}

// Asks the workflow that holds the slot to stop; terminate() does not ask it.
export function cancel_holder(context, hold) {
  return stop_holder(context, hold, {call: "RequestCancelWorkflowExecution", title: "Cancel", done: "asked to cancel",
    what: "The workflow is asked to stop. It may clean up first, and gives the slot back when it ends."});
}
export function terminate_holder(context, hold) {
  return stop_holder(context, hold, {call: "TerminateWorkflowExecution", title: "Terminate", done: "terminated", danger: true,
    what: "The workflow ends at once, without cleaning up, and its slots are free. Work that its " +
      "worker is doing now learns of it with the next heartbeat, and may go on until then."});
}

function stop_holder(context, hold, {call, title, done, what, danger}) {
  return ask_on_record({
    title: `${title} ${hold.holder}?`, submit: title, cancel: "Do not", danger,
    content: () => [about_hold(context, hold), h("p", {class: danger ? "caution" : null}, what)],
    act: async (values, record) => {
      const answer = await rpc(call, {workflowExecution: {workflowId: hold.holder, runId: hold.holderRunId}, ...record});
      context.notify(`${hold.holder} ${done}.`);
      return answer;
    },
  });
}

// --- A pool and its slots ---

// Without a slot, the whole pool.
export function drain(context, pool, slot) {
  return set_drained(context, pool, slot, {verb: "drain", title: "Drain", done: "drained",
    what: "Nothing new is granted there. Who holds it now keeps it until the end."});
}
export function undrain(context, pool, slot) {
  return set_drained(context, pool, slot, {verb: "undrain", title: "Undrain", done: "in use again",
    what: "It is granted again, to the next in line if somebody waits."});
}

function set_drained(context, pool, slot, {verb, title, done, what}) {
  const name = slot ? `slot ${slot.slot} of ${pool.pool}` : pool.pool;
  return ask_on_record({
    title: `${title} ${name}?`, submit: title,
    content: () => [slot?.permit && about_hold(context, slot.permit), h("p", {}, what)].filter(Boolean),
    act: async (values, record) => {
      const answer = await api.post(`/pools/${part(pool.pool)}/${verb}`,
        {...(slot ? {slot: slot.slot} : {}), ...record});
      context.notify(`${name} is ${done}.`);
      return answer;
    },
  });
}

const unit_seconds = {d: 86_400, h: 3_600, m: 60, s: 1};

// "1h30m" in seconds; NaN if it is no such thing.
function seconds_of(text) {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)([dhms])/g)];
  if (parts.length === 0 || parts.map(([all]) => all).join("") !== text) return Number.NaN;
  return parts.reduce((sum, [, number, unit]) => sum + number * unit_seconds[unit], 0);
}

// Takes a free slot for a person. The token that gives it back stays in this browser.
export function hold_for_maintenance(context, pool, slot) {
  const request_id = new_request_id();  // so that a second try of one dialog takes no second slot
  return ask_on_record({
    title: slot ? `Hold slot ${slot.slot} of ${pool.pool}?` : `Hold a slot of ${pool.pool}?`, submit: "Hold",
    content: () => h("p", {}, "You get the slot as any other holder would, and nobody else does until you " +
      "release it or the time is over."),
    fields: [{name: "time", label: "For how long", value: "4h", required: true, hint: "45m, 4h, 2d",
      check: (value) => (seconds_of(value) > 0 ? "" : "Write 45m, 4h or 1h30m.")}],
    act: async ({time, identity, reason}) => {
      const answer = await api.post(`/pools/${part(pool.pool)}/acquire`, {requestId: request_id,
        holder: `operator ${identity}`, ...(slot ? {only: [slot.slot]} : {}), lease: `${seconds_of(time)}s`,
        wait: "0s", reason, labels: {user: identity}});
      const [granted] = answer.slots;
      keep_token(granted.runId, answer.token);
      context.notify(`${granted.id} is yours for ${duration_text(seconds_of(time) * 1000)}, fence ${granted.fence}.`, "held");
      return answer;
    },
  });
}

export function change_capacity(context, pool) {
  const names = pool.slots.filter((slot) => !slot.leaving).map((slot) => slot.slot);
  const numbered = names.every((name, i) => name === String(i));
  const field = numbered ?
    {name: "capacity", type: "number", label: "Capacity", value: String(names.length), required: true,
      check: (value) => (/^\d+$/.test(value) ? "" : "Write a number, 0 or more.")} :
    {name: "slots", type: "textarea", label: "Slots", value: names.join(" "), required: true,
      hint: "Their names, with spaces between.",
      check: (value) => (new Set(value.split(/\s+/)).size === value.split(/\s+/).length ? "" :
        "A name is there twice.")};
  return ask_on_record({
    title: `Change the capacity of ${pool.pool}`, submit: "Change", fields: [field],
    content: () => h("p", {}, `It has ${names.length} ${names.length === 1 ? "slot" : "slots"}. ` +
      "A slot that goes while it is held is kept by its holder until the end."),
    act: async (values, record) => {
      const setting = numbered ? {capacity: Number(values.capacity)} : {slots: values.slots.split(/\s+/)};
      const answer = await api.put(`/pools/${part(pool.pool)}`, {...setting, ...record});
      context.notify(`${pool.pool} has a capacity of ${answer.capacity ?? 0}.`);
      return answer;
    },
  });
}

// --- A waiter ---

export function remove_waiter(context, waiter) {
  return ask_on_record({
    title: `Remove ${waiter.holder} from the line of ${waiter.pool}?`, submit: "Remove", danger: true,
    content: () => h("p", {}, `It has waited ${duration_text(context.state.now() - time_of(waiter.since))}` +
      `${waiter.position ? ` and is number ${waiter.position} in line` : ""}. It leaves without a slot.`),
    act: async (values, record) => {
      const answer = await api.delete(`/waiters/${waiter.id}`, record);
      context.notify(`${waiter.holder} does not wait any more.`);
      return answer;
    },
  });
}

// --- Tokens of one's own holds ---

function kept_tokens() {
  try {
    return Object(JSON.parse(kept(tokens_key, "{}")));
  } catch {
    return {};
  }
}

// Whether the hold was taken here, so that it is given back rather than taken away.
export function is_own(hold) {
  return Object.hasOwn(kept_tokens(), hold.runId);
}

function keep_token(run_id, token) {
  const newest = Object.entries({...kept_tokens(), [run_id]: token}).slice(-tokens_kept);
  keep(tokens_key, JSON.stringify(Object.fromEntries(newest)));
}

function forget_token(run_id) {
  const {[run_id]: _, ...others} = kept_tokens();
  keep(tokens_key, JSON.stringify(others));
}
