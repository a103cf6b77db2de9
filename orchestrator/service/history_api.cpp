// Reading a run's history, by page, and waiting for what has not happened yet.
#include <algorithm>

#include "orchestrator/core/validate.h"
#include "orchestrator/protocol/error.h"
#include "orchestrator/service/history_part.h"
#include "orchestrator/service/service.h"
#include "orchestrator/service/token_holds.h"

namespace permit::service {

namespace {

struct PageToken {
  RunNumber run;
  std::int64_t from_event_id = 1;
};

Bytes encode_page(const PageToken& token) {
  return Bytes{std::to_string(token.run.value) + "." + std::to_string(token.from_event_id)};
}

PageToken decode_page(const Bytes& bytes) {
  const std::string& text = bytes.value;
  const auto dot = text.find('.');
  const bool digits = !text.empty() && text.size() < 40 && dot != std::string::npos && dot > 0 &&
                      dot < 19 && text.size() - dot - 1 > 0 && text.size() - dot - 1 < 19 &&
                      text.find_first_not_of("0123456789.") == std::string::npos &&
                      text.rfind('.') == dot;
  const PageToken token = digits ? PageToken{RunNumber{std::stoll(text.substr(0, dot))},
                                             std::stoll(text.substr(dot + 1))}
                                 : PageToken{RunNumber{}, 0};
  if (token.from_event_id < 1) {
    throw invalid_argument("PAGE_TOKEN_INVALID",
                           "nextPageToken is not one that this server gave; begin without it");
  }
  return token;
}

}  // namespace

HistoryPart Service::history_part(const core::RunState& run, std::int64_t from_event_id,
                                  std::int64_t to_event_id) {
  HistoryPart part;
  part.run = run.number;
  part.from_event_id = from_event_id;
  part.to_event_id = to_event_id;
  part.pending = store_.pending_history(run.number, from_event_id, to_event_id);
  part.bytes_max = run.history_bytes;
  part.hides_request_id = from_event_id == 1 && to_event_id > 1 && is_held_with_token(run);
  return part;
}

std::string Service::history_text(const core::RunState& run, std::int64_t from_event_id,
                                  std::int64_t to_event_id) {
  return service::history_text(store_.history_table(),
                               history_part(run, from_event_id, to_event_id));
}

// A page, or nothing if the caller wants to wait for what has not happened yet.
std::optional<HistoryPart> Service::history_page(const GetWorkflowExecutionHistoryRequest& request,
                                                 RunNumber number) {
  const core::RunState* run = cache_.find(number);
  if (run == nullptr) throw run_not_found(request.execution);
  PageToken token{number, 1};
  if (!request.next_page_token.value.empty()) token = decode_page(request.next_page_token);
  if (token.run != number) {
    throw invalid_argument("PAGE_TOKEN_INVALID", "nextPageToken belongs to another run");
  }
  const std::int64_t end = run->next_event_id;
  if (request.history_event_filter_type == HistoryEventFilterType::close_event) {
    if (run->is_open() && request.wait_new_event) return std::nullopt;
    return history_part(*run, end - 1, end);
  }
  constexpr std::int64_t page_events_max = 1'000;
  std::int64_t size = request.maximum_page_size;
  if (size <= 0 || size > page_events_max) size = page_events_max;
  if (token.from_event_id >= end && run->is_open() && request.wait_new_event) return std::nullopt;
  const std::int64_t to = std::min(end, token.from_event_id + size);
  HistoryPart part = history_part(*run, token.from_event_id, to);
  if (to < end || (run->is_open() && request.wait_new_event)) {
    part.next_page_token = encode_page({number, to});
  }
  return part;
}

std::int64_t Service::history(GetWorkflowExecutionHistoryRequest request, Done<HistoryPart> done) {
  const std::int64_t id = ++last_wait_id_;
  submit_read(done, [this, id, request = std::move(request), done] {
    Change change(parts_, now_);
    // A page token pins the run, whatever is current by now.
    RunNumber number;
    if (!request.next_page_token.value.empty()) {
      core::check_namespace(request.namespace_);
      number = decode_page(request.next_page_token).run;
      const core::RunState* run = change.find(number);
      if (run == nullptr || run->workflow_id != request.execution.workflow_id) {
        throw invalid_argument("PAGE_TOKEN_INVALID", "nextPageToken belongs to another run");
      }
    } else {
      number = target(change, request.namespace_, request.execution).number;
    }
    if (auto page = history_page(request, number)) {
      reply(done, std::move(*page));
      return;
    }
    if (gone_early_.contains(id)) return;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    history_waits_.emplace(id, HistoryWait{request, number, done, deadline});
    history_waits_by_run_.emplace(number, id);
  });
  return id;
}

// After its batch, where nothing else would catch what it throws.
Result<std::string> Service::written_history(const HistoryPart& part, PayloadForm form) {
  try {
    return history_json(store_.history_table(), part, form);
  } catch (const Error& error) {
    return error;
  } catch (const store::StoreFailed&) {
    throw;  // ends the server
  } catch (const std::exception& bug) {
    complain("invariant_violated", bug);
    return Error(ErrorCode::internal, "INTERNAL", "Internal error");
  }
}

void Service::wake_history_waits(const Change& change) {
  if (history_waits_.empty()) return;
  for (const RunNumber number : change.touched_runs()) {
    if (!change.has_new_events(number)) continue;
    const auto [begin, end] = history_waits_by_run_.equal_range(number);
    for (auto it = begin; it != end;) {
      HistoryWait& wait = history_waits_.at(it->second);
      auto page = history_page(wait.request, number);
      if (!page) {
        ++it;
        continue;
      }
      reply(wait.done, std::move(*page));
      history_waits_.erase(it->second);
      it = history_waits_by_run_.erase(it);
    }
  }
}

// After a batch that came to nothing: runs it had started are gone, and their numbers will be given
// again.
void Service::drop_lost_history_waits(const Error& error) {
  for (auto it = history_waits_by_run_.begin(); it != history_waits_by_run_.end();) {
    if (cache_.find(it->first) != nullptr) {
      ++it;
      continue;
    }
    const auto wait = history_waits_.find(it->second);
    refuse(wait->second.done, error);
    history_waits_.erase(wait);
    it = history_waits_by_run_.erase(it);
  }
}

}  // namespace permit::service
