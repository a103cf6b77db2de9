// Permits that somebody holds with a token, and not with a workflow: only who has the token, or an
// admin, may end or renew them.
#pragma once

#include <string>
#include <string_view>

#include "orchestrator/core/run_state.h"
#include "orchestrator/protocol/error.h"

namespace permit::service {

bool is_held_with_token(const core::RunState& run);

// Whether this signal does what otherwise takes the token.
bool takes_token(const core::RunState& run, std::string_view signal);
Error token_needed(const core::RunState& run);

// The events of such a permit, the first among them, as they are shown: who repeats an acquire
// with its requestId is given its token.
std::string without_request_id(std::string_view events);

}  // namespace permit::service
