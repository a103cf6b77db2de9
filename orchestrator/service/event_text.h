// Stored events are text; this finds where each begins, without parsing them.
#pragma once

#include <string_view>
#include <vector>

namespace permit::service {

// "{…},{…}" → its objects.
std::vector<std::string_view> split_events(std::string_view events);

}  // namespace permit::service
