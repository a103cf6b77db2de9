#include "orchestrator/store/list_filter.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

#include "orchestrator/protocol/common.h"
#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/nearest.h"
#include "orchestrator/protocol/time_text.h"

namespace permit::store {

namespace {

enum class FieldType { text, time, status, outcome };

struct Field {
  std::string_view name;
  std::string_view column;  // or an expression
  FieldType type;
};

// Of a permit that is held 0, so that it can be asked for; absent for runs that are no permits.
constexpr std::string_view outcome_column = "iif(fence is null, null, coalesce(outcome, 0))";

constexpr std::array fields = {
    Field{"WorkflowId", "workflow_id", FieldType::text},
    Field{"RunId", "run_id", FieldType::text},
    Field{"WorkflowType", "workflow_type", FieldType::text},
    Field{"ExecutionStatus", "status", FieldType::status},
    Field{"StartTime", "start_time", FieldType::time},
    Field{"CloseTime", "close_time", FieldType::time},
    Field{"ParentWorkflowId", "parent_workflow_id", FieldType::text},
    Field{"ParentRunId", "parent_run_id", FieldType::text},
    Field{"TaskQueue", "task_queue", FieldType::text},
    Field{"Outcome", outcome_column, FieldType::outcome},
};

struct StatusName {
  std::string_view text;
  std::string_view full;  // after WORKFLOW_EXECUTION_STATUS_
  WorkflowExecutionStatus status;
};

constexpr std::array status_names = {
    StatusName{"Running", "RUNNING", WorkflowExecutionStatus::running},
    StatusName{"Completed", "COMPLETED", WorkflowExecutionStatus::completed},
    StatusName{"Failed", "FAILED", WorkflowExecutionStatus::failed},
    StatusName{"Canceled", "CANCELED", WorkflowExecutionStatus::canceled},
    StatusName{"Terminated", "TERMINATED", WorkflowExecutionStatus::terminated},
    StatusName{"ContinuedAsNew", "CONTINUED_AS_NEW", WorkflowExecutionStatus::continued_as_new},
    StatusName{"TimedOut", "TIMED_OUT", WorkflowExecutionStatus::timed_out},
};

struct OutcomeName {
  std::string_view text;
  Outcome outcome;
};

constexpr std::array outcome_names = {
    OutcomeName{"held", Outcome::unspecified},
    OutcomeName{"released", Outcome::released},
    OutcomeName{"lease_expired", Outcome::lease_expired},
    OutcomeName{"holder_closed", Outcome::holder_closed},
    OutcomeName{"force_released", Outcome::force_released},
};

// What Temporal's query has and ours has not.
struct UnsupportedWord {
  std::string_view word;  // where an operator, a field or AND could stand
  std::string_view sentence;
};

constexpr std::array unsupported_words = {
    UnsupportedWord{"OR", "OR is not supported; use IN, or ask once for each alternative"},
    UnsupportedWord{"NOT", "NOT is not supported; use !="},
    UnsupportedWord{"BETWEEN", "BETWEEN is not supported; use >= and <= joined by AND"},
    UnsupportedWord{"IS",
                    "IS NULL is not supported; to find open runs use "
                    "ExecutionStatus = 'Running'"},
    UnsupportedWord{"LIKE", "LIKE is not supported; use STARTS_WITH"},
    UnsupportedWord{"ORDER", "ORDER BY is not supported; lists are always newest first"},
    UnsupportedWord{"GROUP", "GROUP BY is not supported; count once for each value"},
    UnsupportedWord{"(", "parentheses are not supported here; join terms by AND only"},
};

char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return to_lower(x) == to_lower(y); });
}

bool has_part(std::string_view text, std::string_view part) {
  const auto same = [](char x, char y) { return to_lower(x) == to_lower(y); };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

// --- Errors ---

std::string at_position(std::size_t offset) {
  return "query, position " + std::to_string(offset + 1) + ": ";
}

[[noreturn]] void invalid(std::size_t offset, const std::string& problem) {
  throw invalid_argument("FILTER_INVALID", at_position(offset) + problem);
}

std::string known_fields() {
  std::string list;
  for (const Field& field : fields) list += (list.empty() ? "" : ", ") + std::string(field.name);
  return list;
}

[[noreturn]] void unknown_field(std::size_t offset, const std::string& name) {
  constexpr std::size_t name_size_max = 64;
  const Field* nearest = nullptr;
  std::size_t best = 4;  // further away is another word, if it is not a part: Status
  for (const Field& field : fields) {
    if (name.size() > name_size_max) break;
    const std::size_t far = has_part(field.name, name) ? 1 : edit_distance(name, field.name);
    if (far >= best || far >= name.size()) continue;
    best = far;
    nearest = &field;
  }
  const std::string meant =
      nearest == nullptr ? "" : "did you mean " + std::string(nearest->name) + "? ";
  invalid(offset, "no field has the name " + name.substr(0, name_size_max) + "; " + meant +
                      "The fields are " + known_fields());
}

// --- Tokens ---

struct Token {
  enum class Kind { end, word, value, number, symbol };
  Kind kind = Kind::end;
  std::string text;  // of a value: without quotes and escapes
  std::size_t offset = 0;

  bool is(std::string_view expected) const {
    return (kind == Kind::word || kind == Kind::symbol) && is_same_word(text, expected);
  }
};

// As an error shows it: in one line, and not all of a long one.
std::string shown(const Token& token) {
  constexpr std::size_t size_max = 40;
  if (token.kind == Token::Kind::end) return "the end";
  std::string text = token.text.substr(0, size_max);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, '?');
  if (token.text.size() > size_max) text += "...";
  return token.kind == Token::Kind::value ? "'" + text + "'" : text;
}

class Lexer {
 public:
  explicit Lexer(std::string_view query) : query_(query) {}

  Token next() {
    while (!at_end() && is_one_of(" \t\r\n")) ++at_;
    const std::size_t start = at_;
    if (at_end()) return {Token::Kind::end, {}, start};
    if (is_one_of("'\"")) return {Token::Kind::value, value(), start};
    if (is_letter()) {
      while (!at_end() && (is_letter() || is_digit())) ++at_;
      return {Token::Kind::word, text_from(start), start};
    }
    if (is_digit() || is_one_of("+-.")) {
      while (!at_end() && (is_digit() || is_letter() || is_one_of("+-."))) ++at_;
      return {Token::Kind::number, text_from(start), start};
    }
    ++at_;
    const std::string two(query_.substr(start, 2));
    if (two == "!=" || two == "<=" || two == ">=" || two == "<>" || two == "==") ++at_;
    return {Token::Kind::symbol, text_from(start), start};
  }

 private:
  bool at_end() const { return at_ == query_.size(); }
  bool is_one_of(std::string_view set) const { return set.find(query_[at_]) != set.npos; }
  bool is_digit() const { return query_[at_] >= '0' && query_[at_] <= '9'; }
  bool is_letter() const {
    const char c = to_lower(query_[at_]);
    return (c >= 'a' && c <= 'z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
  }
  std::string text_from(std::size_t start) const {
    return std::string(query_.substr(start, at_ - start));
  }

  std::string value() {
    const std::size_t start = at_;
    const char quote = query_[at_++];
    std::string text;
    while (!at_end()) {
      const char c = query_[at_++];
      const char following = at_end() ? '\0' : query_[at_];
      if (c == '\\') {
        if (!at_end() && !is_one_of("\\'\"")) invalid(at_ - 1, "write \\\\ for a backslash");
        text += following;
        if (!at_end()) ++at_;
      } else if (c != quote) {
        text += c;
      } else if (following == quote) {
        text += quote;
        ++at_;
      } else {
        return text;
      }
    }
    invalid(start, std::string("the quote ") + quote + " is not closed");
  }

  std::string_view query_;
  std::size_t at_ = 0;
};

// --- Values ---

template <class Names>
std::string list_of(const Names& names) {
  std::string list;
  for (const auto& name : names) list += " '" + std::string(name.text) + "'";
  return list;
}

std::string expected_value(FieldType type) {
  switch (type) {
    case FieldType::text:
      return "a text in quotes";
    case FieldType::time:
      return "a time like '2026-08-01T12:00:00Z'";
    case FieldType::status:
      return "a status:" + list_of(status_names);
    case FieldType::outcome:
      break;
  }
  return "an outcome:" + list_of(outcome_names);
}

std::optional<std::int64_t> status_number(std::string_view text) {
  constexpr std::string_view prefix = "WORKFLOW_EXECUTION_STATUS_";
  const bool is_full = text.starts_with(prefix);
  if (is_full) text.remove_prefix(prefix.size());
  for (const StatusName& name : status_names) {
    if (text == (is_full ? name.full : name.text)) return static_cast<std::int64_t>(name.status);
  }
  return std::nullopt;
}

std::optional<std::int64_t> outcome_number(std::string_view text) {
  for (const OutcomeName& name : outcome_names) {
    if (text == name.text) return static_cast<std::int64_t>(name.outcome);
  }
  return std::nullopt;
}

std::optional<std::int64_t> time_number(std::string_view text) {
  const std::optional<Time> time = parse_time(text);
  if (!time) return std::nullopt;
  return time->time_since_epoch().count();
}

std::optional<std::int64_t> number_of(FieldType type, std::string_view text) {
  if (type == FieldType::time) return time_number(text);
  if (type == FieldType::status) return status_number(text);
  return outcome_number(text);
}

ListFilter::Value read_value(const Field& field, const Token& token) {
  if (token.kind == Token::Kind::value) {
    if (field.type == FieldType::text) return token.text;
    if (const auto number = number_of(field.type, token.text)) return *number;
  }
  invalid(token.offset, std::string(field.name) + " takes " + expected_value(field.type) +
                            ", not " + shown(token));
}

// The first text after all that start with `prefix`, in SQLite's order of bytes; nothing if there
// is none.
std::optional<std::string> after_prefix(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xFF') prefix.pop_back();
  if (prefix.empty()) return std::nullopt;
  prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  return prefix;
}

// --- The grammar ---

class Parser {
 public:
  explicit Parser(std::string_view query) : lexer_(query), token_(lexer_.next()) {}

  ListFilter parse() {
    if (token_.kind == Token::Kind::end) return {};
    term();
    while (token_.kind != Token::Kind::end) {
      refuse_unsupported();
      if (!token_.is("AND")) invalid(token_.offset, "expected AND, found " + shown(token_));
      advance();
      term();
    }
    return std::move(filter_);
  }

 private:
  void advance() { token_ = lexer_.next(); }

  void refuse_unsupported() const {
    for (const UnsupportedWord& unsupported : unsupported_words) {
      if (!token_.is(unsupported.word)) continue;
      throw Error(ErrorCode::unimplemented, "FILTER_UNSUPPORTED",
                  at_position(token_.offset) + std::string(unsupported.sentence));
    }
  }

  void term() {
    if (++terms_ > list_query_terms_max) {
      invalid(token_.offset,
              "more than " + std::to_string(list_query_terms_max) + " terms; shorten the query");
    }
    const Field& field = read_field();
    refuse_unsupported();
    if (!filter_.where.empty()) filter_.where += " AND ";
    if (token_.is("IN")) {
      in(field);
    } else if (token_.is("STARTS_WITH")) {
      starts_with(field);
    } else {
      comparison(field);
    }
  }

  const Field& read_field() {
    refuse_unsupported();
    if (token_.kind != Token::Kind::word) {
      invalid(token_.offset,
              "expected a field, found " + shown(token_) + "; the fields are " + known_fields());
    }
    const auto named = [&](const Field& known) { return known.name == token_.text; };
    const auto found = std::find_if(fields.begin(), fields.end(), named);
    if (found == fields.end()) unknown_field(token_.offset, token_.text);
    advance();
    return *found;
  }

  void comparison(const Field& field) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 7> operators = {
        {{"=", "="},
         {"!=", "<>"},
         {"<>", "<>"},
         {"<", "<"},
         {"<=", "<="},
         {">", ">"},
         {">=", ">="}}};
    const auto found = std::find_if(operators.begin(), operators.end(),
                                    [&](const auto& known) { return token_.is(known.first); });
    if (found == operators.end()) {
      invalid(token_.offset, "expected an operator after " + std::string(field.name) + " (" +
                                 operators_of(field) + "), found " + shown(token_));
    }
    const std::string_view sql = found->second;
    const bool is_order = sql != "=" && sql != "<>";
    if (is_order && field.type != FieldType::text && field.type != FieldType::time) {
      refuse_operator(field);
    }
    advance();
    add(field, sql, value(field));
  }

  void in(const Field& field) {
    if (field.type == FieldType::time) refuse_operator(field);
    advance();
    expect("(", "( after IN");
    filter_.where += std::string(field.column) + " IN (";
    std::size_t count = 0;
    do {
      if (count > 0) advance();  // over the comma
      if (++count > list_query_in_max) {
        invalid(token_.offset,
                "more than " + std::to_string(list_query_in_max) + " values in one IN");
      }
      filter_.where += count > 1 ? ", ?" : "?";
      filter_.values.push_back(value(field));
    } while (token_.is(","));
    expect(")", ", or ) in the list of IN");
    filter_.where += ")";
    if (field.column == "workflow_id") narrow(Narrowing::workflow_ids);
    if (field.column == "run_id") narrow(Narrowing::run_ids);
  }

  // As a range, so that an index serves it.
  void starts_with(const Field& field) {
    if (field.type != FieldType::text) refuse_operator(field);
    advance();
    const auto prefix = std::get<std::string>(value(field));
    add(field, ">=", prefix);
    if (auto end = after_prefix(prefix)) {
      filter_.where += " AND ";
      add(field, "<", std::move(*end));
    }
  }

  ListFilter::Value value(const Field& field) {
    ListFilter::Value value = read_value(field, token_);
    advance();
    return value;
  }

  void expect(std::string_view symbol, const std::string& what) {
    if (!token_.is(symbol)) {
      invalid(token_.offset, "expected " + what + ", found " + shown(token_));
    }
    advance();
  }

  static std::string operators_of(const Field& field) {
    switch (field.type) {
      case FieldType::text:
        return "=, !=, <, <=, >, >=, IN, STARTS_WITH";
      case FieldType::time:
        return "=, !=, <, <=, >, >=";
      case FieldType::status:
      case FieldType::outcome:
        break;
    }
    return "=, !=, IN";
  }

  [[noreturn]] void refuse_operator(const Field& field) const {
    invalid(token_.offset, std::string(field.name) + " cannot be used with " + token_.text +
                               "; it takes " + operators_of(field));
  }

  void add(const Field& field, std::string_view sql, ListFilter::Value value) {
    filter_.where += std::string(field.column) + " " + std::string(sql) + " ?";
    note(field, sql, value);
    filter_.values.push_back(std::move(value));
  }

  void narrow(Narrowing narrowing) { filter_.narrowing = std::max(filter_.narrowing, narrowing); }

  void note(const Field& field, std::string_view sql, const ListFilter::Value& value) {
    if (sql == "<>") return;
    const bool is_equal = sql == "=";
    if (field.column == "workflow_id") {
      narrow(is_equal ? Narrowing::workflow_id : Narrowing::workflow_ids);
    } else if (field.column == "run_id") {
      narrow(is_equal ? Narrowing::run_id : Narrowing::run_ids);
    } else if (field.column == "parent_workflow_id") {
      if (is_equal) narrow(Narrowing::parent);
    } else if (field.column == "close_time") {
      narrow(Narrowing::close_time);
    } else if (field.type == FieldType::status) {
      const auto running = static_cast<std::int64_t>(WorkflowExecutionStatus::running);
      if (std::get<std::int64_t>(value) == running) narrow(Narrowing::open);
    } else if (field.type == FieldType::outcome) {
      const auto held = static_cast<std::int64_t>(Outcome::unspecified);
      if (is_equal && std::get<std::int64_t>(value) == held) narrow(Narrowing::open);
    } else if (field.column == "start_time") {
      note_start(sql, Time(Duration(std::get<std::int64_t>(value))));
    }
  }

  void note_start(std::string_view sql, Time time) {
    const Time after = time + Duration(1);
    const bool is_equal = sql == "=";
    if (sql == ">") filter_.started_from = std::max(filter_.started_from, after);
    if (sql == ">=" || is_equal) filter_.started_from = std::max(filter_.started_from, time);
    if (sql == "<") filter_.started_before = std::min(filter_.started_before, time);
    if (sql == "<=" || is_equal) filter_.started_before = std::min(filter_.started_before, after);
  }

  Lexer lexer_;
  Token token_;
  std::size_t terms_ = 0;
  ListFilter filter_;
};

}  // namespace

ListFilter parse_list_filter(std::string_view query) {
  if (query.size() > list_query_bytes_max) {
    invalid(list_query_bytes_max,
            "the query is longer than " + std::to_string(list_query_bytes_max) + " bytes");
  }
  const std::size_t nul = query.find('\0');
  if (nul != query.npos) invalid(nul, "a NUL cannot be in a query");
  return Parser(query).parse();
}

}  // namespace permit::store
