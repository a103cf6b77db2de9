#include "apps/cli/command_line.h"

#include <algorithm>
#include <charconv>

#include "apps/cli/duration_text.h"
#include "orchestrator/protocol/nearest.h"

namespace permit::cli {

// --- Arguments ---

std::optional<std::string> Arguments::text(const std::string& flag) const {
  const auto found = flags_.find(flag);
  if (found == flags_.end()) return std::nullopt;
  return found->second.back();
}

std::string Arguments::text_or(const std::string& flag, std::string otherwise) const {
  return text(flag).value_or(std::move(otherwise));
}

std::optional<std::int64_t> Arguments::number(const std::string& flag) const {
  const auto given = text(flag);
  if (!given) return std::nullopt;
  return parse_number("--" + flag, *given, INT64_MIN, INT64_MAX);
}

std::optional<Duration> Arguments::duration(const std::string& flag) const {
  const auto given = text(flag);
  if (!given) return std::nullopt;
  return parse_human_duration("--" + flag, *given);
}

const std::vector<std::string>& Arguments::all(const std::string& flag) const {
  static const std::vector<std::string> none;
  const auto found = flags_.find(flag);
  return found == flags_.end() ? none : found->second;
}

std::string Arguments::operand(std::size_t index) const {
  return index < operands.size() ? operands[index] : "";
}

// --- Values ---

std::int64_t parse_number(const std::string& what, const std::string& text, std::int64_t min,
                          std::int64_t max) {
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && stop == text.data() + text.size() && value >= min && value <= max) {
    return value;
  }
  std::string wanted = "a whole number";
  if (max != INT64_MAX) {
    wanted += " from " + std::to_string(min) + " to " + std::to_string(max);
  } else if (min > INT64_MIN) {
    wanted += " of at least " + std::to_string(min);
  }
  throw UsageError(what + ": \"" + text + "\" is not " + wanted);
}

namespace {

void check_value(const Flag& flag, const std::string& value) {
  const std::string what = "--" + flag.name;
  switch (flag.type) {
    case ValueType::none:
    case ValueType::text:
      return;
    case ValueType::number:
      parse_number(what, value, flag.min, flag.max);
      return;
    case ValueType::duration:
      parse_human_duration(what, value);
      return;
    case ValueType::choice:
      if (std::find(flag.choices.begin(), flag.choices.end(), value) != flag.choices.end()) return;
      std::string known;
      for (const std::string& choice : flag.choices) known += (known.empty() ? "" : ", ") + choice;
      throw UsageError(what + ": \"" + value + "\" is not one of " + known);
  }
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known,
                         const std::string& otherwise) {
  const auto nearest = nearest_name(word, known);
  return nearest ? "; did you mean " + *nearest + "?" : "; " + otherwise;
}

}  // namespace

// --- Parsing ---

class CommandLine {
 public:
  explicit CommandLine(const std::vector<std::string>& words) {
    const auto dashes = std::find(words.begin(), words.end(), "--");
    words_.assign(words.begin(), dashes);
    has_dashes_ = dashes != words.end();
    if (has_dashes_) result_.rest.assign(dashes + 1, words.end());
  }

  Arguments parse() {
    find_command();
    for (; at_ < words_.size(); ++at_) {
      const std::string& word = words_[at_];
      if (word.starts_with("--")) {
        long_flag(word.substr(2));
      } else if (word.size() > 1 && word[0] == '-') {
        short_flags(word.substr(1));
      } else {
        result_.operands.push_back(word);
      }
    }
    if (!result_.wants_help && result_.command != nullptr) check_operands();
    return std::move(result_);
  }

 private:
  // Global flags may stand before the verb, so those are read on the way.
  void find_command() {
    std::string name;
    std::size_t place = 0;
    while (place < words_.size()) {
      const std::string word = words_[place];
      if (word == "-h" || word == "--help") {
        result_.wants_help = true;
        result_.help_for = name;
        words_.erase(words_.begin() + static_cast<std::ptrdiff_t>(place));
        continue;
      }
      if (word.size() > 1 && word[0] == '-') {
        place += takes_next_word(word) ? 2U : 1U;
        continue;
      }
      std::string longer = name;
      if (!name.empty()) longer += ' ';
      longer += word;
      words_.erase(words_.begin() + static_cast<std::ptrdiff_t>(place));
      if (matches(longer)) {
        before_verb_ = place;
        return;
      }
      if (name.empty() && !is_noun(word)) unknown(word, "", verbs(""));
      if (!name.empty()) unknown(word, name, verbs(name));
      name = longer;
    }
    if (name.empty() || result_.wants_help) {
      result_.help_for = name;
      return;
    }
    std::string known;
    for (const std::string& verb : verbs(name)) known += (known.empty() ? "" : ", ") + verb;
    throw UsageError("permit " + name + " what? It takes " + known);
  }

  bool takes_next_word(const std::string& word) const {
    const Flag* flag = nullptr;
    if (word.starts_with("--")) {
      if (word.find('=') != std::string::npos) return false;
      flag = find_flag([&](const Flag& known) { return known.name == word.substr(2); });
    } else if (word.size() == 2) {
      flag = find_flag([&](const Flag& known) { return known.letter == word[1]; });
    }
    return flag != nullptr && flag->type != ValueType::none && !flag->value_is_optional;
  }

  bool matches(const std::string& name) {
    for (const Command& command : commands()) {
      if (command.name != name && (command.alias.empty() || command.alias != name)) continue;
      result_.command = &command;
      result_.help_for = command.name;
      return true;
    }
    return false;
  }

  static bool is_noun(const std::string& word) {
    return std::any_of(commands().begin(), commands().end(), [&](const Command& command) {
      return command.name.starts_with(word + " ");
    });
  }

  // The words that may follow `noun`, or begin a line.
  static std::vector<std::string> verbs(const std::string& noun) {
    std::vector<std::string> words;
    for (const Command& command : commands()) {
      std::string rest = command.name;
      if (!noun.empty()) {
        if (!rest.starts_with(noun + " ")) continue;
        rest.erase(0, noun.size() + 1);
      }
      const std::string word = rest.substr(0, rest.find(' '));
      if (word.starts_with("_")) continue;
      if (words.empty() || words.back() != word) words.push_back(word);
    }
    return words;
  }

  [[noreturn]] static void unknown(const std::string& word, const std::string& noun,
                                   const std::vector<std::string>& known) {
    const std::string line = noun.empty() ? "permit" : "permit " + noun;
    throw UsageError("there is no \"" + line + " " + word + "\"" +
                     did_you_mean(word, known, "see: permit help " + noun));
  }

  // A letter may be one thing to all commands and another to this one. In front of the verb it is
  // the former, behind it the latter.
  template <class Predicate>
  const Flag* find_flag(Predicate is_it) const {
    static const std::vector<Flag> none;
    const std::vector<Flag>& own = result_.command == nullptr ? none : result_.command->flags;
    const bool behind = at_ >= before_verb_;
    for (const auto* flags : {behind ? &own : &global_flags(), behind ? &global_flags() : &own}) {
      const auto found = std::find_if(flags->begin(), flags->end(), is_it);
      if (found != flags->end()) return &*found;
    }
    return nullptr;
  }

  void long_flag(const std::string& text) {
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (name == "help") {
      result_.wants_help = true;
      return;
    }
    const Flag* flag = find_flag([&](const Flag& known) { return known.name == name; });
    if (flag == nullptr) unknown_flag(name);
    if (equals == std::string::npos) {
      take(*flag, std::nullopt);
    } else {
      take(*flag, text.substr(equals + 1));
    }
  }

  // -p gpu, -pgpu, -qy
  void short_flags(const std::string& letters) {
    for (std::size_t i = 0; i < letters.size(); ++i) {
      const char letter = letters[i];
      if (letter == 'h') {
        result_.wants_help = true;
        continue;
      }
      const Flag* flag = find_flag([&](const Flag& known) { return known.letter == letter; });
      if (flag == nullptr) unknown_flag(std::string(1, letter));
      if (flag->type == ValueType::none || i + 1 == letters.size()) {
        take(*flag, std::nullopt);
        continue;
      }
      take(*flag, letters.substr(i + 1));
      return;
    }
  }

  void take(const Flag& flag, std::optional<std::string> value) {
    if (flag.type == ValueType::none) {
      if (value) throw UsageError("--" + flag.name + " takes no value");
      result_.flags_[flag.name] = {""};
      return;
    }
    if (!value && flag.value_is_optional) value = flag.choices.at(0);
    if (!value) {
      if (at_ + 1 >= words_.size()) {
        throw UsageError("--" + flag.name + " needs a value: --" + flag.name + " " + flag.value);
      }
      value = words_[++at_];
    }
    if (value->empty()) throw UsageError("--" + flag.name + " is given nothing");
    check_value(flag, *value);
    auto& values = result_.flags_[flag.name];
    if (!flag.repeats && !values.empty()) throw UsageError("--" + flag.name + " is given twice");
    values.push_back(std::move(*value));
  }

  [[noreturn]] void unknown_flag(const std::string& name) const {
    std::vector<std::string> known;
    if (result_.command != nullptr) {
      for (const Flag& flag : result_.command->flags) known.push_back("--" + flag.name);
    }
    for (const Flag& flag : global_flags()) known.push_back("--" + flag.name);
    const std::string word = name.size() == 1 ? "-" + name : "--" + name;
    const std::string of = result_.command == nullptr ? "" : " " + result_.command->name;
    throw UsageError("permit" + of + " has no flag " + word +
                     did_you_mean(word, known, "see: permit help" + of));
  }

  void check_operands() const {
    const Command& command = *result_.command;
    const std::size_t given = result_.operands.size();
    std::size_t required = 0;
    for (const Operand& operand : command.operands) required += operand.required ? 1 : 0;
    if (command.takes_command) {
      if (given > 0) {
        throw UsageError("put -- in front of the command: permit " + command.name + " … -- " +
                         result_.operands[0]);
      }
      if (result_.rest.empty()) throw UsageError("say what to run: permit run -p POOL -- COMMAND");
      return;
    }
    if (has_dashes_) throw UsageError("permit " + command.name + " takes nothing after --");
    if (given < required) {
      throw UsageError("permit " + command.name + " needs " + command.operands[given].name +
                       "; see: permit help " + command.name);
    }
    const bool open_ended = !command.operands.empty() && command.operands.back().repeats;
    if (given > command.operands.size() && !open_ended) {
      throw UsageError("permit " + command.name + " takes no \"" +
                       result_.operands[command.operands.size()] + "\"; see: permit help " +
                       command.name);
    }
    for (std::size_t i = 0; i < std::min(given, command.operands.size()); ++i) {
      check_choice(command.operands[i], result_.operands[i]);
    }
  }

  static void check_choice(const Operand& operand, const std::string& value) {
    const std::vector<std::string>& choices = operand.choices;
    if (choices.empty() || std::find(choices.begin(), choices.end(), value) != choices.end()) {
      return;
    }
    std::string known;
    for (const std::string& choice : choices) known += (known.empty() ? "" : ", ") + choice;
    throw UsageError("\"" + value + "\" is no " + operand.name +
                     did_you_mean(value, choices, "say one of " + known));
  }

  std::vector<std::string> words_;
  std::size_t at_ = 0;
  std::size_t before_verb_ = 0;  // so many words are in front of it
  bool has_dashes_ = false;
  Arguments result_;
};

Arguments parse_command_line(const std::vector<std::string>& words) {
  return CommandLine(words).parse();
}

}  // namespace permit::cli
