#include "apps/cli/run/job.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

#include "apps/cli/run/run_options.h"

namespace permit::cli {

namespace {

LaunchFailed launch_failed(const std::string& name, int error) {
  const bool absent = error == ENOENT;
  return LaunchFailed(absent ? 127 : 126,
                      "cannot run " + name + ": " + (absent ? "not found" : std::strerror(error)));
}

// 0: it can be run.
int error_of_program(const std::string& path) {
  struct stat file{};
  if (stat(path.c_str(), &file) != 0) return errno == ENOTDIR ? ENOENT : errno;
  if (S_ISDIR(file.st_mode)) return EISDIR;
  return access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

// In the child, where nothing but system calls may be used.
[[noreturn]] void become(const Launch& launch, char* const* arguments, char* const* environment,
                         pid_t parent, int failure) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(125);  // it was gone before that
  setpgid(0, 0);
  if (launch.terminal >= 0 && tcgetpgrp(launch.terminal) == launch.terminal_group) {
    tcsetpgrp(launch.terminal, getpid());  // SIGTTOU is blocked
  }
  sigprocmask(SIG_SETMASK, &launch.signal_mask, nullptr);
  execvpe(arguments[0], arguments, environment);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(failure, &error, sizeof error);
  _exit(126);
}

}  // namespace

void check_command(const std::string& name) {
  int error = ENOENT;
  if (name.find('/') != std::string::npos) {
    error = error_of_program(name);
  } else {
    const char* path = std::getenv("PATH");
    std::istringstream directories(path != nullptr ? path : "/bin:/usr/bin");
    for (std::string directory; error != 0 && std::getline(directories, directory, ':');) {
      const int found = error_of_program((directory.empty() ? "." : directory) + "/" + name);
      if (found == 0 || found != ENOENT) error = found == EISDIR ? error : found;
    }
  }
  if (error != 0) throw launch_failed(name, error);
}

int exit_code_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

std::string describe_status(int wait_status) {
  if (!WIFSIGNALED(wait_status)) return "exited " + std::to_string(WEXITSTATUS(wait_status));
  const int number = WTERMSIG(wait_status);
  return "died by signal " + std::to_string(number) + " (" + signal_name(number) + ")";
}

namespace {

std::vector<std::string> names_in(const char* directory) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(directory), closedir);
  if (!entries) return names;
  while (const dirent* entry = readdir(entries.get())) names.emplace_back(entry->d_name);
  return names;
}

// For kernels that do not list the children of a process: looks at the parents of all.
std::vector<pid_t> children_by_parent() {
  std::vector<pid_t> children;
  for (const std::string& name : names_in("/proc")) {
    std::ifstream file("/proc/" + name + "/stat");
    std::string text;
    if (name.find_first_not_of("0123456789") != std::string::npos || !std::getline(file, text)) {
      continue;
    }
    std::istringstream rest(text.substr(text.rfind(')') + 1));  // a name may have brackets in it
    std::string state;
    pid_t parent = 0;
    if (rest >> state >> parent && parent == getpid()) children.push_back(std::stoi(name));
  }
  return children;
}

}  // namespace

std::vector<pid_t> own_children() {
  std::vector<pid_t> children;
  for (const std::string& thread : names_in("/proc/self/task")) {
    if (thread[0] == '.') continue;
    std::ifstream list("/proc/self/task/" + thread + "/children");
    if (!list) return children_by_parent();
    for (pid_t child = 0; list >> child;) children.push_back(child);
  }
  return children;
}

void let_go_of_input_and_output() {
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  dup2(nothing, STDOUT_FILENO);
  close(nothing);
}

void become_reaper() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

Job::Job(const Launch& launch) {
  const std::vector<char*> arguments = pointers(launch.command);
  const std::vector<char*> environment = pointers(launch.environment);
  int failure[2];
  if (pipe2(failure, O_CLOEXEC) != 0) throw LaunchFailed(125, std::strerror(errno));
  const pid_t parent = getpid();
  group_ = fork();
  if (group_ == 0) become(launch, arguments.data(), environment.data(), parent, failure[1]);
  const int fork_error = errno;
  close(failure[1]);
  int error = 0;
  const bool failed = group_ > 0 && read(failure[0], &error, sizeof error) == sizeof error;
  close(failure[0]);
  if (group_ < 0) {
    throw LaunchFailed(125, std::string("cannot start a process: ") + std::strerror(fork_error));
  }
  if (failed) {
    waitpid(group_, nullptr, 0);
    throw launch_failed(launch.command[0], error);
  }
}

bool Job::has_group(const std::vector<pid_t>& children) const {
  if (!wait_status_) return true;
  return std::any_of(children.begin(), children.end(),
                     [this](pid_t child) { return getpgid(child) == group_; });
}

// A number of a group that is gone may be somebody else's by now. A child that is not reaped yet
// holds its own, and its group's.
void Job::signal(int number) const {
  if (has_group(wait_status_ ? own_children() : std::vector<pid_t>())) kill(-group_, number);
}

void Job::end_rest() {
  for (const pid_t child : own_children()) {
    if (!told_.insert(child).second) continue;
    kill(child, SIGTERM);
    kill(child, SIGCONT);  // who is stopped does not hear it otherwise
  }
}

void Job::kill_all() const {
  const std::vector<pid_t> children = own_children();
  if (has_group(children)) kill(-group_, SIGKILL);
  for (const pid_t child : children) kill(child, SIGKILL);
}

std::optional<int> Job::reap() {
  std::optional<int> stopped;
  for (;;) {
    int status = 0;
    const pid_t child = waitpid(-1, &status, WNOHANG | WUNTRACED);
    if (child < 0 && errno == EINTR) continue;
    is_gone_ = child < 0 && errno == ECHILD;
    if (child <= 0) return stopped;
    if (WIFSTOPPED(status)) {
      if (child == group_) stopped = WSTOPSIG(status);
      continue;
    }
    told_.erase(child);
    if (child == group_) wait_status_ = status;
  }
}

}  // namespace permit::cli
