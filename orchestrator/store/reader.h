// Lists and counts, each in one bounded read: pages by key, and an end to any read that takes too
// long. Belongs to one thread: its own, with a connection of its own that cannot write; or, for a
// database in memory, the writer's.
//
// Pages are newest first and go by number or fence, so what is added meanwhile changes no later
// page. A page token is good for the same query only.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/pools.h"
#include "orchestrator/protocol/request.h"
#include "orchestrator/store/database.h"
#include "orchestrator/store/history_table.h"
#include "orchestrator/store/list_filter.h"

namespace permit::store {

inline constexpr std::int64_t page_size_default = 100;
inline constexpr std::int64_t page_size_max = 1000;
inline constexpr Duration read_time_max = std::chrono::milliseconds(100);

using ListPage = ListWorkflowExecutionsResponse;

enum class HoldState { any, held, closed };

struct HoldQuery {
  PoolName pool;  // absent: all
  SlotName slot;  // absent: all
  HoldState state = HoldState::any;
  Outcome outcome = Outcome::unspecified;  // unspecified: any
  Time since{};                            // leaves out what closed before
  std::int64_t page_size = 0;              // 0: page_size_default
  Bytes page_token;
};

struct HoldPage {
  std::vector<PermitInfo> permits;
  Bytes next_page_token;
};

struct HoldCount {
  PoolName pool;
  SlotName slot;
  Outcome outcome = Outcome::unspecified;  // unspecified: grants
  std::string cause;
  std::int64_t holds = 0;
};

// All throw Error: QUERY_TOO_EXPENSIVE (resource_exhausted) after `time_max`; PAGE_TOKEN_INVALID
// (invalid_argument) for a token of another query, or none of ours.
class Reader {
 public:
  // Opens its own connection; the mode of `options` does not count. The file must exist.
  explicit Reader(Database::Options options, Duration time_max = read_time_max);
  // Reads through `database`, which outlives it. Inside a transaction nothing limits a read, since
  // an end to it would be the end of the transaction.
  explicit Reader(Database& database, Duration time_max = read_time_max);

  ListPage list_runs(const std::string& namespace_, const ListFilter& filter,
                     std::int64_t page_size = 0, const Bytes& page_token = {});
  std::int64_t count_runs(const std::string& namespace_, const ListFilter& filter);

  HistoryTable& histories() { return histories_; }  // without an end to it: a page is bounded

  HoldPage list_holds(const HoldQuery& query);
  std::vector<HoldCount> hold_counts(const PoolName& pool);  // absent: of all pools

 private:
  Error too_expensive(const std::string& way_out) const;

  std::unique_ptr<Database> own_;
  Database& database_;
  Duration time_max_;
  HistoryTable histories_{database_};
};

// --- The statements, for the test that asks SQLite how it runs them ---

// By an index that narrows what the query asks for, and then sorted; or all rows in the order of
// the pages, until there are enough.
enum class Access { index, in_order };

// One parameter: the values of the `?` as a JSON array.
std::string list_runs_sql(const ListFilter& filter, Access access);
std::string count_runs_sql(const ListFilter& filter);
std::string list_holds_sql(const HoldQuery& query, Access access);

}  // namespace permit::store
