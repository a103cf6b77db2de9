// The pure parts of `permit run`: the environment, the sentences, the flags.
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <functional>

#include "apps/cli/run/child_environment.h"
#include "apps/cli/run/job.h"
#include "apps/cli/run/queue_up.h"
#include "apps/cli/run/run_text.h"
#include "orchestrator/protocol/error.h"

namespace permit::cli {

namespace {

using namespace std::chrono_literals;

AcquireResponse grant_of(const std::vector<std::string>& slots) {
  AcquireResponse grant;
  grant.pool = PoolName("gpu");
  grant.fence = Fence{18};
  for (const std::string& slot : slots) {
    GrantedSlot granted;
    granted.id = WorkflowId("permit:gpu:" + slot);
    granted.slot = SlotName(slot);
    grant.slots.push_back(granted);
  }
  return grant;
}

bool has(const std::vector<std::string>& environment, const std::string& variable) {
  return std::find(environment.begin(), environment.end(), variable) != environment.end();
}

std::string reason_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.reason();
  }
  return "";
}

}  // namespace

TEST_CASE("Devices are numbers by their value, then names") {
  CHECK(devices_of(grant_of({"10", "2", "0"})) == std::vector<std::string>{"0", "2", "10"});
  CHECK(reason_of([] { devices_of(grant_of({"0", "left"})); }) == "SLOT_NO_DEVICE");
}

TEST_CASE("What a permit adds replaces what was inherited") {
  const AcquireResponse grant = grant_of({"1", "3"});
  RunOptions options;
  options.gpu = GpuKind::all;
  options.environment = {{"WHERE", "{slots}/{fence}/{{}}"}, {"PERMIT_HOLDER", "me"}};
  const auto environment =
      child_environment({"HOME=/h", "CUDA_VISIBLE_DEVICES=0", "HIP_VISIBLE_DEVICES=0",
                         "PERMIT_SLOT=old", "PERMIT_MAX_HOLD_DEADLINE=old", "EMPTY="},
                        options, {grant, {"1", "3"}, "holder", {}});
  CHECK(has(environment, "HOME=/h"));
  CHECK(has(environment, "EMPTY="));
  CHECK(has(environment, "CUDA_VISIBLE_DEVICES=1,3"));
  CHECK(has(environment, "ROCR_VISIBLE_DEVICES=1,3"));
  CHECK(has(environment, "GPU_DEVICE_ORDINAL=1,3"));
  CHECK(has(environment, "CUDA_DEVICE_ORDER=PCI_BUS_ID"));
  CHECK(has(environment, "PERMIT_SLOT=1"));
  CHECK(has(environment, "PERMIT_SLOTS=1,3"));
  CHECK(has(environment, "WHERE=1,3/18/{}"));
  CHECK(has(environment, "PERMIT_HOLDER=me"));
  CHECK(std::none_of(environment.begin(), environment.end(), [](const std::string& variable) {
    return variable.starts_with("HIP_") || variable.ends_with("=old") || variable.ends_with("=0");
  }));
  CHECK(device_mask(options, {"1", "3"}) == "CUDA_VISIBLE_DEVICES=1,3");
}

TEST_CASE("A template that cannot be filled in is refused before anything is held") {
  check_variable("A_1", "{id} {slot} {slots} {fence} {run_id} {device} {deadline} {{ }}");
  CHECK(reason_of([] { check_variable("1A", ""); }) == "VARIABLE_INVALID");
  CHECK(reason_of([] { check_variable("A-B", ""); }) == "VARIABLE_INVALID");
  CHECK(reason_of([] { check_variable("A", "{slotz}"); }) == "TEMPLATE_INVALID");
  CHECK(reason_of([] { check_variable("A", "{slot"); }) == "TEMPLATE_INVALID");
  CHECK(reason_of([] { check_variable("A", "slot}"); }) == "TEMPLATE_INVALID");
}

TEST_CASE("A waiter is told its place, the soonest end, and when a slot is free at the latest") {
  WhyResponse why;
  why.reason = "slots_held";
  why.waiter.id = Fence{5};
  why.waiter.pool = PoolName("gpu-pool");
  why.waiter.position = 2;
  const Time now{std::chrono::hours(1)};
  for (const auto& [slot, left] : {std::pair("0", 90s), std::pair("1", 36s)}) {
    PermitInfo hold;
    hold.id = WorkflowId(std::string("permit:gpu-pool:") + slot);
    hold.holder = std::string("train-") + slot;
    hold.lease_left = left;
    hold.deadline = now + left;
    why.blocked_by.push_back(hold);
  }
  why.latest_free = now + 41s;
  PoolInfo pool;
  pool.capacity = pool.held = 2;
  pool.waiting = 3;
  CHECK(waiting_line(why, pool) ==
        "waiting for gpu-pool: position 2, 2/2 held, soonest lease end 36s (gpu-pool:1, train-1), "
        "free in 41s at the latest if nobody renews");
  CHECK(fill_of(pool) == "2/2 held, 3 waiting");
  why.reason = "pool_drained";
  why.message = "the pool is drained";
  CHECK(waiting_line(why, pool) ==
        "waiting for gpu-pool: position 2, 2/2 held, the pool is drained");
}

TEST_CASE("A holder's name says what runs, who runs it and where") {
  CHECK(holder_name({"/usr/bin/python3", "jobs/train.py", "--lr"}, "ana@a:7") ==
        "python3 train.py (ana@a:7)");
  CHECK(holder_name({"sh", "-c", "true"}, "ana@a:7") == "sh (ana@a:7)");
  CHECK(holder_name({"x", std::string(500, 'y') + "\n"}, "a").size() < 70);
}

TEST_CASE("Signals go by name or number") {
  CHECK(signal_number("USR1") == SIGUSR1);
  CHECK(signal_number("SIGTERM") == SIGTERM);
  CHECK(signal_number("15") == 15);
  CHECK_FALSE(signal_number("USR3"));
  CHECK_FALSE(signal_number("0"));
  CHECK_FALSE(signal_number(""));
  CHECK(signal_name(SIGINT) == "INT");
}

TEST_CASE("A command's end is passed on as a shell does it") {
  CHECK(exit_code_of(0) == 0);
  CHECK(exit_code_of(7 << 8) == 7);
  CHECK(exit_code_of(SIGKILL) == 137);
  CHECK(describe_status(7 << 8) == "exited 7");
  CHECK(describe_status(SIGKILL) == "died by signal 9 (KILL)");
}

TEST_CASE("The lease never ends where a short time limit does") {
  RunOptions options;
  CHECK(acquire_request(options).lease == 2min);
  CHECK(acquire_request(options).order == PermitOrder::fair);
  options.max_hold = 1min;
  CHECK(acquire_request(options).lease == 30s);
  options.max_hold = 1h;
  CHECK(acquire_request(options).lease == 2min);
}

TEST_CASE("What the server refuses has an exit code") {
  const RunOptions options;
  const auto code = [&](ErrorCode error, const char* reason) {
    return refusal_of(Error(error, reason, ""), options).exit_code;
  };
  CHECK(code(ErrorCode::unavailable, "SERVER_UNREACHABLE") == 69);
  CHECK(code(ErrorCode::not_found, "POOL_NOT_FOUND") == 3);
  CHECK(code(ErrorCode::permission_denied, "") == 4);
  CHECK(code(ErrorCode::invalid_argument, "LEASE_INVALID") == 2);
  CHECK(code(ErrorCode::failed_precondition, "CANNOT_FIT") == 2);
  CHECK(code(ErrorCode::aborted, "REMOVED_FROM_LINE") == 75);
  CHECK(code(ErrorCode::internal, "") == 125);
}

}  // namespace permit::cli
