// Paints the timeline's rows on a canvas, in the colours and patterns that the style sheet has for
// each outcome. A canvas, since thousands of bars move each second: as elements they took five
// times as long. What is painted here is told in words elsewhere.
import {glyph_of, h} from "../dom.js";

const kinds = ["held", "released", "lease_expired", "holder_closed", "force_released"];
const bar_inset = 4;
const glyph_width = 15;

export class Painter {
  #canvas;
  #context;
  #probes;  // elements that have the colours
  #paints;  // kind -> {ink, paper, pattern}
  #ratio = 1;

  constructor(canvas, probe_home) {
    this.#canvas = canvas;
    this.#context = canvas.getContext("2d");
    this.#probes = new Map(kinds.map((kind) => [kind, h("i", {class: `probe is-${kind}`})]));
    this.#probes.set("lines", h("i", {class: "probe lines"}));
    this.#probes.set("alarm", h("i", {class: "probe alarm"}));
    probe_home.append(h("span", {hidden: true}, ...this.#probes.values()));
  }

  // After the theme has changed.
  forget_colors() {
    this.#paints = undefined;
  }

  // Makes the canvas empty and as large as asked; then paint with the functions below.
  begin(width, height) {
    const ratio = globalThis.devicePixelRatio || 1;
    if (ratio !== this.#ratio) this.#paints = undefined;
    this.#ratio = ratio;
    const [w, hgt] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.#canvas.width !== w || this.#canvas.height !== hgt) {
      Object.assign(this.#canvas, {width: w, height: hgt});
      this.#canvas.style.setProperty("width", `${width}px`);
      this.#canvas.style.setProperty("height", `${height}px`);
    }
    this.#paints ??= this.#read_colors();
    this.#context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.#context.clearRect(0, 0, width, height);
  }

  // A thin vertical line; `strong` for now.
  line(x, top, height, strong) {
    this.#context.fillStyle = strong ? this.#paints.get("held").ink : this.#paints.get("lines").ink;
    this.#context.fillRect(this.#crisp(x), top, strong ? 1.5 : 1, height);
  }

  // Something that is not known or not shown: a field of dots.
  field(x, top, width, height) {
    this.#context.fillStyle = this.#paints.get("lines").pattern;
    this.#context.fillRect(x, top, width, height);
  }

  // The bars of one row, which begins at `left`.
  bars(bars, left, top, height) {
    const context = this.#context;
    const [y, tall] = [top + bar_inset, height - 2 * bar_inset];
    for (const kind of kinds) {
      const own = bars.filter((bar) => bar.kind === kind);
      if (own.length === 0) continue;
      const {ink, paper, pattern} = this.#paints.get(kind);
      const path = new Path2D();
      const rims = new Path2D();
      for (const bar of own) {
        const [x, width] = this.#place(bar, left);
        if (width < 5) {
          rims.rect(x, y, width, tall);
        } else {
          path.roundRect(x + .75, y + .75, width - 1.5, tall - 1.5, Math.min(3, width / 4));
        }
      }
      context.fillStyle = ink;
      context.fill(rims);
      for (const fill of [paper, pattern]) {
        if (!fill) continue;
        context.fillStyle = fill;
        context.fill(path);
      }
      context.strokeStyle = ink;
      context.lineWidth = 1.5;
      context.stroke(path);
    }
    for (const bar of bars) this.#details(bar, left, y, tall);
  }

  #place(bar, left) {
    const x = this.#crisp(left + bar.x);
    return [x, Math.max(bar.count > 1 ? 3 : 2, this.#crisp(left + bar.end) - x)];
  }

  #details(bar, left, y, tall) {
    const context = this.#context;
    const [x, width] = this.#place(bar, left);
    const {ink, paper} = this.#paints.get(bar.kind);
    if (bar.lease && bar.lease.end - bar.lease.x > 2) {
      context.strokeStyle = ink;
      context.lineWidth = 1;
      context.setLineDash([4, 3]);
      context.strokeRect(x + width + .5, y + 1.5, bar.lease.end - bar.lease.x - 1, tall - 3);
      context.setLineDash([]);
    }
    if (bar.overlap) {
      context.fillStyle = this.#paints.get("alarm").ink;
      const end = left + bar.overlap.end;
      for (let at = left + bar.overlap.x; at < end; at += bar.overlap.known ? end : 5) {
        context.fillRect(at, y + tall, bar.overlap.known ? end - at : 3, 3);
      }
    }
    if (width < glyph_width) return;
    const text = bar.count > 1 ? String(bar.count) : glyph_of(bar.kind);
    context.font = "700 11px system-ui, sans-serif";
    context.textBaseline = "middle";
    const text_width = context.measureText(text).width;
    if (text_width + 8 > width) return;
    context.fillStyle = paper;
    context.fillRect(x + 2, y + 2, text_width + 6, tall - 4);
    context.fillStyle = ink;
    context.fillText(text, x + 5, y + tall / 2 + .5);
  }

  #crisp(x) {
    return Math.round(x * this.#ratio) / this.#ratio;
  }

  #read_colors() {
    const paints = new Map();
    for (const [kind, probe] of this.#probes) {
      const {color, backgroundColor} = getComputedStyle(probe);
      paints.set(kind, {ink: color, paper: backgroundColor, pattern: this.#pattern(kind, kind === "lines" ? backgroundColor : color)});
    }
    return paints;
  }

  // The patterns of the style sheet, a tile each.
  #pattern(kind, ink) {
    const draw = {
      lease_expired: {size: 7, width: 2.2, alpha: .6, lines: [[-2, 9, 9, -2], [-2, 2, 2, -2], [5, 9, 9, 5]]},
      holder_closed: {size: 4, width: 1.4, alpha: .55, lines: [[-1, 2, 5, 2]]},
      force_released: {size: 6, width: 1, alpha: .7, lines: [[-1, 7, 7, -1], [-1, -1, 7, 7]]},
      lines: {size: 6, width: 1, alpha: .6, lines: [[1, 1.5, 2, 1.5], [4, 4.5, 5, 4.5]]},
    }[kind];
    if (!draw) return null;
    const pixels = Math.round(draw.size * this.#ratio);
    const tile = Object.assign(document.createElement("canvas"), {width: pixels, height: pixels});
    const context = tile.getContext("2d");
    context.scale(pixels / draw.size, pixels / draw.size);
    Object.assign(context, {strokeStyle: ink, lineWidth: draw.width, globalAlpha: draw.alpha});
    for (const [x1, y1, x2, y2] of draw.lines) {
      context.beginPath();
      context.moveTo(x1, y1);
      context.lineTo(x2, y2);
      context.stroke();
    }
    const pattern = this.#context.createPattern(tile, "repeat");
    pattern.setTransform(new DOMMatrix().scale(draw.size / pixels));
    return pattern;
  }
}
