// What is wrong, on top of the first page: a list of alerts, each with its way out.
import {each_second} from "../clock.js";
import {h, reconcile, sentence, set_text, ticking_text, time_of} from "../dom.js";

export class AlertList {
  #list = h("ul", {class: "alerts"});
  #title = h("h2", {id: "alerts"});

  constructor() {
    this.element = h("section", {class: "alert-section", "aria-labelledby": "alerts", hidden: true}, this.#title, this.#list);
  }

  // The critical ones first, then the oldest.
  update(alerts) {
    const rank = (alert) => (alert.severity === "critical" ? 0 : 1);
    const sorted = [...alerts].sort((a, b) => rank(a) - rank(b) || (a.since < b.since ? -1 : 1));
    this.element.hidden = sorted.length === 0;
    set_text(this.#title, sorted.length === 1 ? "1 alert" : `${sorted.length} alerts`);
    reconcile(this.#list, sorted, (alert) => JSON.stringify(alert), alert_element);
  }
}

function alert_element(alert) {
  const critical = alert.severity === "critical";
  const age = h("span", {class: "dim nowrap"});
  const where = place_of(alert);
  const item = h("li", {class: critical ? "alert critical" : "alert"},
    h("span", {class: "severity"}, h("span", {class: "glyph", "aria-hidden": "true"}, critical ? "✕ " : "! "),
      critical ? "critical" : "warning"),
    h("div", {class: "alert-text"}, h("p", {}, h("b", {}, sentence(alert.message)), " ", age),
      alert.wayOut && h("p", {}, sentence(alert.wayOut))),
    where && h("a", {href: where.href}, where.label));
  if (alert.since) {
    const since = time_of(alert.since);
    each_second(item, (now) => set_text(age, `for ${ticking_text(Math.max(0, now - since))}`));
  }
  return item;
}

// The page that shows more.
function place_of({kind, pool, queue}) {
  const of_pool = pool ? `?pool=${encodeURIComponent(pool)}` : "";
  if (kind === "possible_overlap") return {href: `#/timeline${of_pool}`, label: "Timeline"};
  if (kind === "long_wait") return {href: `#/waiters${of_pool}`, label: "Waiters"};
  if (queue || kind === "permits_unserved") return {href: "#/queues", label: "Queues"};
  return null;
}
