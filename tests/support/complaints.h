// The engine survives its own bugs and says so on stderr; a test takes each for a failure.
#pragma once

#include <iostream>
#include <sstream>

namespace permit::test {

// While it lives, what is written to std::cerr goes to `into`.
class Complaints {
 public:
  explicit Complaints(std::ostringstream& into) : before_(std::cerr.rdbuf(into.rdbuf())) {}
  ~Complaints() { std::cerr.rdbuf(before_); }
  Complaints(const Complaints&) = delete;
  Complaints& operator=(const Complaints&) = delete;

 private:
  std::streambuf* before_;
};

}  // namespace permit::test
