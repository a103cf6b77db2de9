#include "orchestrator/http/metrics.h"

#include <map>

#include "orchestrator/protocol/version.h"

namespace permit::http {

namespace {

using service::Metrics;
using service::PoolGauges;
using service::PoolSeries;
using service::QueueGauges;
using service::Service;
using service::SlotGauge;
using service::WorkerTotals;
using Type = Exposition::Type;

// More slots than this have no series of their own.
constexpr std::size_t slots_max = 10'000;
constexpr const char* other_name = "_other";

const char* word_of(Outcome outcome) {
  static constexpr const char* words[] = {"unspecified", "released", "lease_expired",
                                          "holder_closed", "force_released"};
  return words[static_cast<std::size_t>(outcome)];
}

const char* word_of(std::size_t status) {
  static constexpr const char* words[] = {"unspecified",      "running",  "completed",
                                          "failed",           "canceled", "terminated",
                                          "continued_as_new", "timed_out"};
  return words[status];
}

const char* word_of(TaskQueueType type) {
  return type == TaskQueueType::activity ? "activity" : "workflow";
}

Labels in_namespace() { return Labels().add("namespace", "default"); }

Duration age(Time since, Time now) {
  return is_set(since) ? std::max(now - since, Duration(0)) : Duration(0);
}

// A family that has a sample of each pool, made by `sample(labels, thing)`.
template <class Series>
using WithLabels = std::vector<std::pair<Labels, const Series*>>;

template <class Key, class Series, class Label>
WithLabels<Series> with_labels(const service::SeriesTable<Key, Series>& table, const Label& label) {
  WithLabels<Series> all;
  for (const auto& [key, series] : table.named()) all.emplace_back(label(key), &series);
  return all;
}

Labels of_pool(const std::string& pool) { return in_namespace().add("pool", pool); }
Labels of_queue(const std::string& queue) { return in_namespace().add("task_queue", queue); }

// --- Pools ---

void write_pool_gauges(Exposition& out, Service& service) {
  const std::vector<PoolGauges> pools = service.meter().pool_gauges();
  std::vector<Labels> labels;
  labels.reserve(pools.size());
  for (const PoolGauges& pool : pools) labels.push_back(of_pool(pool.pool));
  const auto each = [&](const char* name, const char* help, const auto& value) {
    out.family(name, Type::gauge, help);
    for (std::size_t i = 0; i < pools.size(); ++i) out.sample(labels[i], value(pools[i]));
  };
  const Time now = service.time();
  each("permit_pool_slots", "Slots that the pool has.", [](const auto& p) { return p.slots; });
  each("permit_pool_slots_held", "Slots that somebody holds.",
       [](const auto& p) { return p.held; });
  each("permit_pool_waiters", "Who waits for a slot, in line or backing off.",
       [](const auto& p) { return p.waiting; });
  each("permit_pool_oldest_wait_seconds", "How long the one who has waited longest waits by now.",
       [&](const auto& p) { return age(p.oldest_wait, now); });
  each("permit_pool_oldest_hold_seconds", "How long the oldest hold has lasted by now.",
       [&](const auto& p) { return age(p.oldest_hold, now); });
}

void write_slots(Exposition& out, Service& service) {
  const std::vector<SlotGauge> slots = service.meter().slot_gauges(slots_max);
  std::vector<Labels> labels;
  labels.reserve(slots.size());
  for (const SlotGauge& slot : slots) {
    labels.push_back(of_pool(slot.pool.value).add("slot", slot.slot.value));
  }
  out.family("permit_slot_held", Type::gauge, "1 if somebody holds the slot.");
  for (std::size_t i = 0; i < slots.size(); ++i) {
    out.sample(labels[i], std::int64_t{is_set(slots[i].held_since)});
  }
  const Time now = service.time();
  out.family("permit_slot_hold_seconds", Type::gauge,
             "How long the slot has been held by now; 0 if it is free.");
  for (std::size_t i = 0; i < slots.size(); ++i) {
    out.sample(labels[i], age(slots[i].held_since, now));
  }
}

using Pools = WithLabels<PoolSeries>;

void write_pool_counters(Exposition& out, const Pools& pools) {
  const auto each = [&](const char* name, const char* help, std::int64_t PoolSeries::* counter) {
    out.family(name, Type::counter, help);
    for (const auto& [labels, pool] : pools) out.sample(labels, pool->*counter);
  };
  each("permit_acquires_total", "Slots that were granted, since the ledger began.",
       &PoolSeries::acquires);
  each("permit_acquire_conflicts_total", "Requests that found no slot for them at once.",
       &PoolSeries::conflicts);
  each("permit_acquire_timeouts_total", "Waits that ran out.", &PoolSeries::timeouts);
  each("permit_late_releases_total", "Releases of what had ended otherwise before.",
       &PoolSeries::late_releases);
  each("permit_possible_overlaps_total",
       "Holds that ended while their holder may not have known it.",
       &PoolSeries::possible_overlaps);
  out.family("permit_closed_total", Type::counter,
             "Holds that have ended, since the ledger began, and how.");
  for (const auto& [labels, pool] : pools) {
    for (const auto& [how, holds] : pool->closed) {
      Labels ended = labels;
      ended.add("outcome", word_of(how.first)).add("cause", how.second);
      out.sample(ended, holds);
    }
  }
}

void write_pool_times(Exposition& out, const Pools& pools) {
  out.family("permit_acquire_wait_seconds", Type::histogram,
             "How long the granted requests had stood in line.");
  for (const auto& [labels, pool] : pools) out.sample(labels, pool->wait);
  out.family("permit_hold_seconds", Type::histogram, "How long the holds have lasted that ended.");
  for (const auto& [labels, pool] : pools) {
    for (std::size_t outcome = 1; outcome < pool->hold.size(); ++outcome) {
      if (pool->hold[outcome].count() == 0) continue;
      Labels ended = labels;
      ended.add("outcome", word_of(static_cast<Outcome>(outcome)));
      out.sample(ended, pool->hold[outcome]);
    }
  }
}

void write_pools(Exposition& out, Service& service) {
  write_pool_gauges(out, service);
  const auto& table = service.meter().metrics.pools;
  Pools pools = with_labels(table, [](const PoolName& name) { return of_pool(name.value); });
  if (table.other() != nullptr) pools.emplace_back(of_pool(other_name), table.other());
  write_pool_counters(out, pools);
  write_pool_times(out, pools);
  out.family("permit_lease_lateness_seconds", Type::histogram,
             "How long after its deadline a lease was ended.");
  out.sample(Labels(), service.meter().metrics.lease_lateness);
}

// --- Workflows, their tasks and queues ---

void write_workflows(Exposition& out, const Metrics& metrics) {
  using Series = service::WorkflowTypeSeries;
  const auto of_type = [](const std::string& type) {
    return in_namespace().add("workflow_type", type);
  };
  WithLabels<Series> types = with_labels(metrics.workflow_types, of_type);
  if (const Series* other = metrics.workflow_types.other()) {
    types.emplace_back(of_type(other_name), other);
  }
  out.family("permit_workflow_started_total", Type::counter, "Runs that were started.");
  for (const auto& [labels, type] : types) out.sample(labels, type->started);
  out.family("permit_workflow_closed_total", Type::counter, "Runs that have closed, and how.");
  for (const auto& [labels, type] : types) {
    for (std::size_t status = 0; status < type->closed.size(); ++status) {
      if (type->closed[status] == 0) continue;
      Labels closed = labels;
      out.sample(closed.add("status", word_of(status)), type->closed[status]);
    }
  }
  out.family("permit_workflow_endtoend_latency_seconds", Type::histogram,
             "How long the runs took that have closed.");
  for (const auto& [labels, type] : types) out.sample(labels, type->end_to_end);
  out.family("permit_workflow_runs_open", Type::gauge, "Runs that are open, permits included.");
  out.sample(Labels(), metrics.runs_open);
}

using QueueSeries = service::TaskQueueSeries;

std::vector<std::pair<service::QueueLabel, const QueueSeries*>> queues_of(const Metrics& metrics) {
  std::vector<std::pair<service::QueueLabel, const QueueSeries*>> queues;
  for (const auto& [label, series] : metrics.queues.named()) queues.emplace_back(label, &series);
  if (const QueueSeries* other = metrics.queues.other()) {
    queues.push_back({{TaskQueueType::workflow, other_name}, other});
  }
  return queues;
}

void write_task_latencies(Exposition& out, const Metrics& metrics) {
  const auto queues = queues_of(metrics);
  const auto each = [&](const char* name, const char* help, TaskQueueType type) {
    out.family(name, Type::histogram, help);
    for (const auto& [label, queue] : queues) {
      if (label.type == type) out.sample(of_queue(label.name), queue->schedule_to_start);
    }
  };
  each("permit_workflow_task_schedule_to_start_latency_seconds",
       "How long workflow tasks waited for a worker.", TaskQueueType::workflow);
  each("permit_activity_schedule_to_start_latency_seconds",
       "How long activity tasks waited for a worker.", TaskQueueType::activity);
  const auto count = [&](const char* name, const char* help, std::int64_t QueueSeries::* counter) {
    out.family(name, Type::counter, help);
    for (const auto& [label, queue] : queues) {
      out.sample(of_queue(label.name).add("kind", word_of(label.type)), queue->*counter);
    }
  };
  count("permit_poll_success_total", "Polls that got a task.", &QueueSeries::polls_served);
  count("permit_poll_timeouts_total", "Polls that were answered with nothing.",
        &QueueSeries::polls_timed_out);
}

void write_queue_gauges(Exposition& out, Service& service) {
  const std::vector<QueueGauges> queues = service.queue_gauges();
  const Time now = service.time();
  const auto each = [&](const char* name, const char* help, const auto& value) {
    out.family(name, Type::gauge, help);
    for (const QueueGauges& queue : queues) {
      const Labels labels = of_queue(queue.queue.name).add("kind", word_of(queue.queue.type));
      out.sample(labels, value(queue));
    }
  };
  each("permit_task_queue_backlog", "Tasks that wait for a worker.",
       [](const auto& queue) { return queue.backlog; });
  each("permit_task_queue_backlog_age_seconds", "How long the oldest of them has waited by now.",
       [&](const auto& queue) { return age(queue.oldest_task, now); });
  each("permit_task_queue_pollers", "Workers that polled in the last 70 s.",
       [](const auto& queue) { return queue.pollers; });
}

void write_failures(Exposition& out, const Metrics& metrics) {
  using Series = service::ActivitySeries;
  const auto of_activity = [](const Metrics::ActivityLabel& label) {
    return of_queue(label.first).add("activity_type", label.second);
  };
  WithLabels<Series> activities = with_labels(metrics.activities, of_activity);
  if (const Series* other = metrics.activities.other()) {
    activities.emplace_back(of_activity({other_name, other_name}), other);
  }
  out.family("permit_activity_heartbeat_timeouts_total", Type::counter,
             "Attempts whose worker gave no sign of life for too long.");
  for (const auto& [labels, series] : activities) out.sample(labels, series->heartbeat_timeouts);
  out.family("permit_activity_execution_failed_total", Type::counter,
             "Attempts that their worker reported as failed.");
  for (const auto& [labels, series] : activities) out.sample(labels, series->failures);

  const auto of_failure = [](const Metrics::TaskFailureLabel& label) {
    return of_queue(label.first).add("failure_reason", label.second);
  };
  out.family("permit_workflow_task_execution_failed_total", Type::counter,
             "Workflow tasks that failed; nondeterminism: code that does not fit its history.");
  for (const auto& [label, count] : metrics.task_failures.named()) {
    out.sample(of_failure(label), count);
  }
  if (const std::int64_t* other = metrics.task_failures.other()) {
    out.sample(of_failure({other_name, other_name}), *other);
  }
}

// What workers tell of themselves with their heartbeats.
void write_workers(Exposition& out, const Service& service) {
  constexpr std::size_t queues_max = 1'000;
  std::map<std::string, WorkerTotals> queues;
  for (const auto& [name, totals] : service.worker_totals()) {
    queues[queues.size() < queues_max ? name : std::string(other_name)].add(totals);
  }
  const auto slots = [&](const char* name, const char* help, auto value) {
    out.family(name, Type::gauge, help);
    for (const auto& [queue, totals] : queues) {
      out.sample(of_queue(queue).add("worker_type", "workflow"), value(totals.workflow));
      out.sample(of_queue(queue).add("worker_type", "activity"), value(totals.activity));
    }
  };
  slots("permit_worker_task_slots_available", "Tasks that live workers could take besides.",
        [](const WorkerTotals::Slots& of) { return of.available; });
  slots("permit_worker_task_slots_used", "Tasks that live workers have.",
        [](const WorkerTotals::Slots& of) { return of.used; });
  const auto each = [&](const char* name, Type type, const char* help,
                        std::int64_t WorkerTotals::* value) {
    out.family(name, type, help);
    for (const auto& [queue, totals] : queues) {
      // The others' sum falls when one of them goes, which a counter must not.
      if (type == Type::counter && queue == other_name) continue;
      out.sample(of_queue(queue), totals.*value);
    }
  };
  each("permit_sticky_cache_size", Type::gauge, "Runs that live workers keep in memory.",
       &WorkerTotals::cached_runs);
  each("permit_sticky_cache_hit_total", Type::counter, "Tasks of runs that a worker had kept.",
       &WorkerTotals::cache_hits);
  each("permit_sticky_cache_miss_total", Type::counter,
       "Tasks of runs that a worker had to replay.", &WorkerTotals::cache_misses);
  out.family("permit_workers", Type::gauge, "Workers by how they are.");
  for (const auto& [queue, totals] : queues) {
    out.sample(of_queue(queue).add("status", "running"), totals.running);
    out.sample(of_queue(queue).add("status", "shutting_down"), totals.shutting_down);
    out.sample(of_queue(queue).add("status", "silent"), totals.silent);
  }
}

// --- The store and the engine ---

void write_store(Exposition& out, const MetricSources& sources) {
  const Metrics& metrics = sources.service.meter().metrics;
  const service::Reads& reads = sources.reads;
  const Labels commit = Labels().add("operation", "commit");
  const Labels read = Labels().add("operation", "read");
  const auto committed = static_cast<std::int64_t>(metrics.commit_latency.count());
  out.family("permit_persistence_requests_total", Type::counter,
             "Commits, and reads of lists and of the ledger.");
  out.sample(commit, committed + metrics.commits_failed);
  out.sample(read, static_cast<std::int64_t>(reads.latency().count()));
  out.family("permit_persistence_errors_total", Type::counter, "Those of them that failed.");
  out.sample(commit, metrics.commits_failed);
  out.sample(read, reads.failures());
  out.family("permit_persistence_latency_seconds", Type::histogram, "How long they took.");
  out.sample(commit, metrics.commit_latency);
  out.sample(read, reads.latency());
  out.family("permit_store_bytes", Type::gauge, "Size of the database, without its log.");
  out.sample(Labels(), sources.service.store_bytes());
  out.family("permit_store_wal_bytes", Type::gauge, "Size of its write-ahead log.");
  out.sample(Labels(), sources.service.wal_bytes());
  out.family("permit_batch_requests", Type::histogram, "Requests that were committed together.");
  const service::BatchSizes& sizes = metrics.batch_sizes;
  out.histogram(Labels(), service::BatchSizes::bounds, sizes.counts(), sizes.requests());
}

void write_engine(Exposition& out, const MetricSources& sources) {
  Service& service = sources.service;
  const auto gauge = [&](const char* name, const char* help, std::size_t value) {
    out.family(name, Type::gauge, help);
    out.sample(Labels(), static_cast<std::int64_t>(value));
  };
  gauge("permit_timers_pending", "Open runs to which time will do something.",
        static_cast<std::size_t>(service.meter().metrics.runs_due));
  out.family("permit_timer_lateness_seconds", Type::histogram,
             "How long after it was due a timer, timeout or lease was dealt with.");
  out.sample(Labels(), service.meter().metrics.timer_lateness);
  gauge("permit_runs_cached", "Runs whose state is in memory.", service.runs_cached());
  gauge("permit_runs_cached_bytes", "About how much memory they take.", service.run_bytes_cached());
  gauge("permit_event_streams", "Event streams that are open.", sources.event_streams);
  const auto since =
      std::chrono::duration<double>(service.meter().metrics.up_since.time_since_epoch());
  out.family("permit_up_since_seconds", Type::gauge, "When the server was started, since 1970.");
  out.sample(Labels(), since.count());
  out.family("permit_build_info", Type::gauge, "Which build this is; always 1.");
  out.sample(Labels().add("version", version).add("compiler", compiler), std::int64_t{1});
}

// --- HTTP ---

void write_requests(Exposition& out, const RequestMetrics& requests) {
  const auto of_route = [](const RequestMetrics::Route& route) {
    Labels labels;
    return labels.add("http_request_method", route.method).add("http_route", route.pattern);
  };
  out.family("http_server_request_duration_seconds", Type::histogram,
             "How long requests took until they were answered, without those that wait.");
  for (const RequestMetrics::Route& route : requests.routes()) {
    for (const RequestMetrics::Answers& answers : route.answers) {
      Labels labels = of_route(route);
      labels.add("http_response_status_code", std::to_string(answers.status));
      out.sample(labels, answers.durations);
    }
  }
  out.family("http_server_active_requests", Type::gauge,
             "Requests that are being answered, without those that wait.");
  out.sample(Labels(), requests.active);
  out.family("permit_long_poll_duration_seconds", Type::histogram,
             "How long those waited that wait: for a task, a slot, an event, a query's answer.");
  for (const RequestMetrics::Route& route : requests.routes()) {
    if (route.long_polls.count() > 0) out.sample(of_route(route), route.long_polls);
  }
  out.family("permit_long_polls", Type::gauge, "Requests that wait at the moment.");
  out.sample(Labels(), requests.long_polls);
}

}  // namespace

std::string metrics_text(const MetricSources& sources, Exposition::Format format) {
  static std::size_t size_before = 0;
  Exposition out(format, size_before + size_before / 16);
  Service& service = sources.service;
  write_pools(out, service);
  if (sources.per_slot) write_slots(out, service);
  write_workflows(out, service.meter().metrics);
  write_task_latencies(out, service.meter().metrics);
  write_queue_gauges(out, service);
  write_failures(out, service.meter().metrics);
  write_workers(out, service);
  write_store(out, sources);
  write_engine(out, sources);
  write_requests(out, sources.requests);
  write_process_metrics(out);
  std::string text = out.finish();
  size_before = text.size();
  return text;
}

}  // namespace permit::http
