#include "orchestrator/protocol/log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <ctime>

#include "orchestrator/protocol/json_text.h"
#include "orchestrator/protocol/json_writer.h"
#include "orchestrator/protocol/time_text.h"

namespace permit {

namespace {

constexpr std::array<std::string_view, 4> level_names = {"debug", "info", "warn", "error"};

// A text that anybody made is cut to this, so that a line stays one that people can read.
constexpr std::size_t text_bytes_max = 1'000;

// What follows event and msg, in this order on every line; with its key as it is in JSON.
template <class Visit>
void for_each_field(const LogLine& line, Visit visit) {
  visit(R"(,"namespace":)", line.namespace_);
  visit(R"(,"workflow_id":)", line.workflow_id);
  visit(R"(,"run_id":)", line.run_id);
  visit(R"(,"workflow_type":)", line.workflow_type);
  visit(R"(,"task_queue":)", line.task_queue);
  visit(R"(,"pool":)", line.pool);
  visit(R"(,"slot":)", line.slot);
  visit(R"(,"outcome":)", line.outcome);
  visit(R"(,"cause":)", line.cause);
  visit(R"(,"possible_overlap":)", line.possible_overlap);
  visit(R"(,"holder":)", line.holder);
  visit(R"(,"fence":)", line.fence);
  visit(R"(,"wait_ms":)", line.wait_ms);
  visit(R"(,"held_ms":)", line.held_ms);
  visit(R"(,"by":)", line.by);
  visit(R"(,"key":)", line.key);
  visit(R"(,"reason":)", line.reason);
  visit(R"(,"method":)", line.method);
  visit(R"(,"path":)", line.path);
  visit(R"(,"status":)", std::int64_t{line.status});
  visit(R"(,"took_ms":)", line.took_ms);
  visit(R"(,"request_id":)", line.request_id);
  visit(R"(,"trace_id":)", line.trace_id);
  visit(R"(,"span_id":)", line.span_id);
  visit(R"(,"dropped":)", line.dropped);
  visit(R"(,"error":)", line.error);
}

std::string_view name_of_key(std::string_view key) { return key.substr(2, key.size() - 4); }

// Not in the middle of a character.
std::string_view cut(std::string_view text) {
  if (text.size() <= text_bytes_max) return text;
  std::size_t size = text_bytes_max;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0U) == 0x80U) --size;
  return text.substr(0, size);
}

void append_number(std::int64_t number, std::string& out) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), static_cast<std::size_t>(end - digits.data()));
}

// --- Characters ---

// The code point of the UTF-8 character of this size.
std::uint32_t code_point(std::string_view at, std::size_t size) {
  static constexpr std::array<unsigned, 5> masks = {0, 0x7F, 0x1F, 0x0F, 0x07};
  std::uint32_t code = static_cast<unsigned char>(at[0]) & masks[size];
  for (std::size_t i = 1; i < size; ++i) {
    code = code << 6U | (static_cast<unsigned char>(at[i]) & 0x3FU);
  }
  return code;
}

// Controls of a terminal, and what turns the direction of text or breaks a line.
bool may_upset(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x200B && code <= 0x200F) ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2060 && code <= 0x206F) ||
         code == 0xFEFF || code == 0x061C || (code >= 0xE0000 && code <= 0xE0FFF);
}

// --- JSON ---

void append_utf16_escape(std::uint32_t unit, std::string& out) {
  std::array<char, 12> text{};
  std::snprintf(text.data(), text.size(), "\\u%04x", unit);
  out += text.data();
}

// JSON lets stand what a terminal does not: somebody will look at the lines as they are.
void append_tame_string(std::string_view text, std::string& out) {
  const bool plain = plain_end(text.data(), text.data() + text.size()) == text.data() + text.size();
  if (plain && text.find('\x7F') == std::string_view::npos) {
    out += '"';
    out += text;
    out += '"';
    return;
  }
  const std::size_t begin = out.size();
  append_json_string(text, out);
  const std::string json = out.substr(begin);
  out.resize(begin);
  for (std::size_t at = 0, size = 0; at < json.size(); at += size) {
    size = utf8_size(json.data() + at, json.data() + json.size());
    const std::uint32_t code = code_point(std::string_view(json).substr(at), size);
    if (!may_upset(code)) {
      out.append(json, at, size);
    } else if (code < 0x10000) {
      append_utf16_escape(code, out);
    } else {
      append_utf16_escape(0xD800 + ((code - 0x10000) >> 10U), out);
      append_utf16_escape(0xDC00 + ((code - 0x10000) & 0x3FFU), out);
    }
  }
}

struct JsonFields {
  std::string& out;

  void operator()(std::string_view key, std::string_view text) {
    if (text.empty()) return;
    out += key;
    append_tame_string(cut(text), out);
  }
  void operator()(std::string_view key, bool flag) {
    if (!flag) return;
    out += key;
    out += "true";
  }
  void operator()(std::string_view key, std::int64_t number) {
    if (number != 0) (*this)(key, std::optional(number));
  }
  void operator()(std::string_view key, std::optional<std::int64_t> number) {
    if (!number) return;
    out += key;
    append_number(*number, out);
  }
};

// --- Text ---

void append_escaped(std::string_view bytes, std::string& out) {
  static constexpr char digits[] = "0123456789abcdef";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += {'\\', 'x', digits[byte >> 4U], digits[byte & 15U]};
  }
}

void append_printable(std::string_view text, std::string& out) {
  while (!text.empty()) {
    const std::size_t size = utf8_size(text.data(), text.data() + text.size());
    const std::string_view one = text.substr(0, size == 0 ? 1 : size);
    if (size == 0 || may_upset(code_point(text, size))) {
      append_escaped(one, out);
    } else {
      out += one;
    }
    text.remove_prefix(one.size());
  }
}

// Quoted, if it might be taken for several words or another key.
void append_value(std::string_view text, std::string& out) {
  const bool quoted = text.find_first_of(" =\"") != std::string_view::npos;
  if (quoted) out += '"';
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t quote = std::min(text.find('"', at), text.size());
    append_printable(text.substr(at, quote - at), out);
    if (quote < text.size()) out += "\\\"";
    at = quote + 1;
  }
  if (quoted) out += '"';
}

// "250ms", "36.2s", "4m24s", "2h05m", "3d04h".
void append_span(std::int64_t ms, std::string& out) {
  const auto two_digits = [&out](std::int64_t number) {
    if (number < 10) out += '0';
    append_number(number, out);
  };
  const std::int64_t seconds = ms / 1'000;
  if (ms < 1'000) {
    append_number(ms, out);
    out += "ms";
  } else if (seconds < 60) {
    append_number(seconds, out);
    out += '.';
    append_number(ms % 1'000 / 100, out);
    out += 's';
  } else if (seconds < 3'600) {
    append_number(seconds / 60, out);
    out += 'm';
    two_digits(seconds % 60);
    out += 's';
  } else if (seconds < 86'400) {
    append_number(seconds / 3'600, out);
    out += 'h';
    two_digits(seconds / 60 % 60);
    out += 'm';
  } else {
    append_number(seconds / 86'400, out);
    out += 'd';
    two_digits(seconds / 3'600 % 24);
    out += 'h';
  }
}

// What the line is about, and how it ended, stand without their keys.
bool stands_alone(std::string_view name) {
  return name == "namespace" || name == "pool" || name == "slot" || name == "outcome" ||
         name == "workflow_id";
}

struct TextFields {
  std::string& out;

  void begin(std::string_view key) {
    std::string_view name = name_of_key(key);
    if (name.ends_with("_ms")) name.remove_suffix(3);
    out += ' ';
    out += name;
    out += '=';
  }
  void operator()(std::string_view key, std::string_view text) {
    if (text.empty() || stands_alone(name_of_key(key))) return;
    begin(key);
    append_value(cut(text), out);
  }
  void operator()(std::string_view key, bool flag) {
    if (!flag) return;
    out += ' ';
    out += name_of_key(key);
  }
  void operator()(std::string_view key, std::int64_t number) {
    if (number == 0) return;
    begin(key);
    append_number(number, out);
  }
  void operator()(std::string_view key, std::optional<std::int64_t> ms) {
    if (!ms) return;
    begin(key);
    append_span(*ms, out);
  }
};

void append_subject(const LogLine& line, std::string& out) {
  if (!line.pool.empty()) {
    out += ' ';
    append_printable(cut(line.pool), out);
    if (!line.slot.empty()) {
      out += ':';
      append_printable(cut(line.slot), out);
    }
  } else if (!line.workflow_id.empty()) {
    out += ' ';
    append_printable(cut(line.workflow_id), out);
  }
  if (line.outcome.empty()) return;
  out += ' ';
  out += line.outcome;
}

}  // namespace

std::string_view name_of(LogLine::Level level) {
  return level_names[static_cast<std::size_t>(level)];
}

std::optional<LogLine::Level> log_level_named(std::string_view name) {
  for (std::size_t i = 0; i < level_names.size(); ++i) {
    if (level_names[i] == name) return static_cast<LogLine::Level>(i);
  }
  return std::nullopt;
}

void append_json_line(const LogLine& line, Time at, std::string& out) {
  out += "{\"ts\":\"";
  append_moment(at, out);
  out += "\",\"level\":\"";
  out += name_of(line.level);
  out += "\",\"event\":\"";
  out += line.event;
  out += '"';
  JsonFields fields{out};
  fields(R"(,"msg":)", line.msg);
  for_each_field(line, fields);
  out += '}';
}

void append_text_line(const LogLine& line, Time at, std::string& out) {
  const std::time_t seconds = static_cast<std::time_t>(at.time_since_epoch().count() / 1'000'000);
  std::tm local{};
  localtime_r(&seconds, &local);
  std::array<char, 16> clock{};
  std::strftime(clock.data(), clock.size(), "%H:%M:%S ", &local);
  out += clock.data();
  for (const char c : name_of(line.level)) out += static_cast<char>(c - 'a' + 'A');
  out += ' ';
  out += line.event;
  append_subject(line, out);
  TextFields fields{out};
  for_each_field(line, fields);
  if (line.msg.empty()) return;
  out += ": ";
  append_printable(cut(line.msg), out);
}

void Log::write(const LogLine& line) {
  if (!wants(line.level)) return;
  const Time at = std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
  if (begin_) lines_ += begin_(line.level);
  if (format_ == LogFormat::json) {
    append_json_line(line, at, lines_);
  } else {
    append_text_line(line, at, lines_);
  }
  lines_ += '\n';
}

void Log::flush() {
  if (lines_.empty()) return;
  output_(lines_);
  lines_.clear();
}

}  // namespace permit
