#include "orchestrator/http/streams.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "orchestrator/protocol/json.h"

namespace permit::http {

namespace {

constexpr std::size_t readers_a_slice = 32;
// How often pings and surroundings are looked at.
constexpr std::chrono::milliseconds round_at_least_every{500};
constexpr std::chrono::seconds look_around_every{1};
constexpr std::string_view reset_text = "event: reset\ndata: {}\n\n";

template <class Data>
std::string event_text(std::string_view event, const std::string& id, const Data& data) {
  std::string text = "event: ";
  text += event;
  if (!id.empty()) text += "\nid: " + id;
  text += "\ndata: ";
  write_json(data, text);
  text += "\n\n";
  return text;
}

bool is_empty(const StreamChanges& changes) {
  return changes.pools.empty() && changes.removed.empty() && changes.lines.empty() &&
         changes.holds.empty() && changes.workflows.empty() && !changes.more_workflows &&
         !changes.queues_changed && !changes.alerts_changed;
}

// A rate is never the same twice. What was told stands until the rate is a quarter away from it,
// and three tasks a minute, or begins, or ends.
double steady(double rate, double told) {
  constexpr double least = 0.05;
  const bool is_close = rate > 0 && told > 0 && std::abs(rate - told) < std::max(told / 4, least);
  return is_close ? told : rate;
}

void steady_rates(std::vector<TaskQueueInfo>& queues, const std::vector<TaskQueueInfo>& told) {
  std::map<std::pair<std::string_view, std::string_view>, const TaskQueueInfo*> told_of;
  for (const TaskQueueInfo& queue : told) told_of[{queue.name, queue.kind}] = &queue;
  for (TaskQueueInfo& queue : queues) {
    const auto before = told_of.find({queue.name, queue.kind});
    if (before == told_of.end()) continue;
    queue.added_per_second = steady(queue.added_per_second, before->second->added_per_second);
    queue.dispatched_per_second =
        steady(queue.dispatched_per_second, before->second->dispatched_per_second);
  }
}

}  // namespace

Streams::Streams(service::Service& service, std::string instance)
    : service_(service), instance_(std::move(instance)) {}

std::string Streams::id_of(std::int64_t position) const {
  return instance_ + "-" + std::to_string(position);
}

std::optional<std::int64_t> Streams::position_of(const std::string& id) const {
  if (!id.starts_with(instance_ + "-")) return std::nullopt;
  const char* first = id.data() + instance_.size() + 1;
  const char* last = id.data() + id.size();
  std::int64_t position = 0;
  const auto [stop, error] = std::from_chars(first, last, position);
  if (error != std::errc() || stop != last) return std::nullopt;
  return position;
}

void Streams::open(Exchange& exchange, const PoolName& only, const std::string& since,
                   Caller caller) {
  if (readers_.size() >= streams_max) {
    throw Error(ErrorCode::unavailable, "STREAMS_TOO_MANY",
                "the server has as many event streams as it allows, " +
                    std::to_string(streams_max) + "; close some, or try again later");
  }
  const auto now = std::chrono::steady_clock::now();
  const auto position = position_of(since);
  Response response;
  response.content_type = "text/event-stream";
  response.headers.push_back({"X-Accel-Buffering", "no"});  // for proxies
  Reader reader;
  reader.stream = exchange.stream(std::move(response));
  if (reader.stream == nullptr) return;
  reader.only = only;
  reader.caller = std::move(caller);
  reader.position = position.value_or(0);
  reader.begins = !position;
  std::string greeting = "retry: 1000\n\n";
  if (!since.empty() && !position) greeting += reset_text;
  if (reader.stream->is_clear()) send(reader, make_chunk(greeting), now);
  if (reader.begins) tell(reader, now);
  readers_.push_back(std::move(reader));
}

// --- Rounds ---

bool Streams::is_told(const Reader& reader) const {
  return !reader.begins && reader.position == service_.position() &&
         reader.surroundings == surroundings_.number;
}

void Streams::advance(SteadyTime now) {
  if (readers_.empty()) return;
  if (next_ >= readers_.size()) {
    const auto due = next_due();
    if (!due || *due > now) return;
    begin_round(now);
  }
  for (std::size_t turn = 0; turn < readers_a_slice && next_ < readers_.size(); ++turn) {
    Reader& reader = readers_[next_];
    if (reader.stream->is_open()) tell(reader, now);
    if (reader.stream->is_open()) {
      ++next_;
      continue;
    }
    if (next_ + 1 < readers_.size()) reader = std::move(readers_.back());
    readers_.pop_back();
  }
}

std::optional<Streams::SteadyTime> Streams::next_due() const {
  if (readers_.empty()) return std::nullopt;
  if (next_ < readers_.size()) return round_at_;  // goes on
  const bool news = service_.position() != round_position_;
  return round_at_ + (news ? gap_min : round_at_least_every);
}

void Streams::begin_round(SteadyTime now) {
  next_ = 0;
  round_at_ = now;
  round_position_ = service_.position();
  messages_.clear();
  snapshots_.clear();
  ping_.reset();
  if (now - looked_at_ >= look_around_every) look_around(now);
}

void Streams::look_around(SteadyTime now) {
  looked_at_ = now;
  StreamChanges around;
  around.queues = service_.queues();
  around.alerts = service_.alerts();
  steady_rates(around.queues, surroundings_.queues);
  std::vector<TaskQueueInfo> queues = around.queues;
  for (TaskQueueInfo& queue : around.queues) {  // when somebody polled last is no news
    for (PollerInfo& poller : queue.pollers) poller.last_access_time = {};
  }
  std::string as_text;
  write_json(around, as_text);
  if (as_text == surroundings_.as_text) return;
  surroundings_.as_text = std::move(as_text);
  surroundings_.queues = std::move(queues);
  surroundings_.alerts = std::move(around.alerts);
  ++surroundings_.number;
}

void Streams::tell(Reader& reader, SteadyTime now) {
  if (!reader.stream->is_clear()) return;
  if (!reader.begins && !is_told(reader)) {
    const Message& message = changes(reader);
    send(reader, message, now);
    reader.begins = message.begin_anew;
  }
  if (!reader.stream->is_clear()) return;
  if (reader.begins) {
    reader.begins = false;
    send(reader, snapshot(reader.only, now), now);
  } else if (now - reader.told_at >= ping_after) {
    send(reader, ping(), now);
  }
}

void Streams::send(Reader& reader, const Message& message, SteadyTime now) {
  reader.position = message.position;
  reader.surroundings = message.surroundings;
  if (message.chunk) send(reader, message.chunk, now);
}

void Streams::send(Reader& reader, const Chunk& chunk, SteadyTime now) {
  reader.told_at = now;
  reader.stream->send(chunk);
}

// advance() forgets them.
void Streams::end_of(const std::function<bool(const Caller&)>& is_over) {
  for (Reader& reader : readers_) {
    if (reader.stream->is_open() && is_over(reader.caller)) reader.stream->end();
  }
}

void Streams::end_all() {
  for (Reader& reader : readers_) reader.stream->end();
  readers_.clear();
}

// --- Messages ---

const Streams::Message& Streams::snapshot(const PoolName& only, SteadyTime now) {
  Message& made = snapshots_[only];
  const bool is_old = made.position != service_.position() || now - made.made_at >= gap_min;
  if (made.chunk && !is_old) return made;
  look_around(now);
  StreamSnapshot snapshot = service_.snapshot(only);
  snapshot.instance = instance_;
  snapshot.queues = surroundings_.queues;
  snapshot.alerts = surroundings_.alerts;
  made.position = snapshot.seq.value;
  made.surroundings = surroundings_.number;
  made.made_at = now;
  made.chunk = make_chunk(event_text("snapshot", id_of(made.position), snapshot));
  return made;
}

const Streams::Message& Streams::changes(const Reader& reader) {
  const bool around = reader.surroundings != surroundings_.number;
  const auto [entry, is_new] =
      messages_.try_emplace(std::tuple(reader.only, reader.position, around));
  Message& made = entry->second;
  if (!is_new) return made;
  made.position = service_.position();
  made.surroundings = surroundings_.number;
  auto changes = service_.changes_since(reader.position, reader.only);
  if (!changes) {
    made.chunk = make_chunk(reset_text);
    made.begin_anew = true;
    return made;
  }
  if (around) {
    changes->queues_changed = true;
    changes->queues = surroundings_.queues;
    changes->alerts_changed = true;
    changes->alerts = surroundings_.alerts;
  }
  if (!is_empty(*changes)) {
    made.chunk = make_chunk(event_text("changes", id_of(made.position), *changes));
  }
  return made;
}

Streams::Chunk Streams::ping() {
  if (ping_ == nullptr) ping_ = make_chunk(event_text("ping", "", StreamPing{service_.time()}));
  return ping_;
}

}  // namespace permit::http
