#include "orchestrator/service/history_part.h"

#include <algorithm>

#include "orchestrator/protocol/error.h"
#include "orchestrator/service/event_text.h"
#include "orchestrator/service/token_holds.h"

namespace permit::service {

namespace {

// What has been settled since the part was found is in the table, too.
std::vector<store::HistoryBatch> batches_of(store::HistoryTable& table, const HistoryPart& part) {
  std::int64_t end = part.to_event_id;
  if (!part.pending.empty()) end = std::min(end, part.pending.front().first_event_id);
  std::vector<store::HistoryBatch> batches;
  if (part.from_event_id < end) batches = table.of(part.run, part.from_event_id, end);
  for (const auto& added : part.pending) batches.push_back(added.batch());
  return batches;
}

}  // namespace

std::string history_text(store::HistoryTable& table, const HistoryPart& part) {
  std::string text = "[";
  std::int64_t next = part.from_event_id;
  const auto add = [&](std::string_view events) {
    if (text.size() > 1) text += ',';
    text += events;
  };
  const std::vector<store::HistoryBatch> batches = batches_of(table, part);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    std::int64_t id = batches[i].first_event_id;
    // It ends where the next begins, if there is one.
    if (id == next && i + 1 < batches.size() && batches[i + 1].first_event_id <= part.to_event_id) {
      add(batches[i].events);
      next = batches[i + 1].first_event_id;
      continue;
    }
    for (const std::string_view event : split_events(batches[i].events)) {
      if (id == next && id < part.to_event_id) {
        add(event);
        ++next;
      }
      ++id;
    }
  }
  if (next < part.to_event_id) {
    throw not_found("WORKFLOW_NOT_FOUND", "the run has been deleted while it was read");
  }
  text += ']';
  return part.hides_request_id ? without_request_id(text) : text;
}

std::string history_json(store::HistoryTable& table, const HistoryPart& part, PayloadForm form,
                         const std::function<void()>& after_each) {
  std::string text = history_text(table, part);
  if (form == PayloadForm::shorthand) {
    const std::string_view events = std::string_view(text).substr(1, text.size() - 2);
    text = "[" + events_to_shorthand(events, after_each) + "]";
  }
  return to_json(GetWorkflowExecutionHistoryResponse{RawHistory{RawJson{std::move(text)}},
                                                     part.next_page_token},
                 form);
}

}  // namespace permit::service
