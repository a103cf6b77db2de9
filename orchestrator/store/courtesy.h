// Lets others have this core. However nice a thread is, the kernel lets it go on for some
// milliseconds before who has been woken on its core gets a turn, such as a client that has just
// been answered. So what takes long and has time asks it to, every 50 us or so.
#pragma once

#include <sched.h>

namespace permit::store {

class Courtesy {
 public:
  // One of many small steps is done.
  void step() {
    if (++steps_ % steps_a_turn == 0) sched_yield();
  }

 private:
  static constexpr unsigned steps_a_turn = 8;
  unsigned steps_ = 0;
};

}  // namespace permit::store
