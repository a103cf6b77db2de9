#include "worker/pulse.h"

#include <algorithm>
#include <utility>

namespace permit::worker {

namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

constexpr auto pause_between = 10s;
constexpr auto pause_after_failure = 1s;  // the server is away, or starts

Time wall_clock() {
  return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
}

// A stock server, or an older one: 404 or 501, with a body of its own.
bool says_unknown_call(const Error& error) {
  return error.code() == ErrorCode::not_found || error.code() == ErrorCode::unimplemented ||
         error.reason() == "HTTP_404" || error.reason() == "HTTP_501";
}

}  // namespace

WorkerSlotsInfo TaskCounts::info(int slots) const {
  WorkerSlotsInfo info;
  info.current_used_slots = used_;
  info.current_available_slots = std::max(slots - info.current_used_slots, 0);
  info.total_processed_tasks = Count{processed_};
  info.total_failed_tasks = Count{failed_};
  return info;
}

Pulse::Pulse(Transport& transport, std::string namespace_name, Measure measure)
    : transport_(transport),
      namespace_(std::move(namespace_name)),
      measure_(std::move(measure)),
      start_time_(wall_clock()),
      thread_([this] { run(); }) {}

Pulse::~Pulse() {
  set_status(WorkerStatus::shutdown);
  thread_.join();
}

void Pulse::begin_to_stop() { set_status(WorkerStatus::shutting_down); }

void Pulse::set_status(WorkerStatus status) {
  {
    const std::lock_guard lock(mutex_);
    status_ = status;
  }
  changed_.notify_all();
}

// A status that came and went while the one before was being sent is left out.
void Pulse::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const WorkerStatus status = status_;
    lock.unlock();
    const Sent sent = send(status);
    lock.lock();
    if (sent == Sent::unknown_call || status == WorkerStatus::shutdown) return;
    const auto pause = sent == Sent::yes ? pause_between : pause_after_failure;
    changed_.wait_for(lock, pause, [&] { return status_ != status; });
  }
}

Pulse::Sent Pulse::send(WorkerStatus status) {
  RecordWorkerHeartbeatRequest request;
  request.namespace_ = namespace_;
  WorkerHeartbeat& heartbeat = request.worker_heartbeat.emplace_back(measure_());
  request.identity = heartbeat.worker_identity;
  heartbeat.status = status;
  heartbeat.start_time = start_time_;
  heartbeat.heartbeat_time = wall_clock();
  const SteadyClock::time_point now = SteadyClock::now();
  if (sent_at_ != SteadyClock::time_point{}) {
    heartbeat.elapsed_since_last_heartbeat = std::chrono::duration_cast<Duration>(now - sent_at_);
  }
  try {
    call<EmptyResponse>(transport_, "RecordWorkerHeartbeat", request);
  } catch (const Error& error) {
    return says_unknown_call(error) ? Sent::unknown_call : Sent::no;
  }
  sent_at_ = now;
  return Sent::yes;
}

}  // namespace permit::worker
