// What a worker hands back to say which task it has: the run, the scheduled event, the attempt and
// the nonce of the hand-out. Opaque to everybody else; a guess does not hit the nonce.
#pragma once

#include <optional>

#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/ids.h"
#include "orchestrator/protocol/payload.h"

namespace permit::service {

struct TaskToken {
  enum class Kind : char { workflow_task = 'w', activity = 'a', query = 'q' };

  Kind kind = Kind::workflow_task;
  RunNumber run;
  std::int64_t scheduled_event_id = 0;  // of a query: its id
  std::int32_t attempt = 0;
  std::int64_t nonce = 0;
};

Bytes encode(const TaskToken& token);
// Nothing if it is not a token of ours of that kind.
std::optional<TaskToken> decode(const Bytes& bytes, TaskToken::Kind kind);

// What a worker is told whose task has ended, timed out or was handed out again.
inline Error task_stale(const char* message) { return not_found("TASK_NOT_FOUND", message); }

}  // namespace permit::service
