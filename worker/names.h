// Names with a signature: what a caller and an implementation of a workflow or an activity agree
// on, in one line of a header that both include.
//
//   inline constexpr ActivityName<std::string(std::string, int)> train_epoch{"train_epoch"};
//   inline constexpr WorkflowName<TrainResult(TrainInput)> train{"train"};
#pragma once

#include <string>
#include <string_view>

namespace permit::worker {

template <class Signature>
struct ActivityName;
template <class R, class... Args>
struct ActivityName<R(Args...)> {
  using Result = R;
  std::string_view name;
};

template <class Signature>
struct WorkflowName;
template <class R, class... Args>
struct WorkflowName<R(Args...)> {
  using Result = R;
  std::string_view name;
};

}  // namespace permit::worker
