#!/usr/bin/env python3
"""permit watch tells each hold once when it begins and once when it ends, whatever becomes of the server."""

import json
import subprocess
import threading
import time

from cli_support import BINARY, environment
from support import Server, check, directory, eventually, run


class Watch:
    """permit watch as a process; `told` is what it has said so far."""

    def __init__(self, server, *arguments):
        self.process = subprocess.Popen(
            [BINARY, "watch", *arguments, "-o", "jsonl"], env=environment(server), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        self.told = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.told.append(json.loads(line))

    def changes(self, holder):
        return [line["change"] for line in self.told if line["holder"] == holder]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join()


def take(client, name, **more):
    return client.acquire("seen", f"request {name}", holder=name, lease="600s", **more)


def give_back(client, grant):
    client.release(grant["slots"][0]["id"], grant["token"])


def begin(watch, client):
    """Until the watch has begun to look: what was before it is no change, and not told."""
    number = 0
    end = time.monotonic() + 15
    while not watch.told:
        check(time.monotonic() < end, "watch prints nothing")
        number += 1
        give_back(client, take(client, f"early {number}"))


def tells_at_once_and_only_what_is_new():
    with Server() as server:
        client = server.client()
        client.set_pool("seen", capacity=3)
        client.set_pool("other", capacity=1)
        old = take(client, "old")
        with Watch(server, "seen") as watch:
            begin(watch, client)
            client.acquire("other", "elsewhere", holder="elsewhere")
            began = time.monotonic()
            new = take(client, "new")
            eventually(lambda: watch.changes("new") == ["acquired"], "the new hold")
            took = time.monotonic() - began
            check(took < 5, f"a hold is told after {took:.2f} s")
            give_back(client, old)
            give_back(client, new)
            eventually(lambda: watch.changes("new") == ["acquired", "released"], "its end")
            check(watch.changes("old") == ["released"], "what was held before ends, and did not begin")
            check(not watch.changes("elsewhere"), "another pool")


def misses_nothing_of_a_killed_server():
    database = directory() / "watch.db"
    with Server(database) as server:
        client = server.client()
        client.set_pool("seen", capacity=4)
        with Watch(server, "seen") as watch:
            begin(watch, client)
            kept = take(client, "kept")
            ended = take(client, "ended meanwhile")
            eventually(lambda: watch.changes("ended meanwhile"), "the holds before")
            server.kill()
            with Server(database, port=server.port) as again:
                client = again.client()
                give_back(client, ended)
                give_back(client, take(client, "short"))
                last = take(client, "last")
                give_back(client, kept)
                eventually(lambda: watch.changes("kept") == ["acquired", "released"], "its end")
                give_back(client, last)
                both = ["acquired", "released"]
                eventually(lambda: watch.changes("last") == both, "what came afterwards")
                for name in ("kept", "ended meanwhile", "short", "last"):
                    check(watch.changes(name) == both, f"{name}: {watch.changes(name)}")
                fences = [(line["fence"], line["change"]) for line in watch.told]
                check(len(fences) == len(set(fences)), "each once")


def ends_with_a_server_that_does_not_come_back():
    with Server() as server:
        client = server.client()
        client.set_pool("seen", capacity=1)
        with Watch(server) as watch:
            begin(watch, client)
            server.kill()
            check(watch.process.wait(30) == 69, "unreachable")
            check("cannot reach" in watch.process.stderr.read(), "a sentence")


if __name__ == "__main__":
    run(
        tells_at_once_and_only_what_is_new,
        misses_nothing_of_a_killed_server,
        ends_with_a_server_that_does_not_come_back,
    )
