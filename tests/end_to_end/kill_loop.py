#!/usr/bin/env python3
"""kill -9 under load, over and over: what was acknowledged is there, what was refused is not.

Usage: kill_loop.py [--cycles N] [--seconds S] [--seed S] [--open-runs N]
It ends after N cycles or S seconds; N runs are open all the time, beside those of the load.

Each cycle: clients start, signal and take permits, workers complete tasks, timers run. After at
least 100 acknowledged writes the server is killed, started again, and asked again whatever got no
answer; often it is killed again up to 50 ms after that start. Then every write of the cycle is
looked for in the histories, and what the holders saw must be a history of locks.
"""

import argparse
import collections
import pathlib
import random
import sqlite3
import statistics
import subprocess
import sys
import threading
import time

from chaos_support import Locks, Recorder, granted, totals
from support import (
    BINARY,
    Refused,
    Server,
    Unknown,
    back_up,
    check,
    check_gapless,
    command,
    complete_workflow,
    directory,
    eventually,
    events_of,
    parallel,
    seconds_of,
)

ACKNOWLEDGED_MIN = 100  # a cycle
LATE_MAX = 5.0  # seconds from ready, or due, to fired: 1 s, and 4 s for a busy machine
WORKFLOWS = 40  # ids, so few that starts collide
READY_SECONDS_MAX = 10  # half a second on a machine that does nothing else
CYCLES_A_CHECK = 100  # of the history of locks


class Write:
    """One request that changes something, and what became of it."""

    def __init__(self, kind, name, send, run=None, record=None):
        self.kind = kind
        self.name = name  # unique; found again in a history
        self.run = run  # (workflow, run id); of starts and acquires once they are answered
        self.send = send  # client → answer; the same request each time
        self.state = "unsent"  # acked, refused, unknown, or either: landed or not, but not twice
        self.answer = None
        self.record = record  # of acquires and releases: (recorder, what to write down)
        self.first_asked = Recorder.now()

    def attempt(self, client):
        asked = None
        if self.record:
            # The same request id is the same acquire; a second release is another release.
            first = self.first_asked if self.kind == "acquire" else None
            asked = self.record[0].ask(self.record[1], at=first)
        try:
            self.answer = self.send(client)
            self.state = "acked"
            self.run = self.run or self.run_answered()
            if self.record and not self.is_waiting():
                grant = self.kind == "acquire"
                self.record[0].answer(asked, granted("gpu", self.answer) if grant else "ok")
        except Refused as refused:
            check(refused.status < 500, f"{self.kind} {self.name}: {refused}")
            self.answer = refused
            self.state = "refused"
            if self.record:
                outcomes = {"POOL_FULL": "full", "LEASE_LOST": "lost"}
                self.record[0].answer(asked, outcomes.get(refused.reason, "fail"))
        except Unknown:
            self.state = "unknown"
            raise

    def run_answered(self):
        if self.kind == "acquire":
            slots = self.answer.get("slots")
            return slots and (slots[0]["id"], slots[0]["runId"])
        return self.answer["workflow"], self.answer["runId"]

    def is_waiting(self):
        return self.state == "acked" and self.answer.get("state") == "waiting"


class Load:
    """The clients, workers and holders of one life of the server."""

    def __init__(self, server, cycle, seed, runs, holds, recorder):
        self.recorder = recorder
        self.server = server
        self.cycle = cycle
        self.seed = seed
        self.runs = runs  # (workflow, run id), by acknowledged start; some are closed by now
        self.holds = holds  # (slot, fence, granted, released)
        self.writes = []
        self.acknowledged = 0
        self.failures = []
        roles = [self.client] * 3 + [self.worker] * 2 + [self.holder] * 2
        self.threads = [
            threading.Thread(target=self.guarded, args=(role, index), daemon=True)
            for index, role in enumerate(roles)
        ]

    def guarded(self, role, index):
        dice = random.Random(f"{self.seed}/{self.cycle}/{index}")
        try:
            turn = 0
            while True:
                turn += 1
                role(self.connections[index], dice, f"{self.cycle}.{index}.{turn}")
        except Unknown:
            pass  # the server is dead
        except BaseException as error:
            self.failures.append(error)

    def write(self, client, kind, name, send, run=None, what=None):
        write = Write(kind, name, send, run, what and (self.recorder, what))
        self.writes.append(write)
        write.attempt(client)
        if write.state == "acked":
            self.acknowledged += 1
        return write

    def client(self, client, dice, name):
        if self.runs and dice.random() < 0.6:
            run = dice.choice(self.runs[-50:])

            def signal(c):
                return c.signal(run[0], "poke", run[1], requestId=name)

            self.write(client, "signal", name, signal, run)
            return
        workflow = f"w{dice.randrange(WORKFLOWS)}"

        def start(c):
            answer = c.start(workflow, requestId=name, workflowTaskTimeout="1s")
            return {"workflow": workflow, **answer}

        write = self.write(client, "start", name, start)
        if write.state == "acked":
            self.runs.append(write.run)

    def worker(self, client, dice, name):
        task = client.poll(wait="1s")
        if task is None:
            return
        commands = [command("RecordMarker", markerName=name)]
        if not events_of(task, "TimerStarted") and dice.random() < 0.7:
            wait = f"{dice.uniform(0.02, 1):.3f}s"
            commands.append(command("StartTimer", timerId="t", startToFireTimeout=wait))
        elif events_of(task, "TimerFired") or dice.random() < 0.3:
            commands.append(complete_workflow())
        execution = task["workflowExecution"]
        run = (execution["workflowId"], execution["runId"])
        self.write(client, "completion", name, lambda c: c.complete(task, *commands), run)

    def holder(self, client, dice, name):
        wait = dice.choice(["0s", "5s"])

        def acquire(c):
            return c.acquire("gpu", name, holder=name, lease="600s", wait=wait)

        write = self.write(client, "acquire", name, acquire, what="acquire gpu:0 600000000")
        self.hold_and_release(client, write)

    def hold_and_release(self, client, acquired):
        while acquired.is_waiting():
            acquired.attempt(client)
        if acquired.state != "acked":
            return
        slot = acquired.answer["slots"][0]
        token = acquired.answer["token"]
        granted = time.monotonic()
        self.holds.append((slot["slot"], slot["fence"], granted, time.monotonic()))
        run = (slot["id"], slot["runId"])
        what = f"release {slot['runId']}"
        self.write(
            client, "release", slot["runId"], lambda c: c.release(slot["id"], token), run, what
        )

    def run_and_kill(self, dice):
        """Returns when the server is dead, by the wall clock: not before."""
        self.connections = [self.server.client() for _ in self.threads]
        for thread in self.threads:
            thread.start()
        eventually(
            lambda: self.acknowledged >= ACKNOWLEDGED_MIN or self.failures,
            f"{ACKNOWLEDGED_MIN} acknowledged writes",
            seconds=60,
        )
        time.sleep(dice.choice([0, dice.uniform(0, 0.05), dice.uniform(0, 0.5)]))
        self.server.kill()
        killed = time.time()
        for thread in self.threads:
            thread.join(20)
            check(not thread.is_alive(), "a client hangs on a dead server")
        if self.failures:
            raise self.failures[0]
        return killed

    def ask_again(self, server):
        """What got no answer is asked again, word for word. Returns these writes."""
        unknown = [write for write in self.writes if write.state == "unknown"]

        def ask(client, number):
            write = unknown[number]
            write.attempt(client)
            if write.kind == "acquire":
                self.hold_and_release(client, write)
            elif write.state == "refused" and write.kind == "release":
                check(write.answer.reason == "LEASE_LOST", write.answer)
                write.state = "either"  # released before; nobody else could have ended it
            elif write.state == "refused" and write.kind == "completion":
                # A stale token: it landed, or its task timed out first.
                if write.answer.status == 404:
                    write.state = "either"

        if unknown:
            parallel(server, len(unknown), ask)
        return unknown


class Truth:
    """What the histories say, over all cycles."""

    def __init__(self):
        self.lengths = {}  # run id → events read
        self.found = collections.defaultdict(set)  # name of a write → {(run id, event id)}
        self.events = 0
        self.timers_due_while_down = set()
        self.timer_late_max = 0.0

    def read(self, client, workflow, run, down):
        """down: from when to when nobody answered. False: a timer that was due is still to fire."""
        events = client.history(workflow, run)
        check_gapless(events)
        length = self.lengths.get(run, 0)
        check(len(events) >= length, f"{run} had {length} events and now {len(events)}")
        pending = self.read_timers(events, run, down)
        if pending and client.info(workflow, run)["status"].endswith("RUNNING"):
            return False
        for event in events[length:]:
            for name in self.names(event):
                self.found[name].add((run, event["eventId"]))
        self.lengths[run] = len(events)
        self.events += len(events) - length
        return True

    @staticmethod
    def names(event):
        for type in ("workflowExecutionStarted", "workflowExecutionSignaled"):
            attributes = event.get(type + "EventAttributes", {})
            # Who holds by a token is not shown with its requestId, which would get the token.
            name = attributes.get("identity" if "permit" in attributes else "requestId")
            if name:
                yield name
        if "markerRecordedEventAttributes" in event:
            yield event["markerRecordedEventAttributes"]["markerName"]

    def read_timers(self, events, run, down):
        """Returns whether a timer is overdue."""
        due = {}
        for event in events:
            if "timerStartedEventAttributes" in event:
                wait = event["timerStartedEventAttributes"]["startToFireTimeout"]
                due[event["eventId"]] = seconds_of(event["eventTime"]) + float(wait.rstrip("s"))
            if "timerFiredEventAttributes" in event:
                started = event["timerFiredEventAttributes"]["startedEventId"]
                check(started in due, f"{run}: timer {started} fired twice")
                at = due.pop(started)
                fired = seconds_of(event["eventTime"])
                self.check_fired(run, int(event["eventId"]), at, fired, down)
        return any(at <= down[1] for at in due.values())

    def check_fired(self, run, event_id, due, fired, down):
        check(fired >= due - 0.001, f"{run}: a timer fired {due - fired} s early")
        if not down[0] <= due <= down[1] or event_id <= self.lengths.get(run, 0):
            return
        self.timers_due_while_down.add((run, event_id))
        self.timer_late_max = max(self.timer_late_max, fired - down[1])
        check(fired - down[1] <= LATE_MAX, f"{run}: a timer fired {fired - down[1]} s after ready")

    def check_write(self, client, write, down):
        if write.kind == "release":
            check(write.state in ("acked", "either"), f"release of {write.name}: {write.answer}")
            outcome = client.permit(*write.run).get("outcome")
            check(outcome == "released", f"{write.name} was released, its outcome is {outcome}")
            return
        if write.kind == "signal" and write.state == "acked" and not self.found[write.name]:
            # It may wait in a run's buffer until the task that a worker had has timed out.
            eventually(
                lambda: self.read(client, *write.run, down) and self.found[write.name],
                f"signal {write.name} in the history of {write.run}",
            )
        found = len(self.found[write.name])
        right = {"acked": found == 1, "refused": found == 0, "either": found <= 1}[write.state]
        check(right, f"{write.kind} {write.name}, {write.state}, landed {found} times")


def runs_on_disk(database, copy, idle_runs):
    """[(workflow, run id, events)] of a dead server's file; looked at in a copy."""
    pathlib.Path(copy).unlink(missing_ok=True)
    back_up(database, copy)
    connection = sqlite3.connect(copy)
    check(connection.execute("PRAGMA integrity_check").fetchone() == ("ok",), "integrity_check")
    twice = connection.execute(
        "SELECT workflow_id FROM runs WHERE +status = 1 GROUP BY +workflow_id HAVING count(*) > 1"
    ).fetchall()
    check(not twice, f"ids with two open runs: {twice}")
    rows = connection.execute(
        "SELECT workflow_id, run_id, next_event_id - 1 FROM runs WHERE workflow_id NOT LIKE 'idle-%'"
    ).fetchall()
    idle = connection.execute(
        "SELECT count(*) FROM runs WHERE workflow_id LIKE 'idle-%' AND status = 1"
    ).fetchone()[0]
    connection.close()
    check(idle == idle_runs, f"{idle} of {idle_runs} runs that nobody touches are open")
    return rows


def check_holds(holds):
    """One holder at a time, and fences that rise."""
    by_slot = collections.defaultdict(list)
    for slot, fence, granted, released in holds:
        by_slot[slot].append((fence, granted, released))
    for slot, spans in by_slot.items():
        spans.sort()
        for earlier, later in zip(spans, spans[1:]):
            check(earlier[0] < later[0], f"slot {slot}: fence {later[0]} was given twice")
            check(earlier[2] <= later[1], f"slot {slot} was held twice: {earlier}, {later}")


def kill_in_recovery(database, dice):
    process = subprocess.Popen(
        [BINARY, "server", "start", "--port", "0", "--db-filename", str(database)],
        stdout=subprocess.DEVNULL,
    )
    time.sleep(dice.uniform(0, 0.05))
    process.kill()
    process.wait()


def start_idle_runs(server, count):
    """Runs that stay open, so that a start has something to load."""
    connections = 8

    def start(client, number):
        for run in range(number, count, connections):
            client.start(f"idle-{run}", queue="idle")

    parallel(server, connections, start)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cycles", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--open-runs", type=int, default=500)
    arguments = parser.parse_args()
    print(f"SEED={arguments.seed}", flush=True)
    end = time.monotonic() + arguments.seconds

    database = directory() / "permit.db"
    truth = Truth()
    writes, runs, holds = collections.Counter(), [], []
    acknowledged, ready_times = [], []
    asked_again = cycle = killed_again = 0
    recorder, locks = Recorder(directory() / "locks.txt", "gpu", 1), Locks()
    server = Server(database)
    server.client().set_pool("gpu", capacity=1)
    start_idle_runs(server, arguments.open_runs)
    began = time.monotonic()
    while cycle < arguments.cycles and time.monotonic() < end:
        cycle += 1
        dice = random.Random(f"{arguments.seed}/{cycle}")
        load = Load(server, cycle, arguments.seed, runs, holds, recorder)
        killed = load.run_and_kill(dice)
        acknowledged.append(load.acknowledged)

        on_disk = runs_on_disk(
            database, directory() / "copy.db", arguments.open_runs
        )
        time.sleep(dice.choice([0, dice.uniform(0, 0.5)]))
        for _ in range(dice.choice([0, 0, 1, 3])):
            kill_in_recovery(database, dice)
            killed_again += 1
        server = Server(database)
        client = server.client()
        client.ask("GET", "/readyz")
        ready_times.append(time.monotonic() - server.began)
        down = (killed, time.time())

        again = load.ask_again(server)
        asked_again += len(again)
        changed = {(w, r) for w, r, length in on_disk if truth.lengths.get(r) != length}
        changed |= {write.run for write in again if write.run}
        for workflow, run in changed:
            eventually(lambda: truth.read(client, workflow, run, down), f"overdue timers of {run}")
        for write in load.writes:
            truth.check_write(client, write, down)
            writes[f"{write.kind} {write.state}"] += 1
        check_holds(holds)
        del runs[:-200]
        if cycle % CYCLES_A_CHECK == 0:
            recorder.flush()
            Locks().check(recorder.path)
    took = time.monotonic() - began
    check(server.stop() == 0, "exit code")

    recorder.close()
    locks.check(recorder.path, min_grants=cycle, min_ok_percent=20)
    print(f"{cycle} cycles, {len(truth.lengths)} runs, {truth.events} events, {len(holds)} holds")
    print(f"{took / cycle:.2f} s a cycle; killed {killed_again} times more while it started")
    print(locks)
    print(f"acknowledged writes: {sum(acknowledged)}, at least {min(acknowledged)} a cycle")
    print(f"asked again after no answer: {asked_again}")
    for name, count in sorted(writes.items()):
        print(f"  {count:7} {name}")
    late = truth.timer_late_max * 1000
    due_while_down = len(truth.timers_due_while_down)
    print(f"timers due while down: {due_while_down}, the latest {late:.0f} ms after ready")
    median, worst = statistics.median(ready_times) * 1000, max(ready_times) * 1000
    print(f"restart to first good answer, {arguments.open_runs} runs open: median {median:.0f} ms, longest {worst:.0f} ms")
    totals(cycles=cycle, killed_again=killed_again, writes=sum(writes.values()),
           locks=locks.operations, ready_ms_max=round(worst), violations=0)
    check(max(ready_times) <= READY_SECONDS_MAX, f"ready only after {max(ready_times):.1f} s")
    check(min(acknowledged) >= ACKNOWLEDGED_MIN, "too few writes to mean something")
    check(cycle < 20 or (asked_again and due_while_down), "the crashes hit nothing")
    return 0


sys.exit(main())
