// A scripted command, taken apart: words and key=value pairs, with quotes kept together.
#pragma once

#include <boost/describe.hpp>
#include <boost/mp11.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/protocol/common.h"

namespace permit::test {

class Words {
 public:
  explicit Words(const std::string& text);

  // The next word that is not key=value; empty if there is none. Without its quotes.
  std::string next();
  bool has_next() const { return next_ < words_.size(); }
  // The same as a JSON value: what is quoted stays so.
  std::string next_json();

  bool has(const std::string& key);
  // Without its quotes; `absent` if the key is not there.
  std::string get(const std::string& key, const std::string& absent = "");
  std::string json(const std::string& key);
  std::optional<Payloads> payloads(const std::string& key);
  Duration duration(const std::string& key);
  int number(const std::string& key, int absent = 0);
  std::vector<SlotName> slots(const std::string& key);
  template <class E>
  E enumerator(const std::string& key);
  // Whether the bare word is there; takes it out.
  bool flag(const std::string& word);

  // Throws if anything was given that nobody has asked for: a misspelling.
  void done() const;

 private:
  std::vector<std::string> words_;
  std::size_t next_ = 0;
  std::map<std::string, std::string> named_;
  std::map<std::string, bool> used_;
};

// "5s", "1.5s", "100ms", "10m", "2h", "3d".
Duration parse_span(const std::string& text);

// Splits at `separator`, but not inside quotes, and trims.
std::vector<std::string> split(const std::string& text, char separator);

[[noreturn]] void fail_script(const std::string& message);

template <class E>
E Words::enumerator(const std::string& key) {
  std::string name = get(key);
  if (name.empty()) return E{};
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  bool found = false;
  E value{};
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<E>>([&](auto enumerator) {
    if (name != enumerator.name) return;
    value = enumerator.value;
    found = true;
  });
  if (!found) fail_script(key + " cannot be " + name);
  return value;
}

}  // namespace permit::test
