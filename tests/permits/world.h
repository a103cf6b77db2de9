// A server, a worker and permits in virtual time, for the tests in this directory.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "permits/semaphore.h"
#include "permits/slot_workflow.h"
#include "worker/test_environment.h"

namespace permit::test {

using namespace std::chrono_literals;

inline constexpr worker::WorkflowName<std::string()> flow{"flow"};
inline constexpr worker::WorkflowName<std::string(int)> numbered{"numbered"};

class PermitWorld {
 public:
  explicit PermitWorld(worker::Async<std::string> (*function)(worker::Workflow),
                       std::size_t cache = 1'000) {
    registry.workflow(flow, function);
    begin(cache);
  }
  explicit PermitWorld(worker::Async<std::string> (*function)(worker::Workflow, int),
                       std::size_t cache = 1'000) {
    registry.workflow(numbered, function);
    begin(cache);
  }
  // Throws what the check of all histories and of the ledger finds.
  ~PermitWorld() noexcept(false) {
    if (std::uncaught_exceptions() == 0) environment->check();
  }
  PermitWorld(const PermitWorld&) = delete;
  PermitWorld& operator=(const PermitWorld&) = delete;

  using Run = worker::TypedRunHandle<std::string>;
  Run start(const std::string& id) {
    return environment->client().start(flow, worker::StartOptions(id));
  }
  Run start(const std::string& id, int number) {
    return environment->client().start(numbered, worker::StartOptions(id), number);
  }
  Run permit_run(const std::string& id) {
    WorkflowExecution execution;
    execution.workflow_id = WorkflowId(id);
    return environment->client().run_of<std::string>(execution);
  }

  // How often each event is in the history.
  static std::map<std::string, int> events_of(const worker::RunHandle& run) {
    std::map<std::string, int> counts;
    for (const Event& event : run.history()) ++counts[std::string(event.name())];
    return counts;
  }
  template <class E>
  static std::vector<E> all(const worker::RunHandle& run) {
    std::vector<E> found;
    for (const Event& event : run.history()) {
      if (const auto* one = event.get_if<E>()) found.push_back(*one);
    }
    return found;
  }
  static Outcome outcome(const worker::RunHandle& permit) {
    return permit.describe().workflow_execution_info.outcome;
  }

  worker::Registry registry;
  std::vector<std::string> logged;
  std::optional<worker::TestEnvironment> environment;

 private:
  void begin(std::size_t cache) {
    permits::register_permit_slot(registry);
    worker::TestEnvironment::Options options;
    options.runs_cached_max = cache;
    options.replay_at_end = false;  // but in ~PermitWorld
    options.log = [this](worker::LogLevel, const worker::WorkflowInfo&, const std::string& text) {
      logged.push_back(text);
    };
    environment.emplace(registry, options);
  }
};

}  // namespace permit::test
