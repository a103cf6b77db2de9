// The first page: what is wrong, and every pool with its slots, who holds them and until when.
import {copy_button, h, put, reconcile, set_text} from "../dom.js";
import {count_slots} from "../holds.js";
import {AlertList} from "./alerts.js";
import {PoolCard} from "./pool_card.js";

export const title = "Pools";

export function open(root, context) {
  const {state, query} = context;
  const cards = new Map();  // pool -> its card
  const alerts = new AlertList();
  const list = h("div", {class: "pools"});
  const nothing = h("div");
  const total = h("p", {class: "dim total"});
  const filter = h("input", {type: "search", class: "filter", "data-filter": true, placeholder: "Filter: pool, slot, holder",
    "aria-label": "Filter by pool, slot or holder", autocomplete: "off", spellcheck: "false",
    oninput: () => {
      context.set_query({q: filter.value.trim()});
      show_filtered();
    }});
  filter.value = query.get("q") ?? "";
  put(context.tools, filter);
  put(root, alerts.element, total, list, nothing);

  function show_filtered() {
    const text = filter.value.trim().toLowerCase();
    let shown = 0;
    for (const card of cards.values()) shown += card.filter(text) ? 1 : 0;
    if (!state.loaded) put(nothing, h("p", {class: "dim"}, "Waiting for the server's first word…"));
    else if (cards.size === 0) put(nothing, no_pools());
    else if (shown === 0) put(nothing, h("p", {class: "dim"}, `No pool, slot or holder is like “${filter.value.trim()}”.`));
    else put(nothing);
  }

  return {
    update(changed) {
      const {keys} = changed;
      if (changed.all || keys.has("alerts")) alerts.update(state.alerts);
      const pools = state.sorted_pools();
      for (const name of cards.keys()) if (!state.pools.has(name)) cards.delete(name);
      if (changed.all || keys.has("removed")) {
        reconcile(list, pools, (pool) => pool.pool, (pool) => {
          const card = new PoolCard(context, pool.pool);
          cards.set(pool.pool, card);
          return card.element;
        });
      }
      for (const pool of pools) {
        const news = changed.all || keys.has("pool:" + pool.pool) || keys.has("line:" + pool.pool);
        if (news) cards.get(pool.pool).update(pool);
      }
      if (changed.all || keys.has("pools")) set_text(total, total_text(pools));
      show_filtered();
    },
    navigated() {
      filter.value = context.query.get("q") ?? "";
      show_filtered();
    },
  };
}

// "3 pools: 4 of 8 slots held, 3 free, 2 waiting"
function total_text(pools) {
  if (pools.length < 2) return "";
  let [capacity, held, free, waiting] = [0, 0, 0, 0];
  for (const pool of pools) {
    const counts = count_slots(pool);
    capacity += pool.capacity ?? 0;
    held += counts.held;
    free += counts.free;
    waiting += pool.waiting ?? 0;
  }
  return `${pools.length} pools: ${held} of ${capacity} slots held, ${free} free, ${waiting} waiting`;
}

function no_pools() {
  const standard = ["http://127.0.0.1:7376", "http://localhost:7376"].includes(location.origin);
  const permit = standard ? "permit" : `permit --address ${location.origin}`;
  const command = (text) => h("p", {class: "command"}, h("code", {}, text), copy_button(text, "the command"));
  return h("div", {class: "empty"}, h("h2", {}, "There is no pool yet"),
    h("p", {}, "A pool is a named number of slots: your GPUs, test rigs, or a job that may run once at a time. Make one:"),
    command(`${permit} pool set gpu --capacity 4`),
    h("p", {}, "Then run something that holds a slot of it, and watch it here:"),
    command(`${permit} run -p gpu -- sleep 60`));
}

