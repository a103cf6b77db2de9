#include "orchestrator/store/commit_mark.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <system_error>

#include "orchestrator/protocol/siphash.h"

namespace permit::store {

namespace {

// "00000000000000000812 0123456789abcdef\n": the number, and a hash of its digits.
constexpr std::size_t digits = 20;
constexpr std::size_t mark_bytes = digits + 1 + 16 + 1;
using Mark = std::array<char, mark_bytes + 1>;  // with the NUL of snprintf

Mark mark_of(std::int64_t commit) {
  Mark mark{};
  std::snprintf(mark.data(), mark.size(), "%020lld", static_cast<long long>(commit));
  const std::uint64_t hash = siphash13({mark.data(), digits});
  std::snprintf(mark.data() + digits, mark.size() - digits, " %016llx\n",
                static_cast<unsigned long long>(hash));
  return mark;
}

std::optional<std::int64_t> read_mark(int descriptor) {
  Mark found{};
  if (pread(descriptor, found.data(), mark_bytes, 0) != ssize_t{mark_bytes}) return std::nullopt;
  std::int64_t commit = 0;
  const auto [end, error] = std::from_chars(found.data(), found.data() + digits, commit);
  if (error != std::errc() || end != found.data() + digits || commit < 0) return std::nullopt;
  if (mark_of(commit) != found) return std::nullopt;
  return commit;
}

}  // namespace

CommitMark::CommitMark(std::string path)
    : path_(std::move(path)),
      descriptor_(
          open(path_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR)) {
  if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "open " + path_);
}

CommitMark::~CommitMark() { close(descriptor_); }

std::optional<std::int64_t> CommitMark::read() const { return read_mark(descriptor_); }

std::optional<std::int64_t> CommitMark::read(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return std::nullopt;
  const auto commit = read_mark(descriptor);
  close(descriptor);
  return commit;
}

void CommitMark::note(std::int64_t commit) noexcept {
  const Mark mark = mark_of(commit);
  [[maybe_unused]] const ssize_t written = pwrite(descriptor_, mark.data(), mark_bytes, 0);
}

}  // namespace permit::store
