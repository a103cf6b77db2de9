#include "tests/bench/peers/service.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "tests/bench/peers/stream.h"

namespace permit::bench {

namespace {

// Of what a process has printed: the line that says why it gave up, or else the last.
std::string last_words(const std::string& path) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) last = line;
    if (line.find("FATAL") != std::string::npos) break;
  }
  return last.empty() ? "it printed nothing" : last;
}

const passwd* other_user(const std::string& user) {
  if (user.empty() || geteuid() != 0) return nullptr;
  const passwd* entry = getpwnam(user.c_str());
  if (entry == nullptr) throw std::runtime_error("there is no user " + user);
  return entry;
}

pid_t launch_process(const Launch& launch) {
  const passwd* user = other_user(launch.user);
  std::vector<char*> arguments;
  for (const std::string& word : launch.command)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("cannot fork");
  if (pid > 0) return pid;
  const int log = open(launch.log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  if (user != nullptr &&
      (setgroups(0, nullptr) != 0 || setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0)) {
    _exit(126);
  }
  if (!launch.preload.empty()) setenv("LD_PRELOAD", launch.preload.c_str(), 1);
  prctl(PR_SET_PDEATHSIG, launch.end_signal);
  if (getppid() != parent) _exit(126);
  execv(arguments[0], arguments.data());
  _exit(127);
}

}  // namespace

void run_to_end(const Launch& launch) {
  const pid_t pid = launch_process(launch);
  int status = 0;
  waitpid(pid, &status, 0);
  if (status != 0) {
    throw std::runtime_error(launch.command.front() + " failed: " + last_words(launch.log));
  }
}

Service::Service(const Launch& launch, std::uint16_t port)
    : pid_(launch_process(launch)), port_(port), end_signal_(launch.end_signal) {
  constexpr int patience_ms = 20'000;
  constexpr int pause_ms = 20;
  for (int waited = 0; waited < patience_ms; waited += pause_ms) {
    if (is_listening(port)) return;
    if (waitpid(pid_, nullptr, WNOHANG) == pid_) {
      throw std::runtime_error(launch.command.front() + " ended: " + last_words(launch.log));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
  }
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  throw std::runtime_error(launch.command.front() + " does not listen: " + last_words(launch.log));
}

Service::~Service() {
  ::kill(pid_, end_signal_);
  waitpid(pid_, nullptr, 0);
}

bool Service::has_loaded(const std::string& library) const {
  std::ifstream maps("/proc/" + std::to_string(pid_) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(library) != std::string::npos) return true;
  }
  return false;
}

void give_to(const std::string& directory, const std::string& user) {
  const passwd* entry = other_user(user);
  if (entry != nullptr && chown(directory.c_str(), entry->pw_uid, entry->pw_gid) != 0) {
    throw std::runtime_error("cannot hand " + directory + " to " + user);
  }
}

}  // namespace permit::bench
