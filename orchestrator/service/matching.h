// Task queues: which tasks are offered, which pollers are parked. Holds names and numbers only;
// whether an offer still stands is looked up in the run's state when a poller takes it. In memory;
// rebuilt from the store's offered rows.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "orchestrator/protocol/common.h"
#include "orchestrator/service/rate_meter.h"

namespace permit::service {

struct Offer {
  RunNumber run;
  std::int64_t scheduled_event_id = 0;  // of an activity; 0: the run's workflow task
  std::int64_t query = 0;               // of a query to be answered by this queue's worker
  Time since{};                         // when it was offered, or the server started
};

// A worker that waits for a task. `deadline` is on the real clock, whatever the server's clock.
struct Poller {
  std::int64_t id = 0;
  std::string identity;
  std::chrono::steady_clock::time_point deadline;
};

class Matching {
 public:
  using Type = TaskQueueType;
  struct QueueKey {
    Type type = Type::workflow;
    std::string name;
    auto operator<=>(const QueueKey&) const = default;
  };

  void offer(const QueueKey& queue, Offer offer);
  // Back to where it was taken from.
  void return_offer(const QueueKey& queue, Offer offer);
  std::optional<Offer> take_offer(const QueueKey& key);

  // A task came onto the queue, or left it for a worker; also if one was waiting for it, so that it
  // never was an offer. An offer that is made again is no new task.
  void note_added(const QueueKey& key, Time now) { queues_[key].added.note(now); }
  void note_dispatched(const QueueKey& key, Time now) { queues_[key].dispatched.note(now); }
  struct Rates {  // a second, in the last minute
    double added = 0;
    double dispatched = 0;
  };
  Rates rates(const QueueKey& key, Time now) const;

  void park(const QueueKey& key, Poller poller);
  void return_poller(const QueueKey& key, Poller poller);
  // The one that has waited longest.
  std::optional<Poller> take_poller(const QueueKey& key);
  // Its peer has gone, and counts as polling no more, so that what it would have got by preference
  // goes to others at once.
  bool remove_poller(std::int64_t id, Time now);
  // Those whose wait is over.
  std::vector<Poller> take_expired(std::chrono::steady_clock::time_point now);
  std::vector<Poller> take_all_pollers();
  std::vector<Poller> take_pollers_of(const std::string& identity);
  std::optional<std::chrono::steady_clock::time_point> next_deadline() const;

  // Remembers that somebody polls here, for describe, sticky fall-back and alerts. `connection`: by
  // which the poll came; 0: none. A sticky queue's poller says of which queue it is.
  void note_poll(const QueueKey& key, const std::string& identity, Time now,
                 std::uint64_t connection = 0, const std::string& normal_name = "");
  // The queue's worker has left: nobody has polled here.
  void forget_polls(const QueueKey& key, Time now);
  // A poller that has no other connection counts as polling no more if its peer ended this one. If
  // the server did, it may be at work and come back.
  enum class EndedBy { peer, server };
  void connection_closed(std::uint64_t connection, EndedBy end, Time now);
  // Since when nobody serves the queue: has a poll parked, or has polled within the last minute and
  // is still connected. Zero: nobody ever did; nullopt: somebody does.
  std::optional<Time> deserted_since(const QueueKey& key, Time now) const;
  // Drops queues that hold nothing and where nobody has polled since then.
  void forget_idle(Time since);
  bool polled_since(const QueueKey& key, Time since) const;
  // Of a sticky queue, if a poller has said it; else empty.
  std::string normal_name(const QueueKey& key) const;
  std::vector<std::pair<std::string, Time>> pollers(const QueueKey& key, Time since) const;

  std::vector<QueueKey> queues() const;
  std::size_t backlog(const QueueKey& key) const;
  // The task that has waited longest, if any waits; those before it that do not stand any more are
  // forgotten.
  std::optional<Offer> oldest(const QueueKey& key, const std::function<bool(const Offer&)>& stands);
  std::size_t parked() const { return where_.size(); }

  // Before the offers are loaded again. Pollers stay.
  void forget_offers();

 private:
  struct Queue {
    std::deque<Offer> offers;
    std::list<Poller> pollers;
    struct Seen {
      Time at{};                              // its last poll
      std::set<std::uint64_t> connections{};  // that it polled by and that are open
    };
    std::map<std::string, Seen> seen;  // by identity
    Time left{};                       // when the last of them was forgotten
    RateMeter added;
    RateMeter dispatched;
    std::string normal_name;
  };
  struct Place {
    Queue* queue = nullptr;
    std::list<Poller>::iterator poller;
    std::multimap<std::chrono::steady_clock::time_point, std::int64_t>::iterator deadline;
  };

  void insert(const QueueKey& key, Poller poller, bool first);
  void erase(std::int64_t id);

  std::map<QueueKey, Queue> queues_;
  std::unordered_map<std::int64_t, Place> where_;
  std::multimap<std::chrono::steady_clock::time_point, std::int64_t> deadlines_;
  // What was polled by a connection that is open.
  std::unordered_map<std::uint64_t, std::set<std::pair<QueueKey, std::string>>> polled_by_;
};

}  // namespace permit::service
