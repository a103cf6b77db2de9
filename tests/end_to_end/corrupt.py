#!/usr/bin/env python3
"""A disk that changes what it was given: single bits of the database and of its log are flipped, sectors
and pages are zeros, and both files are cut short. Whatever was done, the server either serves the very same state or refuses to
start; it is never silently wrong. `permit server check` agrees.

--flips N   so many instead of 100;  --seconds S   or until S are over (25);  --seed N   the same again
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import time

from support import (
    BINARY, Refused, Server, Unknown, check, command, complete_workflow, directory, run, start_permit,
)

FILES = ("", "-wal", ".key", ".commit")


def fill(server):
    """A few hundred runs, open and closed, with some of everything that has rows."""
    client = server.client()
    client.set_pool("gpu", capacity=40)
    client.set_pool("tape", capacity=1)
    for i in range(120):
        name = f"job-{i}"
        client.start(name, input={"payloads": [{"metadata": {}, "data": "QUJD" * (i % 90)}]})
        client.signal(name, "go")
        if i % 4 == 0:
            task = client.poll()
            timer = command("StartTimer", timerId=f"t-{i}", startToFireTimeout="90000s")
            child = command("StartChildWorkflowExecution", workflowId=f"child-{i}",
                            workflowType={"name": "Child"}, taskQueue={"name": "nobody"})
            activity = command("ScheduleActivityTask", activityId=f"a-{i}", activityType={"name": "A"},
                               taskQueue={"name": "nobody"}, startToCloseTimeout="90000s",
                               scheduleToCloseTimeout="90000s")
            client.complete(task, *([timer, child, activity] if i % 8 else [complete_workflow(i)]))
    for i in range(120):
        permit = client.acquire("gpu", f"r-{i}", holder=f"h-{i}", lease="86400s")["slots"][0]
        if i % 4:
            client.release(permit["id"], token_of(client, i))
    client.acquire("tape", "t-0", holder="t-0", lease="86400s")
    for i in range(6):
        client.start(f"waiter-{i}", queue="waiters")
        client.complete(client.poll("waiters"), start_permit("tape", order="fair", lease="86400s"))
    client.close()


def token_of(client, i):
    """Asking again gives the same answer."""
    return client.acquire("gpu", f"r-{i}", holder=f"h-{i}", lease="86400s")["token"]


def settled(value):
    """Without what changes from one look to the next."""
    if isinstance(value, dict):
        return {key: settled(item) for key, item in value.items()
                if key not in ("now", "heldFor", "nextPageToken", "tokens", "lastRequest")}
    if isinstance(value, list):
        return [settled(item) for item in value]
    return value


def served_state(server):
    """All that the API shows of runs, histories, pools, lines and the ledger."""
    client = server.client()
    runs, token = [], ""
    while True:
        page = client.get("/workflows", pageSize=1000, **({"nextPageToken": token} if token else {}))
        runs += page.get("executions", [])
        token = page.get("nextPageToken")
        if not token:
            break
    histories = {
        run["execution"]["runId"]: client.history(run["execution"]["workflowId"], run["execution"]["runId"])
        for run in runs
    }
    pools = {name: client.pool(name) for name in ("gpu", "tape")}
    line = client.get("/pools/tape/waiters")
    permits = client.get("/permits", pageSize=1000)
    client.close()
    return json.dumps(settled([runs, histories, pools, line, permits]), sort_keys=True)


class Original:
    """The files of a server that was killed, and what it served."""

    def __init__(self, name, end):
        self.home = directory() / name
        self.home.mkdir()
        with Server(self.home / "permit.db") as server:
            fill(server)
            end(server)
            server.errors.clear()
        with self.copy("whole") as whole, Server(whole.database) as server:
            self.state = served_state(server)
        check(json.loads(self.state)[0], "nothing is served")

    def copy(self, name):
        return Copy(self, directory() / name)

    def endings(self):
        """Of the database and of what is beside it and counts."""
        redo = [path.name.removeprefix("permit.db") for path in sorted(self.home.glob("permit.db-redo*"))]
        return [ending for ending in FILES if (self.home / f"permit.db{ending}").exists()] + redo

    def bytes_of(self, ending):
        path = self.home / f"permit.db{ending}"
        return path.read_bytes() if path.exists() else b""


class Copy:
    def __init__(self, original, home):
        self.home = home
        self.database = home / "permit.db"
        home.mkdir()
        for ending in original.endings():
            shutil.copy(original.home / f"permit.db{ending}", home / f"permit.db{ending}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.home)


def damage(chance, original, copy):
    """Does one thing to one file; says what."""
    logs = [ending for ending in original.endings()
            if ending.startswith(("-wal", "-redo")) and original.bytes_of(ending)]
    ending = chance.choice(logs) if logs and chance.random() < 0.4 else ""
    path = copy.home / f"permit.db{ending}"
    data = bytearray(path.read_bytes())
    if chance.random() < 0.15:
        size = chance.randrange(len(data))
        os.truncate(path, size)
        return f"permit.db{ending} cut to {size} of {len(data)} bytes"
    if not ending and chance.random() < 0.3:  # a write that came to nothing
        size = chance.choice((512, 4096, 8192))
        at = chance.randrange(len(data) // size) * size
        data[at:at + size] = bytes(size)
        path.write_bytes(data)
        return f"bytes {at} to {at + size} of permit.db are zeros"
    bit = chance.randrange(len(data) * 8)
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)
    return f"bit {bit % 8} of byte {bit // 8} of permit.db{ending} flipped ({len(data)} bytes)"


def check_says(database):
    done = subprocess.run([BINARY, "server", "check", "--database", database], timeout=60,
                          capture_output=True, text=True)
    check(done.returncode in (0, 1, 66), f"exit {done.returncode}: {done.stdout}{done.stderr}")
    check("Sanitizer" not in done.stderr, done.stderr)
    return done.returncode, done.stdout + done.stderr


def try_one(chance, original, number, totals):
    with original.copy(f"copy-{number}") as copy:
        what = damage(chance, original, copy)
        sound = check_says(copy.database)[0] == 0 if number % 4 == 0 else None
        try:
            server = Server(copy.database)
        except RuntimeError as refusal:
            check("permit: " in str(refusal), f"{what}: {refusal}")
            check("Sanitizer" not in str(refusal) and "terminate" not in str(refusal), refusal)
            totals["refused"] += 1
            check(sound is not True, f"{what}: refused, and yet the check says that it is sound: {refusal}")
            return
        with server:
            state = served_state(server)
            check(state == original.state, f"{what}: SERVED ANOTHER STATE")
            server.errors.clear()
        totals["same"] += 1


def parsed():
    parser = argparse.ArgumentParser()
    parser.add_argument("--flips", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=25)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    return parser.parse_args()


OPTIONS = parsed()


def a_changed_file_is_never_served_as_if_it_were_well():
    chance = random.Random(OPTIONS.seed)
    print(f"SEED={OPTIONS.seed}", flush=True)
    killed = Original("killed", lambda server: server.kill())
    stopped = Original("stopped", lambda server: server.stop())
    def logs(original):
        return [ending for ending in original.endings() if ending.startswith(("-wal", "-redo"))]

    check(len(logs(killed)) >= 2, f"kill -9 left {logs(killed)}")
    check(not logs(stopped), f"a clean stop left {logs(stopped)}")
    end = time.monotonic() + OPTIONS.seconds
    totals = {"refused": 0, "same": 0}
    for number in range(OPTIONS.flips):
        try_one(chance, chance.choice((killed, killed, stopped)), number, totals)
        if time.monotonic() > end:
            break
    print(f"{sum(totals.values())} changes, {totals['refused']} refused, {totals['same']} harmless")
    check(totals["refused"] > sum(totals.values()) / 3, totals)


def a_page_that_changes_under_a_running_server_stops_it():
    home = directory() / "running"
    home.mkdir()
    database = home / "permit.db"
    with Server(database) as server:
        fill(server)
        server.stop()
        server.errors.clear()
    with Server(database) as server:
        client = server.client()
        client.start("before")
        data = bytearray(database.read_bytes())
        for page in range(1, len(data) // 8192):  # all but the first
            data[page * 8192 + 4000] ^= 16
        with open(database, "r+b") as file:
            file.write(data)
        code = None
        for i in range(120):
            try:
                client.history(f"job-{i}")
            except (Refused, Unknown) as error:
                code = server.process.wait(timeout=20)
                check(isinstance(error, Unknown) or error.reason == "REPLY_MISSING", error)
                break
        check(code == 1, f"it went on: {code}")
        deadline = time.monotonic() + 10
        while not server.errors and time.monotonic() < deadline:
            time.sleep(0.01)
        check(any("is not as it was written" in line and "permit server check" in line
                  for line in server.errors), server.errors)
        server.errors.clear()
    try:
        Server(database).kill()
        check(False, "it started on a damaged file")
    except RuntimeError as refusal:
        check("is not as it was written" in str(refusal), refusal)
    code, said = check_says(database)
    check(code == 1 and "page " in said, said)


run(
    a_changed_file_is_never_served_as_if_it_were_well,
    a_page_that_changes_under_a_running_server_stops_it,
)
