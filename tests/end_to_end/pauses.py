#!/usr/bin/env python3
"""Holders that are stopped (SIGSTOP) beyond their leases, and wake up: they do no harm where the
fence is checked, and harm where it is not. Then the server itself is stopped under load, and has a
disk that is slow.

Usage: pauses.py [--pauses N] [--server-stops N] [--seconds S] [--seed S]

Holders add items to a set that their slot guards: they read it, think, and write it back. There are
two copies of each set, on two file servers (apps/fenced_files): one is told the holder's fence, the
other always the same number, as if there were no fences. What was acknowledged must be in the set.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import threading
import time

from chaos_support import LockLoad, Locks, Recorder, Shim, granted, tool, totals
from support import Client, Refused, Server, Unknown, check, directory, eventually

SLOTS = 24
HOLDERS = 10  # threads of a process, which are stopped together
PROCESSES = 4
LEASE = 0.5
ADDS = 8  # a hold


class Files:
    """A connection to a file server."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.stream = self.socket.makefile("rwb")

    def ask(self, command):
        self.stream.write(command)
        self.stream.flush()
        return self.stream.readline().decode().strip()

    def put(self, permit, fence, name, items):
        data = "\n".join(items).encode()
        return self.ask(f"PUT {permit} {fence} {name} {len(data)}\n".encode() + data)

    def get(self, name):
        first = self.ask(f"GET {name}\n".encode())
        if not first.startswith("OK "):
            # The file server hangs up after an error: there is no such set yet.
            self.__init__(self.socket.getpeername()[1])
            return []
        return [item for item in self.stream.read(int(first.split()[1])).decode().split("\n")
                if item]


# --- A holder's process ---


class Holder(threading.Thread):
    """Takes a slot, adds items to its sets, gives it back; over and over."""

    def __init__(self, number, ports, recorder, log, stopping):
        super().__init__(daemon=True)
        self.number = number
        self.name = f"{os.getpid()}.{number}"
        self.client = Client(ports["server"], timeout=30)
        self.files = {"fenced": Files(ports["fenced"]), "plain": Files(ports["plain"])}
        self.recorder = recorder
        self.log = log
        self.stopping = stopping
        self.failure = None

    def run(self):
        try:
            turn = 0
            while not self.stopping.is_set():
                turn += 1
                self.hold(f"{self.name}.{turn}")
        except BaseException as failure:
            self.failure = failure

    def hold(self, name):
        asked = self.recorder.ask(f"acquire pool:* {int(LEASE * 1e6)}")
        try:
            grant = self.client.acquire("pool", name, holder=name, lease=f"{LEASE}s", wait="2s")
        except Refused as refused:
            self.recorder.answer(asked, "full" if refused.status == 423 else "fail")
            return
        if grant["state"] != "granted":
            return  # its ticket lapses; it may be granted once more before that
        self.recorder.answer(asked, granted("pool", grant))
        slot = grant["slots"][0]
        self.log("begin", name)
        for add in range(ADDS):
            if not self.add(slot, f"{name}.{add}"):
                break
        self.log("end", name)
        self.release(slot, grant["token"])

    def add(self, slot, item):
        """False if it has learnt that somebody else has the slot."""
        name = f"set-{slot['slot']}"
        fences = {"fenced": slot["fence"], "plain": 1}
        # To begin with, the file server has to know of this holder: reading does not tell it.
        if self.files["fenced"].put(slot["id"], slot["fence"], "claim", [item]) != "OK":
            self.log("refused", item)
            return False
        sets = {kind: files.get(name) for kind, files in self.files.items()}
        time.sleep(random.uniform(0, 0.03))
        welcome = True
        for kind, files in self.files.items():
            asked = Recorder.now()
            answer = files.put(slot["id"], fences[kind], name, sets[kind] + [item])
            if answer == "OK":
                self.log(kind, item, slot["slot"], slot["fence"], asked, Recorder.now())
            else:
                check(answer.startswith("STALE "), answer)
                self.log("refused", item)
                welcome = False
        return welcome

    def release(self, slot, token):
        asked = self.recorder.ask(f"release {slot['runId']}")
        try:
            self.client.release(slot["id"], token)
            self.recorder.answer(asked, "ok")
        except Refused as refused:
            check(refused.reason == "LEASE_LOST", refused)
            self.recorder.answer(asked, "lost")


def be_holders(arguments):
    home = directory()
    recorder = Recorder(home / f"history.{os.getpid()}", "pool", SLOTS)
    lock = threading.Lock()
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    log_file = open(home / f"log.{os.getpid()}", "w")

    def log(*words):
        with lock:
            log_file.write(json.dumps(words) + "\n")
            log_file.flush()

    holders = [Holder(number, arguments, recorder, log, stopping) for number in range(HOLDERS)]
    for holder in holders:
        holder.start()
    while any(holder.is_alive() for holder in holders):
        time.sleep(0.05)
    recorder.close()
    for holder in holders:
        if holder.failure:
            raise holder.failure


# --- The test ---


class Process:
    """Holders, and what they wrote down."""

    def __init__(self, ports):
        environment = {**os.environ, "PERMIT_TESTS_DIR": str(directory())}
        self.process = subprocess.Popen([sys.executable, __file__, "--ports", json.dumps(ports)],
                                        env=environment)
        self.log = directory() / f"log.{self.process.pid}"
        self.history = directory() / f"history.{self.process.pid}"
        self.position = self.held = 0  # of the log, as far as it has been read

    def entries(self):
        for line in self.log.read_text().splitlines() if self.log.exists() else []:
            yield json.loads(line)

    def holding(self):
        if not self.log.exists():
            return 0
        with open(self.log) as log:
            log.seek(self.position)
            for line in log.read().splitlines(keepends=True):
                if not line.endswith("\n"):
                    break
                self.position += len(line)
                what = json.loads(line)[0]
                self.held += (what == "begin") - (what == "end")
        return self.held

    def pause(self, seconds):
        """How many holds were stopped beyond their lease."""
        self.process.send_signal(signal.SIGSTOP)
        count = self.holding()
        time.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)
        return count

    def end(self):
        self.process.terminate()
        check(self.process.wait(60) == 0, "a holder failed")


class FileServer:
    def __init__(self, name):
        self.process = subprocess.Popen([tool("fenced_files"), directory() / name, "0"],
                                        stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().rpartition(":")[2])

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def lost_and_stale(kind, writes, port):
    """Acknowledged items that are not in their set; writes that were taken after one with a higher
    fence had been acknowledged."""
    files = Files(port)
    sets = {f"{slot}": set(files.get(f"set-{slot}")) for slot in range(SLOTS)}
    lost = sum(item not in sets[slot] for item, slot, *_ in writes)
    stale = 0
    by_slot = collections.defaultdict(list)
    for _, slot, fence, asked, answered in writes:
        by_slot[slot].append((asked, answered, fence))
    for spans in by_slot.values():
        answers = sorted((answered, fence) for _, answered, fence in spans)
        highest, position = 0, 0
        for asked, _, fence in sorted(spans):
            while position < len(answers) and answers[position][0] < asked:
                highest = max(highest, answers[position][1])
                position += 1
            stale += fence < highest
    print(f"{kind}: {len(writes)} writes taken, {stale} of them stale, {lost} items lost",
          flush=True)
    return lost, stale


def pause_holders(arguments, dice, locks):
    files = {"fenced": FileServer("fenced"), "plain": FileServer("plain")}
    with Server(directory() / "permit.db", permit_worker=True) as server:
        server.client().set_pool("pool", capacity=SLOTS)
        ports = {"server": server.port, **{kind: one.port for kind, one in files.items()}}
        processes = [Process(ports) for _ in range(PROCESSES)]
        eventually(lambda: sum(one.holding() for one in processes) > SLOTS / 2, "holds", 60)
        paused, stops = 0, 0
        end = time.monotonic() + arguments.seconds

        def pause(mine, seed):
            nonlocal paused, stops
            own = random.Random(seed)
            while paused < arguments.pauses and time.monotonic() < end:
                paused += own.choice(mine).pause(own.uniform(1.2, 2.5) * LEASE)
                stops += 1
                time.sleep(own.uniform(0.05, 0.3))

        halves = [processes[: PROCESSES // 2], processes[PROCESSES // 2:]]
        threads = [threading.Thread(target=pause, args=(half, dice.random())) for half in halves]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for process in processes:
            process.end()
        entries = [entry for process in processes for entry in process.entries()]
        refused = sum(entry[0] == "refused" for entry in entries)
        print(f"{stops} stops, {paused} holds paused beyond their lease, {refused} writes refused")
        results = {}
        for kind in files:
            writes = [entry[1:] for entry in entries if entry[0] == kind]
            results[kind] = lost_and_stale(kind, writes, files[kind].port)
        locks.check(*(process.history for process in processes), min_grants=paused // 4)
        check(results["fenced"] == (0, 0), "the fence has let something through")
        check(min(results["plain"]) > 0, "the pauses hit nothing: without fences nothing is lost")
    for one in files.values():
        one.end()
    return paused, stops


def stop_the_server(arguments, dice, locks):
    """For a second up to two leases: what expired is expired at once, and nobody else."""
    history = directory() / "server-stops.txt"
    lease_ms = 1000
    with Server(directory() / "stopped.db", permit_worker=True) as server:
        server.client().set_pool("lock", capacity=8)
        with LockLoad(server.port, history, slots=8, connections=12, lease_ms=lease_ms,
                      abandon_percent=10, patience_ms=4000, think_ms=20) as load:
            for _ in range(arguments.server_stops):
                time.sleep(dice.uniform(0.2, 0.6))
                server.process.send_signal(signal.SIGSTOP)
                time.sleep(dice.uniform(1, 2 * lease_ms / 1000))
                server.process.send_signal(signal.SIGCONT)
            time.sleep(0.5)
            load.end()
        locks.check(history, min_grants=20)
        server.client().ask("GET", "/readyz")
        check(server.stop() == 0, "exit code")


def slow_disk(locks):
    """Each sync takes half a lease: nothing ends early, and nobody has what another still has."""
    database, history = directory() / "slow.db", directory() / "slow.txt"
    shim = Shim(database, "sync redo 0+ after sleep:150", armed=False)
    with Server(database, wrapper=shim.wrapper, permit_worker=True) as server:
        server.client().set_pool("lock", capacity=8)
        shim.arm()
        with LockLoad(server.port, history, slots=8, connections=12, lease_ms=300, seconds=3,
                      abandon_percent=20) as load:
            load.wait()
        locks.check(history, min_grants=8)
        check(shim.fired > 5, "the disk was not slow")
        shim.disarm()
        check(server.stop() == 0, "exit code")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pauses", type=int, default=24)
    parser.add_argument("--server-stops", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--ports", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ports:
        be_holders(json.loads(arguments.ports))
        return 0
    print(f"SEED={arguments.seed}", flush=True)
    dice = random.Random(arguments.seed)
    locks = Locks()
    paused, stops = pause_holders(arguments, dice, locks)
    stop_the_server(arguments, dice, locks)
    slow_disk(locks)
    print(locks)
    totals(pauses=paused, stops=stops, server_stops=arguments.server_stops,
           locks=locks.operations, violations=0)
    return 0


sys.exit(main())
