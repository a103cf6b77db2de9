// Whether the rows of a database agree with each other, as far as SQL can tell; what they mean is
// looked at by service/file_check.
#pragma once

#include <functional>
#include <string>

#include "orchestrator/protocol/ids.h"
#include "orchestrator/store/database.h"

namespace permit::store {

// One row that cannot be as it is.
struct Fault {
  std::string table;
  std::string row;  // which one: "run 12, event 5"; empty: the whole table
  std::string what;
};

inline constexpr int row_check_count = 18;

// The check with this number, from 0; `note` is called for each row that fails it.
void check_rows(Database& database, int check, const std::function<void(Fault)>& note);

std::int64_t count_runs(Database& database);
// All runs, by number, from the table itself and no index of it.
void for_each_run(Database& database, const std::function<void(RunNumber)>& visit);

}  // namespace permit::store
