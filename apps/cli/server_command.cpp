#include "apps/cli/server_command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <iostream>
#include <new>
#include <optional>
#include <thread>

#include "apps/cli/exit_codes.h"
#include "apps/cli/exposure.h"
#include "apps/cli/in_process.h"
#include "apps/cli/port_owner.h"
#include "apps/cli/server_files.h"
#include "apps/cli/server_settings.h"
#include "apps/cli/session.h"
#include "apps/cli/systemd.h"
#include "orchestrator/http/request_log.h"
#include "orchestrator/http/routes.h"
#include "orchestrator/http/server.h"
#include "orchestrator/protocol/version.h"
#include "orchestrator/service/clock.h"
#include "orchestrator/service/reads.h"
#include "orchestrator/service/service.h"
#include "orchestrator/service/virtual_time.h"
#include "orchestrator/store/lock_file.h"
#include "orchestrator/store/store.h"
#include "permits/slot_workflow.h"
#include "worker/worker.h"

namespace permit::cli {

namespace asio = boost::asio;
using SteadyClock = std::chrono::steady_clock;

namespace {

// A core has all that memory has: payloads, tokens, the secret behind them. Whoever needs one
// raises the limit of the process with prlimit.
void dump_no_core() {
  rlimit limit{};
  if (getrlimit(RLIMIT_CORE, &limit) != 0) return;
  limit.rlim_cur = 0;
  setrlimit(RLIMIT_CORE, &limit);
}

constexpr const char* unserved_text =
    "no worker serves the permits: a lease that runs out is ended later, by its backstop; run "
    "permit worker start";

// How long a stop waits at most: for whoever is being answered, and for the worker inside.
constexpr std::chrono::seconds stop_patience(5);
constexpr std::chrono::seconds worker_patience(65);

std::string what_started(const ServerOptions& options) {
  return "permit " + std::string(version) + ", pid " + std::to_string(getpid()) + ", store " +
         (options.database.empty() ? "in memory" : options.database);
}

// Throws StartRefused.
http::AuthOptions checked_auth(const ServerOptions& options, int admin_keys) {
  const Exposure exposure{options.address,   options.database, options.auth,
                          options.has_tls(), options.insecure, admin_keys};
  if (const auto why = refusal_of(exposure)) throw StartRefused(*why);
  return {needs_key(exposure), exposure.has_tls};
}

// Everything a running server is made of, in the order of construction.
class Server {
 public:
  Server(const ServerOptions& options, StandardLog& log)
      : log_(log),
        tls_files_{options.tls_cert, options.tls_key, options.tls_client_ca},
        tls_(options.has_tls() ? load_tls() : nullptr),
        lock_(lock(options)),
        store_(database_options(options),
               opening(options, [this](auto done) { asio::post(io_, std::move(done)); })),
        clock_(clock(options, store_)),
        service_(store_, *clock_, service_options(options, log.log)),
        auth_(checked_auth(options, service_.api_keys().admins(clock_->now()))),
        virtual_time_(options.virtual_time
                          ? std::make_unique<service::VirtualTime>(
                                service_, static_cast<service::ManualClock&>(*clock_))
                          : nullptr),
        reads_(
            store_, reader_options(options, store_),
            [this](std::function<void()> answer) { asio::post(io_, std::move(answer)); }, log.log),
        requests_(log.log, options.log.slow),
        routes_(service_, reads_, route_options(options)),
        http_(io_, http_options(options),
              [this](std::shared_ptr<http::Exchange> exchange) {
                routes_.handle(requests_.watch(std::move(exchange)));
              }),
        signals_(io_, SIGTERM, SIGINT),
        debug_signal_(io_, SIGUSR1),
        reload_signal_(io_),
        timer_(io_),
        transport_(io_, routes_) {
    say(LogLine::Level::info, "server_started", what_started(options));
    if (tls_) say(LogLine::Level::info, "tls_loaded", tls_->summary());
    if (tls_ || !options.is_dev) listen_for_reload();
    set_pools(options);
    if (!options.permit_worker || options.virtual_time) return;
    permits::register_permit_slot(permit_workflow_);
    worker::WorkerOptions worker(options.permit_queue);
    worker.identity = "permit-server@" + std::to_string(getpid());
    worker.print = [this](const std::string& said) {
      asio::post(io_, [this, said] { say(LogLine::Level::warn, "worker_says", said); });
    };
    permit_worker_.emplace(transport_, permit_workflow_, std::move(worker));
  }

  std::uint16_t port() const { return http_.port(); }

  void run() {
    signals_.async_wait([this](const boost::system::error_code& error, int) {
      if (!error) stopping_ = true;
    });
    listen_for_debug(log_.log.level());
    if (permit_worker_) permit_worker_->start();
    manager_.ready();
    say(LogLine::Level::info, "server_ready", "listening on port " + std::to_string(port()));
    try {
      while (!stopping_) turn();
    } catch (...) {
      transport_.close();  // or the worker would wait for answers as it goes
      throw;
    }
    manager_.stopping(stop_patience + worker_patience);
    say(LogLine::Level::info, "server_stopping", "what was asked is answered first");
    stop_permit_worker();
    stop();
    say(LogLine::Level::info, "server_stopped", "");
  }

  // Something of the process itself.
  void say(LogLine::Level level, std::string_view event, std::string_view msg) {
    LogLine line;
    line.level = level;
    line.event = event;
    line.msg = msg;
    log_.log.write(line);
    log_.log.flush();
  }

 private:
  static std::optional<store::LockFile> lock(const ServerOptions& options) {
    if (options.database.empty()) return std::nullopt;
    return std::optional<store::LockFile>(std::in_place, options.database,
                                          std::chrono::system_clock::now());
  }
  static std::unique_ptr<service::Clock> clock(const ServerOptions& options,
                                               const store::Store& store) {
    const Time stored = store.counters().time_max;
    service::SystemClock wall(stored);
    if (options.virtual_time) return std::make_unique<service::ManualClock>(wall.now());
    return std::make_unique<service::SystemClock>(stored);
  }
  static service::Options service_options(const ServerOptions& options, Log& log) {
    service::Options service;
    service.log = &log;
    service.retention = options.retention;
    service.token_secret = token_secret(options.database);
    service.limits.permit_queue = options.permit_queue;
#ifdef PERMIT_CHECK_EVERY_BATCH
    service.check_every_batch = true;
#endif
    return service;
  }
  std::shared_ptr<const http::TlsContext> load_tls() const {
    return std::make_shared<http::TlsContext>(tls_files_, std::chrono::system_clock::now());
  }
  http::Server::Options http_options(const ServerOptions& options) {
    using Ended = service::Matching::EndedBy;
    http::Server::Options http;
    http.on_closed = [this](std::uint64_t connection, bool by_peer) {
      service_.connection_closed(connection, by_peer ? Ended::peer : Ended::server);
    };
    http.address = options.address;
    http.port = options.port;
    http.limits.allowed_hosts = options.allowed_hosts;
    // It may be called by the name of its host, and by any of its addresses, from elsewhere.
    http.beyond_loopback = !is_loopback(options.address);
    http.limits.addresses_are_hosts = http.beyond_loopback;
    if (http.beyond_loopback) http.limits.allowed_hosts.push_back(host_name());
    http.tls = tls_;
    http.on_tls_failed = [this](const std::string& peer, const std::string& why) {
      tls_failed(peer, why);
    };
    return http;
  }
  http::RouteOptions route_options(const ServerOptions& options) {
    http::RouteOptions routes;
    if (!options.database.empty()) routes.store = options.database;
    routes.page_directory = options.page_directory;
    routes.metrics_per_slot = options.metrics_per_slot;
    routes.settings = settings_in_force(options);
    routes.limits.allowed_hosts = options.allowed_hosts;
    routes.auth = auth_;
    routes.unready = [this] { return stopping_ ? "the server is stopping" : std::string(); };
    routes.warning = [this] { return unserved_ ? std::string(unserved_text) : std::string(); };
    if (virtual_time_) {
      routes.advance = [this](const AdvanceRequest& request, service::Done<AdvanceResponse> done) {
        virtual_time_->advance(request, std::move(done));
      };
    }
    return routes;
  }

  // What the configuration says of pools; before anybody asks. Throws Error.
  void set_pools(const ServerOptions& options) {
    for (const SetPoolRequest& pool : options.pools) set_pool(pool);
    if (!options.demo_pool) return;
    SetPoolRequest demo;
    demo.namespace_ = "default";
    demo.pool = PoolName("demo");
    demo.capacity = 4;
    demo.reason = "for trying things out";
    const auto has_demo = now<ListPoolsResponse>(
        [this](auto done) { service_.list_pools({"default"}, std::move(done)); });
    for (const PoolInfo& pool : has_demo.pools) {
      if (pool.pool == demo.pool) return;
    }
    set_pool(demo);
  }
  void set_pool(const SetPoolRequest& request) {
    now<PoolInfo>([&](auto done) { service_.set_pool(request, std::move(done)); });
  }

  // Runs batches until the request has its answer.
  template <class Response, class Ask>
  Response now(Ask ask) {
    std::optional<service::Result<Response>> answer;
    ask(service::Done<Response>(
        [&answer](service::Result<Response> result) { answer = std::move(result); }));
    while (!answer) service_.run_batch();
    if (const auto* refused = std::get_if<Error>(&*answer)) throw *refused;
    return std::get<Response>(std::move(*answer));
  }

  // One round: wait for something to do, take all that is ready, decide and commit it together.
  void turn() {
    arm_timer();
    io_.run_one();
    timer_.cancel();
    take_ready();
    tell_manager();
    while (service_.run_batch()) {
      take_ready();
      if (service_.has_work()) attend();  // it may be long until there is none
    }
    if (virtual_time_) virtual_time_->step();
    attend();
    look_for_permit_worker();
    log_.flush();
  }

  // Not without end, whatever comes: the batch has to be decided, and time goes on.
  void take_ready() {
    constexpr int handlers_a_batch_max = 1'000;
    for (int i = 0; i < handlers_a_batch_max && io_.poll_one() > 0; ++i) {
    }
  }

  // To those who wait and watch, between batches.
  void attend() {
    const auto now = SteadyClock::now();
    manager_.beat(now);
    service_.expire_polls(now);
    store_.settle_some(now);
    routes_.streams().advance(now);
    routes_.observe(service_.time());
    routes_.end_unauthorized();
  }

  // That the loop goes round, and how many slots are taken. Nobody else knows both.
  void tell_manager() {
    const auto now = SteadyClock::now();
    manager_.beat(now);
    if (stopping_ || !manager_.wants_status(now)) return;
    service_.list_pools({"default"}, [this](service::Result<ListPoolsResponse> answer) {
      const auto* pools = std::get_if<ListPoolsResponse>(&answer);
      if (pools && !stopping_) manager_.status(occupancy(*pools));
    });
  }
  static std::string occupancy(const ListPoolsResponse& answer) {
    std::int64_t held = 0, capacity = 0, waiting = 0;
    for (const PoolInfo& pool : answer.pools) {
      held += pool.held;
      capacity += pool.capacity;
      waiting += pool.waiting;
    }
    return std::to_string(held) + "/" + std::to_string(capacity) + " held, " +
           std::to_string(waiting) + " waiting";
  }

  // Until somebody serves them again, not until there is nothing to serve.
  void look_for_permit_worker() {
    if (!unserved_ && service_.permits_unserved()) {
      unserved_ = true;
      say(LogLine::Level::warn, "permits_unserved", unserved_text);
    } else if (unserved_ && service_.permits_served()) {
      unserved_ = false;
      say(LogLine::Level::info, "permits_served", "a worker polls their queue");
    }
  }

  // SIGUSR1: everything, and with the next one as it was.
  void listen_for_debug(LogLine::Level usual) {
    debug_signal_.async_wait([this, usual](const boost::system::error_code& error, int) {
      if (error) return;
      const bool on = log_.log.level() != LogLine::Level::debug;
      log_.log.set_level(on ? LogLine::Level::debug : usual);
      say(LogLine::Level::info, "log_level_changed",
          "by SIGUSR1, to " + std::string(name_of(log_.log.level())));
      listen_for_debug(usual);
    });
  }

  // SIGHUP: the certificate and its key again. What is open goes on with those it began with.
  void listen_for_reload() {
    boost::system::error_code ignored;
    reload_signal_.add(SIGHUP, ignored);
    reload_signal_.async_wait([this](const boost::system::error_code& error, int) {
      if (error) return;
      reload();
      listen_for_reload();
    });
  }
  void reload() {
    LogLine line;
    std::string problem;
    line.event = "tls_loaded";
    if (!tls_) {
      line.event = "nothing_to_reload";
      line.msg = "the configuration is read at the start only";
    } else {
      try {
        tls_ = load_tls();
        http_.use_tls(tls_);
        line.msg = tls_->summary();
      } catch (const Error& error) {
        line.level = LogLine::Level::error;
        line.event = "tls_not_loaded";
        line.msg = "the certificate in use stays";
        problem = error.message();
        line.error = problem;
      }
    }
    log_.log.write(line);
    log_.log.flush();
  }

  // One line a second: whoever knocks again and again does not fill the log.
  void tls_failed(const std::string& peer, const std::string& why) {
    ++tls_failures_;
    const auto now = SteadyClock::now();
    if (now < tls_failure_said_ + std::chrono::seconds(1)) return;
    tls_failure_said_ = now;
    const int others = std::exchange(tls_failures_, 0) - 1;
    say(LogLine::Level::info, "tls_failed",
        "no TLS with " + peer + ": " + why +
            (others > 0 ? "; " + std::to_string(others) + " more since the last such line" : ""));
  }

  // It calls this very server, which therefore goes on until it has stopped.
  void stop_permit_worker() {
    if (!permit_worker_) return;
    bool stopped = false;
    std::thread stopper([&] {
      permit_worker_->stop();
      asio::post(io_, [&] { stopped = true; });
    });
    try {
      while (!stopped) turn();
    } catch (...) {
      transport_.close();
      stopper.join();
      throw;
    }
    stopper.join();
  }

  // So that run_one() returns when time has brought something due.
  void arm_timer() {
    SteadyClock::time_point wake = SteadyClock::now() + std::chrono::seconds(1);
    if (const auto deadline = service_.next_poll_deadline()) wake = std::min(wake, *deadline);
    if (const auto due = store_.settling_due()) wake = std::min(wake, *due);
    if (const auto beat = manager_.next_beat()) wake = std::min(wake, *beat);
    if (const auto due = routes_.streams().next_due()) wake = std::min(wake, *due);
    if (virtual_time_) {
      if (virtual_time_->is_advancing()) wake = SteadyClock::now() + std::chrono::milliseconds(1);
    } else {
      const Time due = std::min(service_.next_due(), routes_.next_observation());
      const Duration until = due - clock_->now();
      if (until < std::chrono::seconds(1)) {
        wake = std::min(wake, SteadyClock::now() + std::max(until, Duration(0)));
      }
    }
    timer_.expires_at(wake);
    timer_.async_wait([](const boost::system::error_code&) {});
  }

  // Polls get their empty answers, what was asked is committed and answered, then all is closed.
  void stop() {
    http_.stop_accepting();
    http_.close_idle();
    routes_.streams().end_all();
    const auto patience = SteadyClock::now() + stop_patience;
    while (SteadyClock::now() < patience) {
      manager_.beat(SteadyClock::now());
      service_.answer_all_polls();
      while (service_.run_batch()) {
      }
      if (http_.idle()) break;
      io_.run_one_for(std::chrono::milliseconds(50));
    }
  }

  StandardLog& log_;
  ServiceManager manager_;
  asio::io_context io_{1};
  const http::TlsFiles tls_files_;
  std::shared_ptr<const http::TlsContext> tls_;  // absent: plain HTTP
  int tls_failures_ = 0;                         // since the last line about one
  SteadyClock::time_point tls_failure_said_{};
  std::optional<store::LockFile> lock_;
  store::Store store_;
  std::unique_ptr<service::Clock> clock_;
  service::Service service_;
  const http::AuthOptions auth_;
  std::unique_ptr<service::VirtualTime> virtual_time_;
  service::Reads reads_;
  http::RequestLog requests_;
  http::Routes routes_;
  http::Server http_;
  asio::signal_set signals_;
  asio::signal_set debug_signal_;
  asio::signal_set reload_signal_;
  asio::steady_timer timer_;
  bool stopping_ = false;
  bool unserved_ = false;
  InProcessTransport transport_;
  worker::Registry permit_workflow_;
  std::optional<worker::Worker> permit_worker_;
};

void print_where_things_are(const ServerOptions& options, std::uint16_t port) {
  const bool is_v6 = options.address.find(':') != std::string::npos;
  const std::string url = (options.has_tls() ? "https://" : "http://") +
                          (is_v6 ? "[" + options.address + "]" : options.address) + ":" +
                          std::to_string(port);
  const std::string store = options.database.empty()
                                ? "in memory (gone on exit; keep it with --db-filename dev.db)"
                                : options.database;
  const bool with_keys = needs_key({options.address, options.database, options.auth});
  std::cout << "permit " << version
            << (options.is_dev ? std::string("  development server: ") +
                                     (with_keys ? "with API keys" : "no authentication") +
                                     ", bound to " + options.address
                               : "  server")
            << "\n\nPage             " << url << "/\nAPI              " << url
            << "\nMetrics          " << url << "/metrics\nStore            " << store << "\n";
  if (options.virtual_time) std::cout << "Time             virtual: POST /api/v1/test/advance\n";
  std::cout << "Workers          "
            << (options.permit_worker && !options.virtual_time
                    ? "built-in, queue \"" + options.permit_queue + "\""
                    : "none: permit worker start --task-queue " + options.permit_queue)
            << "\n";
  if (options.is_dev) {
    const bool is_usual = port == 7376 && !options.has_tls();
    const std::string address = is_usual ? "" : "--address " + url + " ";
    std::cout << "\nTry, in another terminal:\n  permit " << address
              << "run --pool demo -- sh -c 'echo slot $PERMIT_SLOT; sleep 20'\n  permit " << address
              << "list\n";
  }
  std::cout << "Stop with Ctrl-C.\n" << std::flush;
}

}  // namespace

void try_server(ServerOptions options) {
  options.database.clear();
  options.address = "127.0.0.1";
  options.auth = "none";
  options.port = 0;
  options.permit_worker = false;
  options.log.level = "error";
  StandardLog log(options.log);
  const Server server(options, log);
}

int run_server(const ServerOptions& options) {
  StandardLog log(options.log);
  signal(SIGPIPE, SIG_IGN);  // a reader of the log may go
  dump_no_core();
  bool runs = false;
  try {
    check_port_is_free(options.address, options.port);
    log.output.hold();  // where things are comes first
    Server server(options, log);
    print_where_things_are(options, server.port());
    log.output.go_on();
    runs = true;
    server.run();
    log.finish();
    return exit_ok;
  } catch (const StartRefused& refused) {
    std::cerr << "permit: " << refused.what() << "\n";
    return exit_unsafe;
  } catch (const std::exception& error) {
    const auto* refused = dynamic_cast<const Error*>(&error);
    const bool is_unsafe = refused != nullptr && refused->reason().starts_with("TLS_");
    const bool no_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
    const char* const why = no_memory ? "out of memory" : error.what();
    // A failed write, a lost database, a port in use: whatever was not answered is unknown to its
    // caller, and the next start finds out.
    if (!runs) {
      std::cerr << "permit: " << why << "\n";
      return is_unsafe ? exit_unsafe : exit_failed;
    }
    LogLine line;
    line.level = LogLine::Level::error;
    line.event = "server_failed";
    line.error = why;
    log.log.write(line);
    log.finish();
    return exit_failed;
  }
}

}  // namespace permit::cli
