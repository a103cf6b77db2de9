#include "tests/fuzz/engine.h"

#include "orchestrator/core/invariants.h"
#include "orchestrator/http/url.h"
#include "orchestrator/protocol/json.h"

namespace permit::fuzz {

namespace {

constexpr Time beginning{std::chrono::sys_days{std::chrono::year{2026} / 1 / 1}};
constexpr int inputs_an_engine = 500;

store::Database::Options in_memory() {
  store::Database::Options options;
  options.mode = store::Database::Mode::in_memory;
  return options;
}

// Small, so that an input reaches them.
service::Options service_options() {
  service::Options options;
  options.token_secret = "fuzz";
  options.check_every_batch = true;
  options.retention = Engine::retention;
  options.holds_kept = 3;
  options.polls_parked_max = 20;
  options.cache_bytes_max = std::size_t{64} * 1024;
  options.limits.payload_bytes_max = 600;
  options.limits.memo_bytes_max = 600;
  options.limits.history_events_max = 120;
  options.limits.history_events_suggest = 60;
  options.limits.pending_max = 6;
  options.limits.signals_max = 12;
  options.limits.buffered_events_max = 6;
  options.limits.slots_max = 8;
  options.limits.labels_max = 2;
  return options;
}

class Exchange : public http::Exchange {
 public:
  Exchange(http::Request request, std::shared_ptr<Engine::Answer> answer)
      : request_(std::move(request)), answer_(std::move(answer)) {}

  http::Request& request() override { return request_; }
  std::uint64_t connection() const override { return 1; }
  void reply(http::Response response) override {
    promise(answer_->status == 0, "a request is answered once");
    answer_->status = response.status;
    answer_->body = std::move(response.body);
    on_gone_ = nullptr;
  }
  void on_gone(std::function<void()> callback) override { on_gone_ = std::move(callback); }
  void park() override { request_ = {}; }

  // The peer closes.
  void leave() {
    if (const auto callback = std::exchange(on_gone_, nullptr)) callback();
  }

 private:
  http::Request request_;
  std::shared_ptr<Engine::Answer> answer_;
  std::function<void()> on_gone_;
};

}  // namespace

void check_error(const Error& error) {
  const int status = http::status_of(error);
  if (status >= 500 && status != 501 && status != 504) {
    broken("no request brings about a " + std::to_string(status) + ": " + error.reason() + ": " +
           error.message());
  }
  promise(!error.reason().empty() && !error.message().empty(), "a refusal says why");
  promise(http::is_utf8(error.message()), "a message is text");
}

Engine::Engine()
    : clock_(beginning),
      store_(in_memory()),
      log_(LogFormat::text, LogLine::Level::error,
           [](std::string_view lines) { broken("nothing is wrong: " + std::string(lines)); }) {
  start();
}

Engine::~Engine() = default;

void Engine::start() {
  routes_.reset();
  reads_.reset();
  service_.reset();
  service::Options options = service_options();
  options.seed = ++starts_;  // another one makes other ids
  options.log = &log_;
  service_ = std::make_unique<service::Service>(store_, clock_, std::move(options));
  reads_ = std::make_unique<service::Reads>(store_, in_memory(), service::Reads::Post(), log_);
  routes_ = std::make_unique<http::Routes>(*service_, *reads_, http::RouteOptions());
  settle();
}

void Engine::restart() { start(); }

void Engine::settle() {
  constexpr int batches_max = 2'000;
  for (int i = 0; service_->run_batch(); ++i) {
    promise(i < batches_max, "the server comes to rest");
  }
}

void Engine::advance(Duration duration) {
  constexpr int steps_max = 50'000;
  const Time goal = clock_.now() + duration;
  for (int i = 0; clock_.now() < goal; ++i) {
    promise(i < steps_max, "time passes in steps, not in crumbs");
    clock_.set(std::min(goal, std::max(service_->next_due(), clock_.now() + Duration(1))));
    settle();
  }
}

Engine::Answer Engine::ask(http::Request request) {
  const auto answer = std::make_shared<Answer>();
  const auto exchange = std::make_shared<Exchange>(std::move(request), answer);
  routes_->handle(exchange);
  settle();
  if (answer->status == 0) {
    exchange->leave();
    settle();
  }
  const bool ours = answer->status < 500 || answer->status == 501 || answer->status == 504;
  if (!ours) broken("no request brings about a 5xx: " + answer->body);
  return *answer;
}

void Engine::check() {
  service_->check_everything();
  store::Statement numbers{store_.database(), "SELECT number FROM runs"};
  for (auto row = numbers.bind(); row.step();) {
    std::vector<Event> history;
    for (const store::HistoryBatch& batch : store_.history(RunNumber{row.i64(0)})) {
      for (Event& event : read_json<std::vector<Event>>("[" + batch.events + "]")) {
        history.push_back(std::move(event));
      }
    }
    core::check_history(history);
  }
}

// Ends what is open, and lets its retention go by. False if something is left.
bool Engine::forget_everything() {
  store::Statement open{store_.database(), "SELECT workflow_id, run_id FROM runs WHERE status = 1"};
  for (int round = 0; round < 20; ++round) {
    std::vector<WorkflowExecution> runs;
    for (auto row = open.bind(); row.step();) {
      runs.push_back({WorkflowId(row.text(0)), RunId(row.text(1))});
    }
    if (runs.empty()) break;
    for (const WorkflowExecution& run : runs) {
      TerminateWorkflowExecutionRequest request;
      request.namespace_ = "default";
      request.workflow_execution = run;
      call<EmptyResponse>([&](auto done) { service_->terminate(request, std::move(done)); });
    }
  }
  advance(retention + std::chrono::minutes(10));
  std::vector<PoolName> pools;
  for (const auto& [name, settings] : store_.pools()) pools.push_back(name);
  for (const PoolName& pool : pools) {
    call<EmptyResponse>(
        [&](auto done) { service_->delete_pool({"default", pool}, std::move(done)); });
  }
  store::Statement left{store_.database(),
                        "SELECT (SELECT count(*) FROM runs) + (SELECT count(*) FROM pools)"};
  auto row = left.bind();
  return row.step() && row.i64(0) == 0;
}

void Engine::renew(std::unique_ptr<Engine>& engine) {
  const bool usable = engine && !every_input_alone && ++engine->inputs_ < inputs_an_engine &&
                      engine->forget_everything();
  if (usable) return;
  engine.reset();
  engine = std::make_unique<Engine>();
}

}  // namespace permit::fuzz
