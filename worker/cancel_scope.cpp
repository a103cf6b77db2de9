#include "worker/cancel_scope.h"

#include <utility>

namespace permit::worker {

void CancelScope::cancel() {
  if (std::exchange(canceled_, true)) return;
  // An action may forget others.
  while (!actions_.empty()) {
    const auto first = actions_.extract(actions_.begin());
    first.mapped()();
  }
}

std::int64_t CancelScope::on_cancel(std::function<void()> action) {
  actions_[++last_id_] = std::move(action);
  return last_id_;
}

void CancelScope::forget(std::int64_t id) { actions_.erase(id); }

std::shared_ptr<CancelScope> CancelScope::make_inner() {
  auto inner = std::make_shared<CancelScope>();
  inner->canceled_ = canceled_;
  // Gone with its last handle.
  on_cancel([weak = std::weak_ptr<CancelScope>(inner)] {
    if (const auto scope = weak.lock()) scope->cancel();
  });
  return inner;
}

}  // namespace permit::worker
