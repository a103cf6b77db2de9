#include "orchestrator/service/task_token.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "orchestrator/protocol/siphash.h"

namespace permit::service {

namespace {

// "w.12.5.1.42." and 32 digits of the seal.
constexpr std::size_t seal_digits = 32;
constexpr std::size_t token_bytes_max = 140;

unsigned digit(char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); }

std::string bytes_of(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(digit(hex[i]) << 4U | digit(hex[i + 1]));
  }
  return bytes;
}

}  // namespace

// A key holds 16 bytes, and the secret may be longer: all of it counts.
TokenSeal::TokenSeal(std::string_view secret)
    : key_(bytes_of(siphash_hex(
          secret.substr(0, 16),
          "task tokens " + std::string(secret.substr(std::min<std::size_t>(secret.size(), 16)))))) {
}

Bytes TokenSeal::encode(const TaskToken& token) const {
  std::string text = std::string(1, static_cast<char>(token.kind)) + "." +
                     std::to_string(token.run.value) + "." +
                     std::to_string(token.scheduled_event_id) + "." +
                     std::to_string(token.attempt) + "." + std::to_string(token.nonce) + ".";
  text += siphash_hex(key_, text);
  return Bytes{std::move(text)};
}

std::optional<TaskToken> TokenSeal::decode(const Bytes& bytes, TaskToken::Kind kind) const {
  const std::string_view text = bytes.value;
  if (text.size() > token_bytes_max || text.size() <= seal_digits) return std::nullopt;
  const std::string_view said = text.substr(0, text.size() - seal_digits);
  if (!equal_in_constant_time(siphash_hex(key_, said), text.substr(said.size()))) {
    return std::nullopt;
  }
  if (said[0] != static_cast<char>(kind)) return std::nullopt;
  std::array<std::int64_t, 4> numbers{};
  const char* at = said.data() + 1;
  const char* end = said.data() + said.size() - 1;  // at the last dot
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
