#!/usr/bin/env python3
"""The server dies at a chosen call of the kernel, or the call fails: what was acknowledged is there.

Usage: failpoints.py [--points N] [--errors N] [--allocations N] [--rounds N] [--seconds S] [--seed S] [--only TEXT]

Each point names a phase of the server's life and a call in it. Afterwards the file must be sound, a
new server must start and hold what was acknowledged, nothing that was refused, and what got no
answer once at most; and the history of the locks must be one that can have come about. Without
options a sample of the points; --points 0: all of them.
"""

import argparse
import collections
import itertools
import pathlib
import random
import struct
import subprocess
import sys
import time

from chaos_support import (
    Book,
    LockLoad,
    Locks,
    Shim,
    check_file,
    totals,
    wait_dead,
)
from support import BINARY, Server, Unknown, check, directory, eventually

PATIENCE = 30  # seconds for a rule to fire

# Phase → "call file" and the highest number of such a call that surely comes in that phase.
# create: the first start on an empty directory. serve: under load. recover: the start after a
# kill -9 in the middle. stop: after SIGTERM.
DEATHS = {
    "create": {
        "open lock": 1, "write lock": 1, "truncate lock": 1, "open db": 1, "open more": 1,
        "write more": 2, "sync more": 2, "unlink more": 1, "write db": 1, "sync db": 1,
        "open wal": 1, "write wal": 4, "sync wal": 3, "open shm": 1, "truncate shm": 1,
        "write shm": 8, "open key": 1, "write key": 1, "sync key": 1, "accept socket": 1,
        "open redo": 2,
    },
    "serve": {
        "write redo": 400, "sync redo": 40, "write wal": 20, "sync wal": 6,
        "read wal": 20, "write db": 20, "sync db": 1, "reply socket": 40, "send socket": 200,
        "receive socket": 200, "accept socket": 4,
    },
    "recover": {
        "open lock": 1, "write lock": 1, "open db": 1, "read db": 2, "open wal": 1, "read wal": 8,
        "open shm": 1, "truncate shm": 1, "write shm": 8, "write wal": 2, "sync wal": 1,
        "open redo": 1, "read redo": 1, "unlink redo": 1,
    },
    "stop": {
        "read wal": 4, "write db": 4, "sync db": 1, "truncate db": 1, "unlink wal": 1,
        "unlink shm": 1, "sync wal": 1, "unlink redo": 1,
    },
}
WRITES = ("write",)  # of which half may be done


def death_points():
    for phase, calls in DEATHS.items():
        for call, most in calls.items():
            for when in ("before", "half", "after") if call.split()[0] in WRITES else (
                    "before", "after"):
                yield phase, call, most, when, "kill"


# The same for calls that fail: once, or from then on.
ERRORS = {
    "create": {"open db": 1, "open wal": 1, "open shm": 1, "open lock": 1, "open key": 1,
               "open more": 1, "write db": 1, "write wal": 4, "write key": 1, "write lock": 1,
               "write more": 2, "sync db": 1, "sync wal": 3, "sync key": 1, "sync more": 2,
               "truncate lock": 1, "truncate shm": 1, "unlink more": 1, "open redo": 2},
    "serve": {"write redo": 200, "sync redo": 30, "write wal": 20, "sync wal": 5,
              "read wal": 20, "read any": 20, "write db": 20, "sync db": 1, "accept socket": 4,
              "receive socket": 100, "send socket": 100},
    "recover": {"open db": 1, "read db": 2, "open wal": 1, "read wal": 8, "open shm": 1,
                "write wal": 2, "sync wal": 1, "open lock": 1, "open redo": 1, "read redo": 1,
                "unlink redo": 1},
    "stop": {"read wal": 4, "write db": 4, "sync db": 1, "truncate db": 1, "sync wal": 1,
             "unlink wal": 1},
}
# No memory, once: a call fails, or the server ends.
ALLOCATIONS = {"create": 6_000, "serve": 60_000, "recover": 6_000}


ENDS_BEFORE = {"create": (-6, -11), "recover": (-6, -11)}


def allocation_points():
    for phase, most in ALLOCATIONS.items():
        yield phase, "allocate memory", most, "before", "enomem"


# Nobody knows what is on the disk after these. Of the others some are no harm.
MUST_END = {"open redo", "write redo", "sync redo", "write wal", "sync wal", "write db", "sync db",
            "read wal", "read any"}


def error_points():
    for phase, calls in ERRORS.items():
        for call, most in calls.items():
            for later in ("",) if call == "accept socket" else ("", "+"):
                yield phase, call, most, "before" + later, "eio"
            if call.split()[0] == "write" and phase == "serve":
                yield phase, call, most, "before", "enospc"


class Life:
    """One directory, one pool, and all that was asked there."""

    def __init__(self, name, seed):
        self.home = directory() / name
        self.home.mkdir()
        self.database = self.home / "permit.db"
        self.history = self.home / "history.txt"
        self.seed = seed
        self.book = Book("w")
        self.lives = 0
        self.states = {}  # of the signals, before any was asked again

    def serve(self, server, until, arm=None):
        """Signals and locks, until until() holds; the server may be dead by then."""
        client = server.client()
        client.set_pool("lock", capacity=8)
        client.close()
        self.book.begin(server)
        self.lives += 1
        with LockLoad(server.port, self.history, slots=8, connections=8, settle_seconds=1,
                      seed=self.seed + self.lives, retry_percent=0, lease_ms=600_000) as load:
            if arm:
                arm()
            try:
                eventually(until, "the rule fires", PATIENCE)
            finally:
                if server.process.poll() is not None:
                    load.terminate()
                said = load.end()
        self.book.end()
        return said

    def restart_and_verify(self, locks):
        self.states = self.book.counts()
        check_file(self.database, self.home / "copy.db")
        with Server(self.database) as server:
            if self.book.asked:
                self.book.verify(server)
            client = server.client()
            client.ask("GET", "/readyz")
            client.set_pool("after", capacity=1)
            grant = client.acquire("after", "after")
            client.release(grant["slots"][0]["id"], grant["token"])
            if self.history.exists():
                locks.check(self.history, min_grants=0, min_ok_percent=0)
            check(server.stop() == 0, "exit code after the repair")


def start_to_die(database, shim):
    """A start that is not expected to get far. (exit code or None if it runs on, process)"""
    process = subprocess.Popen(
        [*shim.wrapper, BINARY, "server", "start", "--port", "0", "--no-permit-worker",
         "--db-filename", str(database)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )
    said = []
    for line in process.stdout:
        said.append(line)
        if line.startswith("Stop with"):
            break
    return process, said


def end(process):
    if process.poll() is None:
        process.kill()
    process.wait()
    process.stdout.close()


def rule_of(call, most, when, action, dice):
    number = dice.randint(1, most)
    later = "+" if when.endswith("+") else ""
    return f"{call} {number}{later} {when.rstrip('+')} {action}"


def some_life(life):
    """A server that has done something and was killed in the middle of it."""
    with Server(life.database) as server:
        life.serve(server, lambda: len(life.book.acked_after) > 20)
        server.kill()


def phase_create(life, shim):
    process, said = start_to_die(life.database, shim)
    try:
        check(shim.fired, f"{process.poll()} never fired: {shim.all_calls()} {said}")
        return process.wait(timeout=10) if shim_kills(shim) else settle(process, 8 if must_end(shim) else 1), said
    finally:
        end(process)


def shim_kills(shim):
    return shim.wrapper[-1].endswith("kill")


def settle(process, seconds):
    """The exit code of a start that met an error; None if it took no notice."""
    try:
        return process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return None


def phase_recover(life, shim):
    some_life(life)
    return phase_create(life, shim)


def phase_serve(life, shim):
    server = Server(life.database, wrapper=shim.wrapper)
    try:
        ended = lambda: shim.fired and (not must_end(shim) or server.process.poll() is not None)
        life.serve(server, ended, arm=shim.arm)
        return server.process.poll(), server.log
    finally:
        server.kill()


def must_end(shim):
    rule = shim.wrapper[-1].removeprefix("PERMIT_SHIM=")
    kills = rule.endswith("kill")
    return kills or (" ".join(rule.split()[:2]) in MUST_END and rule.endswith("eio"))


def log_is_copied(database):
    """Whether every frame of the log is in the file: then a stop has nothing to do."""
    index = pathlib.Path(f"{database}-shm").read_bytes()
    frames, copied = struct.unpack_from("=I", index, 16)[0], struct.unpack_from("=I", index, 96)[0]
    return copied == frames


def phase_stop(life, shim):
    server = Server(life.database, wrapper=shim.wrapper)
    try:
        life.serve(server, lambda: len(life.book.acked_after) > 20)
        client, capacity = server.client(), itertools.count(1)
        eventually(lambda: client.set_pool("more", capacity=next(capacity))
                   and not log_is_copied(life.database), "something in the log", PATIENCE)
        shim.arm()
        server.process.terminate()
        code = wait_dead(server)
        check(shim.fired, f"exit {code}, never fired: {shim.all_calls()}")
        return code, server.log
    finally:
        server.kill()


PHASES = {"create": phase_create, "serve": phase_serve, "recover": phase_recover,
          "stop": phase_stop}


def says_why(said):
    return any("permit: " in line or "server_failed" in line for line in said)


def check_fail_stop(phase, rule, code, said, life, shim):
    """An error that is no full disk ends the server with exit code 1, a sentence, and no answer."""
    call = " ".join(rule.split()[:2])
    if rule.endswith("enomem"):
        # Before it serves: what is made before main() aborts, and OpenSSL does not survive it when it sets itself up.
        check(code in (None, 1, *ENDS_BEFORE.get(phase, ())), f"{phase}: {rule}: exit code {code}: {said[-3:]}")
        check(code != 1 or says_why(said), f"{phase}: {rule}: nothing was said: {said}")
        return
    if rule.endswith("enospc"):
        check(code is None, f"{rule}: a full disk ended the server: {code} {said[-3:]}")
        return
    if code is None:
        # In an empty directory nothing can be lost yet: SQLite begins anew.
        harmless = call not in MUST_END or (phase == "create" and call.endswith(" db"))
        check(harmless, f"{phase}: {rule}: the server went on")
        return
    if phase == "stop" and code == 0:
        return  # what a start would do again
    check(code == 1, f"{phase}: {rule}: exit code {code}: {said[-3:]}")
    check(says_why(said), f"{phase}: {rule}: nothing was said: {said}")
    # What another thread meets, reaches the one that commits a moment later, on a busy machine some
    # moments. Only the redo log is written by that one, and only its commits depend on it.
    slack = 0 if call in ("open redo", "write redo", "sync redo") else 3
    late = [asked for asked, _ in life.book.acked_after if asked > shim.fired_at + slack]
    check(not late, f"{phase}: {rule}: {len(late)} acknowledged after the error")


def try_point(number, point, locks, dice):
    phase, call, most, when, action = point
    rule = rule_of(call, most, when, action, dice)
    life = Life(f"{number}", dice.randrange(1 << 20))
    shim = Shim(life.database, rule, armed=phase in ("create", "recover"))
    try:
        code, said = PHASES[phase](life, shim)
        if action == "kill":
            check(code == -9, f"exit code {code}")
        else:
            check_fail_stop(phase, rule, code, said, life, shim)
        life.restart_and_verify(locks)
    except BaseException:
        print(f"FAILED at {phase}: {rule}", flush=True)
        raise
    subprocess.run(["rm", "-rf", str(life.home)], check=True)
    return life


def choose(points, count, dice):
    """A sample, with something of each phase; 0: all."""
    points = list(points)
    dice.shuffle(points)
    if count == 0:
        return points
    by_phase = collections.defaultdict(list)
    for point in points:
        by_phase[point[0]].append(point)
    mixed = [point for row in itertools.zip_longest(*by_phase.values()) for point in row if point]
    return mixed[:count]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--errors", type=int, default=12)
    parser.add_argument("--allocations", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    print(f"SEED={arguments.seed}", flush=True)
    dice = random.Random(arguments.seed)
    began = time.monotonic()
    locks, signals = Locks(), collections.Counter()
    deaths, errors = [], []
    for round in range(arguments.rounds):
        plan = [*choose(death_points(), arguments.points, dice),
                *choose(error_points(), arguments.errors, dice),
                *dice.choices(list(allocation_points()), k=arguments.allocations)]
        dice.shuffle(plan)
        for point in plan:
            if time.monotonic() - began > arguments.seconds:
                break
            if arguments.only not in " ".join(map(str, point)):
                continue
            number = f"{round}-{len(deaths) + len(errors)}"
            life = try_point(number, point, locks, dice)
            signals.update(life.states)
            (deaths if point[-1] == "kill" else errors).append(point)
    took = time.monotonic() - began
    print(f"died at {len(deaths)} points, {len(set(deaths))} of them different; "
          f"{len(errors)} calls failed, {len(set(errors))} different; {took:.1f} s")
    print(f"signals: {dict(signals)}")
    print(locks)
    totals(points=len(deaths) + len(errors), deaths=len(deaths), different=len(set(deaths)),
           errors=len(errors), locks=locks.operations, signals=sum(signals.values()), violations=0)
    alive = locks.grants >= 50 and locks.ok * 100 >= locks.operations * 30
    check(arguments.only or alive, "too little was done to mean something")
    return 0


sys.exit(main())
