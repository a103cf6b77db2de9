// The rules for names, durations and sizes, checked before anything is decided. Each throws Error
// (invalid_argument) with a stable reason and a sentence that says what would be right.
#pragma once

#include <string_view>

#include "orchestrator/core/limits.h"
#include "orchestrator/protocol/request.h"

namespace permit::core {

inline constexpr std::string_view permit_workflow_type = "PermitSlotWorkflow";

// permit:<pool>:<slot>, or nothing if the id is not a permit's.
struct PermitId {
  PoolName pool;
  SlotName slot;
};
bool has_permit_prefix(const WorkflowId& id);
std::optional<PermitId> parse_permit_id(const WorkflowId& id);
WorkflowId permit_id(const PoolName& pool, const SlotName& slot);
// The id of a request that still waits: no run can have it.
WorkflowId waiting_id(const PoolName& pool, std::int64_t initiated_event_id);
std::optional<std::int64_t> parse_waiting_id(const WorkflowId& id);

void check_namespace(std::string_view name);  // Error (not_found)
void check_workflow_id(const WorkflowId& id, const Limits& limits);
void check_pool_name(const PoolName& name);
void check_slot_name(const SlotName& name);
// Types, queues, signals, timers and other names that users choose: 1 to max bytes of UTF-8 without
// control characters. `what` names the field.
void check_name(std::string_view name, std::string_view what, const Limits& limits);
void check_optional_name(std::string_view name, std::string_view what, const Limits& limits);
void check_duration(Duration duration, std::string_view what);
void check_payloads(const std::optional<Payloads>& payloads, std::string_view what,
                    const Limits& limits);
std::size_t bytes_of(const std::optional<Payloads>& payloads);
std::size_t bytes_of(const PayloadMap& payloads);

// Fills in defaults and refuses what cannot be: lease, count, names, doubles, order.
void check_permit_request(PermitRequest& request, const Limits& limits);
void check_priority(const std::optional<Priority>& priority);

void check_start(StartWorkflowExecutionRequest& request, const Limits& limits);

}  // namespace permit::core
