#include "apps/cli/run/run_command.h"

#include <utility>

#include "apps/cli/command.h"
#include "apps/cli/run/front.h"

namespace permit::cli {

namespace {

std::pair<std::string, std::string> pair_of(const std::string& flag, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw UsageError("--" + flag + ": \"" + text + "\" is not NAME=VALUE");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

GpuKind gpu_kind(const std::string& word) {
  if (word == "cuda") return GpuKind::cuda;
  return word == "rocm" ? GpuKind::rocm : GpuKind::all;
}

constexpr const char* details =
    "Waits in line for a slot, runs the command while it holds it, and gives it back when the "
    "command and all that it has started are gone. The command has the terminal, the input and "
    "the signals, and its exit code is permit's.\n\n"
    "The lease is how long the slot outlives a wrapper that was cut off; it is renewed every third "
    "of it. A limit on the work is --max-hold. If the server cannot be reached, the command runs "
    "on, and is stopped in time before the lease can have ended. To stop means TERM to the "
    "command's process group, and KILL to all of its processes after --kill-after.\n\n"
    "The command finds PERMIT_ID, PERMIT_POOL, PERMIT_SLOT, PERMIT_SLOTS, PERMIT_RUN_ID, "
    "PERMIT_FENCE, PERMIT_LEASE_DEADLINE, PERMIT_MAX_HOLD_DEADLINE, PERMIT_HOLDER, PERMIT_ADDRESS "
    "and PERMIT_NAMESPACE in its environment. Templates of --env know {slot}, {slots}, {fence}, "
    "{id}, {run_id}, {device} and {deadline}.\n\n"
    "Nothing is said if the slot was granted within 400 ms and all went well. If both processes of "
    "permit run are killed at once, with -9, the command dies with them, but not what it had "
    "started. Processes that change their user may not be reached by signals.";

std::vector<Flag> waiting_flags() {
  return {
      {"pool", 'p', ValueType::text, "POOL", "which pool; needed", Completes::pool},
      {"slots",
       'n',
       ValueType::number,
       "N",
       "so many slots, all or none (1)",
       Completes::nothing,
       {},
       1,
       10'000},
      {"slot", 0, ValueType::text, "NAME", "only this slot"},
      {"wait", 0, ValueType::duration, "D", "leave the line after this long: exit code 75 (never)"},
      {"nonblock", 0, ValueType::none, "", "do not wait at all: exit code 75 if there is no slot"},
      {"conflict-exit-code",
       0,
       ValueType::number,
       "N",
       "instead of 75",
       Completes::nothing,
       {},
       0,
       255},
      {"priority",
       0,
       ValueType::number,
       "N",
       "1 goes first, 5 last (3)",
       Completes::nothing,
       {},
       1,
       5},
      {"any", 0, ValueType::none, "", "no place in line, but any slot that frees after it"},
      {"label",
       0,
       ValueType::text,
       "NAME=VALUE",
       "goes with the hold, for lists",
       Completes::nothing,
       {},
       0,
       0,
       true},
      {"reason", 0, ValueType::text, "TEXT", "goes with the hold, for people"},
  };
}

std::vector<Flag> holding_flags() {
  return {
      {"lease", 0, ValueType::duration, "D", "the slot outlives a dead wrapper by this (2m)"},
      {"max-hold", 0, ValueType::duration, "D",
       "stop the command before this age: TERM comes --kill-after earlier; exit code 124"},
      {"warn-signal", 0, ValueType::text, "SIGNAL@D",
       "send this so long before the end of --max-hold"},
      {"kill-after", 0, ValueType::duration, "D", "from TERM to KILL (10s)"},
      {"on-lost",
       0,
       ValueType::choice,
       "",
       "what to do if the permit is lost (stop)",
       Completes::choices,
       {"stop", "warn"}},
      {"gpu",
       0,
       ValueType::choice,
       "KIND",
       "show the command the slots' GPUs only: CUDA_VISIBLE_DEVICES and the like",
       Completes::choices,
       {"all", "cuda", "rocm"},
       0,
       0,
       false,
       true},
      {"env",
       0,
       ValueType::text,
       "NAME=TEMPLATE",
       "one more variable, such as RANK={slot}",
       Completes::nothing,
       {},
       0,
       0,
       true},
      {"report", 0, ValueType::text, "FILE", "write how it went, as JSON", Completes::file},
  };
}

}  // namespace

RunOptions run_options_of(const Session& session) {
  const Arguments& given = session.arguments();
  RunOptions o;
  o.command = given.rest;
  if (given.has("command-timeout")) {
    throw UsageError(
        "--command-timeout does not go with run; say --wait for the line, --max-hold for the "
        "command");
  }
  o.pool = PoolName(given.text_or("pool", ""));
  if (o.pool.empty()) throw UsageError("say which pool: permit run -p POOL -- COMMAND");
  o.slots = static_cast<int>(given.number("slots").value_or(1));
  o.only = SlotName(given.text_or("slot", ""));
  o.lease = given.duration("lease").value_or(o.lease);
  o.max_hold = given.duration("max-hold").value_or(o.max_hold);
  if (given.has("max-hold") && o.max_hold.count() == 0)
    throw UsageError("--max-hold must be 1s or more");
  o.wait = given.duration("wait");
  o.nonblock = given.has("nonblock");
  o.conflict_exit_code = static_cast<int>(given.number("conflict-exit-code").value_or(75));
  o.priority = static_cast<int>(given.number("priority").value_or(0));
  o.any = given.has("any");
  for (const std::string& label : given.all("label")) o.labels.insert(pair_of("label", label));
  o.reason = given.text_or("reason", "");
  if (const auto kind = given.text("gpu")) o.gpu = gpu_kind(*kind);
  if (const auto text = given.text("warn-signal")) o.warn_signal = parse_warn_signal(*text);
  o.kill_after = given.duration("kill-after").value_or(o.kill_after);
  if (given.text_or("on-lost", "stop") == "warn") o.on_lost = OnLost::warn;
  for (const std::string& one : given.all("env")) o.environment.push_back(pair_of("env", one));
  o.report = given.text_or("report", "");
  o.quiet = given.has("quiet");
  const Settings::Value& address = session.settings().get("address");
  o.address = address.text;
  o.address_origin = address.origin;
  o.namespace_name = session.namespace_name();
  o.api_key = session.api_key();
  o.tls = session.tls();
  o.identity = session.identity();
  check(o);
  return o;
}

int run_run(Session& session) { return run_under_permit(run_options_of(session)); }

std::vector<Command> run_commands() {
  std::vector<Flag> flags = waiting_flags();
  for (Flag& flag : holding_flags()) flags.push_back(std::move(flag));
  return {{"run",
           "run a command while holding a slot",
           details,
           {{"permit run -p gpu-pool --gpu -- python train.py", "on whichever GPU is free first"},
            {"permit run -p gpu-pool -n 2 --gpu -- torchrun train.py", "on two, or none"},
            {"permit run -p gpu-pool --max-hold 8h --warn-signal USR1@5m -- ./train",
             "a checkpoint before the end"},
            {"permit run -p nightly --nonblock -- ./backup", "not while another one runs"}},
           {},
           flags,
           run_run,
           {},
           true}};
}

}  // namespace permit::cli
