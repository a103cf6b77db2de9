// permit watch: each hold is told once when it begins and once when it ends, in the order of time,
// as the server's event stream has it. After a break, what was missed comes from the ledger.
#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "apps/cli/duration_text.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/permit_commands.h"
#include "orchestrator/protocol/json.h"
#include "orchestrator/protocol/stream.h"

namespace permit::cli {

namespace {

using namespace std::chrono_literals;

// How long a server that has gone may stay away.
constexpr auto patience = 10s;
constexpr auto pause = 250ms;
// What closed this long before the last word from the server has been told.
constexpr auto look_back = 30s;

struct Change {
  Time at{};
  bool is_end = false;
  PermitInfo permit;
};

class Watch {
 public:
  Watch(Session& session, PoolName pool) : session_(session), pool_(std::move(pool)) {}

  void run() {
    if (!pool_.empty()) session_.pools().describe(pool_);  // that there is one
    auto stream = follow();
    for (;;) {
      try {
        tell(stream->next());
      } catch (const Error& error) {
        if (error.reason() != "ANSWER_LOST") throw;
        stream = follow_again();
      }
    }
  }

 private:
  std::unique_ptr<worker::EventReader> follow() {
    std::string target = "/api/v1/namespaces/" + session_.namespace_name() + "/events";
    if (!pool_.empty()) target += "?pool=" + pool_.value;
    return session_.transport().events(target, last_id_);
  }

  std::unique_ptr<worker::EventReader> follow_again() {
    const auto end = std::chrono::steady_clock::now() + patience;
    for (;;) {
      try {
        return follow();
      } catch (const Error& error) {
        const bool gone = error.code() == ErrorCode::unavailable;
        if (!gone || std::chrono::steady_clock::now() > end) throw;
      }
      std::this_thread::sleep_for(pause);
    }
  }

  void tell(const worker::EventReader::Event& event) {
    std::vector<Change> changes;
    if (event.name == "snapshot") {
      const Time now = read_json<StreamSnapshot>(event.data).now;
      const Time known = is_set(heard_at_) ? heard_at_ : now;
      changes = look(known - look_back);
      if (!is_set(heard_at_)) {  // how things were when we began is no change
        std::erase_if(changes, [&](const Change& change) { return change.at <= now; });
      }
      heard_at_ = now;
    } else if (event.name == "changes") {
      StreamChanges told = read_json<StreamChanges>(event.data);
      heard_at_ = told.now;
      for (PermitInfo& hold : told.holds) note(std::move(hold), changes);
    } else if (event.name == "ping") {
      heard_at_ = read_json<StreamPing>(event.data).now;
    }
    std::stable_sort(changes.begin(), changes.end(),
                     [](const Change& a, const Change& b) { return a.at < b.at; });
    for (const Change& change : changes) say(change);
    // Only now: if the ledger could not be asked, the message comes again.
    if (!event.id.empty()) last_id_ = event.id;
  }

  // What is new of this hold.
  void note(PermitInfo hold, std::vector<Change>& changes) {
    const bool is_open = hold.state == "held";
    const bool was_open = open_.contains(hold.fence);
    if (!was_open && hold.fence <= last_closed_known(hold)) return;
    if (!was_open) changes.push_back({hold.since, false, hold});
    if (is_open) {
      open_.insert(hold.fence);
      return;
    }
    open_.erase(hold.fence);
    closed_[hold.id] = std::max(closed_[hold.id], hold.fence);
    changes.push_back({hold.closed_at, true, std::move(hold)});
  }

  // Of one slot's holds each has a higher fence than the one before.
  Fence last_closed_known(const PermitInfo& hold) const {
    const auto closed = closed_.find(hold.id);
    return closed == closed_.end() ? Fence{} : closed->second;
  }

  // What the ledger has that was not told.
  std::vector<Change> look(Time since) {
    ListPermitsRequest request;
    request.pool = pool_;
    request.since = since;
    constexpr std::size_t holds_max = 100'000;
    std::vector<PermitInfo> holds = ledger(session_, std::move(request), {}, holds_max);
    std::vector<Change> changes;
    std::reverse(holds.begin(), holds.end());  // oldest first
    for (PermitInfo& hold : holds) note(std::move(hold), changes);
    return changes;
  }

  void say(const Change& change) const {
    const Output& out = session_.out();
    const PermitInfo& permit = change.permit;
    const std::string what = change.is_end ? word_of(permit.outcome) : "acquired";
    out.json(R"({"change":")" + what + "\"," + to_json(permit).substr(1));
    std::string more =
        change.is_end ? "held " + show_duration(permit.closed_at - permit.since) : "";
    if (!change.is_end && is_set(permit.requested_at)) {
      more = "waited " + show_duration(permit.since - permit.requested_at);
    }
    if (change.is_end && !permit.cause.empty()) more += ", " + permit.cause;
    out.text(out.clock(change.at) + "  " + padded(permit.id.value.substr(7), 16) + "  " +
             out.paint(padded(what, 14), change.is_end ? style_of(permit.outcome) : Style::blue) +
             "  " + padded(printable(permit.holder, 30), 20) + "  fence " +
             padded(std::to_string(permit.fence.value), 6) + "  " + more);
  }

  static std::string padded(std::string text, std::size_t width) {
    if (text.size() < width) text.resize(width, ' ');
    return text;
  }

  Session& session_;
  const PoolName pool_;
  std::string last_id_;
  Time heard_at_{};                     // by the server's clock; not set before the first word
  std::set<Fence> open_;                // told as acquired
  std::map<WorkflowId, Fence> closed_;  // the last of each slot that was told as ended
};

}  // namespace

int run_watch(Session& session) {
  if (session.out().format() == Format::json) {
    throw UsageError("watch has no end, so it is no one document; say -o jsonl");
  }
  Watch(session, PoolName(session.arguments().operand(0))).run();
  return exit_ok;
}

}  // namespace permit::cli
