// permit worker list | describe, permit task-queue list | describe: who polls for what.
#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "apps/cli/command.h"
#include "apps/cli/duration_text.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/session.h"
#include "orchestrator/protocol/json_codec.h"
#include "orchestrator/protocol/nearest.h"

namespace permit::cli {

// As JSON shows it.
struct WorkerLine {
  std::string identity;
  Time last_seen{};
  bool silent = false;
  std::optional<WorkerHeartbeat> worker_heartbeat;  // absent: it is known by its polls only
  std::vector<TaskQueueInfo> queues;                // with this worker as their only poller
};
BOOST_DESCRIBE_STRUCT(WorkerLine, (), (identity, last_seen, silent, worker_heartbeat, queues))

struct WorkerLines {
  std::vector<WorkerLine> workers;
};
BOOST_DESCRIBE_STRUCT(WorkerLines, (), (workers))

}  // namespace permit::cli

namespace permit {
PERMIT_JSON(cli::WorkerLine)
PERMIT_JSON(cli::WorkerLines)
}  // namespace permit

namespace permit::cli {

namespace {

using Align = Table::Align;

// By name. Those of one worker's own, on which it gets the next tasks of the runs it keeps, are
// left out; our workers' begin with "sticky:".
std::vector<TaskQueueInfo> shared_queues(Session& session) {
  std::vector<TaskQueueInfo> queues = session.pools().task_queues();
  std::erase_if(queues, [](const TaskQueueInfo& queue) {
    return queue.kind == "sticky" || queue.name.starts_with("sticky:");
  });
  std::sort(queues.begin(), queues.end(), [](const TaskQueueInfo& a, const TaskQueueInfo& b) {
    return std::tie(a.name, a.kind) < std::tie(b.name, b.kind);
  });
  return queues;
}

Time last_poll(const TaskQueueInfo& queue) {
  Time last{};
  for (const PollerInfo& poller : queue.pollers) last = std::max(last, poller.last_access_time);
  return last;
}

// Work that nobody takes.
bool is_deserted(const TaskQueueInfo& queue) { return queue.backlog > 0 && queue.pollers.empty(); }

[[noreturn]] void no_such(const std::string& what, const std::string& reason,
                          const std::string& name, const std::vector<std::string>& known) {
  const auto nearest = nearest_name(name, known);
  throw not_found(reason, "there is no " + what + " " + printable(name) +
                              (nearest ? "; did you mean " + *nearest + "?" : ""));
}

// "0.02", "12.5", "140"; nothing at all is "-".
std::string rate_text(double rate) {
  if (rate <= 0) return "-";
  char text[32];
  std::snprintf(text, sizeof text, rate < 10 ? "%.2f" : rate < 100 ? "%.1f" : "%.0f", rate);
  return text;
}

void print_queues(const Output& out, const std::vector<TaskQueueInfo>& queues, Time now) {
  Table table({{"TASK QUEUE"},
               {"TASKS OF"},
               {"BACKLOG", Align::right},
               {"OLDEST", Align::right},
               {"ADDED/S", Align::right},
               {"TAKEN/S", Align::right},
               {"WORKERS", Align::right},
               {"LAST POLL"}});
  for (const TaskQueueInfo& queue : queues) {
    table.add({{printable(queue.name, 60)},
               {queue.kind},
               {std::to_string(queue.backlog), is_deserted(queue) ? Style::yellow : Style::plain},
               {is_set(queue.oldest_task) ? show_duration(now - queue.oldest_task) : "-"},
               {rate_text(queue.added_per_second)},
               {rate_text(queue.dispatched_per_second)},
               {std::to_string(queue.pollers.size())},
               {out.moment(last_poll(queue), now)}});
  }
  out.table(table);
  for (const TaskQueueInfo& queue : queues) {
    if (!is_deserted(queue)) continue;
    out.text("no worker polls this queue: " + printable(queue.name, 60) + " (" +
             std::to_string(queue.backlog) + " " + queue.kind +
             (queue.backlog == 1 ? " task waits)" : " tasks wait)"));
  }
}

std::vector<std::string> lines_of(const std::vector<TaskQueueInfo>& queues) {
  std::vector<std::string> lines;
  lines.reserve(queues.size());
  for (const TaskQueueInfo& queue : queues) lines.push_back(to_json(queue));
  return lines;
}

int run_queue_list(Session& session) {
  const Output& out = session.out();
  const std::vector<TaskQueueInfo> queues = shared_queues(session);
  out.json(to_json(ListTaskQueuesResponse{queues}), lines_of(queues));
  if (queues.empty()) {
    out.text("Nothing polls, and nothing waits.");
  } else if (out.is_text()) {
    print_queues(out, queues, session.now());
  }
  return exit_ok;
}

int run_queue_describe(Session& session) {
  const Arguments& arguments = session.arguments();
  const Output& out = session.out();
  const std::string flag = arguments.text_or("task-queue", "");
  const std::string name = arguments.operand(0).empty() ? flag : arguments.operand(0);
  if (name.empty()) throw UsageError("which task queue? permit task-queue describe QUEUE");
  std::vector<std::string> known;
  std::vector<TaskQueueInfo> queues;
  for (TaskQueueInfo& queue : shared_queues(session)) {
    known.push_back(queue.name);
    if (queue.name == name) queues.push_back(std::move(queue));
  }
  if (queues.empty()) no_such("task queue", "TASK_QUEUE_NOT_FOUND", name, known);
  out.json(to_json(ListTaskQueuesResponse{queues}), lines_of(queues));
  if (!out.is_text()) return exit_ok;
  const Time now = session.now();
  print_queues(out, queues, now);
  for (const TaskQueueInfo& queue : queues) {
    for (const PollerInfo& poller : queue.pollers) {
      out.text("  " + queue.kind + " tasks: " + printable(poller.identity, 60) + ", " +
               out.moment(poller.last_access_time, now));
    }
  }
  return exit_ok;
}

// --- Workers: by their heartbeats, and those that send none by their polls ---

std::vector<WorkerInfo> heartbeats_of(Session& session) {
  ListWorkersRequest request;
  request.namespace_ = session.namespace_name();
  std::vector<WorkerInfo> workers;
  do {
    auto page = worker::call<ListWorkersResponse>(session.transport(), "ListWorkers", request);
    std::move(page.workers_info.begin(), page.workers_info.end(), std::back_inserter(workers));
    request.next_page_token = std::move(page.next_page_token);
  } while (!request.next_page_token.value.empty());
  return workers;
}

TaskQueueInfo polled_by(const TaskQueueInfo& queue, const PollerInfo& poller) {
  TaskQueueInfo one = queue;
  one.pollers = {poller};
  return one;
}

WorkerLine line_of(const WorkerInfo& worker, const std::vector<TaskQueueInfo>& queues) {
  const WorkerHeartbeat& heartbeat = worker.worker_heartbeat;
  WorkerLine line{
      heartbeat.worker_identity, heartbeat.heartbeat_time, worker.silent, heartbeat, {}};
  for (const TaskQueueInfo& queue : queues) {
    if (queue.name != heartbeat.task_queue) continue;
    for (const PollerInfo& poller : queue.pollers) {
      if (poller.identity == line.identity) line.queues.push_back(polled_by(queue, poller));
    }
  }
  return line;
}

std::vector<WorkerLine> workers_of(const std::vector<WorkerInfo>& heartbeats,
                                   const std::vector<TaskQueueInfo>& queues) {
  std::vector<WorkerLine> lines;
  std::set<std::pair<std::string, std::string>> told;  // identity and queue
  for (const WorkerInfo& worker : heartbeats) {
    lines.push_back(line_of(worker, queues));
    told.emplace(lines.back().identity, worker.worker_heartbeat.task_queue);
  }
  std::map<std::string, WorkerLine> others;
  for (const TaskQueueInfo& queue : queues) {
    for (const PollerInfo& poller : queue.pollers) {
      if (told.contains({poller.identity, queue.name})) continue;
      WorkerLine& worker = others[poller.identity];
      worker.identity = poller.identity;
      worker.last_seen = std::max(worker.last_seen, poller.last_access_time);
      worker.queues.push_back(polled_by(queue, poller));
    }
  }
  for (auto& [identity, worker] : others) lines.push_back(std::move(worker));
  std::stable_sort(lines.begin(), lines.end(), [](const WorkerLine& a, const WorkerLine& b) {
    return a.identity < b.identity;
  });
  return lines;
}

std::vector<WorkerLine> all_workers(Session& session) {
  // Heartbeats first: who comes in between is then known by its polls, not twice.
  const std::vector<WorkerInfo> heartbeats = heartbeats_of(session);
  return workers_of(heartbeats, shared_queues(session));
}

Table::Cell status_of(const WorkerLine& worker) {
  if (!worker.worker_heartbeat) return {"-"};
  if (worker.silent) return {"silent", Style::yellow};
  switch (worker.worker_heartbeat->status) {
    case WorkerStatus::running:
      return {"running", Style::green};
    case WorkerStatus::shutting_down:
      return {"shutting_down", Style::blue};
    case WorkerStatus::shutdown:
      return {"shutdown", Style::dim};
    case WorkerStatus::unspecified:
      break;
  }
  return {"-"};
}

// "4121@gpu-host"; with host and process behind it if the identity is another.
std::string name_of(const WorkerLine& worker) {
  const std::string identity = worker.identity.empty() ? "-" : printable(worker.identity, 60);
  if (!worker.worker_heartbeat) return identity;
  const WorkerHostInfo& host = worker.worker_heartbeat->host_info;
  const std::string place = host.process_id + "@" + host.host_name;
  if (place == "@" || place == worker.identity) return identity;
  return identity + " (" + printable(place, 60) + ")";
}

// What was built, or else what it was built with.
std::string version_of(const WorkerLine& worker) {
  if (!worker.worker_heartbeat) return "-";
  const WorkerHeartbeat& heartbeat = *worker.worker_heartbeat;
  const std::string& build = heartbeat.deployment_version.build_id;
  if (!build.empty()) return printable(build, 30);
  const std::string sdk = heartbeat.sdk_name + " " + heartbeat.sdk_version;
  return sdk == " " ? "-" : printable(sdk, 30);
}

std::string queues_of(const WorkerLine& worker) {
  std::set<std::string> names;
  if (worker.worker_heartbeat) names.insert(worker.worker_heartbeat->task_queue);
  for (const TaskQueueInfo& queue : worker.queues) names.insert(queue.name);
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return printable(text);
}

// "3/8": in use, of how many.
std::string slots_text(const std::optional<WorkerSlotsInfo>& slots) {
  if (!slots) return "-";
  const std::int64_t used = slots->current_used_slots;
  const std::int64_t available = slots->current_available_slots;
  return std::to_string(used) + "/" + (available < 0 ? "?" : std::to_string(used + available));
}

// How many of its tasks found their run kept; nothing if there were none.
std::optional<std::int64_t> hit_percent(const WorkerHeartbeat& heartbeat) {
  const std::int64_t hits = heartbeat.total_sticky_cache_hit.value;
  const std::int64_t tasks = hits + heartbeat.total_sticky_cache_miss.value;
  if (tasks <= 0) return std::nullopt;
  return 100 * hits / tasks;
}

std::string cache_text(const WorkerLine& worker) {
  if (!worker.worker_heartbeat || !worker.worker_heartbeat->workflow_task_slots_info) return "-";
  std::string text = std::to_string(worker.worker_heartbeat->current_sticky_cache_size);
  if (const auto percent = hit_percent(*worker.worker_heartbeat)) {
    text += " (" + std::to_string(*percent) + "%)";
  }
  return text;
}

int run_worker_list(Session& session) {
  const Output& out = session.out();
  const WorkerLines found{all_workers(session)};
  std::vector<std::string> lines;
  lines.reserve(found.workers.size());
  for (const WorkerLine& worker : found.workers) lines.push_back(to_json(worker));
  out.json(to_json(found), lines);
  if (!out.is_text()) return exit_ok;
  if (found.workers.empty()) {
    out.text("No worker is known.");
    return exit_ok;
  }
  const Time now = session.now();
  Table table({{"WORKER"},
               {"STATUS"},
               {"VERSION"},
               {"TASK QUEUES"},
               {"WORKFLOW", Align::right},
               {"ACTIVITY", Align::right},
               {"CACHE", Align::right},
               {"LAST SEEN"}});
  for (const WorkerLine& worker : found.workers) {
    const auto& heartbeat = worker.worker_heartbeat;
    table.add({{name_of(worker)},
               status_of(worker),
               {version_of(worker)},
               {queues_of(worker)},
               {heartbeat ? slots_text(heartbeat->workflow_task_slots_info) : "-"},
               {heartbeat ? slots_text(heartbeat->activity_task_slots_info) : "-"},
               {cache_text(worker)},
               {out.moment(worker.last_seen, now)}});
  }
  out.table(table);
  return exit_ok;
}

class WorkerPage {
 public:
  WorkerPage(const Output& out, const WorkerLine& worker, Time now)
      : out_(out), worker_(worker), now_(now) {}

  void print() const {
    const Table::Cell status = status_of(worker_);
    out_.text(out_.paint(printable(worker_.identity), Style::bold) + "  " +
              (status.text == "-" ? "" : out_.paint(status.text, status.style) + ", ") +
              "last seen " + out_.moment(worker_.last_seen, now_));
    if (worker_.worker_heartbeat) heartbeat(*worker_.worker_heartbeat);
    if (!worker_.queues.empty()) print_queues(out_, worker_.queues, now_);
  }

 private:
  void line(const std::string& name, const std::string& text) const {
    if (text.empty()) return;
    std::string padded = name;
    padded.resize(15, ' ');
    out_.text(out_.paint(padded, Style::dim) + text);
  }

  void heartbeat(const WorkerHeartbeat& told) const {
    const WorkerHostInfo& host = told.host_info;
    if (!host.host_name.empty() || !host.process_id.empty()) {
      line("Host", printable(host.host_name) + ", process " + printable(host.process_id));
    }
    if (is_set(told.start_time)) line("Started", out_.clock(told.start_time));
    line("Build", printable(told.deployment_version.build_id));
    line("SDK", printable(told.sdk_name + " " + told.sdk_version));
    line("Task queue", printable(told.task_queue));
    line("Workflow tasks", tasks(told.workflow_task_slots_info));
    line("Activity tasks", tasks(told.activity_task_slots_info));
    if (told.workflow_task_slots_info) line("Cache", cache(told));
    line("Instance", printable(told.worker_instance_key));
  }

  static std::string tasks(const std::optional<WorkerSlotsInfo>& slots) {
    if (!slots) return "";
    return slots_text(slots) + " slots in use, " +
           std::to_string(slots->total_processed_tasks.value) + " processed, " +
           std::to_string(slots->total_failed_tasks.value) + " of them failed";
  }

  static std::string cache(const WorkerHeartbeat& told) {
    const std::string kept = std::to_string(told.current_sticky_cache_size) + " runs kept";
    const auto percent = hit_percent(told);
    if (!percent) return kept;
    return kept + ", and found by " + std::to_string(*percent) + "% of their tasks (" +
           std::to_string(told.total_sticky_cache_hit.value) + " hits, " +
           std::to_string(told.total_sticky_cache_miss.value) + " misses)";
  }

  const Output& out_;
  const WorkerLine& worker_;
  const Time now_;
};

// By its identity, which several may share, or by its instance key, which is its own.
int run_worker_describe(Session& session) {
  const Output& out = session.out();
  const std::string name = session.arguments().operand(0);
  std::vector<std::string> known;
  WorkerLines found;
  for (WorkerLine& worker : all_workers(session)) {
    known.push_back(worker.identity);
    const bool is_instance =
        worker.worker_heartbeat && worker.worker_heartbeat->worker_instance_key == name;
    if (worker.identity == name || is_instance) found.workers.push_back(std::move(worker));
  }
  if (found.workers.empty()) no_such("worker", "WORKER_NOT_FOUND", name, known);
  std::vector<std::string> lines;
  for (const WorkerLine& worker : found.workers) lines.push_back(to_json(worker));
  out.json(to_json(found), lines);
  if (!out.is_text()) return exit_ok;
  const Time now = session.now();
  for (const WorkerLine& worker : found.workers) {
    if (&worker != &found.workers.front()) out.text("");
    WorkerPage(out, worker, now).print();
  }
  return exit_ok;
}

}  // namespace

std::vector<Command> queue_commands() {
  const std::string seen = "A worker is known by its polls of the last five minutes.";
  const std::string told =
      "A worker tells of itself every 10 s. It is silent if it has missed three of these, and "
      "forgotten after 10 minutes of silence, or a minute after its end. A worker that tells "
      "nothing is known by its polls of the last five minutes.";
  return {
      {"worker list",
       "workers, what they work on, how busy they are, and when they were last seen",
       "WORKFLOW and ACTIVITY are the slots in use for such tasks, of how many. CACHE is the "
       "runs that are kept, and how many of their tasks found them kept.\n" +
           told,
       {{"permit worker list", ""}},
       {},
       {},
       run_worker_list},
      {"worker describe",
       "one worker, by its identity or its instance key, and the queues it polls",
       told,
       {{"permit worker describe 4121@gpu-host", ""}},
       {{"WORKER"}},
       {},
       run_worker_describe},
      {"task-queue list",
       "task queues: what waits there, and who takes it",
       "OLDEST is how long the first task has waited; ADDED/S and TAKEN/S count the tasks of the "
       "last minute. A queue that has a backlog and no worker is named below the table.",
       {{"permit task-queue list", ""}},
       {},
       {},
       run_queue_list},
      {"task-queue describe",
       "one task queue and the workers that poll it",
       seen,
       {{"permit task-queue describe training", ""}},
       {{"QUEUE", Completes::nothing, false}},
       {{"task-queue", 't', ValueType::text, "NAME", "the queue; also without the flag"}},
       run_queue_describe}};
}

}  // namespace permit::cli
