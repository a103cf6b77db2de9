#include "tests/power_loss/world.h"

#include <functional>

namespace permit::power_loss {

using namespace std::chrono_literals;

namespace {

constexpr Time beginning{std::chrono::seconds(1'800'000'000)};
constexpr int pages_a_checkpoint = 24;

service::Options service_options() {
  service::Options options;
  options.seed = 7;
  options.token_secret = "secret";
  options.retention = 20s;  // so that rows are deleted, too
  return options;
}

void mix(std::size_t& sum, std::string_view text) {
  constexpr std::size_t odd = 0x9e3779b97f4a7c15ULL;
  sum = (sum ^ std::hash<std::string_view>()(text)) * odd;
}

std::vector<std::string> texts(store::Database& database, const std::string& sql) {
  store::Statement statement(database, sql);
  std::vector<std::string> found;
  for (auto row = statement.bind(); row.step();) found.emplace_back(row.text(0));
  return found;
}

// "quote(a) || ',' || quote(b)", so that values of all types are texts.
std::string all_columns(store::Database& database, const std::string& table) {
  std::string list;
  for (const std::string& column :
       texts(database, "SELECT name FROM pragma_table_info('" + table + "')")) {
    list += (list.empty() ? "quote(\"" : " || ',' || quote(\"") + column + "\")";
  }
  return list;
}

}  // namespace

store::Database::Options on(const test::CrashVfs& vfs) {
  store::Database::Options options;
  options.path = path;
  options.vfs = vfs.name();
  options.autocheckpoint_pages_min = pages_a_checkpoint;
  return options;
}

std::size_t fingerprint(store::Database& database) {
  std::size_t sum = 0;
  for (const std::string& table :
       texts(database, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")) {
    mix(sum, table);
    for (const std::string& row :
         texts(database, "SELECT " + all_columns(database, table) + " FROM " + table)) {
      mix(sum, row);
    }
  }
  return sum;
}

World::World(test::CrashVfs& vfs, std::uint32_t seed, const store::Opening& opening)
    : dice_(seed),
      clock_(beginning),
      store_(std::make_unique<store::Store>(on(vfs), opening)),
      service_(std::make_unique<service::Service>(*store_, clock_, service_options())) {
  SetPoolRequest pool;
  pool.namespace_ = "default";
  pool.pool = PoolName("pool");
  pool.capacity = 6;
  service_->set_pool(pool, count<PoolInfo>());
  while (service_->run_batch()) {
  }
}

void World::commit() {
  const std::int64_t before = store_->counters().commit_seq;
  while (store_->counters().commit_seq == before) {
    clock_.set(clock_.now() + std::chrono::milliseconds(dice_() % 400));
    for (auto requests = 1 + dice_() % 3; requests > 0; --requests) ask();
    service_->run_batch();
  }
}

void World::ask() {
  switch (dice_() % 9) {
    case 0:
    case 1:
      return start();
    case 2:
    case 3:
      return signal();
    case 4:
      return terminate();
    case 5:
    case 6:
      return acquire();
    case 7:
      return renew();
    default:
      return release();
  }
}

std::string World::number(int below) {
  return std::to_string(dice_() % static_cast<std::uint32_t>(below));
}

void World::start() {
  StartWorkflowExecutionRequest request;
  request.namespace_ = "default";
  request.workflow_id = WorkflowId("w" + number(12));
  request.workflow_type.name = "Work";
  request.task_queue.name = "work";
  request.request_id = "s" + std::to_string(++asked_);
  if (dice_() % 2 == 0) request.workflow_run_timeout = std::chrono::milliseconds(dice_() % 9'000);
  service_->start(std::move(request), count<StartWorkflowExecutionResponse>());
}

// Some of them take several pages of the database.
void World::signal() {
  SignalWorkflowExecutionRequest request;
  request.namespace_ = "default";
  request.workflow_execution.workflow_id = WorkflowId("w" + number(12));
  request.signal_name = std::string(dice_() % 4 == 0 ? 200 : 5, 'x');
  request.request_id = "g" + std::to_string(++asked_);
  Payload payload;
  payload.data.value.assign(dice_() % 8 == 0 ? 20'000 : 50, 'p');
  request.input = Payloads{{payload}};
  service_->signal(std::move(request), count<EmptyResponse>());
}

void World::terminate() {
  TerminateWorkflowExecutionRequest request;
  request.namespace_ = "default";
  request.workflow_execution.workflow_id = WorkflowId("w" + number(12));
  service_->terminate(std::move(request), count<EmptyResponse>());
}

void World::acquire() {
  AcquireRequest request;
  request.namespace_ = "default";
  request.pool = PoolName("pool");
  request.request_id = "a" + std::to_string(++asked_);
  request.holder = "h";
  request.lease = std::chrono::milliseconds(500 + dice_() % 3'000);
  if (dice_() % 2 == 0) request.wait = Duration(0);
  service_->acquire(std::move(request), [this](const service::Result<AcquireResponse>& result) {
    const auto* answer = std::get_if<AcquireResponse>(&result);
    if (answer == nullptr) return;
    ++acknowledged_;
    if (answer->state == "granted") held_.push_back({answer->slots.front().id, answer->token});
  });
}

void World::renew() {
  if (held_.empty()) return;
  const Held& held = held_[dice_() % held_.size()];
  service_->renew({"default", held.id, held.token, {}}, count<RenewResponse>());
}

void World::release() {
  if (held_.empty()) return;
  const auto chosen = held_.begin() + static_cast<std::ptrdiff_t>(dice_() % held_.size());
  service_->release({"default", chosen->id, chosen->token, {}}, count<PermitInfo>());
  held_.erase(chosen);
}

void start_and_check(const test::CrashVfs& vfs) {
  store::Store store(on(vfs));
  service::ManualClock clock(beginning + 1h);
  service::Service service(store, clock, service_options());
  while (service.run_batch()) {
  }
  service.check_everything();
}

}  // namespace permit::power_loss
