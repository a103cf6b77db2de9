#include "orchestrator/core/validate.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "orchestrator/protocol/error.h"

namespace permit::core {

namespace {

constexpr std::string_view permit_prefix = "permit:";

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool all_of_set(std::string_view text, std::string_view others) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return is_alphanumeric(c) || others.find(c) != std::string_view::npos;
  });
}

// What may be repeated in a sentence: short and printable.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text.substr(0, 64)) out += (c >= 0x20 && c < 0x7f) ? c : '?';
  if (text.size() > 64) out += "…";
  return out + "\"";
}

bool is_pool_or_slot(std::string_view text) {
  return !text.empty() && text.size() <= 64 && all_of_set(text, "._-");
}

}  // namespace

bool has_permit_prefix(const WorkflowId& id) { return id.value.starts_with(permit_prefix); }

std::optional<PermitId> parse_permit_id(const WorkflowId& id) {
  if (!has_permit_prefix(id)) return std::nullopt;
  const std::string_view rest = std::string_view(id.value).substr(permit_prefix.size());
  const auto colon = rest.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view pool = rest.substr(0, colon);
  const std::string_view slot = rest.substr(colon + 1);
  if (!is_pool_or_slot(pool) || !is_pool_or_slot(slot)) return std::nullopt;
  return PermitId{PoolName(pool), SlotName(slot)};
}

WorkflowId permit_id(const PoolName& pool, const SlotName& slot) {
  return WorkflowId("permit:" + pool.value + ":" + slot.value);
}

WorkflowId waiting_id(const PoolName& pool, std::int64_t initiated_event_id) {
  return WorkflowId("permit:" + pool.value + ":?" + std::to_string(initiated_event_id));
}

std::optional<std::int64_t> parse_waiting_id(const WorkflowId& id) {
  if (!has_permit_prefix(id)) return std::nullopt;
  const auto mark = id.value.rfind(":?");
  if (mark == std::string::npos) return std::nullopt;
  std::int64_t number = 0;
  const char* begin = id.value.data() + mark + 2;
  const char* end = id.value.data() + id.value.size();
  const auto [stop, error] = std::from_chars(begin, end, number);
  if (error != std::errc() || stop != end || number <= 0) return std::nullopt;
  return number;
}

void check_namespace(std::string_view name) {
  if (name == "default") return;
  throw not_found("NAMESPACE_NOT_FOUND", "there is no such namespace; only \"default\" exists");
}

void check_workflow_id(const WorkflowId& id, const Limits& limits) {
  if (id.empty()) throw invalid_argument("WORKFLOW_ID_INVALID", "the workflow id is empty");
  if (id.value.size() > limits.workflow_id_bytes_max || !all_of_set(id.value, "._:/@+-")) {
    throw invalid_argument("WORKFLOW_ID_INVALID", "workflow id " + quoted(id.value) +
                                                      " is not 1 to " +
                                                      std::to_string(limits.workflow_id_bytes_max) +
                                                      " characters of A-Z a-z 0-9 . _ : / @ + -");
  }
  if (has_permit_prefix(id) && !parse_permit_id(id)) {
    throw invalid_argument("PERMIT_ID_INVALID",
                           "workflow id " + quoted(id.value) +
                               " is not permit:<pool>:<slot> with names of 1 to 64 characters of "
                               "A-Z a-z 0-9 . _ -");
  }
}

// "." and ".." are steps in a path.
void check_pool_name(const PoolName& name) {
  const bool is_step = name.value == "." || name.value == "..";
  if (is_pool_or_slot(name.value) && !is_step) return;
  throw invalid_argument(
      "POOL_NAME_INVALID",
      "pool name " + quoted(name.value) +
          (is_step ? " is none" : " is not 1 to 64 characters of A-Z a-z 0-9 . _ -"));
}

void check_slot_name(const SlotName& name) {
  if (is_pool_or_slot(name.value)) return;
  throw invalid_argument(
      "SLOT_NAME_INVALID",
      "slot name " + quoted(name.value) + " is not 1 to 64 characters of A-Z a-z 0-9 . _ -");
}

void check_optional_name(std::string_view name, std::string_view what, const Limits& limits) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(name[i]); };
  bool clean = true;
  for (std::size_t i = 0; clean && i < name.size(); ++i) {
    const bool c1 = byte(i) == 0xC2 && i + 1 < name.size() && byte(i + 1) < 0xA0;  // U+0080 to 9F
    clean = byte(i) >= 0x20 && byte(i) != 0x7F && !c1;
  }
  if (clean && name.size() <= limits.name_bytes_max) return;
  throw invalid_argument("NAME_INVALID", std::string(what) + " " + quoted(name) +
                                             " is longer than " +
                                             std::to_string(limits.name_bytes_max) +
                                             " bytes or has control characters");
}

void check_name(std::string_view name, std::string_view what, const Limits& limits) {
  if (name.empty()) {
    throw invalid_argument("NAME_INVALID", std::string(what) + " is missing; it must be given");
  }
  check_optional_name(name, what, limits);
}

void check_duration(Duration duration, std::string_view what) {
  constexpr Duration century = std::chrono::hours(24 * 365 * 100);
  if (duration.count() >= 0 && duration <= century) return;
  throw invalid_argument("DURATION_INVALID",
                         std::string(what) + " must be between 0s and 100 years");
}

std::size_t bytes_of(const std::optional<Payloads>& payloads) {
  std::size_t bytes = 0;
  if (!payloads) return bytes;
  for (const Payload& payload : payloads->payloads) {
    bytes += payload.data.value.size();
    for (const auto& [key, value] : payload.metadata) bytes += key.size() + value.value.size();
  }
  return bytes;
}

std::size_t bytes_of(const PayloadMap& payloads) {
  std::size_t bytes = 0;
  for (const auto& [key, payload] : payloads) {
    bytes += key.size() + bytes_of(Payloads{{payload}});
  }
  return bytes;
}

void check_payloads(const std::optional<Payloads>& payloads, std::string_view what,
                    const Limits& limits) {
  const std::size_t bytes = bytes_of(payloads);
  if (bytes <= limits.payload_bytes_max) return;
  throw invalid_argument("PAYLOAD_TOO_LARGE",
                         std::string(what) + " is " + std::to_string(bytes) + " bytes; at most " +
                             std::to_string(limits.payload_bytes_max) + " are taken");
}

void check_priority(const std::optional<Priority>& priority) {
  if (!priority || (priority->priority_key >= 0 && priority->priority_key <= 5)) return;
  throw invalid_argument("PRIORITY_INVALID", "priorityKey must be 1 (first) to 5 (last)");
}

namespace {

void check_slot_list(const std::vector<SlotName>& slots, std::string_view what,
                     const Limits& limits) {
  if (slots.size() > limits.slots_max) {
    throw invalid_argument("SLOTS_INVALID", std::string(what) + " names more than " +
                                                std::to_string(limits.slots_max) + " slots");
  }
  std::set<SlotName> seen;
  for (const SlotName& slot : slots) {
    check_slot_name(slot);
    if (!seen.insert(slot).second) {
      throw invalid_argument("SLOTS_INVALID",
                             std::string(what) + " names slot " + quoted(slot.value) + " twice");
    }
  }
}

}  // namespace

void check_permit_request(PermitRequest& request, const Limits& limits) {
  check_pool_name(request.pool);
  check_slot_list(request.slots, "slots", limits);
  check_slot_list(request.only, "only", limits);
  if (request.count == 0) request.count = 1;
  if (request.count < 0 || static_cast<std::size_t>(request.count) > limits.slots_max) {
    throw invalid_argument("COUNT_INVALID",
                           "count must be 1 to " + std::to_string(limits.slots_max));
  }
  if (request.lease.count() == 0) request.lease = limits.lease_default;
  if (request.lease < std::chrono::milliseconds(1) || request.lease > limits.lease_max) {
    throw invalid_argument("LEASE_INVALID", "lease must be between 0.001s and 365 days");
  }
  check_duration(request.max_hold, "maxHold");
  check_duration(request.wait_timeout, "waitTimeout");
  if (request.order == PermitOrder::unspecified) request.order = PermitOrder::any;
  if (request.order == PermitOrder::fair) request.wait = true;
  if (request.reason.size() > limits.reason_bytes_max ||
      request.labels.size() > limits.labels_max) {
    throw invalid_argument("LABELS_INVALID",
                           "at most 1000 bytes of reason and 32 labels are taken");
  }
  for (const auto& [key, value] : request.labels) {
    check_name(key, "label", limits);
    check_optional_name(value, "label value", limits);
  }
}

namespace {

void check_policies(const StartWorkflowExecutionRequest& request) {
  using Reuse = WorkflowIdReusePolicy;
  using Conflict = WorkflowIdConflictPolicy;
  if (request.workflow_id_reuse_policy == Reuse::terminate_if_running &&
      request.workflow_id_conflict_policy != Conflict::unspecified) {
    throw invalid_argument("POLICY_INVALID",
                           "workflowIdReusePolicy TERMINATE_IF_RUNNING excludes a conflict policy; "
                           "use workflowIdConflictPolicy TERMINATE_EXISTING alone");
  }
  if (request.workflow_id_reuse_policy == Reuse::reject_duplicate &&
      request.workflow_id_conflict_policy == Conflict::terminate_existing) {
    throw invalid_argument("POLICY_INVALID",
                           "workflowIdReusePolicy REJECT_DUPLICATE and workflowIdConflictPolicy "
                           "TERMINATE_EXISTING contradict each other");
  }
}

void check_permit_start(const StartWorkflowExecutionRequest& request) {
  using Reuse = WorkflowIdReusePolicy;
  using Conflict = WorkflowIdConflictPolicy;
  if (request.workflow_type.name != permit_workflow_type) {
    throw invalid_argument("PERMIT_TYPE_INVALID",
                           "only workflow type PermitSlotWorkflow may run under a permit: id");
  }
  if (request.workflow_id_reuse_policy == Reuse::terminate_if_running ||
      request.workflow_id_conflict_policy == Conflict::terminate_existing) {
    throw invalid_argument("PERMIT_POLICY_INVALID",
                           "a start may not terminate a running permit; release it by its run id");
  }
}

}  // namespace

void check_start(StartWorkflowExecutionRequest& request, const Limits& limits) {
  if (request.permit) {
    check_permit_request(*request.permit, limits);
    if (!request.workflow_id.empty()) {
      throw invalid_argument(
          "PERMIT_ID_GIVEN",
          "with a permit object the server chooses the workflow id; leave it out");
    }
    if (request.workflow_type.name.empty()) request.workflow_type.name = permit_workflow_type;
    check_permit_start(request);
  } else {
    check_workflow_id(request.workflow_id, limits);
    if (has_permit_prefix(request.workflow_id)) check_permit_start(request);
  }
  check_name(request.workflow_type.name, "workflowType.name", limits);
  check_name(request.task_queue.name, "taskQueue.name", limits);
  check_optional_name(request.identity, "identity", limits);
  check_optional_name(request.request_id, "requestId", limits);
  check_duration(request.workflow_execution_timeout, "workflowExecutionTimeout");
  check_duration(request.workflow_run_timeout, "workflowRunTimeout");
  check_duration(request.workflow_task_timeout, "workflowTaskTimeout");
  check_payloads(request.input, "input", limits);
  if (request.memo && bytes_of(request.memo->fields) > limits.memo_bytes_max) {
    throw invalid_argument("MEMO_TOO_LARGE", "the memo is larger than 2 MiB");
  }
  check_priority(request.priority);
  check_policies(request);
}

}  // namespace permit::core
