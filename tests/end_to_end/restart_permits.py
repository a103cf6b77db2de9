#!/usr/bin/env python3
"""Permits, their line and their pool are the same after a restart, kill -9 included."""

import random
import time

from support import (
    Refused,
    Server,
    check,
    complete_workflow,
    directory,
    eventually,
    permit_worker,
    run,
    seconds_of,
    start_permit,
)


def ask_from_workflow(client, name, pool, priority=0, **request):
    """A workflow that asks for a permit and then waits. Each has a queue of its own."""
    client.start(name, type="Holder", queue=name)
    command = start_permit(pool, order="fair", **request)
    if priority:
        command["startChildWorkflowExecutionCommandAttributes"]["priority"] = {
            "priorityKey": priority
        }
    client.complete(client.poll(name), command)


def holders(client, pool):
    """{slot: permit} of the held slots."""
    slots = client.pool(pool).get("slots", [])
    return {slot["slot"]: slot["permit"] for slot in slots if "permit" in slot}


def names_holding(client, pool):
    return {permit["holder"] for permit in holders(client, pool).values()}


def line(client, pool):
    return [waiter["holder"] for waiter in client.get(f"/pools/{pool}/waiters").get("waiters", [])]


def end(client, workflow):
    client.post(f"/workflows/{workflow}/terminate", {"reason": "done"})


def an_abandoned_permit_ends_across_a_restart():
    database = directory() / "backstop.db"
    with Server(database) as server:
        client = server.client()
        client.set_pool("gpu", capacity=2)
        # Grace is 5 s: due while the server is down, and soon after it is up again.
        early = client.acquire("gpu", "early", lease="0.5s")["slots"][0]
        late = client.acquire("gpu", "late", lease="5s")["slots"][0]
        server.kill()
    time.sleep(6)
    up = time.time()
    with Server(database) as server:
        client = server.client()
        ended = eventually(
            lambda: client.permit(early["id"], early["runId"]).get("outcome")
            and client.permit(early["id"], early["runId"]),
            "the backstop of a permit that was due while the server was down",
        )
        check((ended["outcome"], ended["cause"]) == ("lease_expired", "backstop"), ended)
        passed = seconds_of(ended["closedAt"]) - up
        check(0 <= passed < 4, f"closed {passed} s after the restart")  # not after another 5 s of grace
        close = client.history(early["id"], early["runId"])[-1]
        check(close["eventType"] == "EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT", close)

        still = client.permit(late["id"], late["runId"])
        check(still["state"] == "held", f"it has seconds left: {still}")
        client.wait_closed(late["id"], late["runId"])
        ended = client.permit(late["id"], late["runId"])
        check((ended["outcome"], ended["cause"]) == ("lease_expired", "backstop"), ended)
        passed = seconds_of(ended["closedAt"]) - seconds_of(ended["deadline"])
        check(5 <= passed < 8, f"closed {passed} s after the deadline; the grace is 5 s")
        again = client.acquire("gpu", "again", count=2, wait="0s")
        check(len(again["slots"]) == 2, "both slots are free")


def fences_rise_across_restarts_and_retention():
    database = directory() / "fences.db"
    fences = {"0": [], "1": [], "all": []}
    for life in range(8):
        with Server(database, "--retention", "1s") as server:
            client = server.client()
            client.set_pool("gpu", capacity=2)
            for turn in range(20):
                grant = client.acquire("gpu", f"{life}-{turn}")
                fences[grant["slots"][0]["slot"]].append(grant["fence"])
                fences["all"].append(grant["fence"])
                client.release(grant["slots"][0]["id"], grant["token"])
            time.sleep(0.2)
            if life % 2:
                check(server.stop() == 0, "exit code")
    for slot, given in fences.items():
        check(given == sorted(set(given)), f"fences of {slot} do not rise: {given}")
    print(f"    {len(fences['all'])} grants, fences {fences['all'][0]} to {fences['all'][-1]}")


def a_grant_survives_and_is_still_the_holders():
    database = directory() / "grant.db"
    with Server(database) as server:
        client = server.client()
        client.set_pool("gpu", capacity=1)
        grant = client.acquire("gpu", "mine", holder="me", lease="60s")
        server.kill()
    with Server(database) as server:
        client = server.client()
        check(client.acquire("gpu", "mine", holder="me", lease="60s") == grant, "same request id")
        slot = grant["slots"][0]
        deadline = client.renew(slot["id"], grant["token"])["deadline"]
        check(seconds_of(deadline) > seconds_of(grant["deadline"]), "renewed")
        check(client.release(slot["id"], grant["token"])["outcome"] == "released", "released")
        try:
            client.release(slot["id"], grant["token"])
            check(False, "released twice")
        except Refused as refused:
            check((refused.status, refused.reason) == (410, "LEASE_LOST"), refused)


def the_line_is_served_in_order_across_kills():
    database = directory() / "line.db"
    dice = random.Random(4)
    slots, waiters = 4, 60
    arrivals = []  # (priority, arrival, name)
    tickets = {}  # name → priority, of those that are not workflows

    def ask_again(client, name):
        """How a holder that is not a workflow keeps its place, and learns of its grant."""
        return client.acquire(
            "gpu", name, holder=name, priority=tickets[name], lease="600s", wait="0.01s"
        )

    with Server(database) as server:
        client = server.client()
        client.set_pool("gpu", capacity=slots)
        for number in range(slots):
            ask_from_workflow(client, f"first-{number}", "gpu", lease="600s")
        for number in range(waiters):
            name, priority = f"job-{number}", dice.choice([1, 3, 3, 3, 5])
            if number % 10 == 7:
                tickets[name] = priority
                for ticket in tickets:  # places are kept for 15 s only, and a disk may be slow
                    ask_again(client, ticket)
            else:
                ask_from_workflow(client, name, "gpu", priority=priority, lease="600s")
            arrivals.append((priority, number, name))
        server.kill()

    expected = [name for _, _, name in sorted(arrivals)]
    server = Server(database)
    for served in range(waiters):
        if served % 15 == 10:  # in the middle
            server.kill()
            server = Server(database)
        client = server.client()
        check(line(client, "gpu") == expected, f"the line after {served} were served")
        tokens = {}
        for name in tickets:
            answer = ask_again(client, name)
            if name in expected:
                check(answer["ticket"]["position"] == expected.index(name) + 1, answer)
            else:
                tokens[name] = answer["token"]
        slot, permit = dice.choice(sorted(holders(client, "gpu").items()))
        if permit["holder"] in tickets:
            client.release(permit["id"], tokens[permit["holder"]])
            del tickets[permit["holder"]]
        else:
            end(client, permit["holder"])
        before = client.permit(permit["id"], permit["runId"])
        after = holders(client, "gpu")[slot]
        check(after["holder"] == expected[0], f"{after['holder']} overtook {expected[0]}")
        check(after["since"] == before["closedAt"], "freed and granted in one commit")
        check(after["fence"] > before["fence"], "the fence rises")
        expected.pop(0)
    server.kill()
    print(f"    {waiters} waiters on {slots} slots, in order")


def a_waiter_whose_run_ends_leaves_the_line():
    with Server(directory() / "leave.db") as server:
        client = server.client()
        client.set_pool("gpu", capacity=1)
        for name in ("holder", "leaver", "next"):
            ask_from_workflow(client, name, "gpu", lease="600s")
        end(client, "leaver")
        check(line(client, "gpu") == ["next"], "it left at once")
        end(client, "holder")
        check(names_holding(client, "gpu") == {"next"}, "and was skipped")


def capacity_follows_the_operator_across_kills():
    database = directory() / "capacity.db"
    server = Server(database)

    def restart():
        nonlocal server
        server.kill()
        server = Server(database)
        return server.client()

    client = server.client()
    client.set_pool("gpu", capacity=2)
    jobs = [f"job-{number}" for number in range(12)]
    for name in jobs:
        ask_from_workflow(client, name, "gpu", lease="600s")

    def check_holding(count, gone=()):
        """The first jobs hold, but for those gone; the rest wait in order."""
        present = [name for name in jobs if name not in gone]
        check(names_holding(client, "gpu") == set(present[:count]), holders(client, "gpu"))
        check(line(client, "gpu") == present[count:], line(client, "gpu"))

    check_holding(2)
    client.set_pool("gpu", capacity=5)  # up: exactly as many as fit
    check_holding(5)
    client = restart()
    check_holding(5)

    client.set_pool("gpu", capacity=1)  # down: holders finish, nobody new
    check_holding(5)
    client = restart()
    leaving = [s["slot"] for s in client.pool("gpu")["slots"] if s.get("leaving")]
    check(leaving == ["1", "2", "3", "4"], leaving)
    by_slot = {slot: permit["holder"] for slot, permit in holders(client, "gpu").items()}
    gone = [by_slot[slot] for slot in leaving]
    for name in gone:
        end(client, name)
    check_holding(1, gone)

    client.set_pool("gpu", capacity=0)  # everybody waits, nobody fails
    gone.append(by_slot["0"])
    end(client, by_slot["0"])
    check_holding(0, gone)
    client = restart()
    check_holding(0, gone)
    for name in jobs[5:]:
        check(client.info(name)["status"].endswith("RUNNING"), name)

    client.set_pool("gpu", capacity=3)
    check_holding(3, gone)
    client = restart()
    check_holding(3, gone)
    server.kill()


def a_worker_finishes_what_began_before_the_restart():
    database = directory() / "worker.db"
    with Server(database) as server:
        client = server.client()
        client.set_pool("gpu", capacity=1)
        ask_from_workflow(client, "holder", "gpu", lease="2s")
        permit = holders(client, "gpu")["0"]
        with permit_worker(server):
            eventually(
                lambda: len(client.history(permit["id"])) >= 5, "the worker started the lease timer"
            )
            server.kill()
    with Server(database) as server, permit_worker(server):
        client = server.client()
        close = client.wait_closed(permit["id"], permit["runId"])
        check("workflowExecutionCompletedEventAttributes" in close, close)
        ended = client.permit(permit["id"], permit["runId"])
        check((ended["outcome"], ended["cause"]) == ("lease_expired", "timer"), ended)
        task = client.poll("holder")
        types = [event["eventType"] for event in task["history"]["events"]]
        check("EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED" in types, types)
        client.complete(task, complete_workflow())


run(
    an_abandoned_permit_ends_across_a_restart,
    fences_rise_across_restarts_and_retention,
    a_grant_survives_and_is_still_the_holders,
    the_line_is_served_in_order_across_kills,
    a_waiter_whose_run_ends_leaves_the_line,
    capacity_follows_the_operator_across_kills,
    a_worker_finishes_what_began_before_the_restart,
)
