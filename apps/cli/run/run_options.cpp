#include "apps/cli/run/run_options.h"

#include <signal.h>
#include <string.h>

#include <algorithm>
#include <charconv>

#include "apps/cli/command_line.h"
#include "apps/cli/duration_text.h"
#include "apps/cli/run/child_environment.h"

namespace permit::cli {

std::optional<int> signal_number(const std::string& name) {
  int number = 0;
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error == std::errc() && stop == name.data() + name.size()) {
    return number > 0 && number < NSIG ? std::optional<int>(number) : std::nullopt;
  }
  const std::string bare = name.starts_with("SIG") ? name.substr(3) : name;
  for (int candidate = 1; candidate < NSIG; ++candidate) {
    const char* known = sigabbrev_np(candidate);
    if (known != nullptr && bare == known) return candidate;
  }
  return std::nullopt;
}

std::string signal_name(int number) {
  const char* known = sigabbrev_np(number);
  return known != nullptr ? known : std::to_string(number);
}

WarnSignal parse_warn_signal(const std::string& text) {
  const std::size_t at = text.find('@');
  const auto number = signal_number(text.substr(0, at));
  if (at == std::string::npos || !number) {
    throw UsageError("--warn-signal: \"" + text + "\" is no signal and duration, such as USR1@5m");
  }
  return {*number, parse_human_duration("--warn-signal", text.substr(at + 1))};
}

void check(const RunOptions& options) {
  const auto refuse = [](const std::string& message) { throw UsageError(message); };
  if (options.command.empty()) refuse("there is no command to run; write it after --");
  if (options.slots < 1) refuse("--slots must be 1 or more");
  if (!options.only.empty() && options.slots > 1) {
    refuse("--slot names one slot; it does not go with --slots " + std::to_string(options.slots));
  }
  if (options.lease < std::chrono::seconds(1)) refuse("--lease must be 1s or more");
  if (options.max_hold.count() != 0 && options.max_hold < std::chrono::seconds(1)) {
    refuse("--max-hold must be 1s or more");
  }
  if (options.nonblock && options.wait) refuse("give --nonblock or --wait, not both");
  if (options.warn_signal && options.max_hold.count() == 0) {
    refuse("--warn-signal counts back from the end of --max-hold; give that, too");
  }
  if (options.warn_signal && options.warn_signal->before >= options.max_hold) {
    refuse("--warn-signal comes before the hold begins; give less than --max-hold");
  }
  for (const auto& [name, text] : options.environment) check_variable(name, text);
}

}  // namespace permit::cli
