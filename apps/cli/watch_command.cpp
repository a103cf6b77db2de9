// permit watch: the ledger, asked again and again; each hold is told once when it begins and once
// when it ends, in the order of time.
#include <algorithm>
#include <map>
#include <thread>

#include "apps/cli/duration_text.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/permit_commands.h"
#include "orchestrator/protocol/json.h"

namespace permit::cli {

namespace {

using namespace std::chrono_literals;

constexpr auto pause = 250ms;
// What closed this long ago has been seen: far more than two rounds and a slow answer take.
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
    look();                                                // how things are: no change
    for (;;) {
      std::this_thread::sleep_for(pause);
      std::vector<Change> changes = look();
      std::stable_sort(changes.begin(), changes.end(),
                       [](const Change& a, const Change& b) { return a.at < b.at; });
      for (const Change& change : changes) say(change);
    }
  }

 private:
  std::vector<Change> look() {
    ListPermitsRequest request;
    request.pool = pool_;
    request.since = session_.now() - look_back;
    constexpr std::size_t holds_max = 100'000;
    std::map<Fence, PermitInfo> seen;
    std::vector<Change> changes;
    for (PermitInfo& hold : ledger(session_, std::move(request), {}, holds_max)) {
      const auto known = seen_.find(hold.fence);
      if (known == seen_.end()) changes.push_back({hold.since, false, hold});
      const bool was_open = known == seen_.end() || known->second.state == "held";
      if (was_open && hold.state == "closed") changes.push_back({hold.closed_at, true, hold});
      seen[hold.fence] = std::move(hold);
    }
    seen_ = std::move(seen);
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
  std::map<Fence, PermitInfo> seen_;
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
