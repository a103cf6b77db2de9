// Structs that events, commands, tasks and requests share.
#pragma once

#include <boost/describe.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/protocol/enums.h"
#include "orchestrator/protocol/failure.h"
#include "orchestrator/protocol/ids.h"
#include "orchestrator/protocol/payload.h"

namespace permit {

// A field of Temporal's that we know and do not offer: anything but its zero value is answered
// with 501, naming the field.
struct Unsupported {};
// A field of Temporal's that is accepted and has no effect here (routing hints, version stamps).
struct Ignored {};

struct TaskQueue {
  std::string name;
  TaskQueueKind kind = TaskQueueKind::unspecified;
  std::string normal_name;
};
BOOST_DESCRIBE_STRUCT(TaskQueue, (), (name, kind, normal_name))

struct RetryPolicy {
  Duration initial_interval{};
  double backoff_coefficient = 0;
  Duration maximum_interval{};
  std::int32_t maximum_attempts = 0;
  std::vector<std::string> non_retryable_error_types;
};
BOOST_DESCRIBE_STRUCT(RetryPolicy, (),
                      (initial_interval, backoff_coefficient, maximum_interval, maximum_attempts,
                       non_retryable_error_types))

struct Priority {
  std::int32_t priority_key = 0;  // 1 first … 5 last; 0 means 3
  std::string fairness_key;
  double fairness_weight = 0;
};
BOOST_DESCRIBE_STRUCT(Priority, (), (priority_key, fairness_key, fairness_weight))

// --- Permits: our extension of Temporal's messages. Enumerators are lower case on the wire. ---

// How a caller waits: `any` for whichever comes first, behind the fair line; `fair` in the line,
// by priority, then by arrival.
enum class PermitOrder { unspecified = 0, any = 1, fair = 2 };
BOOST_DESCRIBE_ENUM(PermitOrder, unspecified, any, fair)

enum class PermitFailureKind {
  unspecified = 0,
  taken = 1,
  wait_timed_out = 2,
  canceled = 3,
  capacity_mismatch = 4,
  too_many = 5,
  self_deadlock = 6,
  drained = 7,
};
BOOST_DESCRIBE_ENUM(PermitFailureKind, unspecified, taken, wait_timed_out, canceled,
                    capacity_mismatch, too_many, self_deadlock, drained)

// How a hold ended. The words are the same on every surface and in the store.
enum class Outcome {
  unspecified = 0,
  released = 1,
  lease_expired = 2,
  holder_closed = 3,
  force_released = 4
};
BOOST_DESCRIBE_ENUM(Outcome, unspecified, released, lease_expired, holder_closed, force_released)

// How an enumerator is spelled on the wire: Temporal's with the type's name in front
// (TASK_QUEUE_KIND_STICKY), ours bare ("fair", "lease_expired"; "WAIT_TIMED_OUT").
enum class EnumStyle { temporal, lower, upper };
template <class E>
inline constexpr EnumStyle enum_style = EnumStyle::temporal;
template <>
inline constexpr EnumStyle enum_style<PermitOrder> = EnumStyle::lower;
template <>
inline constexpr EnumStyle enum_style<Outcome> = EnumStyle::lower;
template <>
inline constexpr EnumStyle enum_style<PermitFailureKind> = EnumStyle::upper;

// What a start of a permit asks for; rides on StartChildWorkflowExecution, on a client's start and
// on acquire. `slots` is the pool as the caller believes it and the order in which to try;
// `only` narrows the choice to some of them. Absent slots: as registered.
struct PermitRequest {
  PoolName pool;
  std::vector<SlotName> slots;
  std::vector<SlotName> only;
  std::int32_t count = 0;  // 0 means 1
  Duration lease{};        // 0 means 10 minutes
  Duration max_hold{};     // 0 means no limit
  PermitOrder order = PermitOrder::unspecified;
  bool wait = false;        // stand in line when none is free; always true for `fair`
  Duration wait_timeout{};  // 0 means for ever
  std::string reason;
  std::map<std::string, std::string> labels;
};
BOOST_DESCRIBE_STRUCT(PermitRequest, (),
                      (pool, slots, only, count, lease, max_hold, order, wait, wait_timeout, reason,
                       labels))

// Why a permit was refused, beside Temporal's own cause. On the wire: "TAKEN", "WAIT_TIMED_OUT".
struct PermitFailure {
  PermitFailureKind kind = PermitFailureKind::unspecified;
  std::string message;
};
BOOST_DESCRIBE_STRUCT(PermitFailure, (), (kind, message))

// One grant, as the holder and the history see it.
struct PermitGrant {
  PoolName pool;
  SlotName slot;
  Fence fence;
  Time deadline{};
  Time requested_at{};      // when it joined the line; absent: granted at once
  std::int64_t ticket = 0;  // of a holder that is not a workflow: what its token is made of
};
BOOST_DESCRIBE_STRUCT(PermitGrant, (), (pool, slot, fence, deadline, requested_at, ticket))

}  // namespace permit
