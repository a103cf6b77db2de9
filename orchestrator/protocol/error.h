// The one exception callers see. A request that cannot be met throws Error; http/routes turns it
// into a status, the worker's client turns the status back into an Error, the CLI prints it.
#pragma once

#include <exception>
#include <string>
#include <vector>

namespace permit {

// google.rpc.Code; the numbers are on the wire.
enum class ErrorCode {
  canceled = 1,
  unknown = 2,
  invalid_argument = 3,
  deadline_exceeded = 4,
  not_found = 5,
  already_exists = 6,
  permission_denied = 7,
  resource_exhausted = 8,
  failed_precondition = 9,
  aborted = 10,
  out_of_range = 11,
  unimplemented = 12,
  internal = 13,
  unavailable = 14,
  data_loss = 15,
  unauthenticated = 16,
};

class Error : public std::exception {
 public:
  // `reason` is the stable code that programs branch on (UPPER_SNAKE, never reworded);
  // `message` is one sentence for a person, with the way out.
  Error(ErrorCode code, std::string reason, std::string message)
      : code_(code), reason_(std::move(reason)), message_(std::move(message)) {}

  // Attaches a google.rpc.Status detail: one JSON object, "@type" included.
  Error& with_detail(std::string json) & {
    details_.push_back(std::move(json));
    return *this;
  }
  Error&& with_detail(std::string json) && {
    details_.push_back(std::move(json));
    return std::move(*this);
  }

  ErrorCode code() const { return code_; }
  const std::string& reason() const { return reason_; }
  const std::string& message() const { return message_; }
  const std::vector<std::string>& details() const { return details_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ErrorCode code_;
  std::string reason_;
  std::string message_;
  std::vector<std::string> details_;
};

inline Error invalid_argument(std::string reason, std::string message) {
  return Error(ErrorCode::invalid_argument, std::move(reason), std::move(message));
}
inline Error not_found(std::string reason, std::string message) {
  return Error(ErrorCode::not_found, std::move(reason), std::move(message));
}
inline Error failed_precondition(std::string reason, std::string message) {
  return Error(ErrorCode::failed_precondition, std::move(reason), std::move(message));
}
inline Error resource_exhausted(std::string reason, std::string message) {
  return Error(ErrorCode::resource_exhausted, std::move(reason), std::move(message));
}

}  // namespace permit
