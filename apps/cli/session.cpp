#include "apps/cli/session.h"

#include <pwd.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <iostream>
#include <new>

#include "apps/cli/exit_codes.h"
#include "apps/cli/help.h"
#include "orchestrator/protocol/error.h"
#include "worker/api_key.h"

namespace permit::cli {

std::string user_name() {
  if (const passwd* user = getpwuid(geteuid())) return user->pw_name;
  return std::to_string(geteuid());
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

namespace {

std::string identity_of(const Settings& settings) {
  const std::string& set = settings.text("identity");
  return set.empty() ? user_name() + "@" + host_name() : set;
}

// A flag, else the environment, else the file of the profile.
std::string find_api_key(const Arguments& arguments, const Settings& settings) {
  if (const auto key = arguments.text("api-key")) return worker::clean_api_key(*key, "--api-key");
  const Settings::Value& file = settings.get("api_key_file");
  if (file.origin != "--api-key-file") {
    if (const auto key = environment_variable("PERMIT_API_KEY")) {
      return worker::clean_api_key(*key, "PERMIT_API_KEY");
    }
  }
  return file.text.empty() ? "" : worker::read_api_key(file.text);
}

}  // namespace

Session::Session(Arguments arguments, Settings settings)
    : arguments_(std::move(arguments)),
      settings_(std::move(settings)),
      out_(settings_, arguments_.has("quiet")),
      identity_(identity_of(settings_)) {}

Session::~Session() = default;

worker::HttpTransport& Session::transport() {
  if (!transport_) {
    transport_ = std::make_unique<worker::HttpTransport>(settings_.text("address"),
                                                         worker::Patience(), tls());
    transport_->set_api_key(api_key());
  }
  return *transport_;
}

worker::TlsOptions Session::tls() const {
  return {settings_.text("tls_ca"), settings_.text("tls_cert"), settings_.text("tls_key"),
          settings_.text("tls_server_name")};
}

std::string Session::api_key() const { return find_api_key(arguments_, settings_); }

permits::PoolClient Session::pools() {
  return permits::PoolClient(transport(), identity_, namespace_name());
}

worker::Client Session::client() {
  return worker::Client(transport(), identity_, namespace_name());
}

Time Session::now() {
  const auto here = std::chrono::steady_clock::now();
  if (!asked_at_) {
    asked_at_ = pools().status().now;
    asked_ = here;
  }
  return *asked_at_ + std::chrono::duration_cast<Duration>(here - asked_);
}

bool Session::is_interactive() const {
  return !arguments_.has("no-input") && isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
}

std::string Session::ask(const std::string& question) const {
  std::cerr << question << std::flush;
  std::string line;
  std::getline(std::cin, line);
  return line;
}

// --- Running ---

namespace {

int exit_code_of(const Error& error) {
  if (error.reason() == "SERVER_UNREACHABLE") return exit_unreachable;
  if (error.reason() == "TLS_FILE_INVALID") return exit_usage;
  if (error.reason() == "POOL_FULL" || error.reason() == "WAIT_TIMED_OUT") return exit_no_slot;
  switch (error.code()) {
    case ErrorCode::invalid_argument:
      return exit_usage;
    case ErrorCode::not_found:
      return exit_not_found;
    case ErrorCode::permission_denied:
    case ErrorCode::unauthenticated:
      return exit_not_allowed;
    case ErrorCode::already_exists:
    case ErrorCode::aborted:
      return exit_conflict;
    case ErrorCode::unavailable:
      return exit_unreachable;
    default:
      return exit_failed;
  }
}

// Ends the process after --command-timeout, wherever it waits.
void limit_time(Duration limit) {
  std::signal(SIGALRM, [](int) {
    static constexpr char said[] = "permit: not done within --command-timeout\n";
    [[maybe_unused]] const auto written = write(STDERR_FILENO, said, sizeof said - 1);
    _exit(exit_time_out);
  });
  const auto micros = limit.count();
  itimerval timer{};
  timer.it_value.tv_sec = micros / 1'000'000;
  timer.it_value.tv_usec = std::max<std::int64_t>(micros % 1'000'000, micros < 1'000'000 ? 1 : 0);
  setitimer(ITIMER_REAL, &timer, nullptr);
}

int run_session(Session& session) {
  try {
    if (const auto limit = session.arguments().duration("command-timeout")) limit_time(*limit);
    const int code = session.arguments().command->run(session);
    if (std::cout.flush()) return code;
    std::cerr << "permit: the answer cannot be written to standard output\n";
    return code == exit_ok ? static_cast<int>(exit_failed) : code;
  } catch (const Error& error) {
    std::cerr << "permit: " << error.message();
    if (error.reason() == "SERVER_UNREACHABLE") {
      const Settings::Value& address = session.settings().get("address");
      std::cerr << "; the address is "
                << (address.origin == "default" ? "the default" : "from " + address.origin)
                << ". Is it running? Try: permit server start-dev, or permit doctor";
    }
    if (error.code() == ErrorCode::unauthenticated) {
      std::cerr
          << ". The command takes it from --api-key-file, PERMIT_API_KEY_FILE or PERMIT_API_KEY";
    }
    std::cerr << "\n";
    return exit_code_of(error);
  }
}

}  // namespace

int run_command_line(const std::vector<std::string>& words) {
  try {
    Arguments arguments = parse_command_line(words);
    if (arguments.command == nullptr || arguments.wants_help) {
      std::cout << help_page(arguments.help_for, HelpLength::brief);
      return exit_ok;
    }
    Settings settings(arguments, environment_variable);
    Session session(std::move(arguments), std::move(settings));
    return run_session(session);
  } catch (const UsageError& error) {
    std::cerr << "permit: " << error.what() << "\n";
    return exit_usage;
  } catch (const std::bad_alloc&) {
    std::cerr << "permit: out of memory\n";
    return exit_failed;
  } catch (const std::exception& error) {
    std::cerr << "permit: " << error.what() << "\n";
    return exit_failed;
  }
}

}  // namespace permit::cli
