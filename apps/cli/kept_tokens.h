// The tokens of holds that `permit hold` took, so that the one who took them can give them back.
// Files that only their user can read, in ${XDG_STATE_HOME:-~/.local/state}/permit/holds/.
#pragma once

#include <string>

#include "orchestrator/protocol/ids.h"

namespace permit::cli {

// Whether it could be written.
bool keep_token(Fence fence, const std::string& token);
std::string kept_token(Fence fence);  // "" if there is none
void forget_token(Fence fence);

}  // namespace permit::cli
