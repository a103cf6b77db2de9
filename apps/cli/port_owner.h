// Who listens on a port of this host, so that "in use" can be said with a name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace permit::cli {

struct PortOwner {
  std::int64_t pid = 0;
  std::string name;
};

// From /proc; nothing if nobody listens, or somebody whose files we may not see.
std::optional<PortOwner> port_owner(std::uint16_t port);

// Throws Error PORT_IN_USE, with the owner if he is known. Before a server opens its files, so that
// a second one leaves no trace. Port 0 is always free.
void check_port_is_free(const std::string& address, std::uint16_t port);

}  // namespace permit::cli
