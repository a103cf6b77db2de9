// What the figures of holders from outside are called, for what measures and what draws them.
#pragma once

#include <array>
#include <string>
#include <vector>

namespace permit::bench {

inline const std::string permit_name = "Permit";
inline const std::string no_sync_name = "Permit, syncs are no-ops";
inline const std::string redis_name = "Redis, appendfsync always";
inline const std::string zookeeper_name = "ZooKeeper, ephemeral node";
inline const std::string postgres_name = "PostgreSQL, lock row";
inline const std::string etcd_name = "etcd, lease a client";
inline const std::string etcd_own_name = "etcd, lease a lock";
inline const std::string etcd_json_name = "etcd, JSON gateway";

// In the order in which they are measured and shown.
inline std::vector<std::string> system_names() {
  return {permit_name,   no_sync_name, redis_name,    zookeeper_name,
          postgres_name, etcd_name,    etcd_own_name, etcd_json_name};
}

inline constexpr std::array<int, 4> outside_clients = {1, 16, 64, 256};
inline constexpr int outside_clients_compared = 64;
// Of these the distribution of the latencies is drawn.
inline constexpr std::array<double, 9> outside_quantiles = {0.1,  0.25, 0.5,   0.75, 0.9,
                                                            0.95, 0.99, 0.995, 0.999};

inline std::string outside_figure(const std::string& system, int clients) {
  return "outside, " + std::to_string(clients) + (clients == 1 ? " client: " : " clients: ") +
         system;
}
// `what`: "p50", "p99".
inline std::string outside_acquire(const std::string& system, int clients,
                                   const std::string& what) {
  return outside_figure(system, clients) + ": acquire " + what;
}
inline std::string outside_quantile(const std::string& system, double quantile) {
  std::string digits = std::to_string(quantile * 100);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return outside_acquire(system, outside_clients_compared, "p" + digits);
}
inline std::string outside_ratio(const std::string& system, int clients) {
  return outside_figure("Permit / " + system, clients);
}
// Of 32 clients on 4 slots; `what`: "of the ideal", "most / least", "longest wait", or nothing.
inline std::string contended_figure(int hold_ms, const std::string& what = "") {
  return "outside, 32 clients on 4 slots, hold " + std::to_string(hold_ms) + " ms" +
         (what.empty() ? "" : ": " + what);
}
inline const std::string outside_one_client = "outside, 1 client: of 2 commits + 2 round trips";
inline const std::string busy_before = "kept busy by others, before";
inline const std::string limit_append = "limit: 4 KiB append + fdatasync";
inline const std::string limit_commit = "limit: SQLite FULL, a row a commit";
inline const std::string limit_round_trip = "limit: HTTP echo, 1 connection";

}  // namespace permit::bench
