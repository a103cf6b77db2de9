#include "tests/lock_history/history.h"

#include <charconv>
#include <functional>
#include <sstream>

namespace permit::lock_history {

namespace {

std::string_view word(std::string_view& rest) {
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  const std::string_view found = rest.substr(0, rest.find(' '));
  if (found.empty()) throw BadHistory("a word is missing");
  rest.remove_prefix(found.size());
  return found;
}

template <class Number>
Number number(std::string_view& rest) {
  const std::string_view text = word(rest);
  Number value{};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) {
    throw BadHistory("not a number: " + std::string(text));
  }
  return value;
}

std::uint64_t run(std::string_view& rest) { return std::hash<std::string_view>()(word(rest)); }

Kind kind_of(std::string_view name) {
  if (name == "acquire") return Kind::acquire;
  if (name == "renew") return Kind::renew;
  if (name == "release") return Kind::release;
  if (name == "read") return Kind::read;
  throw BadHistory("no operation: " + std::string(name));
}

Outcome outcome_of(std::string_view name, Kind kind) {
  if (name == "ok") return Outcome::ok;
  if (name == "info") return Outcome::unknown;
  if (name == "fail") return Outcome::fail;
  if (name == "free" && kind == Kind::read) return Outcome::free;
  if (name == "full" && kind == Kind::acquire) return Outcome::full;
  if (name == "lost" && (kind == Kind::renew || kind == Kind::release)) return Outcome::lost;
  throw BadHistory("no outcome of this operation: " + std::string(name));
}

}  // namespace

std::uint32_t Reader::slot(std::string_view name) {
  const auto known = slots_.find(name);
  if (known != slots_.end()) return known->second;
  const std::size_t colon = name.find(':');
  if (colon == 0 || colon == name.npos) throw BadHistory("no slot: " + std::string(name));
  const auto index = static_cast<std::uint32_t>(history_.slots.size());
  history_.slots.push_back(
      {std::string(name), std::string(name.substr(0, colon)), name.substr(colon + 1) == "*"});
  slots_.emplace(name, index);
  return index;
}

Operation& Reader::request(std::string_view rest) {
  Operation operation;
  operation.invoked = number<Moment>(rest);
  operation.number = number<std::uint64_t>(rest);
  operation.kind = kind_of(word(rest));
  const bool of_slot = operation.kind == Kind::acquire || operation.kind == Kind::read;
  if (of_slot) {
    operation.slot = slot(word(rest));
  } else {
    operation.run = run(rest);
  }
  if (operation.kind == Kind::acquire || operation.kind == Kind::renew) {
    operation.lease = number<Moment>(rest);
  }
  if (!open_.emplace(operation.number, history_.operations.size()).second) {
    throw BadHistory("operation " + std::to_string(operation.number) + " is under way already");
  }
  return history_.operations.emplace_back(operation);
}

void Reader::answer(std::string_view rest) {
  const auto time = number<Moment>(rest);
  const auto id = number<std::uint64_t>(rest);
  const auto found = open_.find(id);
  if (found == open_.end()) throw BadHistory("nobody asked for " + std::to_string(id));
  Operation& operation = history_.operations[found->second];
  open_.erase(found);
  operation.outcome = outcome_of(word(rest), operation.kind);
  if (operation.outcome == Outcome::unknown) return;
  operation.returned = time;
  if (time < operation.invoked) throw BadHistory("an answer before its request");
  if (operation.outcome != Outcome::ok) return;
  if (operation.kind == Kind::acquire) operation.slot = slot(word(rest));
  if (operation.kind == Kind::acquire || operation.kind == Kind::read) {
    operation.fence = number<std::int64_t>(rest);
    operation.run = run(rest);
  }
}

void Reader::line(std::string_view line) {
  if (line.empty() || line.starts_with('#')) return;
  try {
    std::string_view rest = line;
    const std::string_view what = word(rest);
    if (what == ">") {
      request(rest);
    } else if (what == "?") {
      Operation& twin = request(rest);
      twin.counts = false;
      open_.erase(twin.number);
    } else if (what == "<") {
      answer(rest);
    } else if (what == "pool") {
      const std::string pool(word(rest));
      history_.capacities[pool] = number<std::int64_t>(rest);
    } else {
      throw BadHistory("no such line");
    }
  } catch (const BadHistory& bad) {
    throw BadHistory(std::string(bad.what()) + " in: " + std::string(line));
  }
}

void Reader::read(std::istream& text) {
  for (std::string one; std::getline(text, one);) line(one);
  end_of_text();
}

History read_history(const std::string& text) {
  std::istringstream stream(text);
  Reader reader;
  reader.read(stream);
  return reader.take();
}

}  // namespace permit::lock_history
