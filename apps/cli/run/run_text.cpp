#include "apps/cli/run/run_text.h"

#include <algorithm>

#include "apps/cli/duration_text.h"

namespace permit::cli {

namespace {

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// "gpu-pool:1" of "permit:gpu-pool:1"
std::string short_name(const WorkflowId& permit) {
  return permit.value.substr(permit.value.find(':') + 1);
}

}  // namespace

std::string names_of(const AcquireResponse& grant) {
  std::string names;
  for (std::size_t i = 0; i < grant.slots.size(); ++i) {
    if (i > 0) names += i + 1 == grant.slots.size() ? " and " : ", ";
    names += grant.slots[i].id.value;
  }
  return names;
}

std::string holder_name(const std::vector<std::string>& command, const std::string& who) {
  constexpr std::size_t length_max = 60;
  std::string name = base_name(command.at(0));
  if (command.size() > 1 && !command[1].starts_with('-')) name += " " + base_name(command[1]);
  if (name.size() > length_max) name.resize(length_max);
  for (char& c : name) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return name + " (" + who + ")";
}

std::string fill_of(const PoolInfo& pool) {
  std::string text = std::to_string(pool.held) + "/" + std::to_string(pool.capacity) + " held";
  if (pool.waiting > 0) text += ", " + std::to_string(pool.waiting) + " waiting";
  return text;
}

std::string waiting_line(const WhyResponse& why, const PoolInfo& pool) {
  std::string line = "waiting for " + why.waiter.pool.value + ": position " +
                     std::to_string(why.waiter.position) + ", " + std::to_string(pool.held) + "/" +
                     std::to_string(pool.capacity) + " held";
  if (why.reason != "slots_held") return line + ", " + why.message;
  const auto soonest = std::min_element(
      why.blocked_by.begin(), why.blocked_by.end(),
      [](const PermitInfo& a, const PermitInfo& b) { return a.lease_left < b.lease_left; });
  if (soonest == why.blocked_by.end()) return line;
  line += ", soonest lease end " + show_duration(soonest->lease_left) + " (" +
          short_name(soonest->id) + ", " + soonest->holder + ")";
  // By the server's own clock, which may not be ours.
  const Time now = soonest->deadline - soonest->lease_left;
  if (is_set(why.latest_free) && why.latest_free > now) {
    line += ", free in " + show_duration(why.latest_free - now) + " at the latest if nobody renews";
  }
  return line;
}

std::string stop_text(StopReason reason, const AcquireResponse& grant, Duration held) {
  const std::string names = names_of(grant);
  switch (reason) {
    case StopReason::max_hold:
      return "time limit of " + names + " (--max-hold) is near, after " + show_duration(held);
    case StopReason::unconfirmed:
      return "lease of " + names + " ends soon, and the server does not answer";
    case StopReason::lease_ended:
      return "lease of " + names + " ended after " + show_duration(held);
    case StopReason::lost:
      return names + " was lost after " + show_duration(held);
    case StopReason::wrapper_gone:
      return "permit run was killed";
    case StopReason::none:
      break;
  }
  return "";
}

}  // namespace permit::cli
