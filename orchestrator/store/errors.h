// What can go wrong below a statement. All name the SQL and SQLite's own text.
#pragma once

#include <stdexcept>
#include <string>

namespace permit::store {

// Nothing of the transaction is durable; roll it back, answer 507, carry on.
struct DiskFull : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// The file, or what is below it. The outcome is unknown, so the process stops: all later calls
// throw it again (but for SQLITE_BUSY), and closing writes nothing more.
struct StoreFailed : std::runtime_error {
  StoreFailed(int code, const std::string& message) : std::runtime_error(message), code_(code) {}
  int code() const { return code_; }  // SQLite's extended result code

 private:
  int code_;
};
// What was read is not what was written. Nothing that was read counts, nobody gets an answer.
struct Damaged : StoreFailed {
  using StoreFailed::StoreFailed;
};
// Bugs of ours. A violated constraint undoes its statement only.
struct ConstraintViolated : std::logic_error {
  using std::logic_error::logic_error;
};
struct BadStatement : std::logic_error {
  using std::logic_error::logic_error;
};
// The deadline of interrupt_when().
struct Interrupted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace permit::store
