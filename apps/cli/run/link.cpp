#include "apps/cli/run/link.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace permit::cli {

std::pair<Link, Link> Link::make() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::system_error(errno, std::generic_category(), "socketpair");
  }
  return {Link(ends[0]), Link(ends[1])};
}

void Link::send(const Notice& notice) const {
  while (::send(descriptor_, &notice, sizeof notice, MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

std::optional<Notice> Link::receive() const {
  Notice notice;
  for (;;) {
    const ssize_t length = recv(descriptor_, &notice, sizeof notice, 0);
    if (length == static_cast<ssize_t>(sizeof notice)) return notice;
    if (length < 0 && errno == EINTR) continue;
    return std::nullopt;
  }
}

void Link::close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

}  // namespace permit::cli
