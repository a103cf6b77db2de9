#include "apps/cli/run/keeper.h"

#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "apps/cli/duration_text.h"
#include "apps/cli/run/child_environment.h"
#include "apps/cli/run/run_report.h"
#include "apps/cli/run/run_text.h"

namespace permit::cli {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// An answer that took longer was parked at the server, for an unknown part of the time.
constexpr milliseconds prompt_answer{100};
constexpr milliseconds silent_below{400};

int children_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  return signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
}

}  // namespace

Keeper::Keeper(const RunOptions& options, const AcquireRequest& request, Link& front,
               const Inherited& inherited)
    : options_(options),
      request_(request),
      front_(front),
      inherited_(inherited),
      voice_(options.quiet ? Voice::Level::quiet : Voice::Level::normal),
      children_(children_signals()),
      queue_(loop_, voice_, options, request),
      confirmer_(loop_) {}

Notice Keeper::run() {
  loop_.on_readable(front_.descriptor(), [this] { take_notice(); });
  loop_.on_readable(children_, [this] {
    signalfd_siginfo information{};
    while (read(children_, &information, sizeof information) > 0) {
    }
    if (hold_) hold_->children_changed();
  });
  queue_.begin();
  while (!last_) {
    loop_.run_once(next_look());
    step();
  }
  return *last_;
}

Instant Keeper::next_look() const { return hold_ ? hold_->next_look() : queue_.next_look(); }

void Keeper::step() {
  if (last_) return;
  const Instant now = BootClock::now();
  if (!hold_) {
    if (queue_.refusal()) {
      refuse(*queue_.refusal());
    } else if (queue_.grant()) {
      if (!is_confirming_) confirm();
    } else if (now >= queue_.next_look()) {
      queue_.look(now);
    }
  }
  if (!hold_) return;
  if (!hold_->has_started() && !hold_->is_ending() && !is_paused_) start_command();
  hold_->look(now);
  if (hold_->end()) finish(*hold_->end());
}

// --- What the front says ---

void Keeper::take_notice() {
  const std::optional<Notice> notice = front_.receive();
  if (!notice) loop_.forget(front_.descriptor());
  if (is_leaving_) return;
  if (!notice) {
    if (hold_) {
      hold_->wrapper_gone();
    } else {
      leave(125);
    }
  } else if (hold_ && hold_->has_started()) {
    hold_->signal(notice->value);
  } else {
    signal_before_start(notice->value);
  }
}

void Keeper::signal_before_start(int number) {
  switch (number) {
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
      is_paused_ = true;
      front_.send({Notice::Kind::stopped, number});
      return;
    case SIGCONT:
      is_paused_ = false;
      return;
    case SIGINT:
    case SIGTERM:
    case SIGHUP:
    case SIGQUIT:
      leave(128 + number);
      return;
    default:
      return;
  }
}

// Out of the line at once; and if a slot has been granted meanwhile, it is given back.
void Keeper::leave(int exit_code) {
  if (hold_) {
    hold_->cancel(exit_code);
    return;
  }
  worker::HttpTransport transport(options_.address, {seconds(2), seconds(2)}, options_.tls);
  transport.set_api_key(options_.api_key);
  const permits::HolderClient holder(transport, options_.namespace_name);
  const auto abandon = [&] {
    try {
      holder.abandon(request_);
    } catch (const Error&) {
      // The server forgets who does not ask any more.
    }
  };
  is_leaving_ = true;
  queue_.stop();
  abandon();
  // A request under way may come to the server behind that one, and be granted.
  if (queue_.is_asking()) {
    const Instant patience = BootClock::now() + seconds(2);
    while (queue_.is_asking() && BootClock::now() < patience) loop_.run_once(patience);
    abandon();
  }
  if (voice_.has_progress()) voice_.say("left the line of " + options_.pool.value);
  report(exit_code, nullptr, "left the line");
  last_ = Notice{Notice::Kind::finished, exit_code};
}

void Keeper::refuse(const Refusal& refusal) {
  voice_.error(refusal.message);
  report(refusal.exit_code, nullptr, refusal.message);
  last_ = Notice{Notice::Kind::finished, refusal.exit_code};
}

// --- Granted ---

// Since when? A first renewal tells: how much later the lease ends now is how long ago it began.
void Keeper::confirm() {
  is_confirming_ = true;
  const QueueUp::Grant& grant = *queue_.grant();
  if (BootClock::now() - grant.asked < prompt_answer) {
    granted({grant.asked, grant.asked});
    return;
  }
  confirmer_.send([this, grant]() -> std::function<void()> {
    worker::HttpTransport transport(options_.address, {seconds(2), seconds(2)}, options_.tls);
    transport.set_api_key(options_.api_key);
    const permits::HolderClient holder(transport, options_.namespace_name);
    Hold::Confirmed confirmed{grant.asked, grant.asked};
    try {
      const Instant sent = BootClock::now();
      Duration passed{};
      for (const GrantedSlot& slot : grant.response.slots) {
        passed = holder.renew(slot.id, grant.response.token) - slot.deadline;
      }
      confirmed = {std::max(grant.asked, sent - std::max(passed, Duration(0))), sent};
    } catch (const Error&) {
      // What is certain is what was asked; the hold's own renewals will tell.
    }
    return [this, confirmed] { granted(confirmed); };
  });
}

void Keeper::granted(Hold::Confirmed confirmed) {
  if (last_) return;
  granted_at_ = BootClock::now();
  hold_.emplace(Hold::Context{loop_, voice_, front_, options_, request_}, queue_.grant()->response,
                confirmed);
  step();
}

void Keeper::start_command() {
  Launch launch;
  try {
    const AcquireResponse& grant = hold_->grant();
    Granted granted{grant, {}, request_.holder, {}};
    if (options_.gpu != GpuKind::none) granted.devices = devices_of(grant);
    if (options_.max_hold.count() > 0) {
      granted.max_hold_deadline = grant.deadline - request_.lease + options_.max_hold;
    }
    say_acquired(granted.devices);
    launch.environment = child_environment(inherited_.environment, options_, granted);
  } catch (const Error& error) {
    voice_.error(error.message());
    hold_->cancel(refusal_of(error, options_).exit_code);
    return;
  }
  launch.command = options_.command;
  launch.signal_mask = inherited_.signal_mask;
  launch.terminal = inherited_.terminal;
  launch.terminal_group = inherited_.terminal_group;
  hold_->start_command(launch);
  let_go_of_input_and_output();
}

void Keeper::say_acquired(const std::vector<std::string>& devices) {
  const Duration waited = granted_at_ - queue_.begun();
  if (waited < silent_below && !voice_.has_progress()) return;
  std::string line = "acquired " + names_of(hold_->grant()) + " after " + show_duration(waited) +
                     " (fence " + std::to_string(hold_->grant().fence.value) + ", lease " +
                     type_duration(request_.lease);
  const std::string mask = device_mask(options_, devices);
  if (!mask.empty()) line += ", " + mask;
  voice_.say(line + ")");
}

void Keeper::finish(const HoldEnd& end) {
  const std::string names = names_of(hold_->grant());
  const bool is_lost = end.stop_reason == StopReason::lost;
  if (!end.problem.empty() && !is_lost) {
    voice_.say(end.problem);
  } else if (end.problem.empty() && voice_.has_spoken() && end.wait_status) {
    voice_.say("released " + names + " after " + show_duration(end.held) + ", command " +
               describe_status(*end.wait_status));
  }
  report(end.exit_code, &end, "");
  last_ = Notice{Notice::Kind::finished, end.exit_code};
  last_->restores_terminal = end.wait_status && WIFSIGNALED(*end.wait_status);
}

void Keeper::report(int exit_code, const HoldEnd* end, const std::string& message) {
  if (options_.report.empty()) return;
  RunReport report{options_, exit_code, {}, nullptr, end, message};
  report.waited = (hold_ ? granted_at_ : BootClock::now()) - queue_.begun();
  if (hold_) report.grant = &hold_->grant();
  try {
    write_report(report);
  } catch (const Error& error) {
    voice_.error(error.message());
  }
}

}  // namespace permit::cli
