// permit worker list | describe, permit task-queue list | describe: who polls for what.
#include <algorithm>
#include <map>
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
  std::vector<TaskQueueInfo> queues;  // with this worker as their only poller
};
BOOST_DESCRIBE_STRUCT(WorkerLine, (), (identity, last_seen, queues))

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

void print_queues(const Output& out, const std::vector<TaskQueueInfo>& queues, Time now) {
  Table table({{"TASK QUEUE"},
               {"TASKS OF"},
               {"BACKLOG", Align::right},
               {"WORKERS", Align::right},
               {"LAST POLL"}});
  for (const TaskQueueInfo& queue : queues) {
    table.add({{printable(queue.name, 60)},
               {queue.kind},
               {std::to_string(queue.backlog), is_deserted(queue) ? Style::yellow : Style::plain},
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

// --- Workers: the same, by poller ---

std::vector<WorkerLine> workers_of(const std::vector<TaskQueueInfo>& queues) {
  std::map<std::string, WorkerLine> workers;
  for (const TaskQueueInfo& queue : queues) {
    for (const PollerInfo& poller : queue.pollers) {
      WorkerLine& worker = workers[poller.identity];
      worker.identity = poller.identity;
      worker.last_seen = std::max(worker.last_seen, poller.last_access_time);
      worker.queues.push_back({queue.name, queue.kind, queue.backlog, {poller}});
    }
  }
  std::vector<WorkerLine> lines;
  lines.reserve(workers.size());
  for (auto& [identity, worker] : workers) lines.push_back(std::move(worker));
  return lines;
}

std::string queues_of(const WorkerLine& worker) {
  std::set<std::string> names;
  for (const TaskQueueInfo& queue : worker.queues) names.insert(queue.name);
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return printable(text);
}

std::int64_t backlog_of(const WorkerLine& worker) {
  std::int64_t backlog = 0;
  for (const TaskQueueInfo& queue : worker.queues) backlog += queue.backlog;
  return backlog;
}

int run_worker_list(Session& session) {
  const Output& out = session.out();
  const WorkerLines found{workers_of(shared_queues(session))};
  std::vector<std::string> lines;
  lines.reserve(found.workers.size());
  for (const WorkerLine& worker : found.workers) lines.push_back(to_json(worker));
  out.json(to_json(found), lines);
  if (!out.is_text()) return exit_ok;
  if (found.workers.empty()) {
    out.text("No worker has polled in the last five minutes.");
    return exit_ok;
  }
  const Time now = session.now();
  Table table({{"WORKER"}, {"TASK QUEUES"}, {"BACKLOG", Align::right}, {"LAST SEEN"}});
  for (const WorkerLine& worker : found.workers) {
    table.add({{printable(worker.identity, 60)},
               {queues_of(worker)},
               {std::to_string(backlog_of(worker))},
               {out.moment(worker.last_seen, now)}});
  }
  out.table(table);
  return exit_ok;
}

int run_worker_describe(Session& session) {
  const Output& out = session.out();
  const std::string name = session.arguments().operand(0);
  std::vector<std::string> known;
  for (const WorkerLine& worker : workers_of(shared_queues(session))) {
    known.push_back(worker.identity);
    if (worker.identity != name) continue;
    out.json(to_json(worker));
    if (!out.is_text()) return exit_ok;
    const Time now = session.now();
    out.text(out.paint(printable(worker.identity), Style::bold) + "  last seen " +
             out.moment(worker.last_seen, now));
    print_queues(out, worker.queues, now);
    return exit_ok;
  }
  no_such("worker", "WORKER_NOT_FOUND", name, known);
}

}  // namespace

std::vector<Command> queue_commands() {
  const std::string seen = "A worker is known by its polls of the last five minutes.";
  return {{"worker list",
           "workers, what they work on, and when they were last seen",
           seen,
           {{"permit worker list", ""}},
           {},
           {},
           run_worker_list},
          {"worker describe",
           "one worker and the queues it polls",
           seen,
           {{"permit worker describe 4121@gpu-host", ""}},
           {{"WORKER"}},
           {},
           run_worker_describe},
          {"task-queue list",
           "task queues: what waits there, and who takes it",
           "A queue that has a backlog and no worker is named below the table.",
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
