#include "tests/bench/plots.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <regex>

#include "tests/bench/outside_names.h"

namespace permit::bench {

namespace {

constexpr double width = 860;
constexpr double height = 480;
constexpr double left = 78;
constexpr double right = 610;  // names of the lines stand to the right of it
constexpr double top = 52;
constexpr double bottom = 420;

// Apart also for who sees few colours; each line has a dash of its own, too.
constexpr std::array<const char*, 8> colours = {"#c2255c", "#e8590c", "#1971c2", "#2f9e44",
                                                "#6741d9", "#0b7285", "#868e96", "#a27b00"};
constexpr std::array<const char*, 8> dashes = {"", "6 3", "", "8 3 2 3", "2 3", "10 4", "4 2", ""};

std::string digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else {
      out += c;
    }
  }
  return out;
}

// Where a value stands between the ends of its axis, 0 to 1.
double share(const Axis& axis, double value) {
  const auto scale = [&](double v) { return axis.logarithmic ? std::log(v) : v; };
  const double low = scale(axis.ticks.front().first);
  return (scale(value) - low) / (scale(axis.ticks.back().first) - low);
}
double x_of(const Axis& axis, double value) { return left + (right - left) * share(axis, value); }
double y_of(const Axis& axis, double value) { return bottom - (bottom - top) * share(axis, value); }

std::string text_at(double x, double y, const std::string& anchor, const std::string& text,
                    const std::string& more = "") {
  return "<text x=\"" + digits(x) + "\" y=\"" + digits(y) + "\" text-anchor=\"" + anchor + "\"" +
         more + ">" + escaped(text) + "</text>\n";
}

std::string line(double x1, double y1, double x2, double y2, const std::string& more) {
  return "<line x1=\"" + digits(x1) + "\" y1=\"" + digits(y1) + "\" x2=\"" + digits(x2) +
         "\" y2=\"" + digits(y2) + "\" " + more + "/>\n";
}

std::string draw_axes(const Axis& x, const Axis& y) {
  std::string svg;
  for (const auto& [value, label] : x.ticks) {
    const double at = x_of(x, value);
    svg += line(at, top, at, bottom, "stroke=\"#e9ecef\"");
    svg += text_at(at, bottom + 18, "middle", label);
  }
  for (const auto& [value, label] : y.ticks) {
    const double at = y_of(y, value);
    svg += line(left, at, right, at, "stroke=\"#e9ecef\"");
    svg += text_at(left - 8, at + 4, "end", label);
  }
  svg += text_at((left + right) / 2, bottom + 42, "middle", x.label);
  const std::string middle = digits((top + bottom) / 2);
  svg += text_at(18, (top + bottom) / 2, "middle", y.label,
                 " transform=\"rotate(-90 18 " + middle + ")\"");
  return svg;
}

std::string draw_line(const Series& series, std::size_t number, const Axis& x, const Axis& y) {
  const std::string colour = colours[number % colours.size()];
  std::string path;
  std::string dots;
  for (const auto& [at, value] : series.points) {
    const std::string px = digits(x_of(x, at));
    const std::string py = digits(y_of(y, value));
    path += (path.empty() ? "M" : " L") + px + " " + py;
    dots += "<circle cx=\"" + px + "\" cy=\"" + py + "\" r=\"" + (series.emphasised ? "4" : "2.5") +
            "\" fill=\"" + colour + "\"/>\n";
  }
  return "<path d=\"" + path + "\" fill=\"none\" stroke=\"" + colour + "\" stroke-width=\"" +
         (series.emphasised ? "3.5" : "1.6") + "\" stroke-dasharray=\"" +
         dashes[number % dashes.size()] + "\"/>\n" + dots;
}

// The names beside the ends of their lines, moved apart where they would touch.
std::string draw_names(const std::vector<Series>& series, const Axis& y) {
  std::vector<std::pair<double, std::size_t>> places;
  for (std::size_t i = 0; i < series.size(); ++i) {
    places.emplace_back(y_of(y, series[i].points.back().second), i);
  }
  std::sort(places.begin(), places.end());
  double last = top - 17;
  for (auto& [at, number] : places) last = at = std::max(at, last + 17);
  double next = bottom + 17;
  for (auto place = places.rbegin(); place != places.rend(); ++place) {
    next = place->first = std::min(place->first, next - 17);
  }
  std::string svg;
  for (const auto& [at, number] : places) {
    const std::string colour = colours[number % colours.size()];
    svg += text_at(
        right + 12, at + 4, "start", series[number].name,
        " fill=\"" + colour + "\"" + (series[number].emphasised ? " font-weight=\"bold\"" : ""));
  }
  return svg;
}

}  // namespace

Axis axis_around(const std::string& label, const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  Axis axis{label, {}, true};
  std::vector<double> steps;
  for (double power = 1e-6; power < 1e10; power *= 10) {
    steps.push_back(power);
    if (*high / *low < 1'000) steps.insert(steps.end(), {2 * power, 5 * power});
  }
  auto step = std::upper_bound(steps.begin(), steps.end(), *low) - 1;
  const auto last = std::max(std::lower_bound(steps.begin(), steps.end(), *high), step + 1);
  for (; step <= last; ++step) {
    char text[32];
    std::snprintf(text, sizeof text, "%.10g", *step);
    axis.ticks.emplace_back(*step, *step < 1'000 ? text : number(*step));
  }
  return axis;
}

std::string draw(const std::string& title, const Axis& x, const Axis& y,
                 const std::vector<Series>& series) {
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + digits(width) +
                    " " + digits(height) + "\" font-family=\"sans-serif\" font-size=\"12\">\n";
  svg += "<title>" + escaped(title) + "</title>\n";
  svg += "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
  svg += text_at(left, 28, "start", title, " font-size=\"15\" font-weight=\"bold\"");
  svg += draw_axes(x, y);
  for (std::size_t i = series.size(); i-- > 0;) svg += draw_line(series[i], i, x, y);
  return svg + draw_names(series, y) + "</svg>\n";
}

// --- Which figures ---

namespace {

std::vector<double> values_of(const std::vector<Series>& series) {
  std::vector<double> values;
  for (const Series& one : series) {
    for (const auto& point : one.points) values.push_back(point.second);
  }
  return values;
}

// Adds the point if the figure has a value.
void add_point(const Report& report, const std::string& figure, double x, Series& series) {
  const auto summary = report.summary(figure);
  if (summary && summary->median > 0) series.points.emplace_back(x, summary->median);
}

}  // namespace

std::string plot_throughput(const Report& report) {
  std::vector<Series> all;
  for (const std::string& system : system_names()) {
    Series series{system, {}, system == permit_name};
    for (const int clients : outside_clients) {
      add_point(report, outside_figure(system, clients), clients, series);
    }
    if (!series.points.empty()) all.push_back(std::move(series));
  }
  if (all.empty()) return "";
  Axis x{"clients, each with a key of its own", {}, true};
  for (const int clients : outside_clients) x.ticks.emplace_back(clients, std::to_string(clients));
  return draw("Acquire + release, durable: cycles a second", x,
              axis_around("cycles/s", values_of(all)), all);
}

// Over the number of nines, so that the tail is seen.
std::string plot_latency(const Report& report) {
  const auto place = [](double quantile) { return -std::log10(1 - quantile); };
  std::vector<Series> all;
  for (const std::string& system : system_names()) {
    Series series{system, {}, system == permit_name};
    for (const double quantile : outside_quantiles) {
      add_point(report, outside_quantile(system, quantile), place(quantile), series);
    }
    if (!series.points.empty()) all.push_back(std::move(series));
  }
  if (all.empty()) return "";
  Axis x{"share of the acquires that took no longer", {}, false};
  for (const double quantile : {0.1, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999}) {
    char text[16];
    std::snprintf(text, sizeof text, "%.4g %%", quantile * 100);
    x.ticks.emplace_back(place(quantile), text);
  }
  return draw("Acquire at 64 clients: distribution of the latency", x,
              axis_around("ms", values_of(all)), all);
}

// Every figure whose name says "<what>, 1,000 open", of at least two numbers of runs, as a multiple
// of what it is at the smallest.
std::string plot_cost(const Report& report) {
  const std::regex pattern("^(.*), ([0-9][0-9,]*) open(.*)$");
  std::map<std::string, std::map<double, double>> costs;
  for (const std::string& name : report.names()) {
    std::smatch match;
    const auto summary = report.summary(name);
    if (!summary || summary->median <= 0 || !std::regex_match(name, match, pattern)) continue;
    std::string runs = match[2];
    runs.erase(std::remove(runs.begin(), runs.end(), ','), runs.end());
    costs[match[1].str() + match[3].str()][std::stod(runs)] = summary->median;
  }
  std::vector<Series> all;
  std::vector<double> runs;
  for (const auto& [name, by_runs] : costs) {
    if (by_runs.size() < 2) continue;
    Series series{name, {}, false};
    for (const auto& [open, value] : by_runs) {
      runs.push_back(open);
      series.points.emplace_back(open, value / by_runs.begin()->second);
    }
    all.push_back(std::move(series));
  }
  if (all.empty()) return "";
  return draw("Cost against the number of open runs", axis_around("open runs", runs),
              axis_around("times what it is with the fewest", values_of(all)), all);
}

}  // namespace permit::bench
