#include "permits/fence_guard.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

namespace permit::permits {

namespace {

// The file: this line, then "<fence> <slot>" a line, then the last one, without which it was cut
// short.
constexpr std::string_view first_line = "permit fences 1";
constexpr std::string_view last_line = "end";

[[noreturn]] void throw_errno(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// A descriptor that is closed whatever happens.
class Descriptor {
 public:
  Descriptor(const std::filesystem::path& path, int flags)
      : path_(path), number_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {
    if (number_ < 0) throw_errno("cannot open " + path_.string());
  }
  ~Descriptor() { ::close(number_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  void write(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t written = ::write(number_, text.data(), text.size());
      if (written < 0 && errno != EINTR) throw_errno("cannot write " + path_.string());
      if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  void sync() const {
    if (::fsync(number_) != 0) throw_errno("cannot sync " + path_.string());
  }

 private:
  const std::filesystem::path path_;
  const int number_;
};

std::filesystem::path directory_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : ".";
}

}  // namespace

StaleFence::StaleFence(const std::string& slot, Fence fence, Fence highest)
    : PermitError("StaleFence", "fence " + std::to_string(fence.value) + " of " + slot +
                                    " is stale: " + std::to_string(highest.value) +
                                    " has been seen"),
      highest_(highest) {}

FenceGuard::FenceGuard(std::filesystem::path file) : file_(std::move(file)) { load(); }

void FenceGuard::load() {
  if (!std::filesystem::exists(file_)) return;
  std::ifstream in(file_, std::ios::binary);
  if (!in) throw_errno("cannot read " + file_.string());
  const std::runtime_error not_ours(file_.string() +
                                    " is not a file of fences, or was cut short; restore it: what "
                                    "it guards must not forget");
  std::string line;
  if (!std::getline(in, line) || line != first_line) throw not_ours;
  while (std::getline(in, line)) {
    if (line == last_line && in.peek() == std::ifstream::traits_type::eof()) return;
    Fence fence;
    const char* end = line.data() + line.size();
    const auto [stop, error] = std::from_chars(line.data(), end, fence.value);
    if (error != std::errc() || stop == end || *stop != ' ') throw not_ours;
    highest_[std::string(stop + 1, end)] = fence;
  }
  throw not_ours;
}

// Replaces the file as a whole: after a crash it is the old one or the new one.
void FenceGuard::save(const std::map<std::string, Fence>& fences) const {
  if (file_.empty()) return;
  std::string text = std::string(first_line) + "\n";
  for (const auto& [slot, fence] : fences) {
    text += std::to_string(fence.value) + " " + slot + "\n";
  }
  text += std::string(last_line) + "\n";
  const std::filesystem::path next = file_.string() + ".new";
  {
    const Descriptor file(next, O_WRONLY | O_CREAT | O_TRUNC);
    file.write(text);
    file.sync();
  }
  std::filesystem::rename(next, file_);
  Descriptor(directory_of(file_), O_RDONLY | O_DIRECTORY).sync();
}

bool FenceGuard::admit(const std::string& slot, Fence fence) {
  if (slot.find('\n') != std::string::npos || fence.value <= 0) {
    throw InvalidPermit("a fence is above 0, and its slot's name has no newline");
  }
  const std::lock_guard lock(mutex_);
  const auto found = highest_.find(slot);
  const Fence seen = found == highest_.end() ? Fence() : found->second;
  if (fence <= seen) return fence == seen;
  std::map<std::string, Fence> fences = highest_;
  fences[slot] = fence;
  save(fences);
  highest_ = std::move(fences);
  return true;
}

void FenceGuard::check(const std::string& slot, Fence fence) {
  if (!admit(slot, fence)) throw StaleFence(slot, fence, highest(slot));
}

Fence FenceGuard::highest(const std::string& slot) const {
  const std::lock_guard lock(mutex_);
  const auto found = highest_.find(slot);
  return found == highest_.end() ? Fence() : found->second;
}

}  // namespace permit::permits
