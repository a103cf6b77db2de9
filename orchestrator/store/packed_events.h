// The events of histories as they lie in the database: LZ4 with a dictionary of what events are
// made of. A seventh of their JSON is left, so that a commit writes fewer pages.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/store/rows.h"

namespace permit::store {

// For one thread.
class EventPacker {
 public:
  EventPacker();
  ~EventPacker();

  // Good until the next call.
  std::string_view pack(std::string_view events);

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

// nullopt: that is nothing that an EventPacker has made.
std::optional<std::string> unpack_events(std::string_view packed);

// --- What some commits have appended to one run, as one text: the events of the first; then, for
// each of the others, a newline, its first event's id, a space and its events ---

void append_batch(std::string& text, const HistoryBatch& batch);
// Nothing if it is not such a text.
std::optional<std::vector<HistoryBatch>> split_batches(std::int64_t first_event_id,
                                                       std::string_view text);

}  // namespace permit::store
