#include "orchestrator/protocol/command.h"

namespace permit {

CommandAttributes::CommandAttributes() = default;
CommandAttributes::CommandAttributes(const CommandAttributes&) = default;
CommandAttributes::CommandAttributes(CommandAttributes&&) noexcept = default;
CommandAttributes& CommandAttributes::operator=(const CommandAttributes&) = default;
CommandAttributes& CommandAttributes::operator=(CommandAttributes&&) noexcept = default;
CommandAttributes::~CommandAttributes() = default;

std::string_view Command::name() const {
  return std::visit([](const auto& a) { return std::decay_t<decltype(a)>::name; }, attributes);
}

}  // namespace permit
