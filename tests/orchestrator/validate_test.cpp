// The rules for names, durations and sizes: what is just taken, what is just refused, with which
// reason, and that the sentence says what would be right.
#include "orchestrator/core/validate.h"

#include <doctest/doctest.h>

#include "orchestrator/protocol/error.h"

namespace permit::core {
namespace {

using namespace std::chrono_literals;

const Limits limits;

std::string text_of(std::size_t size) { return std::string(size, 'a'); }

// "REASON: message" of what the check throws; empty if it is content.
template <class Check>
std::string refusal(Check check) {
  try {
    check();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_argument);
    return error.reason() + ": " + error.message();
  }
  return "";
}

bool starts(const std::string& text, const char* with) { return text.starts_with(with); }

std::string workflow_id(const std::string& id) {
  return refusal([&] { check_workflow_id(WorkflowId(id), limits); });
}
std::string pool(const std::string& name) {
  return refusal([&] { check_pool_name(PoolName(name)); });
}
std::string slot(const std::string& name) {
  return refusal([&] { check_slot_name(SlotName(name)); });
}
std::string name(const std::string& text) {
  return refusal([&] { check_name(text, "signalName", limits); });
}

TEST_CASE("a workflow id has 1 to 255 characters of a small set") {
  for (const std::string& good : {std::string("a"), std::string("AZaz09._:/@+-"), text_of(255)}) {
    CHECK(workflow_id(good) == "");
  }
  CHECK(workflow_id("") == "WORKFLOW_ID_INVALID: the workflow id is empty");
  // The neighbours of the letters and digits in ASCII, a space, a letter beyond it.
  for (const std::string& bad :
       {text_of(256), std::string("a{"), std::string("a`"), std::string("a["), std::string("a;"),
        std::string("a b"), std::string("\xC3\xA4"), std::string("a\n")}) {
    CAPTURE(bad);
    CHECK(starts(workflow_id(bad), "WORKFLOW_ID_INVALID: "));
  }
  CHECK(workflow_id("a b").ends_with(
      "\"a b\" is not 1 to 255 characters of A-Z a-z 0-9 . _ : / @ + -"));
}

TEST_CASE("what an error repeats of a name is short and printable") {
  CHECK(workflow_id("a\n\x7F\xC3\xA4~").find("\"a????~\"") != std::string::npos);
  CHECK(pool(text_of(64) + "/").find('"' + text_of(64) + "…\"") != std::string::npos);
  CHECK(pool(text_of(63) + "/").find('"' + text_of(63) + "/\"") != std::string::npos);
}

TEST_CASE("a permit's id names a pool and a slot") {
  const PoolName gpu("gpu");
  const WorkflowId id = permit_id(gpu, SlotName("a.b_c-D9"));
  CHECK(id.value == "permit:gpu:a.b_c-D9");
  CHECK(workflow_id(id.value) == "");
  const auto parsed = parse_permit_id(id);
  REQUIRE(parsed.has_value());
  CHECK(parsed->pool == gpu);
  CHECK(parsed->slot.value == "a.b_c-D9");

  CHECK(!parse_permit_id(WorkflowId("gpu:0")));
  for (const std::string& bad :
       {std::string("permit:"), std::string("permit:gpu"), std::string("permit::0"),
        std::string("permit:gpu:"), std::string("permit:gpu:0:1"), std::string("permit:g/u:0"),
        "permit:" + text_of(65) + ":0", "permit:gpu:" + text_of(65)}) {
    CAPTURE(bad);
    CHECK(!parse_permit_id(WorkflowId(bad)));
    CHECK(starts(workflow_id(bad), "PERMIT_ID_INVALID: "));
  }
}

TEST_CASE("the id of a request that waits is no run's") {
  const WorkflowId id = waiting_id(PoolName("gpu"), 7);
  CHECK(parse_waiting_id(id) == 7);
  CHECK(starts(workflow_id(id.value), "WORKFLOW_ID_INVALID: "));
  for (const char* other :
       {"gpu:?7", "permit:gpu:7", "permit:gpu:?", "permit:gpu:?x", "permit:gpu:?7x",
        "permit:gpu:?0", "permit:gpu:?-7", "permit:gpu:?99999999999999999999"}) {
    CAPTURE(other);
    CHECK(!parse_waiting_id(WorkflowId(other)));
  }
}

TEST_CASE("names of pools and slots") {
  for (const std::string& good : {std::string("gpu"), std::string("..."), text_of(64)}) {
    CHECK(pool(good) == "");
    CHECK(slot(good) == "");
  }
  for (const std::string& bad : {std::string(""), std::string("a/b"), text_of(65)}) {
    CHECK(starts(pool(bad), "POOL_NAME_INVALID: "));
    CHECK(starts(slot(bad), "SLOT_NAME_INVALID: "));
  }
  // Steps of a path: a pool is part of one, a slot is not.
  CHECK(pool(".") == "POOL_NAME_INVALID: pool name \".\" is none");
  CHECK(pool("..") == "POOL_NAME_INVALID: pool name \"..\" is none");
  CHECK(slot("..") == "");
}

TEST_CASE("other names are text without control characters") {
  for (const std::string& good :
       {std::string("grüße, 世界"), std::string(" "), text_of(255), std::string("a\xC2\xA0z")}) {
    CAPTURE(good);
    CHECK(name(good) == "");
  }
  CHECK(name("") == "NAME_INVALID: signalName is missing; it must be given");
  CHECK(refusal([] { check_optional_name("", "identity", limits); }) == "");
  for (const std::string& bad : {text_of(256), std::string("a\nb"), std::string("\x7F"),
                                 std::string("a\xC2\x85z"), std::string("\xC2\x80")}) {
    CHECK(starts(name(bad), "NAME_INVALID: signalName "));
  }
  // That a name ends within a character is found where its text is read.
  CHECK(name("a\xC2") == "");
}

TEST_CASE("durations are from 0 to 100 years") {
  const auto duration = [](Duration value) {
    return refusal([&] { check_duration(value, "lease"); });
  };
  constexpr Duration century = 24h * 365 * 100;
  CHECK(duration(0s) == "");
  CHECK(duration(century) == "");
  CHECK(duration(-1us) == "DURATION_INVALID: lease must be between 0s and 100 years");
  CHECK(starts(duration(century + 1us), "DURATION_INVALID: "));
}

TEST_CASE("payloads count with their metadata, up to the limit") {
  Limits small;
  small.payload_bytes_max = 22;
  const auto checked = [&](std::optional<Payloads> payloads) {
    return refusal([&] { check_payloads(payloads, "input", small); });
  };
  CHECK(checked(std::nullopt) == "");
  CHECK(checked(json_payloads("123")) == "");  // encoding, json/plain: 8 and 10 bytes
  CHECK(checked(json_payloads("1234")) == "");
  CHECK(checked(json_payloads("12345")) ==
        "PAYLOAD_TOO_LARGE: input is 23 bytes; at most 22 are taken");
  CHECK(bytes_of(PayloadMap{{"key", json_payload("1")}}) == 22);
}

TEST_CASE("priorities are 1 to 5, or left out") {
  const auto priority = [](std::optional<Priority> value) {
    return refusal([&] { check_priority(value); });
  };
  CHECK(priority(std::nullopt) == "");
  for (std::int32_t key = 0; key <= 5; ++key) CHECK(priority(Priority{key, "", 0}) == "");
  CHECK(starts(priority(Priority{-1, "", 0}), "PRIORITY_INVALID: "));
  CHECK(starts(priority(Priority{6, "", 0}), "PRIORITY_INVALID: "));
}

PermitRequest good_permit() {
  PermitRequest request;
  request.pool = PoolName("gpu");
  return request;
}

TEST_CASE("a permit request's gaps are filled") {
  PermitRequest request = good_permit();
  check_permit_request(request, limits);
  CHECK(request.count == 1);
  CHECK(request.lease == 10min);
  CHECK(request.order == PermitOrder::any);
  CHECK(!request.wait);

  request = good_permit();
  request.order = PermitOrder::fair;
  request.lease = 1ms;
  request.count = 10'000;
  check_permit_request(request, limits);
  CHECK(request.wait);  // a fair line is stood in
  CHECK(request.lease == 1ms);
  CHECK(request.count == 10'000);
}

TEST_CASE("a permit request that cannot be is refused") {
  const auto refused = [](auto spoil) {
    PermitRequest request = good_permit();
    spoil(request);
    const std::string text = refusal([&] { check_permit_request(request, limits); });
    return text.substr(0, text.find(':'));
  };
  CHECK(refused([](PermitRequest& r) { r.pool = PoolName(""); }) == "POOL_NAME_INVALID");
  CHECK(refused([](PermitRequest& r) { r.slots = {SlotName("")}; }) == "SLOT_NAME_INVALID");
  CHECK(refused([](PermitRequest& r) { r.slots = {SlotName("0"), SlotName("0")}; }) ==
        "SLOTS_INVALID");
  CHECK(refused([](PermitRequest& r) { r.only = {SlotName("0"), SlotName("0")}; }) ==
        "SLOTS_INVALID");
  CHECK(refused([](PermitRequest& r) { r.slots.resize(10'001, SlotName("0")); }) ==
        "SLOTS_INVALID");
  CHECK(refused([](PermitRequest& r) { r.count = -1; }) == "COUNT_INVALID");
  CHECK(refused([](PermitRequest& r) { r.count = 10'001; }) == "COUNT_INVALID");
  CHECK(refused([](PermitRequest& r) { r.lease = 999us; }) == "LEASE_INVALID");
  CHECK(refused([](PermitRequest& r) { r.lease = 24h * 365 + 1us; }) == "LEASE_INVALID");
  CHECK(refused([](PermitRequest& r) { r.lease = 24h * 365; }) == "");
  CHECK(refused([](PermitRequest& r) { r.max_hold = -1s; }) == "DURATION_INVALID");
  CHECK(refused([](PermitRequest& r) { r.wait_timeout = -1s; }) == "DURATION_INVALID");
  CHECK(refused([](PermitRequest& r) { r.reason = text_of(1000); }) == "");
  CHECK(refused([](PermitRequest& r) { r.reason = text_of(1001); }) == "LABELS_INVALID");
  const auto with_labels = [](int count) {
    return [count](PermitRequest& r) {
      for (int i = 0; i < count; ++i) r.labels[std::to_string(i)] = "";
    };
  };
  CHECK(refused(with_labels(32)) == "");
  CHECK(refused(with_labels(33)) == "LABELS_INVALID");
  CHECK(refused([](PermitRequest& r) { r.labels[""] = "x"; }) == "NAME_INVALID");
  CHECK(refused([](PermitRequest& r) { r.labels["team"] = "\n"; }) == "NAME_INVALID");
}

StartWorkflowExecutionRequest good_start(const char* id = "w") {
  StartWorkflowExecutionRequest request;
  request.workflow_id = WorkflowId(id);
  request.workflow_type.name = "T";
  request.task_queue.name = "work";
  return request;
}

StartWorkflowExecutionRequest good_permit_start() {
  StartWorkflowExecutionRequest request = good_start("");
  request.workflow_type.name = "";
  request.permit = good_permit();
  return request;
}

template <class Spoil>
std::string refused_start(StartWorkflowExecutionRequest request, Spoil spoil) {
  spoil(request);
  const std::string text = refusal([&] { check_start(request, limits); });
  return text.substr(0, text.find(':'));
}

using Start = StartWorkflowExecutionRequest;
using Reuse = WorkflowIdReusePolicy;
using Conflict = WorkflowIdConflictPolicy;

TEST_CASE("a start that cannot be is refused") {
  const auto refused = [](auto spoil) { return refused_start(good_start(), spoil); };
  CHECK(refused([](Start&) {}) == "");
  CHECK(refused([](Start& r) { r.workflow_id = WorkflowId(""); }) == "WORKFLOW_ID_INVALID");
  CHECK(refused([](Start& r) { r.workflow_type.name = ""; }) == "NAME_INVALID");
  CHECK(refused([](Start& r) { r.task_queue.name = ""; }) == "NAME_INVALID");
  CHECK(refused([](Start& r) { r.identity = "\n"; }) == "NAME_INVALID");
  CHECK(refused([](Start& r) { r.request_id = text_of(256); }) == "NAME_INVALID");
  CHECK(refused([](Start& r) { r.workflow_execution_timeout = -1s; }) == "DURATION_INVALID");
  CHECK(refused([](Start& r) { r.workflow_run_timeout = -1s; }) == "DURATION_INVALID");
  CHECK(refused([](Start& r) { r.workflow_task_timeout = -1s; }) == "DURATION_INVALID");
  CHECK(refused([](Start& r) { r.input = json_payloads(text_of(2 * 1024 * 1024)); }) ==
        "PAYLOAD_TOO_LARGE");
  CHECK(refused([](Start& r) { r.memo = Memo{{{"k", json_payload("1")}}}; }) == "");
  CHECK(refused([](Start& r) { r.memo = Memo{{{"k", json_payload(text_of(2 * 1024 * 1024))}}}; }) ==
        "MEMO_TOO_LARGE");
  CHECK(refused([](Start& r) { r.priority = Priority{9, "", 0}; }) == "PRIORITY_INVALID");
}

TEST_CASE("policies that contradict each other are refused") {
  const auto refused = [](Reuse reuse, Conflict conflict) {
    return refused_start(good_start(), [&](Start& r) {
      r.workflow_id_reuse_policy = reuse;
      r.workflow_id_conflict_policy = conflict;
    });
  };
  CHECK(refused(Reuse::terminate_if_running, Conflict::unspecified) == "");
  CHECK(refused(Reuse::terminate_if_running, Conflict::fail) == "POLICY_INVALID");
  CHECK(refused(Reuse::reject_duplicate, Conflict::fail) == "");
  CHECK(refused(Reuse::reject_duplicate, Conflict::terminate_existing) == "POLICY_INVALID");
}

TEST_CASE("a start with a permit object gets its type, and no id of its own") {
  Start request = good_permit_start();
  check_start(request, limits);
  CHECK(request.workflow_type.name == permit_workflow_type);
  CHECK(request.permit->count == 1);

  const auto refused = [](auto spoil) { return refused_start(good_permit_start(), spoil); };
  CHECK(refused([](Start& r) { r.workflow_type.name = permit_workflow_type; }) == "");
  CHECK(refused([](Start& r) { r.workflow_id = WorkflowId("w"); }) == "PERMIT_ID_GIVEN");
  CHECK(refused([](Start& r) { r.workflow_type.name = "T"; }) == "PERMIT_TYPE_INVALID");
  CHECK(refused([](Start& r) { r.permit->count = -1; }) == "COUNT_INVALID");
}

TEST_CASE("a start under a permit's id obeys the permit's rules") {
  const auto refused = [](auto spoil) {
    Start request = good_start("permit:gpu:0");
    request.workflow_type.name = permit_workflow_type;
    return refused_start(std::move(request), spoil);
  };
  CHECK(refused([](Start&) {}) == "");
  CHECK(refused([](Start& r) { r.workflow_type.name = "T"; }) == "PERMIT_TYPE_INVALID");
  CHECK(refused([](Start& r) { r.workflow_id_reuse_policy = Reuse::terminate_if_running; }) ==
        "PERMIT_POLICY_INVALID");
  CHECK(refused([](Start& r) { r.workflow_id_conflict_policy = Conflict::terminate_existing; }) ==
        "PERMIT_POLICY_INVALID");
}

}  // namespace
}  // namespace permit::core
