#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "permits/slot_workflow.h"
#include "worker/replayer.h"

using namespace permit;

namespace {

worker::Async<std::string> release_at_once(worker::Workflow, permits::PermitSlotInput) {
  co_return "released";
}

}  // namespace

TEST_CASE("a history that was downloaded from the page of a permit replays") {
  std::ifstream file("tests/histories/downloads/permit.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::vector<Event> events = worker::read_history(text);
  REQUIRE(events.size() == 6);
  worker::Registry registry;
  permits::register_permit_slot(registry);
  const auto tasks = worker::replay(registry, {WorkflowId("permit:gpu:2"), RunId("r")}, events);
  CHECK(tasks.size() == 1);  // which started the lease's timer

  worker::Registry other;
  other.workflow(permits::permit_slot, &release_at_once);
  CHECK_THROWS(worker::replay(other, {WorkflowId("permit:gpu:2"), RunId("r")}, events));
}
