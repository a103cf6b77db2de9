#include "apps/cli/completion.h"

#include <algorithm>

namespace permit::cli {

namespace {

constexpr const char* files = ":file";
constexpr const char* programs = ":command";

// The line so far, read without complaint: half of it may be missing.
class Completion {
 public:
  Completion(const std::vector<std::string>& words, const LiveNames& live) : live_(live) {
    current_ = words.empty() ? "" : words.back();
    for (std::size_t i = 0; i + 1 < words.size(); ++i) read(words[i]);
  }

  std::vector<Candidate> candidates() {
    if (behind_dashes_) {
      const bool takes = command_ != nullptr && command_->takes_command;
      if (takes) add(words_behind_ == 0 ? programs : files, "");
    } else if (pending_ != nullptr) {
      values(*pending_, "");
    } else if (current_.starts_with("--") && current_.find('=') != std::string::npos) {
      const std::size_t equals = current_.find('=');
      const Flag* flag = long_flag(current_.substr(2, equals - 2));
      if (flag != nullptr) values(*flag, current_.substr(0, equals + 1));
    } else if (current_.starts_with("-")) {
      flags();
    } else if (command_ == nullptr || command_->name == "help") {
      verbs();
    } else {
      operand();
    }
    return std::move(found_);
  }

 private:
  void read(const std::string& word) {
    if (behind_dashes_) {
      ++words_behind_;
    } else if (pending_ != nullptr) {
      pending_ = nullptr;
    } else if (word == "--") {
      behind_dashes_ = true;
    } else if (word.starts_with("--")) {
      const Flag* flag = long_flag(word.substr(2));
      if (flag != nullptr && wants_value(*flag)) pending_ = flag;
    } else if (word.size() > 1 && word[0] == '-') {
      read_letters(word);
    } else if (command_ == nullptr) {
      const std::string longer = name_.empty() ? word : name_ + " " + word;
      command_ = command_named(longer);
      name_ = command_ != nullptr && command_->name == "help" ? "" : longer;
    } else if (command_->name == "help") {
      name_ += (name_.empty() ? "" : " ") + word;
    } else {
      ++operands_;
    }
  }

  // Of -p or -qy or -pgpu; only the last letter can want the next word.
  void read_letters(const std::string& word) {
    for (std::size_t i = 1; i < word.size(); ++i) {
      const Flag* flag = find_flag([&](const Flag& known) { return known.letter == word[i]; });
      if (flag == nullptr || flag->type == ValueType::none) continue;
      if (i + 1 == word.size() && wants_value(*flag)) pending_ = flag;
      return;
    }
  }

  static bool wants_value(const Flag& flag) {
    return flag.type != ValueType::none && !flag.value_is_optional;
  }
  static const Command* command_named(const std::string& name) {
    for (const Command& command : commands()) {
      if (command.name == name || (!command.alias.empty() && command.alias == name)) {
        return &command;
      }
    }
    return nullptr;
  }
  const Flag* long_flag(const std::string& name) const {
    return find_flag([&](const Flag& known) { return known.name == name; });
  }
  template <class Predicate>
  const Flag* find_flag(Predicate is_it) const {
    if (command_ != nullptr) {
      for (const Flag& flag : command_->flags) {
        if (is_it(flag)) return &flag;
      }
    }
    for (const Flag& flag : global_flags()) {
      if (is_it(flag)) return &flag;
    }
    return nullptr;
  }

  // --- What may follow ---

  void add(const std::string& word, const std::string& what) { found_.push_back({word, what}); }
  void add_if_begun(const std::string& word, const std::string& what, const std::string& begun) {
    if (word.starts_with(begun)) add(word, what);
  }

  void verbs() {
    const std::string noun = name_.empty() ? "" : name_ + " ";
    for (const Command& command : commands()) {
      if (command.name.starts_with("_") || !command.name.starts_with(noun)) continue;
      const std::string rest = command.name.substr(noun.size());
      const std::size_t space = rest.find(' ');
      const std::string word = rest.substr(0, space);
      if (!found_.empty() && found_.back().word == word) continue;
      add_if_begun(word, space == std::string::npos ? command.summary : "", current_);
    }
    if (command_ == nullptr || !name_.empty()) return;
    add_if_begun("exit-codes", "the table of exit codes", current_);
    add_if_begun("flags", "flags of every command", current_);
  }

  void flags() {
    std::vector<const Flag*> known;
    if (command_ != nullptr) {
      for (const Flag& flag : command_->flags) known.push_back(&flag);
    }
    for (const Flag& flag : global_flags()) {
      if (long_flag(flag.name) == &flag) known.push_back(&flag);  // not hidden by the command's own
    }
    for (const Flag* flag : known) add_if_begun("--" + flag->name, flag->help, current_);
  }

  // `glued` is what of the word stands before the value: "--pool=".
  void values(const Flag& flag, const std::string& glued) {
    const std::string begun = current_.substr(glued.size());
    for (const std::string& choice : flag.choices) {
      if (choice.starts_with(begun)) add(glued + choice, "");
    }
    live_names(flag.completes, glued, begun);
  }

  void operand() {
    if (command_->operands.empty()) return;
    std::size_t place = operands_;
    if (place >= command_->operands.size()) {
      if (!command_->operands.back().repeats) return;
      place = command_->operands.size() - 1;
    }
    const Operand& wanted = command_->operands[place];
    live_names(wanted.completes, "", current_);
    for (const std::string& choice : wanted.choices) add_if_begun(choice, "", current_);
  }

  void live_names(Completes kind, const std::string& glued, const std::string& begun) {
    if (kind == Completes::file) {
      add(files, "");
    } else if (kind == Completes::pool || kind == Completes::permit ||
               kind == Completes::workflow) {
      for (const std::string& name : live_(kind, begun)) {
        if (name.starts_with(begun)) add(glued + name, "");
      }
    }
  }

  const LiveNames& live_;
  std::string current_;
  const Command* command_ = nullptr;
  const Flag* pending_ = nullptr;  // wants its value next
  std::string name_;               // the words of the command so far
  std::size_t operands_ = 0;
  bool behind_dashes_ = false;
  std::size_t words_behind_ = 0;
  std::vector<Candidate> found_;
};

// bash breaks words at : and =, and puts a completion in the place of the last piece only.
constexpr const char* bash_script =
    R"(# permit: completion for bash. Use it so: source <(permit completion bash)
_permit() {
  local line=${COMP_LINE:0:COMP_POINT} word begun glued= breaks=
  local -a words
  read -ra words <<<"$line"
  if [[ $line == *[[:space:]] ]]; then words+=(""); fi
  begun=${words[${#words[@]} - 1]}
  if [[ $COMP_WORDBREAKS == *:* ]]; then breaks+=:; fi
  if [[ $COMP_WORDBREAKS == *=* ]]; then breaks+==; fi
  if [[ -n $breaks && $begun == *[$breaks]* ]]; then glued=${begun%"${begun##*[$breaks]}"}; fi
  COMPREPLY=()
  while IFS=$'\t' read -r word _; do
    case $word in
      :file)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "${begun#"$glued"}")
        ;;
      :command) mapfile -t COMPREPLY < <(compgen -c -- "$begun") ;;
      ?*) COMPREPLY+=("${word#"$glued"}") ;;
    esac
  done < <(command "${words[0]}" __complete -- "${words[@]:1}" 2>/dev/null)
}
complete -F _permit permit
)";

constexpr const char* zsh_script = R"(#compdef permit
# permit: completion for zsh. Use it so: source <(permit completion zsh), behind compinit
_permit() {
  local line word
  local -a found
  for line in "${(@f)$(command "${words[1]}" __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    word=${line%%$'\t'*}
    case $word in
      :file) _files; return ;;
      :command) _command_names -e; return ;;
      ?*) found+=("${word//:/\\:}:${line#*$'\t'}") ;;
    esac
  done
  _describe permit found
}
compdef _permit permit
)";

constexpr const char* fish_script =
    R"(# permit: completion for fish. Use it so: permit completion fish | source
function __permit_complete
    set -l words (commandline -opc)
    set -l begun (commandline -ct)
    for line in (command $words[1] __complete -- $words[2..-1] "$begun" 2>/dev/null)
        switch $line
            case ':file*'
                __fish_complete_path "$begun"
            case ':command*'
                __fish_complete_command
            case '*'
                echo $line
        end
    end
end
complete -c permit -f -a '(__permit_complete)'
)";

}  // namespace

std::vector<Candidate> complete(const std::vector<std::string>& words, const LiveNames& live) {
  return Completion(words, live).candidates();
}

std::string completion_script(const std::string& shell) {
  if (shell == "zsh") return zsh_script;
  if (shell == "fish") return fish_script;
  return bash_script;
}

}  // namespace permit::cli
