#include "tests/simulation/holders.h"

namespace permit::simulation {

using namespace std::chrono_literals;

Holders::Holders(World& world) : world_(world) {
  holders_.resize(static_cast<std::size_t>(world.plan.holders));
}

void Holders::step() {
  if (holders_.empty()) return;
  const std::size_t index = world_.chance.below(holders_.size());
  Holder& holder = holders_[index];
  if (holder.slots.empty()) {
    if (holder.waiting && world_.fault(20)) {
      world_.say("holder" + std::to_string(index) + " hangs up");
      holder.waiting = false;
      world_.hang_up(holder.wait);  // the ticket stays a while
      sometimes("a holder hangs up while it waits in line");
    } else if (!holder.waiting) {
      ask(index);
    }
    return;
  }
  use(holder);
  const int die = world_.chance.between(0, 99);
  if (die < 30) {
    renew(holder);
  } else if (die < 60) {
    release(holder);
  } else if (die < 70) {
    release_with_wrong_token(holder);
  } else if (die < 80) {
    holder = {holder.asked, {}, 0, false, false, false, {}, {}};  // dies; a new one takes its place
  }
}

void Holders::ask(std::size_t index) {
  Holder& holder = holders_[index];
  const PoolPlan& pool = world_.chance.pick(world_.plan.pools);
  const bool again = holder.unsure && world_.chance.percent(80);
  if (!again) {
    AcquireRequest request;
    request.namespace_ = "default";
    request.pool = pool.name;
    request.request_id = "h" + std::to_string(index) + "." + std::to_string(++holder.asked);
    request.holder = "holder" + std::to_string(index);
    request.count = world_.chance.percent(world_.plan.several) ? 2 : 1;
    request.lease = world_.chance.duration(world_.plan.lease_min, world_.plan.lease_max);
    request.priority = world_.chance.percent(30) ? world_.chance.between(1, 5) : 0;
    if (world_.chance.percent(30)) request.order = PermitOrder::any;
    if (world_.chance.percent(20)) request.wait_timeout = world_.chance.duration(1s, 1min);
    if (world_.chance.percent(10)) {
      request.max_hold = world_.chance.duration(world_.plan.lease_min, world_.plan.lease_max * 2);
    }
    holder.request = std::move(request);
    holder.unsure = false;
  }
  holder.asked_again = again;
  holder.request.wait.reset();
  if (world_.chance.percent(30)) holder.request.wait = Duration(0);
  refused_.erase(holder.request.request_id);
  holder.waiting = true;
  holder.unsure = true;
  ++world_.totals.requests;
  sometimes(again, "a holder asks again with the same request id");
  world_.say("holder" + std::to_string(index) + " acquires " + holder.request.pool.value);
  const auto lost = [this, index, id = holder.request.request_id] {
    Holder& one = holders_[index];
    if (one.request.request_id == id) one.waiting = false;
  };
  holder.wait = world_.call(rpc::acquire, holder.request,
                            std::function([this, index, request_id = holder.request.request_id](
                                              service::Result<AcquireResponse> result) {
                              answered(index, request_id, result);
                            }),
                            lost, Wire::Way::own);
}

void Holders::answered(std::size_t index, const std::string& request_id,
                       const service::Result<AcquireResponse>& result) {
  Holder& holder = holders_[index];
  const bool current = holder.request.request_id == request_id;
  if (current) holder.waiting = false;
  if (const Error* error = std::get_if<Error>(&result)) {
    world_.promises.check_error(*error);
    // After an answer on a full disk the ticket of an earlier call may stand in line still.
    sometimes(error->reason() == "POOL_FULL", "a holder that does not wait is refused");
    sometimes(error->reason() == "WAIT_TIMED_OUT", "a wait in line runs out of time");
    if (error->reason() == "POOL_FULL" || error->reason() == "CANNOT_FIT") {
      if (!current) return;
      if (!holder.asked_again) refused_.insert(request_id);
      holder.unsure = false;
    }
    return;
  }
  const auto& response = std::get<AcquireResponse>(result);
  if (response.state != "granted") {
    sometimes("a holder is told its place in line");
    return;
  }
  sometimes(response.slots.size() > 1, "several slots are granted at once");
  ++world_.totals.writes_acknowledged;
  for (const GrantedSlot& slot : response.slots) {
    world_.promises.acknowledged_run(slot.run_id);
  }
  if (!current || world_.reply_is_lost()) return;
  holder.slots = response.slots;
  holder.token = response.token;
}

void Holders::use(Holder& holder) {
  for (const GrantedSlot& slot : holder.slots) {
    const RunTrace* permit = world_.ledger.find(slot.run_id);
    if (permit == nullptr) continue;
    require(permit->grant->fence == slot.fence, "a holder was told another fence than it has");
    world_.resources.write(*permit, world_.ledger);
  }
}

void Holders::renew(Holder& holder) {
  const GrantedSlot slot = world_.chance.pick(holder.slots);
  const HolderRequest request{"default", slot.id, holder.token, {}};
  const Duration lease = holder.request.lease;
  world_.say(slot.id.value + " is renewed by its holder");
  world_.send([this, request, slot, lease] {
    world_.ledger.renewed(slot.run_id, world_.latest(), lease);
    world_.ask(rpc::renew, request, std::function([this](service::Result<RenewResponse> result) {
                 if (std::holds_alternative<RenewResponse>(result)) {
                   ++world_.totals.renewals;
                 } else {
                   sometimes("a renewal comes too late");
                 }
               }));
  });
}

void Holders::release(Holder& holder) {
  const GrantedSlot slot = holder.slots.back();
  holder.slots.pop_back();
  const HolderRequest request{"default", slot.id, holder.token, {}};
  world_.say(slot.id.value + " is released by its holder");
  world_.send([this, request, slot] {
    world_.ask(rpc::release, request,
               std::function([this, slot](service::Result<PermitInfo> result) {
                 const PermitInfo* info = std::get_if<PermitInfo>(&result);
                 if (info == nullptr) {
                   ++world_.totals.late_releases_ignored;
                   sometimes("a release by a holder comes too late");
                   return;
                 }
                 require(info->run_id == slot.run_id, "a release with the token of run " +
                                                          slot.run_id.value + " ended run " +
                                                          info->run_id.value);
               }));
  });
}

void Holders::release_with_wrong_token(const Holder& holder) {
  const HolderRequest request{"default", holder.slots.front().id, holder.token + "0", {}};
  world_.send([this, request] {
    world_.ask(rpc::release, request, std::function([](service::Result<PermitInfo> result) {
                 require(!std::holds_alternative<PermitInfo>(result),
                         "a release with a wrong token was taken");
               }));
  });
}

void Holders::let_go() {
  for (Holder& holder : holders_) {
    while (!holder.slots.empty()) release(holder);
    if (holder.waiting) {
      holder.waiting = false;
      world_.hang_up(holder.wait);
    }
  }
}

void Holders::disconnected() {
  for (Holder& holder : holders_) holder.waiting = false;
}

void Holders::check() const {
  for (const auto& [number, run] : world_.ledger.runs()) {
    require(!run.is_permit() || run.parent || !refused_.contains(run.request_id),
            "request " + run.request_id + " was refused and has a permit");
  }
}

}  // namespace permit::simulation
