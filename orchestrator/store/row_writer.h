// Brings commits into the tables: any number of them as one transaction, in which what they have
// done to a row comes to one statement. Belongs to one thread at a time, as its database does.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "orchestrator/store/commit_record.h"
#include "orchestrator/store/database.h"

namespace permit::store {

class RowWriter {
 public:
  explicit RowWriter(Database& database);
  ~RowWriter();

  // All of them or none, in order, and durable when it returns. `epoch` is the owner's. Throws
  // DiskFull, StoreFailed; OwnershipLost if another server has taken the file.
  void write(const CommitRecords& records, std::int64_t epoch);

 private:
  struct Statements;

  Database& database_;
  std::unique_ptr<Statements> sql_;
};

class OwnershipLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Where in the table of histories a run's begins: before its first event.
constexpr std::int64_t places_of_a_run = std::int64_t{1} << 20;
constexpr std::int64_t first_place(RunNumber run) { return run.value * places_of_a_run; }
constexpr std::int64_t end_of_places(RunNumber run) { return first_place(run) + places_of_a_run; }

}  // namespace permit::store
