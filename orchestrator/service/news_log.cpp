#include "orchestrator/service/news_log.h"

#include <algorithm>
#include <boost/describe/enum_to_string.hpp>
#include <chrono>
#include <utility>
#include <vector>

#include "orchestrator/protocol/time_text.h"

namespace permit::service {

namespace {

using Level = LogLine::Level;

std::int64_t in_ms(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

LogLine line_of(const core::RunState& run, Level level, std::string_view event) {
  LogLine line;
  line.level = level;
  line.event = event;
  line.namespace_ = run.namespace_;
  line.workflow_id = run.workflow_id.value;
  line.run_id = run.run_id.value;
  line.request_id = run.started.request_id;
  if (!run.is_permit()) {
    line.workflow_type = run.started.workflow_type.name;
    line.task_queue = run.started.task_queue.name;
    return line;
  }
  const PermitGrant& grant = *run.started.permit;
  line.pool = grant.pool.value;
  line.slot = grant.slot.value;
  line.fence = grant.fence.value;
  const auto& parent = run.started.parent_workflow_execution;
  line.holder = parent ? parent->workflow_id.value : run.started.identity;
  if (run.started.permit_request) line.reason = run.started.permit_request->reason;
  return line;
}

LogLine started_line(const core::RunState& run) {
  if (!run.is_permit()) return line_of(run, Level::debug, "workflow_started");
  LogLine line = line_of(run, Level::info, "permit_acquired");
  const Time asked = run.started.permit->requested_at;
  line.wait_ms = is_set(asked) ? in_ms(run.start_time - asked) : 0;
  return line;
}

LogLine closed_line(const core::RunState& run) {
  if (!run.hold_end) {
    LogLine line = line_of(run, Level::debug, "workflow_closed");
    line.outcome = boost::describe::enum_to_string(run.status, "");
    line.held_ms = in_ms(run.close_time - run.start_time);
    return line;
  }
  const core::HoldEnd& end = *run.hold_end;
  const bool as_planned = end.outcome == Outcome::released || end.outcome == Outcome::holder_closed;
  LogLine line = line_of(run, as_planned ? Level::info : Level::warn, "permit_closed");
  line.outcome = boost::describe::enum_to_string(end.outcome, "");
  line.cause = end.cause;
  line.possible_overlap = may_overlap(end.outcome, end.cause);
  line.held_ms = in_ms(run.close_time - run.start_time);
  return line;
}

void log_transitions(Log& log, const News& news, RunCache& runs) {
  enum class What { started, closed };
  std::vector<std::pair<RunNumber, What>> transitions;
  transitions.reserve(news.started.size() + news.closed.size());
  for (const RunNumber number : news.started) transitions.emplace_back(number, What::started);
  for (const RunNumber number : news.closed) transitions.emplace_back(number, What::closed);
  std::sort(transitions.begin(), transitions.end());  // so that a slot's holds come in their order
  for (const auto& [number, what] : transitions) {
    const core::RunState* run = runs.find(number);
    if (run == nullptr) continue;
    if (!run->is_permit() && !log.wants(Level::debug)) continue;
    const auto trace = news.traces.find(number);
    LogLine line = what == What::started ? started_line(*run) : closed_line(*run);
    if (trace != news.traces.end()) {
      line.trace_id = trace->second->trace_id;
      line.span_id = trace->second->span_id;
    }
    log.write(line);
  }
}

void log_renewals(Log& log, const News& news, RunCache& runs, Time now) {
  for (const RunNumber number : news.permits) {
    const core::RunState* run = runs.find(number);
    if (run == nullptr || run->volatile_state.permit_renewed != now) continue;
    LogLine line = line_of(*run, Level::debug, "permit_renewed");
    const std::string until = "until " + format_time(run->volatile_state.permit_deadline);
    line.msg = until;
    log.write(line);
  }
}

void log_late_releases(Log& log, const News& news, RunCache& runs) {
  for (const RunNumber number : news.late_releases) {
    const core::RunState* run = runs.find(number);
    if (run == nullptr) continue;
    LogLine line = line_of(*run, Level::warn, "permit_released_late");
    line.msg = "its holder gave back what it had lost before, and had worked on until now";
    line.possible_overlap = true;
    log.write(line);
  }
}

void log_acts(Log& log, const News& news) {
  for (const auto& [pool, what] : news.pools) {
    for (const PoolNews::Act& act : what.acts) {
      LogLine line;
      line.event = act.removed.empty() ? "pool_changed" : "waiter_removed";
      line.msg = act.change.what;
      line.pool = pool.value;
      line.holder = act.removed;
      line.by = act.change.by;
      line.reason = act.change.reason;
      log.write(line);
    }
  }
}

void log_keys(Log& log, const News& news) {
  for (const KeyNews& what : news.keys) {
    LogLine line;
    line.event = what.revoked ? "api_key_revoked" : "api_key_created";
    const std::string role = "role " + what.role;
    line.msg = role;
    line.by = what.by;
    line.key = what.key;
    log.write(line);
  }
}

}  // namespace

void log_news(Log& log, const News& news, RunCache& runs, Time now) {
  if (log.wants(Level::info)) {
    log_acts(log, news);
    log_keys(log, news);
  }
  if (log.wants(Level::warn)) {
    log_transitions(log, news, runs);
    log_late_releases(log, news, runs);
  }
  if (log.wants(Level::debug)) log_renewals(log, news, runs, now);
}

}  // namespace permit::service
