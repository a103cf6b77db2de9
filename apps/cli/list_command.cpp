// permit list, permit who.
#include <algorithm>
#include <iostream>
#include <map>
#include <thread>

#include "apps/cli/duration_text.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/gpu.h"
#include "apps/cli/permit_commands.h"
#include "orchestrator/protocol/json.h"

namespace permit::cli {

namespace {

using namespace std::chrono_literals;
using Align = Table::Align;

// --- Slots as they are ---

Table::Cell state_of(const SlotInfo& slot, bool pool_drained) {
  if (slot.permit) {
    if (slot.leaving) return {"held, leaving", Style::blue};
    if (slot.drained || pool_drained) return {"held, draining", Style::yellow};
    return {"held", Style::blue};
  }
  if (slot.drained || pool_drained) return {"drained", Style::yellow};
  return {"free", Style::dim};
}

std::vector<Table::Cell> row_of(const PoolInfo& pool, const SlotInfo& slot, Time now) {
  const std::string id = "permit:" + pool.pool.value + ":" + slot.slot.value;
  std::vector<Table::Cell> row = {{id}, state_of(slot, pool.drained)};
  if (!slot.permit) {
    row.insert(row.end(), 5, Table::Cell{"-", Style::dim});
    return row;
  }
  const PermitInfo& permit = *slot.permit;
  const std::string left = lease_left(permit, now);
  row.push_back({printable(permit.holder, 40)});
  row.push_back({printable(worker_of(permit), 40)});
  row.push_back({show_duration(now - permit.since)});
  row.push_back({left, left.ends_with("!") ? Style::yellow : Style::plain});
  row.push_back({std::to_string(permit.fence.value)});
  return row;
}

// "24 h: 41 released, 2 lease_expired"
std::string last_day(Session& session, const PoolInfo& pool, Time now) {
  ListPermitsRequest request;
  request.pool = pool.pool;
  request.state = "closed";
  request.since = now - 24h;
  constexpr std::size_t holds_max = 5'000;
  const std::vector<PermitInfo> holds = ledger(session, std::move(request), {}, holds_max);
  std::map<Outcome, int> counts;
  for (const PermitInfo& hold : holds) ++counts[hold.outcome];
  std::string text;
  for (const auto& [outcome, count] : counts) {
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + word_of(outcome);
  }
  if (text.empty()) return "";
  return (holds.size() == holds_max ? ". Of the last 5,000 holds: " : ". 24 h: ") + text;
}

std::string summary_of(Session& session, const PoolInfo& pool, Time now) {
  std::string text = pool.pool.value + ": " + std::to_string(pool.held) + "/" +
                     std::to_string(pool.capacity) + " held, " + std::to_string(pool.waiting) +
                     " waiting";
  if (pool.waiting > 0) {
    Time oldest = now;
    for (const WaiterInfo& waiter : session.pools().waiters(pool.pool)) {
      oldest = std::min(oldest, waiter.since);
    }
    text += " (longest " + show_duration(now - oldest) + ")";
  }
  if (pool.drained) text += ", drained";
  return text + last_day(session, pool, now);
}

Table slots_table(const std::vector<PoolInfo>& pools, Time now) {
  Table table({{"PERMIT"},
               {"STATE"},
               {"HOLDER"},
               {"WORKER"},
               {"HELD", Align::right},
               {"LEASE LEFT", Align::right},
               {"FENCE", Align::right}});
  for (const PoolInfo& pool : pools) {
    for (const SlotInfo& slot : pool.slots) table.add(row_of(pool, slot, now));
  }
  return table;
}

void print_json(const Output& out, const std::vector<PoolInfo>& pools) {
  std::vector<std::string> lines;
  for (const PoolInfo& pool : pools) {
    for (const SlotInfo& slot : pool.slots) {
      const std::string object = to_json(slot, PayloadForm::shorthand);
      lines.push_back(R"({"pool":")" + pool.pool.value + "\"," + object.substr(1));
    }
  }
  out.json(to_json(ListPoolsResponse{pools}, PayloadForm::shorthand), lines);
}

int list_open(Session& session) {
  const Output& out = session.out();
  const std::vector<PoolInfo> pools = pools_named(session, session.arguments().operand(0));
  if (session.arguments().has("short")) {
    for (const PoolInfo& pool : pools) {
      for (const SlotInfo& slot : pool.slots) {
        if (slot.permit) std::cout << slot.permit->id.value << "\n";
      }
    }
    return exit_ok;
  }
  print_json(out, pools);
  if (!out.is_text()) return exit_ok;
  if (pools.empty()) {
    out.text("There is no pool yet. Make one: permit pool set NAME --capacity N");
    return exit_ok;
  }
  const Time now = session.now();
  out.table(slots_table(pools, now));
  out.text("");
  for (const PoolInfo& pool : pools) out.text(summary_of(session, pool, now));
  if (session.arguments().has("gpu")) print_gpu_use(session, pools);
  return exit_ok;
}

// --- Holds that have ended ---

int list_closed(Session& session) {
  const Arguments& arguments = session.arguments();
  const Output& out = session.out();
  ListPermitsRequest request;
  request.pool = PoolName(arguments.operand(0));
  request.state = "closed";
  const Time now = session.now();
  if (const auto since = arguments.duration("since")) request.since = now - *since;
  if (!request.pool.empty()) session.pools().describe(request.pool);  // that there is one
  const std::vector<Outcome> outcomes = outcomes_named(arguments.text_or("outcome", ""));
  const auto limit = static_cast<std::size_t>(arguments.number("limit").value_or(100));
  ListPermitsResponse response;
  response.permits = ledger(session, std::move(request), outcomes, limit);
  std::vector<std::string> lines;
  lines.reserve(response.permits.size());
  for (const PermitInfo& hold : response.permits) lines.push_back(to_json(hold));
  out.json(to_json(response), lines);
  Table table({{"PERMIT"},
               {"OUTCOME"},
               {"CAUSE"},
               {"HOLDER"},
               {"HELD", Align::right},
               {"CLOSED"},
               {"RUN"},
               {"FENCE", Align::right}});
  for (const PermitInfo& hold : response.permits) {
    table.add({{hold.id.value},
               {word_of(hold.outcome), style_of(hold.outcome)},
               {hold.cause.empty() ? "-" : hold.cause},
               {printable(hold.holder, 40)},
               {show_duration(hold.closed_at - hold.since)},
               {out.moment(hold.closed_at, now)},
               {short_run(hold.run_id)},
               {std::to_string(hold.fence.value)}});
  }
  if (table.empty()) {
    out.text("No such hold.");
  } else {
    out.table(table);
  }
  return exit_ok;
}

}  // namespace

int run_list(Session& session) {
  const Arguments& arguments = session.arguments();
  if (!arguments.has("closed")) {
    for (const char* flag : {"since", "outcome", "limit"}) {
      if (!arguments.has(flag)) continue;
      throw UsageError(std::string("--") + flag + " is of past holds: say --closed, too");
    }
  }
  const auto list = arguments.has("closed") ? list_closed : list_open;
  if (!arguments.has("watch")) return list(session);
  for (;;) {
    if (session.out().is_text()) std::cout << "\x1b[H\x1b[J";
    list(session);
    std::this_thread::sleep_for(1s);
  }
}

// --- Who ---

namespace {

void say_holder(const Output& out, const PermitInfo& permit, Time now) {
  std::string line = out.paint(permit.id.value, Style::bold) + "  " + printable(permit.holder);
  const std::string worker = worker_of(permit);
  if (worker != "-") line += " on " + printable(worker, 60);
  const auto user = permit.labels.find("user");
  if (user != permit.labels.end()) line += ", user " + printable(user->second, 40);
  out.text(line);
  std::string times = "  since " + out.clock(permit.since) + " (" +
                      show_duration(now - permit.since) + "), lease ends " +
                      out.clock(permit.deadline) + " (" + lease_left(permit, now) + ")";
  const std::string heartbeat = heartbeat_of(permit, now);
  if (!heartbeat.empty()) times += ", " + heartbeat;
  out.text(times + ", fence " + std::to_string(permit.fence.value));
  if (!permit.reason.empty()) out.text("  reason: " + printable(permit.reason));
}

void say_waiter(Session& session, const WaiterInfo& waiter, Time now) {
  const Output& out = session.out();
  std::string line = "  " + printable(waiter.holder, 40) + "  " + show_duration(now - waiter.since);
  if (waiter.position > 0) line += ", position " + std::to_string(waiter.position);
  if (waiter.count > 1) line += ", wants " + std::to_string(waiter.count);
  if (waiter.priority != 3 && waiter.priority != 0) {
    line += ", priority " + std::to_string(waiter.priority);
  }
  if (waiter.probes > 0) line += ", " + std::to_string(waiter.probes) + " probes";
  if (waiter.state == "backing_off") {
    line += ", asks again in " + show_duration(std::max(waiter.expires - now, Duration(0)));
  }
  out.text(line);
  try {
    out.text("    " + session.pools().why(waiter.id).message);
  } catch (const Error& error) {
    if (error.reason() != "WAITER_NOT_FOUND") throw;  // it has its slot by now
  }
}

// When a slot is free at the latest, and how long holds usually take.
std::string outlook(Session& session, const PoolInfo& pool, Time now) {
  Time soonest = Time::max();
  for (const SlotInfo& slot : pool.slots) {
    if (slot.permit) soonest = std::min(soonest, slot.permit->deadline);
  }
  if (soonest == Time::max()) return "";
  std::string text = "Soonest a slot must free, if nobody renews: " +
                     show_duration(std::max(soonest - now, Duration(0)));
  ListPermitsRequest request;
  request.pool = pool.pool;
  request.state = "closed";
  std::vector<Duration> lengths;
  for (const PermitInfo& hold : ledger(session, std::move(request), {}, 100)) {
    lengths.push_back(hold.closed_at - hold.since);
  }
  if (lengths.empty()) return text;
  std::nth_element(lengths.begin(), lengths.begin() + static_cast<long>(lengths.size() / 2),
                   lengths.end());
  return text + "; median hold here is " + show_duration(lengths[lengths.size() / 2]);
}

void say_pool(Session& session, const PoolInfo& pool, const std::vector<WaiterInfo>& waiters,
              Time now) {
  const Output& out = session.out();
  out.text(out.paint(pool.pool.value, Style::bold) + "  " + std::to_string(pool.held) + "/" +
           std::to_string(pool.capacity) + " held" + (pool.drained ? ", drained" : ""));
  if (pool.alert) {
    out.text("  " + printable(pool.alert->by) + " believes that it has " +
             std::to_string(pool.alert->slots) + " slots");
  }
  if (pool.held > 0) out.text("");
  for (const SlotInfo& slot : pool.slots) {
    if (slot.permit) say_holder(out, *slot.permit, now);
  }
  if (waiters.empty()) return;
  out.text("\nWaiting, the next one first");
  for (const WaiterInfo& waiter : waiters) say_waiter(session, waiter, now);
  const std::string when = outlook(session, pool, now);
  if (!when.empty()) out.text(when);
}

}  // namespace

int run_who(Session& session) {
  const Output& out = session.out();
  const std::string name = session.arguments().operand(0);
  const std::vector<PoolInfo> pools = pools_named(session, name);
  std::string document;
  std::vector<std::string> lines;
  bool said = false;
  for (const PoolInfo& pool : pools) {
    const std::vector<WaiterInfo> waiters = session.pools().waiters(pool.pool);
    const std::string waiting = to_json(ListWaitersResponse{waiters}).substr(1);
    const std::string one = R"({"pool":)" + to_json(pool, PayloadForm::shorthand) +
                            (waiting == "}" ? waiting : "," + waiting);
    document += (document.empty() ? "" : ",") + one;
    lines.push_back(one);
    if (!out.is_text() || (name.empty() && pool.held == 0 && waiters.empty())) continue;
    if (said) out.text("");
    said = true;
    say_pool(session, pool, waiters, session.now());
  }
  out.json(name.empty() ? R"({"pools":[)" + document + "]}" : document, lines);
  if (!said) out.text("Nobody holds a slot, and nobody waits.");
  return exit_ok;
}

}  // namespace permit::cli
