#include "tests/bench/docs_page.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>

#include "tests/bench/outside_names.h"
#include "tests/bench/plots.h"

namespace permit::bench {

namespace {

namespace fs = std::filesystem;

const std::string begin_mark = "<!-- figures: scripts/bench --docs writes from here -->\n";
const std::string end_mark = "<!-- figures: to here -->\n";

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path);
}

bool has_outside(const Report& report) {
  return report.summary(outside_figure(permit_name, 1)).has_value();
}

// A row for each system, a cell for each number of clients.
std::string system_table(const std::string& corner,
                         const std::function<std::string(const std::string&, int)>& cell) {
  std::string text = "| " + corner + " |";
  for (const int clients : outside_clients) {
    text += " " + std::to_string(clients) + (clients == 1 ? " client |" : " clients |");
  }
  text += "\n|---|---|---|---|---|\n";
  for (const std::string& system : system_names()) {
    text += system == permit_name ? "| **" + system + "** |" : "| " + system + " |";
    for (const int clients : outside_clients) text += " " + cell(system, clients) + " |";
    text += "\n";
  }
  return text;
}

std::string why_lines(const Report& report) {
  std::string text;
  for (const std::string& system : system_names()) {
    const std::string why = report.why_missing(outside_figure(system, 1));
    if (!why.empty()) text += "\nNot measured: " + system + ": " + why + "\n";
  }
  return text;
}

std::string machine_table(const Report& report) {
  std::string text = "| | |\n|---|---|\n";
  for (const auto& [name, value] : report.facts()) text += "| " + name + " | " + value + " |\n";
  return text;
}

// All but the details, which other tables have.
std::string all_figures(const Report& report) {
  std::string text = "| figure | unit | median [min..max] | target |\n|---|---|---|---|\n";
  for (const std::string& name : report.names()) {
    if (report.is_detail(name)) continue;
    text += "| " + name + " | " + report.unit(name) + " | " + report.shown(name) + " | " +
            report.verdict(name) + " |\n";
  }
  return text;
}

// The image, if there is a plot to draw; its file goes if there is none.
std::string plot(const std::string& directory, const std::string& name, const std::string& title,
                 const std::string& svg) {
  const std::string path = directory + "/plots/" + name + ".svg";
  if (svg.empty()) {
    fs::remove(path);
    return "";
  }
  fs::create_directories(directory + "/plots");
  write_text(path, svg);
  return "![" + title + "](plots/" + name + ".svg)\n\n";
}

}  // namespace

std::string outside_tables(const Report& report) {
  if (!has_outside(report)) return "";
  std::string text = system_table("cycles/s", [&](const std::string& system, int clients) {
    const std::string figure = outside_figure(system, clients);
    return report.why_missing(figure).empty() ? report.shown(figure) : "not measured";
  });
  text += why_lines(report);
  text += "\n";
  text += system_table("acquire, p50 / p99 in ms", [&](const std::string& system, int clients) {
    const auto p50 = report.summary(outside_acquire(system, clients, "p50"));
    const auto p99 = report.summary(outside_acquire(system, clients, "p99"));
    if (!p50 || !p99) return std::string("not measured");
    return number(p50->median) + " / " + number(p99->median);
  });
  text += "\n";
  text += system_table("Permit's cycles to theirs", [&](const std::string& system, int clients) {
    const std::string figure = outside_ratio(system, clients);
    if (system == permit_name) return std::string("1");
    return report.why_missing(figure).empty() ? report.shown(figure) : "not measured";
  });
  return text;
}

void write_docs(const Report& report, const std::string& directory) {
  const std::string path = directory + "/performance.md";
  const std::string page = read_text(path);
  const std::size_t begin = page.find(begin_mark);
  const std::size_t end = page.find(end_mark);
  if (begin == std::string::npos || end == std::string::npos || end < begin) {
    throw std::runtime_error(path + " has lost its marks");
  }
  std::string text = "\n";
  text += plot(directory, "throughput", "Cycles a second against clients", plot_throughput(report));
  text +=
      plot(directory, "latency", "Distribution of the latency of an acquire", plot_latency(report));
  text += plot(directory, "cost", "Cost against the number of open runs", plot_cost(report));
  if (has_outside(report)) text += outside_tables(report) + "\n";
  text += "### Every figure, and its target\n\n" + all_figures(report) + "\n";
  text += "### Measured on\n\n" + machine_table(report) + "\n";
  write_text(path, page.substr(0, begin) + begin_mark + text + page.substr(end));
}

}  // namespace permit::bench
