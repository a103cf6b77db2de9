"""The bugs of planted.py: number, what the bug is, the level of the simulation that can see it, and
its edits: (file, text, what stands there instead). A replacement whose text is gone from the tree
is an error: move it along with the code.

The numbers 1 to 64 are those of a list by area. Where the design leaves no place for a bug of the
list, another one of the same area stands there; the comment says which, and why.
"""

SERVICE = "orchestrator/service/"
CORE = "orchestrator/core/"
STORE = "orchestrator/store/"

EXCLUSION = [
    (1, "uniqueness is checked against earlier batches only, and the index is not unique", 1, [
        (SERVICE + "uniqueness.cpp", "  if (latest == nullptr) return true;\n",
         "  if (latest == nullptr) return true;\n"
         "  if (PLANTED(1) && latest->start_time == change.now()) return true;\n"),
        (STORE + "schema.cpp", "    database.execute(schema_sql);\n",
         "    database.execute(schema_sql);\n"
         '    if (PLANTED(1) || PLANTED(2)) database.execute("DROP INDEX runs_open; '
         'CREATE INDEX runs_open ON runs (namespace, workflow_id) WHERE status = 1");\n'),
    ]),
    # The index alone would not be missed: the service looks first. So here children do not look.
    (2, "the index is not unique, and the start of a child relies on it", 1, [
        (SERVICE + "messages.cpp",
         "  } else if (takes_parents_id(*this, message) ||\n",
         "  } else if (PLANTED(2)) {\n  } else if (takes_parents_id(*this, message) ||\n"),
    ]),
    (3, "ids are compared without regard to case", 1, [
        (STORE + "store.cpp",
         "  const std::vector<RunNumber> runs = recent_runs(namespace_, id, 1);\n",
         "  if (PLANTED(3)) {\n"
         "    Statement nocase(database_, \"SELECT number FROM runs WHERE namespace = ? AND \"\n"
         "                     \"workflow_id = ? COLLATE NOCASE ORDER BY number DESC LIMIT 1\");\n"
         "    auto row = nocase.bind(namespace_, id.value);\n"
         "    if (!row.step()) return std::nullopt;\n"
         "    return RunNumber{row.i64(0)};\n  }\n"
         "  const std::vector<RunNumber> runs = recent_runs(namespace_, id, 1);\n"),
    ]),
    (4, "a refused request's runs stay in memory as it left them", 1, [
        (SERVICE + "change.cpp",
         "  for (const RunNumber number : order_) parts_.cache.forget(number);\n",
         "  for (const RunNumber number : order_) {\n"
         "    if (!PLANTED(4)) parts_.cache.forget(number);\n  }\n"),
    ]),
    (5, "a run id in a request is ignored: the release of an old run reaches the new one", 1, [
        (SERVICE + "client_api.cpp", "execution.run_id.empty() || by_chain\n",
         "execution.run_id.empty() || by_chain || PLANTED(5)\n"),
        (SERVICE + "messages.cpp", "      target.run_id.empty() ? latest_run(",
         "      target.run_id.empty() || PLANTED(5) ? latest_run("),
    ]),
    (6, "the id of the previous run is taken for the current one while that is younger than 1 s",
     1, [
        (SERVICE + "client_api.cpp",
         "  if (run == nullptr || run->workflow_id != execution.workflow_id ||\n",
         "  if (PLANTED(6) && run != nullptr && !run->is_open()) {\n"
         "    core::RunState* now = change.latest_run(namespace_, execution.workflow_id);\n"
         "    if (now != nullptr && now->start_time + std::chrono::seconds(1) > now_) run = now;\n"
         "  }\n"
         "  if (run == nullptr || run->workflow_id != execution.workflow_id ||\n"),
    ]),
    (7, "a pool gets a slot more than its capacity", 1, [
        (SERVICE + "pool_requests.cpp", "    for (int i = 0; i < *request.capacity; ++i)",
         "    for (int i = 0; i < *request.capacity + (PLANTED(7) ? 1 : 0); ++i)"),
    ]),
    (8, "lowered capacity evicts a holder", 1, [
        (SERVICE + "pool_requests.cpp",
         "  record(change, pool, {{}, what_was_set(request), request.identity, request.reason});\n",
         "  if (PLANTED(8)) {\n"
         "    for (const auto& [slot, run] : std::map(pool.holders)) {\n"
         "      if (pool.settings.find(slot) != nullptr) continue;\n"
         "      event::WorkflowExecutionTerminated evicted;\n"
         "      change.step(change.run(run), [&](core::Transition& t) {\n"
         "        t.drop_workflow_task();\n        t.close(evicted);\n      });\n    }\n  }\n"
         "  record(change, pool, {{}, what_was_set(request), request.identity, request.reason});\n"),
    ]),
    # There is no lock-delay. What else a restart may forget of a slot: that it is drained.
    (9, "that a slot is drained is forgotten at a restart", 1, [
        (SERVICE + "pools.cpp", "    pool.settings = read_json<PoolSettings>(json);\n",
         "    pool.settings = read_json<PoolSettings>(json);\n"
         "    if (PLANTED(9)) pool.settings.drained = false;\n"
         "    for (SlotSetting& slot : pool.settings.slots) {\n"
         "      if (PLANTED(9)) slot.drained = false;\n    }\n"),
    ]),
    # Without a run id a terminate is meant for the current run. With one it is not.
    (10, "a terminate hits the newest run, whatever run it names", 1, [
        (SERVICE + "client_api.cpp",
         "    core::check_payloads(request.details, \"details\", options_.limits);\n"
         "    Change change(parts_, now_);\n"
         "    core::RunState& run = open_target(change, request.namespace_, "
         "request.workflow_execution,\n",
         "    core::check_payloads(request.details, \"details\", options_.limits);\n"
         "    Change change(parts_, now_);\n"
         "    WorkflowExecution named = request.workflow_execution;\n"
         "    if (PLANTED(10)) named.run_id = {};\n"
         "    core::RunState& run = open_target(change, request.namespace_, named,\n"),
    ]),
]

FENCE = [
    (11, "the fence counter is not written", 2, [
        (STORE + "row_writer.cpp", "  const std::int64_t owned =\n"
         "      sql_->put_counters.run(counters.commit_seq, counters.fence,",
         "  std::int64_t fence = counters.fence;\n"
         "  if (PLANTED(11)) fence = 0;\n"
         "  if (PLANTED(12)) {\n"
         "    Statement before(database_, \"SELECT fence FROM server\");\n"
         "    auto row = before.bind();\n"
         "    if (row.step()) fence = row.i64(0);\n"
         "  }\n"
         "  const std::int64_t owned =\n"
         "      sql_->put_counters.run(counters.commit_seq, fence,"),
    ]),
    (12, "the fence counter is written with the next commit", 2, []),  # with 11
    (13, "retention sets the fence counter back", 1, [
        (STORE + "store.cpp", "  for (const RunNumber run : runs) write(DeleteRun{run});\n",
         "  for (const RunNumber run : runs) write(DeleteRun{run});\n"
         "  if (PLANTED(13) && !runs.empty()) counters_.fence = 0;\n"),
    ]),
    # A retried start is answered as before, without a grant. So: the same fence for the next start
    # by id.
    (14, "a start by id gets the fence of the last grant", 1, [
        (SERVICE + "pools_plain.cpp", "change.next_fence(), change.now() + timeout};",
         "PLANTED(14) ? Fence{std::max<std::int64_t>(1, store_.counters().fence)} : "
         "change.next_fence(), change.now() + timeout};"),
        (STORE + "row_writer.cpp", '                      "INSERT INTO holds (fence, ',
         '                      "INSERT OR REPLACE INTO holds (fence, '),
    ]),
    (15, "the fence wraps at 2^32", 1, [
        (SERVICE + "change.cpp", "  const std::int64_t fence = parts_.store.counters().fence + 1;\n",
         "  std::int64_t fence = parts_.store.counters().fence + 1;\n"
         "  if (PLANTED(15)) fence = static_cast<std::uint32_t>(fence);\n"),
    ]),
    # Fences are never equal, so what the guard may get wrong is which is lower.
    (16, "the guard admits the fence before the highest", 1, [
        ("permits/fence_guard.cpp", "  if (fence <= seen) return fence == seen;\n",
         "  if (PLANTED(16) && fence.value + 3 >= seen.value && fence < seen) return true;\n"
         "  if (fence <= seen) return fence == seen;\n"),
    ]),
]

DURABILITY = [
    (17, "replies leave before their commit", 2, [
        (SERVICE + "service.cpp", "  if (store_.in_batch()) {\n    const auto began",
         "  if (store_.in_batch() && !PLANTED(17)) {\n    const auto began"),
        (SERVICE + "service.cpp",
         "  for (const std::unique_ptr<Reply>& reply : replies) reply->send();\n",
         "  for (const std::unique_ptr<Reply>& reply : replies) reply->send();\n"
         "  if (PLANTED(17) && store_.in_batch()) store_.commit(now_);\n"),
    ]),
    (18, "synchronous=NORMAL", 2, [
        (STORE + "database.cpp", '  execute("PRAGMA synchronous = FULL;',
         '  execute(PLANTED(18) ? "PRAGMA synchronous = NORMAL; PRAGMA cache_spill = OFF;"\n'
         '                      : "PRAGMA synchronous = FULL;'),
    ]),
    (19, "a batch that failed on a full disk is acknowledged", 2, [
        (SERVICE + "service.cpp", "if (reply) reply->refuse(error);",
         "if (reply) PLANTED(19) ? reply->send() : reply->refuse(error);"),
    ]),
    (20, "an I/O error is answered as a refusal, and the server goes on", 2, [
        (STORE + "database.cpp", "  switch (primary) {\n    case SQLITE_FULL:\n",
         "  if (PLANTED(20) && primary == SQLITE_IOERR) throw DiskFull(message);\n"
         "  switch (primary) {\n    case SQLITE_FULL:\n"),
    ]),
    (21, "a failed sync of a commit is passed over", 2, [
        (STORE + "database.cpp", "    commit_->run();\n  } catch (...) {\n    rollback();\n",
         "    commit_->run();\n  } catch (const StoreFailed& failed) {\n    rollback();\n"
         "    if (!PLANTED(21) || failed.code() != SQLITE_IOERR_FSYNC) throw;\n"
         "    failed_code_ = 0;\n    return;\n"
         "  } catch (...) {\n    rollback();\n"),
    ]),
    (22, "a signal that waits for the task's end is in memory only", 1, [
        (SERVICE + "run_cache.cpp", "  write_json(state.volatile_state, row.volatile_json);\n",
         "  core::Volatile stored = state.volatile_state;\n"
         "  if (PLANTED(22)) std::erase_if(stored.buffered, [](const Event& event) {\n"
         "    return event.get_if<event::WorkflowExecutionSignaled>() != nullptr;\n  });\n"
         "  write_json(stored, row.volatile_json);\n"),
    ]),
    (23, "history and state are written in two transactions", 2, [
        (SERVICE + "change.cpp", "  // First what closes, then what opens under the same id.\n",
         "  if (PLANTED(23)) {\n    parts_.store.commit(now());\n    parts_.store.begin();\n  }\n"
         "  // First what closes, then what opens under the same id.\n"),
    ]),
    (24, "the rows of lines and holds are written with the next change", 1, [
        (SERVICE + "change.cpp", "  for (const auto& write : extra_) write(parts_.store);\n",
         "  static std::vector<std::function<void(store::Store&)>> late;\n"
         "  static Time at{};\n"
         "  if (now() < at) late.clear();  // another seed\n"
         "  at = now();\n"
         "  if (PLANTED(24)) std::swap(extra_, late);\n"
         "  for (const auto& write : extra_) write(parts_.store);\n"),
    ]),
    (25, "request ids are forgotten when a task is done", 1, [
        (CORE + "run_state.cpp", "    state_.last_completed_started_id = e.started_event_id;\n",
         "    state_.last_completed_started_id = e.started_event_id;\n"
         "    if (PLANTED(25)) state_.request_ids.clear();\n"),
    ]),
    (26, "a request id is looked at, and not what comes with it", 1, [
        (SERVICE + "client_api.cpp",
         "  return made.workflow_type.name == request.workflow_type.name &&\n",
         "  if (PLANTED(26)) return true;\n"
         "  return made.workflow_type.name == request.workflow_type.name &&\n"),
    ]),
]

TIMERS = [
    (27, "timers fire 1 ms early", 1, [
        (CORE + "run_state.cpp", "  return timer.fire_time;\n",
         "  if (PLANTED(27)) return timer.fire_time - std::chrono::milliseconds(1);\n"
         "  return timer.fire_time;\n"),
    ]),
    (28, "a lease begins when a worker first has the permit's task", 1, [
        (CORE + "worker_transitions.cpp",
         "  WorkflowTaskState& task = state.workflow_task();\n"
         "  task.identity = std::move(hand_out.identity);\n",
         "  WorkflowTaskState& task = state.workflow_task();\n"
         "  if (PLANTED(28) && state.is_managed_permit() && state.last_completed_started_id == 0) {\n"
         "    state.volatile_state.permit_deadline =\n"
         "        std::max(state.volatile_state.permit_deadline,\n"
         "                 run.now() + state.started.permit_request->lease);\n  }\n"
         "  task.identity = std::move(hand_out.identity);\n"),
    ]),
    (29, "a permit that no worker has ever polled has no backstop", 1, [
        (CORE + "run_state.cpp",
         "  Time due = std::min(expiration(state), workflow_task_due(state));\n",
         "  Time due = std::min(expiration(state), workflow_task_due(state));\n"
         "  // Its first task, with event 3, is the server's.\n"
         "  if (PLANTED(29) && state.is_managed_permit() && state.last_completed_started_id <= 3) "
         "due = workflow_task_due(state);\n"),
    ]),
    (30, "what is due within a second of the last scan is skipped by the next one", 1, [
        (SERVICE + "service.cpp", "    for (const RunNumber number : store_.due(now_, due_slice)) "
         "fire_due_of(number);\n    horizon_ = store_.next_due();\n",
         "    static Time scanned{};\n"
         "    if (scanned > now_ + std::chrono::seconds(1)) scanned = {};  // another seed\n"
         "    for (const RunNumber number : store_.due(now_, due_slice)) {\n"
         "      const core::RunState* run = PLANTED(30) ? cache_.find(number) : nullptr;\n"
         "      if (run != nullptr && began_ < scanned && core::next_due(*run) <= scanned) {\n"
         "        stuck_.insert(number);\n        continue;\n      }\n"
         "      fire_due_of(number);\n    }\n"
         "    scanned = now_ + std::chrono::seconds(1);\n"
         "    horizon_ = store_.next_due();\n"),
    ]),
    (31, "timers begin anew when their run is loaded", 1, [
        (SERVICE + "run_cache.cpp",
         "  state->wants_workflow_task = false;  // between requests it never does without having one\n",
         "  state->wants_workflow_task = false;  // between requests it never does without having one\n"
         "  for (auto& [id, timer] : state->timers) {\n"
         "    if (!PLANTED(31)) break;\n"
         "    const Time anew = store.counters().time_max + std::chrono::seconds(1);\n"
         "    timer.fire_time = std::max(timer.fire_time, anew);\n  }\n"),
    ]),
    (32, "the wall clock is used for durations", 1, [
        (SERVICE + "clock.h",
         "  Time now() override { return wall_at_start_ + (read_(CLOCK_BOOTTIME) - boot_at_start_); }\n",
         "  Time now() override {\n"
         "    if (PLANTED(32)) return read_(CLOCK_REALTIME);\n"
         "    const Time steady = wall_at_start_ + (read_(CLOCK_BOOTTIME) - boot_at_start_);\n"
         "    if (PLANTED(33)) return std::min(steady, read_(CLOCK_REALTIME));\n"
         "    return steady;\n  }\n"),
    ]),
    (33, "a step of the wall clock backward freezes time", 1, []),  # with 32
    (34, "that a timer has fired while a task ran is forgotten when its run is loaded", 1, [
        (SERVICE + "run_cache.cpp",
         "  for (const Event& event : state->volatile_state.buffered) core::note_buffered(*state, "
         "event);\n",
         "  for (const Event& event : state->volatile_state.buffered) {\n"
         "    if (PLANTED(34) && event.get_if<event::TimerFired>() != nullptr) continue;\n"
         "    core::note_buffered(*state, event);\n  }\n"),
    ]),
    (35, "what is overdue is done one by one, one a second", 1, [
        (SERVICE + "service.cpp", "    if (!stuck_.empty() && horizon_ <= now_) horizon_ = ",
         "    if ((!stuck_.empty() || PLANTED(35)) && horizon_ <= now_) horizon_ = "),
        (SERVICE + "service.cpp", "constexpr int due_slice = 500;\n",
         "const int due_slice = PLANTED(35) ? 1 : 500;\n"),
    ]),
    (36, "a release that comes after the lease timer counts too", 1, [
        (CORE + "run_state.cpp",
         'if (e.signal_name == "release" && !state_.lease_timer_fired) ',
         'if (e.signal_name == "release" && (!state_.lease_timer_fired || PLANTED(36))) '),
    ]),
]

TASKS = [
    (37, "a workflow task's token is taken whatever attempt it was for", 1, [
        (SERVICE + "worker_api.cpp",
         "  const bool current = run->task_started() && task.nonce == token->nonce &&\n"
         "                       task.attempt == token->attempt &&\n"
         "                       task.scheduled_event_id == token->scheduled_event_id;\n",
         "  const bool same = task.nonce == token->nonce && task.attempt == token->attempt &&\n"
         "                    task.scheduled_event_id == token->scheduled_event_id;\n"
         "  const bool current = run->task_started() && (same || PLANTED(37));\n"),
    ]),
    (38, "an activity's token is taken whatever attempt it was for", 1, [
        (SERVICE + "activity_api.cpp",
         "                       activity->second.attempt.nonce == token->nonce &&\n"
         "                       activity->second.attempt.attempt == token->attempt;\n",
         "                       (PLANTED(38) ||\n"
         "                        (activity->second.attempt.nonce == token->nonce &&\n"
         "                         activity->second.attempt.attempt == token->attempt));\n"),
    ]),
    (39, "a task that a poller was given never times out, so a lost answer loses it", 1, [
        (CORE + "run_state.cpp",
         "  if (state.task_started()) return after(task.started_time, task.timeout);\n",
         "  if (PLANTED(39) && state.task_started()) return never;\n"
         "  if (state.task_started()) return after(task.started_time, task.timeout);\n"),
    ]),
    (40, "a task that has been handed out stays on offer", 1, [
        (SERVICE + "worker_api.cpp",
         "      if (!change.take(queue, *offer, request.identity)) continue;\n"
         "      finish(change);\n"
         "      matching_.note_dispatched(queue, now_);\n"
         "      reply(done, task_for(change.run(offer->run)));\n",
         "      if (!change.take(queue, *offer, request.identity)) {\n"
         "        const core::RunState* run = change.find(offer->run);\n"
         "        if (PLANTED(40) && run != nullptr && run->task_started()) {\n"
         "          reply(done, task_for(*run));\n          return;\n        }\n"
         "        if (PLANTED(46) && run != nullptr && !run->is_open()) {\n"
         "          PollWorkflowTaskQueueResponse response;\n"
         "          response.task_token = parts_.tokens.encode(\n"
         "              {TaskToken::Kind::workflow_task, run->number, 1, 1, "
         "ids_.nonce()});\n"
         "          response.workflow_execution = run->execution();\n"
         "          reply(done, std::move(response));\n          return;\n        }\n"
         "        continue;\n      }\n"
         "      finish(change);\n"
         "      if (PLANTED(40)) matching_.offer(queue, *offer);\n"
         "      matching_.note_dispatched(queue, now_);\n"
         "      reply(done, task_for(change.run(offer->run)));\n"),
    ]),
    (41, "the end of an activity's attempt is taken after that has timed out", 1, [
        (SERVICE + "activity_api.cpp", "  if (!current) {\n    throw task_stale(\"activity task "
         "not found: it has",
         "  if (!current && PLANTED(41) && activity != run->activities.end() &&\n"
         "      !activity->second.closed && activity->second.attempt.waits_for_retry &&\n"
         "      activity->second.attempt.attempt == token->attempt + 1) {\n"
         "    act(change, *run, {token->scheduled_event_id});\n    return;\n  }\n"
         "  if (!current && PLANTED(42) && activity != run->activities.end() &&\n"
         "      !activity->second.closed && activity->second.attempt.waits_for_retry &&\n"
         "      activity->second.attempt.attempt == token->attempt + 1) {\n"
         "    activity->second.attempt.waits_for_retry = false;\n"
         "    activity->second.attempt.attempt = token->attempt;\n"
         "    activity->second.attempt.started_time = now_;\n"
         "    activity->second.attempt.nonce = token->nonce;\n"
         "    act(change, *run, {token->scheduled_event_id});\n    return;\n  }\n"
         "  if (!current) {\n    throw task_stale(\"activity task not found: it has"),
    ]),
    (42, "a heartbeat revives an attempt that has timed out", 1, []),  # with 41
    (43, "the next attempt does not get what the heartbeats have said", 1, [
        (CORE + "activity_transitions.cpp",
         "  next.heartbeat_details = activity.attempt.heartbeat_details;\n",
         "  if (!PLANTED(43)) next.heartbeat_details = activity.attempt.heartbeat_details;\n"),
    ]),
    (44, "a task that is to be tried again is not put on offer", 1, [
        (CORE + "transition.cpp",
         "  state_.wants_workflow_task = false;\n  decision_.workflow_task_offered = true;\n",
         "  state_.wants_workflow_task = false;\n"
         "  decision_.workflow_task_offered = !PLANTED(44);\n"),
    ]),
    (45, "a poll is kept after its caller has gone", 1, [
        (SERVICE + "worker_api.cpp",
         "  matching_.remove_poller(id, time());\n  workflow_polls_.erase(id);\n",
         "  if (PLANTED(45) && workflow_polls_.contains(id)) return;\n"
         "  matching_.remove_poller(id, time());\n  workflow_polls_.erase(id);\n"),
    ]),
    (46, "the task of a closed run is handed out", 1, []),  # with 40
]

FAMILY = [
    (47, "a parent's close leaves its requests in the waiting line", 1, [
        (CORE + "transition.cpp", "    if (!child.waits_for.empty()) {\n",
         "    if (!child.waits_for.empty() && !PLANTED(47)) {\n"),
    ]),
    (48, "a child's close is told to its parent's workflow id, whatever run has it now", 1, [
        (SERVICE + "messages.cpp",
         "  core::RunState* parent = run_by_id(message.parent.run_id);\n"
         "  if (parent == nullptr || !parent->is_open()) return;\n"
         "  const auto child = parent->children.find(message.initiated_event_id);\n"
         "  if (child == parent->children.end()) return;\n",
         "  core::RunState* parent = run_by_id(message.parent.run_id);\n"
         '  if (PLANTED(48)) parent = latest_run("default", message.parent.workflow_id);\n'
         "  if (parent == nullptr || !parent->is_open()) return;\n"
         "  const auto child = parent->children.find(message.initiated_event_id);\n"
         "  if (child == parent->children.end()) return;\n"),
    ]),
    (49, "a child that is closed with its parent does not close its own children", 1, [
        (CORE + "transition.cpp", "  const std::string how = how_it_closed(state_.status);\n",
         "  const std::string how = how_it_closed(state_.status);\n"
         '  if (PLANTED(49) && how == "terminated" && state_.started.parent_workflow_execution) '
         "return;\n"),
    ]),
    # In the design it is one commit; as if it were an outbox, which a crash loses.
    (50, "children hear of their parent's close with the next change, from memory", 1, [
        (SERVICE + "messages.cpp", "void Change::deliver(core::ParentClosed& message) {\n",
         "void Change::deliver(core::ParentClosed& message) {\n"
         "  if (PLANTED(50)) {\n    static std::vector<core::ParentClosed> outbox;\n"
         "    static Time at{};\n"
         "    if (now() < at) outbox.clear();  // another seed\n"
         "    at = now();\n"
         "    std::vector<core::ParentClosed> late{message};\n"
         "    std::swap(late, outbox);\n    if (late.empty()) return;\n"
         "    message = late.front();\n  }\n"),
    ]),
    (51, "a grant is not told to a parent whose task a worker has", 1, [
        (SERVICE + "pools.cpp",
         "    change.step(parent, [&](core::Transition& t) { t.receive(std::move(started)); });\n",
         "    if (PLANTED(51) && parent.task_started()) continue;\n"
         "    change.step(parent, [&](core::Transition& t) { t.receive(std::move(started)); });\n"),
    ]),
    (52, "a start that does not want to wait is granted and refused", 1, [
        (SERVICE + "pools.cpp",
         "  pool.line.insert(std::move(waiter));\n  pool_of_waiter_[id] = pool.name;\n  serve",
         "  const Waiter asked = PLANTED(52) ? waiter : Waiter();\n"
         "  pool.line.insert(std::move(waiter));\n  pool_of_waiter_[id] = pool.name;\n  serve"),
        (SERVICE + "pools.cpp", "  if (still == nullptr) return;\n  note_conflict(pool.name);\n",
         "  if (PLANTED(52) && still == nullptr && !request.wait) refuse(change, asked, {});\n"
         "  if (still == nullptr) return;\n  note_conflict(pool.name);\n"),
    ]),
    (53, "a permit that is granted while its request is canceled is nobody's", 1, [
        ("worker/workflow.cpp",
         "        const auto started = operation->lock();\n        started->outlive_scope();\n",
         "        const auto started = operation->lock();\n"
         "        if (PLANTED(53) && started->is_canceled()) {\n"
         "          future.fail_with(Canceled());\n          return;\n        }\n"
         "        started->outlive_scope();\n"),
        ("worker/operation.h", "  std::int64_t event_id() const { return event_id_; }\n",
         "  std::int64_t event_id() const { return event_id_; }\n"
         "  bool is_canceled() const { return cancel_requested_; }\n"),
    ]),
]

SDK = [
    (54, "now() is the wall clock's", 1, [
        ("worker/workflow.cpp", "  instance_->check_usable();\n  return instance_->now_;\n",
         "  instance_->check_usable();\n"
         "  if (PLANTED(54)) return std::chrono::time_point_cast<Duration>("
         "std::chrono::system_clock::now());\n"
         "  return instance_->now_;\n"),
    ]),
    (55, "slots are shuffled with numbers that no seed gives", 1, [
        ("permits/semaphore.cpp", "  random().shuffle(slots);\n",
         "  static worker::Random unseeded(1);\n"
         "  if (PLANTED(55)) unseeded.shuffle(slots);\n"
         "  random().shuffle(slots);\n"),
    ]),
    (56, "the order of commands depends on where they lie in memory", 1, [
        ("worker/workflow_instance.cpp",
         "  commands.reserve(issued_.size());\n"
         "  for (const Issued& issued : issued_) commands.push_back(issued.command);\n",
         "  commands.reserve(issued_.size());\n"
         "  std::vector<const Issued*> order;\n"
         "  for (const Issued& issued : issued_) order.push_back(&issued);\n"
         "  if (PLANTED(56) && order.size() > 1 && order.back()->operation) {\n"
         "    std::sort(order.begin(), order.end(), [](const Issued* a, const Issued* b) {\n"
         "      return std::hash<const Issued*>()(a) * 2654435761U % 1021 <\n"
         "             std::hash<const Issued*>()(b) * 2654435761U % 1021;\n    });\n  }\n"
         "  for (const Issued* issued : order) commands.push_back(issued->command);\n"),
    ]),
    (57, "a signal that comes before its handler is lost", 1, [
        ("worker/workflow_instance.cpp",
         "    signals_unhandled_.emplace_back(signal.signal_name, signal.input);\n",
         "    if (!PLANTED(57)) signals_unhandled_.emplace_back(signal.signal_name, signal.input);\n"),
    ]),
    (58, "a side effect runs again when its run is replayed", 1, [
        ("worker/workflow.cpp",
         "    if (data != recorded.front()->details.end()) value = data->second;\n",
         "    if (data != recorded.front()->details.end()) value = data->second;\n"
         "    if (PLANTED(58)) value = make();\n"),
    ]),
    (59, "a section whose body throws does not release its permit", 1, [
        ("permits/semaphore.h", "  co_await permit.release();\n  if (thrown)",
         "  if (PLANTED(59) && thrown) {\n    permit.forget();\n"
         "    std::rethrow_exception(thrown);\n  }\n"
         "  co_await permit.release();\n  if (thrown)"),
        ("permits/permit.h", "  ~Permit() { let_go(); }\n",
         "  ~Permit() { let_go(); }\n  void forget() { hold_ = nullptr; }\n"),
    ]),
    (60, "the client's start has no request id, so who sends it again is refused", 1, [
        ("worker/client.cpp", "  request.request_id = new_request_id();\n"
         "  WorkflowExecution execution{request.workflow_id, {}};\n",
         "  if (!PLANTED(60)) request.request_id = new_request_id();\n"
         "  WorkflowExecution execution{request.workflow_id, {}};\n"),
    ]),
]

OPERATION = [
    (61, "retention deletes the events of an open run", 1, [
        (STORE + "store.cpp", "std::vector<RunNumber> Store::delete_closed_before(Time before, "
         "int count_max) {\n",
         "std::vector<RunNumber> Store::delete_closed_before(Time before, int count_max) {\n"
         "  if (PLANTED(61)) {\n"
         "    Statement purge(database_, \"DELETE FROM history WHERE first_event_id > 1 AND run IN \"\n"
         "                    \"(SELECT number FROM runs WHERE status = 1 AND start_time < ?)\");\n"
         "    purge.run(to_us(before));\n  }\n"),
    ]),
    (62, "a file that is no database is replaced by an empty one", 2, [
        (STORE + "store.cpp", "      database_(with_own_checkpoints(options_, opening)) {\n",
         "      database_(usable(with_own_checkpoints(options_, opening))) {\n"),
        (STORE + "store.cpp", "Database::Options with_version(Database::Options options) {\n",
         "Database::Options usable(Database::Options options) {\n"
         "  if (!PLANTED(62)) return options;\n"
         "  try {\n    const Database tried(options);\n"
         "  } catch (const StoreFailed& failed) {\n"
         "    if ((failed.code() & 0xff) == SQLITE_NOTADB || (failed.code() & 0xff) == "
         'SQLITE_CORRUPT) options.path += ".new";\n'
         "  }\n  return options;\n}\n\n"
         "Database::Options with_version(Database::Options options) {\n"),
        (STORE + "store.cpp", '#include "orchestrator/store/store.h"\n',
         '#include <sqlite3.h>\n#include "orchestrator/store/store.h"\n'),
    ]),
    # There is one connection, so a health check cannot stall another's commits. It can spoil them.
    (63, "a health check ends the batch that is open", 1, [
        (SERVICE + "health_api.cpp", "    Health health;\n",
         "    if (PLANTED(63) && store_.in_batch()) store_.roll_back();\n    Health health;\n"),
    ]),
    # There is no PostgreSQL yet. The same check guards the file: a server that has lost it.
    (64, "a commit does not look at the epoch", 2, [
        (STORE + "row_writer.cpp", "  if (owned != 1) throw OwnershipLost(",
         "  if (owned != 1 && PLANTED(64)) {\n"
         "    Statement put(database_, \"UPDATE server SET commit_seq = ?, fence = ?, arrival = ?, \"\n"
         "                  \"run = ?, time_max = ?\");\n"
         "    put.run(counters.commit_seq, counters.fence, counters.arrival, counters.run,\n"
         "            to_us(counters.time_max));\n"
         "  } else if (owned != 1) throw OwnershipLost("),
        (STORE + "settling.cpp", "    if (!row.step() || row.i64(0) != counters_.epoch) {\n",
         "    if (!row.step() || (row.i64(0) != counters_.epoch && !PLANTED(64))) {\n"),
    ]),
    # Our own.
    (65, "priorities in line are lost when the line is loaded again", 1, [
        (SERVICE + "pools.cpp", "    Waiter waiter = read_json<Waiter>(row.waiter_json);\n",
         "    Waiter waiter = read_json<Waiter>(row.waiter_json);\n"
         "    if (PLANTED(65)) waiter.priority = 3;\n"),
    ]),
    (66, "a renewal after the deadline revives the lease", 1, [
        (CORE + "clock_transitions.cpp",
         "  if (deadline <= now || state.lease_timer_fired) return std::nullopt;\n",
         "  if (!PLANTED(66) && (deadline <= now || state.lease_timer_fired)) "
         "return std::nullopt;\n"),
    ]),
    (67, "a run that no worker has ever polled has no end by its timeouts", 1, [
        (CORE + "run_state.cpp",
         "  for (const auto& [id, timer] : state.timers) {\n    if (!timer.fired) due =",
         "  if (PLANTED(67) && state.last_completed_started_id == 0) "
         "due = workflow_task_due(state);\n"
         "  for (const auto& [id, timer] : state.timers) {\n    if (!timer.fired) due ="),
    ]),
    (68, "the redo log is not synced", 2, [
        (STORE + "redo_log.cpp", "  log.sync();\n", "  if (!PLANTED(68)) log.sync();\n"),
    ]),
    (69, "what is in the redo log only is not replayed", 2, [
        (STORE + "store_opening.cpp", "  if (records.empty()) return;\n",
         "  if (records.empty() || PLANTED(69)) return;\n"),
    ]),
]

BUGS = EXCLUSION + FENCE + DURABILITY + TIMERS + TASKS + FAMILY + SDK + OPERATION
