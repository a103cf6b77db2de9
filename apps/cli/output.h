// How answers look: tables and sentences for people, JSON for programs. What was asked for goes to
// stdout, words about it go to stderr.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/cli/settings.h"
#include "orchestrator/protocol/common.h"

namespace permit::cli {

enum class Format { text, json, jsonl, none };
enum class TimeFormat { relative, iso, raw };
enum class Style { plain, bold, dim, green, blue, yellow, magenta, red };

class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string name;
    Align align = Align::left;
  };
  struct Cell {
    std::string text;
    Style style = Style::plain;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.empty(); }
  // Two spaces between columns, nothing after the last letter of a line.
  std::string text(bool color) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

class Output {
 public:
  // `quiet` leaves out what note() says.
  Output(const Settings& settings, bool quiet);

  Format format() const { return format_; }
  bool is_text() const { return format_ == Format::text; }

  // To stdout, each with a newline. text() only if the format is text; json() only if not, one
  // document or one line of many; "none" prints neither.
  void text(const std::string& line) const;
  void table(const Table& table) const;
  void json(const std::string& document) const;
  // A list: as `document`, or each of `lines` by itself.
  void json(const std::string& document, const std::vector<std::string>& lines) const;

  // To stderr, as "permit: …": what happens, not what was asked for.
  void note(const std::string& sentence) const;

  std::string paint(const std::string& text, Style style) const;
  // A moment that has passed: "4m 12s ago", RFC 3339, or microseconds since 1970.
  std::string moment(Time time, Time now) const;
  // The same, but a clock's time where `moment` says how long ago.
  std::string clock(Time time) const;

 private:
  Format format_ = Format::text;
  TimeFormat time_format_ = TimeFormat::relative;
  bool color_ = false;
  bool quiet_ = false;
};

// Text from outside, fit for a terminal: control characters are escaped, so that a name cannot
// move the cursor, and it is cut to `width` letters.
std::string printable(const std::string& text, std::size_t width = 120);

Style style_of(Outcome outcome);
// "released", "lease_expired", …
std::string word_of(Outcome outcome);
std::optional<Outcome> outcome_named(const std::string& word);

}  // namespace permit::cli
