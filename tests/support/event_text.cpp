#include "tests/support/event_text.h"

#include <map>
#include <set>

#include "orchestrator/protocol/time_text.h"
#include "tests/support/reflect.h"

namespace permit::test {

namespace {

// Members that say nothing in a test: always the same, or said by another event.
const std::set<std::string> skipped = {"namespace_",
                                       "parent_workflow_namespace",
                                       "workflow_task_completed_event_id",
                                       "history_size_bytes",
                                       "original_execution_run_id",
                                       "first_execution_run_id",
                                       "root_workflow_execution",
                                       "workflow_execution_expiration_time",
                                       "workflow_task_timeout",
                                       "identity",
                                       "initiator",
                                       "retry_policy",
                                       "header",
                                       "sdk_metadata",
                                       "source",
                                       "stack_trace",
                                       "normal_name",
                                       "labels",
                                       "permit_request"};
// And those that do so in one kind of event only.
const std::map<std::string, std::set<std::string>> skipped_in = {
    {"WorkflowExecutionStarted",
     {"workflow_id", "task_queue", "parent_close_policy", "workflow_run_timeout"}},
    {"WorkflowTaskScheduled", {"start_to_close_timeout"}},
    {"WorkflowTaskStarted", {"scheduled_event_id"}},
    {"WorkflowTaskCompleted", {"scheduled_event_id", "started_event_id"}},
    {"WorkflowTaskFailed", {"scheduled_event_id", "started_event_id"}},
    {"WorkflowTaskTimedOut", {"scheduled_event_id", "started_event_id"}},
    {"ActivityTaskScheduled", {"task_queue"}},
    {"StartChildWorkflowExecutionInitiated", {"task_queue", "workflow_type"}},
    {"StartChildWorkflowExecutionFailed", {"workflow_type"}},
    {"ChildWorkflowExecutionStarted", {"workflow_type"}},
    {"ChildWorkflowExecutionCompleted", {"workflow_type"}},
    {"ChildWorkflowExecutionFailed", {"workflow_type"}},
    {"ChildWorkflowExecutionCanceled", {"workflow_type"}},
    {"ChildWorkflowExecutionTimedOut", {"workflow_type"}},
    {"ChildWorkflowExecutionTerminated", {"workflow_type"}},
    {"WorkflowExecutionContinuedAsNew", {"task_queue", "workflow_type"}}};

std::string short_name(std::string name) {
  static const std::vector<std::pair<std::string, std::string>> shorter = {
      {"workflow_execution_timeout", "execution_timeout"},
      {"workflow_run_timeout", "run_timeout"},
      {"workflow_task_timeout", "task_timeout"},
      {"parent_workflow_execution", "parent"},
      {"parent_initiated_event_id", "parent_event"},
      {"external_workflow_execution", "from"},
      {"external_initiated_event_id", "initiated"},
      {"workflow_execution", "run"},
      {"latest_cancel_requested_event_id", "requested"},
      {"continued_execution_run_id", "continues"},
      {"new_execution_run_id", "continued_by"},
      {"workflow_id_reuse_policy", "reuse"},
      {"parent_close_policy", "policy"},
      {"start_to_fire_timeout", "after"},
      {"permit_failure", "why"},
      {"permit_run_id", "under"},
      {"child_workflow_only", "child_only"},
      {"workflow_id", "id"},
      {"workflow_type", "type"},
      {"activity_type", "type"},
      {"task_queue", "queue"},
      {"signal_name", "signal"},
      {"activity_id", "id"},
      {"timer_id", "id"}};
  for (const auto& [from, to] : shorter) {
    if (name == from) return to;
  }
  if (name.ends_with("_event_id")) name.resize(name.size() - 9);
  if (name.ends_with('_')) name.pop_back();
  return name;
}

class Printer {
 public:
  Printer(Cluster& cluster, std::string_view event_name)
      : cluster_(cluster), only_sticky_(event_name == "WorkflowTaskScheduled") {
    const auto own = skipped_in.find(std::string(event_name));
    if (own != skipped_in.end()) skipped_here_ = own->second;
  }

  template <class T>
  void members(const T& value) {
    boost::mp11::mp_for_each<Members<T>>([&](auto member) {
      const std::string name = member.name;
      if (skipped.contains(name)) return;
      if (skipped_here_.contains(name)) return;
      const std::string value_text = text(value.*member.pointer);
      if (!value_text.empty()) out += " " + short_name(name) + "=" + value_text;
    });
  }

  void skip(const std::set<std::string>& members) {
    skipped_here_.insert(members.begin(), members.end());
  }

  std::string out;

 private:
  std::string text(const std::string& value) {
    return value.find(' ') == std::string::npos ? value : "'" + cluster_.with_names(value) + "'";
  }
  template <class Tag>
  std::string text(const Name<Tag>& value) {
    return value.value;
  }
  std::string text(const RunId& value) { return value.empty() ? "" : cluster_.name(value); }
  std::string text(const Fence& value) { return number(value.value); }
  std::string text(Time value) { return is_set(value) ? cluster_.relative(value) : ""; }
  std::string text(Duration value) { return value.count() == 0 ? "" : duration_text(value); }
  std::string text(bool value) { return value ? "yes" : ""; }
  std::string text(std::int64_t value) { return number(value); }
  std::string text(std::int32_t value) { return number(value); }
  std::string text(double value) { return value == 0 ? "" : std::to_string(value); }
  std::string text(const WorkflowExecution& value) { return cluster_.name(value); }
  std::string text(const WorkflowType& value) { return value.name; }
  std::string text(const ActivityType& value) { return value.name; }
  std::string text(const TaskQueue& value) {
    return value.kind == TaskQueueKind::sticky || !only_sticky_ ? value.name : "";
  }
  std::string text(const Payloads& value) { return payloads_text(value); }
  std::string text(const Payload& value) { return value.data.value; }
  std::string text(const Failure& value) {
    std::string described = "'" + value.message + "'";
    if (value.timeout_failure_info && value.timeout_failure_info->last_heartbeat_details) {
      described +=
          " heartbeat=" + payloads_text(*value.timeout_failure_info->last_heartbeat_details);
    }
    if (value.application_failure_info && !value.application_failure_info->type.empty()) {
      described += " failure_type=" + value.application_failure_info->type;
    }
    if (value.cause) described += " caused_by=" + text(*value.cause);
    return described;
  }
  std::string text(const PermitFailure& value) {
    return enum_text(value.kind) + " '" + cluster_.with_names(value.message) + "'";
  }
  std::string text(const PermitGrant& value) {
    return value.pool.value + ":" + value.slot.value + " fence=" + number(value.fence.value) +
           " deadline=" + cluster_.relative(value.deadline);
  }
  std::string text(const PermitRequest& value) {
    std::string described = value.pool.value + " " + enum_text(value.order);
    if (value.count > 1) described += " count=" + number(value.count);
    if (value.wait) described += " wait";
    return described + " lease=" + duration_text(value.lease);
  }
  template <class T>
  std::string text(const std::map<std::string, T>& value) {
    std::string described;
    for (const auto& [key, element] : value) {
      described += (described.empty() ? "" : ",") + key + ":" + text(element);
    }
    return described;
  }
  template <class T>
  std::string text(const std::vector<T>& value) {
    std::string described;
    for (const T& element : value) described += (described.empty() ? "" : ",") + text(element);
    return described;
  }
  std::string text(const Memo& value) { return text(value.fields); }
  std::string text(const SearchAttributes& value) { return text(value.indexed_fields); }
  std::string text(const Priority& value) { return number(value.priority_key); }
  std::string text(const RetryPolicy&) { return ""; }
  std::string text(const Header&) { return ""; }
  std::string text(const SdkMetadata&) { return ""; }
  template <class T>
  std::string text(const std::optional<T>& value) {
    return value ? text(*value) : "";
  }
  template <class E>
  std::enable_if_t<std::is_enum_v<E>, std::string> text(E value) {
    return value == E{} ? "" : enum_text(value);
  }

  static std::string number(std::int64_t value) { return value == 0 ? "" : std::to_string(value); }

  Cluster& cluster_;
  const bool only_sticky_;
  std::set<std::string> skipped_here_;
};

}  // namespace

std::string payloads_text(const Payloads& payloads) {
  std::string text;
  for (const Payload& payload : payloads.payloads) {
    text += (text.empty() ? "" : ",") + payload.data.value;
  }
  return text;
}

std::string duration_text(Duration duration) { return format_duration(duration); }

std::string event_text(Cluster& cluster, const Event& event, Detail detail) {
  Printer printer(cluster, event.name());
  const auto* started = event.get_if<event::WorkflowExecutionStarted>();
  if (started != nullptr && started->permit && detail == Detail::brief) {
    printer.skip({"input", "workflow_execution_timeout", "workflow_type"});
  }
  std::visit([&](const auto& attributes) { printer.members(attributes); }, event.attributes);
  // A first attempt is the rule.
  std::string text = printer.out;
  const auto first = text.find(" attempt=1");
  if (first != std::string::npos && (text.size() == first + 10 || text[first + 10] == ' ')) {
    text.erase(first, 10);
  }
  return std::string(event.name()) + text;
}

}  // namespace permit::test
