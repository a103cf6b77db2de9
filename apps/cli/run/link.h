// Between `permit run`, whom the shell knows, and its keeper, who holds the permit: short notices.
#pragma once

#include <optional>
#include <utility>

namespace permit::cli {

struct Notice {
  enum class Kind {
    signal,    // to the keeper: `value` is for the command
    started,   // from the keeper: the command's process group is `value`
    stopped,   // the command was stopped by signal `value`; or, before it runs, so be it
    finished,  // all is over, and permit's exit code is `value`
  };
  Kind kind = Kind::signal;
  int value = 0;
  bool restores_terminal = false;  // the command had no chance to
};

class Link {
 public:
  static std::pair<Link, Link> make();
  Link(Link&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Link& operator=(Link&&) = delete;
  ~Link() { close(); }

  int descriptor() const { return descriptor_; }
  void send(const Notice& notice) const;  // to somebody who is gone: nothing
  std::optional<Notice> receive() const;  // waits; empty: the other side is gone
  void close();

 private:
  explicit Link(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace permit::cli
