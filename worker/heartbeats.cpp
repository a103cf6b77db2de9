#include "worker/heartbeats.h"

#include <algorithm>
#include <utility>

namespace permit::worker {

namespace {

using namespace std::chrono_literals;

std::chrono::steady_clock::duration pause_for(Duration timeout) {
  if (timeout.count() <= 0) return 5s;
  return std::clamp<std::chrono::steady_clock::duration>(timeout * 8 / 10, 10ms, 5s);
}

}  // namespace

Heartbeats::Heartbeats(Send send) : send_(std::move(send)), thread_([this] { run(); }) {}

Heartbeats::~Heartbeats() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::int64_t Heartbeats::add(ActivityContext& context) {
  const std::lock_guard lock(mutex_);
  Beating& beating = beating_[++last_id_];
  beating.context = &context;
  beating.task_token = context.info().task_token;
  beating.pause = pause_for(context.info().heartbeat_timeout);
  return last_id_;
}

void Heartbeats::record(std::int64_t id, std::optional<Payloads> details) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = beating_.find(id);
    if (found == beating_.end()) return;
    found->second.details = std::move(details);
    found->second.has_news = true;
  }
  changed_.notify_all();
}

std::optional<Payloads> Heartbeats::remove(std::int64_t id) {
  std::unique_lock lock(mutex_);
  sent_.wait(lock, [&] { return !beating_.at(id).is_sending; });
  const Beating beating = std::move(beating_.at(id));
  beating_.erase(id);
  return beating.has_news ? beating.details : std::nullopt;
}

void Heartbeats::cancel_all() {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, beating] : beating_) beating.context->cancel();
}

void Heartbeats::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const Clock::time_point now = Clock::now();
    std::optional<Clock::time_point> next;
    std::optional<std::int64_t> due;
    for (const auto& [id, beating] : beating_) {
      if (!beating.has_news) continue;
      if (beating.due <= now) due = id;
      if (!next || beating.due < *next) next = beating.due;
    }
    if (due) {
      send_one(lock, *due);
    } else if (next) {
      changed_.wait_until(lock, *next);
    } else {
      changed_.wait(lock);
    }
  }
}

void Heartbeats::send_one(std::unique_lock<std::mutex>& lock, std::int64_t id) {
  Beating& beating = beating_.at(id);
  beating.has_news = false;
  beating.is_sending = true;
  beating.due = Clock::now() + beating.pause;
  const Bytes token = beating.task_token;
  const std::optional<Payloads> details = beating.details;
  lock.unlock();
  const bool stop = send_(token, details);
  lock.lock();
  // Still there: remove() waits for this.
  Beating& sent = beating_.at(id);
  sent.is_sending = false;
  if (stop) sent.context->cancel();
  sent_.notify_all();
}

}  // namespace permit::worker
