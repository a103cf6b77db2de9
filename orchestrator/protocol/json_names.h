// Names on the wire, made of names in C++ at compile time.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace permit {

// "TaskQueueKind" for permit::TaskQueueKind.
template <class T>
constexpr std::string_view type_name() {
  std::string_view text = __PRETTY_FUNCTION__;  // … [with T = permit::TaskQueueKind; …]
  text.remove_prefix(text.find("T = ") + 4);
  text = text.substr(0, text.find_first_of(";]"));
  const std::size_t scope = text.rfind("::");
  return scope == std::string_view::npos ? text : text.substr(scope + 2);
}

// Appends to a buffer of fixed size; without one, counts.
class NameBuffer {
 public:
  constexpr explicit NameBuffer(char* to) : to_(to) {}

  constexpr std::size_t size() const { return size_; }
  constexpr void put(char c) {
    if (to_ != nullptr) to_[size_] = c;
    ++size_;
  }
  constexpr void put(std::string_view text) {
    for (const char c : text) put(c);
  }

  // namespace_ → namespace, run_id → runId.
  constexpr void put_camel(std::string_view snake) {
    if (snake.ends_with('_')) snake.remove_suffix(1);
    for (std::size_t i = 0; i < snake.size(); ++i) {
      const bool is_word = snake[i] == '_';
      put(is_word ? upper(snake[++i]) : snake[i]);
    }
  }
  // TimerStarted → TIMER_STARTED, canceled → CANCELED.
  constexpr void put_upper_snake(std::string_view name) {
    for (std::size_t i = 0; i < name.size(); ++i) {
      if (i > 0 && is_upper(name[i])) put('_');
      put(upper(name[i]));
    }
  }
  // TimerStarted → timerStarted.
  constexpr void put_lower_first(std::string_view name) {
    put(is_upper(name[0]) ? static_cast<char>(name[0] - 'A' + 'a') : name[0]);
    put(name.substr(1));
  }

 private:
  static constexpr bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
  static constexpr char upper(char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }

  char* to_;
  std::size_t size_ = 0;
};

// The texts of one table, end to end, and where each begins. `Writer::put(buffer, i)` writes the
// i-th of `Writer::count`.
template <class Writer>
struct NameTable {
  static constexpr std::size_t text_size() {
    NameBuffer buffer(nullptr);
    for (std::size_t i = 0; i < Writer::count; ++i) Writer::put(buffer, i);
    return buffer.size();
  }

  std::array<char, text_size() + 1> text{};
  std::array<std::size_t, Writer::count + 1> starts{};

  constexpr NameTable() {
    NameBuffer buffer(text.data());
    for (std::size_t i = 0; i < Writer::count; ++i) {
      starts[i] = buffer.size();
      Writer::put(buffer, i);
    }
    starts[Writer::count] = buffer.size();
  }
  constexpr std::string_view operator[](std::size_t i) const {
    return std::string_view(text.data() + starts[i], starts[i + 1] - starts[i]);
  }
};
template <class Writer>
inline constexpr NameTable<Writer> name_table{};

}  // namespace permit
