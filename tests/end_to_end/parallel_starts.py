#!/usr/bin/env python3
"""200 starts of one workflow id at once: one wins, the rest are told who runs."""

from support import Refused, Server, check, directory, events_of, parallel, run

CONNECTIONS = 8
STARTS = 200


def race(server, ask):
    """200 times ask(client, number) from 8 connections. Returns what was answered and refused."""
    answers, refusals = [], []

    def asks(client, connection):
        for number in range(connection, STARTS, CONNECTIONS):
            try:
                answers.append(ask(client, number))
            except Refused as refused:
                refusals.append(refused)

    parallel(server, CONNECTIONS, asks)
    check(len(answers) == 1, f"{len(answers)} winners: {answers}")
    check(len(refusals) == STARTS - 1, f"{len(refusals)} refusals")
    return answers[0], refusals


def one_start_of_200_wins_and_again_after_each_close():
    with Server(directory() / "starts.db") as server:
        client = server.client()
        won = set()
        for round in range(5):
            winner, refusals = race(
                server, lambda client, number: client.start("one", requestId=f"{round}-{number}")
            )
            run_id = winner["runId"]
            for refused in refusals:
                named = [detail.get("runId") for detail in refused.answer["details"]]
                check(refused.status == 409 and run_id in named, f"not 409 for {run_id}: {refused}")
            check(client.info("one")["execution"]["runId"] == run_id, "another run is current")
            started = events_of(client.history("one", run_id), "WorkflowExecutionStarted")
            check(len(started) == 1, "one run, one start")
            won.add(run_id)
            client.post("/workflows/one/terminate", {"reason": "next round"})
        check(len(won) == 5, f"a run was started twice: {won}")
        check(server.stop() == 0, "exit code")


def one_acquire_of_200_wins_a_slot_and_again_after_each_release():
    with Server(directory() / "permits.db") as server:
        client = server.client()
        client.set_pool("gpu", capacity=1)
        fences = []
        for round in range(5):
            winner, refusals = race(
                server, lambda client, number: client.acquire("gpu", f"{round}-{number}", wait="0s")
            )
            check({refused.status for refused in refusals} == {423}, "the rest: 423")
            fences.append(winner["fence"])
            client.release("permit:gpu:0", winner["token"])
        check(fences == sorted(set(fences)), f"fences do not rise: {fences}")


run(
    one_start_of_200_wins_and_again_after_each_close,
    one_acquire_of_200_wins_a_slot_and_again_after_each_release,
)
