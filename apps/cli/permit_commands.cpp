#include "apps/cli/permit_commands.h"

#include <algorithm>

#include "apps/cli/command.h"
#include "apps/cli/duration_text.h"
#include "orchestrator/protocol/json.h"
#include "orchestrator/protocol/nearest.h"

namespace permit::cli {

namespace {

using namespace std::chrono_literals;

const Operand pool_operand = {"POOL", Completes::pool, false};
const Operand permit_operand = {"PERMIT", Completes::permit};
const Flag reason_flag = {"reason", 0, ValueType::text, "TEXT", "why, for the record"};
const Flag run_flag = {"run-id", 'r', ValueType::text, "RUN",
                       "that hold; its last characters are enough (the current or last one)"};

Command list_command() {
  return {"list",
          "slots and their holders, or past holds",
          "State, holder and lease of each slot. HELD is how long; LEASE LEFT is what is left if "
          "nobody renews, with ! when it is nearly over.\n"
          "With --closed, how past holds ended, newest first: released, lease_expired, "
          "holder_closed or force_released, and why.",
          {{"permit list", "all pools"},
           {"permit list gpu-pool", ""},
           {"permit list --closed --since 1h --outcome lease_expired", "what went wrong lately"}},
          {pool_operand},
          {{"closed", 0, ValueType::none, "", "past holds, newest first"},
           {"since", 0, ValueType::duration, "D", "with --closed: those that ended in this time"},
           {"outcome", 0, ValueType::text, "WORDS",
            "with --closed: these only, such as released,lease_expired"},
           {"limit",
            0,
            ValueType::number,
            "N",
            "with --closed: so many (100)",
            Completes::nothing,
            {},
            1,
            100'000},
           {"short", 0, ValueType::none, "", "ids of permits that are held, one a line"},
           {"gpu", 0, ValueType::none, "",
            "also the GPU of each slot, and processes that use one without a permit"},
           {"watch", 0, ValueType::none, "", "draw it again every second, until Ctrl-C"}},
          run_list,
          "ls"};
}

Command who_command() {
  return {"who",
          "who holds a slot, who waits for it, and why",
          "Holders with what is known of them, then those who wait, in their order, and what "
          "stands in their way.",
          {{"permit who gpu-pool", ""}, {"permit who", "all pools that are in use"}},
          {pool_operand},
          {},
          run_who};
}

Command watch_command() {
  return {"watch",
          "print changes as they happen",
          "One line a change, until Ctrl-C: acquired, and how a hold ended.",
          {{"permit watch gpu-pool", ""}, {"permit watch -o jsonl | jq .outcome", "for programs"}},
          {pool_operand},
          {},
          run_watch};
}

Command describe_command() {
  return {"describe",
          "everything about one permit",
          "The hold that is current, or was last; with --run-id an earlier one. Says whether it "
          "may have overlapped the next hold of the slot: its holder had not given it back.",
          {{"permit describe permit:gpu-pool:1", ""},
           {"permit describe gpu-pool:1 -r 2c7bc90d", "an earlier hold"}},
          {permit_operand},
          {run_flag},
          run_describe};
}

Command history_command() {
  return {"history",
          "events of a permit or workflow",
          "Every event of one run, with its time since the first.",
          {{"permit history permit:gpu-pool:1", ""}, {"permit history train-1 --all", ""}},
          {{"ID", Completes::permit}},
          {run_flag,
           {"all", 0, ValueType::none, "", "also the events of workflow tasks"},
           {"follow", 'f', ValueType::none, "", "go on until the run closes"}},
          run_history};
}

Command release_command() {
  return {"release",
          "end a hold by hand",
          "Frees the slot; it does not stop the job. Shows whose hold it is and asks first. The "
          "fence that was shown is sent along, so that a hold that began meanwhile is not "
          "touched: then the exit code is 5. Without a terminal, say --yes and --fence N.",
          {{"permit release permit:gpu-pool:1", ""},
           {"permit release gpu-pool:1 --fence 17 --yes --reason 'host is dead'", "in scripts"}},
          {permit_operand},
          {{"fence",
            0,
            ValueType::number,
            "N",
            "only the hold with this fence",
            Completes::nothing,
            {},
            1},
           {"any-holder", 0, ValueType::none, "", "with --yes: whoever holds it"},
           reason_flag},
          run_release};
}

Command hold_command() {
  return {"hold",
          "take a slot by hand, for maintenance",
          "Stands first in line and takes the slot when it is free. The hold is on record like any "
          "other. It ends with permit release, or after --for.",
          {{"permit hold gpu-pool --slot 2 --for 2h --reason 'new fan'", ""}},
          {{"POOL", Completes::pool}},
          {{"slot", 0, ValueType::text, "NAME", "this slot (any that is free)"},
           {"for", 0, ValueType::duration, "D", "how long (until it is released)"},
           {"wait", 0, ValueType::duration, "D", "how long to wait for it (for ever)"},
           {"nonblock", 0, ValueType::none, "", "only if it is free now; else exit 75"},
           reason_flag},
          run_hold};
}

Command report_command() {
  return {"report",
          "holds, waits and endings over a period",
          "Per pool and per holder: how many holds, how long, how they ended, how long they had "
          "waited. The ledger keeps the last 100 holds of a slot, and says so if that is less "
          "than the period.",
          {{"permit report --since 7d", ""}, {"permit report gpu-pool --by holder", ""}},
          {pool_operand},
          {{"since", 0, ValueType::duration, "D", "how far back (24h)"},
           {"by",
            0,
            ValueType::choice,
            "",
            "one line for each (pool)",
            Completes::choices,
            {"pool", "holder", "slot"}}},
          run_report};
}

}  // namespace

std::vector<Command> permit_commands() {
  return {list_command(),    who_command(),     watch_command(), describe_command(),
          history_command(), release_command(), hold_command(),  report_command()};
}

// --- What they share ---

WorkflowId permit_named(const std::string& text) {
  const std::string id = text.starts_with("permit:") ? text : "permit:" + text;
  if (std::count(id.begin(), id.end(), ':') != 2 || id.ends_with(':')) {
    throw UsageError("\"" + text + "\" is not a permit; write permit:POOL:SLOT");
  }
  return WorkflowId(id);
}

std::vector<PoolInfo> pools_named(Session& session, const std::string& name) {
  if (name.empty()) return session.pools().list();
  return {session.pools().describe(PoolName(name))};
}

std::vector<PermitInfo> ledger(Session& session, ListPermitsRequest request,
                               const std::vector<Outcome>& outcomes, std::size_t limit) {
  if (outcomes.size() == 1) request.outcome = outcomes[0];
  request.page_size = static_cast<std::int32_t>(std::clamp<std::size_t>(limit, 1, 1000));
  std::vector<PermitInfo> holds;
  const permits::PoolClient pools = session.pools();
  do {
    ListPermitsResponse page = pools.permits(request);
    for (PermitInfo& hold : page.permits) {
      const bool wanted = outcomes.empty() || std::find(outcomes.begin(), outcomes.end(),
                                                        hold.outcome) != outcomes.end();
      if (wanted && holds.size() < limit) holds.push_back(std::move(hold));
    }
    request.next_page_token = page.next_page_token;
  } while (!request.next_page_token.value.empty() && holds.size() < limit);
  return holds;
}

std::vector<Outcome> outcomes_named(const std::string& text) {
  std::vector<Outcome> outcomes;
  std::size_t at = 0;
  while (at <= text.size() && !text.empty()) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, end - at);
    const auto outcome = outcome_named(word);
    if (!outcome) {
      const std::vector<std::string> known = {"released", "lease_expired", "holder_closed",
                                              "force_released"};
      const auto nearest = nearest_name(word, known);
      throw UsageError("--outcome: there is no \"" + word + "\"; " +
                       (nearest ? "did you mean " + *nearest + "?"
                                : "write released, lease_expired, holder_closed, force_released"));
    }
    outcomes.push_back(*outcome);
    at = end + 1;
  }
  return outcomes;
}

std::string worker_of(const PermitInfo& permit) {
  for (const HolderActivity& activity : permit.activities) {
    if (!activity.worker.empty()) return activity.worker;
  }
  const auto host = permit.labels.find("host");
  if (host == permit.labels.end()) return "-";
  const auto pid = permit.labels.find("pid");
  return (pid == permit.labels.end() ? "" : pid->second + "@") + host->second;
}

std::string lease_left(const PermitInfo& permit, Time now) {
  const Duration left = permit.deadline - now;
  if (left <= Duration(0)) return "over !";
  const bool nearly_over = left < std::min<Duration>(60s, permit.lease / 5);
  return show_duration(left) + (nearly_over ? " !" : "");
}

std::string heartbeat_of(const PermitInfo& permit, Time now) {
  Time last = permit.renewed_at;
  std::string progress;
  for (const HolderActivity& activity : permit.activities) {
    if (activity.last_heartbeat < last) continue;
    last = activity.last_heartbeat;
    if (!activity.heartbeat_details) continue;
    progress = to_json(*activity.heartbeat_details, PayloadForm::shorthand);
    if (progress.size() > 2 && progress.front() == '[') {
      progress = progress.substr(1, progress.size() - 2);
    }
  }
  if (last == Time{}) return "";
  std::string text = "heartbeat " + show_duration(std::max(now - last, Duration(0))) + " ago";
  if (!progress.empty()) text += ", " + printable(progress, 60);
  return text;
}

std::string short_run(const RunId& run) {
  const std::string& id = run.value;
  return id.size() <= 8 ? id : id.substr(id.size() - 8);
}

}  // namespace permit::cli
