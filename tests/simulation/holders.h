// Holders that are not workflows: they acquire, wait, write to what they hold, renew, release, fall
// silent, and come back too late.
#pragma once

#include "tests/simulation/world.h"

namespace permit::simulation {

class Holders {
 public:
  explicit Holders(World& world);

  void step();
  // Faults are off: everybody gives back what it has and asks for nothing.
  void let_go();
  void disconnected();
  // A permit that was granted to a request that had been refused is nobody's.
  void check() const;

 private:
  struct Holder {
    int asked = 0;
    AcquireRequest request;
    std::int64_t wait = 0;  // the call that waits on the line
    bool waiting = false;
    bool unsure = false;  // some call may still be granted
    bool asked_again = false;
    std::vector<GrantedSlot> slots;
    std::string token;
  };

  void ask(std::size_t index);
  void answered(std::size_t index, const std::string& request_id,
                const service::Result<AcquireResponse>& result);
  void use(Holder& holder);
  void renew(Holder& holder);
  void release(Holder& holder);
  void release_with_wrong_token(const Holder& holder);

  World& world_;
  std::vector<Holder> holders_;
  std::set<std::string> refused_;  // request ids that can hold nothing
};

}  // namespace permit::simulation
