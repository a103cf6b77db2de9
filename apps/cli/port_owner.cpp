#include "apps/cli/port_owner.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>

#include "orchestrator/protocol/error.h"

namespace permit::cli {

namespace {

// Inodes of the sockets that listen on the port. A line of /proc/net/tcp is
// "0: 0100007F:1CD0 00000000:0000 0A … uid timeout inode …"; 0A is listening.
void add_listeners(const char* file, std::uint16_t port, std::set<std::string>& sockets) {
  std::ifstream lines(file);
  std::string line;
  std::getline(lines, line);  // the heading
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    std::string number, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
    fields >> number >> local >> remote >> state >> queues >> timer >> retransmits >> uid >>
        timeout >> inode;
    const std::size_t colon = local.rfind(':');
    if (colon == std::string::npos || state != "0A") continue;
    std::uint16_t found = 0;
    std::from_chars(local.data() + colon + 1, local.data() + local.size(), found, 16);
    if (found == port) sockets.insert("socket:[" + inode + "]");
  }
}

bool has_socket(const std::filesystem::path& process, const std::set<std::string>& sockets) {
  std::error_code failed;
  for (const auto& file : std::filesystem::directory_iterator(process / "fd", failed)) {
    std::error_code unreadable;
    if (sockets.contains(std::filesystem::read_symlink(file.path(), unreadable).string())) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::optional<PortOwner> port_owner(std::uint16_t port) {
  std::set<std::string> sockets;
  add_listeners("/proc/net/tcp", port, sockets);
  add_listeners("/proc/net/tcp6", port, sockets);
  if (sockets.empty()) return std::nullopt;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", failed)) {
    const std::string name = entry.path().filename().string();
    PortOwner owner;
    const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), owner.pid);
    if (error != std::errc() || stop != name.data() + name.size()) continue;
    if (!has_socket(entry.path(), sockets)) continue;
    std::getline(std::ifstream(entry.path() / "comm"), owner.name);
    return owner;
  }
  return std::nullopt;
}

namespace {

// Whether a server could not listen there, since somebody else does.
bool is_taken(const std::string& address, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return false;  // the server says what is wrong with it
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> endpoint(found, freeaddrinfo);
  const int listener = socket(endpoint->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0) return false;
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool taken =
      bind(listener, endpoint->ai_addr, endpoint->ai_addrlen) != 0 && errno == EADDRINUSE;
  close(listener);
  return taken;
}

}  // namespace

void check_port_is_free(const std::string& address, std::uint16_t port) {
  if (port == 0 || !is_taken(address, port)) return;
  std::string who;
  if (const auto owner = port_owner(port)) {
    who = " (pid " + std::to_string(owner->pid) + ", " + owner->name + ")";
  }
  throw failed_precondition("PORT_IN_USE", "port " + std::to_string(port) + " on " + address +
                                               " is in use" + who + ". Use --port, or stop it.");
}

}  // namespace permit::cli
