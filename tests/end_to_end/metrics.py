#!/usr/bin/env python3
"""GET /metrics and GET server/history: the numbers are those of what was really done."""

import os
import re
import signal
import threading
import time

from metrics_support import Metrics, check_balance, scrape
from support import (Refused, Server, check, command, complete_workflow, directory, eventually, run,
                     start_permit)

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}")
HISTORY = "/api/v1/server/history"


def refused(action):
    try:
        action()
    except Refused as error:
        return error
    raise AssertionError("it was not refused")


def first(granted):
    return granted["slots"][0]["id"], granted["token"]


def the_books_balance_whatever_becomes_of_a_hold():
    with Server(permit_worker=True) as server:
        client = server.client()
        client.set_pool("gpu", capacity=2)
        check_balance(scrape(client), "gpu")

        released = client.acquire("gpu", "a", holder="wf-secret-1")
        check_balance(scrape(client), "gpu")
        client.release(*first(released))

        client.acquire("gpu", "b", lease="0.5s")
        forced = client.acquire("gpu", "c")
        permit, token = first(forced)
        client.post(f"/permits/{permit}/force-release",
                    {"runId": forced["slots"][0]["runId"], "reason": "test"})
        check(refused(lambda: client.release(permit, token)).status == 410, "a late release")

        client.start("wf-secret-2", type="Trains")
        client.complete(client.poll(), start_permit("gpu", slots=["0", "1"], lease="60s"))
        check_balance(scrape(client), "gpu")
        client.complete(client.poll(), complete_workflow())

        expired = lambda: scrape(client).value("permit_closed_total", outcome="lease_expired") == 1
        eventually(expired, "the lease has run out")
        client.acquire("gpu", "d")
        metrics = scrape(client)
        grants = check_balance(metrics, "gpu")
        check(grants == 5, f"{grants} grants, not five")
        closed = {(labels["outcome"], labels["cause"]): value
                  for labels, value in metrics.all("permit_closed_total") if value}
        check(closed == {("released", ""): 1, ("lease_expired", "timer"): 1,
                         ("force_released", "operator"): 1, ("holder_closed", "completed"): 1},
              f"how they ended: {closed}")
        check(metrics.value("permit_pool_slots", pool="gpu") == 2, "two slots")
        check(metrics.value("permit_late_releases_total", pool="gpu") == 1, "one late release")
        check(metrics.value("permit_possible_overlaps_total", pool="gpu") == 2, "two overlaps")
        check(metrics.value("permit_hold_seconds_count", outcome="lease_expired") == 1, "a hold")
        lasted = metrics.value("permit_hold_seconds_sum", outcome="lease_expired")
        check(0.5 <= lasted < 5, f"a lease of half a second lasted {lasted} s")
        check(metrics.value("permit_lease_lateness_seconds_count") == 1, "one lease ran out")
        check(metrics.value("permit_lease_lateness_seconds_sum") < 4, "and late, but less than the backstop")
        check(metrics.value("permit_acquire_wait_seconds_count", pool="gpu") == 5, "five waits")
        oldest = metrics.value("permit_pool_oldest_hold_seconds", pool="gpu")
        check(0 < oldest < 5, f"the oldest hold: {oldest} s")
        check("wf-secret" not in metrics.text, "a workflow's id is in the metrics")
        check(not UUID.search(metrics.text), "a run's id is in the metrics")


def who_waits_is_counted_and_timed():
    with Server() as server:
        client = server.client()
        client.set_pool("gpu", capacity=1)
        held = client.acquire("gpu", "a")
        check(refused(lambda: client.acquire("gpu", "b", wait="0s")).status == 423, "full")

        def wait_out():
            refused(lambda: server.client().acquire("gpu", "c", waitTimeout="4s"))  # is seen waiting below

        waits_out = threading.Thread(target=wait_out)
        waits_out.start()

        def waits_by_a_long_poll():
            metrics = scrape(client)
            return (metrics.value("permit_pool_waiters", pool="gpu") == 1
                    and metrics.value("permit_long_polls") == 1)

        eventually(waits_by_a_long_poll, "somebody waits, and who waits is a long poll")
        waits_out.join()
        check(scrape(client).value("permit_acquire_timeouts_total", pool="gpu") == 1, "a timeout")

        waits = threading.Thread(target=lambda: server.client().acquire("gpu", "d"))
        waits.start()
        eventually(lambda: scrape(client).value("permit_pool_oldest_wait_seconds") > 0.2, "a wait")
        client.release(*first(held))
        waits.join()

        taken = {"workflowType": {"name": "PermitSlotWorkflow"}, "taskQueue": {"name": "permits"},
                 "workflowExecutionTimeout": "60s"}
        refused(lambda: client.post("/workflows/permit:gpu:0", taken))

        metrics = scrape(client)
        check_balance(metrics, "gpu")
        conflicts = metrics.value("permit_acquire_conflicts_total", pool="gpu")
        check(conflicts == 4, f"b, c, d and the stock start met somebody: {conflicts}")
        check(metrics.value("permit_acquire_wait_seconds_count", pool="gpu") == 2, "two grants")
        waited = metrics.value("permit_acquire_wait_seconds_sum", pool="gpu")
        check(0.2 < waited < 5, f"the second had waited: {waited}")
        check(metrics.value("permit_pool_waiters", pool="gpu") == 0, "nobody waits any more")
        check(metrics.value("permit_pool_oldest_wait_seconds", pool="gpu") == 0, "nor has waited")
        acquires = {"http_route": "/api/v1/namespaces/{namespace}/pools/{pool}/acquire"}
        statuses = {labels["http_response_status_code"]: value for labels, value in
                    metrics.all("http_server_request_duration_seconds_count")
                    if labels["http_route"] == acquires["http_route"]}
        check(statuses == {"200": 1, "423": 1}, f"those that did not wait: {statuses}")
        check(metrics.value("permit_long_poll_duration_seconds_count", **acquires) == 2, "waited")


def a_long_poll_is_not_among_the_requests():
    with Server() as server:
        client = server.client()
        poller = threading.Thread(target=lambda: server.client().poll("idle", wait="4s"))  # is seen below
        poller.start()
        eventually(lambda: scrape(client).value("permit_long_polls") == 1, "the poll is parked")
        queue = {"task_queue": "idle", "kind": "workflow"}
        # The connection is known to wait a moment before the queue knows of the poll.
        eventually(lambda: scrape(client).value("permit_task_queue_pollers", **queue) == 1, "one polls")
        poller.join()
        metrics = scrape(client)
        check(metrics.value("permit_long_polls") == 0, "the poll is over")
        routes = metrics.labels("http_server_request_duration_seconds_count", "http_route")
        check(routes == {"/metrics"}, f"only scrapes are requests: {routes}")
        check(metrics.labels("permit_long_poll_duration_seconds_count", "http_route") == {
            "/temporal.api.workflowservice.v1.WorkflowService/PollWorkflowTaskQueue"}, "its own")
        lasted = metrics.value("permit_long_poll_duration_seconds_sum")
        check(4 <= lasted < 10, f"the poll lasted {lasted} s")
        check(metrics.value("permit_poll_timeouts_total", **queue) == 1, "it got nothing")
        check(metrics.value("permit_poll_success_total", **queue) == 0, "it got nothing")
        check(metrics.value("http_server_active_requests") == 1, "the scrape itself")

        for path in ("/nothing/here", "/api/v1/namespaces/default/secret-path"):
            client.raw("GET", path)
        client.raw("DELETE", "/metrics")
        metrics = scrape(client)
        lost = {"http_route": "", "http_request_method": "GET", "http_response_status_code": "404"}
        check(metrics.value("http_server_request_duration_seconds_count", **lost) == 2, "no route")
        check("secret-path" not in metrics.text, "a path became a label")  # case 84 of abuse.py


def workflows_tasks_and_activities_are_counted():
    with Server() as server:
        client = server.client()
        client.start("wf-secret-3", type='odd "type"\\', queue="q1")
        task = client.poll("q1")
        schedule = lambda name, **more: command(
            "ScheduleActivityTask", activityId=name, activityType={"name": name},
            taskQueue={"name": "acts"}, startToCloseTimeout="60s",
            retryPolicy={"maximumAttempts": 1}, **more)
        client.complete(task, schedule("fails"), schedule("falls-silent", heartbeatTimeout="0.2s"))
        for _ in range(2):
            work = client.rpc("PollActivityTaskQueue", taskQueue={"name": "acts"}, pollWait="5s")
            if work["activityType"]["name"] == "fails":
                client.rpc("RespondActivityTaskFailed", taskToken=work["taskToken"],
                           failure={"message": "no"})
        silent = lambda: scrape(client).value("permit_activity_heartbeat_timeouts_total") == 1
        eventually(silent, "the heartbeats are missed")
        task = client.poll("q1")
        client.rpc("RespondWorkflowTaskFailed", taskToken=task["taskToken"],
                   cause="NON_DETERMINISTIC_ERROR")
        metrics = scrape(client)
        check(metrics.value("permit_activity_execution_failed_total", task_queue="acts",
                            activity_type="fails") == 1, "an activity failed")
        check(metrics.value("permit_activity_heartbeat_timeouts_total", task_queue="acts",
                            activity_type="falls-silent") == 1, "another fell silent")
        check(metrics.value("permit_workflow_task_execution_failed_total", task_queue="q1",
                            failure_reason="nondeterminism") == 1, "a task failed")
        latency = "permit_activity_schedule_to_start_latency_seconds_count"
        check(metrics.value(latency, task_queue="acts") == 2, "two activities were started")
        latency = "permit_workflow_task_schedule_to_start_latency_seconds_count"
        check(metrics.value(latency, task_queue="q1") == 2, "two workflow tasks were")
        for queue, kind in (("acts", "activity"), ("q1", "workflow")):
            served = metrics.value("permit_poll_success_total", task_queue=queue, kind=kind)
            check(served == 2, f"{queue}: {served} polls got something")
        check(metrics.value("permit_workflow_runs_open") == 1, "one run is open")
        check(metrics.value("permit_timer_lateness_seconds_count") >= 1, "a timeout fired")

        client.post("/workflows/wf-secret-3/terminate", {})
        client.start("wf-secret-4", type="Waits", queue="nobody")
        time.sleep(0.05)  # so that the task has an age
        metrics = scrape(client)
        odd = {"workflow_type": 'odd \\"type\\"\\\\'}  # as it stands between its quotes
        check(metrics.value("permit_workflow_started_total", **odd) == 1, "the odd one was started")
        check(metrics.value("permit_workflow_closed_total", status="terminated", **odd) == 1, "and ended")
        check(metrics.value("permit_workflow_endtoend_latency_seconds_count", **odd) == 1, "in time")
        queue = {"task_queue": "nobody", "kind": "workflow"}
        check(metrics.value("permit_task_queue_backlog", **queue) == 1, "a task waits")
        check(metrics.value("permit_task_queue_backlog_age_seconds", **queue) >= 0.05, "and ages")
        check(metrics.value("permit_task_queue_pollers", **queue) == 0, "nobody polls")
        check("wf-secret" not in metrics.text, "a workflow's id is in the metrics")


def a_sticky_queue_goes_by_its_normal_name():
    with Server() as server:
        client = server.client()
        sticky = {"name": "sticky:host:93d2", "kind": "TASK_QUEUE_KIND_STICKY", "normalName": "q"}
        client.start("w", queue="q")
        client.rpc("PollWorkflowTaskQueue", taskQueue=sticky, pollWait="0.01s")
        task = client.poll("q")
        client.complete(task, stickyAttributes={
            "workerTaskQueue": sticky, "scheduleToStartTimeout": "30s"})
        client.signal("w", "go")
        metrics = scrape(client)
        check(metrics.value("permit_task_queue_backlog", task_queue="q", kind="workflow") == 1,
              "the task on the sticky queue waits")
        check("sticky:" not in metrics.text, "a sticky queue's name became a label")
        task = client.rpc("PollWorkflowTaskQueue", taskQueue=sticky, pollWait="5s")
        check(task["taskToken"], "the sticky worker got it")
        check(scrape(client).value("permit_poll_success_total", task_queue="q") == 2, "two tasks")


def what_the_ledger_counts_survives_a_restart():
    database = directory() / "restart.db"
    with Server(database) as server:
        client = server.client()
        client.set_pool("gpu", capacity=2)
        client.release(*first(client.acquire("gpu", "a")))
        client.acquire("gpu", "b")
        metrics = scrape(client)
        check(metrics.value("permit_store_bytes") > 4096, "the database has a size")
        check(metrics.value("permit_store_wal_bytes") > 0, "and a log")
        check(metrics.value("permit_persistence_requests_total", operation="commit") > 2, "commits")
        client.get("/permits")
        metrics = scrape(client)
        check(metrics.value("permit_persistence_requests_total", operation="read") == 1, "a read")
        check(metrics.value("permit_persistence_errors_total") == 0, "no errors")
        check(metrics.value("permit_timers_pending") == 1, "one lease")
        server.kill()
    with Server(database) as server:
        client = server.client()
        metrics = scrape(client)
        check(check_balance(metrics, "gpu") == 2, "two grants, of before")
        check(metrics.value("permit_closed_total", outcome="released") == 1, "one release")
        check(metrics.value("permit_pool_oldest_hold_seconds", pool="gpu") > 0, "held since then")
        check(metrics.value("permit_acquire_wait_seconds_count", pool="gpu") == 0, "none yet")
        check(metrics.value("permit_timers_pending") == 1, "one lease")
        client.acquire("gpu", "c")
        check(check_balance(scrape(client), "gpu") == 3, "and one more")


def names_are_bounded():
    with Server(None, "--metrics-per-slot") as server:
        client = server.client()
        for number in range(1_050):
            client.set_pool(f"p{number:04}", capacity=1)
        for number in (0, 1_020, 1_030):
            client.acquire(f"p{number:04}", "a")
        client.release(*first(client.acquire("p1040", "a")))
        began = time.monotonic()
        metrics = scrape(client)
        print(f"a scrape of 1,000 pools: {(time.monotonic() - began) * 1e3:.0f} ms here, "
              f"{len(metrics.text)} bytes")
        pools = metrics.labels("permit_pool_slots", "pool")
        check(len(pools) == 1_001 and "_other" in pools, f"{len(pools)} pools")
        check(metrics.value("permit_pool_slots", pool="_other") == 50, "slots of the others")
        check(check_balance(metrics, "_other") == 3, "grants of the others")
        check(check_balance(metrics, "p0000") == 1, "and of one that has a name")
        check(metrics.value("permit_slot_held", pool="p0000", slot="0") == 1, "its slot is held")
        check(metrics.value("permit_slot_held") == 1, "and no other that has a name")
        check(metrics.value("permit_slot_hold_seconds", pool="p0000", slot="0") > 0, "for a while")

        client.ask("DELETE", "/api/v1/namespaces/default/pools/p0001")
        check("p0001" not in scrape(client).text, "a pool that has gone is still there")
        client.set_pool("again", capacity=1)
        client.release(*first(client.acquire("again", "a")))
        client.ask("DELETE", "/api/v1/namespaces/default/pools/again")
        client.set_pool("again", capacity=1)
        check(check_balance(scrape(client), "again") == 1, "its ledger is as it was")

        for number in range(1_005):
            client.start(f"w{number}", type=f"Type{number}", queue=f"queue{number}")
        metrics = scrape(client)
        check(len(metrics.labels("permit_workflow_started_total", "workflow_type")) == 1_001, "types")
        others = metrics.value("permit_workflow_started_total", workflow_type="_other")
        check(metrics.value("permit_workflow_started_total") - others >= 1_000, "the first thousand")
        check(others > 4, f"{others} others")
        check(len(metrics.labels("permit_task_queue_backlog", "task_queue")) <= 1_001, "queues")
        check(metrics.value("permit_task_queue_backlog") >= 1_005, "all tasks are counted")
    with Server() as server:
        check("permit_slot_held" not in scrape(server.client()).text, "slots only if asked for")


def openmetrics_is_for_who_asks():
    with Server() as server:
        client = server.client()
        accept = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"}
        status, headers, body = client.raw("GET", "/metrics", headers=accept)
        check(status == 200, str(status))
        check(headers["Content-Type"] ==
              "application/openmetrics-text; version=1.0.0; charset=utf-8", str(headers))
        spoken = Metrics(body.decode(), openmetrics=True)
        plain = scrape(client)
        name = lambda family: family.removesuffix("_total")
        check({name(family) for family in plain.families} == set(spoken.families), "other families")
        check("permit_acquires" in spoken.families, "counters are named without _total")


def the_process_tells_of_itself():
    with Server() as server:
        client = server.client()
        metrics = scrape(client)
        build = metrics.all("permit_build_info")
        check(len(build) == 1 and build[0][1] == 1, str(build))
        check(build[0][0]["version"] and build[0][0]["compiler"], str(build))
        now = time.time()
        for name in ("permit_up_since_seconds", "process_start_time_seconds"):
            check(now - 20 < metrics.value(name) <= now + 1, f"{name}: {metrics.value(name)}")
        check(metrics.value("process_resident_memory_bytes") > 1e6, "memory")
        check(metrics.value("process_cpu_seconds_total") > 0, "processor time")
        really = len(os.listdir(f"/proc/{server.process.pid}/fd"))
        check(metrics.value("process_open_fds") == really, f"{really} files are open")
        check(metrics.value("process_max_fds") >= really, "files may be open")


# --- The ring ---


def series(client, name, step="1s"):
    history = client.ask("GET", f"{HISTORY}?step={step}")
    lengths = {len(one.get("values", [])) for one in history["series"]}
    check(len(lengths) == 1, f"series are of different lengths: {lengths}")
    return next(one for one in history["series"] if one["name"] == name).get("values", [])


def history_tells_of_the_last_seconds():
    with Server() as server:
        client = server.client()
        client.set_pool("gpu", capacity=4)
        history = client.ask("GET", HISTORY)
        check([one["name"] for one in history["series"]] == [
            "acquires", "conflicts", "wait_p50", "wait_p95", "holds", "waiting", "expiries",
            "task_latency_p95", "timer_lag_p99", "commit_latency_p95", "requests", "long_polls",
            "event_streams", "backlog"], str(history))
        metrics = scrape(client)
        families = {one["metric"] for one in history["series"]}
        check(families <= set(metrics.families), f"no such metrics: {families - set(metrics.families)}")
        eventually(lambda: series(client, "acquires"), "the first second is over")
        for number in range(4):
            client.acquire("gpu", f"r{number}")
        eventually(lambda: (series(client, "holds") or [0])[-1] == 4, "the holds are seen")
        # Rates of a second each, so the number of acquires, unless that second was looked at late.
        # Where it did not look at all there are gaps, and the rate is that of as many seconds more.
        gaps = series(client, "holds").count(None)
        acquired = sum(rate or 0 for rate in series(client, "acquires"))
        check(1.5 / (1 + gaps) < acquired < 8, f"{acquired} acquires in some seconds, {gaps} gaps")
        check(max(v for v in series(client, "commit_latency_p95") if v is not None) > 0, "commits")
        check(sum(v or 0 for v in series(client, "requests")) > 4, "requests")
        waits = [value for value in series(client, "wait_p95") if value is not None]
        check(waits and max(waits) < 1, f"nobody had to wait: {waits}")
        check(series(client, "wait_p95")[0] is None, "no grants, no percentile")
        end = client.ask("GET", HISTORY)["end"]
        check(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", end), f"a whole second: {end}")
        check(refused(lambda: client.ask("GET", f"{HISTORY}?step=2s")).status == 400, "2s")
        check(refused(lambda: client.ask("GET", f"{HISTORY}?steps=1s")).status == 400, "steps")


def a_pause_leaves_a_gap():
    with Server() as server:
        client = server.client()
        eventually(lambda: len(series(client, "holds")) >= 1, "it looks")
        began = time.monotonic()
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(2.3)  # the pause itself
        server.process.send_signal(signal.SIGCONT)
        eventually(lambda: None in series(client, "holds"), "the gap is seen")
        holds = eventually(lambda: (lambda s: s if s[-1] is not None else None)(
            series(client, "holds")), "it looks again")
        passed = time.monotonic() - began  # in which the machine may have paused once more
        check(1 <= holds.count(None) <= passed + 1, f"a pause of 2.3 s, {passed:.1f} s ago: {holds}")


def days_go_by_in_minutes_with_virtual_time():
    with Server(None, "--virtual-time") as server:
        client = server.client()
        client.set_pool("gpu", capacity=1)
        client.acquire("gpu", "a", lease="1800s")
        for _ in range(3):
            client.ask("POST", "/api/v1/test/advance", {"seconds": 60})
        eventually(lambda: len(series(client, "holds", "60s")) >= 3, "three minutes")
        check(series(client, "holds", "60s")[-1] == 1, str(series(client, "holds", "60s")))


def an_idle_server_sleeps():
    with Server() as server:
        client = server.client()
        eventually(lambda: series(client, "holds"), "it looks")

        def wakes():
            with open(f"/proc/{server.process.pid}/status") as status:
                return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status.read(), re.M)[1])

        client.close()
        before, began = wakes(), time.monotonic()
        time.sleep(3)  # what happens in a while in which nothing happens
        woken, passed = wakes() - before, time.monotonic() - began
        check(woken <= 3 + 1.5 * passed, f"an idle server woke {woken} times in {passed:.1f} s")


run(the_books_balance_whatever_becomes_of_a_hold,
    who_waits_is_counted_and_timed,
    a_long_poll_is_not_among_the_requests,
    workflows_tasks_and_activities_are_counted,
    a_sticky_queue_goes_by_its_normal_name,
    what_the_ledger_counts_survives_a_restart,
    names_are_bounded,
    openmetrics_is_for_who_asks,
    the_process_tells_of_itself,
    history_tells_of_the_last_seconds,
    a_pause_leaves_a_gap,
    days_go_by_in_minutes_with_virtual_time,
    an_idle_server_sleeps)
