#include "apps/gpu_training/training.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "permits/semaphore.h"

namespace gpu_training {

using permit::Duration;
using permit::permits::Held;
using permit::permits::PermitOptions;
using permit::permits::Semaphore;
using permit::worker::ActivityContext;
using permit::worker::ActivityOptions;
using permit::worker::ApplicationFailed;
using permit::worker::Async;
using permit::worker::Canceled;
using permit::worker::Workflow;
using namespace std::chrono_literals;

namespace {

// Not below the floor: however fast the time, a busy machine needs a while to say a word.
Duration scaled(Duration full, double time_scale, Duration floor) {
  const auto divided = std::chrono::duration<double>(full) / time_scale;
  return std::max(std::chrono::round<Duration>(divided), std::min(full, floor));
}

}  // namespace

Limits::Limits(double time_scale)
    : epoch(scaled(2min, time_scale, 100ms)),
      silence(scaled(3min, time_scale, 2s)),
      pause(scaled(10s, time_scale, 100ms)),
      pause_max(scaled(1min, time_scale, 200ms)),
      attempt(scaled(30min, time_scale, 5s)),
      lease(scaled(45min, time_scale, 6s)),
      max_hold(scaled(2h, time_scale, 20s)) {}

// --- The workflow ---

namespace {

// Before anything is asked for: what cannot be trained is not to wait in line for a GPU.
void check(const Training& training) {
  if (training.epochs >= 1 && training.time_scale > 0 && training.hang_after_epoch >= 0) return;
  throw ApplicationFailed("a training has an epoch at least, and a time scale above 0")
      .type("BadTraining")
      .non_retryable();
}

Async<Trained> train_on_gpu(Workflow workflow, Training training) {
  check(training);
  const Limits limits(training.time_scale);
  // with_permit keeps the closure for as long as its coroutine runs.
  // NOLINTNEXTLINE(cppcoreguidelines-avoid-capturing-lambda-coroutines)
  const auto on_gpu = [training, limits](Workflow inside, Held permit) -> Async<Trained> {
    // Without a retry policy there would be one attempt, and a dead worker would free the GPU. With
    // one, the permit is kept over all attempts; that they end before it must, by max_hold, is
    // what cover() sees to.
    const auto options = permit.cover(ActivityOptions()
                                          .start_to_close(limits.attempt)
                                          .heartbeat(limits.silence)
                                          .retry_interval(limits.pause, limits.pause_max));
    Trained trained = co_await inside.execute_activity(activity_name, options, training,
                                                       permit.id(), permit.fence());
    co_return trained;
  };
  // Fair: who has waited longest is next.
  const auto options = PermitOptions()
                           .lease(limits.lease)
                           .max_hold(limits.max_hold)
                           .fair()
                           .reason("training " + training.model);
  const Semaphore gpu(workflow, pool, gpus);
  Trained trained = co_await gpu.with_permit(options, on_gpu);
  co_return trained;
}

// --- The activity ---

std::string loss_text(double loss) {
  char text[32];
  std::snprintf(text, sizeof text, "loss %.4f", loss);
  return text;
}

// One epoch. The model learns to triple, y = 3 x, by gradient descent.
void learn(Checkpoint& checkpoint) {
  constexpr int points = 100;
  constexpr double rate = 0.5;
  double gradient = 0;
  checkpoint.loss = 0;
  for (int i = 1; i <= points; ++i) {
    const double x = static_cast<double>(i) / points;
    const double error = checkpoint.weight * x - 3 * x;
    gradient += 2 * error * x / points;
    checkpoint.loss += error * error / points;
  }
  checkpoint.weight -= rate * gradient;
  ++checkpoint.epochs_done;
}

// The activity: one attempt at a training.
class Trainer {
 public:
  explicit Trainer(World world) : world_(std::move(world)) {}

  Trained operator()(ActivityContext& context, const Training& training, const std::string& permit,
                     std::int64_t fence) const {
    const Limits limits(training.time_scale);
    const int attempt = context.info().attempt;
    const auto say = [&](const std::string& what) {
      world_.say(context.info().workflow.workflow_id.value + "  " + permit + "  fence " +
                 std::to_string(fence) + "  " + what);
    };
    Checkpoint checkpoint = context.last_heartbeat<Checkpoint>().value_or(Checkpoint());
    int& epoch = checkpoint.epochs_done;
    say("attempt " + std::to_string(attempt) +
        (epoch == 0 ? " begins" : " goes on after epoch " + std::to_string(epoch)));
    while (epoch < training.epochs) {
      if (training.hang_after_epoch > 0 && epoch >= training.hang_after_epoch) {
        say("hangs");
        // Until the server has given up this attempt: one that really hangs would go on for ever.
        world_.compute(2 * limits.silence);
        throw ApplicationFailed("hung after epoch " + std::to_string(epoch));
      }
      world_.compute(limits.epoch);
      learn(checkpoint);
      say("epoch " + std::to_string(epoch) + " of " + std::to_string(training.epochs) + "  " +
          loss_text(checkpoint.loss));
      // This renews the permit, so it comes with what was done and not with an attempt's start: a
      // training that hangs every time it is tried is to lose its GPU.
      try {
        context.heartbeat(checkpoint);
      } catch (const Canceled&) {
        // The run was canceled or has been terminated, or its permit is lost.
        say("is told to stop");
        throw;
      }
    }
    say("done");
    return {training.model, epoch, checkpoint.loss, attempt, permit, fence};
  }

 private:
  World world_;
};

}  // namespace

void register_training(permit::worker::Registry& registry, World world) {
  registry.workflow(workflow_name, train_on_gpu).activity(activity_name, Trainer(std::move(world)));
}

}  // namespace gpu_training
