// The server's API: one method a call, each decided within a batch and answered after the batch's
// commit. Belongs to the engine thread. What is asked before run_batch() is one batch: first what
// time has brought due, then the requests in order of arrival, one commit, then the answers.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <variant>

#include "orchestrator/core/activity_transitions.h"
#include "orchestrator/core/limits.h"
#include "orchestrator/protocol/api_keys.h"
#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/log.h"
#include "orchestrator/protocol/pools.h"
#include "orchestrator/protocol/request.h"
#include "orchestrator/protocol/server_info.h"
#include "orchestrator/protocol/stream.h"
#include "orchestrator/service/api_keys.h"
#include "orchestrator/service/change.h"
#include "orchestrator/service/clock.h"
#include "orchestrator/service/identifiers.h"
#include "orchestrator/service/job.h"
#include "orchestrator/service/journal.h"
#include "orchestrator/service/meter.h"
#include "orchestrator/service/pools.h"
#include "orchestrator/service/recent_holds.h"
#include "orchestrator/service/waits.h"
#include "orchestrator/service/workers.h"

namespace permit::service {

struct Options {
  core::Limits limits;
  std::size_t cache_bytes_max = std::size_t{32} * 1024 * 1024;
  Duration retention = std::chrono::hours(72);
  int holds_kept = 100;  // of a slot, in the ledger
  std::size_t polls_parked_max = 20'000;
  Duration poll_wait_max = std::chrono::seconds(60);
  std::size_t batch_requests_max = 1'000;
  std::uint64_t seed = 0;    // of ids, nonces and random choices; 0: from the kernel
  std::string token_secret;  // makes holders' tokens; empty: random, so good until the end of this
  bool check_every_batch = false;  // compare what a batch touched with the database
  Log* log = nullptr;              // outlives it; none: what goes wrong is said on std::cerr
};

class Service {
 public:
  Service(store::Store& store, Clock& clock, Options options);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Who makes the calls that follow: by which trace, if any, over which connection (0: none), and
  // whether they may take a permit from whoever has its token.
  struct Caller {
    std::shared_ptr<const TraceContext> trace{};
    std::uint64_t connection = 0;
    bool is_admin = true;
  };
  void set_caller(Caller caller) { caller_ = std::move(caller); }

  // --- Workflows ---
  void start(StartWorkflowExecutionRequest request, Done<StartWorkflowExecutionResponse> done);
  void signal(SignalWorkflowExecutionRequest request, Done<EmptyResponse> done);
  void signal_with_start(SignalWithStartWorkflowExecutionRequest request,
                         Done<SignalWithStartWorkflowExecutionResponse> done);
  void request_cancel(RequestCancelWorkflowExecutionRequest request, Done<EmptyResponse> done);
  void terminate(TerminateWorkflowExecutionRequest request, Done<EmptyResponse> done);
  void describe(DescribeWorkflowExecutionRequest request,
                Done<DescribeWorkflowExecutionResponse> done);
  // May wait for new events; the id is for forget_poll().
  std::int64_t history(GetWorkflowExecutionHistoryRequest request, Done<HistoryPart> done);
  // As JSON, for small parts.
  Result<std::string> written_history(const HistoryPart& part, PayloadForm form);

  // Waits for a worker's answer, 10 s at most; the id is for forget_poll().
  std::int64_t query(QueryWorkflowRequest request, Done<QueryWorkflowResponse> done);

  // --- Workers ---
  // Parks until there is a task or the wait is over. The id is for forget_poll().
  std::int64_t poll_workflow_task(PollWorkflowTaskQueueRequest request,
                                  Done<PollWorkflowTaskQueueResponse> done);
  void complete_workflow_task(RespondWorkflowTaskCompletedRequest request,
                              Done<RespondWorkflowTaskCompletedResponse> done);
  void fail_workflow_task(RespondWorkflowTaskFailedRequest request, Done<EmptyResponse> done);
  std::int64_t poll_activity_task(PollActivityTaskQueueRequest request,
                                  Done<PollActivityTaskQueueResponse> done);
  void heartbeat(RecordActivityTaskHeartbeatRequest request,
                 Done<RecordActivityTaskHeartbeatResponse> done);
  void heartbeat_by_id(RecordActivityTaskHeartbeatByIdRequest request,
                       Done<RecordActivityTaskHeartbeatResponse> done);
  void complete_activity(RespondActivityTaskCompletedRequest request, Done<EmptyResponse> done);
  void complete_activity_by_id(RespondActivityTaskCompletedByIdRequest request,
                               Done<EmptyResponse> done);
  void fail_activity(RespondActivityTaskFailedRequest request, Done<EmptyResponse> done);
  void fail_activity_by_id(RespondActivityTaskFailedByIdRequest request, Done<EmptyResponse> done);
  void cancel_activity(RespondActivityTaskCanceledRequest request, Done<EmptyResponse> done);
  void cancel_activity_by_id(RespondActivityTaskCanceledByIdRequest request,
                             Done<EmptyResponse> done);
  void complete_query(RespondQueryTaskCompletedRequest request, Done<EmptyResponse> done);
  void reset_sticky(ResetStickyTaskQueueRequest request, Done<EmptyResponse> done);
  void shutdown_worker(ShutdownWorkerRequest request, Done<EmptyResponse> done);
  void record_worker_heartbeat(RecordWorkerHeartbeatRequest request, Done<EmptyResponse> done);
  void list_workers(ListWorkersRequest request, Done<ListWorkersResponse> done);
  void describe_worker(DescribeWorkerRequest request, Done<DescribeWorkerResponse> done);
  void describe_task_queue(DescribeTaskQueueRequest request, Done<DescribeTaskQueueResponse> done);
  void list_task_queues(ListTaskQueuesRequest request, Done<ListTaskQueuesResponse> done);
  // The peer has gone: whatever it was waiting for here is not handed to it. Also for the ids of
  // acquire() and history waits.
  void forget_poll(std::int64_t id);
  // Who polled by this connection may have left with it.
  void connection_closed(std::uint64_t connection, Matching::EndedBy end);

  // --- Pools and holders that are not workflows ---
  void list_pools(ListPoolsRequest request, Done<ListPoolsResponse> done);
  void describe_pool(PoolRequest request, Done<PoolInfo> done);
  void set_pool(SetPoolRequest request, Done<PoolInfo> done);
  void delete_pool(PoolRequest request, Done<EmptyResponse> done);
  void drain(DrainRequest request, Pools::Drain drain, Done<PoolInfo> done);
  void list_waiters(PoolRequest request, Done<ListWaitersResponse> done);
  void why(WaiterRequest request, Done<WhyResponse> done);
  void remove_waiter(RemoveWaiterRequest request, Done<EmptyResponse> done);
  // `on_wait` is called if it stands in line, and its answer comes later.
  std::int64_t acquire(AcquireRequest request, Done<AcquireResponse> done,
                       std::function<void()> on_wait = {});
  void renew(HolderRequest request, Done<RenewResponse> done);
  void release(HolderRequest request, Done<PermitInfo> done);
  void force_release(ForceReleaseRequest request, Done<PermitInfo> done);
  void describe_permit(PermitQuery request, Done<PermitInfo> done);
  void status(GetServerStatusRequest request, Done<ServerStatus> done);
  // Whether it can do its work, check by check; tries to write if that did not work the last time.
  void health(Done<Health> done);

  // --- API keys ---
  void create_api_key(CreateApiKeyRequest request, Done<CreateApiKeyResponse> done);
  void list_api_keys(ListApiKeysRequest request, Done<ListApiKeysResponse> done);
  void revoke_api_key(RevokeApiKeyRequest request, Done<ApiKeyInfo> done);
  ApiKeys& api_keys() { return api_keys_; }

  // --- The engine's loop ---
  bool has_work() const { return !jobs_.empty(); }
  // One batch, if there is anything to do. Throws StoreFailed or OwnershipLost: the process must
  // then stop without answering. Returns whether it did anything.
  bool run_batch();
  // When run_batch() has something to do although nobody asks: by the server's clock, and for waits
  // of pollers by the real one.
  Time next_due();
  std::optional<std::chrono::steady_clock::time_point> next_poll_deadline() const;
  // Answers polls whose wait is over, with nothing. `all`: every one, at a graceful stop.
  void expire_polls(std::chrono::steady_clock::time_point now);
  void answer_all_polls();

  Time now() const { return now_; }
  Time began() const { return began_; }  // when this process did
  // Why nothing can be written, as far as the disk says; empty: nothing is known to be in the way.
  std::string obstacle() const { return store_.obstacle(); }
  const Options& options() const { return options_; }
  // Whether permits are held, or their tasks wait, and nobody has polled their queue for a while:
  // then only the backstop ends a permit whose lease runs out.
  bool permits_unserved() { return unserved_since(permit_queue_).has_value(); }
  bool permits_served() const { return !matching_.deserted_since(permit_queue_, time()); }
  Log& log() { return *log_; }
  // A run whose workflow task a worker has, or that is offered where a worker polls; if any.
  std::optional<WorkflowExecution> busy_workflow_task();

  // --- Watching; between batches, of what is committed. `only`: one pool; empty: all. ---
  std::int64_t position() const { return journal_.position(); }
  Time time() const { return std::max(now_, clock_.now()); }
  StreamSnapshot snapshot(const PoolName& only);  // but for queues and alerts
  // nullopt: too long ago to be remembered; begin with a snapshot.
  std::optional<StreamChanges> changes_since(std::int64_t position, const PoolName& only);
  std::vector<TaskQueueInfo> queues();
  std::vector<Alert> alerts();
  // By task queue; for metrics.
  std::map<std::string, WorkerTotals> worker_totals() const { return workers_.totals(time()); }

  // Compares everything in memory with the database; throws InvariantViolated.
  void check_everything();

  // --- Metrics; between batches, like watching ---
  Meter& meter() { return meter_; }
  std::vector<QueueGauges> queue_gauges();
  std::size_t runs_cached() const { return cache_.size(); }
  std::size_t run_bytes_cached() const { return cache_.bytes(); }
  std::int64_t store_bytes() const { return store_.bytes(); }
  std::int64_t wal_bytes() const { return store_.wal_bytes(); }

 private:
  struct Read {
    std::unique_ptr<Job> job;
    std::size_t reply = 0;  // its place in replies_
  };

  template <class T, class Decide>
  void submit(const Done<T>& done, Decide decide) {
    jobs_.push_back(std::make_unique<JobOf<T, Decide>>(done, std::move(decide)));
    jobs_.back()->trace = caller_.trace;
  }
  // For what changes nothing and answers only `done`.
  template <class T, class Decide>
  void submit_read(const Done<T>& done, Decide decide) {
    submit(done, std::move(decide));
    jobs_.back()->reads_only = true;
  }
  template <class T, class Value>
  void reply(const Done<T>& done, Value&& value) {
    replies_.push_back(std::make_unique<ReplyOf<T>>(done, std::forward<Value>(value)));
  }
  template <class T>
  void refuse(const Done<T>& done, Error error) {
    replies_.push_back(std::make_unique<ReplyOf<T>>(done, std::move(error)));
  }
  void run_job(Job& job);
  void fire_due();
  void fire_due_of(RunNumber number);
  void fire_due_of_pools();
  void retain();
  void trim_ledger();
  void finish(Change& change);
  void answer_matches(const Change& change);
  void wake_history_waits(const Change& change);
  void answer_settled(const std::vector<Pools::Settled>& settled);
  void commit_batch();
  void fail_batch(const Error& error);
  void note_disk(bool is_full);
  void complain(std::string_view event, const std::exception& bug);
  void carry_trace(std::optional<Header>& header) const;
  void recover();
  void check_batch();
  void check_tickets();
  void load_offers();

  core::RunState& target(Change& change, const std::string& namespace_,
                         const WorkflowExecution& execution, const RunId& first_run_id = RunId());
  core::RunState& open_target(Change& change, const std::string& namespace_,
                              const WorkflowExecution& execution,
                              const RunId& first_run_id = RunId());
  StartWorkflowExecutionResponse start_in(Change& change, StartWorkflowExecutionRequest& request);
  bool is_repeated(const core::RunState& run, const StartWorkflowExecutionRequest& request);
  PollWorkflowTaskQueueResponse task_for(const core::RunState& state);
  PollActivityTaskQueueResponse activity_for(const core::RunState& state, std::int64_t id);
  std::optional<HistoryPart> history_page(const GetWorkflowExecutionHistoryRequest& request,
                                          RunNumber number);
  HistoryPart history_part(const core::RunState& run, std::int64_t from_event_id,
                           std::int64_t to_event_id);
  std::string history_text(const core::RunState& run, std::int64_t from_event_id,
                           std::int64_t to_event_id);
  static Error run_not_found(const WorkflowExecution& execution);
  void reject_completion(const RespondWorkflowTaskCompletedRequest& request,
                         const core::CommandRejected& rejected);
  // What is to be done to a pending activity once it is found; finishes the change and replies.
  using ActivityAction = std::function<void(Change&, core::RunState&, core::ActivityRef)>;
  void with_activity(const Bytes& bytes, const ActivityAction& act);
  void with_activity_by_id(const std::string& namespace_, const WorkflowExecution& execution,
                           const std::string& activity_id, const ActivityAction& act);
  ActivityAction heartbeat_action(std::optional<Payloads> details,
                                  Done<RecordActivityTaskHeartbeatResponse> done);
  ActivityAction complete_action(std::optional<Payloads> result, std::string identity,
                                 Done<EmptyResponse> done);
  ActivityAction fail_action(std::optional<Failure> failure, std::optional<Payloads> last_details,
                             std::string identity, Done<EmptyResponse> done);
  ActivityAction cancel_action(std::optional<Payloads> details, std::string identity,
                               Done<EmptyResponse> done);
  void hand_out_queries(const core::RunState& run);
  void offer_query_again(const core::RunState& run, std::int64_t id);
  void offer_queries_again(const Error& error);
  PollWorkflowTaskQueueResponse query_task_for(const core::RunState& run, std::int64_t id);
  std::optional<PollWorkflowTaskQueueResponse> take_query(const Offer& offer);
  void expire_queries(std::chrono::steady_clock::time_point now);
  void note_goodbye(const ShutdownWorkerRequest& request);
  void note_key(const store::ApiKeyRow& key);
  void write_api_keys(const std::function<void(store::Store&)>& write);
  void drop_lost_acquire_waits(const Error& error);
  void drop_lost_history_waits(const Error& error);
  void refuse_polls(const Error& error);
  void answer_polls(const std::vector<Poller>& pollers);
  void leave_acquire_wait(std::int64_t id);
  void expire_acquire_waits(std::chrono::steady_clock::time_point now);
  PoolInfo pool_info(Change& change, const Pools::Pool& pool);
  PoolInfo pool_summary(const Pools::Pool& pool);
  SlotInfo slot_info(Change& change, const Pools::Pool& pool, const SlotSetting& slot);
  PermitInfo permit_info(Change& change, const core::RunState& permit);
  static std::vector<HolderActivity> work_under(const core::RunState& holder, const RunId& permit);
  AcquireResponse acquire_response(const Waiter& ticket, const PoolName& pool);
  void load_recent_holds();
  void collect_news(const Change& change);
  void note_permits_of(const core::RunState& holder);
  void tell_news();
  void remember_holds(const News& news);
  PoolLine line_info(const Pools::Pool& pool);
  TaskQueueInfo queue_info(const Matching::QueueKey& queue);
  bool stands(const Matching::QueueKey& queue, const Offer& offer);
  std::optional<Time> unserved_since(const Matching::QueueKey& queue);
  std::string normal_queue(const Matching::QueueKey& key, const std::optional<Offer>& oldest);
  void add_queue_alerts(std::vector<Alert>& alerts);
  void add_pool_alerts(const Pools::Pool& pool, std::vector<Alert>& alerts);
  std::string token_for(std::int64_t ticket, const std::string& request_id) const;
  core::RunState& granted_to(Change& change, const HolderRequest& request);

  store::Store& store_;
  Clock& clock_;
  Options options_;               // constant after construction
  std::unique_ptr<Log> own_log_;  // if none was given
  Log* log_;
  const Matching::QueueKey permit_queue_;
  Identifiers ids_;
  RunCache cache_;
  Matching matching_;
  Workers workers_;
  Pools pools_;
  ApiKeys api_keys_;
  Parts parts_;
  Meter meter_;

  Time now_{};
  Time horizon_{};  // no run is due before this
  Time retained_{};
  PoolName trimmed_last_;
  Time retry_at_{};            // after a failed commit, time's work waits this long
  bool writing_ = false;       // a change's rows are going into the batch
  bool disk_is_full_ = false;  // so said the last write
  Caller caller_;              // of the calls that are made now
  std::shared_ptr<const TraceContext> deciding_;  // trace of the request that is being decided
  Time began_{};
  News news_;  // of the batch
  Journal journal_;
  RecentHolds recent_holds_;
  std::deque<std::unique_ptr<Job>> jobs_;
  std::vector<std::unique_ptr<Reply>> replies_;
  std::vector<Read> reads_;  // of the batch
  std::int64_t last_wait_id_ = 0;
  std::set<RunNumber> stuck_;          // broken by a bug; time passes them by until a restart
  std::set<RunNumber> started_tasks_;  // runs whose workflow task a worker has
  std::set<std::int64_t> gone_early_;  // forgotten before their request was decided
  std::unordered_map<std::int64_t, ParkedPoll<PollWorkflowTaskQueueResponse>> workflow_polls_;
  std::unordered_map<std::int64_t, ParkedPoll<PollActivityTaskQueueResponse>> activity_polls_;
  std::map<std::int64_t, HistoryWait> history_waits_;
  std::multimap<RunNumber, std::int64_t> history_waits_by_run_;
  std::map<std::int64_t, AcquireWait> acquire_waits_;
  std::map<std::int64_t, QueryWait> query_waits_;
  std::set<RunNumber> unchecked_;  // touched by the batch; with check_every_batch only
};

}  // namespace permit::service
