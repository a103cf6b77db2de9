// permit describe, permit history.
#include <algorithm>

#include "apps/cli/duration_text.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/history_view.h"
#include "apps/cli/permit_commands.h"
#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/json.h"

namespace permit::cli {

namespace {

// The hold of this permit's slot that came next, if there was one.
std::optional<PermitInfo> next_hold(Session& session, const PermitInfo& permit) {
  ListPermitsRequest request;
  request.pool = permit.pool;
  request.slot = permit.slot;
  request.since = permit.closed_at;
  const auto holds = ledger(session, std::move(request), {}, 1000);
  std::optional<PermitInfo> next;
  for (const PermitInfo& hold : holds) {  // newest first
    if (hold.fence > permit.fence) next = hold;
  }
  return next;
}

class Page {
 public:
  explicit Page(const Output& out) : out_(out) {}
  void line(const std::string& name, const std::string& text) const {
    if (text.empty()) return;
    std::string padded = name;
    padded.resize(15, ' ');
    out_.text(out_.paint(padded, Style::dim) + text);
  }

 private:
  const Output& out_;
};

std::string headline(const Output& out, const PermitInfo& permit) {
  std::string state = word_of(permit.outcome);
  if (!permit.cause.empty()) state += " (cause " + permit.cause + ")";
  return out.paint(permit.id.value, Style::bold) + "  " +
         out.paint(state, style_of(permit.outcome));
}

std::string acquired(const Output& out, const PermitInfo& permit) {
  std::string text = out.clock(permit.since);
  if (is_set(permit.requested_at)) {
    text += ", waited " + show_duration(permit.since - permit.requested_at);
  }
  return text;
}

std::string lease_of(const Output& out, const PermitInfo& permit, Time now) {
  std::string text = permit.lease.count() == 0 ? "" : type_duration(permit.lease);
  if (permit.max_hold.count() > 0) text += ", held at most " + type_duration(permit.max_hold);
  text += text.empty() ? "" : ", ";
  if (permit.state == "held") {
    return text + "ends " + out.clock(permit.deadline) + " (" + lease_left(permit, now) + ")";
  }
  text += "held " + show_duration(permit.closed_at - permit.since) + ", until " +
          out.clock(permit.closed_at);
  if (permit.outcome == Outcome::lease_expired && permit.closed_at >= permit.deadline &&
      is_set(permit.deadline)) {
    text += " (" + show_duration(permit.closed_at - permit.deadline) + " after its deadline)";
  }
  return text;
}

std::string work_of(const PermitInfo& permit) {
  std::string text;
  for (const HolderActivity& activity : permit.activities) {
    text += (text.empty() ? "" : "; ") + activity.activity_type + " attempt " +
            std::to_string(activity.attempt);
    text += activity.worker.empty() ? ", waits for a worker" : " on " + activity.worker;
  }
  return printable(text);
}

std::string labels_of(const PermitInfo& permit) {
  std::string text;
  for (const auto& [name, value] : permit.labels) {
    if (!text.empty()) text += ", ";
    text += name;
    text += "=" + value;
  }
  return printable(text, 200);
}

std::string late_release(const Output& out, const PermitInfo& permit) {
  if (!is_set(permit.late_release_at)) return "";
  return out.clock(permit.late_release_at) + ", ignored: its holder went on for " +
         show_duration(permit.late_release_at - permit.closed_at) + " after the end";
}

// Whether the job may have worked on while the next one had the slot; since when, and for how long
// if it came back.
std::string overlap(const PermitInfo& permit, const std::optional<PermitInfo>& next) {
  if (!permit.possible_overlap) return "";
  if (!next) return "its holder had not given it back; nobody has had the slot since";
  const std::string with = printable(next->holder, 60);
  const std::string advice = "; a resource that checks fences refuses fence " +
                             std::to_string(permit.fence.value) + " since then";
  if (!is_set(permit.late_release_at)) {
    return "its holder had not given it back, and may have worked on beside " + with + advice;
  }
  const Time end = next->state == "closed" ? std::min(next->closed_at, permit.late_release_at)
                                           : permit.late_release_at;
  if (end <= next->since) return "";  // it had come back before anybody else began
  return show_duration(end - next->since) + " on slot " + permit.slot.value + ", with " + with +
         advice;
}

}  // namespace

int run_describe(Session& session) {
  const Output& out = session.out();
  const WorkflowId id = permit_named(session.arguments().operand(0));
  const WorkflowExecution run = run_named(session, id, session.arguments().text_or("run-id", ""));
  const PermitInfo permit = session.pools().describe_permit(id, run.run_id);
  out.json(to_json(permit, PayloadForm::shorthand));
  if (!out.is_text()) return exit_ok;
  const Time now = session.now();
  const Page page(out);
  out.text(headline(out, permit));
  page.line("Run", permit.run_id.value + "    Fence " + std::to_string(permit.fence.value));
  page.line("Holder",
            printable(permit.holder) +
                (permit.holder_run_id.empty() ? "" : " / run …" + short_run(permit.holder_run_id)));
  page.line("Work", work_of(permit));
  page.line("Reason", printable(permit.reason));
  page.line("Labels", labels_of(permit));
  page.line("Acquired", acquired(out, permit));
  page.line("Lease", lease_of(out, permit, now));
  page.line("Last sign", heartbeat_of(permit, now));
  if (permit.state == "closed") {
    const auto next = next_hold(session, permit);
    if (next) {
      page.line("Next holder", printable(next->holder, 60) + " (fence " +
                                   std::to_string(next->fence.value) + "), " +
                                   show_duration(next->since - permit.closed_at) + " later");
    }
    page.line("Late release", late_release(out, permit));
    const std::string overlaps = overlap(permit, next);
    if (!overlaps.empty()) {
      out.text(out.paint("Possible overlap: ", Style::yellow) + overlaps);
    }
  }
  page.line("See also", "permit history " + permit.id.value + " -r " + short_run(permit.run_id));
  return exit_ok;
}

int run_history(Session& session) {
  const Arguments& arguments = session.arguments();
  const std::string& text = arguments.operands.at(0);
  // "gpu:1" as for the other verbs; but a workflow may be called so, too.
  const bool may_be_permit = std::count(text.begin(), text.end(), ':') == 1;
  const auto show = [&](const WorkflowId& id) {
    const WorkflowExecution run = run_named(session, id, arguments.text_or("run-id", ""));
    return show_history(session, run,
                        arguments.has("all") ? Detail::all : Detail::events_that_matter,
                        arguments.has("follow") ? Follow::until_closed : Follow::no);
  };
  try {
    return show(WorkflowId(text));
  } catch (const Error& error) {
    if (!may_be_permit || error.code() != ErrorCode::not_found) throw;
  }
  return show(permit_named(text));
}

}  // namespace permit::cli
