#include "tests/bench/peers/systems.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "tests/bench/peers/etcd_session.h"
#include "tests/bench/peers/http_sessions.h"
#include "tests/bench/peers/postgres_session.h"
#include "tests/bench/peers/redis_session.h"
#include "tests/bench/peers/stream.h"
#include "tests/bench/peers/zookeeper_session.h"

namespace permit::bench {

namespace {

namespace fs = std::filesystem;

const std::string redis_program = "/usr/bin/redis-server";
const std::string etcd_program = "/usr/bin/etcd";
const std::string java_program = "/usr/bin/java";
const std::string zookeeper_jar = "/usr/share/java/zookeeper.jar";
const std::string postgres_user = "postgres";  // it refuses to run as root

void need(const std::string& path) {
  if (!fs::exists(path)) throw std::runtime_error("there is no " + path);
}

// Debian has a directory for each version; the newest counts.
std::string postgres_directory() {
  const fs::path versions = "/usr/lib/postgresql";
  std::string newest;
  if (fs::exists(versions)) {
    for (const auto& entry : fs::directory_iterator(versions)) {
      if (fs::exists(entry.path() / "bin/initdb")) newest = std::max(newest, entry.path().string());
    }
  }
  if (newest.empty()) throw std::runtime_error("there is no PostgreSQL server");
  return newest + "/bin";
}

std::string loopback_url(std::uint16_t port) { return "http://127.0.0.1:" + std::to_string(port); }

std::string no_sync_library() {
  return fs::read_symlink("/proc/self/exe").parent_path() / "libpermit_no_sync.so";
}

std::unique_ptr<LockSession> permit_session(std::uint16_t port, const std::string& key) {
  make_pool(port, key, 1);
  return std::make_unique<PermitSession>(port, PermitSession::Ask{key, "0s"});
}

}  // namespace

std::vector<std::string> permit_command(const Setting& setting, std::uint16_t port,
                                        const std::string& database) {
  return {fs::absolute(setting.binary), "server",        "start", "--port",
          std::to_string(port),         "--db-filename", database};
}

Systems::Systems(const Setting& setting, const std::string& directory)
    : directory_(fs::absolute(directory)) {
  fs::remove_all(directory_);
  fs::create_directories(directory_);
  add(permit_name, [&] { return start_permit(setting, ""); }, permit_session);
  add(no_sync_name, [&] { return start_permit(setting, no_sync_library()); }, permit_session);
  add(
      redis_name, [&] { return start_redis(); },
      [](std::uint16_t port, const std::string& key) {
        return std::make_unique<RedisSession>(port, key);
      });
  add(
      zookeeper_name, [&] { return start_zookeeper(); },
      [](std::uint16_t port, const std::string& key) {
        return std::make_unique<ZooKeeperSession>(port, key);
      });
  add(postgres_name, [&] { return start_postgres(); }, postgres_session);
  add_etcd();
}

Systems::~Systems() {
  services_.clear();
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
}

// One process, three ways to use it.
void Systems::add_etcd() {
  std::uint16_t port = 0;
  const auto once = [&] {
    if (port == 0) port = start_etcd();
    return port;
  };
  const auto over_grpc = [&] {
    if (!has_etcd_client()) throw std::runtime_error("permit_bench was built without libnghttp2");
    return once();
  };
  add(etcd_name, over_grpc, [](std::uint16_t to, const std::string& key) {
    return etcd_session(to, key, EtcdLease::client);
  });
  add(etcd_own_name, over_grpc, [](std::uint16_t to, const std::string& key) {
    return etcd_session(to, key, EtcdLease::lock);
  });
  add(etcd_json_name, once, [](std::uint16_t to, const std::string& key) {
    return std::make_unique<EtcdGatewaySession>(to, key);
  });
}

void Systems::add(const std::string& name, const std::function<std::uint16_t()>& start,
                  Connect connect) {
  System system{name, "", nullptr};
  try {
    const std::uint16_t port = start();
    system.connect = [port, connect = std::move(connect)](const std::string& key) {
      return connect(port, key);
    };
  } catch (const std::exception& error) {
    system.why_not = first_line_of(error);
  }
  systems_.push_back(std::move(system));
}

std::string Systems::subdirectory(const std::string& name) const {
  const std::string path = directory_ + "/" + name;
  fs::create_directories(path);
  return path;
}

std::uint16_t Systems::start(const std::function<Launch(std::uint16_t port)>& launch_on) {
  const std::uint16_t port = free_port();
  Launch launch = launch_on(port);
  launch.log = directory_ + "/" + fs::path(launch.command.front()).filename().string() + "-" +
               std::to_string(port) + ".log";
  services_.push_back(std::make_unique<Service>(launch, port));
  return port;
}

std::uint16_t Systems::start_permit(const Setting& setting, const std::string& preload) {
  const std::string data = subdirectory(preload.empty() ? "permit" : "permit-no-sync");
  const std::uint16_t port = start([&](std::uint16_t on) {
    Launch launch;
    launch.command = permit_command(setting, on, data + "/bench.db");
    launch.preload = preload;
    return launch;
  });
  if (!preload.empty() && !services_.back()->has_loaded(preload)) {
    throw std::runtime_error(preload + " was not loaded");
  }
  return port;
}

std::uint16_t Systems::start_redis() {
  need(redis_program);
  const std::string data = subdirectory("redis");
  return start([&](std::uint16_t port) {
    Launch launch;
    launch.command = {redis_program,
                      "--port",
                      std::to_string(port),
                      "--bind",
                      "127.0.0.1",
                      "--dir",
                      data,
                      "--appendonly",
                      "yes",
                      "--appendfsync",
                      "always",
                      "--save",
                      "",
                      "--daemonize",
                      "no"};
    return launch;
  });
}

// It syncs its log before it answers unless told otherwise (forceSync).
std::uint16_t Systems::start_zookeeper() {
  need(java_program);
  need(zookeeper_jar);
  const std::string data = subdirectory("zookeeper");
  return start([&](std::uint16_t port) {
    std::ofstream(data + "/zoo.cfg") << "tickTime=2000\nforceSync=yes\nmaxClientCnxns=0\n"
                                     << "admin.enableServer=false\nclientPortAddress=127.0.0.1\n"
                                     << "clientPort=" << port << "\ndataDir=" << data << "\n";
    Launch launch;
    launch.command = {java_program,
                      "-Xmx1g",
                      "-cp",
                      zookeeper_jar,
                      "org.apache.zookeeper.server.ZooKeeperServerMain",
                      data + "/zoo.cfg"};
    return launch;
  });
}

std::uint16_t Systems::start_postgres() {
  if (!has_postgres_client()) throw std::runtime_error("permit_bench was built without libpq");
  const std::string programs = postgres_directory();
  const std::string data = subdirectory("postgres");
  give_to(data, postgres_user);
  Launch prepare;
  prepare.command = {programs + "/initdb", "--no-sync",  "--auth=trust",    "--username=bench",
                     "--encoding=UTF8",    "--locale=C", "--pgdata=" + data};
  prepare.user = postgres_user;
  prepare.log = directory_ + "/initdb.log";
  run_to_end(prepare);
  const std::uint16_t port = start([&](std::uint16_t on) {
    Launch launch;
    launch.command = {programs + "/postgres", "-D", data, "-p", std::to_string(on)};
    for (const char* setting :
         {"listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=300",
          "shared_buffers=256MB", "fsync=on", "synchronous_commit=on"}) {
      launch.command.insert(launch.command.end(), {"-c", setting});
    }
    launch.user = postgres_user;
    launch.end_signal = SIGQUIT;  // at once, with its children and its shared memory
    return launch;
  });
  make_postgres_table(port);
  return port;
}

std::uint16_t Systems::start_etcd() {
  need(etcd_program);
  const std::string data = subdirectory("etcd");
  return start([&](std::uint16_t port) {
    const std::string clients = loopback_url(port);
    const std::string peers = loopback_url(free_port());
    Launch launch;
    launch.command = {etcd_program,
                      "--name",
                      "bench",
                      "--data-dir",
                      data,
                      "--listen-client-urls",
                      clients,
                      "--advertise-client-urls",
                      clients,
                      "--listen-peer-urls",
                      peers,
                      "--initial-advertise-peer-urls",
                      peers,
                      "--initial-cluster",
                      "bench=" + peers};
    return launch;
  });
}

std::string first_line_of(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

void prove_exclusion(const System& system) {
  const auto expect = [&](LockSession& session, Answer expected) {
    if (wait_answer(session) != expected) {
      throw std::runtime_error(system.name + " does not exclude a second client");
    }
  };
  const auto first = system.connect("proof");
  const auto second = system.connect("proof");
  first->acquire();
  expect(*first, Answer::granted);
  second->acquire();
  expect(*second, Answer::refused);
  first->release();
  expect(*first, Answer::released);
  second->acquire();
  expect(*second, Answer::granted);
  second->release();
  expect(*second, Answer::released);
  first->close();
  second->close();
}

namespace {

// The first line that a command prints, or nothing.
std::string first_line(const std::string& command) {
  FILE* output = popen((command + " 2>/dev/null").c_str(), "r");
  std::array<char, 200> line{};
  const bool read = output != nullptr && fgets(line.data(), line.size(), output) != nullptr;
  if (output != nullptr) pclose(output);
  const std::string text = read ? line.data() : "";
  return text.substr(0, text.find('\n'));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> system_versions() {
  std::vector<std::pair<std::string, std::string>> versions;
  for (const char* package : {"redis-server", "zookeeper", "etcd-server"}) {
    const std::string version =
        first_line(std::string("dpkg-query -W -f '${Version}\\n' ") + package);
    versions.emplace_back(package, version.empty() ? "not installed" : version);
  }
  std::string postgres;
  try {
    postgres = first_line(postgres_directory() + "/postgres --version");
  } catch (const std::exception&) {
    postgres = "not installed";
  }
  versions.emplace_back("postgresql", postgres);
  return versions;
}

}  // namespace permit::bench
