// The systems that are compared: each a real process, on a free loopback port, with its data in one
// directory, and durable.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/outside_names.h"
#include "tests/bench/peers/lock_session.h"
#include "tests/bench/peers/service.h"
#include "tests/bench/scenarios.h"

namespace permit::bench {

struct System {
  std::string name;
  std::string why_not;  // it is not measured; empty: it is
  std::function<std::unique_ptr<LockSession>(const std::string& key)> connect;
};

class Systems {
 public:
  // Starts all that can be started, in `directory`, which is made.
  Systems(const Setting& setting, const std::string& directory);
  ~Systems();  // ends them, and deletes the directory

  const std::vector<System>& all() const { return systems_; }

 private:
  using Connect = std::function<std::unique_ptr<LockSession>(std::uint16_t, const std::string&)>;

  // `start` says at which port it listens.
  void add(const std::string& name, const std::function<std::uint16_t()>& start, Connect connect);
  void add_etcd();
  // `launch_on` says what to run so that it listens at a port.
  std::uint16_t start(const std::function<Launch(std::uint16_t port)>& launch_on);
  std::uint16_t start_permit(const Setting& setting, const std::string& preload);
  std::uint16_t start_redis();
  std::uint16_t start_zookeeper();
  std::uint16_t start_postgres();
  std::uint16_t start_etcd();
  std::string subdirectory(const std::string& name) const;

  std::string directory_;
  std::vector<std::unique_ptr<Service>> services_;
  std::vector<System> systems_;
};

// As an operator starts it, but for port and database.
std::vector<std::string> permit_command(const Setting& setting, std::uint16_t port,
                                        const std::string& database);

// One after the other on one key: granted, refused to a second client, released, granted to it.
void prove_exclusion(const System& system);

// Of what it says: libpq says more.
std::string first_line_of(const std::exception& error);

// What is installed, for the report: name and version.
std::vector<std::pair<std::string, std::string>> system_versions();

}  // namespace permit::bench
