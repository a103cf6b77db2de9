// The first page: every pool with its slots, who holds them and until when.
import {h, put} from "../dom.js";

export const title = "Pools";

export function open(root, {state}) {
  return {
    update() {
      put(root, state.sorted_pools().map((pool) => h("section", {}, h("h2", {}, pool.pool))));
    },
  };
}
