// How long the last holds were waited for, as bars that are a table as well.
import {h, put, s} from "../dom.js";

const second = 1000;
const buckets = [["at once", 0], ["up to 1s", second], ["1s to 5s", 5 * second], ["5s to 30s", 30 * second],
  ["30s to 5m", 300 * second], ["5m to 30m", 1800 * second], ["longer", Infinity]];

export function counts_of(waits) {
  const counts = buckets.map(() => 0);
  for (const wait of waits) counts[buckets.findIndex(([, most]) => wait <= most)]++;
  return counts;
}

export class WaitHistogram {
  #body = h("tbody");
  #note = h("p", {class: "dim small"});
  #shown = "";

  constructor() {
    this.element = h("section", {class: "card", "aria-labelledby": "waits-of-late"}, h("h2", {id: "waits-of-late"}, "Waits of late"),
      h("table", {class: "histogram"}, h("thead", {}, h("tr", {}, h("th", {scope: "col"}, "Waited"), h("th", {scope: "col", class: "right"}, "Holds"),
        h("th", {scope: "col"}, "Share"))), this.#body), this.#note);
  }

  // note: what the waits are of.
  update(waits, note) {
    const counts = counts_of(waits);
    const shown = JSON.stringify([counts, note]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    const most = Math.max(1, ...counts);
    put(this.#body, buckets.map(([name], i) => h("tr", {}, h("th", {scope: "row"}, name), h("td", {class: "right"}, counts[i].toLocaleString("en")),
      h("td", {class: "share"}, h("span", {class: "off-screen"}, waits.length > 0 ? `${Math.round(counts[i] / waits.length * 100)} %` : "-"),
        s("svg", {viewBox: "0 0 100 12", preserveAspectRatio: "none", "aria-hidden": "true"},
          s("rect", {class: i > 3 ? "late" : null, width: counts[i] === 0 ? 0 : Math.max(1, counts[i] / most * 100), height: 12}))))));
    put(this.#note, note);
  }
}
