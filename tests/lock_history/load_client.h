// One client of permit_lock_load: a keep-alive connection, one request at a time, on which it takes
// a slot, renews and gives it back, and looks at others. Writes down what it asks and what it is
// answered. Belongs to one thread and knows no waiting: who has an epoll calls it.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include "tests/lock_history/history.h"

namespace permit::lock_history {

struct LoadPlan {
  std::uint16_t port = 0;
  std::string pool = "lock";
  std::string name;  // of this process, in request ids and holders
  int slots = 64;
  std::int64_t lease_ms = 60'000;
  int renewals = 1;         // of a hold, on average
  int read_percent = 10;    // of what is asked without a hold
  int abandon_percent = 0;  // of holds: forgotten, so that their leases end
  int retry_percent = 50;   // of acquires without an answer: asked again
  int think_ms = 0;         // at most, between an answer and the next request
  std::int64_t patience_ms = 10'000;
  bool duplicates = false;  // what is on the way may deliver a request twice
};

// The lines of a history; operations are numbered.
class Journal {
 public:
  explicit Journal(int file) : file_(file) {}
  void pool(const std::string& name, int capacity);
  std::uint64_t request(Moment at, std::string_view what);
  void once_more(Moment at, std::string_view what);
  void answer(std::uint64_t operation, std::string_view what);
  void flush();  // throws if it cannot be written
  std::uint64_t operations() const { return operations_; }
  std::uint64_t ok = 0;

 private:
  int file_;
  std::string lines_;
  std::uint64_t numbers_ = 0;
  std::uint64_t operations_ = 0;
};

Moment now();

class LoadClient {
 public:
  LoadClient(const LoadPlan& plan, Journal& journal, std::uint32_t seed);
  ~LoadClient();
  LoadClient(const LoadClient&) = delete;
  LoadClient& operator=(const LoadClient&) = delete;

  int socket() const { return socket_; }                      // -1: not connected
  std::uint64_t connections() const { return connections_; }  // how many there have been
  bool busy() const { return operation_ != 0; }
  Moment next_due() const;  // when to call turn() though nothing has come

  // Connects if it must, asks if it may, gives up what has taken too long.
  void turn(Moment at, bool stopping);
  void on_readable();
  void look_at(int slot);  // the next request, whatever else it would have done

 private:
  void connect(Moment at);
  void disconnect();
  void choose(bool stopping);
  void ask_acquire(Moment first_asked);
  void ask_renew();
  void ask_release();
  void ask_read(int slot);
  void send(Kind kind, Moment at, std::string_view what, std::string_view request);
  void take_answer(int status, std::string_view body);
  std::string outcome(int status, std::string_view body);
  void lost_the_connection();
  std::string random_slot();
  bool percent(int share) { return static_cast<int>(dice_() % 100) < share; }

  const LoadPlan& plan_;
  Journal& journal_;
  std::mt19937 dice_;
  int socket_ = -1;
  std::uint64_t connections_ = 0;
  std::string received_;
  Moment rests_until_ = 0;

  // Of the request under way.
  std::uint64_t operation_ = 0;  // 0: none
  Kind kind_ = Kind::acquire;
  Moment asked_ = 0;

  // Of the acquire, from the first time it was asked.
  std::string request_id_;
  std::string slot_;
  Moment first_asked_ = 0;
  bool ask_again_ = false;

  // Of the hold.
  bool holds_ = false;
  bool releasing_ = false;  // and that must be settled
  std::string run_;
  std::string token_;
  int renewals_left_ = 0;
  int look_at_ = -1;
  std::uint64_t acquires_ = 0;
};

}  // namespace permit::lock_history
