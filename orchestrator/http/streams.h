// The open event streams, GET events: tells each what the server knows that it does not. Who reads
// slowly is told less often, never late: a message is made when the last one has left, and says how
// things are by then. Belongs to the engine thread; advance() does a slice of work, so that
// thousands of streams hold up nobody else.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "orchestrator/http/auth.h"
#include "orchestrator/http/message.h"
#include "orchestrator/service/service.h"

namespace permit::http {

class Streams {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;

  static constexpr std::size_t streams_max = 4'096;
  static constexpr std::chrono::milliseconds gap_min{100};  // between two messages to one reader
  static constexpr std::chrono::milliseconds ping_after{2'000};

  // `instance`: of this process; positions of another one's streams are not known here.
  Streams(service::Service& service, std::string instance);

  // Answers with a stream of one pool's events, or of all. `since`: the id of the last message that
  // the peer got before; empty: none. Throws Error if there are too many.
  void open(Exchange& exchange, const PoolName& only, const std::string& since, Caller caller = {});

  // After each batch. Nothing is told before it is committed.
  void advance(SteadyTime now);
  // When advance() has something to do though nothing happens; if ever.
  std::optional<SteadyTime> next_due() const;

  void end_all();
  // Those of callers who may read no more.
  void end_of(const std::function<bool(const Caller&)>& is_over);
  std::size_t size() const { return readers_.size(); }

 private:
  using Chunk = std::shared_ptr<const std::string>;
  struct Reader {
    std::unique_ptr<Stream> stream;
    PoolName only;
    Caller caller;
    std::int64_t position = 0;
    std::int64_t surroundings = 0;  // which version of them it knows
    bool begins = false;            // is owed a snapshot
    SteadyTime told_at;
  };
  struct Message {
    Chunk chunk;                // none: nothing in it concerns the reader
    std::int64_t position = 0;  // where its reader is after it
    std::int64_t surroundings = 0;
    bool begin_anew = false;  // nobody remembers what came after the reader's position
    SteadyTime made_at;
  };
  // What the stream tells beside committed changes; looked at once a second.
  struct Surroundings {
    std::int64_t number = 0;
    std::string as_text;
    std::vector<TaskQueueInfo> queues;
    std::vector<Alert> alerts;
  };

  bool is_told(const Reader& reader) const;
  void begin_round(SteadyTime now);
  void look_around(SteadyTime now);
  void tell(Reader& reader, SteadyTime now);
  static void send(Reader& reader, const Message& message, SteadyTime now);
  static void send(Reader& reader, const Chunk& chunk, SteadyTime now);
  const Message& snapshot(const PoolName& only, SteadyTime now);
  const Message& changes(const Reader& reader);
  Chunk ping();
  std::string id_of(std::int64_t position) const;
  std::optional<std::int64_t> position_of(const std::string& id) const;

  service::Service& service_;
  const std::string instance_;
  std::vector<Reader> readers_;
  Surroundings surroundings_;
  SteadyTime looked_at_{};

  // The round at hand: each reader's turn comes once; its messages are made once.
  std::size_t next_ = 0;  // whose turn it is
  SteadyTime round_at_{};
  std::int64_t round_position_ = 0;
  Chunk ping_;
  std::map<std::tuple<PoolName, std::int64_t, bool>, Message> messages_;
  std::map<PoolName, Message> snapshots_;
};

}  // namespace permit::http
