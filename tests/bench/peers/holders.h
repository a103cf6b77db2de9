// Who has which slot of a pool, by what the clients were told. Throws when that cannot be.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace permit::bench {

class Holders {
 public:
  explicit Holders(std::size_t slots) : slots_(slots) {}

  void granted(const std::string& slot, std::int64_t fence);
  // Called before the release is sent: from then on the next may have it, even before the client
  // hears that it is free.
  void releasing(const std::string& slot);

 private:
  struct Slot {
    bool held = false;
    std::int64_t last_fence = 0;
  };

  std::size_t slots_;
  std::map<std::string, Slot> by_name_;
};

}  // namespace permit::bench
