// `permit run` as a person types it, beside what others take for the same: a free lock, `true`, and
// the lock given back.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "permits/pool_client.h"
#include "tests/bench/processes.h"
#include "tests/bench/scenarios.h"
#include "worker/http_client.h"

namespace permit::bench {

namespace {

using Clock = std::chrono::steady_clock;

// Its exit code; 127 if there is no such program.
int run_program(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = 0;
  if (posix_spawnp(&pid, argv[0], nullptr, nullptr, argv.data(), environ) != 0) return 127;
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

constexpr int rounds = 40;

double median_ms(const std::vector<std::string>& words) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    const auto begun = Clock::now();
    if (run_program(words) != 0) throw std::runtime_error(words[0] + " failed");
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begun).count());
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[rounds / 2];
}

void run_command(const Setting& setting, Report& report) {
  ServerProcess server(setting.binary, setting.directory + "/command.db");
  const std::string address = "127.0.0.1:" + std::to_string(server.port());
  worker::HttpTransport transport(address);
  SetPoolRequest pool;
  pool.pool = PoolName("command");
  pool.capacity = 1;
  permits::PoolClient(transport).set(std::move(pool));
  report.add("a command: true alone", "ms", median_ms({"true"}));
  report.add("a command: flock", "ms",
             median_ms({"flock", setting.directory + "/command.lock", "true"}));
  report.add(
      command_run, "ms",
      median_ms({setting.binary, "run", "--address", address, "-p", "command", "--", "true"}));
  server.stop();
}

}  // namespace

std::vector<Scenario> command_scenarios() { return {{"a command", run_command}}; }

}  // namespace permit::bench
