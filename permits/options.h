// How to ask for a permit. A class with setters, since it is built beside co_await
// (worker/async.h).
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "orchestrator/protocol/common.h"

namespace permit::permits {

class PermitOptions {
 public:
  // Any duration, fractions of a second included.
  using Seconds = std::chrono::duration<double>;

  // The permit ends by itself so long after its start, or after it was last renewed. Default 10
  // min.
  PermitOptions& lease(Seconds duration) { return set(lease_, duration); }
  // Renewals move the lease's end no further than this from the start. Default: no limit.
  PermitOptions& max_hold(Seconds duration) { return set(max_hold_, duration); }
  // How long to wait for a slot; then PermitTimedOut. Zero: one try. Default: for ever.
  PermitOptions& timeout(Seconds duration) {
    timeout_ = duration;
    return *this;
  }

  // In line, by priority and then by arrival.
  PermitOptions& fair() {
    order_ = PermitOrder::fair;
    return *this;
  }
  // Whoever comes first when a slot frees. The default.
  PermitOptions& any() {
    order_ = PermitOrder::any;
    return *this;
  }
  // Of the line: 1 first … 5 last. Default 3.
  PermitOptions& priority(int key) {
    priority_ = key;
    return *this;
  }
  // Of `any`: the pause after the first round that found no slot, which doubles up to a limit.
  // Default 5 s, 60 s; each is varied by 20 %.
  PermitOptions& backoff(Seconds first, Seconds max) {
    backoff_max_ = max;
    return set(backoff_, first);
  }
  // Slot by slot, with pauses and no help from the server: what also works against Temporal. Such a
  // permit cannot be renewed. The server learns a pool's slots one by one from such callers: if
  // others use the pool with its help, let an operator set it first.
  PermitOptions& plain() {
    plain_ = true;
    return *this;
  }

  // Whether the heartbeats of activities under the permit renew it. Default: they do.
  PermitOptions& renewed_by_heartbeats(bool renewed) {
    renewed_by_heartbeats_ = renewed;
    return *this;
  }

  // For people who look at who holds what.
  PermitOptions& reason(std::string text) {
    reason_ = std::move(text);
    return *this;
  }
  PermitOptions& label(std::string key, std::string value) {
    labels_[std::move(key)] = std::move(value);
    return *this;
  }
  // Whose worker runs the permit. Default: "permits", which the server itself serves.
  PermitOptions& task_queue(std::string name) {
    task_queue_ = std::move(name);
    return *this;
  }

  // Throws InvalidPermit.
  void check() const;

  Duration lease() const { return rounded(lease_); }
  Duration max_hold() const { return rounded(max_hold_); }
  std::optional<Duration> timeout() const {
    if (!timeout_) return std::nullopt;
    return rounded(*timeout_);
  }
  Duration backoff() const { return rounded(backoff_); }
  Duration backoff_max() const { return rounded(backoff_max_); }
  PermitOrder order() const { return order_; }
  int priority() const { return priority_; }
  bool is_plain() const { return plain_; }
  bool is_renewed_by_heartbeats() const { return renewed_by_heartbeats_; }
  const std::string& reason() const { return reason_; }
  const std::map<std::string, std::string>& labels() const { return labels_; }
  const std::string& task_queue() const { return task_queue_; }

 private:
  PermitOptions& set(Seconds& member, Seconds value) {
    member = value;
    return *this;
  }
  static Duration rounded(Seconds seconds) { return std::chrono::round<Duration>(seconds); }

  Seconds lease_ = std::chrono::minutes(10);
  Seconds max_hold_{0};
  std::optional<Seconds> timeout_;
  Seconds backoff_ = std::chrono::seconds(5);
  Seconds backoff_max_ = std::chrono::seconds(60);
  PermitOrder order_ = PermitOrder::any;
  int priority_ = 0;
  bool plain_ = false;
  bool renewed_by_heartbeats_ = true;
  std::string reason_;
  std::map<std::string, std::string> labels_;
  std::string task_queue_;
};

}  // namespace permit::permits
