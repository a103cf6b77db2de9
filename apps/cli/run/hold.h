// A permit in hand and the command that runs under it: renews the one, watches the other, stops it
// before the permit can end, and gives the permit back when all of the command's processes are
// gone.
#pragma once

#include <optional>
#include <string>

#include "apps/cli/run/event_loop.h"
#include "apps/cli/run/job.h"
#include "apps/cli/run/link.h"
#include "apps/cli/run/run_options.h"
#include "apps/cli/run/voice.h"
#include "permits/holder_client.h"
#include "permits/pool_client.h"
#include "worker/http_client.h"

namespace permit::cli {

// How it ended, for the report.
struct HoldEnd {
  int exit_code = 0;
  std::optional<int> wait_status;  // absent: the command was not started
  StopReason stop_reason = StopReason::none;
  bool is_released = false;
  std::string problem;  // why it was not
  Duration held{};
};

class Hold {
 public:
  struct Context {
    EventLoop& loop;
    Voice& voice;
    const Link& front;
    const RunOptions& options;
    const AcquireRequest& request;
  };
  struct Confirmed {
    Instant start;
    Instant sent;  // of the request whose answer says that it is held
  };
  Hold(const Context& context, AcquireResponse grant, Confirmed confirmed);

  // Starts the command. If it cannot be started, the permit is given back at once.
  void start_command(const Launch& launch);
  // Gives the permit back instead of starting the command.
  void cancel(int exit_code) { give_back(exit_code); }
  bool has_started() const { return job_.has_value(); }
  bool is_ending() const { return is_ending_; }

  void signal(int number);
  void wrapper_gone();
  void children_changed();
  void look(Instant now);
  Instant next_look() const;

  const AcquireResponse& grant() const { return grant_; }
  Instant start() const { return start_; }
  const std::optional<HoldEnd>& end() const { return end_; }

 private:
  void renew();
  void lost(const std::string& how);
  void not_renewed(const std::string& why);
  void renewed(Instant sent);
  void stop(StopReason reason);
  void clean_up(Instant now);
  void give_back(int exit_code);
  std::string release(const GrantedSlot& slot, Instant patience) const;
  void finished(int exit_code, const std::string& problem);
  int exit_code() const;

  const Context context_;
  const AcquireResponse grant_;
  HoldPlan plan_;
  const Instant start_;
  worker::HttpTransport transport_;
  const permits::HolderClient holder_;
  const permits::PoolClient pools_;
  Errands errands_;
  std::optional<Job> job_;
  StopReason stop_reason_ = StopReason::none;
  std::string how_lost_;
  bool said_unanswered_ = false;
  bool is_ending_ = false;                // the permit is being given back
  std::optional<Instant> command_ended_;  // while others of its processes live
  bool is_rest_stopped_ = false;
  Instant kill_at_ = Instant::max();
  std::optional<HoldEnd> end_;
};

}  // namespace permit::cli
