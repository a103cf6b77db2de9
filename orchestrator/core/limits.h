// Every limit of the engine has a number; a server may be configured with others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "orchestrator/protocol/ids.h"

namespace permit::core {

struct Limits {
  std::size_t workflow_id_bytes_max = 255;
  std::size_t name_bytes_max = 255;  // types, queues, signals, timers, activities, request ids
  std::size_t pool_name_bytes_max = 64;
  std::size_t payload_bytes_max = 2 * 1024 * 1024;
  std::size_t memo_bytes_max = 2 * 1024 * 1024;
  std::size_t reason_bytes_max = 1000;
  std::int64_t history_events_max = 51'200;
  std::int64_t history_bytes_max = 50 * 1024 * 1024;
  std::int64_t history_events_suggest = 4'096;  // suggest_continue_as_new
  std::int64_t history_bytes_suggest = 4 * 1024 * 1024;
  std::size_t pending_max = 2'000;  // activities, children, timers: of each
  std::int64_t signals_max = 10'000;
  std::size_t buffered_events_max = 100;
  std::size_t buffered_bytes_max = 2 * 1024 * 1024;
  std::size_t slots_max = 10'000;  // of one pool
  std::size_t labels_max = 32;
  Duration workflow_task_timeout_default = std::chrono::seconds(10);
  Duration workflow_task_timeout_max = std::chrono::seconds(120);
  Duration sticky_timeout_default = std::chrono::seconds(10);  // schedule to start
  Duration lease_default = std::chrono::minutes(10);
  Duration lease_max = std::chrono::hours(24 * 365);
  Duration workflow_task_heartbeat_max = std::chrono::minutes(30);
  std::string permit_queue = "permits";  // of permits whose callers name none
};

}  // namespace permit::core
