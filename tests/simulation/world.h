// All that the actors of one seed share: dice, plan, server, what was promised and seen, the
// network between them, and the things that permits guard.
#pragma once

#include <functional>

#include "permits/fence_guard.h"
#include "tests/simulation/ledger.h"
#include "tests/simulation/line_check.h"
#include "tests/simulation/plan.h"
#include "tests/simulation/rpcs.h"
#include "tests/simulation/server.h"
#include "tests/simulation/sometimes.h"
#include "tests/simulation/wire.h"
#include "worker/client.h"

namespace permit::simulation {

// One resource a slot, such as a GPU: it asks the guard about the fence of each write. And beside
// it one that does not, where the writes of two holders mix.
class Resources {
 public:
  explicit Resources(Totals& totals) : totals_(totals) {}
  // By the holder of that permit, which may have ended long ago.
  void write(const RunTrace& permit, const Ledger& ledger);

 private:
  struct Seen {
    std::int64_t granted = 0;  // its place among all grants, as they were committed
    RunId by;
  };
  Totals& totals_;
  permits::FenceGuard guard_;
  std::map<WorkflowId, Seen> seen_;
};

struct World {
  World(std::uint64_t seed, const Plan& given_plan, Totals& given_totals)
      : chance(seed),
        plan(given_plan),
        totals(given_totals),
        promises(totals),
        ledger(promises, totals, plan.retention),
        lines(totals),
        resources(totals),
        wire(chance) {}

  Chance chance;
  const Plan plan;
  Totals& totals;
  std::optional<Server> server_;  // from the setup on; outlives those who read its store
  Promises promises;
  Ledger ledger;
  LineCheck lines;
  Resources resources;
  Wire wire;
  Time batch_time{};  // of the batch that runs, or ran last
  Time disk_freed{};
  bool draining = false;  // no faults any more, nothing new: all work must come to an end
  std::vector<std::function<void()>> under_way;  // requests that the network delivers later
  std::set<RunId> released_at_end;               // once each is enough
  std::string* notes = nullptr;                  // what is done goes there, if anybody asks
  std::function<void()> settle;                  // batches until all is done

  Server& server() { return *server_; }
  service::Service& service() { return server_->service(); }
  Time now() const { return server_->now(); }
  // The store is about to be closed.
  void let_go_of_store() {
    ledger.let_go();
    lines.let_go();
  }
  // What is asked now may be decided so late.
  Time latest() const {
    return now() + (plan.slow_disk > 0 ? std::chrono::seconds(60) : Duration(0));
  }
  bool fault(int percent) { return !draining && chance.percent(percent); }
  void say(const std::string& what);

  // Delivers a request: now, later, twice. It asks the service that lives then.
  void send(const std::function<void()>& request);
  bool reply_is_lost();

  // Asks the server, by a message or in bytes. `lost` is called if the connection broke; a server
  // that dies calls nothing. Returns what hang_up() takes.
  template <class Request, class Response>
  std::int64_t call(const Rpc<Request, Response>& rpc, std::type_identity_t<Request> request,
                    std::function<void(service::Result<Response>)> then,
                    std::function<void()> lost = {}, Wire::Way way = Wire::Way::shared) {
    if (plan.level == 1) return rpc.straight(service(), std::move(request), std::move(then));
    Wire::Caller caller;
    caller.answered = [then = std::move(then)](int status, const std::string& body) {
      if (status < 300) {
        then(read_json<Response>(body));
      } else {
        then(worker::error_of(status, body));
      }
    };
    caller.lost = std::move(lost);
    return wire.call(rpc.name, to_json(request), way, std::move(caller));
  }
  void hang_up(std::int64_t call);

  // The same, and keeps the promise's book.
  template <class Request, class Response>
  void ask(const Rpc<Request, Response>& rpc, std::type_identity_t<Request> request,
           const std::shared_ptr<Promise>& promise,
           std::function<void(service::Result<Response>)> then = {}) {
    promises.sent(*promise);
    call(rpc, std::move(request),
         std::function([this, promise, then](service::Result<Response> result) {
           if (const Error* error = std::get_if<Error>(&result)) {
             promises.refused(*promise, *error);
           } else {
             promises.acknowledged(*promise);
           }
           if (then) then(std::move(result));
         }),
         [this, promise] { promises.lost(*promise); });
  }
  // The same for requests that leave no trace.
  template <class Request, class Response>
  void ask(const Rpc<Request, Response>& rpc, std::type_identity_t<Request> request,
           std::function<void(service::Result<Response>)> then = {}) {
    promises.sent_other();
    ++totals.requests;
    call(rpc, std::move(request), std::function([this, then](service::Result<Response> result) {
           promises.answered_other();
           if (const Error* error = std::get_if<Error>(&result)) promises.check_error(*error);
           if (then) then(std::move(result));
         }),
         [this] { promises.answered_other(); });
  }
};

}  // namespace permit::simulation
