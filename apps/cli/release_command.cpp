// permit release, permit hold.
#include <algorithm>
#include <iostream>

#include "apps/cli/duration_text.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/kept_tokens.h"
#include "apps/cli/permit_commands.h"
#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/json.h"
#include "permits/holder_client.h"

namespace permit::cli {

namespace {

using namespace std::chrono_literals;

// --- Release ---

// A renewed lease that is more than half gone has missed its last renewal.
bool seems_alive(const PermitInfo& permit, Time now) {
  const bool renews = is_set(permit.renewed_at) || !permit.activities.empty();
  return !renews || permit.deadline - now > permit.lease / 2;
}

void show_what_breaks(const Session& session, const PermitInfo& permit, Time now) {
  std::string holder = printable(permit.holder);
  const auto user = permit.labels.find("user");
  if (user != permit.labels.end()) {
    const bool mine = user->second == user_name();
    holder += " (user " + printable(user->second, 40) + (mine ? ", you)" : ", not you)");
  }
  const std::string worker = worker_of(permit);
  if (worker != "-") holder += " on " + printable(worker, 60);
  std::string times = "since " + session.out().clock(permit.since) + " (" +
                      show_duration(now - permit.since) + "), lease left " +
                      lease_left(permit, now);
  const std::string heartbeat = heartbeat_of(permit, now);
  if (!heartbeat.empty()) times += ", " + heartbeat;
  std::cerr << permit.id.value << " is held by " << holder << "\n  " << times << ", fence "
            << permit.fence.value << "\n\n";
  if (!seems_alive(permit, now)) {
    std::cerr << "Its holder has been silent for more than half of its lease.\n";
    return;
  }
  std::cerr << "Its holder is alive. Releasing frees the slot but does not stop the job: two jobs "
               "may\nuse it at once unless the job checks its fence.";
  if (!permit.holder_run_id.empty()) {
    std::cerr << " To stop the job instead:\n  permit workflow cancel " << printable(permit.holder);
  }
  std::cerr << "\n";
}

bool agrees(const Session& session, const PermitInfo& permit, Time now) {
  show_what_breaks(session, permit, now);
  if (!seems_alive(permit, now)) {
    const std::string answer = session.ask("Release it? [y/N] ");
    return answer == "y" || answer == "yes";
  }
  const std::string slot = permit.slot.value;
  return session.ask("Type the slot's name (" + slot + ") to release it anyway: ") == slot;
}

PermitInfo end_hold(Session& session, const PermitInfo& permit, Fence fence) {
  const std::string token = kept_token(fence);
  if (!token.empty() && permit.fence == fence) {  // our own, from `permit hold`
    PermitInfo ended = permits::HolderClient(session.transport(), session.namespace_name())
                           .release(permit.id, token);
    forget_token(fence);
    return ended;
  }
  ForceReleaseRequest request;
  request.id = permit.id;
  request.fence = fence;
  request.reason = session.arguments().text_or("reason", "");
  return session.pools().force_release(std::move(request));
}

}  // namespace

int run_release(Session& session) {
  const Arguments& arguments = session.arguments();
  const WorkflowId id = permit_named(arguments.operand(0));
  const bool own_words = arguments.has("yes");
  if (own_words && !arguments.has("fence") && !arguments.has("any-holder")) {
    throw UsageError("with --yes, say which hold you mean: --fence N (see: permit describe " +
                     id.value + "), or --any-holder");
  }
  if (!own_words && !session.is_interactive()) {
    throw UsageError("nobody is here to ask; say --yes and --fence N");
  }
  const PermitInfo permit = session.pools().describe_permit(id);
  if (permit.state != "held") throw not_found("PERMIT_NOT_HELD", id.value + " is not held");
  const Fence fence{arguments.number("fence").value_or(permit.fence.value)};
  if (permit.fence != fence) {
    throw Error(ErrorCode::aborted, "HOLDER_CHANGED",
                "not released: " + id.value + " is now held by " + printable(permit.holder) +
                    " (fence " + std::to_string(permit.fence.value) + "), not fence " +
                    std::to_string(fence.value));
  }
  if (!own_words && !agrees(session, permit, session.now())) {
    session.out().note("not released");
    return exit_failed;
  }
  const PermitInfo ended = end_hold(session, permit, fence);
  session.out().json(to_json(ended, PayloadForm::shorthand));
  session.out().text(
      id.value + " " + word_of(ended.outcome) +
      (ended.cause.empty() ? "" : " (cause " + ended.cause + ", by " + session.identity() + ")") +
      ". Fence " + std::to_string(fence.value) + " is void.");
  return exit_ok;
}

// --- Hold ---

namespace {

AcquireRequest maintenance(Session& session) {
  const Arguments& arguments = session.arguments();
  AcquireRequest request;
  request.pool = PoolName(arguments.operand(0));
  request.request_id = worker::new_request_id();
  request.holder = "operator " + session.identity();
  if (const auto slot = arguments.text("slot")) request.only = {SlotName(*slot)};
  request.lease = arguments.duration("for").value_or(365 * 24h);
  request.order = PermitOrder::fair;
  request.priority = 1;
  request.reason = arguments.text_or("reason", "");
  request.labels = {{"user", user_name()}, {"host", host_name()}};
  if (const auto wait = arguments.duration("wait")) request.wait_timeout = *wait;
  if (arguments.has("nonblock")) request.wait = Duration(0);
  return request;
}

}  // namespace

int run_hold(Session& session) {
  const permits::HolderClient client(session.transport(), session.namespace_name());
  const AcquireRequest request = maintenance(session);
  AcquireResponse grant = client.acquire(request);
  while (grant.state != "granted") {
    session.out().note("waiting for " + request.pool.value + ", position " +
                       std::to_string(grant.ticket->position) + "; Ctrl-C leaves the line");
    grant = client.acquire(request);
  }
  const GrantedSlot& slot = grant.slots.at(0);
  const bool kept = keep_token(slot.fence, grant.token);
  grant.token.clear();
  session.out().json(to_json(grant));
  const bool ends = session.arguments().has("for");
  session.out().text(slot.id.value + " is yours (fence " + std::to_string(slot.fence.value) + ")" +
                     (ends ? ", until " + session.out().clock(slot.deadline) : "") +
                     "\nGive it back: permit release " + slot.id.value + " --fence " +
                     std::to_string(slot.fence.value) + " --yes");
  if (!kept) session.out().note("its token could not be kept: the end will be force_released");
  return exit_ok;
}

}  // namespace permit::cli
