// A history as it lies on the disk, whatever has become of its bytes: events, their fold and what
// the server reads from it; refused, or as good as any other. Byte 0: as a history, as what is kept
// beside one, or as a file for the replayer.
#include "orchestrator/core/invariants.h"
#include "orchestrator/core/run_state.h"
#include "orchestrator/protocol/ensure.h"
#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/json.h"
#include "tests/fuzz/targets.h"
#include "tests/support/reflect.h"
#include "worker/replayer.h"

namespace permit::fuzz {

namespace {

void look_at(const core::RunState& state) {
  core::next_due(state);
  core::expiration(state);
  core::footprint(state);
  core::task_queue_of(state);
  for (const auto& [id, activity] : state.activities) core::activity_due(activity);
}

void fold(const std::vector<Event>& events) {
  core::RunState state;
  try {
    for (const Event& event : events) {
      core::apply(state, event);
      look_at(state);
    }
    core::check_history(events);
    core::check_run(state);
  } catch (const InvariantViolated&) {
    // Found out: the server says that this run is damaged.
  }
}

void check_round_trip(const std::vector<Event>& events) {
  const std::string text = to_json(events);
  promise(test::same(events, read_json<std::vector<Event>>(text)), "events read back as the same");
  const std::string shown = "[" + events_to_shorthand(text.substr(1, text.size() - 2)) + "]";
  promise(test::same(events, read_json<std::vector<Event>>(shown)), "also as people see them");
}

}  // namespace

void history_decode(std::string_view input) {
  if (input.empty()) return;
  const bool is_file = input[0] == 'f';
  const std::string text(input.substr(1));
  try {
    const std::vector<Event> events =
        is_file ? worker::read_history(text) : read_json<std::vector<Event>>("[" + text + "]");
    check_round_trip(events);
    fold(events);
  } catch (const Error& error) {
    promise(!error.reason().empty(), "a refusal says why");
  }
}

}  // namespace permit::fuzz
