#include "orchestrator/store/list_filter.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/time_text.h"

namespace permit::store {
namespace {

// The condition with its values in place: text in |bars|, numbers bare.
std::string as_text(const ListFilter& filter) {
  std::string text;
  std::size_t next = 0;
  for (const char c : filter.where) {
    if (c != '?') {
      text += c;
      continue;
    }
    REQUIRE(next < filter.values.size());
    const ListFilter::Value& value = filter.values[next++];
    const auto* words = std::get_if<std::string>(&value);
    text += words != nullptr ? "|" + *words + "|" : std::to_string(std::get<std::int64_t>(value));
  }
  CHECK(next == filter.values.size());
  return text;
}

std::string parsed(const std::string& query) { return as_text(parse_list_filter(query)); }

// "REASON message", and the code checked; empty if the query is fine.
std::string refusal(std::string_view query) {
  try {
    parse_list_filter(query);
    return {};
  } catch (const Error& error) {
    const bool is_unsupported = error.reason() == "FILTER_UNSUPPORTED";
    CHECK(error.code() ==
          (is_unsupported ? ErrorCode::unimplemented : ErrorCode::invalid_argument));
    return error.reason() + " " + error.message();
  }
}

std::string joined(std::size_t count, const std::string& part, const std::string& separator) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "" : separator) + part;
  return text;
}

TEST_CASE("a list query becomes a condition with bound values") {
  const struct {
    std::string query;
    std::string condition;
  } rows[] = {
      {"", ""},
      {" \t\r\n ", ""},
      {"WorkflowId = 'a'", "workflow_id = |a|"},
      {"WorkflowId=\"a\"", "workflow_id = |a|"},
      {"RunId != 'a'", "run_id <> |a|"},
      {"RunId <> 'a'", "run_id <> |a|"},
      {"WorkflowType='train'and  WorkflowId   =  'a'",
       "workflow_type = |train| AND workflow_id = |a|"},
      {"ParentWorkflowId = 'p' AND ParentRunId = 'r'",
       "parent_workflow_id = |p| AND parent_run_id = |r|"},
      {"WorkflowId > 'a' AND WorkflowId <= 'b'", "workflow_id > |a| AND workflow_id <= |b|"},
      {"WorkflowId IN ('a')", "workflow_id IN (|a|)"},
      {"WorkflowId in('a' ,\"b\",'')", "workflow_id IN (|a|, |b|, ||)"},
      {"WorkflowType STARTS_WITH 'train'", "workflow_type >= |train| AND workflow_type < |traio|"},
      {"RunId starts_with '0'", "run_id >= |0| AND run_id < |1|"},
      {"WorkflowId STARTS_WITH ''", "workflow_id >= ||"},
      {"WorkflowId STARTS_WITH 'a\xC3\xBF'",
       "workflow_id >= |a\xC3\xBF| AND workflow_id < |a\xC3\xC0|"},
      {"WorkflowId STARTS_WITH 'a\xFF\xFF'", "workflow_id >= |a\xFF\xFF| AND workflow_id < |b|"},
      {"WorkflowId STARTS_WITH '\xFF'", "workflow_id >= |\xFF|"},
      {"ExecutionStatus = 'Running'", "status = 1"},
      {"ExecutionStatus != 'Completed'", "status <> 2"},
      {"ExecutionStatus IN ('Failed', 'Canceled', 'Terminated', 'ContinuedAsNew', 'TimedOut')",
       "status IN (3, 4, 5, 6, 7)"},
      {"ExecutionStatus = 'WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW'", "status = 6"},
      {"TaskQueue = 'gpu' AND TaskQueue STARTS_WITH 'g'",
       "task_queue = |gpu| AND task_queue >= |g| AND task_queue < |h|"},
      {"Outcome = 'held'", "iif(fence is null, null, coalesce(outcome, 0)) = 0"},
      {"Outcome != 'released'", "iif(fence is null, null, coalesce(outcome, 0)) <> 1"},
      {"Outcome IN ('lease_expired', 'holder_closed', 'force_released')",
       "iif(fence is null, null, coalesce(outcome, 0)) IN (2, 3, 4)"},
      {"StartTime = '1970-01-01T00:00:01Z'", "start_time = 1000000"},
      {"StartTime > '1970-01-01T01:00:01.5+01:00'", "start_time > 1500000"},
      {"CloseTime >= '1970-01-01T00:00:00Z' and CloseTime < '1970-01-01T00:00:02Z'",
       "close_time >= 0 AND close_time < 2000000"},
      {"CloseTime != '1970-01-01T00:00:01Z'", "close_time <> 1000000"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.query);
    CHECK(refusal(row.query) == "");
    CHECK(parsed(row.query) == row.condition);
  }
}

TEST_CASE("a value may hold anything, with quotes and escapes") {
  const struct {
    std::string query;
    std::string condition;
  } rows[] = {
      {"WorkflowId = ''", "workflow_id = ||"},
      {"WorkflowId = 'it''s'", "workflow_id = |it's|"},
      {"WorkflowId = ''''", "workflow_id = |'|"},
      {"WorkflowId = \"say \"\"a\"\"\"", "workflow_id = |say \"a\"|"},
      {"WorkflowId = 'say \"a\"'", "workflow_id = |say \"a\"|"},
      {R"(WorkflowId = 'it\'s')", "workflow_id = |it's|"},
      {R"(WorkflowId = "a\"b\\c")", R"(workflow_id = |a"b\c|)"},
      {"WorkflowId = 'x OR 1=1; -- ?'", "workflow_id = |x OR 1=1; -- ?|"},
      {"WorkflowId = 'AND' AND RunId = 'IN'", "workflow_id = |AND| AND run_id = |IN|"},
      {"WorkflowId = 'a\nb'", "workflow_id = |a\nb|"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.query);
    CHECK(refusal(row.query) == "");
    CHECK(parsed(row.query) == row.condition);
  }
}

TEST_CASE("what a list query cannot say is refused with the position and a way out") {
  const std::string invalid = "FILTER_INVALID query, position ";
  const std::string fields =
      "The fields are WorkflowId, RunId, WorkflowType, ExecutionStatus, StartTime, CloseTime, "
      "ParentWorkflowId, ParentRunId, TaskQueue, Outcome";
  const std::string text_operators = "=, !=, <, <=, >, >=, IN, STARTS_WITH";
  const struct {
    std::string query;
    std::string refusal;
  } rows[] = {
      {"workflowid = 'a'",
       invalid + "1: no field has the name workflowid; did you mean WorkflowId? " + fields},
      {"WorkflowId = 'a' AND StatTime > 'b'",
       invalid + "22: no field has the name StatTime; did you mean StartTime? " + fields},
      {"Status = 'Running'",
       invalid + "1: no field has the name Status; did you mean ExecutionStatus? " + fields},
      {"CustomKeyword = 'a'", invalid + "1: no field has the name CustomKeyword; " + fields},
      {"run_id = 'a'", invalid + "1: no field has the name run_id; did you mean RunId? " + fields},
      {"'a' = WorkflowId", invalid + "1: expected a field, found 'a'; the fields are " +
                               fields.substr(sizeof("The fields are ") - 1)},
      {"WorkflowId = 'a' AND", invalid + "21: expected a field, found the end; the fields are " +
                                   fields.substr(sizeof("The fields are ") - 1)},
      {"WorkflowId", invalid + "11: expected an operator after WorkflowId (" + text_operators +
                         "), found the end"},
      {"WorkflowId == 'a'",
       invalid + "12: expected an operator after WorkflowId (" + text_operators + "), found =="},
      {"WorkflowId ~ 'a'",
       invalid + "12: expected an operator after WorkflowId (" + text_operators + "), found ~"},
      {"WorkflowId =", invalid + "13: WorkflowId takes a text in quotes, not the end"},
      {"WorkflowId = a", invalid + "14: WorkflowId takes a text in quotes, not a"},
      {"WorkflowId = 5", invalid + "14: WorkflowId takes a text in quotes, not 5"},
      {"WorkflowId = ?", invalid + "14: WorkflowId takes a text in quotes, not ?"},
      {"WorkflowId = 'a", invalid + "14: the quote ' is not closed"},
      {"WorkflowId = \"a'", invalid + "14: the quote \" is not closed"},
      {"WorkflowId = 'a\\", invalid + "14: the quote ' is not closed"},
      {"WorkflowId = 'a\\'", invalid + "14: the quote ' is not closed"},
      {R"(WorkflowId = 'a\n')", invalid + R"(16: write \\ for a backslash)"},
      {"WorkflowId = 'a' RunId = 'b'", invalid + "18: expected AND, found RunId"},
      {"WorkflowId = 'a';", invalid + "17: expected AND, found ;"},
      {"WorkflowId = 'a' -- b", invalid + "18: expected AND, found --"},
      {"WorkflowId = 'a')", invalid + "17: expected AND, found )"},
      {"WorkflowId = 'a' LIMIT 5", invalid + "18: expected AND, found LIMIT"},
      {"WorkflowId IN 'a'", invalid + "15: expected ( after IN, found 'a'"},
      {"WorkflowId IN ()", invalid + "16: WorkflowId takes a text in quotes, not )"},
      {"WorkflowId IN ('a' 'b')", invalid + "20: expected , or ) in the list of IN, found 'b'"},
      {"WorkflowId IN ('a',", invalid + "20: WorkflowId takes a text in quotes, not the end"},
  };
  for (const auto& row : rows) CHECK(refusal(row.query) == row.refusal);
}

TEST_CASE("a value or an operator that does not suit the field is refused") {
  const std::string invalid = "FILTER_INVALID query, position ";
  const struct {
    std::string query;
    std::string refusal;
  } rows[] = {
      {"ExecutionStatus > 'Running'",
       invalid + "17: ExecutionStatus cannot be used with >; it takes =, !=, IN"},
      {"ExecutionStatus STARTS_WITH 'R'",
       invalid + "17: ExecutionStatus cannot be used with STARTS_WITH; it takes =, !=, IN"},
      {"ExecutionStatus = 1",
       invalid + "19: ExecutionStatus takes a status: 'Running' 'Completed' 'Failed' 'Canceled' "
                 "'Terminated' 'ContinuedAsNew' 'TimedOut', not 1"},
      {"ExecutionStatus IN ('Running', 'done')",
       invalid + "32: ExecutionStatus takes a status: 'Running' 'Completed' 'Failed' 'Canceled' "
                 "'Terminated' 'ContinuedAsNew' 'TimedOut', not 'done'"},
      {"Outcome < 'released'", invalid + "9: Outcome cannot be used with <; it takes =, !=, IN"},
      {"Outcome STARTS_WITH 'r'",
       invalid + "9: Outcome cannot be used with STARTS_WITH; it takes =, !=, IN"},
      {"Outcome = 'Released'",
       invalid + "11: Outcome takes an outcome: 'held' 'released' 'lease_expired' 'holder_closed' "
                 "'force_released', not 'Released'"},
      {"StartTime IN ('2026-08-01T12:00:00Z')",
       invalid + "11: StartTime cannot be used with IN; it takes =, !=, <, <=, >, >="},
      {"CloseTime starts_with '2026'",
       invalid + "11: CloseTime cannot be used with starts_with; it takes =, !=, <, <=, >, >="},
      {"StartTime > 'yesterday'",
       invalid + "13: StartTime takes a time like '2026-08-01T12:00:00Z', not 'yesterday'"},
      {"StartTime > -1.5e9",
       invalid + "13: StartTime takes a time like '2026-08-01T12:00:00Z', not -1.5e9"},
  };
  for (const auto& row : rows) CHECK(refusal(row.query) == row.refusal);

  const std::string long_value = refusal("StartTime = '" + std::string(1000, '\n') + "'");
  CHECK(long_value == invalid + "13: StartTime takes a time like '2026-08-01T12:00:00Z', not '" +
                          std::string(40, '?') + "...'");
  CHECK(refusal(std::string_view("WorkflowId = 'a\0'", 17)) ==
        invalid + "16: a NUL cannot be in a query");
}

TEST_CASE("what Temporal's list query has and ours has not is named as such") {
  const struct {
    std::string query;
    std::string beginning;
  } rows[] = {
      {"WorkflowId = 'a' OR RunId = 'b'", "18: OR is not supported"},
      {"WorkflowId = 'a' or", "18: OR is not supported"},
      {"NOT WorkflowId = 'a'", "1: NOT is not supported"},
      {"WorkflowId NOT IN ('a')", "12: NOT is not supported"},
      {"WorkflowId not starts_with 'a'", "12: NOT is not supported"},
      {"StartTime BETWEEN 'a' AND 'b'", "11: BETWEEN is not supported"},
      {"CloseTime IS NULL", "11: IS NULL is not supported"},
      {"CloseTime is not null", "11: IS NULL is not supported"},
      {"WorkflowId LIKE 'a%'", "12: LIKE is not supported"},
      {"ORDER BY StartTime", "1: ORDER BY is not supported"},
      {"WorkflowId = 'a' ORDER BY StartTime", "18: ORDER BY is not supported"},
      {"GROUP BY ExecutionStatus", "1: GROUP BY is not supported"},
      {"(WorkflowId = 'a')", "1: parentheses are not supported"},
      {"WorkflowId = 'a' AND (RunId = 'b')", "22: parentheses are not supported"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.query);
    CHECK(refusal(row.query).starts_with("FILTER_UNSUPPORTED query, position " + row.beginning));
  }
}

TEST_CASE("a list query has limits") {
  CHECK(refusal(joined(50, "RunId = 'a'", " AND ")) == "");
  CHECK(refusal(joined(51, "RunId = 'a'", " AND ")) ==
        "FILTER_INVALID query, position 801: more than 50 terms; shorten the query");
  CHECK(refusal("RunId IN (" + joined(100, "'a'", ",") + ")") == "");
  CHECK(refusal("RunId IN (" + joined(101, "'a'", ",") + ")") ==
        "FILTER_INVALID query, position 411: more than 100 values in one IN");
  const std::string longest = "RunId = '" + std::string(4096 - 10, 'a') + "'";
  CHECK(refusal(longest) == "");
  CHECK(refusal(longest + " ") ==
        "FILTER_INVALID query, position 4097: the query is longer than 4096 bytes");
  CHECK(refusal(std::string(4096, 'x')).size() < 300);
}

TEST_CASE("a filter says what an index can narrow it by") {
  const struct {
    std::string query;
    Narrowing narrowing;
  } rows[] = {
      {"", Narrowing::none},
      {"WorkflowType = 'a' AND ParentRunId = 'b' AND StartTime > '2026-08-01T12:00:00Z'",
       Narrowing::none},
      {"WorkflowId != 'a' AND RunId != 'b' AND ExecutionStatus != 'Running'", Narrowing::none},
      {"CloseTime != '2026-08-01T12:00:00Z'", Narrowing::none},
      {"ExecutionStatus = 'Completed'", Narrowing::none},
      {"ExecutionStatus IN ('Running', 'Completed')", Narrowing::none},
      {"CloseTime < '2026-08-01T12:00:00Z'", Narrowing::close_time},
      {"CloseTime < '2026-08-01T12:00:00Z' AND ExecutionStatus = 'Running'", Narrowing::open},
      {"WorkflowId STARTS_WITH 'a' AND ExecutionStatus = 'Running'", Narrowing::workflow_ids},
      {"Outcome = 'released' AND TaskQueue = 'a'", Narrowing::none},
      {"Outcome = 'held'", Narrowing::open},
      {"Outcome != 'held'", Narrowing::none},
      {"WorkflowId IN ('a', 'b')", Narrowing::workflow_ids},
      {"RunId STARTS_WITH 'a' AND WorkflowId > 'b'", Narrowing::run_ids},
      {"ParentWorkflowId IN ('a', 'b')", Narrowing::none},
      {"ParentWorkflowId = 'a' AND RunId > 'b'", Narrowing::parent},
      {"ParentWorkflowId = 'a' AND WorkflowId = 'b'", Narrowing::workflow_id},
      {"WorkflowId = 'a' AND RunId IN ('b', 'c')", Narrowing::workflow_id},
      {"RunId = 'a' AND WorkflowId = 'b'", Narrowing::run_id},
  };
  for (const auto& row : rows) {
    CAPTURE(row.query);
    CHECK(parse_list_filter(row.query).narrowing == row.narrowing);
  }
}

TEST_CASE("a filter says between which times its runs started") {
  const auto started = [](const std::string& query) {
    const ListFilter filter = parse_list_filter(query);
    const auto text = [](Time time) { return time == never ? "never" : format_time(time); };
    return text(filter.started_from) + " " + text(filter.started_before);
  };
  const std::string epoch = "1970-01-01T00:00:00Z";
  CHECK(started("") == epoch + " never");
  CHECK(started("StartTime != '2026-08-01T12:00:00Z'") == epoch + " never");
  CHECK(started("CloseTime < '2026-08-01T12:00:00Z'") == epoch + " never");
  CHECK(started("StartTime >= '2026-08-01T12:00:00Z'") == "2026-08-01T12:00:00Z never");
  CHECK(started("StartTime > '2026-08-01T12:00:00Z'") == "2026-08-01T12:00:00.000001Z never");
  CHECK(started("StartTime < '2026-08-01T12:00:00Z'") == epoch + " 2026-08-01T12:00:00Z");
  CHECK(started("StartTime <= '2026-08-01T12:00:00Z'") == epoch + " 2026-08-01T12:00:00.000001Z");
  CHECK(started("StartTime = '2026-08-01T12:00:00Z'") ==
        "2026-08-01T12:00:00Z 2026-08-01T12:00:00.000001Z");
  CHECK(started("StartTime > '2026-08-01T12:00:00Z' AND StartTime >= '2026-08-02T12:00:00Z' AND "
                "StartTime < '2026-08-03T12:00:00Z' AND StartTime < '2026-08-04T12:00:00Z'") ==
        "2026-08-02T12:00:00Z 2026-08-03T12:00:00Z");
}

TEST_CASE("whatever a query holds, its condition is made of our own words") {
  const std::vector<std::string> pieces = {"WorkflowId",  "RunId",     "ExecutionStatus",
                                           "StartTime",   "=",         "!=",
                                           "Outcome",     "TaskQueue", "'held'",
                                           "<",           ">=",        "IN",
                                           "STARTS_WITH", "AND",       "OR",
                                           "(",           ")",         ",",
                                           "'a'",         "\"b\"",     "'",
                                           "\"",          "\\",        "''",
                                           ";",           "--",        "/*",
                                           "?",           "?1",        ":x",
                                           "@y",          "'Running'", "'2026-08-01T12:00:00Z'",
                                           "1",           "NULL",      "0x1",
                                           "\xFF"};
  std::uint64_t state = 1;
  const auto choose = [&](std::size_t count) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>(state >> 33) % count;
  };
  int accepted = 0;
  for (int i = 0; i < 100'000; ++i) {
    std::string query;
    if (choose(2) == 0) query = "WorkflowId = 'a' AND ";
    for (std::size_t left = choose(8); left > 0; --left) {
      query += pieces[choose(pieces.size())] + (choose(3) == 0 ? "" : " ");
    }
    std::string where;
    try {
      where = parse_list_filter(query).where;
      ++accepted;
    } catch (const Error& error) {
      REQUIRE(error.message().starts_with("query, position "));
    }
    REQUIRE(where.find_first_not_of("abcdefghijklmnopqrstuvwxyz_ANDI?<>=, ()0") == where.npos);
  }
  CHECK(accepted > 1000);
}

}  // namespace
}  // namespace permit::store
