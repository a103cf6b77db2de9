#!/usr/bin/env python3
"""Backup while the server works, and what comes of a copy: it is sound, of one moment, and what it
grants with a new fence epoch is above all that the original has granted since."""

import os
import shutil
import signal
import sqlite3
import subprocess
import threading
import time

from cli_support import permit
from support import BINARY, Refused, Server, check, directory, eventually, run

DAY = "86400s"


def new_home(name):
    home = directory() / name
    home.mkdir()
    return home


def hold(client, request, pool="gpu"):
    """(id, token, fence) of a grant."""
    answer = client.acquire(pool, request, holder=request, lease=DAY)
    return answer["slots"][0]["id"], answer["token"], answer["slots"][0].get("fence", answer.get("fence"))


class Load:
    """Acquires and releases as fast as it can, on some threads, and notes how long that took."""

    def __init__(self, server, threads=4):
        self.stopping = threading.Event()
        self.took = []  # (when, seconds)
        self.threads = [threading.Thread(target=self.go, args=(server, i)) for i in range(threads)]
        for thread in self.threads:
            thread.start()

    def go(self, server, number):
        client = server.client()
        count = 0
        while not self.stopping.is_set():
            count += 1
            began = time.monotonic()
            permit_id, token, _ = hold(client, f"load-{number}-{count}", "load")
            self.took.append((began, time.monotonic() - began))
            client.release(permit_id, token)
        client.close()

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def slowest(self, since, until):
        times = sorted(seconds for began, seconds in self.took if since <= began <= until)
        check(times, "nothing was asked in that time")
        return times[len(times) * 99 // 100]

    def done_within(self, since, until):
        """How many acquires began and ended in that time."""
        return sum(since <= began and began + seconds <= until for began, seconds in self.took)


def a_backup_under_load_is_sound_and_stalls_nobody():
    home = new_home("load")
    with Server(home / "permit.db") as server:
        client = server.client()
        client.set_pool("load", capacity=8)
        client.set_pool("gpu", capacity=4)
        for i in range(400):
            client.start(f"job-{i}", input={"payloads": [{"metadata": {}, "data": "QUJD" * 8000}]})
        kept = hold(client, "kept")
        load = Load(server)
        time.sleep(1)
        began = time.monotonic()
        answer = permit("server", "backup", "--database", home / "permit.db", "--to", home / "copy.db",
                        "-o", "json", seconds=60).json()
        ended = time.monotonic()
        load.stop()
        before, during = load.slowest(0, began), load.slowest(began, ended)
        through = load.done_within(began, ended)
        usual = load.done_within(began - 1, began) * (ended - began)  # that second, for so long
        print(f"{answer['bytes'] >> 20} MiB in {ended - began:.1f} s; acquire p99 {before * 1000:.0f} ms "
              f"before, {during * 1000:.0f} ms meanwhile, {through} of them")
        # Who had to wait for its end would be through once at most at either side of it.
        enough = min(3 * len(load.threads), usual / 3)  # where a disk is slow there are few at any time
        check(through > enough, f"{through} acquires in the {ended - began:.1f} s of the backup, usually {usual:.0f}")
        check(during < max(20 * before, 3), f"p99 went from {before} s to {during} s")
        check(answer["bytes"] == (home / "copy.db").stat().st_size, answer)
        status = permit("server", "status", "-o", "json", server=server).json()
        check(0 < int(answer["commit"]) <= int(status["commit"]), (answer, status))
        check(sorted(path.name for path in home.glob("copy*")) == ["copy.db"], list(home.iterdir()))
        check(oct((home / "copy.db").stat().st_mode & 0o777) == "0o600", "others can read it")
        report = permit("server", "check", "--database", home / "copy.db", "-o", "json").json()
        check(report["sound"] and report["commit"] == answer["commit"], report)
        check(int(report["runs"]) >= 400 and int(report["permitsHeld"]) >= 1, report)
        # Also of the file that is in use, and again once it is not.
        permit("server", "check", "--database", home / "permit.db")
        check(client.permit(kept[0])["holder"] == "kept", "the server is not well")
        check(server.stop() == 0, "it did not stop")
    said = permit("server", "check", "--database", home / "permit.db").out
    check("is sound" in said and "permit" in said, said)


def nothing_is_overwritten_and_nothing_half_made_is_left():
    home = new_home("refusals")
    with Server(home / "permit.db") as server:
        server.client().set_pool("gpu", capacity=1)
        (home / "there.db").write_text("precious")
        answer = permit("server", "backup", "--database", home / "permit.db", "--to", home / "there.db", code=5)
        check("overwrites nothing" in answer.err, answer.err)
        check((home / "there.db").read_text() == "precious", "it was overwritten")
        permit("server", "backup", "--database", home / "permit.db", code=2)
        permit("server", "backup", "--database", home / "permit.db", "--to", home / "no" / "copy.db", code=1)
        missing = permit("server", "backup", "--database", home / "none.db", "--to", home / "c.db", code=66)
        check("none.db" in missing.err, missing.err)
        check(not list(home.glob("c.db*")) and not list(home.glob("none.db*")), list(home.iterdir()))
        permit("server", "check", "--database", home / "none.db", code=66)
        permit("server", "check", "--database", home / "there.db", code=1)
        server.stop()
    data = bytearray((home / "permit.db").read_bytes())
    data[3 * 8192 + 100] ^= 1
    (home / "damaged.db").write_bytes(data)
    permit("server", "check", "--database", home / "damaged.db", code=1)
    permit("server", "backup", "--database", home / "damaged.db", "--to", home / "c.db", code=1)
    check(not list(home.glob("c.db*")), list(home.iterdir()))


def a_killed_backup_is_in_nobodys_way():
    home = new_home("killed")
    with Server(home / "permit.db") as server:
        client = server.client()
        client.set_pool("gpu", capacity=1)
        for i in range(400):
            client.start(f"job-{i}", input={"payloads": [{"metadata": {}, "data": "QUJD" * 8000}]})
        asked = ["server", "backup", "--database", home / "permit.db", "--to", home / "copy.db"]
        partial = home / "copy.db.partial"
        process = subprocess.Popen([BINARY, *asked], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            eventually(lambda: partial.exists() and partial.stat().st_size > 0, "a part of the copy")
            os.kill(process.pid, signal.SIGSTOP)
            other = permit(*asked, code=1)
            check("another backup" in other.err and partial.stat().st_size > 0, other.err)
        finally:
            process.kill()
            process.wait()
        check(partial.exists(), "it had ended before it was killed")
        permit(*asked)
        check(sorted(path.name for path in home.glob("copy*")) == ["copy.db"], list(home.iterdir()))
        permit("server", "check", "--database", home / "copy.db")


def a_restored_copy_grants_above_all_that_was_granted():
    home, later = new_home("first"), new_home("second")
    with Server(home / "permit.db") as server:
        client = server.client()
        client.set_pool("gpu", capacity=5)
        early = hold(client, "early")
        gone = hold(client, "gone")
        permit("server", "backup", "--database", home / "permit.db", "--to", later / "permit.db")
        shutil.copy(home / "permit.db.key", later / "permit.db.key")
        client.release(gone[0], gone[1])
        fences = [hold(client, f"since-{i}")[2] for i in range(2)]
        since = client.acquire("gpu", "since-1", holder="since-1", lease=DAY)
        server.stop()
    refused = start_refused(later / "permit.db", "--fence-epoch", "0")
    check("fence-epoch" in refused, refused)
    with Server(later / "permit.db", "--fence-epoch", "1") as server:
        client = server.client()
        check(permit("server", "status", "-o", "json", server=server).json()["fenceEpoch"] == 1, "no epoch")
        check("fence epoch" in permit("server", "status", server=server).out, "not shown")
        # Whoever held then holds still, with the old fence; whoever came since is not known.
        client.renew(early[0], early[1])
        check(client.permit(early[0])["fence"] == early[2], "the fence changed")
        try:
            client.renew(since["slots"][0]["id"], since["token"])
            check(False, "a hold that the copy cannot know was renewed")
        except Refused as error:
            check(error.status in (404, 410), error)
        granted = hold(client, "new")[2]
        check(granted > max(fences) and granted >> 40 == 1, (granted, fences))
        server.stop()
        server.errors.clear()
    for epoch in ("1", "0"):
        refused = start_refused(later / "permit.db", "--fence-epoch", epoch)
        check(epoch == "0" or "the next free one is 2" in refused, refused)
    with Server(later / "permit.db") as server:  # goes on in its epoch
        check(hold(server.client(), "newer")[2] == granted + 1, "the epoch was forgotten")
        server.kill()
    with Server(later / "permit.db", "--fence-epoch", "7") as server:
        client = server.client()
        client.set_pool("more", capacity=1)
        check(hold(client, "newest", "more")[2] == (7 << 40) + 1, "another epoch")


def start_refused(*arguments):
    database, *flags = arguments
    try:
        with Server(database, *flags):
            pass
    except RuntimeError as refusal:
        return str(refusal)
    raise AssertionError(f"it started with {flags}")


def an_older_copy_in_the_place_of_the_database_is_noticed():
    home = new_home("in_place")
    with Server(home / "permit.db") as server:
        client = server.client()
        client.set_pool("gpu", capacity=3)
        permit("server", "backup", "--database", home / "permit.db", "--to", home / "copy.db")
        fence = hold(client, "since")[2]
        server.stop()
    os.replace(home / "copy.db", home / "permit.db")
    refused = start_refused(home / "permit.db")
    check("was acknowledged" in refused and "--fence-epoch" in refused, refused)
    faults = permit("server", "check", "--database", home / "permit.db", code=1).out
    check("was acknowledged" in faults, faults)
    with Server(home / "permit.db", "--fence-epoch", "1") as server:
        check(hold(server.client(), "new")[2] > fence, "the fence went back")
        server.stop()
    with Server(home / "permit.db") as server:
        server.stop()


def holds_in(database):
    connection = sqlite3.connect(database)
    count = connection.execute("SELECT count(*) FROM holds").fetchone()[0]
    connection.close()
    return count


def a_backup_has_what_is_only_in_the_redo_log():
    home = new_home("redo")
    with Server(home / "permit.db") as server:
        client = server.client()
        client.set_pool("gpu", capacity=50)
        for number in range(20):
            for i in range(2):
                hold(client, f"h-{number}-{i}")
            copy = home / f"copy-{number}.db"
            permit("server", "backup", "--database", home / "permit.db", "--to", copy)
            check(holds_in(copy) == 2 * number + 2, f"copy {number} has {holds_in(copy)} holds")
        hold(client, "last")
        server.kill()
    permit("server", "backup", "--database", home / "permit.db", "--to", home / "dead.db")
    check(holds_in(home / "dead.db") == 41, "what a killed server had acknowledged")


def copies_that_other_programs_make_are_taken():
    home = new_home("others")
    with Server(home / "permit.db") as server:
        client = server.client()
        client.set_pool("gpu", capacity=50)
        for i in range(30):
            hold(client, f"h-{i}")
        eventually(lambda: holds_in(home / "permit.db") == 30, "the holds in the tables", 5)
        copy = sqlite3.connect(home / "copy.db")
        with sqlite3.connect(home / "permit.db") as source:
            source.backup(copy)
        source.close()
        copy.close()
        server.kill()  # with a log, which the next program to look brings into the file
    check(holds_in(home / "permit.db") == 30, "not all holds")
    for database in (home / "copy.db", home / "permit.db"):
        permit("server", "check", "--database", database)
        with Server(database) as server:
            check(server.client().pool("gpu")["held"] == 30, "not all permits")
            server.stop()
        permit("server", "check", "--database", database)
    # But what they change is not taken for ours.
    change = sqlite3.connect(home / "permit.db")
    change.execute("UPDATE holds SET holder = 'somebody else' WHERE fence = 7")
    change.commit()
    change.close()
    check("is not as it was written" in start_refused(home / "permit.db"), "it started")


run(
    a_backup_under_load_is_sound_and_stalls_nobody,
    nothing_is_overwritten_and_nothing_half_made_is_left,
    a_killed_backup_is_in_nobodys_way,
    a_restored_copy_grants_above_all_that_was_granted,
    an_older_copy_in_the_place_of_the_database_is_noticed,
    a_backup_has_what_is_only_in_the_redo_log,
    copies_that_other_programs_make_are_taken,
)
