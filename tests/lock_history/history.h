// What clients did to the slots of pools, as they saw it: a text with a line for each request and
// one for each answer, written outside of the process under test. Times are microseconds of one
// monotonic clock. Lines may come in any order, but an answer after its request.
//
//   pool <pool> <capacity>
//   > <time> <operation> acquire <pool>:<slot> <lease>     or <pool>:* for any slot
//   > <time> <operation> renew <run> <lease>
//   > <time> <operation> release <run>
//   > <time> <operation> read <pool>:<slot>
//   < <time> <operation> ok [<pool>:<slot>] [<fence> <run>]
//   < <time> <operation> free | full | lost | fail | info
//   ? …                                     as >, for a request that may be delivered once more
//
// `operation` is a number that is used once in a text; `run` is a word. After `ok`, an acquire has
// slot, fence and run, a read that found a holder has fence and run. `free`: a read found nobody.
// `full`: an acquire found no free slot. `lost`: the run holds nothing any more. `fail`: it did not
// happen. `info`, or no answer: it may have happened, at any later time, or not.
#pragma once

#include <cstdint>
#include <istream>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace permit::lock_history {

using Moment = std::int64_t;
inline constexpr Moment never = std::numeric_limits<Moment>::max();

enum class Kind : std::uint8_t { acquire, renew, release, read };
enum class Outcome : std::uint8_t { unknown, ok, free, full, lost, fail };

struct Operation {
  Moment invoked = 0;
  Moment returned = never;
  Moment lease = 0;
  std::uint64_t run = 0;  // a hash of its name
  std::int64_t fence = 0;
  std::uint64_t number = 0;
  std::uint32_t slot = 0;  // in History::slots
  Kind kind = Kind::acquire;
  Outcome outcome = Outcome::unknown;
  bool counts = true;  // not: it may have been delivered once more
};

struct Slot {
  std::string name;  // pool:slot
  std::string pool;
  bool any = false;  // stands for all of the pool
};

struct History {
  std::vector<Operation> operations;
  std::vector<Slot> slots;
  std::map<std::string, std::int64_t> capacities;  // of pools
};

// A line that is not of the form above, or an answer without its request.
struct BadHistory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Reads texts into one history; each has operation numbers of its own.
class Reader {
 public:
  void read(std::istream& text);
  void line(std::string_view line);  // of the current text
  void end_of_text() { open_.clear(); }
  History take() { return std::move(history_); }

 private:
  std::uint32_t slot(std::string_view name);
  Operation& request(std::string_view rest);
  void answer(std::string_view rest);

  History history_;
  std::map<std::string, std::uint32_t, std::less<>> slots_;
  std::unordered_map<std::uint64_t, std::size_t> open_;  // by number, until it is answered
};

History read_history(const std::string& text);

}  // namespace permit::lock_history
