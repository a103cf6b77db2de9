#include "orchestrator/service/event_text.h"

namespace permit::service {

std::vector<std::string_view> split_events(std::string_view events) {
  std::vector<std::string_view> objects;
  std::size_t begin = 0;
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const char c = events[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (depth++ == 0) begin = i;
    } else if (c == '}' || c == ']') {
      if (--depth == 0) objects.push_back(events.substr(begin, i + 1 - begin));
    }
  }
  return objects;
}

}  // namespace permit::service
