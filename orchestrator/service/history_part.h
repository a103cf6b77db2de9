// A part of a run's history, found by the engine and yet to be put together: of what the tables
// have, and of what its commits have added since. A large one takes a while, which any thread with
// a connection can spend.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "orchestrator/protocol/json.h"
#include "orchestrator/protocol/request.h"
#include "orchestrator/store/history_table.h"
#include "orchestrator/store/pending_rows.h"

namespace permit::service {

struct HistoryPart {
  RunNumber run;
  std::int64_t from_event_id = 1;
  std::int64_t to_event_id = 1;                          // not with it
  std::vector<store::PendingRows::Run::Events> pending;  // its last ones
  std::int64_t bytes_max = 0;                            // of its text in the long form
  bool hides_request_id = false;  // of its first event: who knows it can ask for the holder's token
  Bytes next_page_token{};
};

// Its events: "[{…},{…}]", in the long form. `table` is read as it was when the part was found, or
// later. Throws Error if the run has been deleted since.
std::string history_text(store::HistoryTable& table, const HistoryPart& part);

// The same as GetWorkflowExecutionHistoryResponse, in JSON. For `after_each` see
// events_to_shorthand().
std::string history_json(store::HistoryTable& table, const HistoryPart& part, PayloadForm form,
                         const std::function<void()>& after_each = nullptr);

}  // namespace permit::service
