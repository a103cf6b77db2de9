#include "tests/bench/peers/redis_session.h"

#include <stdexcept>

namespace permit::bench {

namespace {

constexpr const char* delete_if_ours =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

}  // namespace

RedisSession::RedisSession(std::uint16_t port, const std::string& key) : stream_(port), key_(key) {
  send({"SCRIPT", "LOAD", delete_if_ours});
  std::optional<std::string> reply;
  while (!reply) {
    wait_readable(socket());
    reply = take_reply();
  }
  const std::size_t end = reply->find("\r\n");
  if (reply->front() != '$' || end == std::string::npos) throw std::runtime_error(*reply);
  script_ = reply->substr(end + 2);
}

void RedisSession::send(const std::vector<std::string>& words) {
  std::string request = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    request += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  stream_.send(request);
}

std::optional<std::string> RedisSession::take_reply() {
  stream_.read();
  std::string& received = stream_.received();
  std::size_t end = received.find("\r\n");
  if (end == std::string::npos) return std::nullopt;
  if (received.front() == '$' && received[1] != '-') {
    end += 2 + std::stoul(received.substr(1));
    if (received.size() < end + 2) return std::nullopt;
  }
  if (received.size() != end + 2) throw std::runtime_error("Redis: an answer too many");
  const std::string reply = received.substr(0, end);
  received.clear();
  return reply;
}

void RedisSession::acquire() {
  acquiring_ = true;
  token_ = std::to_string(socket()) + "-" + std::to_string(++last_token_);
  send({"SET", key_, token_, "NX", "PX", "60000"});
}

void RedisSession::release() {
  acquiring_ = false;
  send({"EVALSHA", script_, "1", key_, token_});
}

Answer RedisSession::receive() {
  const std::optional<std::string> reply = take_reply();
  if (!reply) return Answer::none;
  if (acquiring_ && *reply == "+OK") return Answer::granted;
  if (acquiring_ && *reply == "$-1") return Answer::refused;
  if (!acquiring_ && *reply == ":1") return Answer::released;
  throw std::runtime_error("Redis: " + *reply);
}

}  // namespace permit::bench
