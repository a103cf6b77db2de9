#!/usr/bin/env python3
"""A holder that was paused beyond its lease wakes up and writes on: the fence keeps it out."""

import pathlib
import re
import socket
import subprocess

from support import BINARY, Refused, Server, check, directory, run


class FencedFiles:
    """One process of the example file server."""

    def __init__(self, files):
        program = pathlib.Path(BINARY).parent / "fenced_files"
        self.process = subprocess.Popen(
            [program, files, "0"], stdout=subprocess.PIPE, text=True
        )
        found = re.match(r"listening on 127\.0\.0\.1:(\d+)", self.process.stdout.readline())
        check(found, "the file server did not start")
        self.port = int(found[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def ask(self, command):
        """One command on a connection of its own: (first line, the rest)."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(command)
            connection.shutdown(socket.SHUT_WR)
            with connection.makefile("rb") as answer:
                first, _, rest = answer.read().partition(b"\n")
        return first.decode(), rest

    def put(self, grant, name, data):
        slot = grant["slots"][0]
        head = f"PUT {slot['id']} {slot['fence']} {name} {len(data)}\n"
        return self.ask(head.encode() + data)[0]

    def get(self, name):
        return self.ask(f"GET {name}\n".encode())


def check_is_kept_out(files, paused, current):
    """`paused` writes late; the file stays what `current` made it."""
    highest = current["slots"][0]["fence"]
    late = files.put(paused, "model", b"of the past")
    check(late == f"STALE {highest}", late)
    check(files.get("model") == ("OK 14", b"of the second\n"), files.get("model"))


def check_ledger(client, first, second):
    """Newest first: the second hold is open, the first one's holder may have worked on."""
    holds = client.get("/permits", pool="disk")["permits"]
    check([hold["holder"] for hold in holds] == ["second", "first"], holds)
    check(holds[0]["state"] == "held" and not holds[0].get("possibleOverlap"), holds)
    check(holds[1]["outcome"] == "lease_expired" and holds[1]["possibleOverlap"], holds)
    described = client.permit(first["id"], first["runId"])
    check(described["possibleOverlap"] and described["outcome"] == "lease_expired", described)
    check(not client.permit(second["id"]).get("possibleOverlap"), client.permit(second["id"]))
    pool = client.pool("disk")
    ended = sum(outcome["holds"] for outcome in pool["outcomes"])
    check(pool["grants"] == 2 and ended == 1 and pool["held"] == 1, pool)


def a_paused_holder_writes_late():
    data = directory() / "files"
    with Server(directory() / "permit.db") as server:
        client = server.client()
        client.set_pool("disk", capacity=1)
        with FencedFiles(data) as files:
            first = client.acquire("disk", "1", holder="first", lease="1s")
            check(files.put(first, "model", b"of the first\n") == "OK", "the first write")
            check(files.put(first, "model", b"of the first, more\n") == "OK", "the same fence")

            # The first holder does nothing for longer than its lease; the second waits its turn.
            second = client.acquire("disk", "2", holder="second", lease="60s")
            check(second["state"] == "granted", second)
            was, now = first["slots"][0], second["slots"][0]
            check(was["id"] == now["id"] and was["fence"] < now["fence"], (was, now))
            check(files.put(second, "model", b"of the second\n") == "OK", "the second's write")
            check_is_kept_out(files, first, second)

        # A file server that was killed has not forgotten.
        with FencedFiles(data) as files:
            check_is_kept_out(files, first, second)
            check(files.put(second, "model", b"of the second\n") == "OK", "the second's, again")
            check_is_kept_out(files, first, second)

        try:
            client.release(was["id"], first["token"])
            raise AssertionError("a release after the end of the lease was taken")
        except Refused as refused:
            check((refused.status, refused.reason) == (410, "LEASE_LOST"), refused)
        held = client.permit(now["id"])
        check(held["state"] == "held" and held["fence"] == now["fence"], held)
        client.renew(now["id"], second["token"])
        check_ledger(client, was, now)


def nonsense_is_refused():
    with FencedFiles(directory() / "nonsense") as files:
        for command in (
            b"PUT permit:disk:0 1 ../escape 1\nx",
            b"PUT permit:disk:0 1 .fences 1\nx",
            b"PUT permit:disk:0 0 name 1\nx",
            b"PUT permit:disk:0 1 name 99999999\nx",
            b"PUT permit:disk:0 1 name 5\nx",
            b"DELETE name\n",
            b"GET name\n",
            b"GET ../nonsense/name\n",
        ):
            answer, _ = files.ask(command)
            check(answer.startswith("ERROR "), (command, answer))
        check(files.ask(b"PUT permit:disk:0 1 name 1\nx") == ("OK", b""), "an honest write")


run(a_paused_holder_writes_late, nonsense_is_refused)
