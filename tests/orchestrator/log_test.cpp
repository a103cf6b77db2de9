#include "orchestrator/protocol/log.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>
#include <vector>

#include "orchestrator/protocol/time_text.h"

namespace permit {
namespace {

const Time moment = *parse_time("2026-08-01T08:31:40.000007Z");

LogLine closed_permit() {
  LogLine line;
  line.level = LogLine::Level::warn;
  line.event = "permit_closed";
  line.workflow_id = "permit:gpu-pool:1";
  line.pool = "gpu-pool";
  line.slot = "1";
  line.outcome = "lease_expired";
  line.cause = "timer";
  line.holder = "train-vit-04";
  line.fence = 1'099'511'627'777;
  line.held_ms = 264'000;
  return line;
}

std::string json(const LogLine& line) {
  std::string text;
  append_json_line(line, moment, text);
  return text;
}

// With the machine in UTC.
std::string text(const LogLine& line) {
  setenv("TZ", "UTC", 1);
  tzset();
  std::string text;
  append_text_line(line, moment, text);
  return text;
}

// What a line is made of that must never come from a name.
bool is_tame(const std::string& line) {
  for (const char c : line) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) return false;
  }
  return line.find("\xC2\x9B") == std::string::npos &&      // CSI in one character
         line.find("\xE2\x80\xAE") == std::string::npos &&  // right to left from here
         line.find("\xE2\x80\xA8") == std::string::npos;    // LINE SEPARATOR
}

const std::vector<std::string> hostile = {
    "two\nlines",
    "back\rwards",
    "\x1b[2J\x1b]0;title\x07",
    "\xC2\x9B"
    "2J",
    "\xE2\x80\xAE"
    "txt.exe",
    "\xE2\x80\xA8"
    "next",
    "\xff\xfe not UTF-8 \xc3",
    "quote\" and \\ and \x7f",
    "{\"level\":\"error\"}",
    std::string("nul\0nul", 7),
    " leading=equals ",
};

}  // namespace

TEST_CASE(
    "a line of the log as JSON has its keys in one order, and only those that say something") {
  CHECK(json(closed_permit()) ==
        R"({"ts":"2026-08-01T08:31:40.000007Z","level":"warn","event":"permit_closed",)"
        R"("workflow_id":"permit:gpu-pool:1","pool":"gpu-pool","slot":"1",)"
        R"("outcome":"lease_expired","cause":"timer","holder":"train-vit-04",)"
        R"("fence":1099511627777,"held_ms":264000})");
  LogLine acquired;
  acquired.event = "permit_acquired";
  acquired.wait_ms = 0;
  acquired.msg = "m";
  CHECK(json(acquired) == R"({"ts":"2026-08-01T08:31:40.000007Z","level":"info",)"
                          R"("event":"permit_acquired","msg":"m","wait_ms":0})");
}

TEST_CASE("a line of the log as text begins with what it is about") {
  CHECK(text(closed_permit()) ==
        "08:31:40 WARN permit_closed gpu-pool:1 lease_expired cause=timer holder=train-vit-04 "
        "fence=1099511627777 held=4m24s");
  LogLine changed;
  changed.event = "pool_changed";
  changed.pool = "gpu";
  changed.by = "ana";
  changed.reason = "a new \"fan\"";
  changed.msg = "drained slot 2";
  CHECK(text(changed) ==
        R"(08:31:40 INFO pool_changed gpu by=ana reason="a new \"fan\"": drained slot 2)");
}

TEST_CASE("spans in text are as long as they need to be") {
  const auto held = [](std::int64_t ms) {
    LogLine line;
    line.event = "e";
    line.held_ms = ms;
    return text(line).substr(std::string("08:31:40 INFO e ").size());
  };
  CHECK(held(0) == "held=0ms");
  CHECK(held(999) == "held=999ms");
  CHECK(held(36'250) == "held=36.2s");
  CHECK(held(61'000) == "held=1m01s");
  CHECK(held(7'500'000) == "held=2h05m");
  CHECK(held(273'600'000) == "held=3d04h");
}

TEST_CASE("nothing that anybody can name breaks a line or moves a cursor") {
  for (const std::string& name : hostile) {
    CAPTURE(name);
    LogLine line = closed_permit();
    line.holder = name;
    line.workflow_id = name;
    line.pool = name;
    line.msg = name;
    line.error = name;
    CHECK(is_tame(text(line)));
    const std::string as_json = json(line);
    CHECK(is_tame(as_json));
    const auto parsed = nlohmann::json::parse(as_json);  // throws if it is none, or no UTF-8
    CHECK(parsed.at("event") == "permit_closed");
    CHECK(parsed.at("level") == "warn");
    CHECK(parsed.contains("holder"));
  }
}

TEST_CASE("what is escaped in a line of JSON reads back as it was") {
  LogLine line;
  line.event = "e";
  line.holder = "\xC2\x9B \x7F \xE2\x80\xAE \xF3\xA0\x80\x81 \xC3\xA4 \xF0\x9F\x98\x80";
  const std::string as_json = json(line);
  CHECK(as_json.find(R"("\u009b \u007f \u202e \udb40\udc01 )"
                     "\xC3\xA4 \xF0\x9F\x98\x80\"") != std::string::npos);
  CHECK(nlohmann::json::parse(as_json).at("holder") == line.holder);
}

TEST_CASE("a text of any length makes a line of bounded length, cut between characters") {
  std::string umlauts = "x";
  while (umlauts.size() < 50'000) umlauts += "\xC3\xA4";
  LogLine line;
  line.event = "e";
  line.error = umlauts;
  CHECK(json(line).size() < 1'200);
  CHECK(json(line).find("\\ufffd") == std::string::npos);
  CHECK(text(line).find("\\x") == std::string::npos);
}

TEST_CASE("a log leaves out what is not grave enough, and writes the rest at once") {
  std::string written;
  int writes = 0;
  Log log(
      LogFormat::json, LogLine::Level::info,
      [&](std::string_view lines) {
        written += lines;
        ++writes;
      },
      [](LogLine::Level level) { return level == LogLine::Level::warn ? "<4>" : "<6>"; });
  LogLine line;
  line.event = "one";
  log.write(line);
  line.level = LogLine::Level::debug;
  log.write(line);
  line.level = LogLine::Level::warn;
  log.write(line);
  CHECK(writes == 0);
  log.flush();
  log.flush();
  CHECK(writes == 1);
  CHECK(written.starts_with("<6>{"));
  CHECK(written.find("\n<4>{") != std::string::npos);
  CHECK(written.find("debug") == std::string::npos);
  log.set_level(LogLine::Level::debug);
  CHECK(log.wants(LogLine::Level::debug));
}

TEST_CASE("levels have names, and nothing else is one") {
  for (const char* name : {"debug", "info", "warn", "error"}) {
    CHECK(name_of(log_level_named(name).value()) == name);
  }
  for (const char* name : {"", "INFO", "warning", "trace"}) CHECK(!log_level_named(name));
}

}  // namespace permit
