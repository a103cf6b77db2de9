// Trainings that share four GPUs: a worker, and what starts runs for it. With a server running:
//
//   gpu_training worker --name ada &
//   gpu_training start --id train-1 --model llama --time-scale 300
//   gpu_training result --id train-1
#include <chrono>
#include <ctime>
#include <iomanip>
#include <iostream>
#include <string>
#include <syncstream>
#include <thread>

#include "apps/arguments.h"
#include "apps/gpu_training/training.h"
#include "worker/http_client.h"
#include "worker/worker.h"

namespace gpu_training {

namespace {

using examples::Arguments;
using examples::BadArguments;
using permit::worker::Client;
using permit::worker::HttpTransport;
using permit::worker::StartOptions;
using permit::worker::WorkflowInfo;

constexpr const char* usage =
    R"(usage: gpu_training worker [--name NAME] [--at-once N] [--queue QUEUE]
       gpu_training start --id ID [--model MODEL] [--epochs N] [--time-scale N]
                          [--hang-after-epoch N] [--queue QUEUE]
       gpu_training result --id ID
The server is the one at --address, else at PERMIT_ADDRESS, else at 127.0.0.1:7376.
)";

std::string time_of_day() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto milliseconds = now.time_since_epoch() / std::chrono::milliseconds(1) % 1000;
  std::tm split{};
  gmtime_r(&seconds, &split);
  std::ostringstream text;
  text << std::put_time(&split, "%H:%M:%S") << "." << std::setw(3) << std::setfill('0')
       << milliseconds;
  return text.str();
}

int serve(const Arguments& arguments, HttpTransport& transport) {
  const std::string name = arguments.text("--name", "worker");
  const auto say = [name](const std::string& line) {
    std::osyncstream(std::cout) << time_of_day() << "  " << name << "  " << line << "\n"
                                << std::flush;
  };
  permit::worker::Registry registry;
  register_training(
      registry, {say, [](permit::Duration duration) { std::this_thread::sleep_for(duration); }});
  permit::worker::WorkerOptions options(arguments.text("--queue", "training"));
  options.identity = name;
  options.activity_threads = arguments.count("--at-once", options.activity_threads);
  options.log = [say](permit::worker::LogLevel, const WorkflowInfo& run, const std::string& text) {
    say(run.execution.workflow_id.value + "  " + text);
  };
  say("serves " + options.task_queue + " of " + transport.host() + ":" + transport.port());
  permit::worker::Worker worker(transport, registry, options);
  return worker.run_until_signal();
}

int start(const Arguments& arguments, HttpTransport& transport) {
  Training training;
  training.model = arguments.text("--model", training.model);
  training.epochs = arguments.count("--epochs", training.epochs);
  training.time_scale = arguments.number("--time-scale", training.time_scale);
  training.hang_after_epoch = arguments.count("--hang-after-epoch", training.hang_after_epoch);
  const std::string id = arguments.required("--id");
  Client client(transport);
  const auto options = StartOptions(id).task_queue(arguments.text("--queue", "training"));
  client.start(workflow_name, options, training);
  std::cout << id << " is to train " << training.model << " for " << training.epochs << " epochs\n";
  return 0;
}

int result(const Arguments& arguments, HttpTransport& transport) {
  const std::string id = arguments.required("--id");
  permit::WorkflowExecution execution;
  execution.workflow_id = permit::WorkflowId(id);
  Client client(transport);
  const auto run = client.run_of<Trained>(execution);
  try {
    const Trained trained = run.result();
    std::cout << id << " has trained " << trained.model << ": " << trained.epochs
              << " epochs, loss " << trained.loss << ", attempts " << trained.attempts << ", on "
              << trained.permit << " with fence " << trained.fence << "\n";
    return 0;
  } catch (const permit::worker::Failed& failed) {  // the run was; Error is when none is there
    std::cout << id << " has failed: " << failed.message() << "\n";
    return 1;
  }
}

int run(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  const Arguments arguments(argc, argv, 2,
                            {"--address", "--name", "--at-once", "--queue", "--id", "--model",
                             "--epochs", "--time-scale", "--hang-after-epoch"});
  HttpTransport transport(arguments.text("--address", permit::worker::default_address()));
  if (verb == "worker") return serve(arguments, transport);
  if (verb == "start") return start(arguments, transport);
  if (verb == "result") return result(arguments, transport);
  throw BadArguments("say what: worker, start or result");
}

}  // namespace

}  // namespace gpu_training

int main(int argc, char** argv) {
  try {
    return gpu_training::run(argc, argv);
  } catch (const examples::BadArguments& bad) {
    std::cerr << "gpu_training: " << bad.what() << "\n" << gpu_training::usage;
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "gpu_training: " << error.what() << "\n";
    return 1;
  }
}
