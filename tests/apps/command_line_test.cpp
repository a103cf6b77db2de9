// What is typed: words, durations, what completion offers, and how answers are laid out.
#include "apps/cli/command_line.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "apps/cli/completion.h"
#include "apps/cli/duration_text.h"
#include "apps/cli/help.h"
#include "apps/cli/output.h"

using namespace permit;
using namespace permit::cli;
using namespace std::chrono_literals;

namespace {

using Words = std::vector<std::string>;

std::string complaint(const Words& words) {
  try {
    parse_command_line(words);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

std::string duration_complaint(const std::string& text) {
  try {
    parse_human_duration("--lease", text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

Words completed(const Words& words) {
  const LiveNames live = [](Completes kind, const std::string&) -> Words {
    if (kind == Completes::pool) return {"gpu-pool", "lab"};
    if (kind == Completes::permit) return {"permit:gpu-pool:0", "permit:lab:rig"};
    if (kind == Completes::workflow) return {"train-1", "train-2"};
    return {};
  };
  Words found;
  for (const Candidate& candidate : complete(words, live)) found.push_back(candidate.word);
  return found;
}

bool contains(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

// --- Durations ---

TEST_CASE("a duration is numbers with units, from large to small") {
  CHECK(parse_human_duration("d", "45s") == 45s);
  CHECK(parse_human_duration("d", "1h30m") == 90min);
  CHECK(parse_human_duration("d", "250ms") == 250ms);
  CHECK(parse_human_duration("d", "2d") == 48h);
  CHECK(parse_human_duration("d", "0.5h") == 30min);
  CHECK(parse_human_duration("d", "0s") == 0s);
}

TEST_CASE("what is no duration is refused with a way out") {
  CHECK(duration_complaint("45") == "--lease: \"45\" is not a duration; say 45s or 45m");
  CHECK(duration_complaint("1h30") == "--lease: \"1h30\" is not a duration; say 30s or 30m");
  CHECK(duration_complaint("5 m").find("is not a duration") != std::string::npos);
  CHECK(duration_complaint("3w").find("its units are d, h, m, s and ms") != std::string::npos);
  CHECK(duration_complaint("1s1h").find("from large to small") != std::string::npos);
  CHECK(duration_complaint("1m1m").find("from large to small") != std::string::npos);
  CHECK(duration_complaint("-5s").find("is not a duration") != std::string::npos);
  CHECK(duration_complaint("366d").find("the longest is 365d") != std::string::npos);
  CHECK(duration_complaint("").find("write 45s") != std::string::npos);
}

TEST_CASE("a duration is shown with its two largest units") {
  CHECK(show_duration(0s) == "0ms");
  CHECK(show_duration(250ms) == "250ms");
  CHECK(show_duration(36s) == "36s");
  CHECK(show_duration(114s) == "1m 54s");
  CHECK(show_duration(2h + 5min) == "2h 05m");
  CHECK(show_duration(76h) == "3d 04h");
  CHECK(show_duration(-36s) == "-36s");
}

TEST_CASE("a duration that is typed out reads back the same") {
  for (const Duration duration : {Duration(0), Duration(90s), Duration(25h), Duration(1500ms)}) {
    CHECK(parse_human_duration("d", type_duration(duration)) == duration);
  }
  CHECK(type_duration(90min) == "1h30m");
}

// --- Words ---

TEST_CASE("global flags stand before or behind the verb") {
  const Words before = {"--output", "json", "-q", "pool", "--yes", "list"};
  const Words behind = {"pool", "list", "-qy", "--output=json"};
  for (const Words& words : {before, behind}) {
    const Arguments parsed = parse_command_line(words);
    REQUIRE(parsed.command != nullptr);
    CHECK(parsed.command->name == "pool list");
    CHECK(parsed.text("output") == "json");
    CHECK(parsed.has("quiet"));
    CHECK(parsed.has("yes"));
    CHECK(parsed.operands.empty());
  }
}

TEST_CASE("a command's own letter wins over a global one") {
  const Arguments own = parse_command_line({"workflow", "list", "-q", "WorkflowId = 'a'"});
  CHECK(own.text("query") == "WorkflowId = 'a'");
  CHECK_FALSE(own.has("quiet"));
  const Arguments global = parse_command_line({"-q", "workflow", "list"});
  CHECK(global.has("quiet"));
  CHECK_FALSE(global.has("query"));
}

TEST_CASE("flags that repeat keep their order, and others are not given twice") {
  const Arguments parsed =
      parse_command_line({"workflow", "start", "a", "--type", "T", "-i", "1", "--input=2", "-i3"});
  CHECK(parsed.all("input") == Words{"1", "2", "3"});
  CHECK(parsed.operand(0) == "a");
  CHECK(parsed.operand(1).empty());
  CHECK(complaint({"workflow", "start", "--type", "A", "--type", "B"}) == "--type is given twice");
}

TEST_CASE("an alias is its command") { CHECK(parse_command_line({"ls"}).command->name == "list"); }

TEST_CASE("help is asked for anywhere") {
  CHECK(parse_command_line({"-h"}).wants_help);
  CHECK(parse_command_line({"pool", "--help"}).help_for == "pool");
  const Arguments parsed = parse_command_line({"pool", "set", "-h"});
  CHECK(parsed.wants_help);
  CHECK(parsed.help_for == "pool set");
  CHECK(parse_command_line({}).command == nullptr);
}

TEST_CASE("what is misspelt gets one suggestion") {
  CHECK(complaint({"lisst"}) == "there is no \"permit lisst\"; did you mean list?");
  CHECK(complaint({"pool", "drian"}) == "there is no \"permit pool drian\"; did you mean drain?");
  CHECK(complaint({"list", "--closd"}) ==
        "permit list has no flag --closd; did you mean --closed?");
  CHECK(complaint({"list", "--ouput", "json"}) ==
        "permit list has no flag --ouput; did you mean --output?");
  CHECK(complaint({"completion", "bsh"}) == "\"bsh\" is no SHELL; did you mean bash?");
  CHECK(complaint({"xyzzy"}).find("did you mean") == std::string::npos);
  // What is not in the help is not suggested.
  CHECK(complaint({"__complet"}).find("did you mean") == std::string::npos);
}

TEST_CASE("what does not fit is refused before anything runs") {
  CHECK(complaint({"list", "-o", "xml"}) ==
        "--output: \"xml\" is not one of text, json, jsonl, none");
  CHECK(complaint({"workflow", "list", "--limit", "0"}) ==
        "--limit: \"0\" is not a whole number from 1 to 100000");
  CHECK(complaint({"workflow", "list", "--limit", "5x"}).find("whole number") != std::string::npos);
  CHECK(complaint({"list", "--yes=1"}) == "--yes takes no value");
  CHECK(complaint({"list", "--output"}).starts_with("--output needs a value"));
  CHECK(complaint({"pool", "describe"}).starts_with("permit pool describe needs POOL"));
  CHECK(
      complaint({"pool", "describe", "a", "b"}).starts_with("permit pool describe takes no \"b\""));
  CHECK(complaint({"list", "--", "a"}) == "permit list takes nothing after --");
  CHECK(complaint({"pool"}).starts_with("permit pool what? It takes list, describe"));
  CHECK(complaint({"list", "--command-timeout", "5"}).find("say 5s or 5m") != std::string::npos);
}

TEST_CASE("every command can be found by its name, and so can its help") {
  for (const Command& command : commands()) {
    if (command.name.starts_with("_")) continue;
    CAPTURE(command.name);
    CHECK(help_page(command.name, HelpLength::full).find(command.summary) != std::string::npos);
    for (const Flag& flag : command.flags) {
      CHECK_FALSE(flag.help.empty());
      const bool is_choice = flag.type == ValueType::choice;
      CHECK(is_choice == !flag.choices.empty());
    }
  }
}

// --- Completion ---

TEST_CASE("verbs and flags are completed from the tables") {
  CHECK(completed({"pool", "d"}) == Words{"describe", "drain", "delete"});
  CHECK(completed({"work"}) == Words{"workflow", "worker"});
  CHECK(completed({"--output", "json", "pool", "li"}) == Words{"list"});
  CHECK(completed({"pool", "set", "--cap"}) == Words{"--capacity"});
  CHECK(contains(completed({"list", "--"}), "--yes"));
  CHECK(completed({"help", "pool", "un"}) == Words{"undrain"});
  CHECK_FALSE(contains(completed({"_"}), "__complete"));
}

TEST_CASE("values are completed from choices, or from the server") {
  CHECK(completed({"list", "-o", "js"}) == Words{"json", "jsonl"});
  CHECK(completed({"list", "--output=js"}) == Words{"--output=json", "--output=jsonl"});
  CHECK(completed({"completion", ""}) == Words{"bash", "zsh", "fish"});
  CHECK(completed({"pool", "describe", "g"}) == Words{"gpu-pool"});
  CHECK(completed({"describe", "permit:l"}) == Words{"permit:lab:rig"});
  CHECK(completed({"workflow", "cancel", "-w", ""}) == Words{"train-1", "train-2"});
  CHECK(completed({"workflow", "cancel", "--workflow-id=train-2"}) ==
        Words{"--workflow-id=train-2"});
  CHECK(completed({"list", "--config-file", "x"}) == Words{":file"});
  CHECK(completed({"pool", "describe", "gpu-pool", ""}).empty());
}

// --- Layout ---

TEST_CASE("a table has two spaces between columns and none at the end of a line") {
  Table table({{"NAME"}, {"N", Table::Align::right}, {"LAST"}});
  table.add({{"a"}, {"1"}, {"x"}});
  table.add({{"größe"}, {"100"}, {""}});
  CHECK(table.text(false) ==
        "NAME     N  LAST\n"
        "a        1  x\n"
        "größe  100\n");
  CHECK(table.text(true).find("\x1b[1mNAME\x1b[0m") == 0);
}

TEST_CASE("a name from outside cannot move the cursor") {
  CHECK(printable("a\x1b[2Jb\n") == "a\\x1b[2Jb\\x0a");
  CHECK(printable("abcdef", 3) == "abc…");
}

// --- Man pages ---

TEST_CASE("a man page holds nothing that roff would read or print as something else") {
  Command command;
  command.name = "pool set";
  command.summary = "it's a test";
  command.details = ".dot\nback\\slash … ~ ^ `";
  command.examples = {{"permit pool set 'a b' --x-y", ""}};
  const std::string page = man_page(command);
  CHECK(page.find("it\\(aqs a test") != std::string::npos);
  CHECK(page.find("\n\\&.dot\n.PP\nback\\eslash \\[u2026] \\(ti \\(ha \\(ga\n") !=
        std::string::npos);
  CHECK(page.find("\\fBpermit pool set \\(aqa b\\(aq \\-\\-x\\-y\\fR\n.") != std::string::npos);
  CHECK(std::all_of(page.begin(), page.end(), [](char c) { return c >= 0; }));
}
