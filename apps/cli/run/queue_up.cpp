#include "apps/cli/run/queue_up.h"

#include <algorithm>

#include "apps/cli/duration_text.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/run/run_text.h"

namespace permit::cli {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// So long nothing is said, and so long the first answer takes if there is no free slot.
constexpr milliseconds patience_at_first{400};
constexpr seconds poll_wait{60};
constexpr worker::Patience prompt{milliseconds(2'000), milliseconds(3'000)};

Duration pause_after(int failures) {
  return std::min<Duration>(milliseconds(100) * failures, seconds(1));
}

}  // namespace

AcquireRequest acquire_request(const RunOptions& options) {
  AcquireRequest request;
  request.pool = options.pool;
  request.request_id = worker::new_request_id();
  if (!options.only.empty()) request.only = {options.only};
  request.count = options.slots;
  request.lease = options.lease;
  request.max_hold = options.max_hold;
  // So that the lease, renewed or not, never ends where the time limit does.
  if (options.max_hold.count() > 0) {
    request.lease = std::min<Duration>(options.lease, options.max_hold / 2);
  }
  request.order = options.any ? PermitOrder::any : PermitOrder::fair;
  request.priority = options.priority;
  if (options.wait) request.wait_timeout = *options.wait;
  request.reason = options.reason;
  request.labels = options.labels;
  return request;
}

namespace {

// As the other commands have it.
std::string unreachable(const Error& error, const RunOptions& options) {
  if (error.reason() != "SERVER_UNREACHABLE") return error.message();
  const std::string& origin = options.address_origin;
  return error.message() + "; the address is " +
         (origin.empty() || origin == "default" ? "the default" : "from " + origin) +
         ". Is it running? Try: permit server start-dev, or permit doctor";
}

}  // namespace

Refusal refusal_of(const Error& error, const RunOptions& options) {
  if (error.reason() == "TLS_FILE_INVALID") return {exit_usage, error.message()};
  switch (error.code()) {
    case ErrorCode::unavailable:
      return {exit_unreachable, unreachable(error, options)};
    case ErrorCode::not_found:
      return {exit_not_found, error.message()};
    case ErrorCode::unauthenticated:
    case ErrorCode::permission_denied:
      return {exit_not_allowed, error.message()};
    case ErrorCode::invalid_argument:
      return {exit_usage, error.message()};
    default:
      break;
  }
  if (error.reason() == "CANNOT_FIT") return {exit_usage, error.message()};
  if (error.reason() == "REMOVED_FROM_LINE") return {options.conflict_exit_code, error.message()};
  return {exit_broken, error.message()};
}

QueueUp::QueueUp(EventLoop& loop, Voice& voice, const RunOptions& options,
                 const AcquireRequest& request)
    : voice_(voice),
      options_(options),
      request_(request),
      patient_(options.address, worker::Patience(), options.tls),
      prompt_(options.address, prompt, options.tls),
      holder_(patient_, options.namespace_name),
      pools_(prompt_, "permit-run", options.namespace_name),
      asker_(loop),
      watcher_(loop) {
  patient_.set_api_key(options.api_key);
  prompt_.set_api_key(options.api_key);
}

void QueueUp::begin() {
  begun_ = BootClock::now();
  constexpr seconds answer_in{5};  // after the server should have said no
  if (options_.nonblock) give_up_at_ = begun_ + answer_in;
  if (options_.wait) give_up_at_ = begun_ + *options_.wait + answer_in;
  ask(first_wait());
}

Duration QueueUp::first_wait() const {
  const bool is_patient = !options_.nonblock && options_.wait != Duration(0);
  return is_patient ? Duration(patience_at_first) : Duration(0);
}

void QueueUp::ask(Duration wait) {
  ask_at_ = Instant::max();
  if (is_stopped_) return;
  is_asking_ = true;
  asker_.send([this, wait]() -> std::function<void()> {
    AcquireRequest request = request_;
    request.wait = wait;
    const Instant asked = BootClock::now();
    try {
      AcquireResponse response = holder_.acquire(std::move(request));
      return [this, asked, response = std::move(response)]() mutable {
        answered(std::move(response), asked);
      };
    } catch (const Error& error) {
      return [this, error] { not_granted(error); };
    }
  });
}

void QueueUp::answered(AcquireResponse response, Instant asked) {
  is_asking_ = false;
  failures_ = 0;
  if (!response.ticket) {
    look_at_ = Instant::max();
    grant_ = Grant{std::move(response), asked};
    return;
  }
  ticket_ = response.ticket->id;
  if (watch_at_ == Instant::max() && !is_watching_) watch_at_ = BootClock::now();
  look(BootClock::now());
  ask(poll_wait);
}

void QueueUp::not_granted(const Error& error) {
  is_asking_ = false;
  if (error.code() == ErrorCode::unavailable) {
    ask_again_later(error);
  } else if (error.reason() == "POOL_FULL") {
    describe_refusal(" is full", "");
  } else if (error.reason() == "WAIT_TIMED_OUT") {
    describe_refusal("", " within " + type_duration(*options_.wait));
  } else {
    refusal_ = refusal_of(error, options_);
  }
}

// A server that has given us a place in line will be back. One that may have is given the time for
// which it would keep the place; one that was never there gets no time.
void QueueUp::ask_again_later(const Error& error) {
  constexpr seconds place_kept{15};
  const Instant now = BootClock::now();
  ++failures_;
  if (error.reason() == "ANSWER_LOST") may_be_in_line_ = true;
  const bool is_hopeless = !ticket_ && (!may_be_in_line_ || now >= begun_ + place_kept);
  const bool is_late = options_.wait && now >= begun_ + *options_.wait + seconds(1);
  if (is_late || is_hopeless) {
    refusal_ = refusal_of(error, options_);
    return;
  }
  if (ticket_ && failures_ == 2) {
    voice_.progress("waiting for " + options_.pool.value +
                        ": the server does not answer; the place in line is kept until it does",
                    "unanswered", now);
  }
  ask_at_ = now + pause_after(failures_ - 1);
  look(now);
}

void QueueUp::describe_refusal(const std::string& state, const std::string& limit) {
  watcher_.send([this, state, limit]() -> std::function<void()> {
    std::string fill;
    try {
      fill = " (" + fill_of(pools_.describe(options_.pool)) + ")";
    } catch (const Error&) {
      // The answer stands without it.
    }
    const std::string& name = options_.pool.value;
    const std::string beginning =
        state.empty() ? "no slot of " + name + " came free" + limit : name + state;
    return [this, text = beginning + fill + ". See: permit who " + name] {
      refusal_ = Refusal{options_.conflict_exit_code, text};
    };
  });
}

void QueueUp::look(Instant now) {
  if (now >= give_up_at_) {
    give_up_at_ = Instant::max();
    look_at_ = now;
    refusal_ = Refusal{exit_unreachable, "the server at " + options_.address +
                                             " does not answer. Try: permit doctor"};
    return;
  }
  if (now >= ask_at_) ask(ticket_ ? Duration(poll_wait) : first_wait());
  if (now >= watch_at_ && ticket_ && !is_watching_) {
    is_watching_ = true;
    watch_at_ = Instant::max();
    watcher_.send([this, ticket = *ticket_]() -> std::function<void()> {
      try {
        const WhyResponse why = pools_.why(ticket);
        const PoolInfo pool = pools_.describe(options_.pool);
        return [this, why, pool] { show(why, pool); };
      } catch (const Error&) {
        return [this] { show({}, {}); };  // not in line any more, or no answer
      }
    });
  }
  look_at_ = std::min(ask_at_, watch_at_);
}

void QueueUp::show(const WhyResponse& why, const PoolInfo& pool) {
  is_watching_ = false;
  if (grant_ || refusal_) return;
  const Instant now = BootClock::now();
  if (why.waiter.id.value != 0) {
    std::string key = why.reason + " " + std::to_string(why.waiter.position);
    for (const PermitInfo& hold : why.blocked_by) key += " " + hold.run_id.value;
    voice_.progress(waiting_line(why, pool), key, now);
  }
  const bool is_new = now < begun_ + seconds(10);
  watch_at_ = now + (is_new ? seconds(1) : voice_.is_terminal() ? seconds(2) : seconds(10));
  look_at_ = std::min(ask_at_, watch_at_);
}

}  // namespace permit::cli
