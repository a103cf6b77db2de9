// A server on a disk in memory that does a bit of everything, one commit after the other, and a
// fingerprint of all that its database holds.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "orchestrator/service/service.h"
#include "orchestrator/store/store.h"
#include "tests/support/crash_vfs.h"

namespace permit::power_loss {

inline constexpr const char* path = "/permit.db";

using Dice = std::mt19937;

store::Database::Options on(const test::CrashVfs& vfs);

// Of every row of every table.
std::size_t fingerprint(store::Database& database);

class World {
 public:
  World(test::CrashVfs& vfs, std::uint32_t seed, const store::Opening& opening = {});

  // One batch, which commits something.
  void commit();
  store::Store& store() { return *store_; }
  // Answers that a client would have, of all commits so far.
  std::size_t acknowledged() const { return acknowledged_; }

 private:
  void ask();
  void start();
  void signal();
  void terminate();
  void acquire();
  void renew();
  void release();
  std::string number(int below);

  struct Held {
    WorkflowId id;
    std::string token;
  };
  template <class T>
  service::Done<T> count() {
    return [this](const service::Result<T>& result) {
      if (std::holds_alternative<T>(result)) ++acknowledged_;
    };
  }

  Dice dice_;
  service::ManualClock clock_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<service::Service> service_;
  std::size_t acknowledged_ = 0;
  std::size_t asked_ = 0;
  std::vector<Held> held_;
};

// A start on what a power loss has left: it must work, and memory must agree with the disk.
void start_and_check(const test::CrashVfs& vfs);

}  // namespace permit::power_loss
