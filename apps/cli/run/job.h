// The command that runs under a permit: a process group of its own, and all that it leaves behind.
// This process is the reaper of its descendants, so none is lost out of sight: when it has no child
// left, they are all gone. Has to be the only thing in its process that has children.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace permit::cli {

// What the command is to inherit, besides the descriptors and the directory.
struct Launch {
  std::vector<std::string> command;
  std::vector<std::string> environment;  // "NAME=value"
  sigset_t signal_mask{};
  int terminal = -1;         // -1: none, or not to be given to the command
  pid_t terminal_group = 0;  // given to the command if this group has it
};

// The command could not be started; what() is a sentence, and exit_code() as in the shell.
class LaunchFailed : public std::runtime_error {
 public:
  LaunchFailed(int exit_code, const std::string& message)
      : std::runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

// Throws LaunchFailed, with 127 or 126, if the command is clearly not there or no program.
void check_command(const std::string& name);

// As a shell has it: the exit code, or 128 + the signal.
int exit_code_of(int wait_status);
// "exited 0", "died by signal 9 (KILL)".
std::string describe_status(int wait_status);

// The children of this process, of all its threads.
std::vector<pid_t> own_children();
// Makes orphans among the descendants children of this process.
void become_reaper();

// They are the command's; who reads its output is to see its end, and not ours.
void let_go_of_input_and_output();

class Job {
 public:
  // Throws LaunchFailed.
  explicit Job(const Launch& launch);

  pid_t group() const { return group_; }
  // To every process of the group.
  void signal(int number) const;
  // Tells the processes that are left of a command that has ended to end, once each; those whose
  // parent ends by that come into sight later.
  void end_rest();
  // Kill -9: the group, and whoever left it. Again as long as there are children.
  void kill_all() const;

  // Takes notice of what has happened to children. Returns the signal by which the command has
  // been stopped (as by Ctrl-Z), if it has.
  std::optional<int> reap();
  // Of the command itself, once it has ended.
  std::optional<int> wait_status() const { return wait_status_; }
  bool is_gone() const { return is_gone_; }  // with all descendants

 private:
  bool has_group(const std::vector<pid_t>& children) const;

  pid_t group_ = 0;
  std::optional<int> wait_status_;
  bool is_gone_ = false;
  std::set<pid_t> told_;
};

}  // namespace permit::cli
