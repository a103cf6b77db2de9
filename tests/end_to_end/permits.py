#!/usr/bin/env python3
"""Permits between real processes: workers and the server are killed, and somebody outside counts."""

import datetime
import random
import signal
import socketserver
import sqlite3
import subprocess
import threading
import time

from support import BINARY, Server, Unknown, Worker, check, directory, eventually, run

SEED = 1


class Overseer:
    """Knows who is inside: a connection per section, with what it says it holds."""

    def __init__(self):
        overseer = self

        class Section(socketserver.StreamRequestHandler):
            def handle(self):
                _, permit, fence = self.rfile.readline().decode().split()
                overseer.enter(permit, int(fence))
                try:
                    self.wfile.write(b"ok\n")
                    if self.rfile.readline() == b"exit\n":
                        overseer.leave(permit)
                        permit = None
                        self.wfile.write(b"ok\n")
                except OSError:
                    pass  # its process was killed, and so it is outside
                if permit:
                    overseer.leave(permit)

        socketserver.ThreadingTCPServer.daemon_threads = True
        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Section)
        self.port = self.server.server_address[1]
        self.lock = threading.Lock()
        self.inside = {}
        self.highest = {}
        self.left = {}
        self.sections = 0
        self.most = 0
        self.longest_gap = 0
        self.wrong = []
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def enter(self, permit, fence):
        with self.lock:
            if permit in self.inside:
                self.wrong.append(f"{permit} entered with {fence} while {self.inside[permit]} is inside")
            if fence <= self.highest.get(permit, 0):
                self.wrong.append(f"{permit}: fence {fence} after {self.highest[permit]}")
            if permit in self.left:
                self.longest_gap = max(self.longest_gap, time.monotonic() - self.left[permit])
            self.inside[permit] = fence
            self.highest[permit] = fence
            self.sections += 1
            self.most = max(self.most, len(self.inside))

    def leave(self, permit):
        with self.lock:
            self.inside.pop(permit, None)
            self.left[permit] = time.monotonic()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def holder(server, overseer):
    return Worker(server.port, "work", overseer.port, program="permit_test_holder")


def result(client, workflow):
    close = client.wait_closed(workflow)
    check("workflowExecutionCompletedEventAttributes" in close, close)
    return close["workflowExecutionCompletedEventAttributes"]["result"][0]


def nobody_sees_two_in_a_slot_whoever_dies():
    chance = random.Random(SEED)
    database = directory() / "contended.db"
    overseer = Overseer()
    server = Server(database, permit_worker=True)
    workers = [holder(server, overseer) for _ in range(2)]
    try:
        client = server.client()
        for i in range(200):
            client.start(f"contend{i}", type="Contend", input=[i])
        for _ in range(10):
            time.sleep(chance.uniform(0.5, 1.5))
            if chance.random() < 0.5:
                victim = chance.randrange(len(workers))
                workers[victim].kill()
                workers[victim] = holder(server, overseer)
            else:
                port = server.port
                server.kill()
                server = Server(database, port=port, permit_worker=True)
                client = server.client()
        tries = [result(client, f"contend{i}") for i in range(200)]
        check(not overseer.wrong, overseer.wrong[:5])
        check(overseer.most == 4, f"{overseer.most} were inside at most, of 4")
        check(overseer.longest_gap < 15 + 5 + 2, f"a slot was empty for {overseer.longest_gap} s")
        pool = client.get("/pools/contended")
        check(pool.get("held", 0) == 0 and pool.get("waiting", 0) == 0, pool)
        print(f"    {overseer.sections} sections of 200 workflows, {sum(tries) - 200} died inside; "
              f"a slot was empty for {overseer.longest_gap:.2f} s at most")
    finally:
        for worker in workers:
            worker.kill()
        server.kill()
        overseer.close()


def ended(client, permit, run_id=None):
    parameters = {"runId": run_id} if run_id else {}
    return client.get(f"/permits/{permit}", **parameters)


def seconds_between(earlier, later):
    stamps = [datetime.datetime.fromisoformat(text.replace("Z", "+00:00")) for text in (earlier, later)]
    return (stamps[1] - stamps[0]).total_seconds()


def every_ending_is_told_apart():
    overseer = Overseer()
    with Server(permit_worker=True) as server, holder(server, overseer) as worker:
        client = server.client()
        # The lease's timer.
        client.start("expires", type="Silent", input=[1.0])
        how, after = result(client, "expires").split()
        permit = ended(client, "permit:silent:0")
        check((how, permit["outcome"], permit["cause"]) == ("lease_expired", "lease_expired", "timer"),
              permit)
        late = seconds_between(permit["deadline"], permit["closedAt"])
        check(0 <= late < 4, f"ended {late} s after its deadline")  # the backstop would be 5 s late
        check(1000 <= int(after) < 5000, f"noticed after {after} ms")
        # An operator.
        client.start("forced", type="Silent", input=[600])
        held = eventually(lambda: ended(client, "permit:silent:0").get("state") == "held"
                          and ended(client, "permit:silent:0"), "the next hold")
        client.post("/permits/permit:silent:0/force-release", {"fence": held["fence"], "reason": "x"})
        how, after = result(client, "forced").split()
        check(how == "force_released" and int(after) < 20_000, f"{how} after {after} ms")  # of 600 s
        check(ended(client, "permit:silent:0")["outcome"] == "force_released", "force-release")
        # The holder's end, and the next in line.
        client.start("first", type="Hold", input=[600])
        first = eventually(lambda: ended(client, "permit:silent:0")["state"] == "held"
                           and ended(client, "permit:silent:0"), "the hold of the first")
        client.start("second", type="Hold", input=[600])
        eventually(lambda: client.get("/pools/silent").get("waiting") == 1, "a line")
        client.post("/workflows/first/terminate", {"reason": "test"})
        check(ended(client, "permit:silent:0", first["runId"])["outcome"] == "holder_closed", "closed")
        check(ended(client, "permit:silent:0")["holder"] == "second", "handed on in that commit")
        # A release, on the way out of the workflow.
        client.signal("second", "done")
        check(result(client, "second") == "0", "the slot")
        check(ended(client, "permit:silent:0")["outcome"] == "released", "released")
        check(worker.process.poll() is None, worker.lines)
    overseer.close()


def without_a_permit_worker_the_backstop_frees_and_readyz_says_so():
    overseer = Overseer()
    with Server() as server, holder(server, overseer):
        client = server.client()
        client.start("expires", type="Silent", input=[0.5])
        warned = lambda: client.ask("GET", "/readyz").get("warnings")
        eventually(warned, "a warning in /readyz")
        eventually(lambda: any("no worker serves the permits" in line for line in server.errors), "a line of it")
        how, _ = result(client, "expires").split()
        permit = ended(client, "permit:silent:0")
        check((how, permit["cause"]) == ("lease_expired", "backstop"), permit)
        # Somebody comes to serve them.
        command = [BINARY, "worker", "start", "--address", f"127.0.0.1:{server.port}"]
        serving = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            client.start("served", type="Silent", input=[1.0])
            check(result(client, "served").startswith("lease_expired"), "served")
            check(ended(client, "permit:silent:0")["cause"] == "timer", "by the worker")
            check(warned() is None, "no warning any more")
            serving.send_signal(signal.SIGTERM)
            check(serving.wait(timeout=10) == 0, "it stops with 0")
        finally:
            serving.kill()
            serving.wait()
        server.errors.clear()
    overseer.close()


def a_server_that_loses_its_database_exits_with_its_permit_worker():
    database = directory() / "lost.db"
    with Server(database, permit_worker=True) as server:
        client = server.client()
        client.put("/pools/gpu", {"capacity": 1})
        other = sqlite3.connect(database, timeout=10)
        other.execute("UPDATE server SET epoch = epoch + 1")  # as a second server would
        other.commit()
        other.close()
        try:
            client.put("/pools/gpu", {"capacity": 2})
            check(False, "a server without its database answered")
        except Unknown:
            pass  # it stops without an answer
        check(server.process.wait(timeout=10) == 1, server.process.returncode)
        eventually(lambda: server.errors, "its reason")
        check("another server" in server.errors[-1], server.errors)
        server.errors.clear()


run(
    nobody_sees_two_in_a_slot_whoever_dies,
    every_ending_is_told_apart,
    without_a_permit_worker_the_backstop_frees_and_readyz_says_so,
    a_server_that_loses_its_database_exits_with_its_permit_worker,
)
