#include "tests/support/words.h"

#include <stdexcept>

namespace permit::test {

namespace {

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(' ');
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

std::string unquoted(const std::string& text) {
  const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

}  // namespace

void fail_script(const std::string& message) { throw std::runtime_error("script: " + message); }

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  bool in_quotes = false;
  for (const char c : text) {
    if (c == '"') in_quotes = !in_quotes;
    if (c == separator && !in_quotes) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  for (std::string& part : parts) part = trimmed(part);
  return parts;
}

Duration parse_span(const std::string& text) {
  std::size_t end = 0;
  const double number = std::stod(text, &end);
  const std::string unit = text.substr(end);
  static const std::map<std::string, double> units = {
      {"us", 1}, {"ms", 1e3}, {"s", 1e6}, {"m", 60e6}, {"h", 3600e6}, {"d", 24 * 3600e6}};
  const auto found = units.find(unit);
  if (found == units.end()) fail_script(text + " is not a duration");
  return Duration(static_cast<std::int64_t>(number * found->second));
}

Words::Words(const std::string& text) {
  for (const std::string& word : split(text, ' ')) {
    if (word.empty()) continue;
    const auto equals = word.find('=');
    const auto quote = word.find('"');
    if (equals == std::string::npos || quote < equals || word.front() == '{') {
      words_.push_back(word);
    } else {
      named_[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }
}

std::string Words::next() { return has_next() ? unquoted(words_[next_++]) : ""; }

std::string Words::next_json() { return has_next() ? words_[next_++] : ""; }

bool Words::has(const std::string& key) {
  used_[key] = true;
  return named_.contains(key);
}

std::string Words::json(const std::string& key) { return has(key) ? named_.at(key) : ""; }

std::string Words::get(const std::string& key, const std::string& absent) {
  return has(key) ? unquoted(named_.at(key)) : absent;
}

std::optional<Payloads> Words::payloads(const std::string& key) {
  if (!has(key)) return std::nullopt;
  return json_payloads(named_.at(key));
}

Duration Words::duration(const std::string& key) {
  return has(key) ? parse_span(get(key)) : Duration{};
}

int Words::number(const std::string& key, int absent) {
  return has(key) ? std::stoi(get(key)) : absent;
}

std::vector<SlotName> Words::slots(const std::string& key) {
  std::vector<SlotName> slots;
  if (!has(key)) return slots;
  for (const std::string& slot : split(get(key), ',')) slots.emplace_back(slot);
  return slots;
}

bool Words::flag(const std::string& word) {
  for (std::size_t i = next_; i < words_.size(); ++i) {
    if (words_[i] != word) continue;
    words_.erase(words_.begin() + static_cast<std::ptrdiff_t>(i));
    return true;
  }
  return false;
}

void Words::done() const {
  if (has_next()) fail_script("nobody takes the word " + words_[next_]);
  for (const auto& [key, value] : named_) {
    if (!used_.contains(key)) fail_script("nobody takes " + key + "=" + value);
  }
}

}  // namespace permit::test
