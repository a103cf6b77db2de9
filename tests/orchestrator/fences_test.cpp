// A resource that remembers the highest fence it has seen is safe only if fences never repeat and
// never go back: whatever restarts, and whatever of the past has been deleted.
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/support/cluster.h"

namespace permit::test {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

const std::string default_namespace = "default";
constexpr int capacity = 8;

// Grants every slot of a pool and takes it back, time and again, and notes all fences given.
class Grants {
 public:
  Grants() {
    set_capacity("gpu");
    set_capacity("lab");
  }

  int count() const { return count_; }
  std::int64_t highest() const { return highest_; }
  Cluster& cluster() { return cluster_; }

  // Every slot is held by an outside holder, then released. Each half is one batch.
  void round_of_holders(const std::string& pool) {
    std::vector<AcquireResponse> granted;
    for (int i = 0; i < capacity; ++i) {
      AcquireRequest request;
      request.namespace_ = default_namespace;
      request.pool = PoolName(pool);
      request.request_id = "r" + std::to_string(++requests_);
      cluster_.service().acquire(request, [&](service::Result<AcquireResponse> result) {
        granted.push_back(std::get<AcquireResponse>(std::move(result)));
      });
    }
    cluster_.settle();
    REQUIRE(granted.size() == capacity);
    for (const AcquireResponse& response : granted) {
      REQUIRE(response.slots.size() == 1);
      note(response.slots.front().id, response.slots.front().fence);
      cluster_.service().release(
          HolderRequest{default_namespace, response.slots.front().id, response.token, {}},
          [](service::Result<PermitInfo> result) {
            CHECK(std::holds_alternative<PermitInfo>(result));
          });
    }
    cluster_.settle();
  }

  // The same slots as a stock SDK takes them: a start by id, and a terminate.
  void round_of_plain_starts(const std::string& pool) {
    for (int i = 0; i < capacity; ++i) {
      StartWorkflowExecutionRequest request;
      request.namespace_ = default_namespace;
      request.workflow_id = WorkflowId("permit:" + pool + ":" + std::to_string(i));
      request.workflow_type.name = "PermitSlotWorkflow";
      request.task_queue.name = "permits";
      request.workflow_execution_timeout = seconds(60);
      cluster_.service().start(request, [](service::Result<StartWorkflowExecutionResponse> result) {
        CHECK(std::holds_alternative<StartWorkflowExecutionResponse>(result));
      });
      cluster_.service().describe_permit(
          PermitQuery{default_namespace, request.workflow_id, RunId()},
          [&](service::Result<PermitInfo> result) {
            const auto& info = std::get<PermitInfo>(result);
            note(info.id, info.fence);
          });
      TerminateWorkflowExecutionRequest end;
      end.namespace_ = default_namespace;
      end.workflow_execution.workflow_id = request.workflow_id;
      cluster_.service().terminate(end, [](service::Result<EmptyResponse> result) {
        CHECK(std::holds_alternative<EmptyResponse>(result));
      });
    }
    cluster_.settle();
  }

  // Until nothing that has closed is left. Retention works beside other commits, a slice a second.
  void outlive_retention() {
    const Time later = cluster_.now() + hours(73);
    while (cluster_.now() < later) cluster_.step_to(later);
    store::Statement count{cluster_.store().database(), "SELECT count(*) FROM runs"};
    for (int i = 0;; ++i) {
      auto row = count.bind();
      REQUIRE(row.step());
      if (row.i64(0) == 0) return;
      REQUIRE(i < 50);
      cluster_.step_to(cluster_.now() + seconds(2));
      set_capacity("gpu");
    }
  }

 private:
  void set_capacity(const std::string& pool) {
    SetPoolRequest request;
    request.namespace_ = default_namespace;
    request.pool = PoolName(pool);
    request.capacity = capacity;
    const auto result = cluster_.call<PoolInfo>(
        [&](auto done) { cluster_.service().set_pool(request, std::move(done)); });
    REQUIRE(std::holds_alternative<PoolInfo>(result.value()));
  }

  void note(const WorkflowId& permit, Fence fence) {
    ++count_;
    std::int64_t& last = last_[permit];
    if (fence.value <= last) {
      FAIL(permit.value << " got fence " << fence.value << " after " << last << ", grant "
                        << count_);
    }
    last = fence.value;
    highest_ = std::max(highest_, last);
  }

  Cluster cluster_;
  int count_ = 0;
  int requests_ = 0;
  std::int64_t highest_ = 0;
  std::map<WorkflowId, std::int64_t> last_;  // fence, by permit id
};

TEST_CASE("fences of a permit id rise over 10,000 grants, restarts, crashes and retention") {
  Grants grants;
  std::int64_t highest = 0;
  for (int era = 0; grants.count() < 10'000; ++era) {
    const std::string pool = era % 2 == 0 ? "gpu" : "lab";
    for (int round = 0; round < 40; ++round) {
      if (round % 4 == 3) {
        grants.round_of_plain_starts(pool);
      } else {
        grants.round_of_holders(pool);
      }
    }
    // Numbers are of the whole database: one pool's tell nothing about the other's.
    CHECK(grants.highest() > highest);
    highest = grants.highest();
    // Nothing but the counter knows the past in every third era: no run, and at times no process.
    if (era % 3 == 1) grants.outlive_retention();
    if (era % 2 == 0) grants.cluster().restart(seconds(1));
    if (era % 4 == 1) grants.cluster().crash(seconds(1));
  }
}

}  // namespace
}  // namespace permit::test
