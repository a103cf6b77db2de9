#include "orchestrator/store/reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>

#include "orchestrator/protocol/ensure.h"
#include "orchestrator/protocol/error.h"
#include "orchestrator/store/courtesy.h"
#include "orchestrator/store/row_values.h"
#include "orchestrator/store/store.h"

namespace permit::store {

namespace {

using Value = ListFilter::Value;
using Values = std::vector<Value>;

constexpr std::int64_t number_max = std::numeric_limits<std::int64_t>::max();

// Questions of the progress handler, each about 10 µs of work, before an index is given up.
constexpr int index_trial = 200;

constexpr const char* runs_way_out =
    "narrow it by WorkflowId, RunId, StartTime or ExecutionStatus = 'Running'";
constexpr const char* holds_way_out = "narrow it by pool and slot";

// --- Values that vary in number ---

void append_json(const std::string& text, std::string& out) {
  constexpr std::string_view hex = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    // SQLite would end the text here, and find what bears the shorter name.
    if (c == '\0') throw invalid_argument("FIELD_INVALID", "a name cannot have a NUL in it");
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20) {
      out += "\\u00";
      out += hex[byte >> 4];
      out += hex[byte & 15];
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  out += '"';
}

std::string to_json_array(const Values& values) {
  std::string out = "[";
  for (const Value& value : values) {
    if (out.size() > 1) out += ',';
    if (const auto* text = std::get_if<std::string>(&value)) {
      append_json(*text, out);
    } else {
      out += std::to_string(std::get<std::int64_t>(value));
    }
  }
  return out + "]";
}

// A Statement binds as many values as its call names. Here the filter decides how many there are,
// so all go as one JSON array, of which the n-th `?` reads the n-th element.
std::string numbered(std::string_view sql) {
  std::string out;
  int count = 0;
  for (const char c : sql) {
    if (c == '?') {
      out += "(?1 ->> " + std::to_string(count++) + ")";
    } else {
      out += c;
    }
  }
  return out;
}

// --- Page tokens: <kind>.<hash of the query>.<the last key shown> ---

std::string hash_hex(std::string_view text) {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  }
  std::array<char, 16> digits{};
  const auto [end, error] = std::to_chars(digits.begin(), digits.end(), hash, 16);
  ENSURE(error == std::errc());
  return std::string(digits.begin(), end);
}

std::string run_token_prefix(const std::string& namespace_, const ListFilter& filter) {
  Values query{namespace_, filter.where};
  query.insert(query.end(), filter.values.begin(), filter.values.end());
  return "r." + hash_hex(to_json_array(query)) + ".";
}

std::string hold_token_prefix(const HoldQuery& query) {
  const Values values{query.pool.value, query.slot.value, static_cast<std::int64_t>(query.state),
                      static_cast<std::int64_t>(query.outcome), to_us(query.since)};
  return "h." + hash_hex(to_json_array(values)) + ".";
}

// The page's rows have keys below this.
std::int64_t key_end(const Bytes& token, const std::string& prefix) {
  const std::string& text = token.value;
  if (text.empty()) return number_max;
  if (text.size() > 64 || text.size() < 2 || text[1] != '.') {
    throw invalid_argument("PAGE_TOKEN_INVALID",
                           "nextPageToken is not one that this server gave; begin without it");
  }
  std::int64_t key = 0;
  const char* end = text.data() + text.size();
  const bool is_ours = text.starts_with(prefix);
  const auto [stop, error] = std::from_chars(text.data() + (is_ours ? prefix.size() : 0), end, key);
  if (!is_ours || error != std::errc() || stop != end || key < 0) {
    throw invalid_argument("PAGE_TOKEN_INVALID",
                           "nextPageToken belongs to another query; begin without it");
  }
  return key;
}

std::int64_t usable_page_size(std::int64_t asked) {
  if (asked < 0) throw invalid_argument("FIELD_INVALID", "pageSize cannot be negative");
  return asked == 0 ? page_size_default : std::min(asked, page_size_max);
}

// --- Rows ---

constexpr std::string_view run_columns =
    "number, workflow_id, run_id, status, workflow_type, task_queue, parent_workflow_id, "
    "parent_run_id, start_time, close_time, next_event_id, history_bytes, fence, deadline, "
    "outcome, cause";

WorkflowExecutionInfo execution_info(const Statement::Cursor& row) {
  WorkflowExecutionInfo info;
  info.execution = {WorkflowId(row.text(1)), RunId(row.text(2))};
  info.status = static_cast<WorkflowExecutionStatus>(row.i32(3));
  info.type.name = row.text(4);
  info.task_queue = row.text(5);
  if (const auto parent = row.optional_text(6)) {
    info.parent_execution = WorkflowExecution{WorkflowId(*parent), RunId(row.text(7))};
  }
  info.start_time = from_us(row.i64(8));
  info.execution_time = info.start_time;
  if (const auto close_time = row.optional_i64(9)) {
    info.close_time = from_us(*close_time);
    info.execution_duration = info.close_time - info.start_time;
  }
  info.history_length = row.i64(10) - 1;
  info.history_size_bytes = row.i64(11);
  info.fence = Fence{row.optional_i64(12).value_or(0)};
  info.deadline = from_us(row.optional_i64(13).value_or(0));
  info.outcome = static_cast<Outcome>(row.optional_i64(14).value_or(0));
  info.cause = row.optional_text(15).value_or("");
  return info;
}

constexpr std::string_view hold_columns =
    "fence, pool, slot, run_id, holder, holder_run_id, reason, granted_at, closed_at, outcome, "
    "cause, CASE WHEN closed_at IS NULL "
    "THEN (SELECT deadline FROM runs WHERE runs.number = holds.run) END, requested_at, "
    "late_release_at";

PermitInfo permit_info(const Statement::Cursor& row) {
  PermitInfo info;
  info.fence = Fence{row.i64(0)};
  info.pool = PoolName(row.text(1));
  info.slot = SlotName(row.text(2));
  info.id = WorkflowId("permit:" + info.pool.value + ":" + info.slot.value);
  info.run_id = RunId(row.text(3));
  info.holder = row.text(4);
  info.holder_run_id = RunId(row.optional_text(5).value_or(""));
  info.reason = row.text(6);
  info.since = from_us(row.i64(7));
  info.closed_at = from_us(row.optional_i64(8).value_or(0));
  info.state = row.is_null(8) ? "held" : "closed";
  info.outcome = static_cast<Outcome>(row.optional_i64(9).value_or(0));
  info.cause = row.optional_text(10).value_or("");
  info.possible_overlap = may_overlap(info.outcome, info.cause);
  info.deadline = from_us(row.optional_i64(11).value_or(0));
  info.requested_at = from_us(row.optional_i64(12).value_or(0));
  info.late_release_at = from_us(row.optional_i64(13).value_or(0));
  return info;
}

// --- SQL ---

// A statement in the making: its SQL, with a `?` for each value.
struct Query {
  std::string sql;
  Values values;

  Query& add(std::string_view text) {
    sql += text;
    return *this;
  }
  Query& add(std::string_view text, Value value) {
    values.push_back(std::move(value));
    return add(text);
  }
};

// What the keys of a page's rows are between, and how many rows are wanted.
struct KeyRange {
  std::int64_t from = 0;
  std::int64_t before = number_max;
  std::int64_t limit = 0;
};

// With the words that make a partial index usable, which SQLite sees in literals only.
std::string_view narrowed_by(Narrowing narrowing) {
  switch (narrowing) {
    case Narrowing::none:
      break;
    case Narrowing::close_time:
      return "INDEXED BY runs_closed WHERE close_time IS NOT NULL AND ";
    case Narrowing::open:
      return "INDEXED BY runs_open WHERE status = 1 AND ";
    case Narrowing::parent:
      return "INDEXED BY runs_parent WHERE parent_workflow_id IS NOT NULL AND ";
    case Narrowing::workflow_ids:
    case Narrowing::workflow_id:
      return "INDEXED BY runs_workflow_id WHERE ";
    case Narrowing::run_ids:
    case Narrowing::run_id:
      return "INDEXED BY runs_run_id WHERE ";
  }
  return "NOT INDEXED WHERE ";
}

void add_runs(Query& query, const std::string& namespace_, const ListFilter& filter,
              std::string_view access, const KeyRange& range) {
  query.add(" FROM runs ").add(access);
  query.add("namespace = ?", namespace_);
  if (range.from > 0) query.add(" AND number >= ?", range.from);
  if (range.before < number_max) query.add(" AND number < ?", range.before);
  if (filter.where.empty()) return;
  query.add(" AND (").add(filter.where).add(")");
  query.values.insert(query.values.end(), filter.values.begin(), filter.values.end());
}

Query list_runs_query(const std::string& namespace_, const ListFilter& filter, Access access,
                      const KeyRange& range) {
  const Narrowing narrowing = access == Access::index ? filter.narrowing : Narrowing::none;
  Query query;
  query.add("SELECT ").add(run_columns);
  add_runs(query, namespace_, filter, narrowed_by(narrowing), range);
  query.add(" ORDER BY number DESC LIMIT ?", range.limit);
  return query;
}

Query count_runs_query(const std::string& namespace_, const ListFilter& filter,
                       const KeyRange& range) {
  // The index of workflow ids is the smallest thing that lists a whole namespace.
  const Narrowing narrowing = filter.where.empty() ? Narrowing::workflow_ids : filter.narrowing;
  Query query;
  query.add("SELECT count(*)");
  add_runs(query, namespace_, filter, narrowed_by(narrowing), range);
  return query;
}

void add_place(Query& sql, const HoldQuery& query) {
  if (!query.pool.empty()) sql.add(" AND pool = ?", query.pool.value);
  if (!query.slot.empty()) sql.add(" AND slot = ?", query.slot.value);
}

// The ids that the permits of a place have.
void add_ids(Query& sql, const HoldQuery& query) {
  const std::string beginning = query.pool.empty() ? "permit" : "permit:" + query.pool.value;
  if (!query.pool.empty() && !query.slot.empty()) {
    sql.add(" AND workflow_id = ?", beginning + ":" + query.slot.value);
  } else {
    sql.add(" AND workflow_id >= ?", beginning + ":").add(" AND workflow_id < ?", beginning + ";");
  }
}

// Where to look for holds.
enum class HoldsOf { all, open_runs, slots };

std::string_view narrowed_by(HoldsOf where) {
  switch (where) {
    case HoldsOf::all:
    case HoldsOf::open_runs:
      break;
    case HoldsOf::slots:
      return "INDEXED BY holds_by_slot WHERE ";
  }
  return "NOT INDEXED WHERE ";
}

void add_holds(Query& sql, const HoldQuery& query, HoldsOf where, const KeyRange& range) {
  sql.add("SELECT ").add(hold_columns).add(" FROM holds ").add(narrowed_by(where));
  sql.add("fence < ?", range.before);
  if (where == HoldsOf::open_runs) {
    sql.add(
        " AND fence IN (SELECT fence FROM runs INDEXED BY runs_open "
        "WHERE namespace = 'default' AND status = 1 AND pool IS NOT NULL");
    add_ids(sql, query);
    sql.add(")");
  }
  add_place(sql, query);
  if (query.state == HoldState::held) sql.add(" AND closed_at IS NULL");
  if (query.state == HoldState::closed) sql.add(" AND closed_at IS NOT NULL");
  if (query.outcome != Outcome::unspecified) {
    sql.add(" AND outcome = ?", static_cast<std::int64_t>(query.outcome));
  }
  if (is_set(query.since)) {
    sql.add(" AND (closed_at IS NULL OR closed_at >= ?)", to_us(query.since));
  }
}

Query list_holds_query(const HoldQuery& query, Access access, const KeyRange& range) {
  Query sql;
  if (access == Access::index && query.state == HoldState::held) {
    add_holds(sql, query, HoldsOf::open_runs, range);
  } else if (access == Access::index && !query.pool.empty()) {
    add_holds(sql, query, HoldsOf::slots, range);
  } else {
    add_holds(sql, query, HoldsOf::all, range);
  }
  sql.add(" ORDER BY fence DESC LIMIT ?", range.limit);
  return sql;
}

template <class UseRow>
void for_each_row(Database& database, const Query& query, const UseRow& use) {
  Statement statement(database, numbered(query.sql));
  for (auto row = statement.bind(to_json_array(query.values)); row.step();) use(row);
}

std::int64_t read_number(Database& database, const Query& query) {
  std::int64_t number = 0;
  for_each_row(database, query, [&](const auto& row) { number = row.i64(0); });
  return number;
}

// --- Time ---

// Ends what runs on `database` after `time_max`. Inside a transaction it does nothing.
class TimeLimit {
 public:
  TimeLimit(Database& database, Duration time_max)
      : database_(database), end_(std::chrono::steady_clock::now() + time_max) {
    if (database_.in_transaction()) return;
    database_.interrupt_when([this] {
      courtesy_.step();
      if (trial_ && --trial_left_ < 0) return true;
      return std::chrono::steady_clock::now() >= end_;
    });
  }
  ~TimeLimit() { database_.interrupt_when({}); }
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

  void begin_trial() { trial_ = true; }
  void end_trial() { trial_ = false; }

 private:
  Database& database_;
  std::chrono::steady_clock::time_point end_;
  Courtesy courtesy_;
  bool trial_ = false;
  int trial_left_ = index_trial;
};

// Newest first by an index means to sort all that it finds; in order it means to walk past all that
// is not wanted. Where only the data can say which is less, the index is tried first, shortly.
enum class Plan { in_order, index, index_if_quick };

Plan plan_of(Narrowing narrowing) {
  switch (narrowing) {
    case Narrowing::none:
      break;
    case Narrowing::close_time:
    case Narrowing::open:
    case Narrowing::workflow_ids:
    case Narrowing::run_ids:
      return Plan::index_if_quick;
    case Narrowing::parent:
    case Narrowing::workflow_id:
    case Narrowing::run_id:
      return Plan::index;
  }
  return Plan::in_order;
}

Plan plan_of(const HoldQuery& query) {
  if (query.state == HoldState::held) return Plan::index;
  if (query.pool.empty()) return Plan::in_order;
  return query.slot.empty() ? Plan::index_if_quick : Plan::index;
}

template <class Read>
void read_by_plan(TimeLimit& limit, Plan plan, const Read& read) {
  if (plan == Plan::index) return read(Access::index);
  if (plan == Plan::index_if_quick) {
    try {
      limit.begin_trial();
      return read(Access::index);
    } catch (const Interrupted&) {
      limit.end_trial();
    }
  }
  read(Access::in_order);
}

// Run numbers and start times rise together, since time never goes back between two commits. So a
// time says at which number to begin: that of the first run that started at it or later.
std::int64_t first_started(Database& database, Time time) {
  Statement last(database, "SELECT coalesce(max(number), 0) FROM runs");
  Statement next(database,
                 "SELECT number, start_time FROM runs WHERE number >= ? ORDER BY number LIMIT 1");
  std::int64_t low = 1;
  std::int64_t high = 1;
  for (auto row = last.bind(); row.step();) high = row.i64(0) + 1;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    auto row = next.bind(middle);
    if (!row.step() || row.i64(1) >= to_us(time)) {
      high = middle;
    } else {
      low = row.i64(0) + 1;
    }
  }
  return low;
}

KeyRange started_range(Database& database, const ListFilter& filter) {
  KeyRange range;
  if (is_set(filter.started_from)) range.from = first_started(database, filter.started_from);
  if (filter.started_before != never) {
    range.before = first_started(database, filter.started_before);
  }
  return range;
}

Database::Options read_only(Database::Options options) {
  options.mode = Database::Mode::read_only;
  options.user_version_max = schema_version;
  return options;
}

constexpr KeyRange some_range{1, 2, 3};  // for its SQL only

}  // namespace

std::string list_runs_sql(const ListFilter& filter, Access access) {
  return numbered(list_runs_query("", filter, access, some_range).sql);
}

std::string count_runs_sql(const ListFilter& filter) {
  return numbered(count_runs_query("", filter, some_range).sql);
}

std::string list_holds_sql(const HoldQuery& query, Access access) {
  return numbered(list_holds_query(query, access, some_range).sql);
}

// --- Reader ---

Reader::Reader(Database::Options options, Duration time_max)
    : own_(std::make_unique<Database>(read_only(std::move(options)))),
      database_(*own_),
      time_max_(time_max) {}

Reader::Reader(Database& database, Duration time_max) : database_(database), time_max_(time_max) {}

Error Reader::too_expensive(const std::string& way_out) const {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time_max_).count();
  return resource_exhausted("QUERY_TOO_EXPENSIVE", "the query takes longer than " +
                                                       std::to_string(ms) + " ms; " + way_out);
}

ListPage Reader::list_runs(const std::string& namespace_, const ListFilter& filter,
                           std::int64_t page_size, const Bytes& page_token) {
  const std::string token_prefix = run_token_prefix(namespace_, filter);
  const std::int64_t end = key_end(page_token, token_prefix);
  const std::int64_t size = usable_page_size(page_size);
  ListPage page;
  std::int64_t last_shown = 0;
  const auto read = [&](KeyRange range, Access access) {
    page = {};
    for_each_row(database_, list_runs_query(namespace_, filter, access, range),
                 [&](const auto& row) {
                   if (std::ssize(page.executions) == size) {
                     page.next_page_token.value = token_prefix + std::to_string(last_shown);
                     return;
                   }
                   page.executions.push_back(execution_info(row));
                   last_shown = row.i64(0);
                 });
  };
  TimeLimit limit(database_, time_max_);
  try {
    KeyRange range = started_range(database_, filter);
    range.before = std::min(range.before, end);
    range.limit = size + 1;
    read_by_plan(limit, plan_of(filter.narrowing), [&](Access access) { read(range, access); });
  } catch (const Interrupted&) {
    throw too_expensive(runs_way_out);
  }
  return page;
}

std::int64_t Reader::count_runs(const std::string& namespace_, const ListFilter& filter) {
  const TimeLimit limit(database_, time_max_);
  try {
    const KeyRange range = started_range(database_, filter);
    return read_number(database_, count_runs_query(namespace_, filter, range));
  } catch (const Interrupted&) {
    throw too_expensive(runs_way_out);
  }
}

HoldPage Reader::list_holds(const HoldQuery& query) {
  const std::string token_prefix = hold_token_prefix(query);
  const std::int64_t size = usable_page_size(query.page_size);
  const KeyRange range{0, key_end(query.page_token, token_prefix), size + 1};
  HoldPage page;
  const auto read = [&](Access access) {
    page = {};
    for_each_row(database_, list_holds_query(query, access, range), [&](const auto& row) {
      if (std::ssize(page.permits) == size) {
        const Fence last_shown = page.permits.back().fence;
        page.next_page_token.value = token_prefix + std::to_string(last_shown.value);
        return;
      }
      page.permits.push_back(permit_info(row));
    });
  };
  TimeLimit limit(database_, time_max_);
  try {
    read_by_plan(limit, plan_of(query), read);
  } catch (const Interrupted&) {
    throw too_expensive(holds_way_out);
  }
  return page;
}

std::vector<HoldCount> Reader::hold_counts(const PoolName& pool) {
  Query query;
  query.add("SELECT pool, slot, outcome, cause, holds FROM hold_counts WHERE ");
  query.add(pool.empty() ? "pool >= ?" : "pool = ?", pool.value);
  query.add(" ORDER BY pool, slot, outcome, cause");
  std::vector<HoldCount> counts;
  const TimeLimit limit(database_, time_max_);
  try {
    for_each_row(database_, query, [&](const auto& row) {
      counts.push_back({PoolName(row.text(0)), SlotName(row.text(1)),
                        static_cast<Outcome>(row.i32(2)), std::string(row.text(3)), row.i64(4)});
    });
  } catch (const Interrupted&) {
    throw too_expensive(holds_way_out);
  }
  return counts;
}

}  // namespace permit::store
