// A text that grows at its end by many small pieces, each of which costs a std::string a call and a
// look at its size. Short ones need no memory but their own.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>

namespace permit {

class TextBuffer {
 public:
  TextBuffer() = default;
  TextBuffer(const TextBuffer&) = delete;
  TextBuffer& operator=(const TextBuffer&) = delete;

  TextBuffer& operator+=(char c) {
    if (end_ == limit_) grow(1);
    *end_++ = c;
    return *this;
  }
  TextBuffer& operator+=(std::string_view text) { return append(text.data(), text.size()); }
  TextBuffer& append(const char* text, std::size_t size) {
    if (static_cast<std::size_t>(limit_ - end_) < size) grow(size);
    std::memcpy(end_, text, size);
    end_ += size;
    return *this;
  }

  // Where to write up to `size` bytes more, and how many it were.
  char* room(std::size_t size) {
    if (static_cast<std::size_t>(limit_ - end_) < size) grow(size);
    return end_;
  }
  void wrote_to(char* end) { end_ = end; }

  std::size_t size() const { return static_cast<std::size_t>(end_ - begin_); }
  char back() const { return end_[-1]; }  // of a text that is not empty
  void cut_to(std::size_t size) { end_ = begin_ + size; }
  std::string_view view() const { return {begin_, size()}; }

 private:
  void grow(std::size_t more);

  std::array<char, 2048> own_;
  std::unique_ptr<char[]> grown_;  // in place of it
  char* begin_ = own_.data();
  char* end_ = own_.data();
  char* limit_ = own_.data() + own_.size();
};

}  // namespace permit
