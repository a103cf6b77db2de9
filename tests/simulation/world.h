// All that the actors of one seed share: dice, plan, server, what was promised and seen, the
// network between them, and the things that permits guard.
#pragma once

#include <functional>

#include "tests/simulation/ledger.h"
#include "tests/simulation/line_check.h"
#include "tests/simulation/plan.h"
#include "tests/simulation/server.h"

namespace permit::simulation {

// One resource a slot: it remembers the highest fence and refuses lower ones.
class Resources {
 public:
  explicit Resources(Totals& totals) : totals_(totals) {}
  void write(const WorkflowId& slot, Fence fence, const RunId& by);

 private:
  struct Seen {
    Fence fence;
    RunId by;
  };
  Totals& totals_;
  std::map<WorkflowId, Seen> seen_;
};

struct World {
  World(std::uint64_t seed, const Plan& given_plan, Totals& given_totals)
      : chance(seed),
        plan(given_plan),
        totals(given_totals),
        promises(totals),
        ledger(promises, totals),
        lines(totals),
        resources(totals),
        server(plan.on_disk, chance) {}

  Chance chance;
  const Plan plan;
  Totals& totals;
  Promises promises;
  Ledger ledger;
  LineCheck lines;
  Resources resources;
  Server server;
  bool draining = false;  // no faults any more, nothing new: all work must come to an end
  std::vector<std::function<void()>> under_way;  // requests that the network delivers later
  std::set<RunId> released_at_end;               // once each is enough

  service::Service& service() { return server.service(); }
  Time now() { return server.clock().now(); }
  bool fault(int percent) { return !draining && chance.percent(percent); }

  // Delivers a request: now, later, twice. It asks the service that lives then.
  void send(const std::function<void()>& request);
  bool reply_is_lost();

  // An answer's callback that keeps the promise's book and hands on an answer that is not lost.
  template <class T>
  service::Done<T> expect(const std::shared_ptr<Promise>& promise,
                          std::function<void(service::Result<T>)> then = {}) {
    promises.sent(*promise);
    return [this, promise, then](service::Result<T> result) {
      if (const Error* error = std::get_if<Error>(&result)) {
        promises.refused(*promise, *error);
      } else {
        promises.acknowledged(*promise);
      }
      if (then) then(std::move(result));
    };
  }
  // The same for requests that leave no trace.
  template <class T>
  service::Done<T> expect(std::function<void(service::Result<T>)> then = {}) {
    promises.sent_other();
    ++totals.requests;
    return [this, then](service::Result<T> result) {
      promises.answered_other();
      if (const Error* error = std::get_if<Error>(&result)) promises.check_error(*error);
      if (then) then(std::move(result));
    };
  }
};

}  // namespace permit::simulation
