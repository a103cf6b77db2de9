#include "apps/cli/run/hold.h"

#include <algorithm>
#include <thread>

#include "apps/cli/duration_text.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/run/run_text.h"

namespace permit::cli {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// Processes that end by themselves when the command has ended get so long to do it.
constexpr milliseconds rest_patience{250};
// A server that is being restarted gets so long to take the permit back.
constexpr seconds release_patience{10};
// For processes that come into sight only when their parents have ended.
constexpr milliseconds look_again{20};

worker::Patience patience_for(Duration lease) {
  using std::chrono::duration_cast;
  const auto most = duration_cast<milliseconds>(std::min<Duration>(lease / 6, seconds(3)));
  return {most, most};
}

// Not "999ms".
std::string about(Duration duration) {
  constexpr Duration step = milliseconds(50);
  return show_duration((duration + step / 2) / step * step);
}

HoldPlan::Terms terms_of(const RunOptions& options, const AcquireRequest& request) {
  HoldPlan::Terms terms;
  terms.lease = request.lease;
  terms.max_hold = options.max_hold;
  terms.kill_after = options.kill_after;
  if (options.warn_signal) terms.warn_before = options.warn_signal->before;
  terms.on_lost = options.on_lost;
  return terms;
}

// "force_released (operator)"; empty if nobody knows.
std::string outcome_of(const permits::PoolClient& pools, const GrantedSlot& slot) {
  try {
    const PermitInfo info = pools.describe_permit(slot.id, slot.run_id);
    if (info.outcome == Outcome::unspecified) return "";
    std::string text = boost::describe::enum_to_string(info.outcome, "");
    if (!info.cause.empty()) text += " (" + info.cause + ")";
    return text;
  } catch (const Error&) {
    return "";
  }
}

}  // namespace

Hold::Hold(const Context& context, AcquireResponse grant, Confirmed confirmed)
    : context_(context),
      grant_(std::move(grant)),
      plan_(terms_of(context.options, context.request), confirmed.start, confirmed.sent),
      start_(confirmed.start),
      transport_(context.options.address, patience_for(context.request.lease), context.options.tls),
      holder_(transport_, context.options.namespace_name),
      pools_(transport_, "permit-run", context.options.namespace_name),
      errands_(context.loop) {
  transport_.set_api_key(context.options.api_key);
}

void Hold::start_command(const Launch& launch) {
  try {
    job_.emplace(launch);
  } catch (const LaunchFailed& failure) {
    context_.voice.error(failure.what());
    give_back(failure.exit_code());
    return;
  }
  context_.front.send({Notice::Kind::started, job_->group()});
}

// --- Renewing ---

void Hold::renew() {
  errands_.send([this]() -> std::function<void()> {
    const Instant sent = BootClock::now();
    for (const GrantedSlot& slot : grant_.slots) {
      try {
        holder_.renew(slot.id, grant_.token);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::failed_precondition) {
          return [this, why = error.message()] { not_renewed(why); };
        }
        const std::string outcome = outcome_of(pools_, slot);
        return [this, how = outcome.empty() ? error.message() : outcome] { lost(how); };
      }
    }
    return [this, sent] { renewed(sent); };
  });
}

void Hold::renewed(Instant sent) {
  plan_.renewed(sent);
  if (std::exchange(said_unanswered_, false)) {
    context_.voice.say("the server is back; " + names_of(grant_) + " is held on");
  }
}

void Hold::not_renewed(const std::string& why) {
  const Instant now = BootClock::now();
  plan_.unanswered(now);
  const Duration since = now - plan_.unanswered_since();
  if (said_unanswered_ || since < std::min<Duration>(context_.request.lease / 6, seconds(10)))
    return;
  said_unanswered_ = true;
  std::string line = why + "; the command goes on";
  if (context_.options.on_lost == OnLost::stop) {
    line += ", and is stopped in " + show_duration(std::max(plan_.stops_at() - now, Duration(0))) +
            " if that does not change";
  }
  context_.voice.say(line);
}

void Hold::lost(const std::string& how) {
  plan_.lost();
  how_lost_ = how;
  if (context_.options.on_lost == OnLost::warn) {
    context_.voice.say(names_of(grant_) + " was lost: " + how +
                       "; the command goes on (--on-lost warn)");
  }
}

// --- The command ---

void Hold::signal(int number) {
  if (job_) job_->signal(number);
}

void Hold::wrapper_gone() { stop(StopReason::wrapper_gone); }

void Hold::stop(StopReason reason) {
  if (is_ending_) return;
  if (!job_) {
    stop_reason_ = reason;
    context_.voice.error(stop_text(reason, grant_, BootClock::now() - start_) +
                         "; the command was not started");
    give_back(exit_time_out);
    return;
  }
  const Instant now = BootClock::now();
  const Instant kill_at = plan_.kill_at(now);
  kill_at_ = std::min(kill_at_, kill_at);
  if (stop_reason_ != StopReason::none || command_ended_) return;
  stop_reason_ = reason;
  std::string line = stop_text(reason, grant_, now - start_);
  if (!how_lost_.empty()) line += ": " + how_lost_;
  const bool at_once = kill_at <= now;
  context_.voice.error(line + "; stopping the command (" +
                       (at_once ? "KILL" : "TERM, then KILL in " + about(kill_at - now)) + ")");
  if (at_once) {
    job_->kill_all();
    return;
  }
  job_->signal(SIGTERM);
  job_->signal(SIGCONT);  // who is stopped does not hear it otherwise
}

void Hold::children_changed() {
  if (!job_ || is_ending_) return;
  const std::optional<int> stopped = job_->reap();
  if (stopped && stop_reason_ == StopReason::none) {
    context_.front.send({Notice::Kind::stopped, *stopped});
  }
  if (!job_->wait_status()) return;
  const Instant now = BootClock::now();
  if (!job_->is_gone()) {
    if (!command_ended_) command_ended_ = now;
    if (kill_at_ <= now || is_rest_stopped_) clean_up(now);
    return;
  }
  give_back(exit_code());
}

// The command has ended, but not all that it has started.
void Hold::clean_up(Instant now) {
  if (kill_at_ <= now) {
    job_->kill_all();
    return;
  }
  if (!is_rest_stopped_) {
    is_rest_stopped_ = true;
    if (stop_reason_ == StopReason::none) {
      kill_at_ = std::min(kill_at_, plan_.kill_at(now));
      context_.voice.say("the command has ended, but not all of its processes; stopping them");
    }
  }
  job_->end_rest();
}

int Hold::exit_code() const {
  if (stop_reason_ != StopReason::none) return exit_time_out;
  return exit_code_of(*job_->wait_status());
}

// --- Time ---

void Hold::look(Instant now) {
  if (is_ending_) return;
  for (;;) {
    const HoldPlan::Action action = plan_.next_action(now);
    if (action == HoldPlan::Action::none) break;
    if (action == HoldPlan::Action::renew) renew();
    if (action == HoldPlan::Action::warn) signal(context_.options.warn_signal->number);
    if (action == HoldPlan::Action::stop) stop(plan_.stop_reason());
    if (action == HoldPlan::Action::tell_overdue) {
      context_.voice.say("the lease of " + names_of(grant_) +
                         " may have ended, as the server does not answer; the command goes on "
                         "(--on-lost warn)");
    }
  }
  if (!job_) return;
  if (now >= kill_at_) {
    job_->kill_all();
  } else if (command_ended_ && now >= *command_ended_ + rest_patience) {
    clean_up(now);
  }
}

Instant Hold::next_look() const {
  if (is_ending_) return Instant::max();
  Instant look = plan_.next_look();
  const Instant again = BootClock::now() + look_again;
  if (kill_at_ != Instant::max()) look = std::min(look, std::max(kill_at_, again));
  if (command_ended_) look = std::min(look, std::max(*command_ended_ + rest_patience, again));
  return look;
}

// --- The end ---

void Hold::give_back(int exit_code) {
  if (std::exchange(is_ending_, true)) return;
  const Instant patience = std::min(BootClock::now() + release_patience, plan_.deadline());
  errands_.send([this, exit_code, patience]() -> std::function<void()> {
    std::string problem;
    for (const GrantedSlot& slot : grant_.slots) {
      const std::string found = release(slot, patience);
      if (!found.empty()) problem = slot.id.value + found;
    }
    return [this, exit_code, problem] { finished(exit_code, problem); };
  });
}

// Empty if it is released.
std::string Hold::release(const GrantedSlot& slot, Instant patience) const {
  for (bool is_repeated = false;; is_repeated = true) {
    try {
      holder_.release(slot.id, grant_.token);
      return "";
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unavailable) {
        const std::string outcome = outcome_of(pools_, slot);
        if (outcome == "released") return "";  // the answer to a request before was lost
        return " had ended before it was released: " +
               (outcome.empty() ? error.message() : outcome);
      }
      if (BootClock::now() >= patience) return " was not released: " + error.message();
      if (is_repeated) std::this_thread::sleep_for(milliseconds(100));
    }
  }
}

void Hold::finished(int exit_code, const std::string& problem) {
  const Instant now = BootClock::now();
  HoldEnd end;
  end.exit_code = exit_code;
  if (job_) end.wait_status = job_->wait_status();
  end.stop_reason = stop_reason_;
  end.is_released = problem.empty();
  end.problem = problem;
  end.held = now - start_;
  end_ = end;
}

}  // namespace permit::cli
