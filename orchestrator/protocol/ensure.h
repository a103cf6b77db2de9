// ENSURE(condition): a broken invariant of ours, always compiled in. It throws while a request is
// being decided, before anything of that request is written, so the server lives: the request gets
// a 500 and the memory it touched is reloaded from disk.
#pragma once

#include <stdexcept>
#include <string>

namespace permit {

class InvariantViolated : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] inline void invariant_violated(const char* condition, const char* file, int line) {
  throw InvariantViolated(std::string("broken invariant: ") + condition + " at " + file + ":" +
                          std::to_string(line));
}

}  // namespace permit

#define ENSURE(condition)             \
  ((condition) ? static_cast<void>(0) \
               : ::permit::invariant_violated(#condition, __FILE__, __LINE__))
