#include "orchestrator/service/token_holds.h"

#include "orchestrator/protocol/ensure.h"
#include "orchestrator/protocol/event.h"
#include "orchestrator/protocol/json.h"
#include "orchestrator/service/event_text.h"

namespace permit::service {

bool is_held_with_token(const core::RunState& run) {
  return run.is_permit() && run.started.permit->ticket != 0 &&
         !run.started.parent_workflow_execution;
}

bool takes_token(const core::RunState& run, std::string_view signal) {
  return (signal == "release" || signal == "renew") && is_held_with_token(run);
}

Error token_needed(const core::RunState& run) {
  return Error(ErrorCode::permission_denied, "ROLE_TOO_LOW",
               run.workflow_id.value +
                   " is held by somebody who has its token; without that, this takes an API key "
                   "with the role admin");
}

std::string without_request_id(std::string_view events) {
  const std::vector<std::string_view> objects = split_events(events.substr(1));
  ENSURE(!objects.empty());
  Event first = read_json<Event>(std::string(objects[0]));
  std::get<event::WorkflowExecutionStarted>(first.attributes).request_id.clear();
  std::string text = "[";
  write_json(first, text);
  text += events.substr(1 + objects[0].size());
  return text;
}

}  // namespace permit::service
