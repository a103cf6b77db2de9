// What an activity's code is given: who it is, how to say that it is alive, when to stop. Its
// members may be called from the activity's own thread and from any that it starts.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "orchestrator/protocol/common.h"
#include "worker/convert.h"

namespace permit::worker {

struct ActivityInfo {
  WorkflowExecution workflow;
  std::string workflow_type;
  std::string activity_id;
  std::string activity_type;
  int attempt = 1;
  Bytes task_token;  // completes it from elsewhere, see complete_later()
  Time scheduled_time{};
  Time started_time{};
  Time deadline{};  // of this attempt, by the server's clock
  Duration heartbeat_timeout{};
};

// Thrown by complete_later(); let it pass.
struct CompletesLater {};

class ActivityContext {
 public:
  // `record` takes a heartbeat's details and sends them now or a little later.
  using Record = std::function<void(std::optional<Payloads>)>;
  ActivityContext(ActivityInfo info, std::optional<Payloads> last_details, Record record)
      : info_(std::move(info)),
        last_details_(std::move(last_details)),
        record_(std::move(record)) {}
  ActivityContext(const ActivityContext&) = delete;
  ActivityContext& operator=(const ActivityContext&) = delete;

  const ActivityInfo& info() const { return info_; }
  // The same for every attempt and replay: what a payment API wants as its idempotency key.
  std::string idempotency_key() const {
    return info_.workflow.run_id.value + ":" + info_.activity_id;
  }

  // Says that it is alive and how far it has come; the next attempt finds the details. Throws
  // Canceled once it is to stop. Cheap: what comes too often is not sent.
  void heartbeat() { beat(std::nullopt); }
  template <class T>
  void heartbeat(const T& details) {
    beat(to_payloads(details));
  }

  // What the attempt before said last.
  template <class T>
  std::optional<T> last_heartbeat() const {
    if (!last_details_) return std::nullopt;
    return from_payloads<T>(last_details_);
  }

  // Its workflow asks it to stop, or has gone, or the worker is stopping. Known by heartbeats.
  bool is_canceled() const { return canceled_.load(); }
  void cancel() { canceled_.store(true); }

  // This call ends without a result; somebody completes the activity by its task token or id.
  [[noreturn]] void complete_later() const { throw CompletesLater{}; }

 private:
  void beat(std::optional<Payloads> details) {
    record_(std::move(details));
    if (is_canceled()) throw Canceled("the activity was told to stop");
  }

  const ActivityInfo info_;
  const std::optional<Payloads> last_details_;
  const Record record_;
  std::atomic<bool> canceled_{false};
};

}  // namespace permit::worker
