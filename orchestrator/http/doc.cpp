#include "orchestrator/http/doc.h"

#include <algorithm>

namespace permit::http {

bool Doc::has_parameter(std::string_view name) const {
  return std::any_of(query_.begin(), query_.end(),
                     [name](const Parameter& parameter) { return parameter.name == name; });
}

bool Doc::has_answer(std::type_index type) const {
  return std::any_of(answers_.begin(), answers_.end(),
                     [type](const Answer& answer) { return answer.type.index == type; });
}

}  // namespace permit::http
