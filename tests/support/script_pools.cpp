// The part of Script that is about pools and holders that are not workflows.
#include "orchestrator/protocol/time_text.h"
#include "tests/support/event_text.h"
#include "tests/support/script.h"
#include "tests/support/script_commands.h"

namespace permit::test {

namespace {

const std::string default_namespace = "default";

}  // namespace

// --- Looking ---

void Script::print_pool(const PoolInfo& info) {
  std::string text = info.pool.value + " capacity=" + std::to_string(info.capacity) +
                     " held=" + std::to_string(info.held) +
                     " waiting=" + std::to_string(info.waiting);
  if (info.configured) text += " configured";
  if (info.drained) text += " drained";
  if (info.order != PermitOrder::unspecified) text += " order=" + enum_text(info.order);
  if (info.alert) {
    text += " alert: " + info.alert->by + " believes " + std::to_string(info.alert->slots);
  }
  say(text);
  for (const SlotInfo& slot : info.slots) {
    std::string line = "  " + slot.slot.value;
    if (slot.drained) line += " drained";
    if (slot.leaving) line += " leaving";
    if (slot.permit) {
      line += " held by " + slot.permit->holder +
              " fence=" + std::to_string(slot.permit->fence.value) + " until " +
              cluster_.relative(slot.permit->deadline);
    } else {
      line += " free";
    }
    say(line);
  }
}

void Script::pool(Words& words) {
  if (words.flag("set")) {
    set_pool(words);
    return;
  }
  const bool remove = words.flag("delete");
  const PoolRequest request{default_namespace, PoolName(words.next())};
  if (remove) {
    ask<EmptyResponse>(
        [&](auto done) { cluster_.service().delete_pool(request, std::move(done)); });
    return;
  }
  const auto info =
      ask<PoolInfo>([&](auto done) { cluster_.service().describe_pool(request, std::move(done)); });
  if (info) print_pool(*info);
}

void Script::set_pool(Words& words) {
  SetPoolRequest request;
  request.namespace_ = default_namespace;
  request.pool = PoolName(words.next());
  if (words.has("capacity")) request.capacity = words.number("capacity");
  if (words.has("slots")) request.slots = words.slots("slots");
  request.order = words.enumerator<PermitOrder>("order");
  if (words.has("rate")) {
    request.rate = PoolRate{std::stod(words.get("rate")), std::stod(words.get("burst", "1"))};
  }
  ask<PoolInfo>([&](auto done) { cluster_.service().set_pool(request, std::move(done)); });
}

void Script::line(Words& words) {
  const PoolRequest request{default_namespace, PoolName(words.next())};
  const auto answer = ask<ListWaitersResponse>(
      [&](auto done) { cluster_.service().list_waiters(request, std::move(done)); });
  if (!answer) return;
  if (answer->waiters.empty()) say("nobody waits");
  for (const WaiterInfo& waiter : answer->waiters) {
    const bool in_line = waiter.state == "in_line";
    std::string text = in_line ? std::to_string(waiter.position) + ". " : waiter.state + " ";
    text += waiter.holder + " " + enum_text(waiter.order) +
            " priority=" + std::to_string(waiter.priority) +
            " count=" + std::to_string(waiter.count) + " since=" + cluster_.relative(waiter.since);
    if (is_set(waiter.expires)) text += " expires=" + cluster_.relative(waiter.expires);
    if (waiter.probes > 0) text += " probes=" + std::to_string(waiter.probes);
    say(text);
  }
}

void Script::holds(Words& words) {
  if (words.flag("counts")) {
    store::Statement counts{cluster_.store().database(),
                            "SELECT outcome, cause, sum(holds) FROM hold_counts "
                            "GROUP BY outcome, cause ORDER BY outcome, cause"};
    for (auto row = counts.bind(); row.step();) {
      std::string text = row.i32(0) == 0 ? "grants" : enum_text(static_cast<Outcome>(row.i32(0)));
      if (!row.text(1).empty()) text += " " + std::string(row.text(1));
      say(text + " " + std::to_string(row.i64(2)));
    }
    return;
  }
  store::Statement holds{cluster_.store().database(),
                         "SELECT pool, slot, fence, holder, granted_at, closed_at, outcome, cause "
                         "FROM holds ORDER BY fence"};
  for (auto row = holds.bind(); row.step();) {
    const auto time = [&](int column) {
      return cluster_.relative(Time(Duration(row.i64(column))));
    };
    std::string text = std::string(row.text(0)) + ":" + std::string(row.text(1)) +
                       " fence=" + std::to_string(row.i64(2)) + " by " + std::string(row.text(3)) +
                       " from " + time(4);
    if (!row.is_null(5)) {
      text += " to " + time(5) + " " + enum_text(static_cast<Outcome>(row.i32(6)));
      if (!row.text(7).empty()) text += " " + std::string(row.text(7));
    }
    say(text);
  }
}

// --- Operators ---

void Script::drain(Words& words) {
  const DrainRequest request{default_namespace, PoolName(words.next()), SlotName(words.next())};
  ask<PoolInfo>([&](auto done) {
    cluster_.service().drain(request, service::Pools::Drain::on, std::move(done));
  });
}

void Script::undrain(Words& words) {
  const DrainRequest request{default_namespace, PoolName(words.next()), SlotName(words.next())};
  ask<PoolInfo>([&](auto done) {
    cluster_.service().drain(request, service::Pools::Drain::off, std::move(done));
  });
}

void Script::force_release(Words& words) {
  ForceReleaseRequest request;
  request.namespace_ = default_namespace;
  const WorkflowExecution execution = parse_execution(cluster_, words.next());
  request.id = execution.workflow_id;
  request.run_id = execution.run_id;
  request.fence = Fence{words.number("fence")};
  request.reason = words.get("reason");
  const auto info = ask<PermitInfo>(
      [&](auto done) { cluster_.service().force_release(request, std::move(done)); });
  if (info) say(cluster_.name(info->run_id) + " " + enum_text(info->outcome) + " " + info->cause);
}

WaiterRequest Script::waiter_named(Words& words) {
  const PoolRequest pool{default_namespace, PoolName(words.next())};
  const std::string holder = words.next();
  const auto line = ask<ListWaitersResponse>(
      [&](auto done) { cluster_.service().list_waiters(pool, std::move(done)); });
  WaiterRequest request{default_namespace, Fence{999}};
  for (const WaiterInfo& waiter : line.value().waiters) {
    if (waiter.holder == holder) request.id = waiter.id;
  }
  return request;
}

void Script::why(Words& words) {
  const WaiterRequest request = waiter_named(words);
  const auto answer =
      ask<WhyResponse>([&](auto done) { cluster_.service().why(request, std::move(done)); });
  if (!answer) return;
  say(answer->reason + ": " + answer->message);
  for (const PermitInfo& permit : answer->blocked_by) {
    say("  " + permit.id.value + " held by " + permit.holder + " run " +
        cluster_.name(permit.holder_run_id) + " for " + format_duration(permit.age) +
        ", lease left " + format_duration(permit.lease_left));
  }
  if (is_set(answer->latest_free)) say("  free at " + cluster_.relative(answer->latest_free));
}

void Script::remove_waiter(Words& words) {
  const WaiterRequest waiter = waiter_named(words);
  const RemoveWaiterRequest request{waiter.namespace_, waiter.id};
  ask<EmptyResponse>(
      [&](auto done) { cluster_.service().remove_waiter(request, std::move(done)); });
}

// --- Holders that are not workflows ---

void Script::print_grant(const std::string& id, const AcquireResponse& response) {
  if (response.state == "waiting") {
    say(id + " waits at position " + std::to_string(response.ticket.value().position));
    return;
  }
  Holder& holder = holders_[id];
  holder = {{}, response.token, 0};
  std::string text = id + " granted";
  for (const GrantedSlot& slot : response.slots) {
    holder.permits.push_back(slot.id);
    text += " " + slot.id.value + " fence=" + std::to_string(slot.fence.value);
  }
  say(text + " until " + cluster_.relative(response.deadline));
}

void Script::acquire(Words& words) {
  AcquireRequest request;
  request.namespace_ = default_namespace;
  request.pool = PoolName(words.next());
  request.request_id = words.get("id");
  request.holder = words.get("by", request.request_id);
  request.slots = words.slots("slots");
  request.only = words.slots("only");
  request.count = words.number("count");
  request.lease = words.duration("lease");
  request.max_hold = words.duration("max-hold");
  request.order = words.enumerator<PermitOrder>("order");
  request.priority = words.number("priority");
  request.wait_timeout = words.duration("wait-timeout");
  request.reason = words.get("reason");
  if (words.has("wait")) request.wait = Duration(std::chrono::seconds(words.number("wait")));
  const std::string id = request.request_id;
  std::int64_t wait = 0;
  const auto show = [this, id](const service::Result<AcquireResponse>& result) {
    if (const auto* error = std::get_if<Error>(&result)) {
      say(*error);
    } else {
      print_grant(id, std::get<AcquireResponse>(result));
    }
  };
  const auto result = cluster_.call<AcquireResponse>(
      [&](auto done) { wait = cluster_.service().acquire(request, std::move(done)); }, show);
  if (result) {
    show(*result);
    return;
  }
  holders_[id].wait = wait;
  say(id + " waits");
}

void Script::hang_up(Words& words) {
  cluster_.service().forget_poll(holders_[words.next()].wait);
  cluster_.settle();
}

void Script::wait_over(Words&) {
  cluster_.service().answer_all_polls();
  cluster_.settle();
}

HolderRequest Script::holder_request(Words& words) {
  const Holder& holder = holders_[words.next()];
  if (holder.permits.empty()) fail_script("it has never been granted anything");
  HolderRequest request;
  request.namespace_ = default_namespace;
  request.id = WorkflowId(words.get("permit", holder.permits.front().value));
  request.token = words.get("token", holder.token);
  request.lease = words.duration("lease");
  return request;
}

void Script::renew(Words& words) {
  const HolderRequest request = holder_request(words);
  const auto answer =
      ask<RenewResponse>([&](auto done) { cluster_.service().renew(request, std::move(done)); });
  if (answer) say("until " + cluster_.relative(answer->deadline));
}

void Script::release(Words& words) {
  const HolderRequest request = holder_request(words);
  const auto info =
      ask<PermitInfo>([&](auto done) { cluster_.service().release(request, std::move(done)); });
  if (!info) return;
  std::string text = cluster_.name(info->run_id) + " " + enum_text(info->outcome);
  if (!info->cause.empty()) text += " " + info->cause;
  say(text);
}

}  // namespace permit::test
