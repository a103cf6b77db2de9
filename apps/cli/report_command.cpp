// permit report: the ledger over a period, added up.
#include <algorithm>
#include <map>

#include "apps/cli/duration_text.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/permit_commands.h"
#include "orchestrator/protocol/json_codec.h"

namespace permit::cli {

// One line of the report.
struct ReportLine {
  std::string of;  // a pool, a holder or a permit
  std::int32_t holds = 0;
  std::int32_t held = 0;  // of them, still
  std::int32_t released = 0;
  std::int32_t lease_expired = 0;
  std::int32_t holder_closed = 0;
  std::int32_t force_released = 0;
  Duration time_held{};
  Duration hold_median{};
  Duration hold_longest{};
  Duration wait_median{};
  Duration wait_longest{};
};
BOOST_DESCRIBE_STRUCT(ReportLine, (),
                      (of, holds, held, released, lease_expired, holder_closed, force_released,
                       time_held, hold_median, hold_longest, wait_median, wait_longest))

struct Report {
  Time since{};
  Time until{};
  std::vector<ReportLine> lines;
};
BOOST_DESCRIBE_STRUCT(Report, (), (since, until, lines))

}  // namespace permit::cli

namespace permit {
PERMIT_JSON(cli::ReportLine)
PERMIT_JSON(cli::Report)
}  // namespace permit

namespace permit::cli {

namespace {

using namespace std::chrono_literals;

struct Sums {
  ReportLine line;
  std::vector<Duration> holds;
  std::vector<Duration> waits;
};

Duration median(std::vector<Duration> values) {
  if (values.empty()) return {};
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Duration longest(const std::vector<Duration>& values) {
  return values.empty() ? Duration{} : *std::max_element(values.begin(), values.end());
}

void add(Sums& sums, const PermitInfo& hold, Time since, Time now) {
  ReportLine& line = sums.line;
  ++line.holds;
  switch (hold.outcome) {
    case Outcome::unspecified:
      ++line.held;
      break;
    case Outcome::released:
      ++line.released;
      break;
    case Outcome::lease_expired:
      ++line.lease_expired;
      break;
    case Outcome::holder_closed:
      ++line.holder_closed;
      break;
    case Outcome::force_released:
      ++line.force_released;
      break;
  }
  const Time end = hold.state == "held" ? now : hold.closed_at;
  line.time_held += end - std::max(hold.since, since);  // of the period
  sums.holds.push_back(end - hold.since);
  const Time asked = is_set(hold.requested_at) ? hold.requested_at : hold.since;
  sums.waits.push_back(hold.since - asked);
}

std::string key_of(const PermitInfo& hold, const std::string& by) {
  if (by == "holder") return hold.holder;
  return by == "slot" ? hold.id.value : hold.pool.value;
}

Report report_of(const std::vector<PermitInfo>& holds, const std::string& by, Time since,
                 Time now) {
  std::map<std::string, Sums> sums;
  for (const PermitInfo& hold : holds) add(sums[key_of(hold, by)], hold, since, now);
  Report report{since, now, {}};
  for (auto& [of, sum] : sums) {
    ReportLine line = sum.line;
    line.of = of;
    line.hold_median = median(sum.holds);
    line.hold_longest = longest(sum.holds);
    line.wait_median = median(sum.waits);
    line.wait_longest = longest(sum.waits);
    report.lines.push_back(std::move(line));
  }
  std::stable_sort(
      report.lines.begin(), report.lines.end(),
      [](const ReportLine& a, const ReportLine& b) { return a.time_held > b.time_held; });
  return report;
}

void print(const Output& out, const Report& report, const std::string& by) {
  using Align = Table::Align;
  std::string head = by;
  std::transform(head.begin(), head.end(), head.begin(),
                 [](char c) { return static_cast<char>(c - 'a' + 'A'); });
  Table table({{by == "slot" ? "PERMIT" : head},
               {"HOLDS", Align::right},
               {"HELD NOW", Align::right},
               {"RELEASED", Align::right},
               {"LEASE_EXPIRED", Align::right},
               {"HOLDER_CLOSED", Align::right},
               {"FORCE_RELEASED", Align::right},
               {"TIME HELD", Align::right},
               {"MEDIAN", Align::right},
               {"LONGEST", Align::right},
               {"WAIT MEDIAN", Align::right},
               {"WAIT LONGEST", Align::right}});
  for (const ReportLine& line : report.lines) {
    const auto count = [](std::int32_t n, Style style) {
      return Table::Cell{std::to_string(n), n == 0 ? Style::dim : style};
    };
    table.add({{printable(line.of, 48)},
               count(line.holds, Style::plain),
               count(line.held, style_of(Outcome::unspecified)),
               count(line.released, style_of(Outcome::released)),
               count(line.lease_expired, style_of(Outcome::lease_expired)),
               count(line.holder_closed, style_of(Outcome::holder_closed)),
               count(line.force_released, style_of(Outcome::force_released)),
               {show_duration(line.time_held)},
               {show_duration(line.hold_median)},
               {show_duration(line.hold_longest)},
               {show_duration(line.wait_median)},
               {show_duration(line.wait_longest)}});
  }
  out.table(table);
}

// Slots of which the ledger may have forgotten holds of the period: it keeps the last 100.
std::string forgotten(const std::vector<PermitInfo>& holds, Time since) {
  std::map<WorkflowId, std::pair<int, Time>> slots;
  for (const PermitInfo& hold : holds) {
    auto& [count, oldest] = slots[hold.id];
    if (count == 0 || hold.since < oldest) oldest = hold.since;
    ++count;
  }
  int slots_cut = 0;
  for (const auto& [id, slot] : slots) {
    if (slot.first >= 100 && slot.second > since) ++slots_cut;
  }
  if (slots_cut == 0) return "";
  return "of " + std::to_string(slots_cut) +
         " slots older holds of this period are forgotten: the ledger keeps the last 100 of each";
}

}  // namespace

int run_report(Session& session) {
  const Arguments& arguments = session.arguments();
  const Output& out = session.out();
  const Time now = session.now();
  ListPermitsRequest request;
  request.pool = PoolName(arguments.operand(0));
  if (!request.pool.empty()) session.pools().describe(request.pool);  // that there is one
  request.since = now - arguments.duration("since").value_or(24h);
  const Time since = request.since;
  constexpr std::size_t holds_max = 1'000'000;
  const std::vector<PermitInfo> holds = ledger(session, std::move(request), {}, holds_max);
  const std::string by = arguments.text_or("by", "pool");
  const Report report = report_of(holds, by, since, now);
  std::vector<std::string> lines;
  lines.reserve(report.lines.size());
  for (const ReportLine& line : report.lines) lines.push_back(to_json(line));
  out.json(to_json(report), lines);
  if (report.lines.empty()) {
    out.text("Nobody held anything in this time.");
  } else {
    print(out, report, by);
  }
  const std::string cut = forgotten(holds, since);
  if (!cut.empty()) out.note(cut);
  return exit_ok;
}

}  // namespace permit::cli
