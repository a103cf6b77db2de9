#!/usr/bin/env python3
"""A bad network: late, cut, doubled, reset. Peers that vanish. No file descriptors left.

Usage: network.py [--seconds S] [--vanish] [--seed S]   S: of each profile of the proxy; --vanish:
waits until the connections of vanished peers are gone, which takes a minute and a half.
"""

import argparse
import ctypes
import pathlib
import random
import socket
import struct
import subprocess
import sys
import time

from chaos_support import LockLoad, Locks, cpu_seconds, tool, totals
from support import RPC, Server, check, directory, eventually

PROFILES = {
    "late": dict(delay_ms=5, jitter_ms=30),
    "reset": dict(reset_percent=2),
    "half-closed": dict(half_close_percent=2),
    "single bytes": dict(split_percent=100),
    "doubled": dict(duplicate_percent=20),
    "slow": dict(throttle_bytes=4000),
    "all at once": dict(jitter_ms=10, reset_percent=1, half_close_percent=1, split_percent=10,
                        duplicate_percent=10),
}


SLOTS = 64  # many: a request that is delivered twice takes one that nobody knows of


class Proxy:
    def __init__(self, target, **options):
        arguments = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        self.process = subprocess.Popen(
            [tool("permit_chaos_proxy"), "--target", str(target), *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        self.port = int(self.process.stdout.readline().rpartition(":")[2])

    def end(self):
        """What it did."""
        said, _ = self.process.communicate("", timeout=20)
        check(self.process.returncode == 0, "the proxy failed")
        return said.strip()


def locks_over_a_bad_network(arguments, locks):
    with Server(directory() / "proxy.db", permit_worker=True) as server:
        for number, (name, options) in enumerate(PROFILES.items()):
            pool, history = f"pool-{number}", directory() / f"proxy-{number}.txt"
            server.client().set_pool(pool, capacity=SLOTS)
            proxy = Proxy(server.port, seed=arguments.seed, **options)
            with LockLoad(proxy.port, history, pool=pool, slots=SLOTS, connections=16,
                          seconds=arguments.seconds, seed=arguments.seed, lease_ms=1500,
                          patience_ms=1500, settle_seconds=4,
                          **({"duplicates": True} if "duplicate_percent" in options else {})) as load:
                load.wait()
            found = locks.check(history, min_grants=3)
            print(f"    {name}: {proxy.end()}\n        {found}", flush=True)
        client = server.client()
        eventually(lambda: all(not client.pool(f"pool-{number}").get("held")
                               for number in range(len(PROFILES))), "all leases to end", 30)
        check(server.stop() == 0, "exit code")


# --- Peers that vanish ---

SO_ATTACH_FILTER = 26


def vanish(connection):
    """From now on the kernel drops whatever comes for this socket, and says nothing to it."""
    program = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))  # BPF: return 0
    header = struct.pack("HxxxxxxQ", 1, ctypes.addressof(program))
    connection.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, header)


def poll_by_hand(port, queue):
    connection = socket.create_connection(("127.0.0.1", port))
    body = f'{{"namespace":"default","taskQueue":{{"name":"{queue}"}}}}'
    connection.sendall(
        f"POST {RPC}PollWorkflowTaskQueue HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    return connection


def tcp_table(server_port):
    """{client's port: (timer, seconds until it)} of the server's ends; 2: keep-alive."""
    table = {}
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        local, remote = (int(fields[index].split(":")[1], 16) for index in (1, 2))
        timer, when = fields[5].split(":")
        if local == server_port and fields[3] == "01":
            table[remote] = (int(timer, 16), int(when, 16) / 100)
    return table


def a_peer_that_vanishes(arguments):
    with Server(directory() / "vanish.db") as server:
        client = server.client()
        client.get("/pools")
        idle = poll_by_hand(server.port, "idle")
        gone = poll_by_hand(server.port, "work")
        eventually(lambda: client.get("/task-queues/work").get("pollers"), "the poll")
        table = tcp_table(server.port)
        for peer in (idle, gone):
            timer, seconds = table[peer.getsockname()[1]]
            check(timer == 2 and seconds <= 31, f"no keep-alive probe within 30 s: {timer} {seconds}")
        vanish(idle)
        vanish(gone)
        began = time.monotonic()
        # It is handed the task, and will never know. The task is offered again.
        client.start("w", workflowTaskTimeout="2s")
        task = client.poll(wait="10s")
        took = time.monotonic() - began
        check(task and 1.9 < took < 8, f"the task was offered again after {took:.1f} s")
        check(int(task["attempt"]) > 1, f"attempt {task['attempt']}")
        client.complete(task)
        print(f"    the task of a vanished worker was offered again after {took:.1f} s")
        if not arguments.vanish:
            return
        client.close()
        eventually(lambda: not tcp_table(server.port), "the vanished peers to be let go", 95)
        print(f"    their connections were gone after {time.monotonic() - began:.0f} s")


# --- No descriptors ---


def no_descriptors_left():
    wrapper = ("prlimit", "--nofile=64:64")
    with Server(directory() / "descriptors.db", wrapper=wrapper) as server:
        client = server.client()
        client.set_pool("gpu", capacity=1)
        taken = []
        try:
            for _ in range(90):  # more than it can accept; the rest wait in the kernel
                taken.append(socket.create_connection(("127.0.0.1", server.port)))
                taken[-1].sendall(b"POST /x HTTP/1.1\r\nHost: localhost\r\n")
            descriptors = pathlib.Path(f"/proc/{server.process.pid}/fd")
            eventually(lambda: len(list(descriptors.iterdir())) >= 64, "all descriptors in use")
            busy, began = cpu_seconds(server.process.pid), time.monotonic()
            for turn in range(20):  # who is connected is served
                grant = client.acquire("gpu", f"{turn}")
                client.release(grant["slots"][0]["id"], grant["token"])
                time.sleep(0.05)
            busy = cpu_seconds(server.process.pid) - busy
            passed = time.monotonic() - began
            check(busy < 0.5 * passed, f"{busy:.2f} s of CPU in {passed:.2f} s: accept spins")
            print(f"    without descriptors: {busy:.2f} s of CPU in {passed:.2f} s, 40 requests")
        finally:
            for connection in taken:
                connection.close()
        fresh = server.client()
        began = time.monotonic()
        fresh.get("/pools")
        check(time.monotonic() - began < 5, "a new connection waits too long")
        check(server.stop() == 0, "exit code")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=0.8)
    parser.add_argument("--vanish", action="store_true")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    arguments = parser.parse_args()
    print(f"SEED={arguments.seed}", flush=True)
    locks = Locks()
    locks_over_a_bad_network(arguments, locks)
    a_peer_that_vanishes(arguments)
    no_descriptors_left()
    print(locks)
    check(locks.ok * 100 >= 30 * locks.operations, "too little was done to mean something")
    totals(profiles=len(PROFILES), locks=locks.operations, violations=0)
    return 0


sys.exit(main())
