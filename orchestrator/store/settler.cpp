#include "orchestrator/store/settler.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <utility>

#include "orchestrator/protocol/ensure.h"

namespace permit::store {

namespace {

constexpr int niceness = 10;  // nobody waits for it, as long as it keeps up

}  // namespace

Settler::Settler(Post post) : post_(std::move(post)), thread_(&Settler::thread_main, this) {}

Settler::~Settler() {
  *alive_ = false;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Settler::start(Job job, Done done) {
  ENSURE(!is_busy_);
  is_busy_ = true;
  done_ = std::move(done);
  {
    const std::lock_guard lock(mutex_);
    job_ = std::move(job);
  }
  wake_.notify_one();
}

void Settler::wait() {
  if (!is_busy_) return;
  {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return has_result_; });
  }
  finish();
}

// Nothing to do if wait() has come before.
void Settler::finish() {
  std::exception_ptr result;
  {
    const std::lock_guard lock(mutex_);
    if (!has_result_) return;
    has_result_ = false;
    result = std::exchange(result_, nullptr);
  }
  is_busy_ = false;
  const Done done = std::exchange(done_, nullptr);
  done(result);
}

void Settler::thread_main() {
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), niceness);
  pthread_setname_np(pthread_self(), "settling");
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return job_ != nullptr || stopping_; });
      if (stopping_) return;
      job = std::exchange(job_, nullptr);
    }
    std::exception_ptr result;
    try {
      job();
    } catch (...) {
      result = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      result_ = result;
      has_result_ = true;
    }
    ended_.notify_one();
    post_([this, alive = alive_] {
      if (*alive) finish();
    });
  }
}

}  // namespace permit::store
