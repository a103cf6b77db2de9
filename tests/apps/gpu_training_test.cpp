// The GPU training of the examples with its real durations, hours of them, in virtual time.
#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include "apps/gpu_training/training.h"
#include "permits/pool_client.h"
#include "permits/slot_workflow.h"
#include "worker/test_environment.h"

using namespace permit;
using namespace permit::worker;
using namespace std::chrono_literals;
using gpu_training::Trained;
using gpu_training::Training;

namespace {

class TrainingWorld {
 public:
  using Run = TypedRunHandle<Trained>;

  // `compute` stands for what an attempt does for so long. A test has one thread, so that time
  // passes between the attempts only.
  explicit TrainingWorld(std::function<void(Duration)> compute) {
    permits::register_permit_slot(registry);
    const auto say = [this](const std::string& line) { said.push_back(line); };
    gpu_training::register_training(registry, {say, std::move(compute)});
    environment.emplace(registry);
  }

  Run start(const std::string& id, const Training& training) {
    return environment->client().start(gpu_training::workflow_name, StartOptions(id), training);
  }
  std::vector<PermitInfo> holds() {
    ListPermitsRequest request;
    request.pool = PoolName(gpu_training::pool);
    return permits::PoolClient(environment->client().transport()).permits(request).permits;
  }
  int held() {
    return permits::PoolClient(environment->client().transport())
        .describe(PoolName(gpu_training::pool))
        .held;
  }
  int times_said(const std::string& text) const {
    int times = 0;
    for (const std::string& line : said) times += line.find(text) != std::string::npos ? 1 : 0;
    return times;
  }

  Registry registry;
  std::vector<std::string> said;
  std::optional<TestEnvironment> environment;  // checks replays and the ledger when it goes
};

Training of_epochs(int epochs) {
  Training training;
  training.epochs = epochs;
  return training;
}

// What a worker does that was killed, or a job that hangs: no answer, ever.
[[noreturn]] void fall_silent() { throw CompletesLater{}; }

}  // namespace

TEST_CASE("A training of the examples releases its GPU and has learned something") {
  TrainingWorld world([](Duration) {});
  const Trained trained = world.start("train", of_epochs(10)).result();
  CHECK(trained.epochs == 10);
  CHECK(trained.attempts == 1);
  CHECK(trained.loss < 0.1);
  const auto holds = world.holds();
  REQUIRE(holds.size() == 1);
  CHECK(holds[0].outcome == Outcome::released);
  CHECK(holds[0].reason == "training llama");
  CHECK(trained.permit == holds[0].id.value);
  CHECK(trained.fence == holds[0].fence.value);
}

TEST_CASE("A training whose worker dies goes on after its last epoch, under the same permit") {
  double undisturbed = 0;
  {
    TrainingWorld world([](Duration) {});
    undisturbed = world.start("train", of_epochs(10)).result().loss;
  }
  int epochs = 0;
  TrainingWorld world([&epochs](Duration) {
    if (++epochs == 5) fall_silent();
  });
  const auto run = world.start("train", of_epochs(10));
  world.environment->settle();
  CHECK(world.times_said("epoch 4 of 10") == 1);
  world.environment->restart_worker();
  // Its silence is noticed after 3 min, and tried again after 10 s.
  world.environment->advance(3min);
  CHECK(world.times_said("attempt 2") == 0);
  world.environment->advance(10s);
  CHECK(world.times_said("attempt 2 goes on after epoch 4") == 1);
  const Trained trained = run.result();
  CHECK(trained.attempts == 2);
  CHECK(trained.loss == undisturbed);  // no epoch was lost, and none was done twice
  REQUIRE(world.holds().size() == 1);
  CHECK(world.holds()[0].outcome == Outcome::released);
}

TEST_CASE("A training that hangs whenever it is tried loses its GPU 45 min after its last epoch") {
  TrainingWorld world([](Duration duration) {
    if (duration > 2min) fall_silent();
  });
  Training hangs = of_epochs(10);
  hangs.hang_after_epoch = 2;
  const auto run = world.start("hangs", hangs);
  world.environment->settle();
  const Time last_epoch = world.environment->now();
  world.environment->advance(45min - 1s);
  CHECK(world.held() == 1);
  CHECK(world.times_said("attempt ") > 10);  // tried again every few minutes
  world.environment->advance(1s);
  CHECK(world.held() == 0);
  const auto holds = world.holds();
  REQUIRE(holds.size() == 1);
  CHECK(holds[0].outcome == Outcome::lease_expired);
  CHECK(holds[0].cause == "timer");
  CHECK(holds[0].closed_at - last_epoch == 45min);
  CHECK_THROWS_WITH_AS(run.result(), doctest::Contains("lease_expired"), WorkflowFailed);
}

TEST_CASE("A training that makes progress keeps its GPU beyond the lease, but for 2 h at most") {
  // Each attempt does one epoch and falls silent, and is tried again 3 to 4 min later.
  int epochs = 0;
  TrainingWorld world([&epochs](Duration) {
    if (++epochs % 2 == 0) fall_silent();
  });
  const auto run = world.start("slow", of_epochs(1'000));
  world.environment->settle();
  const Time begun = world.environment->now();
  world.environment->advance(2h - 2s);
  CHECK(world.held() == 1);
  CHECK_THROWS_AS(run.result(), WorkflowFailed);
  const auto holds = world.holds();
  REQUIRE(holds.size() == 1);
  CHECK(holds[0].closed_at - begun <= 2h);
  CHECK(holds[0].outcome == Outcome::released);  // the attempts end before the permit must
}

TEST_CASE("Ten trainings want four GPUs: each gets one, in turn") {
  bool is_slow = true;
  TrainingWorld world([&is_slow](Duration) {
    if (is_slow) fall_silent();
  });
  std::vector<TrainingWorld::Run> runs;
  for (int i = 0; i < 10; ++i) {
    runs.push_back(world.start("train-" + std::to_string(i), of_epochs(3)));
  }
  world.environment->settle();
  CHECK(world.held() == 4);
  is_slow = false;
  for (const auto& run : runs) CHECK(run.result().epochs == 3);
  CHECK(world.holds().size() == 10);
  CHECK(world.held() == 0);
}

TEST_CASE("What cannot be trained does not ask for a GPU") {
  TrainingWorld world([](Duration) {});
  CHECK_THROWS_AS(world.start("nothing", of_epochs(0)).result(), WorkflowFailed);
  CHECK(world.holds().empty());
}
