// What can be done with a slot or a pool, as menus.
import {cancel_holder, change_capacity, drain, hold_for_maintenance, is_own, release, terminate_holder,
  undrain} from "../actions.js";
import {copy_text, run_link} from "../dom.js";

export function slot_items(context, pool, slot) {
  const {permit} = slot;
  const of_workflow = permit?.holderRunId;
  const id = `permit:${pool.pool}:${slot.slot}`;
  return [
    permit && {label: "Describe this hold", act: () => context.navigate(run_link(permit.id, permit.runId))},
    of_workflow && {label: "Go to its holder",
      act: () => context.navigate(run_link(permit.holder, permit.holderRunId))},
    {label: "Copy the permit's id", act: async () => {
      context.notify(await copy_text(id) ? `Copied ${id}.` : `Could not copy ${id}.`);
    }},
    null,
    of_workflow && {label: "Cancel the holder…", act: () => cancel_holder(context, permit)},
    !permit && !slot.drained && !pool.drained && {label: "Hold for maintenance…",
      act: () => hold_for_maintenance(context, pool, slot)},
    slot.drained ? {label: "Undrain the slot…", act: () => undrain(context, pool, slot)} :
      !slot.leaving && {label: "Drain the slot…", act: () => drain(context, pool, slot)},
    permit && null,
    permit && {label: is_own(permit) ? "Release…" : "Release by force…", dangerous: true, act: () => release(context, permit)},
    of_workflow && {label: "Terminate the holder…", dangerous: true, act: () => terminate_holder(context, permit)},
  ].filter((item) => item === null || item);
}

export function pool_items(context, pool) {
  const query = `?pool=${encodeURIComponent(pool.pool)}`;
  return [
    {label: "Timeline of this pool", act: () => context.navigate(`#/timeline${query}`)},
    {label: "Who waits for it", act: () => context.navigate(`#/waiters${query}`)},
    null,
    {label: "Hold a slot for maintenance…", act: () => hold_for_maintenance(context, pool)},
    {label: "Change the capacity…", act: () => change_capacity(context, pool)},
    pool.drained ? {label: "Undrain the pool…", act: () => undrain(context, pool)} :
      {label: "Drain the pool…", dangerous: true, act: () => drain(context, pool)},
  ];
}
