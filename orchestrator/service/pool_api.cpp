// Pools, lines, and holders that are not workflows.
#include <algorithm>

#include "orchestrator/core/client_transitions.h"
#include "orchestrator/core/clock_transitions.h"
#include "orchestrator/core/validate.h"
#include "orchestrator/protocol/ensure.h"
#include "orchestrator/protocol/siphash.h"
#include "orchestrator/protocol/time_text.h"
#include "orchestrator/service/service.h"

namespace permit::service {

namespace {

using SteadyClock = std::chrono::steady_clock;

}  // namespace

// --- Describing ---

std::vector<HolderActivity> Service::work_under(const core::RunState& holder, const RunId& permit) {
  std::vector<HolderActivity> work;
  for (const auto& [id, activity] : holder.activities) {
    if (activity.scheduled.permit_run_id != permit || activity.closed) continue;
    const core::ActivityAttempt& attempt = activity.attempt;
    const std::string worker = is_set(attempt.started_time) ? attempt.identity : "";
    work.push_back({activity.scheduled.activity_id, activity.scheduled.activity_type.name,
                    attempt.attempt, worker, attempt.last_heartbeat_time,
                    attempt.heartbeat_details});
  }
  return work;
}

PermitInfo Service::permit_info(Change& change, const core::RunState& permit) {
  const event::WorkflowExecutionStarted& started = permit.started;
  PermitInfo info;
  info.id = permit.workflow_id;
  info.run_id = permit.run_id;
  info.pool = started.permit->pool;
  info.slot = started.permit->slot;
  info.fence = started.permit->fence;
  info.state = permit.is_open() ? "held" : "closed";
  info.holder = started.identity;
  if (started.parent_workflow_execution) {
    info.holder = started.parent_workflow_execution->workflow_id.value;
    info.holder_run_id = started.parent_workflow_execution->run_id;
  }
  if (started.permit_request) {
    info.reason = started.permit_request->reason;
    info.lease = started.permit_request->lease;
    info.max_hold = started.permit_request->max_hold;
    info.labels = started.permit_request->labels;
  }
  info.requested_at = started.permit->requested_at;
  info.renewed_at = permit.volatile_state.permit_renewed;
  if (permit.is_open() && started.parent_workflow_execution) {
    const WorkflowExecution& parent = *started.parent_workflow_execution;
    const core::RunState* holder = change.open_run(permit.namespace_, parent.workflow_id);
    if (holder != nullptr) info.activities = work_under(*holder, permit.run_id);
  }
  info.since = permit.start_time;
  info.deadline = permit.volatile_state.permit_deadline;
  info.closed_at = permit.close_time;
  if (permit.hold_end) {
    info.outcome = permit.hold_end->outcome;
    info.cause = permit.hold_end->cause;
    info.possible_overlap = may_overlap(info.outcome, info.cause);
  }
  return info;
}

SlotInfo Service::slot_info(Change& change, const Pools::Pool& pool, const SlotSetting& slot) {
  SlotInfo info;
  info.slot = slot.slot;
  info.drained = slot.drained;
  info.leaving = pool.settings.find(slot.slot) == nullptr;
  info.device = slot.device;
  const auto holder = pool.holders.find(slot.slot);
  if (holder != pool.holders.end()) {
    info.permit = permit_info(change, change.run(holder->second));
  } else if (const PermitInfo* last = recent_holds_.last_of(pool.name, slot.slot)) {
    info.free_since = last->closed_at;
  }
  return info;
}

// All but its slots.
PoolInfo Service::pool_summary(const Pools::Pool& pool) {
  PoolInfo info;
  info.pool = pool.name;
  info.capacity = static_cast<std::int32_t>(pool.settings.slots.size());
  info.held = static_cast<std::int32_t>(pool.holders.size());
  info.waiting = pools_.waiting(pool);
  info.configured = pool.settings.configured;
  info.drained = pool.settings.drained;
  info.order = pool.settings.order;
  info.rate = pool.settings.rate;
  info.alert = pool.settings.alert;
  info.outcomes = store_.hold_counts(pool.name);
  if (!info.outcomes.empty()) {  // the first is of those that began
    info.grants = info.outcomes.front().holds;
    info.outcomes.erase(info.outcomes.begin());
  }
  info.changes = pool.settings.changes;
  for (const auto& [key, waiter] : pool.line) {
    if (!is_set(info.oldest_wait) || waiter.since < info.oldest_wait) {
      info.oldest_wait = waiter.since;
    }
  }
  for (const auto& [id, sleeper] : pool.sleepers) {
    if (!is_set(info.oldest_wait) || sleeper.since < info.oldest_wait) {
      info.oldest_wait = sleeper.since;
    }
  }
  info.last_day = recent_holds_.last_day(pool.name, now_);
  return info;
}

PoolInfo Service::pool_info(Change& change, const Pools::Pool& pool) {
  PoolInfo info = pool_summary(pool);
  for (const SlotSetting& slot : pool.settings.slots) {
    info.slots.push_back(slot_info(change, pool, slot));
  }
  for (const auto& [name, number] : pool.holders) {
    if (pool.settings.find(name) != nullptr) continue;
    info.slots.push_back(slot_info(change, pool, {name, false, ""}));
  }
  return info;
}

void Service::list_pools(ListPoolsRequest request, Done<ListPoolsResponse> done) {
  submit_read(done, [this, request = std::move(request), done] {
    core::check_namespace(request.namespace_);
    Change change(parts_, now_);
    ListPoolsResponse response;
    for (const auto& [name, pool] : pools_.all()) {
      response.pools.push_back(pool_info(change, pool));
    }
    reply(done, std::move(response));
  });
}

void Service::describe_pool(PoolRequest request, Done<PoolInfo> done) {
  submit_read(done, [this, request = std::move(request), done] {
    core::check_namespace(request.namespace_);
    const Pools::Pool* pool = pools_.find(request.pool);
    if (pool == nullptr) throw pools_.unknown(request.pool);
    Change change(parts_, now_);
    reply(done, pool_info(change, *pool));
  });
}

void Service::set_pool(SetPoolRequest request, Done<PoolInfo> done) {
  submit(done, [this, request = std::move(request), done] {
    core::check_namespace(request.namespace_);
    Change change(parts_, now_);
    pools_.set(change, request);
    finish(change);
    reply(done, pool_info(change, *pools_.find(request.pool)));
  });
}

void Service::delete_pool(PoolRequest request, Done<EmptyResponse> done) {
  submit(done, [this, request = std::move(request), done] {
    core::check_namespace(request.namespace_);
    Change change(parts_, now_);
    pools_.remove(change, request.pool);
    finish(change);
    reply(done, EmptyResponse{});
  });
}

void Service::drain(DrainRequest request, Pools::Drain drain, Done<PoolInfo> done) {
  submit(done, [this, request = std::move(request), drain, done] {
    core::check_namespace(request.namespace_);
    Change change(parts_, now_);
    pools_.drain(change, request, drain);
    finish(change);
    reply(done, pool_info(change, *pools_.find(request.pool)));
  });
}

void Service::list_waiters(PoolRequest request, Done<ListWaitersResponse> done) {
  submit_read(done, [this, request = std::move(request), done] {
    core::check_namespace(request.namespace_);
    const Pools::Pool* pool = pools_.find(request.pool);
    if (pool == nullptr) throw pools_.unknown(request.pool);
    constexpr std::size_t waiters_max = 1'000;
    ListWaitersResponse response;
    for (const auto& [key, waiter] : pool->line) {
      if (response.waiters.size() >= waiters_max) break;
      const auto position = static_cast<std::int32_t>(response.waiters.size()) + 1;
      response.waiters.push_back(pools_.describe(*pool, waiter, position));
    }
    for (const auto& [id, sleeper] : pool->sleepers) {
      if (response.waiters.size() >= waiters_max) break;
      response.waiters.push_back(pools_.describe(*pool, Pools::as_waiter(sleeper), 0));
    }
    reply(done, std::move(response));
  });
}

namespace {

std::string sentence_for(const std::string& reason, const WaiterInfo& waiter, std::size_t held) {
  const std::string pool = "pool " + waiter.pool.value;
  const bool in_line = waiter.position > 0;
  if (reason == "pool_drained")
    return pool + " is drained: nothing is granted until it is undrained";
  if (reason == "no_slots") return pool + " has no slot that would do";
  if (reason == "slots_drained") return "the slots that would do are drained";
  if (reason == "rate_limited") return pool + " may not grant faster than its rate";
  if (reason == "behind") {
    return in_line ? "those in front of it in the line have a claim on the free slots"
                   : "those in the line, or woken before it, have a claim on the free slots";
  }
  return (held == 1 ? "1 slot that would do is held; "
                    : std::to_string(held) + " slots that would do are held; ") +
         (in_line ? "position " + std::to_string(waiter.position) + " in the line"
                  : "rounds that found no slot: " + std::to_string(waiter.probes) +
                        "; it asks again at " + format_time(waiter.expires) +
                        ", or when a slot is free");
}

}  // namespace

void Service::why(WaiterRequest request, Done<WhyResponse> done) {
  submit_read(done, [this, request = std::move(request), done] {
    core::check_namespace(request.namespace_);
    const auto [pool, waiter] = pools_.waiter_or_sleeper(request.id.value);
    const Pools::Why why = pools_.why(*pool, waiter);
    Change change(parts_, now_);
    WhyResponse response;
    response.waiter = pools_.describe(*pool, waiter, pool->line.position(waiter.id));
    response.reason = why.reason;
    for (const RunNumber number : why.blocked_by) {
      const core::RunState& permit = change.run(number);
      const Time free = core::expiration(permit);
      if (!is_set(response.latest_free) || free < response.latest_free) response.latest_free = free;
      PermitInfo blocking = permit_info(change, permit);
      blocking.age = now_ - blocking.since;
      blocking.lease_left = std::max(blocking.deadline - now_, Duration(0));
      response.blocked_by.push_back(std::move(blocking));
    }
    response.message = sentence_for(why.reason, response.waiter, why.blocked_by.size());
    reply(done, std::move(response));
  });
}

void Service::remove_waiter(RemoveWaiterRequest request, Done<EmptyResponse> done) {
  submit(done, [this, request = std::move(request), done] {
    core::check_namespace(request.namespace_);
    Change change(parts_, now_);
    pools_.remove_waiter(change, request);
    finish(change);
    reply(done, EmptyResponse{});
  });
}

// --- Acquire ---

// Made from the ticket and a secret that is not in the database, so that a repeated request gets
// the same token and a copy of the database does not hold any.
std::string Service::token_for(std::int64_t ticket, const std::string& request_id) const {
  return siphash_hex(options_.token_secret, std::to_string(ticket) + ":" + request_id);
}

AcquireResponse Service::acquire_response(const Waiter& ticket, const PoolName& pool) {
  AcquireResponse response;
  response.pool = pool;
  if (ticket.granted.empty()) {
    response.state = "waiting";
    const Pools::Pool& line_of = *pools_.find(pool);
    response.ticket = pools_.describe(line_of, ticket, line_of.line.position(ticket.id));
    return response;
  }
  response.state = "granted";
  const Pools::Pool& slots_of = *pools_.find(pool);
  const auto place = [&slots_of](const SlotName& slot) {
    const auto found = slots_of.places.find(slot);
    return found == slots_of.places.end() ? slots_of.places.size() : found->second;
  };
  response.deadline = never;
  for (const std::int64_t number : ticket.granted) {
    const core::RunState* permit = cache_.find(RunNumber{number});
    ENSURE(permit != nullptr);
    const PermitGrant& grant = *permit->started.permit;
    const Time deadline = permit->volatile_state.permit_deadline;
    const auto& slots = slots_of.settings.slots;
    const std::size_t at = place(grant.slot);
    const std::string device = at < slots.size() ? slots[at].device : "";
    response.slots.push_back(
        {permit->workflow_id, grant.slot, permit->run_id, grant.fence, deadline, device});
    response.fence = std::max(response.fence, grant.fence);
    response.deadline = std::min(response.deadline, deadline);
  }
  std::sort(response.slots.begin(), response.slots.end(),  // as registered
            [&](const auto& a, const auto& b) { return place(a.slot) < place(b.slot); });
  response.token = token_for(ticket.id, ticket.request_id);
  return response;
}

std::int64_t Service::acquire(AcquireRequest request, Done<AcquireResponse> done,
                              std::function<void()> on_wait) {
  const std::int64_t id = ++last_wait_id_;
  submit(done, [this, id, request = std::move(request), done, on_wait = std::move(on_wait)] {
    if (gone_early_.contains(id)) return;  // nobody would know of the grant
    core::check_namespace(request.namespace_);
    core::check_optional_name(request.holder, "holder", options_.limits);
    const Duration wait = std::clamp(request.wait.value_or(options_.poll_wait_max), Duration(0),
                                     options_.poll_wait_max);
    Change change(parts_, now_);
    const Waiter& ticket = pools_.acquire(change, request);
    const std::int64_t ticket_id = ticket.id;
    const bool granted = !ticket.granted.empty();
    if (!granted && wait.count() == 0) {
      // Not willing to wait: as if never asked.
      pools_.remove_waiter(change, ticket_id);
      finish(change);
      throw Error(ErrorCode::resource_exhausted, "POOL_FULL",
                  "no slot of pool " + request.pool.value + " is free; ask again, or wait in line");
    }
    finish(change);
    if (granted) {
      reply(done, acquire_response(ticket, request.pool));
      return;
    }
    pools_.caller_waits(ticket_id);
    if (on_wait) on_wait();
    acquire_waits_.emplace(id, AcquireWait{ticket_id, request.pool, request.request_id, done,
                                           SteadyClock::now() + wait});
  });
  return id;
}

namespace {

Error refused(const PermitFailure& why) {
  switch (why.kind) {
    case PermitFailureKind::wait_timed_out:
      return Error(ErrorCode::deadline_exceeded, "WAIT_TIMED_OUT", why.message);
    case PermitFailureKind::too_many:
      return failed_precondition("CANNOT_FIT", why.message);
    default:
      return Error(ErrorCode::aborted, "REMOVED_FROM_LINE", why.message);
  }
}

}  // namespace

void Service::answer_settled(const std::vector<Pools::Settled>& settled) {
  for (const Pools::Settled& one : settled) {
    for (auto it = acquire_waits_.begin(); it != acquire_waits_.end();) {
      const AcquireWait& wait = it->second;
      if (wait.ticket != one.ticket) {
        ++it;
        continue;
      }
      if (one.refusal) {
        refuse(wait.done, refused(*one.refusal));
      } else {
        reply(wait.done, acquire_response(*pools_.ticket(wait.pool, wait.request_id), wait.pool));
      }
      it = acquire_waits_.erase(it);
    }
  }
}

// After a batch that came to nothing: tickets it had made are gone, and their numbers will be given
// again.
void Service::drop_lost_acquire_waits(const Error& error) {
  for (auto it = acquire_waits_.begin(); it != acquire_waits_.end();) {
    const Waiter* ticket = pools_.ticket(it->second.pool, it->second.request_id);
    if (ticket != nullptr && ticket->id == it->second.ticket) {
      ++it;
      continue;
    }
    refuse(it->second.done, error);
    it = acquire_waits_.erase(it);
  }
}

void Service::leave_acquire_wait(std::int64_t id) {
  const auto found = acquire_waits_.find(id);
  if (found == acquire_waits_.end()) return;
  pools_.caller_left(found->second.ticket, std::max(now_, clock_.now()));
  acquire_waits_.erase(found);
}

// A ticket in line stays for as long as it asked to if a call waits for it, else for a while.
void Service::check_tickets() {
  std::set<std::int64_t> waited_for;
  for (const auto& [id, wait] : acquire_waits_) {
    const Waiter* ticket = pools_.ticket(wait.pool, wait.request_id);
    ENSURE(ticket != nullptr && ticket->id == wait.ticket && ticket->granted.empty());
    waited_for.insert(wait.ticket);
  }
  for (const auto& [name, pool] : pools_.all()) {
    for (const auto& [key, waiter] : pool.line) {
      if (waiter.request_id.empty() || waiter.request.wait_timeout.count() > 0) continue;
      ENSURE(is_set(waiter.expires) != waited_for.contains(waiter.id));
    }
  }
}

void Service::expire_acquire_waits(SteadyClock::time_point now) {
  std::vector<std::int64_t> expired;
  for (const auto& [id, wait] : acquire_waits_) {
    if (wait.deadline <= now) expired.push_back(id);
  }
  for (const std::int64_t id : expired) {
    const AcquireWait wait = acquire_waits_.at(id);
    leave_acquire_wait(id);
    const Waiter* ticket = pools_.ticket(wait.pool, wait.request_id);
    if (ticket != nullptr) {
      wait.done(acquire_response(*ticket, wait.pool));
    } else {
      wait.done(Error(ErrorCode::deadline_exceeded, "WAIT_TIMED_OUT",
                      "no slot came free within the wait timeout"));
    }
  }
}

// --- Renew, release, force-release ---

namespace {

std::string how_it_ended(const core::RunState& permit) {
  if (!permit.hold_end) return "its lease has run out";
  switch (permit.hold_end->outcome) {
    case Outcome::released:
      return "it was released";
    case Outcome::lease_expired:
      return "its lease ran out";
    case Outcome::holder_closed:
      return "its holder closed";
    case Outcome::force_released:
      return "it was released by force";
    case Outcome::unspecified:
      break;
  }
  return "it has ended";
}

Error lease_lost(const core::RunState& permit) {
  return failed_precondition(
      "LEASE_LOST", "permit " + permit.workflow_id.value +
                        " is not held with this token any more: " + how_it_ended(permit) +
                        (is_set(permit.close_time) ? " at " + format_time(permit.close_time) : "") +
                        "; fence " + std::to_string(permit.started.permit->fence.value) +
                        " is void");
}

}  // namespace

// The permit that this token holds, or else the one that it held. Throws Error LEASE_LOST for a
// token that is of neither.
core::RunState& Service::granted_to(Change& change, const HolderRequest& request) {
  core::check_namespace(request.namespace_);
  const auto id = core::parse_permit_id(request.id);
  if (!id) throw invalid_argument("PERMIT_ID_INVALID", "the id must be permit:<pool>:<slot>");
  const auto is_meant = [&](const core::RunState& permit) {
    const auto& grant = permit.started.permit;
    if (!grant || grant->ticket == 0) return false;
    const std::string token = token_for(grant->ticket, permit.started.request_id);
    return equal_in_constant_time(token, request.token);
  };
  if (const auto holder = pools_.holder(id->pool, id->slot)) {
    core::RunState& permit = change.run(*holder);
    if (is_meant(permit)) return permit;
  }
  constexpr int runs_max = 10;  // a late one may come after some other holds
  for (const RunNumber number : store_.recent_runs(request.namespace_, request.id, runs_max)) {
    core::RunState& permit = change.run(number);
    if (is_meant(permit)) return permit;
  }
  throw failed_precondition("LEASE_LOST",
                            "permit " + request.id.value + " is not held with this token");
}

void Service::renew(HolderRequest request, Done<RenewResponse> done) {
  submit(done, [this, request = std::move(request), done] {
    Change change(parts_, now_);
    core::RunState& permit = granted_to(change, request);
    if (!permit.is_open()) throw lease_lost(permit);
    std::optional<Duration> lease;
    if (request.lease.count() != 0) lease = request.lease;
    if (lease && (*lease < std::chrono::milliseconds(1) || *lease > options_.limits.lease_max)) {
      throw invalid_argument("LEASE_INVALID", "lease must be between 0.001s and 365 days");
    }
    const auto deadline = core::renew(permit, now_, lease);
    if (!deadline) throw lease_lost(permit);
    change.touch(permit);
    finish(change);
    reply(done, RenewResponse{*deadline});
  });
}

void Service::release(HolderRequest request, Done<PermitInfo> done) {
  submit(done, [this, request = std::move(request), done] {
    Change change(parts_, now_);
    core::RunState& permit = granted_to(change, request);
    if (!permit.is_open()) {
      change.note_late_release(permit);  // all that a late one does
      finish(change);
      throw lease_lost(permit);
    }
    if (core::lease_has_ended(permit)) throw lease_lost(permit);
    change.step(permit, [](core::Transition& t) {
      event::WorkflowExecutionSignaled signaled;
      signaled.signal_name = "release";
      core::release(t, std::move(signaled));
    });
    finish(change);
    reply(done, permit_info(change, permit));
  });
}

void Service::force_release(ForceReleaseRequest request, Done<PermitInfo> done) {
  submit(done, [this, request = std::move(request), done] {
    core::check_namespace(request.namespace_);
    core::check_optional_name(request.identity, "identity", options_.limits);
    if (!core::parse_permit_id(request.id)) {
      throw invalid_argument("PERMIT_ID_INVALID", "the id must be permit:<pool>:<slot>");
    }
    if (request.run_id.empty() && request.fence.value == 0) {
      throw invalid_argument("RUN_ID_REQUIRED", "name the hold you mean by its runId or its fence");
    }
    Change change(parts_, now_);
    core::RunState* permit = change.open_run(request.namespace_, request.id);
    if (permit == nullptr) throw not_found("PERMIT_NOT_HELD", request.id.value + " is not held");
    const bool same_run = request.run_id.empty() || permit->run_id == request.run_id;
    const bool same_fence =
        request.fence.value == 0 || permit->started.permit->fence == request.fence;
    if (!same_run || !same_fence) {
      throw Error(ErrorCode::aborted, "HOLDER_CHANGED",
                  request.id.value + " is held by another run by now: " + permit->run_id.value +
                      ", fence " + std::to_string(permit->started.permit->fence.value));
    }
    event::WorkflowExecutionTerminated terminated;
    terminated.reason = request.reason.substr(0, options_.limits.reason_bytes_max);
    terminated.identity = request.identity;
    change.step(*permit, [&](core::Transition& t) { core::terminate(t, std::move(terminated)); });
    finish(change);
    reply(done, permit_info(change, *permit));
  });
}

void Service::describe_permit(PermitQuery request, Done<PermitInfo> done) {
  submit_read(done, [this, request = std::move(request), done] {
    if (!core::parse_permit_id(request.id)) {
      throw invalid_argument("PERMIT_ID_INVALID", "the id must be permit:<pool>:<slot>");
    }
    Change change(parts_, now_);
    const core::RunState& permit = target(change, request.namespace_, {request.id, request.run_id});
    if (!permit.is_permit()) throw not_found("PERMIT_NOT_FOUND", "this run is not a permit");
    PermitInfo info = permit_info(change, permit);
    info.late_release_at = store_.late_release_of(info.fence);
    reply(done, std::move(info));
  });
}

void Service::status(GetServerStatusRequest request, Done<ServerStatus> done) {
  submit_read(done, [this, request = std::move(request), done] {
    if (!request.namespace_.empty()) core::check_namespace(request.namespace_);
    ServerStatus status;
    status.now = now_;
    status.fence_epoch = static_cast<std::int32_t>(store_.fence_epoch());
    status.commit = Count{store_.counters().commit_seq};
    for (const auto& [name, pool] : pools_.all()) {
      status.held += static_cast<std::int32_t>(pool.holders.size());
      status.waiting += pools_.waiting(pool);
    }
    reply(done, std::move(status));
  });
}

}  // namespace permit::service
