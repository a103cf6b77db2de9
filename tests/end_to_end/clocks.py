#!/usr/bin/env python3
"""Wall clocks that jump, live and across a restart: no lease ends early, none lives for ever.

Usage: clocks.py [--steps N] [--seed S]

The server's clock is moved by libfaketime, which leaves the monotonic ones alone, as a step of the
real one would. Then a boot whose clock has fallen behind the last commit, and one that sees another
time since boot, as after a suspend.
"""

import argparse
import fcntl
import os
import pathlib
import random
import subprocess
import sys
import time

from chaos_support import LockLoad, Locks, totals
from support import (
    Server,
    check,
    check_gapless,
    command,
    directory,
    eventually,
    events_of,
    seconds_of,
    skip,
)

DAY = 86_400
JUMPS = [3600, -3600, 10 * DAY, -10 * DAY, 0]
LIBRARY = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)


class FakeClock:
    """The wall clock of a server, as far from the real one as one says."""

    def __init__(self, offset=0):
        self.path = directory() / "clock"
        self.set(offset)
        self.wrapper = (
            "env", f"LD_PRELOAD={LIBRARY}", f"FAKETIME_TIMESTAMP_FILE={self.path}",
            "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1",
        )

    def set(self, offset):
        part = self.path.with_suffix(".part")
        part.write_text(f"{offset:+d}")
        os.replace(part, self.path)


def jumps_while_it_runs(arguments, dice, locks):
    clock = FakeClock()
    with Server(directory() / "jumps.db", wrapper=clock.wrapper, permit_worker=True) as server:
        client = server.client()
        client.set_pool("keep", capacity=4)
        client.set_pool("lock", capacity=8)
        kept = [client.acquire("keep", f"keep-{slot}", lease="600s") for slot in range(4)]
        client.start("timer")
        begun = time.monotonic()
        timer = command("StartTimer", timerId="t", startToFireTimeout="1.5s")
        client.complete(client.poll(), timer)
        history = directory() / "jumps.txt"
        with LockLoad(server.port, history, slots=8, connections=12, lease_ms=400,
                      abandon_percent=20, think_ms=20) as load:
            for step in range(arguments.steps):
                clock.set(dice.choice(JUMPS))
                time.sleep(dice.uniform(0.1, 0.4))
                if step == 2:  # the timer that ran through the jumps
                    task = client.poll(wait="10s")
                    took = time.monotonic() - begun
                    check(task and 1.5 <= took < 6, f"a timer of 1.5 s took {took:.2f} s")
            print(load.end())
        print(locks.check(history, min_grants=50))
        check(locks.expired > 0, "no lease has ended: nothing was tried")
        for grant in kept:
            slot = grant["slots"][0]
            check(client.permit(slot["id"], slot["runId"])["state"] == "held", "600 s have passed?")
            client.renew(slot["id"], grant["token"])
        check_gapless(client.history("timer"))
        check_times(client.history("timer"))
        check(server.stop() == 0, "exit code")


def check_times(events):
    times = [seconds_of(event["eventTime"]) for event in events]
    check(times == sorted(times), f"event times go back: {times}")


def a_boot_with_a_clock_that_is_behind():
    database = directory() / "behind.db"
    clock = FakeClock(10 * DAY)
    with Server(database, wrapper=clock.wrapper) as server:
        client = server.client()
        client.set_pool("gpu", capacity=4)
        grants = [client.acquire("gpu", f"a{slot}", lease="600s") for slot in range(3)]
        short = client.acquire("gpu", "short", lease="6s")["slots"][0]  # held still at the look below
        client.start("timer")
        client.complete(client.poll(), command("StartTimer", timerId="t", startToFireTimeout="6s"))
        server.kill()
    clock.set(0)  # ten days earlier
    with Server(database, wrapper=clock.wrapper, permit_worker=True) as server:
        client = server.client()
        up = time.monotonic()
        pool = client.pool("gpu")
        check(pool["held"] == 4, f"a mass expiry: {pool}")
        for grant in grants:
            slot = grant["slots"][0]
            permit = client.permit(slot["id"], slot["runId"])
            check(seconds_of(permit["since"]) <= seconds_of(permit["deadline"]), permit)
            deadline = seconds_of(client.renew(slot["id"], grant["token"])["deadline"])
            check(deadline >= seconds_of(grant["deadline"]), "a renewal brought the deadline closer")
        # What was due soon is due soon, and not in ten days.
        eventually(lambda: client.permit(short["id"], short["runId"]).get("outcome"),
                   "the end of a lease of 6 s", 30)
        eventually(lambda: events_of(client.history("timer"), "TimerFired"), "the timer", 30)
        check_times(client.history("timer"))
        check(time.monotonic() - up < 30, "too late")
        check(server.stop() == 0, "exit code")


def is_free(database):
    """Nobody has it: who kills `unshare` kills the server, but a moment later."""
    with open(f"{database}.lock") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            return False


def a_boot_that_sees_another_uptime():
    if subprocess.run(["unshare", "--time", "--boottime", "1000", "true"],
                      capture_output=True).returncode != 0:
        print("    not tried: no time namespace here")
        return
    database = directory() / "uptime.db"
    with Server(database) as server:
        client = server.client()
        client.set_pool("gpu", capacity=1)
        grant = client.acquire("gpu", "a", lease="600s")
        server.kill()
    for offset in ("0", str(30 * DAY)):
        eventually(lambda: is_free(database), "the end of the server before")
        wrapper = ("unshare", "--time", "--boottime", offset, "--monotonic", offset, "--fork",
                   "--kill-child")
        with Server(database, wrapper=wrapper) as server:
            slot = grant["slots"][0]
            deadline = server.client().renew(slot["id"], grant["token"])["deadline"]
            left = seconds_of(deadline) - time.time()
            check(590 < left < 610, f"{left} s are left of 600")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    arguments = parser.parse_args()
    if LIBRARY is None:
        skip("this test needs libfaketime: scripts/setup --test")
    print(f"SEED={arguments.seed}", flush=True)
    locks = Locks()
    for case in (
        lambda: jumps_while_it_runs(arguments, random.Random(arguments.seed), locks),
        a_boot_with_a_clock_that_is_behind,
        a_boot_that_sees_another_uptime,
    ):
        case()
    print("ok")
    totals(steps=arguments.steps, locks=locks.operations, violations=0)
    return 0


sys.exit(main())
