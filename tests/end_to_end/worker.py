#!/usr/bin/env python3
"""The SDK's worker as a process: killed, restarted, drained, cut off from its server."""

import os
import signal
import subprocess
import time

from support import WORKERS, Refused, Server, Worker, check, directory, eventually, payloads, run


def start(client, workflow_id, workflow_type, *arguments):
    client.start(workflow_id, type=workflow_type, queue="work", input=list(arguments))


def result(client, workflow_id):
    close = client.wait_closed(workflow_id)
    check("workflowExecutionCompletedEventAttributes" in close, close)
    return close["workflowExecutionCompletedEventAttributes"]["result"][0]


def tasks_failed(client, workflow_id):
    return [
        event["workflowTaskFailedEventAttributes"]["failure"]["message"]
        for event in client.history(workflow_id)
        if event["eventType"] == "EVENT_TYPE_WORKFLOW_TASK_FAILED"
    ]


def a_killed_worker_costs_nothing(server, client):
    start(client, "sum", "Sum", 40)
    for _ in range(3):
        with Worker(server.port, "work"):
            time.sleep(0.4)
    with Worker(server.port, "work"):
        found = result(client, "sum")
    check(found == 40 * 41, found)


def an_attempt_takes_up_where_the_last_one_was(server, client):
    start(client, "slow", "Slow", 30, 100)
    with Worker(server.port, "work") as worker:
        eventually(lambda: worker.says("step 15 "), "half of the steps")
    with Worker(server.port, "work") as worker:
        found = result(client, "slow")
    check(1 <= found <= 25, f"the second attempt began at {found}")  # not at 0, and not at the end


def a_drained_worker_ends_what_it_has(server, client):
    # So short that no heartbeat of it can be late: they are sent within 2.4 s, and missed after 3 s.
    start(client, "drain", "Slow", 6, 100)
    with Worker(server.port, "work") as worker:
        eventually(lambda: worker.says("step 1 "), "the activity's start")
        worker.signal(signal.SIGTERM)
        began = time.monotonic()
        check(worker.wait() == 0, "a drained worker exits with 0")
        check(time.monotonic() - began < 8, "it took too long")
        check(worker.says("step 5 of attempt 1"), worker.lines)
    with Worker(server.port, "work"):
        found = result(client, "drain")
    check(found == 0, "the first attempt counted")


def an_idle_worker_stops_at_once(server, client):
    with Worker(server.port, "work") as worker:
        eventually(lambda: client.get("/task-queues/work").get("pollers"), "its polls")
        began = time.monotonic()
        worker.signal(signal.SIGINT)
        check(worker.wait() == 0, "exit code")
        check(time.monotonic() - began < 8, "parked polls held it up")


def a_second_signal_ends_it_at_once(server, client):
    start(client, "twice", "Slow", 100, 100)
    with Worker(server.port, "work") as worker:
        eventually(lambda: worker.says("step 1 "), "the activity's start")
        worker.signal(signal.SIGTERM)
        eventually(lambda: worker.says("stopping"), "the first signal's effect")
        worker.signal(signal.SIGTERM)
        check(worker.wait(8) == 128 + signal.SIGTERM, "exit code")  # 10 s of its steps are left
    client.post("/workflows/twice/terminate", {"reason": "done"})


def a_canceled_activity_stops(server, client):
    start(client, "cancel", "Slow", 1000, 20)
    with Worker(server.port, "work") as worker:
        eventually(lambda: worker.says("step 5 "), "the activity's start")
        client.post("/workflows/cancel/cancel", {})
        close = client.wait_closed("cancel")
    check(close["eventType"] == "EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED", close)


def an_activity_is_completed_from_elsewhere(server, client):
    start(client, "later", "Later")
    answer = payloads("from elsewhere")

    def complete():
        try:
            return client.rpc("RespondActivityTaskCompletedById", workflowId="later",
                              activityId="1", result=answer) == {}
        except Refused:
            return False  # not begun yet

    with Worker(server.port, "work"):
        eventually(complete, "the activity")
        found = result(client, "later")
    check(found == "from elsewhere", found)


def code_that_blocks_is_told_so(server, client):
    start(client, "stuck", "Stuck")
    with Worker(server.port, "work"):
        failed = eventually(lambda: tasks_failed(client, "stuck"), "the failed task")
    check('potential deadlock: workflow "Stuck" (stuck, run ' in failed[0], failed)
    client.post("/workflows/stuck/terminate", {"reason": "done"})


def a_server_that_comes_back_is_found_again():
    database = directory() / "worker.db"
    with Server(database) as server:
        port = server.port
        client = server.client()
        start(client, "sum", "Sum", 60)
        with Worker(port, "work") as worker:
            time.sleep(0.5)
            server.kill()
            time.sleep(2)
            with Server(database, port=port) as again:
                found = result(again.client(), "sum")
                check(found == 60 * 61, found)
                worker.signal(signal.SIGTERM)
                check(worker.wait() == 0, worker.lines)


def a_server_that_is_not_there_is_named():
    with Server() as server:
        port = server.port
    with Worker(port, "work") as worker:
        eventually(lambda: worker.says("cannot reach http://127.0.0.1:"), "a hint")
        worker.signal(signal.SIGTERM)
        check(worker.wait() == 0, worker.lines)


def the_program_of_the_readme_works():
    with Server(permit_worker=True) as server:
        client = server.client()
        client.start("llama", type="train", queue="training", input=["llama", 3])
        program = WORKERS / "readme_worker"
        process = subprocess.Popen(
            [program], env={**os.environ, "PERMIT_ADDRESS": f"127.0.0.1:{server.port}"}
        )
        try:
            found = result(client, "llama")
            check(found.startswith("llama-3.ckpt from GPU "), found)
            pool = client.get("/pools/gpu-pool")
            check(pool["capacity"] == 4 and pool.get("held", 0) == 0, pool)
            process.send_signal(signal.SIGTERM)
            check(process.wait(10) == 0, "its exit code")
        finally:
            process.kill()
            process.wait()


def with_server(case):
    def run_case():
        with Server() as server:
            case(server, server.client())

    run_case.__name__ = case.__name__
    return run_case


run(
    with_server(a_killed_worker_costs_nothing),
    with_server(an_attempt_takes_up_where_the_last_one_was),
    with_server(a_drained_worker_ends_what_it_has),
    with_server(an_idle_worker_stops_at_once),
    with_server(a_second_signal_ends_it_at_once),
    with_server(a_canceled_activity_stops),
    with_server(an_activity_is_completed_from_elsewhere),
    with_server(code_that_blocks_is_told_so),
    a_server_that_comes_back_is_found_again,
    a_server_that_is_not_there_is_named,
    the_program_of_the_readme_works,
)
