// A part of a workflow that can be canceled as one: what was begun in it, and the scopes inside.
// Handles share it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

namespace permit::worker {

class CancelScope {
 public:
  bool is_canceled() const { return canceled_; }

  // Runs what was registered, in order, inner scopes where they were made. Once.
  void cancel();

  // `action` runs if the scope is canceled before forget().
  std::int64_t on_cancel(std::function<void()> action);
  void forget(std::int64_t id);

  std::shared_ptr<CancelScope> make_inner();

 private:
  bool canceled_ = false;
  std::int64_t last_id_ = 0;
  std::map<std::int64_t, std::function<void()>> actions_;
};

}  // namespace permit::worker
