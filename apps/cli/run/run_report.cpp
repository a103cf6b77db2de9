#include "apps/cli/run/run_report.h"

#include <sys/wait.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/time_text.h"

namespace permit::cli {

namespace {

using Json = nlohmann::ordered_json;

const char* name_of(StopReason reason) {
  switch (reason) {
    case StopReason::none:
      break;
    case StopReason::max_hold:
      return "max_hold";
    case StopReason::unconfirmed:
      return "server_unreachable";
    case StopReason::lease_ended:
      return "lease_ended";
    case StopReason::lost:
      return "lost";
    case StopReason::wrapper_gone:
      return "wrapper_killed";
  }
  return "";
}

Json slots_of(const AcquireResponse& grant) {
  Json slots = Json::array();
  for (const GrantedSlot& slot : grant.slots) {
    Json one{{"id", slot.id.value},
             {"slot", slot.slot.value},
             {"runId", slot.run_id.value},
             {"fence", slot.fence.value}};
    if (!slot.device.empty()) one["device"] = slot.device;
    slots.push_back(std::move(one));
  }
  return slots;
}

}  // namespace

std::string report_text(const RunReport& report) {
  Json json{{"pool", report.options.pool.value},
            {"command", report.options.command},
            {"exitCode", report.exit_code},
            {"waited", format_duration(report.waited)},
            {"acquired", report.grant != nullptr}};
  if (!report.message.empty()) json["message"] = report.message;
  if (report.grant != nullptr) {
    json["fence"] = report.grant->fence.value;
    json["slots"] = slots_of(*report.grant);
  }
  if (report.end != nullptr) {
    const HoldEnd& end = *report.end;
    json["held"] = format_duration(end.held);
    json["released"] = end.is_released;
    if (!end.problem.empty()) json["notReleased"] = end.problem;
    if (end.stop_reason != StopReason::none) json["stopped"] = name_of(end.stop_reason);
    if (end.wait_status && WIFSIGNALED(*end.wait_status)) {
      json["commandSignal"] = WTERMSIG(*end.wait_status);
    } else if (end.wait_status) {
      json["commandExitCode"] = WEXITSTATUS(*end.wait_status);
    }
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void write_report(const RunReport& report) {
  const std::string& path = report.options.report;
  const std::string fresh = path + ".new";
  std::ofstream file(fresh);
  file << report_text(report);
  file.close();
  if (!file || std::rename(fresh.c_str(), path.c_str()) != 0) {
    throw Error(ErrorCode::internal, "REPORT_FAILED", "cannot write the report to " + path);
  }
}

}  // namespace permit::cli
