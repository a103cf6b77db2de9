#!/usr/bin/env python3
"""256 MiB are enough, however many connect, poll, watch and wait; and all of it is given back.

Usage: memory.py [--connections N] [--polls N] [--streams N] [--waiters N] [--rounds N]

The limit is a memory cgroup where one can be made, and looked at from outside where not.
"""

import argparse
import contextlib
import json
import os
import pathlib
import resource
import socket
import sys
import time

from chaos_support import resident_bytes, totals
from support import NAMESPACE, RPC, Server, check, directory, eventually

LIMIT = 256 << 20


@contextlib.contextmanager
def memory_cgroup():
    """A wrapper for the server's command, and how often the kernel killed for want of memory."""
    for parent in ("/sys/fs/cgroup/memory", "/sys/fs/cgroup"):
        home = pathlib.Path(parent) / f"permit-test-{os.getpid()}"
        limit = home / ("memory.limit_in_bytes" if parent.endswith("memory") else "memory.max")
        try:
            home.mkdir()
        except OSError:
            continue
        try:
            limit.write_text(str(LIMIT))
            enter = f'echo $$ >{home}/cgroup.procs && exec "$@"'
            yield ("sh", "-c", enter, "sh"), home
            return
        except OSError:
            continue
        finally:
            for _ in range(50):  # until the last process has left
                try:
                    home.rmdir()
                    break
                except OSError:
                    time.sleep(0.1)
    print("    no memory cgroup can be made here: only the size of the process is looked at")
    yield (), None


def kills(home):
    for name in ("memory.oom_control", "memory.events"):
        if home and (home / name).exists():
            words = dict(line.split() for line in (home / name).read_text().splitlines())
            return int(words.get("oom_kill", 0))
    return 0


def request(method, target, body=None):
    text = json.dumps(body).encode() if body is not None else b""
    head = f"{method} {target} HTTP/1.1\r\nHost: localhost\r\n"
    if text:
        head += f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n"
    return head.encode() + b"\r\n" + text


class Crowd:
    """Many connections, each with something to say, which nobody reads the answer of."""

    def __init__(self, port):
        self.port = port
        self.sockets = []

    def add(self, count, bytes_of):
        for number in range(count):
            connection = socket.create_connection(("127.0.0.1", self.port))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(bytes_of(number))
            self.sockets.append(connection)

    def leave(self):
        for connection in self.sockets:
            connection.close()
        self.sockets = []


def fill(crowd, arguments, round):
    crowd.add(arguments.connections, lambda _: b"GET /x HTTP/1.1\r\nHost: loc")
    crowd.add(arguments.streams, lambda _: request("GET", NAMESPACE + "/events"))
    crowd.add(arguments.waiters, lambda number: request(
        "POST", NAMESPACE + "/pools/full/acquire",
        {"requestId": f"{round}.{number}", "holder": f"{number}", "wait": "60s"}))
    crowd.add(arguments.polls, lambda number: request(
        "POST", RPC + "PollWorkflowTaskQueue",
        {"namespace": "default", "taskQueue": {"name": f"queue-{number % 900}"}}))


def much_changes(client, watch):
    """News for the streams, none of which reads them."""
    for turn in range(150):
        grant = client.acquire("busy", f"{turn}-{time.monotonic()}", reason="r" * 500)
        client.release(grant["slots"][0]["id"], grant["token"])
        watch()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--polls", type=int, default=2000)
    parser.add_argument("--streams", type=int, default=300)
    parser.add_argument("--waiters", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    largest = 0
    with memory_cgroup() as (wrapper, home), Server(
            directory() / "permit.db", wrapper=wrapper) as server:
        pid = server.process.pid
        client = server.client()
        client.set_pool("full", capacity=1)
        client.acquire("full", "holder", lease="3600s")
        client.set_pool("busy", capacity=1)
        descriptors = pathlib.Path(f"/proc/{pid}/fd")
        before = len(list(descriptors.iterdir()))

        def watch():
            nonlocal largest
            largest = max(largest, resident_bytes(pid))

        crowd = Crowd(server.port)
        for round in range(arguments.rounds):
            fill(crowd, arguments, round)
            eventually(lambda: client.pool("full").get("waiting"), "the line", 20)
            much_changes(client, watch)
            began = time.monotonic()
            client.get("/pools")
            check(time.monotonic() - began < 5, "an honest request waits too long")
            crowd.leave()
            eventually(lambda: len(list(descriptors.iterdir())) <= before + 2,
                       "the descriptors to be given back", 20)
            watch()
        if arguments.rounds > 1:  # places in line are kept for 15 s
            eventually(lambda: not client.pool("full").get("waiting"), "the line to be empty", 30)
        after = resident_bytes(pid)
        check(kills(home) == 0, "the kernel had to kill")
        check(largest < LIMIT, f"{largest >> 20} MiB")
        check(server.stop() == 0, "exit code")
    total = arguments.connections + arguments.polls + arguments.streams + arguments.waiters
    print(f"{arguments.rounds} times {total} connections: {largest >> 20} MiB at most, "
          f"{after >> 20} MiB in the end")
    totals(rounds=arguments.rounds, connections=total, mib_max=largest >> 20, violations=0)
    return 0


sys.exit(main())
