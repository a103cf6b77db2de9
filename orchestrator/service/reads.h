// Lists, counts, the ledger and large pages of histories: reads that may take a while, on a thread
// of their own with a read-only connection, so that no start waits behind a list; it yields to the
// engine thread where there are not enough cores. Jobs go in and finished answers come back through
// queues; nothing else is shared but records of commits, which do not change any more. A list waits
// until what was committed before it is in the tables. A database in memory has one connection
// only, and then the reads run on the engine thread, bounded in time like the others.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "orchestrator/protocol/json.h"
#include "orchestrator/service/history_part.h"
#include "orchestrator/service/service.h"
#include "orchestrator/store/reader.h"

namespace permit::service {

class Reads {
 public:
  // Runs something on the engine thread, soon. Called from the reader thread.
  using Post = std::function<void(std::function<void()>)>;

  // `log` is used on the engine thread.
  Reads(store::Store& store, const store::Database::Options& options, Post post, Log& log);
  ~Reads();  // after the job at hand; jobs behind it are not answered
  Reads(const Reads&) = delete;
  Reads& operator=(const Reads&) = delete;

  // For the engine thread, between batches. Answered with the JSON of
  // ListWorkflowExecutionsResponse, CountWorkflowExecutionsResponse and ListPermitsResponse: a long
  // list takes as long to write as to read.
  void list_runs(ListWorkflowExecutionsRequest request, PayloadForm form, Done<std::string> done);
  void count_runs(CountWorkflowExecutionsRequest request, Done<std::string> done);
  void list_permits(ListPermitsRequest request, PayloadForm form, Done<std::string> done);
  // A page of GetWorkflowExecutionHistoryResponse, which waits for no other commits. Not while
  // is_full(), when lists are refused.
  void history(HistoryPart part, PayloadForm form, Done<std::string> done);
  bool is_full();

  // How long the answers took to read, and how many reads failed by no fault of who asked.
  const Histogram<histogram_bounds::store>& latency() const { return latency_; }
  std::int64_t failures() const { return failures_; }

 private:
  using Job = std::function<std::function<void()>(store::Reader&)>;
  using Read = std::function<std::string(store::Reader&)>;

  Job job_of(Done<std::string> done, Read read);
  // When what has been committed is in the tables.
  void read_settled(Done<std::string> done, Read read);
  void push(Job job);
  void thread_main(const store::Database::Options& options);
  void answer_jobs(store::Reader& reader);

  store::Store& store_;
  const Post post_;
  Log& log_;
  std::size_t unsettled_ = 0;  // jobs that wait for the tables; the engine thread's, like these two
  Histogram<histogram_bounds::store> latency_;
  std::int64_t failures_ = 0;
  std::optional<store::Reader> inline_;  // for a database in memory

  std::mutex mutex_;  // guards the next two
  std::deque<Job> jobs_;
  bool stopping_ = false;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace permit::service
