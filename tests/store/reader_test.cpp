#include "orchestrator/store/reader.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "orchestrator/protocol/json.h"
#include "orchestrator/store/store.h"
#include "tests/store/rows.h"
#include "tests/support/crash_vfs.h"
#include "tests/support/old_schemas.h"

namespace permit::store {
namespace {

using test::CrashVfs;
using namespace test_rows;

std::string refusal(const std::function<void()>& call) {
  try {
    call();
    return {};
  } catch (const Error& error) {
    const bool is_bound = error.reason() == "QUERY_TOO_EXPENSIVE";
    CHECK(error.code() == (is_bound ? ErrorCode::resource_exhausted : ErrorCode::invalid_argument));
    return error.reason();
  }
}

using Ids = std::vector<std::string>;

TEST_CASE("a list shows of a run what its row has") {
  Rows rows;
  Reader reader(rows.database());
  RunRow train = rows.run("train-1");
  train.parent = WorkflowExecution{WorkflowId("nightly"), RunId("nightly-run")};
  rows.insert(train);
  rows.add_closed("train-2", WorkflowExecutionStatus::failed);
  rows.close(rows.grant("gpu", "0"), Outcome::lease_expired, "timer");
  rows.grant("gpu", "1");

  const ListPage page = reader.list_runs("default", ListFilter());
  const std::vector<std::string> expected = {
      R"({"execution":{"workflowId":"permit:gpu:1","runId":"run-4"},"type":{"name":"train"},)"
      R"("startTime":"2026-08-01T12:00:04Z","status":"WORKFLOW_EXECUTION_STATUS_RUNNING",)"
      R"("historyLength":"3","executionTime":"2026-08-01T12:00:04Z","taskQueue":"gpu",)"
      R"("historySizeBytes":"300","fence":104,"deadline":"2026-08-01T12:10:04Z"})",
      R"({"execution":{"workflowId":"permit:gpu:0","runId":"run-3"},"type":{"name":"train"},)"
      R"("startTime":"2026-08-01T12:00:03Z","closeTime":"2026-08-01T12:00:33Z",)"
      R"("status":"WORKFLOW_EXECUTION_STATUS_COMPLETED","historyLength":"3",)"
      R"("executionTime":"2026-08-01T12:00:03Z","taskQueue":"gpu","historySizeBytes":"300",)"
      R"("executionDuration":"30s","fence":103,"outcome":"lease_expired","cause":"timer",)"
      R"("deadline":"2026-08-01T12:10:03Z"})",
      R"({"execution":{"workflowId":"train-2","runId":"run-2"},"type":{"name":"train"},)"
      R"("startTime":"2026-08-01T12:00:02Z","closeTime":"2026-08-01T12:00:12Z",)"
      R"("status":"WORKFLOW_EXECUTION_STATUS_FAILED","historyLength":"3",)"
      R"("executionTime":"2026-08-01T12:00:02Z","taskQueue":"gpu","historySizeBytes":"300",)"
      R"("executionDuration":"10s"})",
      R"({"execution":{"workflowId":"train-1","runId":"run-1"},"type":{"name":"train"},)"
      R"("startTime":"2026-08-01T12:00:01Z","status":"WORKFLOW_EXECUTION_STATUS_RUNNING",)"
      R"("historyLength":"3","parentExecution":{"workflowId":"nightly","runId":"nightly-run"},)"
      R"("executionTime":"2026-08-01T12:00:01Z","taskQueue":"gpu","historySizeBytes":"300"})",
  };
  REQUIRE(page.executions.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ListPage one;
    one.executions = {page.executions[i]};
    CHECK(to_json(one) == R"({"executions":[)" + expected[i] + "]}");
  }
  CHECK(page.next_page_token.value == "");
}

TEST_CASE("each kind of term finds its runs, newest first") {
  Rows rows;
  Reader reader(rows.database());
  RunRow child = rows.run("child");
  child.parent = WorkflowExecution{WorkflowId("a-1"), RunId("run-2")};
  rows.insert(child);                                          // 1
  rows.add_closed("a-1", WorkflowExecutionStatus::completed);  // 2, closed at 12
  rows.add("a-2");                                             // 3
  rows.add_closed("b-1", WorkflowExecutionStatus::timed_out);  // 4, closed at 14
  rows.add("a-1");                                             // 5
  RunRow elsewhere = rows.run("a-1");                          // 6
  elsewhere.namespace_ = "other";
  rows.insert(elsewhere);

  const struct {
    std::string query;
    Ids ids;
  } cases[] = {
      {"", {"a-1", "b-1", "a-2", "a-1", "child"}},
      {"WorkflowId = 'a-1'", {"a-1", "a-1"}},
      {"WorkflowId != 'a-1'", {"b-1", "a-2", "child"}},
      {"WorkflowId IN ('child', 'b-1', 'none')", {"b-1", "child"}},
      {"WorkflowId STARTS_WITH 'a-'", {"a-1", "a-2", "a-1"}},
      {"WorkflowId STARTS_WITH ''", {"a-1", "b-1", "a-2", "a-1", "child"}},
      {"WorkflowId > 'a-1' AND WorkflowId < 'c'", {"b-1", "a-2"}},
      {"RunId = 'run-3'", {"a-2"}},
      {"RunId = 'run-6'", {}},
      {"RunId IN ('run-1', 'run-4', 'run-6')", {"b-1", "child"}},
      {"RunId STARTS_WITH 'run-'", {"a-1", "b-1", "a-2", "a-1", "child"}},
      {"WorkflowType = 'train' AND WorkflowId != 'a-1'", {"b-1", "a-2", "child"}},
      {"WorkflowType = 'Train'", {}},
      {"ExecutionStatus = 'Running'", {"a-1", "a-2", "child"}},
      {"ExecutionStatus != 'Running'", {"b-1", "a-1"}},
      {"ExecutionStatus IN ('Running', 'TimedOut')", {"a-1", "b-1", "a-2", "child"}},
      {"ExecutionStatus = 'Running' AND WorkflowId = 'a-1'", {"a-1"}},
      {"ExecutionStatus = 'Running' AND ExecutionStatus = 'Failed'", {}},
      {"ExecutionStatus = 'Running' AND CloseTime > '2026-08-01T12:00:00Z'", {}},
      {"StartTime > '2026-08-01T12:00:03Z'", {"a-1", "b-1"}},
      {"StartTime >= '2026-08-01T12:00:03Z'", {"a-1", "b-1", "a-2"}},
      {"StartTime < '2026-08-01T12:00:03Z'", {"a-1", "child"}},
      {"StartTime <= '2026-08-01T12:00:03Z'", {"a-2", "a-1", "child"}},
      {"StartTime = '2026-08-01T12:00:03Z'", {"a-2"}},
      {"StartTime != '2026-08-01T12:00:03Z'", {"a-1", "b-1", "a-1", "child"}},
      {"StartTime > '2026-08-01T13:00:00Z'", {}},
      {"StartTime > '2026-08-01T11:00:00Z'", {"a-1", "b-1", "a-2", "a-1", "child"}},
      {"StartTime < '2026-08-01T11:00:00Z'", {}},
      {"StartTime > '2026-08-01T12:00:04Z' AND StartTime < '2026-08-01T12:00:02Z'", {}},
      {"CloseTime >= '2026-08-01T12:00:14Z'", {"b-1"}},
      {"CloseTime < '2026-08-01T12:00:14Z'", {"a-1"}},
      {"CloseTime != '2026-08-01T12:00:14Z'", {"a-1"}},
      {"ParentWorkflowId = 'a-1'", {"child"}},
      {"ParentWorkflowId STARTS_WITH ''", {"child"}},
      {"ParentWorkflowId != 'b-1'", {"child"}},
      {"ParentRunId = 'run-2' AND WorkflowId = 'child'", {"child"}},
  };
  for (const auto& row : cases) {
    CAPTURE(row.query);
    CHECK(list_ids(reader, row.query) == row.ids);
    CHECK(list_ids(reader, row.query, 1) == row.ids);
  }
}

TEST_CASE("permits are found by their outcome, and runs by their queue") {
  Rows rows;
  Reader reader(rows.database());
  RunRow elsewhere = rows.run("evaluate");
  elsewhere.task_queue = "cpu";
  rows.insert(elsewhere);
  rows.close(rows.grant("gpu", "0"), Outcome::released);
  rows.close(rows.grant("gpu", "1"), Outcome::force_released, "operator");
  rows.grant("gpu", "2");

  const struct {
    std::string query;
    Ids ids;
  } cases[] = {
      {"Outcome = 'held'", {"permit:gpu:2"}},
      {"Outcome != 'released'", {"permit:gpu:2", "permit:gpu:1"}},
      {"Outcome IN ('released', 'lease_expired')", {"permit:gpu:0"}},
      {"TaskQueue = 'cpu'", {"evaluate"}},
      {"TaskQueue STARTS_WITH 'g' AND Outcome != 'held'", {"permit:gpu:1", "permit:gpu:0"}},
  };
  for (const auto& row : cases) {
    CAPTURE(row.query);
    CHECK(list_ids(reader, row.query, 1) == row.ids);
  }
}

// As a value of a query, in either kind of quotes.
std::string quoted(const std::string& text, char quote) {
  std::string value(1, quote);
  for (const char c : text) {
    if (c == quote) value += quote;
    if (c == '\\') value += '\\';
    value += c;
  }
  return value + quote;
}

TEST_CASE("no text is more than a text") {
  const Ids texts = {"a' OR '1'='1",
                     "a'; DROP TABLE runs; --",
                     "a\"b",
                     "a\\",
                     "a\\'b",
                     "a%",
                     "a_",
                     "?",
                     "?1",
                     ":x",
                     "(?1->>0)",
                     "a/*b*/",
                     "a\nb\tc\x01",
                     "[1]",
                     "\",\"",
                     "]",
                     "a\xC3\xA9",
                     "\xF0\x9F\x94\x92",
                     "\x7F",
                     "NULL",
                     "1",
                     "1.0",
                     "0x31",
                     "\\u0061",
                     "$[0]",
                     "",
                     " a ",
                     "A"};
  Rows rows;
  Reader reader(rows.database());
  for (const std::string& text : texts) {
    RunRow row = rows.run(text);
    row.workflow_type = text;
    row.parent = WorkflowExecution{WorkflowId(text), row.run_id};
    rows.insert(row);
  }
  for (const std::string& text : texts) {
    CAPTURE(text);
    for (const char quote : {'\'', '"'}) {
      const std::string value = quoted(text, quote);
      for (const std::string field : {"WorkflowId", "WorkflowType", "ParentWorkflowId"}) {
        CHECK(list_ids(reader, field + " = " + value) == Ids{text});
        CHECK(list_ids(reader, field + " IN (" + value + ")") == Ids{text});
        CHECK(list_ids(reader, field + " != " + value).size() == texts.size() - 1);
        Ids with_prefix = list_ids(reader, field + " STARTS_WITH " + value);
        std::reverse(with_prefix.begin(), with_prefix.end());
        Ids expected;
        std::copy_if(texts.begin(), texts.end(), std::back_inserter(expected),
                     [&](const std::string& other) { return other.starts_with(text); });
        CHECK(with_prefix == expected);
      }
    }
    CHECK(reader.list_runs(text, ListFilter()).executions.empty());
    HoldQuery holds;
    holds.pool = PoolName(text);
    holds.slot = SlotName(text);
    CHECK(reader.list_holds(holds).permits.empty());
    CHECK(reader.hold_counts(PoolName(text)).empty());
  }
  const std::string with_nul("default\0", 8);
  CHECK(refusal([&] { reader.list_runs(with_nul, ListFilter()); }) == "FIELD_INVALID");
}

TEST_CASE("pages cover every run once while runs are added and deleted") {
  CrashVfs vfs;
  Rows rows(on(vfs));
  Reader reader(on(vfs));
  std::set<std::string> before;
  for (int i = 0; i < 100; ++i) {
    before.insert("run-" +
                  std::to_string(rows.add("w" + std::to_string(i % 7 * 100 + i)).number.value));
  }
  for (const std::string query : {"", "WorkflowId STARTS_WITH 'w'", "ExecutionStatus = 'Running'",
                                  "StartTime > '2026-08-01T12:00:00Z'", "WorkflowType = 'train'"}) {
    CAPTURE(query);
    const ListFilter filter = parse_list_filter(query);
    std::vector<std::string> seen;
    Bytes token;
    do {
      const ListPage page = reader.list_runs("default", filter, 7, token);
      CHECK(page.executions.size() <= 7);
      for (const auto& run : page.executions) seen.push_back(run.execution.run_id.value);
      token = page.next_page_token;
      for (int i = 0; i < 3; ++i) {  // the shown one is the key of the next page
        rows.store().begin();
        RunRow row = rows.run("wx" + std::to_string(i));
        row.status = WorkflowExecutionStatus::completed;
        row.close_time = row.start_time;
        rows.store().insert_run(row);
        rows.store().commit(row.start_time);
      }
      rows.store().begin();
      rows.store().delete_closed_before(never, 2);
      rows.store().commit(noon);
    } while (!token.value.empty());
    const std::set<std::string> unique(seen.begin(), seen.end());
    CHECK(unique.size() == seen.size());
    CHECK(std::includes(unique.begin(), unique.end(), before.begin(), before.end()));
  }
}

TEST_CASE("a page has the size asked for, within bounds") {
  Rows rows;
  Reader reader(rows.database());
  rows.store().begin();
  for (int i = 0; i < 1002; ++i) rows.store().insert_run(rows.run(std::to_string(i)));
  rows.store().commit(noon);
  const auto size_of = [&](std::int64_t page_size) {
    return reader.list_runs("default", ListFilter(), page_size).executions.size();
  };
  CHECK(size_of(0) == 100);
  CHECK(size_of(1) == 1);
  CHECK(size_of(1000) == 1000);
  CHECK(size_of(1001) == 1000);
  CHECK(size_of(INT64_MAX) == 1000);
  CHECK(refusal([&] { size_of(-1); }) == "FIELD_INVALID");

  const ListFilter all;
  CHECK(
      reader.list_runs("default", parse_list_filter("WorkflowId < '1'"), 1).next_page_token.value ==
      "");
  const ListPage first = reader.list_runs("default", all, 1000);
  const ListPage last = reader.list_runs("default", all, 2, first.next_page_token);
  CHECK(last.executions.size() == 2);
  CHECK(last.next_page_token.value == "");
}

TEST_CASE("a page token is good for its own query only") {
  Rows rows;
  Reader reader(rows.database());
  for (int i = 0; i < 3; ++i) rows.add("a" + std::to_string(i));
  for (int i = 0; i < 3; ++i) rows.grant("gpu", std::to_string(i));
  const ListFilter filter = parse_list_filter("WorkflowId STARTS_WITH 'a'");
  const Bytes token = reader.list_runs("default", filter, 1).next_page_token;
  REQUIRE(token.value != "");
  HoldQuery holds;
  holds.page_size = 1;
  const Bytes hold_token = reader.list_holds(holds).next_page_token;
  REQUIRE(hold_token.value != "");

  const auto with = [&](const std::string& namespace_, const std::string& query,
                        const Bytes& given) {
    return refusal([&] { reader.list_runs(namespace_, parse_list_filter(query), 1, given); });
  };
  CHECK(with("default", "WorkflowId starts_with \"a\"", token) == "");
  CHECK(with("default", "WorkflowId STARTS_WITH 'b'", token) == "PAGE_TOKEN_INVALID");
  CHECK(with("default", "RunId STARTS_WITH 'a'", token) == "PAGE_TOKEN_INVALID");
  CHECK(with("default", "", token) == "PAGE_TOKEN_INVALID");
  CHECK(with("other", "WorkflowId STARTS_WITH 'a'", token) == "PAGE_TOKEN_INVALID");
  CHECK(with("default", "WorkflowId STARTS_WITH 'a'", hold_token) == "PAGE_TOKEN_INVALID");

  const std::string start = token.value.substr(0, token.value.rfind('.') + 1);
  for (const std::string& text :
       Ids{"x", "r.", "..", start, start + "x", start + "1x", start + "-1", start + " 1",
           start + "99999999999999999999", token.value + ".", std::string(1000, 'r')}) {
    CAPTURE(text);
    CHECK(with("default", "WorkflowId STARTS_WITH 'a'", Bytes{text}) == "PAGE_TOKEN_INVALID");
  }

  const auto hold_refusal = [&](HoldQuery query, const Bytes& given) {
    query.page_token = given;
    return refusal([&] { reader.list_holds(query); });
  };
  CHECK(hold_refusal(holds, hold_token) == "");
  CHECK(hold_refusal(holds, token) == "PAGE_TOKEN_INVALID");
  holds.pool = PoolName("gpu");
  CHECK(hold_refusal(holds, hold_token) == "PAGE_TOKEN_INVALID");
}

// --- Holds ---

std::vector<std::string> list_permits(Reader& reader, HoldQuery query) {
  std::vector<std::string> permits;
  do {
    const HoldPage page = reader.list_holds(query);
    for (const PermitInfo& permit : page.permits) {
      permits.push_back(permit.id.value.substr(7) + " " + permit.run_id.value + " " + permit.state);
    }
    query.page_token = page.next_page_token;
  } while (!query.page_token.value.empty());
  return permits;
}

TEST_CASE("the ledger shows holds, newest first") {
  Rows rows;
  Reader reader(rows.database());
  rows.close(rows.grant("gpu", "0"), Outcome::released);                    // 1, closed at 31
  rows.close(rows.grant("gpu", "1"), Outcome::force_released, "operator");  // 2, closed at 32
  rows.close(rows.grant("gpu", "0"), Outcome::lease_expired);               // 3, closed at 33
  rows.grant("gpu", "0");                                                   // 4
  rows.grant("cpu", "0");                                                   // 5
  rows.grant("gpu", "1");                                                   // 6

  HoldQuery all;
  const Ids newest = {"gpu:1 run-6 held",   "cpu:0 run-5 held",   "gpu:0 run-4 held",
                      "gpu:0 run-3 closed", "gpu:1 run-2 closed", "gpu:0 run-1 closed"};
  CHECK(list_permits(reader, all) == newest);

  const auto with = [&](const std::string& pool, const std::string& slot, HoldState state,
                        Outcome outcome = Outcome::unspecified, int since_s = 0) {
    HoldQuery query;
    query.pool = PoolName(pool);
    query.slot = SlotName(slot);
    query.state = state;
    query.outcome = outcome;
    if (since_s > 0) query.since = noon + std::chrono::seconds(since_s);
    std::string runs;
    for (const std::string& permit : list_permits(reader, query)) {
      runs += permit.substr(permit.find("run-") + 4, 1);
    }
    query.page_size = 1;
    CHECK(list_permits(reader, query).size() == runs.size());
    return runs;
  };
  using enum HoldState;
  CHECK(with("gpu", "", any) == "64321");
  CHECK(with("gpu", "0", any) == "431");
  CHECK(with("", "0", any) == "5431");
  CHECK(with("", "", held) == "654");
  CHECK(with("gpu", "", held) == "64");
  CHECK(with("gpu", "1", held) == "6");
  CHECK(with("", "1", held) == "6");
  CHECK(with("", "", closed) == "321");
  CHECK(with("cpu", "", closed) == "");
  CHECK(with("gpu", "0", closed) == "31");
  CHECK(with("", "", any, Outcome::released) == "1");
  CHECK(with("gpu", "", closed, Outcome::lease_expired) == "3");
  CHECK(with("gpu", "", held, Outcome::lease_expired) == "");
  CHECK(with("", "", any, Outcome::unspecified, 32) == "65432");
  CHECK(with("gpu", "0", closed, Outcome::unspecified, 32) == "3");
  CHECK(with("none", "", any) == "");

  HoldQuery one;
  one.pool = PoolName("gpu");
  one.slot = SlotName("1");
  const HoldPage page = reader.list_holds(one);
  REQUIRE(page.permits.size() == 2);
  CHECK(to_json(page.permits[0]) ==
        R"({"id":"permit:gpu:1","runId":"run-6","pool":"gpu","slot":"1","fence":106,)"
        R"("state":"held","holder":"trainer","holderRunId":"trainer-run","reason":"epoch 1",)"
        R"("since":"2026-08-01T12:00:06Z","deadline":"2026-08-01T12:10:06Z"})");
  CHECK(to_json(page.permits[1]) ==
        R"({"id":"permit:gpu:1","runId":"run-2","pool":"gpu","slot":"1","fence":102,)"
        R"("state":"closed","holder":"trainer","holderRunId":"trainer-run","reason":"epoch 1",)"
        R"("since":"2026-08-01T12:00:02Z","closedAt":"2026-08-01T12:00:32Z",)"
        R"("outcome":"force_released","cause":"operator","possibleOverlap":true})");
}

TEST_CASE("a hold outlives its run in the ledger") {
  Rows rows;
  Reader reader(rows.database());
  rows.close(rows.grant("gpu", "0"), Outcome::released);
  rows.store().begin();
  CHECK(rows.store().delete_closed_before(never, 10).size() == 1);
  rows.store().commit(noon);
  CHECK(list_permits(reader, HoldQuery()) == Ids{"gpu:0 run-1 closed"});
  CHECK(list_ids(reader, "").empty());
}

TEST_CASE("holds are counted by pool, slot, outcome and cause") {
  Rows rows;
  Reader reader(rows.database());
  for (int i = 0; i < 2; ++i) rows.close(rows.grant("gpu", "0"), Outcome::released);
  rows.close(rows.grant("gpu", "0"), Outcome::force_released, "operator");
  rows.grant("gpu", "1");
  rows.grant("cpu", "0");
  const auto counts = [&](const std::string& pool) {
    std::vector<std::string> lines;
    for (const HoldCount& count : reader.hold_counts(PoolName(pool))) {
      lines.push_back(count.pool.value + ":" + count.slot.value + " " +
                      std::to_string(static_cast<int>(count.outcome)) + " '" + count.cause + "' " +
                      std::to_string(count.holds));
    }
    return lines;
  };
  const Ids gpu = {"gpu:0 0 '' 3", "gpu:0 1 '' 2", "gpu:0 4 'operator' 1", "gpu:1 0 '' 1"};
  CHECK(counts("gpu") == gpu);
  CHECK(counts("cpu") == Ids{"cpu:0 0 '' 1"});
  CHECK(counts("none").empty());
  CHECK(counts("").size() == 5);
}

TEST_CASE("a reader sees each commit, and can change nothing") {
  CrashVfs vfs;
  Rows rows(on(vfs));
  Reader reader(on(vfs));
  CHECK(list_ids(reader, "") == Ids{});
  rows.add("a");
  CHECK(list_ids(reader, "") == Ids{"a"});
  rows.store().begin();
  rows.store().insert_run(rows.run("b"));
  CHECK(list_ids(reader, "") == Ids{"a"});
  rows.store().commit(noon);
  CHECK(list_ids(reader, "") == Ids{"b", "a"});
  CrashVfs empty;
  CHECK_THROWS_AS(Reader(on(empty)), StoreFailed);
}

TEST_CASE("a file of the first schema is brought to the current one, and its holds are kept") {
  const CrashVfs vfs;
  {
    Rows rows(on(vfs));
    rows.grant("gpu", "0");
  }
  {
    Database database(on(vfs));
    database.execute(test::back_to_schema_4);
    database.execute("ALTER TABLE holds DROP COLUMN requested_at");
    database.execute("ALTER TABLE holds DROP COLUMN late_release_at; DROP TABLE api_keys");
    database.set_user_version(1);
  }
  Store store(on(vfs));
  Reader reader(on(vfs));
  const HoldPage page = reader.list_holds({});
  REQUIRE(page.permits.size() == 1);
  CHECK(page.permits[0].fence == Fence{101});
  CHECK(!is_set(page.permits[0].requested_at));
}

}  // namespace
}  // namespace permit::store
