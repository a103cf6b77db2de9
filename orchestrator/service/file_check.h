// Looks at all of a database and changes nothing; also while a server runs on it. What the rows
// say is held against each other and against what the events of each run come to.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "orchestrator/store/row_checks.h"
#include "orchestrator/store/store.h"

namespace permit::service {

inline constexpr std::size_t faults_kept = 100;

struct FileReport {
  int schema = 0;
  std::int64_t commit = 0;
  std::int64_t fence_epoch = 0;
  std::int64_t fence = 0;
  std::int64_t runs = 0;
  std::int64_t events = 0;
  std::int64_t permits_held = 0;
  std::vector<store::Fault> faults;  // the first of them
  std::int64_t fault_count = 0;
};

// `progress` is told what is being looked at, and of the runs how many of how many are done.
using CheckProgress =
    std::function<void(const std::string& what, std::int64_t done, std::int64_t all)>;

// Throws StoreFailed or StartRefused if the file cannot be read at all. `looks_at_mark`: whether
// the last acknowledged commit has to be there, too.
FileReport check_file(const store::Database::Options& options, const CheckProgress& progress,
                      bool looks_at_mark = true);

}  // namespace permit::service
