#include "orchestrator/protocol/event.h"

namespace permit {

EventAttributes::EventAttributes() = default;
EventAttributes::EventAttributes(const EventAttributes&) = default;
EventAttributes::EventAttributes(EventAttributes&&) noexcept = default;
EventAttributes& EventAttributes::operator=(const EventAttributes&) = default;
EventAttributes& EventAttributes::operator=(EventAttributes&&) noexcept = default;
EventAttributes::~EventAttributes() = default;

std::string_view Event::name() const {
  return std::visit([](const auto& a) { return std::decay_t<decltype(a)>::name; }, attributes);
}

}  // namespace permit
