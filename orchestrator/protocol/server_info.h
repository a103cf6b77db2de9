// What the server says of itself: whether it is well, what it is, what settings it runs with.
#pragma once

#include "orchestrator/protocol/pools.h"

namespace permit {

struct HealthCheck {
  std::string name;    // loop, store, migrations, timers, permits
  std::string status;  // ok, warning or failing
  std::string message;
};
BOOST_DESCRIBE_STRUCT(HealthCheck, (), (name, status, message))

// GET /livez and /readyz.
struct Health {
  std::string status;  // ok or unavailable
  std::vector<std::string> warnings;
  std::vector<HealthCheck> checks;  // if they were asked for
};
BOOST_DESCRIBE_STRUCT(Health, (), (status, warnings, checks))

struct SettingInfo {
  std::string name;
  std::string value;   // of a secret: "(set)" or nothing
  std::string origin;  // default, flag, environment, or "file NAME"
  bool secret = false;
};
BOOST_DESCRIBE_STRUCT(SettingInfo, (), (name, value, origin, secret))

struct LimitInfo {
  std::string name;
  std::string value;
};
BOOST_DESCRIBE_STRUCT(LimitInfo, (), (name, value))

// GET /api/v1/server.
struct ServerDescription {
  std::string version;
  std::string compiler;
  std::string instance;  // of this process
  Time start_time{};
  Time now{};
  std::string store;  // the database's file, or "memory"
  Count store_bytes;
  bool ready = false;
  std::vector<std::string> warnings;
  std::int32_t held = 0;
  std::int32_t waiting = 0;
  std::int32_t fence_epoch = 0;  // fences are above it << 40; --fence-epoch
  std::int32_t pid = 0;
  std::string host;
  std::string key;   // the name of the API key that this was asked with
  std::string role;  // what who asked may do: read, worker or admin
  std::vector<SettingInfo> settings;
  std::vector<LimitInfo> limits;
};
BOOST_DESCRIBE_STRUCT(ServerDescription, (),
                      (version, compiler, instance, start_time, now, store, store_bytes, ready,
                       warnings, held, waiting, fence_epoch, pid, host, key, role, settings,
                       limits))

// Temporal's GetSystemInfoResponse, and what time it is here.
struct SystemInfo {
  std::string server_version;
  SystemCapabilities capabilities;
  Time server_time{};
};
BOOST_DESCRIBE_STRUCT(SystemInfo, (), (server_version, capabilities, server_time))

}  // namespace permit
