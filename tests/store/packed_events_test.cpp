#include "orchestrator/store/packed_events.h"

#include <doctest/doctest.h>

#include <random>

#include "orchestrator/store/event_dictionary_txt.h"

namespace permit::store {
namespace {

std::string unpacked(std::string_view packed) {
  const auto events = unpack_events(packed);
  REQUIRE(events.has_value());
  return *events;
}

const std::string grant =
    R"({"eventId":"1","eventTime":"2026-11-20T00:06:05.227461Z",)"
    R"("eventType":"EVENT_TYPE_WORKFLOW_EXECUTION_STARTED",)"
    R"("workflowExecutionStartedEventAttributes":{"workflowType":{"name":"PermitSlotWorkflow"},)"
    R"("taskQueue":{"name":"permits"},"identity":"bench","attempt":1,)"
    R"("workflowId":"permit:gpu:3","requestId":"acquire-900"}},)"
    R"({"eventId":"2","eventTime":"2026-11-20T00:06:05.227461Z",)"
    R"("eventType":"EVENT_TYPE_WORKFLOW_TASK_SCHEDULED",)"
    R"("workflowTaskScheduledEventAttributes":{"taskQueue":{"name":"permits",)"
    R"("kind":"TASK_QUEUE_KIND_NORMAL"},"startToCloseTimeout":"10s","attempt":1}})";

// Whatever is packed after whatever else.
TEST_CASE("what is packed comes back as it was") {
  std::mt19937 dice(20261120);
  std::string noise(100'000, '\0');
  for (char& letter : noise) letter = static_cast<char>(dice() % 256);
  std::string large;
  while (large.size() < 5'000'000) large += grant + noise.substr(dice() % 90'000, 3'000);
  EventPacker packer;
  for (int round = 0; round < 3; ++round) {
    for (const std::string& events :
         {grant, std::string("a"), noise, std::string(), large, grant}) {
      CHECK(unpacked(packer.pack(events)) == events);
    }
  }
}

TEST_CASE("events take much less room than their JSON") {
  EventPacker packer;
  const std::size_t size = packer.pack(grant).size();
  CAPTURE(size);
  CHECK(size * 4 < grant.size());
}

TEST_CASE("what was packed before is read for ever") {
  std::uint64_t hash = 14'695'981'039'346'656'037U;
  for (const char letter : std::string_view(event_dictionary)) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 1'099'511'628'211U;
  }
  // Another one needs another number in packed_events.cpp, and this one must stay.
  CHECK(hash == 16'702'665'467'604'952'252U);
}

// Of any length and with any byte changed: refused or read as something, never beyond the end.
TEST_CASE("what is not packed events is refused or read as others") {
  EventPacker packer;
  const std::string packed(packer.pack(grant));
  CHECK_FALSE(unpack_events("").has_value());
  CHECK_FALSE(unpack_events(grant).has_value());
  CHECK_FALSE(unpack_events(std::string(40, '\0')).has_value());
  for (std::size_t size = 0; size < packed.size(); ++size) {
    CHECK_FALSE(unpack_events(std::string_view(packed).substr(0, size)).has_value());
  }
  for (std::size_t at = 0; at < packed.size(); ++at) {
    for (const int change : {1, 128, 255}) {
      std::string changed = packed;
      changed[at] = static_cast<char>(changed[at] ^ change);
      const auto events = unpack_events(changed);
      if (events) CHECK(events->size() <= packed.size() * 255);
    }
  }
}

}  // namespace
}  // namespace permit::store
