#include "apps/cli/help.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "apps/cli/command_line.h"
#include "orchestrator/protocol/nearest.h"

namespace permit::cli {

namespace {

// As wide as the terminal, within reason; a shell that exports COLUMNS says how wide.
std::size_t help_width() {
  constexpr std::size_t widest = 96;
  constexpr std::size_t narrowest = 48;
  const char* columns = std::getenv("COLUMNS");
  const std::size_t width = columns == nullptr ? 0 : std::strtoul(columns, nullptr, 10);
  return width == 0 ? widest : std::clamp(width, narrowest, widest);
}

// Words of `text`, broken into lines that begin with `indent` spaces.
std::string wrapped(const std::string& text, std::size_t indent, std::size_t first_column) {
  std::string out;
  std::size_t column = first_column;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (column + word.size() + 1 > help_width() && column > indent) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    at = end + 1;
  }
  return out;
}

std::string value_of(const Flag& flag) {
  if (flag.type == ValueType::none) return "";
  std::string value = flag.value;
  if (value.empty()) {
    for (const std::string& choice : flag.choices) value += (value.empty() ? "" : "|") + choice;
  }
  return flag.value_is_optional ? "[=" + value + "]" : " " + value;
}

std::string flag_line(const Flag& flag) {
  std::string left = flag.letter == 0 ? "      --" : std::string("  -") + flag.letter + ", --";
  left += flag.name + value_of(flag);
  constexpr std::size_t column = 32;
  std::string text = left;
  if (left.size() + 2 > column) {
    text += "\n" + std::string(column, ' ');
  } else {
    text += std::string(column - left.size(), ' ');
  }
  return text + wrapped(flag.help, column, column) + "\n";
}

std::string usage_of(const Command& command) {
  std::string line = "permit " + command.name;
  if (!command.flags.empty()) line += " [FLAGS]";
  for (const Operand& operand : command.operands) {
    const std::string name = operand.name + (operand.repeats ? "…" : "");
    line += operand.required ? " " + name : " [" + name + "]";
  }
  if (command.takes_command) line += " -- COMMAND [ARGUMENTS…]";
  return line;
}

std::string examples_of(const Command& command) {
  std::string text;
  for (const Example& example : command.examples) {
    text += "  " + example.command + "\n";
    if (!example.what.empty()) text += "      " + example.what + "\n";
  }
  return text;
}

// Which then hides the global one of that name.
bool has_own(const Command& command, const std::string& flag) {
  return std::any_of(command.flags.begin(), command.flags.end(),
                     [&](const Flag& own) { return own.name == flag; });
}

std::string page_of(const Command& command, HelpLength length) {
  std::string page = "permit " + command.name + ": " + command.summary + "\n\n";
  page += examples_of(command);
  page += "\nUsage: " + usage_of(command) + "\n";
  if (!command.alias.empty()) page += "Also:  permit " + command.alias + "\n";
  if (!command.flags.empty()) page += "\n";
  for (const Flag& flag : command.flags) page += flag_line(flag);
  if (length == HelpLength::brief) {
    return page + "\nMore: permit help " + command.name + "    Global flags: permit help\n";
  }
  page += "\nGlobal flags:\n";
  for (const Flag& flag : global_flags()) {
    if (!has_own(command, flag.name)) page += flag_line(flag);
  }
  if (command.details.empty()) return page;
  page += "\n";
  std::size_t at = 0;
  while (at < command.details.size()) {
    const std::size_t end = std::min(command.details.find('\n', at), command.details.size());
    page += wrapped(command.details.substr(at, end - at), 0, 0) + "\n";
    at = end + 1;
  }
  return page;
}

std::string lines_of(const std::string& noun) {
  std::string text;
  for (const Command& command : commands()) {
    if (command.name.starts_with("_")) continue;
    if (!noun.empty() && !command.name.starts_with(noun + " ")) continue;
    std::string line = "  permit " + command.name;
    line += std::string(line.size() < 30 ? 30 - line.size() : 1, ' ');
    text += line + command.summary + "\n";
  }
  return text;
}

std::string overview(HelpLength length) {
  std::string page =
      "permit: durable permits for scarce things. A permit is a slot of a pool; it has one "
      "holder,\n"
      "a lease, and a fence, and the server remembers how every hold ended.\n\n"
      "  permit server start-dev\n"
      "      a server to try things out with\n"
      "  permit run --pool demo -- sh -c 'echo slot $PERMIT_SLOT; sleep 20'\n"
      "      run a command while it holds a slot\n"
      "  permit list\n"
      "      who holds what\n\n";
  page += lines_of("");
  if (length == HelpLength::brief) {
    return page + "\nMore: permit help COMMAND, permit help exit-codes, permit help flags\n";
  }
  return page;
}

constexpr const char* exit_codes_text =
    "Exit codes of all commands:\n"
    "    0  done; of run, the command's own 0\n"
    "    1  the operation failed: a workflow failed, or the server said no\n"
    "    2  wrong usage or configuration; nothing was done\n"
    "    3  no such permit, workflow or pool\n"
    "    4  not authenticated, or not allowed\n"
    "    5  conflict: held already, started already, or changed since it was shown\n"
    "   66  server check, server backup: the database cannot be read\n"
    "   69  no server answers\n"
    "   75  no slot within --wait (run --conflict-exit-code changes it)\n"
    "   78  server: it would not be safe to start like this; nothing was done\n"
    "  124  the permit ended and run stopped the command; or --command-timeout passed\n"
    "  125  run: permit itself failed\n"
    "  126  run: the command cannot be executed\n"
    "  127  run: there is no such command\n"
    "  128+N  the command, or permit, died of signal N (Ctrl-C is 130)\n";

std::string flags_page() {
  std::string page = "Flags of every command, before or after its name:\n";
  for (const Flag& flag : global_flags()) page += flag_line(flag);
  return page;
}

}  // namespace

std::string help_page(const std::string& name, HelpLength length) {
  if (name.empty()) return overview(length);
  if (name == "exit-codes") return exit_codes_text;
  if (name == "flags") return flags_page();
  for (const Command& command : commands()) {
    if (command.name == name || (!command.alias.empty() && command.alias == name)) {
      return page_of(command, length);
    }
  }
  const std::string lines = lines_of(name);
  if (!lines.empty()) return lines + "\nMore: permit help " + name + " VERB\n";
  std::vector<std::string> known = {"exit-codes", "flags"};
  for (const Command& command : commands()) {
    if (!command.name.starts_with("_")) known.push_back(command.name);
  }
  const auto nearest = nearest_name(name, known);
  throw UsageError("there is no \"permit " + name + "\"" +
                   (nearest ? "; did you mean " + *nearest + "?" : "; see: permit help"));
}

// --- Man pages ---

namespace {

// The code point that begins at text[at], whose bytes `at` then has passed but for the last.
std::string roff_character(const std::string& text, std::size_t& at) {
  const auto first = static_cast<unsigned char>(text[at]);
  const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
  std::uint32_t code = first & (0x3fU >> static_cast<unsigned>(more));
  for (int i = 0; i < more && at + 1 < text.size(); ++i) {
    code = (code << 6U) | (static_cast<unsigned char>(text[++at]) & 0x3fU);
  }
  char name[16];
  std::snprintf(name, sizeof name, "\\[u%04X]", static_cast<unsigned>(code));
  return name;
}

// Text as it is: what roff would read, or print as something nicer that cannot be copied, is named.
std::string roff(const std::string& text) {
  static const std::map<char, std::string> names = {{'\\', "\\e"},  {'-', "\\-"},   {'\'', "\\(aq"},
                                                    {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"}};
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.' && (i == 0 || text[i - 1] == '\n')) out += "\\&";
    const auto name = names.find(c);
    if (name != names.end()) {
      out += name->second;
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      out += roff_character(text, i);
    } else {
      out += c;
    }
  }
  return out;
}

std::string roff_flag(const Flag& flag) {
  std::string names = flag.letter == 0 ? "" : std::string("\\fB\\-") + flag.letter + "\\fR, ";
  names += "\\fB\\-\\-" + roff(flag.name) + "\\fR" + roff(value_of(flag));
  return ".TP\n" + names + "\n" + roff(flag.help) + "\n";
}

std::string header(const std::string& title, const std::string& summary) {
  return ".TH \"" + title + "\" 1 \"\" \"permit\" \"Permit\"\n.SH NAME\n" + roff(title) + " \\- " +
         roff(summary) + "\n";
}

}  // namespace

std::string man_page(const Command& command) {
  std::string title = "permit-" + command.name;
  std::replace(title.begin(), title.end(), ' ', '-');
  std::string page = header(title, command.summary);
  page += ".SH SYNOPSIS\n\\fB" + roff(usage_of(command)) + "\\fR\n.SH EXAMPLES\n";
  for (const Example& example : command.examples) {
    page += ".TP\n\\fB" + roff(example.command) + "\\fR\n";
    if (!example.what.empty()) page += roff(example.what) + "\n";
  }
  if (!command.details.empty()) page += ".SH DESCRIPTION\n";
  for (const char c : roff(command.details)) page += c == '\n' ? "\n.PP\n" : std::string(1, c);
  if (!command.details.empty()) page += "\n";
  if (!command.flags.empty()) page += ".SH FLAGS\n";
  for (const Flag& flag : command.flags) page += roff_flag(flag);
  page += ".SH GLOBAL FLAGS\n";
  for (const Flag& flag : global_flags()) {
    if (!has_own(command, flag.name)) page += roff_flag(flag);
  }
  return page + ".SH SEE ALSO\n\\fBpermit\\fR(1)\n";
}

std::string man_overview() {
  std::string page = header("permit", "durable permits for scarce things");
  page += ".SH SYNOPSIS\n\\fBpermit\\fR COMMAND [FLAGS]\n.SH COMMANDS\n";
  for (const Command& command : commands()) {
    if (command.name.starts_with("_")) continue;
    page += ".TP\n\\fBpermit " + roff(command.name) + "\\fR\n" + roff(command.summary) + "\n";
  }
  page += ".SH GLOBAL FLAGS\n";
  for (const Flag& flag : global_flags()) page += roff_flag(flag);
  return page + ".SH EXIT CODES\n.nf\n" + roff(exit_codes_text) + ".fi\n";
}

}  // namespace permit::cli
