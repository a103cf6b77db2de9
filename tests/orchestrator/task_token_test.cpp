#include "orchestrator/service/task_token.h"

#include <doctest/doctest.h>

#include <set>

namespace permit::service {
namespace {

using Kind = TaskToken::Kind;

const std::string secret = "0123456789abcdef0123456789abcdef";
const TaskToken token{Kind::activity, RunNumber{12}, 5, 3, 987'654'321};

bool same(const std::optional<TaskToken>& found, const TaskToken& wanted) {
  return found && found->kind == wanted.kind && found->run == wanted.run &&
         found->scheduled_event_id == wanted.scheduled_event_id &&
         found->attempt == wanted.attempt && found->nonce == wanted.nonce;
}

TEST_CASE("a task token comes back as it was, also to a server that was started again") {
  const TokenSeal seal(secret);
  for (const Kind kind : {Kind::workflow_task, Kind::activity, Kind::query}) {
    for (const TaskToken& made :
         {TaskToken{kind, RunNumber{1}, 2, 1, 3},
          TaskToken{kind, RunNumber{INT64_MAX}, INT64_MAX, INT32_MAX, INT64_MAX}}) {
      CHECK(same(TokenSeal(secret).decode(seal.encode(made), kind), made));
      for (const Kind other : {Kind::workflow_task, Kind::activity, Kind::query}) {
        CHECK(seal.decode(seal.encode(made), other).has_value() == (other == kind));
      }
    }
  }
}

TEST_CASE("a token with any bit flipped, and any part of one, is none") {
  const TokenSeal seal(secret);
  const std::string text = seal.encode(token).value;
  REQUIRE(same(seal.decode({text}, Kind::activity), token));
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    CHECK_FALSE(seal.decode({flipped}, Kind::activity).has_value());
  }
  for (std::size_t size = 0; size < text.size(); ++size) {
    CHECK_FALSE(seal.decode({text.substr(0, size)}, Kind::activity).has_value());
    CHECK_FALSE(seal.decode({text.substr(text.size() - size)}, Kind::activity).has_value());
  }
  CHECK_FALSE(seal.decode({text + "0"}, Kind::activity).has_value());
  CHECK_FALSE(seal.decode({" " + text}, Kind::activity).has_value());
  CHECK_FALSE(seal.decode({std::string(100'000, 'a')}, Kind::activity).has_value());
}

TEST_CASE("a token says nothing but for its own run, event, attempt and nonce") {
  const TokenSeal seal(secret);
  std::set<std::string> seals;
  const auto seal_of = [&](const TaskToken& made) {
    const std::string text = seal.encode(made).value;
    return text.substr(text.size() - 32);
  };
  for (TaskToken other : {token, TaskToken{Kind::workflow_task, RunNumber{12}, 5, 3, 987'654'321},
                          TaskToken{Kind::activity, RunNumber{13}, 5, 3, 987'654'321},
                          TaskToken{Kind::activity, RunNumber{12}, 6, 3, 987'654'321},
                          TaskToken{Kind::activity, RunNumber{12}, 5, 4, 987'654'321},
                          TaskToken{Kind::activity, RunNumber{12}, 5, 3, 987'654'322}}) {
    CHECK(seals.insert(seal_of(other)).second);
    const std::string text = seal.encode(other).value;
    const bool is_own = same(other, token);
    const std::string forged = text.substr(0, text.size() - 32) + seal_of(token);
    CHECK(seal.decode({forged}, other.kind).has_value() == is_own);
  }
  // What was given before tokens were sealed.
  CHECK_FALSE(seal.decode({"a.12.5.3.987654321"}, Kind::activity).has_value());
}

TEST_CASE("all of the secret counts") {
  const Bytes made = TokenSeal(secret).encode(token);
  for (std::size_t i = 0; i < secret.size(); ++i) {
    std::string other = secret;
    other[i] = other[i] == '7' ? '8' : '7';
    CHECK_FALSE(TokenSeal(other).decode(made, Kind::activity).has_value());
  }
  CHECK_FALSE(TokenSeal("").decode(made, Kind::activity).has_value());
  CHECK(TokenSeal("short").decode(TokenSeal("short").encode(token), Kind::activity).has_value());
}

}  // namespace
}  // namespace permit::service
