// Events as a line of text: the name, then what is set and worth knowing. Attributes that are the
// same everywhere (the namespace, the id of the task's completion) are left out.
#pragma once

#include <string>

#include "tests/support/cluster.h"

namespace permit::test {

// In brief, what a permit's run was started with is left out: it follows from what was granted.
enum class Detail { brief, full };
std::string event_text(Cluster& cluster, const Event& event, Detail detail);

// JSON of the payloads' data, separated by commas.
std::string payloads_text(const Payloads& payloads);
std::string duration_text(Duration duration);  // "90s"

// The name of an enumerator, as in C++.
template <class E>
std::string enum_text(E value) {
  std::string name = std::to_string(static_cast<int>(value));
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<E>>([&](auto enumerator) {
    if (enumerator.value == value) name = enumerator.name;
  });
  return name;
}

}  // namespace permit::test
