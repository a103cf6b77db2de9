// Measurements as people read them: three figures at most, with the unit that suits their size.
import {duration_text} from "./dom.js";

// "0", "0.25", "3.4", "512", "1.2k", "13M"
export function number_text(number) {
  if (number < 0) return "-" + number_text(-number);
  if (number > 0 && number < 0.001) return "<0.001";
  if (number < 0.995) return String(Number(number.toPrecision(2)));
  for (const suffix of ["", "k", "M", "G", "T"]) {
    const digits = number < 9.95 ? 1 : 0;
    const text = Number(number.toFixed(digits));
    if (text < 1000) return text + suffix;
    number /= 1000;
  }
  return "more than 1000T";
}

// "12 µs", "3.4 ms", "1.2 s", "2m 31s"
export function seconds_text(seconds) {
  if (seconds === 0) return "0 s";
  if (seconds >= 100) return duration_text(seconds * 1000);
  if (seconds >= 0.9995) return `${number_text(seconds)} s`;
  if (seconds >= 0.0009995) return `${number_text(seconds * 1e3)} ms`;
  return `${number_text(seconds * 1e6)} µs`;
}

// "512 B", "1.5 MiB"
export function bytes_text(bytes) {
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (bytes < 1000) return `${Number(bytes.toFixed(bytes < 10 ? 1 : 0))} ${unit}`;
    bytes /= 1024;
  }
  return `${number_text(bytes)} TiB`;
}

// A value with its unit ("s", "1/s", "1/h" or none); "–" if nothing was observed.
export function value_text(value, unit) {
  if (value === null || value === undefined) return "–";
  if (unit === "s") return seconds_text(value);
  const per = /^1\/(\w+)$/.exec(unit ?? "");
  return number_text(value) + (per ? `/${per[1]}` : unit ? ` ${unit}` : "");
}
