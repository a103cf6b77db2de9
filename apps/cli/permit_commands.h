// The daily questions: who holds what, who waits and why, how holds ended; and ending one by hand.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/session.h"
#include "orchestrator/protocol/pools.h"

namespace permit::cli {

int run_list(Session& session);
int run_who(Session& session);
int run_watch(Session& session);
int run_describe(Session& session);
int run_history(Session& session);
int run_release(Session& session);
int run_hold(Session& session);
int run_report(Session& session);

// --- What they share ---

// "permit:gpu:2", also of "gpu:2". Throws UsageError.
WorkflowId permit_named(const std::string& text);
// The pool of this name, or all of them.
std::vector<PoolInfo> pools_named(Session& session, const std::string& name);
// Every hold the request asks for, page by page, up to `limit`, newest first. `outcomes`: only
// these; none: all.
std::vector<PermitInfo> ledger(Session& session, ListPermitsRequest request,
                               const std::vector<Outcome>& outcomes, std::size_t limit);
// "released,lease_expired". Throws UsageError with the nearest word.
std::vector<Outcome> outcomes_named(const std::string& text);
// Where the work is done: the worker of the activity, or "4121@gpu-host".
std::string worker_of(const PermitInfo& permit);
// What is left of the lease; "36s !" if it is nearly over.
std::string lease_left(const PermitInfo& permit, Time now);
// "2m 31s ago", and the progress it carried.
std::string heartbeat_of(const PermitInfo& permit, Time now);
// The last 8 characters of a run's id: the first ones are the time.
std::string short_run(const RunId& run);

}  // namespace permit::cli
