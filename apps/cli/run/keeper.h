// The process that holds the permit for `permit run`: it stands between the process that the shell
// knows and the command, in a process group of its own, so that it outlives a kill -9 of either.
#pragma once

#include <signal.h>

#include <optional>
#include <string>
#include <vector>

#include "apps/cli/run/event_loop.h"
#include "apps/cli/run/hold.h"
#include "apps/cli/run/link.h"
#include "apps/cli/run/queue_up.h"
#include "apps/cli/run/voice.h"

namespace permit::cli {

class Keeper {
 public:
  // What the command inherits from the time before `permit run` changed it.
  struct Inherited {
    sigset_t signal_mask{};
    std::vector<std::string> environment;
    int terminal = -1;
    pid_t terminal_group = 0;
  };
  // All outlive it.
  Keeper(const RunOptions& options, const AcquireRequest& request, Link& front,
         const Inherited& inherited);

  // From the first request to the release. Returns the last notice for the front.
  Notice run();

 private:
  void step();
  void take_notice();
  void signal_before_start(int number);
  void leave(int exit_code);
  void confirm();
  void granted(Hold::Confirmed confirmed);
  void start_command();
  void say_acquired(const std::vector<std::string>& devices);
  void finish(const HoldEnd& end);
  void refuse(const Refusal& refusal);
  void report(int exit_code, const HoldEnd* end, const std::string& message);
  Instant next_look() const;

  const RunOptions& options_;
  const AcquireRequest& request_;
  Link& front_;
  const Inherited& inherited_;
  Voice voice_;
  EventLoop loop_;
  int children_;  // becomes readable when one has changed
  QueueUp queue_;
  Errands confirmer_;
  bool is_confirming_ = false;
  bool is_leaving_ = false;
  bool is_paused_ = false;  // by Ctrl-Z, before the command was started
  Instant granted_at_{};
  std::optional<Hold> hold_;
  std::optional<Notice> last_;
};

}  // namespace permit::cli
