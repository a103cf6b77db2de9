#include "apps/cli/output.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <iostream>

#include "apps/cli/duration_text.h"
#include "orchestrator/protocol/time_text.h"

namespace permit::cli {

namespace {

const char* code_of(Style style) {
  switch (style) {
    case Style::plain:
      return "";
    case Style::bold:
      return "\x1b[1m";
    case Style::dim:
      return "\x1b[2m";
    case Style::green:
      return "\x1b[32m";
    case Style::blue:
      return "\x1b[34m";
    case Style::yellow:
      return "\x1b[33m";
    case Style::magenta:
      return "\x1b[35m";
    case Style::red:
      return "\x1b[31m";
  }
  return "";
}

std::string painted(const std::string& text, Style style) {
  if (style == Style::plain) return text;
  return code_of(style) + text + "\x1b[0m";
}

// Of UTF-8, one column a code point.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

bool wants_color(const std::string& setting) {
  if (setting == "always") return true;
  if (setting == "never" || environment_variable("NO_COLOR")) return false;
  if (environment_variable("CLICOLOR_FORCE")) return true;
  return isatty(STDOUT_FILENO) == 1 && environment_variable("TERM") != "dumb";
}

}  // namespace

// --- Table ---

std::string Table::text(bool color) const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = width_of(columns_[i].name);
    for (const auto& row : rows_) width = std::max(width, width_of(row.at(i).text));
    widths.push_back(width);
  }
  std::string text;
  const auto line = [&](const std::vector<Cell>& row) {
    std::string blank;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string fill(widths[i] - width_of(row[i].text), ' ');
      const bool right = columns_[i].align == Align::right;
      if (right) blank += fill;
      if (!row[i].text.empty()) {
        text += blank + (color ? painted(row[i].text, row[i].style) : row[i].text);
        blank.clear();
      }
      if (!right) blank += fill;
      blank += "  ";
    }
    text += "\n";
  };
  std::vector<Cell> head;
  head.reserve(columns_.size());
  for (const Column& column : columns_) head.push_back({column.name, Style::bold});
  line(head);
  for (const auto& row : rows_) line(row);
  return text;
}

// --- Output ---

Output::Output(const Settings& settings, bool quiet)
    : color_(wants_color(settings.text("color"))), quiet_(quiet) {
  const std::string& format = settings.text("output");
  if (format == "json") format_ = Format::json;
  if (format == "jsonl") format_ = Format::jsonl;
  if (format == "none") format_ = Format::none;
  const std::string& time = settings.text("time_format");
  if (time == "iso") time_format_ = TimeFormat::iso;
  if (time == "raw") time_format_ = TimeFormat::raw;
}

void Output::text(const std::string& line) const {
  if (is_text()) std::cout << line << "\n" << std::flush;
}

void Output::table(const Table& table) const {
  if (is_text()) std::cout << table.text(color_) << std::flush;
}

void Output::json(const std::string& document) const {
  if (format_ == Format::json || format_ == Format::jsonl) {
    std::cout << document << "\n" << std::flush;
  }
}

void Output::json(const std::string& document, const std::vector<std::string>& lines) const {
  if (format_ == Format::json) json(document);
  if (format_ != Format::jsonl) return;
  for (const std::string& line : lines) std::cout << line << "\n";
  std::cout << std::flush;
}

void Output::note(const std::string& sentence) const {
  if (!quiet_) std::cerr << "permit: " << sentence << "\n" << std::flush;
}

std::string Output::paint(const std::string& text, Style style) const {
  return color_ ? painted(text, style) : text;
}

std::string Output::moment(Time time, Time now) const {
  if (time == Time{}) return "-";
  if (time_format_ == TimeFormat::relative) {
    const Duration ago = std::max(now - time, Duration(0));
    return ago < std::chrono::seconds(1) ? "now" : show_duration(ago) + " ago";
  }
  return clock(time);
}

std::string Output::clock(Time time) const {
  if (time == Time{}) return "-";
  switch (time_format_) {
    case TimeFormat::raw:
      return std::to_string(time.time_since_epoch().count());
    case TimeFormat::iso:
      return format_time(time);
    case TimeFormat::relative:
      break;
  }
  const std::time_t seconds =
      std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
  std::tm local{};
  localtime_r(&seconds, &local);
  const std::time_t now = std::time(nullptr);
  std::tm today{};
  localtime_r(&now, &today);
  const bool same_day = local.tm_yday == today.tm_yday && local.tm_year == today.tm_year;
  std::array<char, 32> text{};
  const std::size_t size =
      std::strftime(text.data(), text.size(), same_day ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &local);
  return std::string(text.data(), size);
}

// --- Words ---

std::string printable(const std::string& text, std::size_t width) {
  std::string out;
  std::size_t columns = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0U) != 0x80U && ++columns > width) return out + "…";
    if (byte < 0x20 || byte == 0x7f) {
      static constexpr char digits[] = "0123456789abcdef";
      out += {'\\', 'x', digits[byte >> 4U], digits[byte & 15U]};
    } else {
      out += c;
    }
  }
  return out;
}

Style style_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::unspecified:
      return Style::blue;
    case Outcome::released:
      return Style::green;
    case Outcome::lease_expired:
      return Style::yellow;
    case Outcome::holder_closed:
    case Outcome::force_released:
      return Style::magenta;
  }
  return Style::plain;
}

namespace {

constexpr std::array<Outcome, 4> outcomes = {Outcome::released, Outcome::lease_expired,
                                             Outcome::holder_closed, Outcome::force_released};

}  // namespace

std::string word_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::unspecified:
      return "held";
    case Outcome::released:
      return "released";
    case Outcome::lease_expired:
      return "lease_expired";
    case Outcome::holder_closed:
      return "holder_closed";
    case Outcome::force_released:
      return "force_released";
  }
  return "";
}

std::optional<Outcome> outcome_named(const std::string& word) {
  for (const Outcome outcome : outcomes) {
    if (word_of(outcome) == word) return outcome;
  }
  return std::nullopt;
}

}  // namespace permit::cli
