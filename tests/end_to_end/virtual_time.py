#!/usr/bin/env python3
"""A 45-minute lease passes in milliseconds, and in the order it would in life."""

import threading
import time

from support import (
    Refused,
    Server,
    check,
    command,
    complete_workflow,
    events_of,
    permit_worker,
    run,
    seconds_of,
    start_permit,
)

LEASE = 45 * 60
GRACE = LEASE / 10  # of leases above 50 s


def advance(client, seconds):
    return seconds_of(client.ask("POST", "/api/v1/test/advance", {"seconds": seconds})["now"])


def acquire(client, lease=f"{LEASE}s"):
    client.set_pool("gpu", capacity=1)
    return client.acquire("gpu", "r", lease=lease)["slots"][0]


def check_ended(client, slot, outcome, cause, after):
    permit = client.permit(slot["id"], slot["runId"])
    check((permit["outcome"], permit["cause"]) == (outcome, cause), permit)
    passed = seconds_of(permit["closedAt"]) - seconds_of(permit["since"])
    check(abs(passed - after) < 0.001, f"closed after {passed} s, not {after} s: {permit}")


def a_served_lease_ends_by_its_timer():
    with Server(None, "--virtual-time") as server, permit_worker(server):
        client = server.client()
        slot = acquire(client)
        while len(client.history(slot["id"])) < 5:  # until the timer runs
            time.sleep(0.01)
        began = time.monotonic()
        advance(client, LEASE - 1)
        check(client.permit(slot["id"])["state"] == "held", "a second is left")
        advance(client, 1)
        took = time.monotonic() - began
        check_ended(client, slot, "lease_expired", "timer", LEASE)
        print(f"    45 minutes took {took * 1000:.0f} ms")
        check(took < 5, f"it took {took} s")


def a_single_step_over_lease_and_grace_still_ends_by_the_timer():
    with Server(None, "--virtual-time") as server, permit_worker(server):
        client = server.client()
        slot = acquire(client)
        advance(client, 3 * LEASE)  # the worker's first task included
        check_ended(client, slot, "lease_expired", "timer", LEASE)


def a_lease_that_nobody_serves_ends_by_the_backstop():
    with Server(None, "--virtual-time") as server:
        client = server.client()
        slot = acquire(client)
        advance(client, LEASE + GRACE - 1)
        check(client.permit(slot["id"])["state"] == "held", "a second is left")
        advance(client, 1)
        check_ended(client, slot, "lease_expired", "backstop", LEASE + GRACE)


def a_renewed_lease_ends_later():
    with Server(None, "--virtual-time") as server, permit_worker(server):
        client = server.client()
        client.set_pool("gpu", capacity=1)
        grant = client.acquire("gpu", "r", lease=f"{LEASE}s")
        slot = grant["slots"][0]
        advance(client, LEASE - 60)
        client.renew(slot["id"], grant["token"])
        advance(client, LEASE - 60)
        check(client.permit(slot["id"])["state"] == "held", "renewed a lease ago, less a minute")
        advance(client, 60)
        check_ended(client, slot, "lease_expired", "timer", 2 * LEASE - 60)


def the_next_in_line_gets_it_at_that_instant():
    with Server(None, "--virtual-time") as server, permit_worker(server):
        client = server.client()
        slot = acquire(client)
        client.start("next", queue="parents")
        client.complete(client.poll("parents"), start_permit("gpu", order="fair", lease="60s"))
        advance(client, LEASE)
        check_ended(client, slot, "lease_expired", "timer", LEASE)
        started = events_of(client.history("next"), "ChildWorkflowExecutionStarted")[0]
        deadline = seconds_of(started["deadline"])
        ended = seconds_of(client.permit(slot["id"], slot["runId"])["closedAt"])
        check(abs(deadline - ended - 60) < 0.001, "granted in the instant it was free")


def time_waits_for_a_task_that_a_worker_has():
    with Server(None, "--virtual-time") as server:
        client = server.client()
        client.start("slow", queue="slow", workflowTaskTimeout="120s")
        task = client.poll("slow")
        done = []
        other = server.client()
        thread = threading.Thread(target=lambda: done.append(advance(other, 60)))
        thread.start()
        time.sleep(0.3)
        check(not done, "time passed although a worker was at work")
        timer = command("StartTimer", timerId="t", startToFireTimeout="30s")
        client.complete(task, timer)
        thread.join(10)
        check(done, "time passes once the task is done")
        fired = [e for e in client.history("slow") if "timerFiredEventAttributes" in e]
        check(len(fired) == 1, "the timer fired on the way")


def a_task_that_nobody_completes_is_named():
    with Server(None, "--virtual-time") as server:
        client = server.client()
        client.start("stuck", queue="stuck")
        task = client.poll("stuck")
        began = time.monotonic()
        try:
            advance(client, 3600)
            check(False, "time passed over a worker's head")
        except Refused as refused:
            check(refused.status == 409, refused)
            check("stuck" in refused.message, refused)
            print(f"    409 after {time.monotonic() - began:.1f} s: {refused.message}")
        client.complete(task, complete_workflow())
        advance(client, 3600)


def without_the_flag_there_is_no_such_route():
    with Server() as server:
        client = server.client()
        try:
            advance(client, 1)
            check(False, "time was moved")
        except Refused as refused:
            check(refused.status == 404, refused)


run(
    a_served_lease_ends_by_its_timer,
    a_single_step_over_lease_and_grace_still_ends_by_the_timer,
    a_lease_that_nobody_serves_ends_by_the_backstop,
    a_renewed_lease_ends_later,
    the_next_in_line_gets_it_at_that_instant,
    time_waits_for_a_task_that_a_worker_has,
    a_task_that_nobody_completes_is_named,
    without_the_flag_there_is_no_such_route,
)
