// Permit's own API: pools, their lines, and holders that are not workflows. Integers are JSON
// numbers here, durations "90s", times RFC 3339, names lowerCamelCase.
#pragma once

#include <boost/describe.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/protocol/common.h"
#include "orchestrator/protocol/request.h"

namespace permit {

// A pool may not grant faster than this: `burst` tokens at most, refilled at `per_second`.
struct PoolRate {
  double per_second = 0;
  double burst = 0;
};
BOOST_DESCRIBE_STRUCT(PoolRate, (), (per_second, burst))

// PUT pools/{pool}. Capacity n is slots "0" to "n-1"; give that or names, not both.
struct SetPoolRequest {
  std::string namespace_;
  PoolName pool;
  std::optional<std::int32_t> capacity;
  std::optional<std::vector<SlotName>> slots;
  PermitOrder order = PermitOrder::unspecified;  // overrides the callers'; absent: theirs
  std::optional<PoolRate> rate;
  // What each slot stands for, such as the id of a GPU. Given, it replaces what was known.
  std::optional<std::map<std::string, std::string>> devices;
  std::string identity;  // who sets it, and why: both go on record, see PoolChange
  std::string reason;
};
BOOST_DESCRIBE_STRUCT(SetPoolRequest, (),
                      (namespace_, pool, capacity, slots, order, rate, devices, identity, reason))

struct PoolRequest {
  std::string namespace_;
  PoolName pool;
};
BOOST_DESCRIBE_STRUCT(PoolRequest, (), (namespace_, pool))

struct ListPoolsRequest {
  std::string namespace_;
};
BOOST_DESCRIBE_STRUCT(ListPoolsRequest, (), (namespace_))

struct DrainRequest {
  std::string namespace_;
  PoolName pool;
  SlotName slot;  // absent: the whole pool
  std::string identity{};
  std::string reason{};
};
BOOST_DESCRIBE_STRUCT(DrainRequest, (), (namespace_, pool, slot, identity, reason))

// What an operator did to a pool. A pool remembers the last 50.
struct PoolChange {
  Time at{};
  std::string what;  // a sentence: "drained slot 2"
  std::string by;
  std::string reason;
};
BOOST_DESCRIBE_STRUCT(PoolChange, (), (at, what, by, reason))

// Whether a hold that ended like this may overlap the next one in real time: its holder had not
// given the slot back, and may have worked on. The activities of a workflow that was terminated or
// ran out of time learn of it with their next heartbeat.
inline bool may_overlap(Outcome outcome, std::string_view cause) {
  if (outcome == Outcome::holder_closed) return cause == "terminated" || cause == "timed_out";
  return outcome == Outcome::lease_expired || outcome == Outcome::force_released;
}

// The work that a workflow does under its permit: the activity whose heartbeats renew it.
struct HolderActivity {
  std::string activity_id;
  std::string activity_type;
  std::int32_t attempt = 0;
  std::string worker;  // who has it; absent: nobody at the moment
  Time last_heartbeat{};
  std::optional<Payloads> heartbeat_details;
};
BOOST_DESCRIBE_STRUCT(HolderActivity, (),
                      (activity_id, activity_type, attempt, worker, last_heartbeat,
                       heartbeat_details))

// One hold, as lists show it. What comes after late_release_at is known while the run is kept, and
// not part of lists of the ledger.
struct PermitInfo {
  WorkflowId id;
  RunId run_id;
  PoolName pool;
  SlotName slot;
  Fence fence;
  std::string state;  // held or closed
  std::string holder;
  RunId holder_run_id;
  std::string reason;
  Time since{};
  Time deadline{};
  Time closed_at{};
  Outcome outcome = Outcome::unspecified;
  std::string cause;
  bool possible_overlap = false;  // see may_overlap()
  Duration age{};                 // these two of what blocks a waiter, when it was asked
  Duration lease_left{};
  Time requested_at{};     // when it joined the line; absent: granted at once
  Time late_release_at{};  // when its holder gave back what it had lost before
  Duration lease{};
  Duration max_hold{};
  Time renewed_at{};
  std::map<std::string, std::string> labels;
  std::vector<HolderActivity> activities;
};
BOOST_DESCRIBE_STRUCT(PermitInfo, (),
                      (id, run_id, pool, slot, fence, state, holder, holder_run_id, reason, since,
                       deadline, closed_at, outcome, cause, possible_overlap, age, lease_left,
                       requested_at, late_release_at, lease, max_hold, renewed_at, labels,
                       activities))

// How many holds ended so, ever. The ledger forgets old holds but not these.
struct OutcomeCount {
  Outcome outcome = Outcome::unspecified;
  std::string cause;
  Count holds;
};
BOOST_DESCRIBE_STRUCT(OutcomeCount, (), (outcome, cause, holds))

struct SlotInfo {
  SlotName slot;
  bool drained = false;
  bool leaving = false;  // no longer registered; its holder finishes
  std::string device;    // what it stands for, if that was told
  std::optional<PermitInfo> permit;
  Time free_since{};  // absent: held, or free for longer than anybody remembers
};
BOOST_DESCRIBE_STRUCT(SlotInfo, (), (slot, drained, leaving, device, permit, free_since))

// Callers that believe the pool to be something else than an operator has set.
struct BeliefAlert {
  std::int32_t slots = 0;
  std::string by;
  Time at{};
};
BOOST_DESCRIBE_STRUCT(BeliefAlert, (), (slots, by, at))

struct PoolInfo {
  PoolName pool;
  std::int32_t capacity = 0;
  std::int32_t held = 0;
  std::int32_t waiting = 0;
  bool configured = false;  // set by an operator, not learned from callers
  bool drained = false;
  PermitOrder order = PermitOrder::unspecified;
  std::optional<PoolRate> rate;
  std::optional<BeliefAlert> alert;
  std::vector<SlotInfo> slots;
  Count grants;  // ever: the sum of the outcomes, and what is held
  std::vector<OutcomeCount> outcomes;
  std::vector<PoolChange> changes;  // by operators, newest first
  Time oldest_wait{};               // since when the first who waits has waited; absent: nobody
  // How holds ended in the last 24 hours. After a restart from the ledger's last 20,000 holds.
  std::vector<OutcomeCount> last_day;
  // In the event stream: `slots` has only those that changed, and `changes` are as they were.
  bool partial = false;
};
BOOST_DESCRIBE_STRUCT(PoolInfo, (),
                      (pool, capacity, held, waiting, configured, drained, order, rate, alert,
                       slots, grants, outcomes, changes, oldest_wait, last_day, partial))

struct ListPoolsResponse {
  std::vector<PoolInfo> pools;
};
BOOST_DESCRIBE_STRUCT(ListPoolsResponse, (), (pools))

// Who wants a slot and has none. One who is backing off was refused, and asks again when its timer
// fires or a slot is free; it has no place in line yet.
struct WaiterInfo {
  Fence id;  // a plain number on the wire
  PoolName pool;
  std::string state;          // in_line or backing_off
  std::int32_t position = 0;  // 1 is next; backing off: 0
  PermitOrder order = PermitOrder::unspecified;
  std::int32_t priority = 0;
  std::int32_t count = 0;
  std::string holder;  // who asks: a workflow id, or the name given
  RunId holder_run_id;
  std::string reason;
  Time since{};
  Time expires{};           // leaves the line; backing off: asks again
  std::int32_t probes = 0;  // how often its run has asked before and found no slot
};
BOOST_DESCRIBE_STRUCT(WaiterInfo, (),
                      (id, pool, state, position, order, priority, count, holder, holder_run_id,
                       reason, since, expires, probes))

struct ListWaitersResponse {
  std::vector<WaiterInfo> waiters;
};
BOOST_DESCRIBE_STRUCT(ListWaitersResponse, (), (waiters))

// GET waiters/{id}/why: what stands between this waiter and its slots.
struct WhyResponse {
  WaiterInfo waiter;
  std::string reason;  // slots_held, pool_drained, slots_drained, no_slots, rate_limited, behind
  std::string message;
  std::vector<PermitInfo> blocked_by;  // the holds on slots it could use
  Time latest_free{};                  // by then a slot it could use is free, if nobody renews
};
BOOST_DESCRIBE_STRUCT(WhyResponse, (), (waiter, reason, message, blocked_by, latest_free))

// POST pools/{pool}/acquire, for holders that are not workflows. Repeat it with the same request id
// until it is granted: the place in line is kept as long as somebody asks every 15 s.
struct AcquireRequest {
  std::string namespace_;
  PoolName pool;
  std::string request_id;
  std::string holder;
  std::vector<SlotName> slots;
  std::vector<SlotName> only;
  std::int32_t count = 0;
  Duration lease{};
  Duration max_hold{};
  PermitOrder order = PermitOrder::unspecified;  // absent: fair
  std::int32_t priority = 0;
  std::optional<Duration> wait;  // for this call; absent: 60 s; 0: answer at once, do not wait
  Duration wait_timeout{};
  std::string reason;
  std::map<std::string, std::string> labels;
};
BOOST_DESCRIBE_STRUCT(AcquireRequest, (),
                      (namespace_, pool, request_id, holder, slots, only, count, lease, max_hold,
                       order, priority, wait, wait_timeout, reason, labels))

struct GrantedSlot {
  WorkflowId id;
  SlotName slot;
  RunId run_id;
  Fence fence;
  Time deadline{};
  std::string device;  // what the slot stands for, if that was told
};
BOOST_DESCRIBE_STRUCT(GrantedSlot, (), (id, slot, run_id, fence, deadline, device))

struct AcquireResponse {
  PoolName pool;
  std::string state;  // granted or waiting
  std::vector<GrantedSlot> slots;
  Fence fence;      // the highest of them
  Time deadline{};  // the earliest of them
  std::string token;
  std::optional<WaiterInfo> ticket;
};
BOOST_DESCRIBE_STRUCT(AcquireResponse, (), (pool, state, slots, fence, deadline, token, ticket))

struct HolderRequest {  // renew and release
  std::string namespace_;
  WorkflowId id;
  std::string token;
  Duration lease{};  // renew: instead of the one acquired with
};
BOOST_DESCRIBE_STRUCT(HolderRequest, (), (namespace_, id, token, lease))

struct RenewResponse {
  Time deadline{};
};
BOOST_DESCRIBE_STRUCT(RenewResponse, (), (deadline))

struct ForceReleaseRequest {
  std::string namespace_;
  WorkflowId id;
  RunId run_id;
  Fence fence;
  std::string reason;
  std::string identity;
};
BOOST_DESCRIBE_STRUCT(ForceReleaseRequest, (), (namespace_, id, run_id, fence, reason, identity))

// GET permits?pool=&state=&outcome=&since=: the ledger, newest first.
struct ListPermitsRequest {
  std::string namespace_;
  PoolName pool;
  SlotName slot;
  std::string state;  // held, closed; absent: both
  Outcome outcome = Outcome::unspecified;
  Time since{};
  std::int32_t page_size = 0;
  Bytes next_page_token;
};
BOOST_DESCRIBE_STRUCT(ListPermitsRequest, (),
                      (namespace_, pool, slot, state, outcome, since, page_size, next_page_token))

struct ListPermitsResponse {
  std::vector<PermitInfo> permits;
  Bytes next_page_token;
};
BOOST_DESCRIBE_STRUCT(ListPermitsResponse, (), (permits, next_page_token))

struct PermitQuery {
  std::string namespace_;
  WorkflowId id;
  RunId run_id;  // absent: the current or last one
};
BOOST_DESCRIBE_STRUCT(PermitQuery, (), (namespace_, id, run_id))

struct WaiterRequest {
  std::string namespace_;
  Fence id;
};
BOOST_DESCRIBE_STRUCT(WaiterRequest, (), (namespace_, id))

struct RemoveWaiterRequest {
  std::string namespace_;
  Fence id;
  std::string identity{};
  std::string reason{};
};
BOOST_DESCRIBE_STRUCT(RemoveWaiterRequest, (), (namespace_, id, identity, reason))

// --- The server, as `permit doctor` and the page look at it ---

struct TaskQueueInfo {
  std::string name;
  std::string kind;  // workflow or activity
  std::int32_t backlog = 0;
  std::vector<PollerInfo> pollers;  // of the last five minutes
  Time oldest_task{};               // since when the first task waits; absent: none does
  double added_per_second = 0;      // tasks, over the last minute
  double dispatched_per_second = 0;
};
BOOST_DESCRIBE_STRUCT(TaskQueueInfo, (),
                      (name, kind, backlog, pollers, oldest_task, added_per_second,
                       dispatched_per_second))

struct ListTaskQueuesRequest {
  std::string namespace_;
};
BOOST_DESCRIBE_STRUCT(ListTaskQueuesRequest, (), (namespace_))

struct ListTaskQueuesResponse {
  std::vector<TaskQueueInfo> queues;
};
BOOST_DESCRIBE_STRUCT(ListTaskQueuesResponse, (), (queues))

struct GetServerStatusRequest {
  std::string namespace_;
};
BOOST_DESCRIBE_STRUCT(GetServerStatusRequest, (), (namespace_))

struct ServerStatus {
  std::string version;
  Time now{};
  std::string store;  // the database's file, or "memory"
  bool ready = false;
  std::vector<std::string> warnings;
  std::int32_t held = 0;
  std::int32_t waiting = 0;
  std::int32_t fence_epoch = 0;  // fences are above it << 40; --fence-epoch
  Count commit;                  // the last one
};
BOOST_DESCRIBE_STRUCT(ServerStatus, (),
                      (version, now, store, ready, warnings, held, waiting, fence_epoch, commit))

// POST /api/v1/test/advance, with --virtual-time only.
struct AdvanceRequest {
  double seconds = 0;
};
BOOST_DESCRIBE_STRUCT(AdvanceRequest, (), (seconds))
struct AdvanceResponse {
  Time now{};
};
BOOST_DESCRIBE_STRUCT(AdvanceResponse, (), (now))

}  // namespace permit
