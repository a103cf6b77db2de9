// permit_lock_load --port P --history FILE [OPTIONS]: many clients take, renew and give back the
// slots of a pool, through whatever happens to the server, and write down what they saw. SIGTERM
// ends it as the end of its time does: holds are given back, and every slot is looked at.
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iostream>
#include <memory>

#include "tests/lock_history/load_client.h"

namespace {

using permit::lock_history::Journal;
using permit::lock_history::LoadClient;
using permit::lock_history::LoadPlan;
using permit::lock_history::Moment;
using permit::lock_history::now;

volatile sig_atomic_t asked_to_stop = 0;

struct Options {
  LoadPlan plan;
  std::string history;
  std::size_t connections = 64;
  double seconds = 10;
  std::uint64_t operations = 0;  // 0: as many as there is time for
  double settle_seconds = 15;    // for what is under way at the end
  std::uint32_t seed = 1;
};

class Load {
 public:
  Load(const Options& options, Journal& journal)
      : options_(options), journal_(journal), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    for (std::size_t i = 0; i < options.connections; ++i) {
      const auto seed = static_cast<std::uint32_t>(options.seed * 7919 + i);
      clients_.push_back(std::make_unique<LoadClient>(options_.plan, journal, seed));
    }
    watched_.resize(clients_.size(), 0);
  }
  ~Load() { ::close(epoll_); }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  void run() {
    const Moment end = now() + static_cast<Moment>(options_.seconds * 1e6);
    while (now() < end && asked_to_stop == 0 && !has_enough()) turn(false);
    settle();
    look_at_all();
    settle();
    journal_.flush();
  }

 private:
  bool has_enough() const {
    return options_.operations > 0 && journal_.operations() >= options_.operations;
  }

  void turn(bool stopping) {
    const Moment at = now();
    Moment due = at + 10'000;
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      clients_[i]->turn(at, stopping);
      watch(i);
      if (clients_[i]->next_due() > at) due = std::min(due, clients_[i]->next_due());
    }
    std::array<epoll_event, 256> events;
    const auto wait = static_cast<int>((std::max<Moment>(0, due - now()) + 999) / 1'000);
    const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), wait);
    for (int i = 0; i < count; ++i) {
      const std::size_t client = events[static_cast<std::size_t>(i)].data.u64;
      clients_[client]->on_readable();
      watch(client);
    }
  }

  bool any_busy() const {
    return std::any_of(clients_.begin(), clients_.end(), [](const auto& c) { return c->busy(); });
  }

  // A client's socket changes when it connects again; a closed one has left the epoll by itself.
  void watch(std::size_t client) {
    if (watched_[client] == clients_[client]->connections()) return;
    watched_[client] = clients_[client]->connections();
    const int socket = clients_[client]->socket();
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = client;
    if (socket >= 0 && epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event) != 0 && errno != EEXIST) {
      throw std::runtime_error("epoll_ctl failed");
    }
  }

  void settle() {
    const Moment end = now() + static_cast<Moment>(options_.settle_seconds * 1e6);
    for (int quiet = 0; quiet < 3 && now() < end;) {
      turn(true);
      quiet = any_busy() ? 0 : quiet + 1;
    }
  }

  void look_at_all() {
    const Moment end = now() + static_cast<Moment>(options_.settle_seconds * 1e6);
    for (int slot = 0; slot < options_.plan.slots && now() < end;) {
      for (const auto& client : clients_) {
        if (!client->busy() && slot < options_.plan.slots) client->look_at(slot++);
      }
      turn(true);
    }
  }

  const Options& options_;
  Journal& journal_;
  int epoll_;
  std::vector<std::unique_ptr<LoadClient>> clients_;
  std::vector<std::uint64_t> watched_;  // of each client: which of its connections
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("permit_lock_load: takes permits and writes down what it saw");
  app.add_option("--port", options.plan.port)->required();
  app.add_option("--history", options.history)->required();
  app.add_option("--pool", options.plan.pool, "It must be there");
  app.add_option("--slots", options.plan.slots, "Its capacity");
  app.add_option("--name", options.plan.name, "Of this process");
  app.add_option("--connections", options.connections);
  app.add_option("--seconds", options.seconds);
  app.add_option("--operations", options.operations, "End after so many");
  app.add_option("--lease-ms", options.plan.lease_ms);
  app.add_option("--renewals", options.plan.renewals, "Of a hold, on average");
  app.add_option("--read-percent", options.plan.read_percent);
  app.add_option("--abandon-percent", options.plan.abandon_percent, "Holds that are forgotten");
  app.add_option("--retry-percent", options.plan.retry_percent);
  app.add_option("--think-ms", options.plan.think_ms);
  app.add_option("--patience-ms", options.plan.patience_ms, "Then a request has no answer");
  app.add_option("--settle-seconds", options.settle_seconds);
  app.add_option("--seed", options.seed);
  app.add_flag("--duplicates", options.plan.duplicates, "Requests may be delivered twice");
  CLI11_PARSE(app, argc, argv);
  if (options.plan.name.empty()) options.plan.name = "load-" + std::to_string(getpid());
  signal(SIGTERM, [](int) { asked_to_stop = 1; });

  try {
    const int file = open(options.history.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0) throw std::runtime_error("cannot write " + options.history);
    Journal journal(file);
    journal.pool(options.plan.pool, options.plan.slots);
    const Moment began = now();
    Load(options, journal).run();
    const double seconds = static_cast<double>(now() - began) / 1e6;
    std::cout << journal.operations() << " operations, " << journal.ok << " ok, " << seconds
              << " s, " << static_cast<double>(journal.operations()) / seconds << " a second\n";
    close(file);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "permit_lock_load: " << error.what() << "\n";
    return 1;
  }
}
