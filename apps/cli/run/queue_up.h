// Asks for a permit until it is granted or refused, and says meanwhile what it waits for. A lost
// answer is asked for again: the request's id keeps its place in line, also across a restart of the
// server.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "apps/cli/run/event_loop.h"
#include "apps/cli/run/run_options.h"
#include "apps/cli/run/voice.h"
#include "permits/holder_client.h"
#include "permits/pool_client.h"
#include "worker/http_client.h"

namespace permit::cli {

// Why permit ends without having run the command.
struct Refusal {
  int exit_code = 0;
  std::string message;
};
// What the exit code says of an error, and the sentence for it.
Refusal refusal_of(const Error& error, const RunOptions& options);

AcquireRequest acquire_request(const RunOptions& options);

class QueueUp {
 public:
  // All outlive it.
  QueueUp(EventLoop& loop, Voice& voice, const RunOptions& options, const AcquireRequest& request);

  void begin();
  void look(Instant now);
  Instant next_look() const { return std::min(look_at_, give_up_at_); }

  // No more requests; the one that is under way, if any, may still be answered.
  void stop() { is_stopped_ = true; }
  bool is_asking() const { return is_asking_; }

  struct Grant {
    AcquireResponse response;
    Instant asked;  // when the request that was answered so was sent
  };
  const std::optional<Grant>& grant() const { return grant_; }
  const std::optional<Refusal>& refusal() const { return refusal_; }
  Instant begun() const { return begun_; }

 private:
  Duration first_wait() const;
  void ask(Duration wait);
  void answered(AcquireResponse response, Instant asked);
  void not_granted(const Error& error);
  void ask_again_later(const Error& error);
  void describe_refusal(const std::string& state, const std::string& limit);
  void show(const WhyResponse& why, const PoolInfo& pool);

  Voice& voice_;
  const RunOptions& options_;
  const AcquireRequest& request_;
  worker::HttpTransport patient_;
  worker::HttpTransport prompt_;
  const permits::HolderClient holder_;
  const permits::PoolClient pools_;
  Errands asker_;
  Errands watcher_;
  Instant begun_{};
  int failures_ = 0;  // since the last answer
  bool may_be_in_line_ = false;
  std::optional<Fence> ticket_;
  bool is_watching_ = false;
  bool is_asking_ = false;
  bool is_stopped_ = false;
  Instant look_at_ = Instant::max();
  Instant give_up_at_ = Instant::max();  // on a server that does not answer
  Instant ask_at_ = Instant::max();
  Instant watch_at_ = Instant::max();
  std::optional<Grant> grant_;
  std::optional<Refusal> refusal_;
};

}  // namespace permit::cli
