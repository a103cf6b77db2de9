#include "orchestrator/service/task_token.h"

#include <array>
#include <charconv>

namespace permit::service {

Bytes encode(const TaskToken& token) {
  return Bytes{std::string(1, static_cast<char>(token.kind)) + "." +
               std::to_string(token.run.value) + "." + std::to_string(token.scheduled_event_id) +
               "." + std::to_string(token.attempt) + "." + std::to_string(token.nonce)};
}

std::optional<TaskToken> decode(const Bytes& bytes, TaskToken::Kind kind) {
  const std::string& text = bytes.value;
  if (text.size() > 100 || text.size() < 2 || text[0] != static_cast<char>(kind)) {
    return std::nullopt;
  }
  std::array<std::int64_t, 4> numbers{};
  const char* at = text.data() + 1;
  const char* end = text.data() + text.size();
  for (std::int64_t& number : numbers) {
    if (at == end || *at != '.') return std::nullopt;
    const auto [stop, error] = std::from_chars(at + 1, end, number);
    if (error != std::errc() || number < 0) return std::nullopt;
    at = stop;
  }
  if (at != end || numbers[2] > INT32_MAX) return std::nullopt;
  return TaskToken{kind, RunNumber{numbers[0]}, numbers[1], static_cast<std::int32_t>(numbers[2]),
                   numbers[3]};
}

}  // namespace permit::service
