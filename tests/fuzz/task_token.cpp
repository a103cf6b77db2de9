// A token that a worker hands back: whatever its bytes are, it is refused, unless it is one that
// was given out, and then it is that one.
#include "orchestrator/service/task_token.h"

#include <string>

#include "tests/fuzz/choices.h"
#include "tests/fuzz/targets.h"

namespace permit::fuzz {

namespace {

using service::TaskToken;

const service::TokenSeal& seal() {
  static const service::TokenSeal seal("fuzz");
  return seal;
}

void check_decoding(const Bytes& bytes) {
  int kinds = 0;
  for (const auto kind :
       {TaskToken::Kind::workflow_task, TaskToken::Kind::activity, TaskToken::Kind::query}) {
    const auto token = seal().decode(bytes, kind);
    if (!token) continue;
    ++kinds;
    promise(token->kind == kind, "a token is of the kind that was asked for");
    promise(token->run.value >= 0 && token->attempt >= 0 && token->scheduled_event_id >= 0,
            "no number of a token is negative");
    const auto again = seal().decode(seal().encode(*token), kind);
    promise(again && again->run == token->run && again->nonce == token->nonce &&
                again->attempt == token->attempt &&
                again->scheduled_event_id == token->scheduled_event_id,
            "a token that is written reads back as the same");
  }
  promise(kinds <= 1, "a token is of one kind");
}

}  // namespace

void task_token(std::string_view input) {
  check_decoding(Bytes{std::string(input)});
  Choices choices(input);
  TaskToken token;
  token.kind = choices.pick(
      {TaskToken::Kind::workflow_task, TaskToken::Kind::activity, TaskToken::Kind::query});
  const auto number = [&] {
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8U | choices.byte();
    return static_cast<std::int64_t>(value & INT64_MAX);
  };
  token.run = RunNumber{number()};
  token.scheduled_event_id = number();
  token.attempt = static_cast<std::int32_t>(number() & INT32_MAX);
  token.nonce = number();
  const Bytes given = seal().encode(token);
  const auto read = seal().decode(given, token.kind);
  promise(read && read->run == token.run && read->nonce == token.nonce,
          "what is given out is taken");
  // And now bent, by what is left of the input.
  Bytes bytes = given;
  while (!choices.at_end() && !bytes.value.empty()) {
    const std::size_t at = choices.below(256) % bytes.value.size();
    bytes.value[at] = static_cast<char>(choices.byte());
    check_decoding(bytes);
    promise(bytes.value == given.value || !seal().decode(bytes, token.kind),
            "a token is sealed to the last bit");
  }
}

}  // namespace permit::fuzz
