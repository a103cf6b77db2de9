// A whole server but for its sockets, in memory, on a clock that stands still, for targets that ask
// it for things. It speaks up (broken()) when something is not answered as it has to be: an error
// in its log, a 5xx that somebody's request brought about, a state that contradicts the database.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "orchestrator/http/routes.h"
#include "orchestrator/service/reads.h"
#include "orchestrator/service/service.h"
#include "orchestrator/store/store.h"
#include "tests/fuzz/targets.h"

namespace permit::fuzz {

class Engine {
 public:
  Engine();
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  service::Service& service() { return *service_; }
  store::Store& store() { return store_; }
  Time now() { return clock_.now(); }

  // Asks, lets the server do what it can at once, and gives the answer; none, if it waits.
  // `submit` gets the Done.
  template <class T, class Submit>
  std::optional<service::Result<T>> call(const Submit& submit);

  // By way of the routes. 0 and nothing, if the answer is not there yet: its peer is then gone.
  struct Answer {
    int status = 0;
    std::string body;
  };
  Answer ask(http::Request request);

  void settle();
  void advance(Duration duration);
  // The server stops between two batches and starts again with what the database has.
  void restart();
  // Memory against the database, every history against its rules.
  void check();

  // An engine for the next input: a new one, or the one that some inputs have used and that has
  // forgotten them, since all of their runs have ended and their retention is over.
  static void renew(std::unique_ptr<Engine>& engine);

  static constexpr Duration retention = std::chrono::hours(1);

 private:
  void start();
  bool forget_everything();

  service::ManualClock clock_;
  store::Store store_;
  Log log_;
  std::unique_ptr<service::Service> service_;
  std::unique_ptr<service::Reads> reads_;
  std::unique_ptr<http::Routes> routes_;
  int inputs_ = 0;
  std::uint64_t starts_ = 0;
};

// That whoever asked for something impossible is told so, and no more.
void check_error(const Error& error);

template <class T, class Submit>
std::optional<service::Result<T>> Engine::call(const Submit& submit) {
  auto answer = std::make_shared<std::optional<service::Result<T>>>();
  submit(service::Done<T>([answer](service::Result<T> result) { *answer = std::move(result); }));
  settle();
  if (*answer) {
    if (const auto* error = std::get_if<Error>(&**answer)) check_error(*error);
  }
  return std::move(*answer);
}

}  // namespace permit::fuzz
