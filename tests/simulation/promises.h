// What the server has promised: every request that must leave exactly one trace in history carries
// a mark, and the answers say how often the mark may be there. Acknowledged: it is. Refused: it is
// not. Without an answer: once or not at all.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/ids.h"
#include "tests/simulation/chance.h"
#include "tests/simulation/totals.h"

namespace permit::simulation {

// What sort of event carries the mark.
enum class Trace { started, signaled, terminated, cancel_requested, task_completed, activity_end };

struct Promise {
  std::string mark;
  Trace trace = Trace::started;
  bool once = false;   // one effect at most, however often it is sent
  bool alike = false;  // a repeated request may be answered as the one before
  bool leaves = true;  // an acknowledged request must have left its trace
  RunId named;         // the run it was aimed at; empty: whichever was current
  int open = 0;        // sent, no answer yet
  int acknowledged = 0;
  int refused = 0;
  int unknown = 0;   // sent, and the server died
  int seen = 0;      // in histories
  int buffered = 0;  // waiting to be written behind a task that a worker has
};

class Promises {
 public:
  explicit Promises(Totals& totals) : totals_(totals) {}

  // A promise with a fresh mark.
  std::shared_ptr<Promise> make(Trace trace);
  void sent(Promise& promise);
  void acknowledged(Promise& promise);
  void refused(Promise& promise, const Error& error);
  // Other requests, which leave no trace, count as open too.
  void sent_other() { ++open_; }
  void answered_other() { --open_; }
  void check_error(const Error& error);
  // The connection broke: nobody knows.
  void lost(Promise& promise);
  bool knows(const std::string& mark) const { return promises_.contains(mark); }

  // The server died: what is open has an unknown outcome.
  void died();
  int open() const { return open_; }

  void acknowledged_run(const RunId& run) { runs_.insert(run); }
  const std::set<RunId>& acknowledged_runs() const { return runs_; }

  void saw(Trace trace, const std::string& mark, const RunId& run);
  // Calls check on those who count what is buffered.
  void begin_buffered();
  void saw_buffered(Trace trace, const std::string& mark);
  void check() const;

 private:
  Totals& totals_;
  int open_ = 0;
  int last_ = 0;
  std::map<std::string, std::shared_ptr<Promise>> promises_;
  std::set<RunId> runs_;
};

}  // namespace permit::simulation
