#include "apps/cli/run/front.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iostream>
#include <system_error>

#include "apps/cli/exit_codes.h"
#include "apps/cli/run/job.h"
#include "apps/cli/run/keeper.h"
#include "apps/cli/run/link.h"
#include "apps/cli/run/queue_up.h"
#include "apps/cli/run/run_text.h"
#include "apps/cli/session.h"

namespace permit::cli {

namespace {

constexpr int passed_on[] = {SIGINT,  SIGTERM,  SIGHUP,  SIGQUIT, SIGUSR1,
                             SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT};
// These are blocked so that whoever is not in the terminal's foreground may use it all the same.
constexpr int harmless[] = {SIGTTOU, SIGTTIN, SIGPIPE, SIGCHLD};

// Signals that somebody wants to be ignored (nohup, a shell's background) stay so.
sigset_t signals_to_pass_on() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : passed_on) {
    struct sigaction known{};
    sigaction(number, nullptr, &known);
    if (known.sa_handler != SIG_IGN) sigaddset(&signals, number);
  }
  return signals;
}

AcquireRequest request_of(const RunOptions& options) {
  constexpr std::size_t label_bytes_max = 255;
  AcquireRequest request = acquire_request(options);
  const std::string pid = std::to_string(getpid());
  const std::string user = user_name();
  const std::string host = host_name();
  request.holder = holder_name(options.command, options.identity + ":" + pid);
  request.labels.insert({{"user", user}, {"host", host}, {"pid", pid}});
  if (char* directory = get_current_dir_name(); directory != nullptr) {
    request.labels.insert({"cwd", std::string(directory).substr(0, label_bytes_max)});
    free(directory);
  }
  return request;
}

class Front {
 public:
  explicit Front(const RunOptions& options)
      : options_(options),
        request_(request_of(options)),
        children_before_(own_children()),
        links_(Link::make()),
        terminal_(open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)),
        signals_(signals_to_pass_on()) {
    // The keeper needs to know of the end of children; and the command begins as we did.
    signal(SIGCHLD, SIG_DFL);
    sigset_t blocked = signals_;
    for (const int number : harmless) sigaddset(&blocked, number);
    sigprocmask(SIG_BLOCK, &blocked, &inherited_.signal_mask);
    descriptor_ = signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK);
    for (char** variable = environ; *variable != nullptr; ++variable) {
      inherited_.environment.emplace_back(*variable);
    }
    if (terminal_ >= 0) tcgetattr(terminal_, &settings_);
    // A pipeline's other members may need the terminal, too: then it is lent when it is asked for.
    const bool is_interactive = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
    if (terminal_ >= 0 && is_interactive) inherited_.terminal = terminal_;
    inherited_.terminal_group = getpgrp();
    lends_terminal_ = is_interactive;
  }

  int run() {
    become_reaper();
    keeper_ = fork();
    if (keeper_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (keeper_ == 0) become_keeper();
    links_.second.close();
    let_go_of_input_and_output();
    pollfd descriptors[] = {{links_.first.descriptor(), POLLIN, 0}, {descriptor_, POLLIN, 0}};
    for (;;) {
      constexpr int look_at_keeper_ms = 500;
      descriptors[0].revents = descriptors[1].revents = 0;
      poll(descriptors, 2, look_at_keeper_ms);
      wake_keeper();
      if (descriptors[1].revents != 0) pass_on_signals();
      if (descriptors[0].revents == 0) continue;
      const std::optional<Notice> notice = links_.first.receive();
      if (!notice) return keeper_is_gone();
      if (notice->kind == Notice::Kind::started) group_ = notice->value;
      if (notice->kind == Notice::Kind::stopped) stop(notice->value);
      if (notice->kind == Notice::Kind::finished) return finish(*notice);
    }
  }

 private:
  [[noreturn]] void become_keeper() {
    setpgid(0, 0);
    become_reaper();
    // Not "permit", so that `killall -9 permit` leaves somebody who stops the command.
    prctl(PR_SET_NAME, "run-keeper");
    links_.first.close();
    Notice last{Notice::Kind::finished, 125};
    try {
      Keeper keeper(options_, request_, links_.second, inherited_);
      last = keeper.run();
      links_.second.send(last);
      _exit(0);  // its threads wait for answers that nobody needs
    } catch (const std::exception& error) {
      std::cerr << "permit: " << error.what() << "\n" << std::flush;
      links_.second.send(last);
      _exit(125);
    }
  }

  // Somebody has stopped the keeper alone, and it would miss the end of the lease.
  void wake_keeper() const {
    siginfo_t stopped{};
    const int options = WSTOPPED | WNOHANG;
    if (waitid(P_PID, static_cast<id_t>(keeper_), &stopped, options) == 0 && stopped.si_pid != 0) {
      kill(keeper_, SIGCONT);
    }
  }

  void pass_on_signals() {
    signalfd_siginfo information{};
    while (read(descriptor_, &information, sizeof information) > 0) {
      const int number = static_cast<int>(information.ssi_signo);
      if (number == SIGCONT) lend_terminal();
      links_.first.send({Notice::Kind::signal, number});
    }
  }

  // --- The terminal ---

  bool is_foreground() const { return terminal_ >= 0 && tcgetpgrp(terminal_) == getpgrp(); }

  void lend_terminal() {
    if (lends_terminal_ && group_ > 0 && is_foreground()) tcsetpgrp(terminal_, group_);
  }
  void take_terminal_back() {
    if (terminal_ >= 0 && group_ > 0 && tcgetpgrp(terminal_) == group_) {
      tcsetpgrp(terminal_, getpgrp());
    }
  }

  // The command has been stopped by `number`, so our own group stops, too, for the shell to see;
  // and both go on together. Without a terminal there is no job control.
  void stop(int number) {
    if (terminal_ < 0) return;
    if ((number == SIGTTIN || number == SIGTTOU) && is_foreground()) {
      lends_terminal_ = true;
    } else {
      take_terminal_back();
      const int own = number == SIGSTOP ? SIGTSTP : number;
      sigset_t one;
      sigemptyset(&one);
      sigaddset(&one, own);
      kill(0, own);
      sigprocmask(SIG_UNBLOCK, &one, nullptr);  // here it stops, until somebody says SIGCONT
      sigprocmask(SIG_BLOCK, &one, nullptr);
    }
    lend_terminal();
    links_.first.send({Notice::Kind::signal, SIGCONT});
  }

  // --- The end ---

  int finish(const Notice& notice) {
    take_terminal_back();
    if (notice.restores_terminal && is_foreground()) tcsetattr(terminal_, TCSADRAIN, &settings_);
    waitpid(keeper_, nullptr, 0);
    return notice.value;
  }

  // Its descendants are ours now. The command itself died with it.
  int keeper_is_gone() {
    waitpid(keeper_, nullptr, 0);
    std::cerr << "permit: the process that kept the permit was killed; stopping the command\n";
    for (;;) {
      int left = 0;
      for (const pid_t child : own_children()) {
        const auto& before = children_before_;
        if (std::find(before.begin(), before.end(), child) != before.end()) continue;
        ++left;
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
      }
      if (left == 0) break;
    }
    take_terminal_back();
    worker::HttpTransport transport(
        options_.address, {std::chrono::seconds(2), std::chrono::seconds(2)}, options_.tls);
    transport.set_api_key(options_.api_key);
    try {
      permits::HolderClient(transport, options_.namespace_name).abandon(request_);
    } catch (const Error& error) {
      std::cerr << "permit: the permit was not released: " << error.message() << "\n";
    }
    return 125;
  }

  const RunOptions& options_;
  const AcquireRequest request_;
  const std::vector<pid_t> children_before_;
  std::pair<Link, Link> links_;  // ours, the keeper's
  const int terminal_;
  const sigset_t signals_;
  int descriptor_ = -1;  // of signals_
  Keeper::Inherited inherited_;
  termios settings_{};
  bool lends_terminal_ = false;
  pid_t keeper_ = -1;
  pid_t group_ = 0;
};

}  // namespace

int run_under_permit(const RunOptions& options) {
  const auto fail = [](int exit_code, const std::string& message) {
    std::cerr << "permit: " << message << "\n";
    return exit_code;
  };
  try {
    check_command(options.command.front());
    Front front(options);
    return front.run();
  } catch (const LaunchFailed& failure) {
    return fail(failure.exit_code(), failure.what());
  } catch (const Error& error) {
    const Refusal refusal = refusal_of(error, options);
    return fail(refusal.exit_code, refusal.message);
  } catch (const std::exception& error) {
    return fail(exit_broken, error.what());
  }
}

}  // namespace permit::cli
