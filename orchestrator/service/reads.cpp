#include "orchestrator/service/reads.h"

#include <sys/resource.h>
#include <unistd.h>

#include "orchestrator/core/validate.h"
#include "orchestrator/store/courtesy.h"
#include "orchestrator/store/list_filter.h"

namespace permit::service {

namespace {

constexpr std::size_t jobs_max = 1'000;
constexpr int niceness = 10;  // who lists waits for who writes, if there are not enough cores

store::HoldState hold_state(const std::string& state) {
  if (state.empty()) return store::HoldState::any;
  if (state == "held") return store::HoldState::held;
  if (state == "closed") return store::HoldState::closed;
  throw invalid_argument("PARAMETER_INVALID", "state must be held or closed");
}

}  // namespace

Reads::Reads(store::Store& store, const store::Database::Options& options, Post post, Log& log)
    : store_(store), post_(std::move(post)), log_(log) {
  if (options.mode == store::Database::Mode::in_memory) {
    inline_.emplace(store.database());
  } else {
    thread_ = std::thread(&Reads::thread_main, this, options);
  }
}

Reads::~Reads() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    jobs_.clear();
  }
  wake_.notify_one();
  thread_.join();
}

void Reads::thread_main(const store::Database::Options& options) {
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), niceness);
  try {
    store::Reader reader(options);
    answer_jobs(reader);
  } catch (const std::exception& error) {  // of the opening: ends the server
    post_([what = std::string(error.what())] { throw std::runtime_error(what); });
  }
}

void Reads::answer_jobs(store::Reader& reader) {
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
      if (stopping_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    post_(job(reader));
  }
}

bool Reads::is_full() {
  const std::lock_guard lock(mutex_);
  return unsettled_ + jobs_.size() >= jobs_max;
}

void Reads::push(Job job) {
  if (inline_) return job(*inline_)();
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  wake_.notify_one();
}

void Reads::read_settled(Done<std::string> done, Read read) {
  if (is_full()) {
    throw resource_exhausted("READS_LIMIT", "too many lists are being read; try again later");
  }
  ++unsettled_;
  store_.when_settled([this, job = job_of(std::move(done), std::move(read))] {
    --unsettled_;
    push(job);
  });
}

Reads::Job Reads::job_of(Done<std::string> done, Read read) {
  return [this, done = std::move(done), read = std::move(read)](store::Reader& reader) {
    const auto began = std::chrono::steady_clock::now();
    Result<std::string> result = Error(ErrorCode::internal, "INTERNAL", "Internal error");
    std::string bug;
    std::optional<store::StoreFailed> failed;
    try {
      result = read(reader);
    } catch (const Error& error) {
      result = error;
    } catch (const store::StoreFailed& error) {
      failed = error;
    } catch (const std::exception& exception) {
      bug = exception.what();
    }
    const auto took =
        std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - began);
    return [this, done, result = std::move(result), bug = std::move(bug), failed, took]() mutable {
      if (failed) throw store::StoreFailed(*failed);  // ends the server, as where it writes
      latency_.observe(took);
      if (!bug.empty()) {
        ++failures_;
        LogLine line;
        line.level = LogLine::Level::error;
        line.event = "read_failed";
        line.error = bug;
        log_.write(line);
      }
      done(std::move(result));
    };
  };
}

void Reads::list_runs(ListWorkflowExecutionsRequest request, PayloadForm form,
                      Done<std::string> done) {
  core::check_namespace(request.namespace_);
  read_settled(std::move(done), [request = std::move(request), form](store::Reader& reader) {
    return to_json(reader.list_runs(request.namespace_, store::parse_list_filter(request.query),
                                    request.page_size, request.next_page_token),
                   form);
  });
}

void Reads::count_runs(CountWorkflowExecutionsRequest request, Done<std::string> done) {
  core::check_namespace(request.namespace_);
  read_settled(std::move(done), [request = std::move(request)](store::Reader& reader) {
    return to_json(CountWorkflowExecutionsResponse{
        reader.count_runs(request.namespace_, store::parse_list_filter(request.query))});
  });
}

void Reads::list_permits(ListPermitsRequest request, PayloadForm form, Done<std::string> done) {
  core::check_namespace(request.namespace_);
  if (!request.pool.empty()) core::check_pool_name(request.pool);
  store::HoldQuery query;
  query.pool = request.pool;
  query.slot = request.slot;
  query.state = hold_state(request.state);
  query.outcome = request.outcome;
  query.since = request.since;
  query.page_size = request.page_size;
  query.page_token = std::move(request.next_page_token);
  read_settled(std::move(done), [query, form](store::Reader& reader) {
    store::HoldPage page = reader.list_holds(query);
    return to_json(ListPermitsResponse{std::move(page.permits), std::move(page.next_page_token)},
                   form);
  });
}

void Reads::history(HistoryPart part, PayloadForm form, Done<std::string> done) {
  push(job_of(std::move(done), [part = std::move(part), form](store::Reader& reader) {
    store::Courtesy courtesy;
    return history_json(reader.histories(), part, form, [&courtesy] { courtesy.step(); });
  }));
}

}  // namespace permit::service
