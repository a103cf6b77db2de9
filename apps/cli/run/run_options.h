// What `permit run` is told: all flags as typed values, checked.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "orchestrator/protocol/ids.h"
#include "worker/tls.h"

namespace permit::cli {

enum class GpuKind { none, all, cuda, rocm };
enum class OnLost { stop, warn };

// A signal for the command, so long before the end of its time limit.
struct WarnSignal {
  int number = 0;
  Duration before{};
};

struct RunOptions {
  std::vector<std::string> command;
  PoolName pool;
  int slots = 1;  // all or none
  SlotName only;  // absent: any
  Duration lease = std::chrono::minutes(2);
  Duration max_hold{};  // zero: no limit
  std::optional<Duration> wait;
  bool nonblock = false;
  int conflict_exit_code = 75;
  int priority = 0;  // zero: the server's default
  bool any = false;  // instead of fair
  std::map<std::string, std::string> labels;
  std::string reason;
  GpuKind gpu = GpuKind::none;
  std::optional<WarnSignal> warn_signal;
  Duration kill_after = std::chrono::seconds(10);
  OnLost on_lost = OnLost::stop;
  std::vector<std::pair<std::string, std::string>> environment;  // name, template
  std::string report;                                            // a file; empty: none
  bool quiet = false;

  std::string address = "127.0.0.1:7376";
  std::string address_origin;  // such as "PERMIT_ADDRESS"; empty: the default
  std::string namespace_name = "default";
  std::string api_key;
  worker::TlsOptions tls;
  std::string identity;  // for the record; "user@host" unless it was set
};

// "USR1@5m". Throws UsageError for what is no signal or no duration.
WarnSignal parse_warn_signal(const std::string& text);
// "SIGUSR1" and "USR1" are 10; empty for what is no signal.
std::optional<int> signal_number(const std::string& name);
// "USR1", or the number.
std::string signal_name(int number);

// What cannot be: a --warn-signal without --max-hold, a name that is no variable's, and so on.
// Throws UsageError.
void check(const RunOptions& options);

}  // namespace permit::cli
