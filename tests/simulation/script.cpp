#include "tests/simulation/script.h"

#include <array>
#include <charconv>
#include <sstream>
#include <stdexcept>

namespace permit::simulation {

namespace {

constexpr std::string_view first_line = "permit simulation script 1";
constexpr std::array<std::string_view, 8> names = {"setup",  "deliver", "act",  "inject",
                                                   "settle", "polls",   "time", "drain"};

Phase phase_of(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<Phase>(i);
  }
  throw std::invalid_argument("no phase is called " + std::string(name));
}

Segment segment_of(const std::string& line) {
  Segment segment;
  std::istringstream words(line.substr(0, line.find('#')));
  std::string word;
  words >> word;
  segment.phase = phase_of(word);
  while (words >> word) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) {
      throw std::invalid_argument("a choice is a number, not " + word);
    }
    segment.choices.push_back(value);
  }
  return segment;
}

}  // namespace

std::size_t Script::choices() const {
  std::size_t count = 0;
  for (const Segment& segment : segments) count += segment.choices.size();
  return count;
}

std::string to_text(const Script& script) {
  std::ostringstream text;
  text << first_line << "\n";
  if (!script.broke.empty()) {
    std::string broke = script.broke;
    for (char& letter : broke) {
      if (letter == '\n') letter = ' ';
    }
    text << "# broke: " << broke << "\n";
  }
  text << "plan " << to_text(script.plan) << "\n";
  for (const Segment& segment : script.segments) {
    text << names[static_cast<std::size_t>(segment.phase)];
    for (const std::uint64_t choice : segment.choices) text << " " << choice;
    if (!segment.notes.empty()) text << "  # " << segment.notes;
    text << "\n";
  }
  return text.str();
}

Script script_of(const std::string& text) {
  Script script;
  std::istringstream lines(text);
  std::string line;
  if (!std::getline(lines, line) || line != first_line) {
    throw std::invalid_argument("a script begins with \"" + std::string(first_line) + "\"");
  }
  constexpr std::string_view broke = "# broke: ";
  while (std::getline(lines, line)) {
    if (line.starts_with(broke)) script.broke = line.substr(broke.size());
    if (line.empty() || line[0] == '#') continue;
    if (line.starts_with("plan ")) {
      script.plan = plan_of(line.substr(5));
    } else {
      script.segments.push_back(segment_of(line));
    }
  }
  return script;
}

}  // namespace permit::simulation
