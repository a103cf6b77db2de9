// What a worker hands back to say which task it has: the run, the scheduled event, the attempt and
// the nonce of the hand-out, sealed with the server's secret. Opaque to everybody else. A token
// that is not ours to the last bit is none, so nobody reaches a task that was not handed to him.
// (A run's number is its own in all namespaces, so a token is bound to one of them, too.)
#pragma once

#include <optional>
#include <string>
#include <string_view>

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

// Makes tokens and tells which are its own, also after a restart with the same secret.
class TokenSeal {
 public:
  explicit TokenSeal(std::string_view secret);

  Bytes encode(const TaskToken& token) const;
  // Nothing if it is not a token of ours of that kind.
  std::optional<TaskToken> decode(const Bytes& bytes, TaskToken::Kind kind) const;

 private:
  std::string key_;  // 16 bytes, made of the secret for this use only
};

// What a worker is told whose task has ended, timed out or was handed out again.
inline Error task_stale(const char* message) { return not_found("TASK_NOT_FOUND", message); }

}  // namespace permit::service
