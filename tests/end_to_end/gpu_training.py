#!/usr/bin/env python3
"""Eight trainings of the example on four GPUs: one is terminated, one's worker dies, one hangs."""

import re
import subprocess
import threading
import time

from support import WORKERS, Server, Worker, check, directory, eventually, run, seconds_of

PROGRAM = WORKERS / "gpu_training"
# 45 min are 6 s, then; an attempt ends after 5 s, silence after 2 s, an epoch takes 0.27 s.
TIME_SCALE = 450
LEASE = 6


class Trainer(Worker):
    """A worker of the example."""

    def __init__(self, server, name, *arguments):
        self.process = subprocess.Popen(
            [PROGRAM, "worker", "--name", name, "--address", f"127.0.0.1:{server.port}",
             *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        self.lines = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        eventually(lambda: self.lines, "the worker's first line")


def program(server, verb, workflow, *arguments):
    """One of the other sub-commands: (exit code, what it printed)."""
    command = [PROGRAM, verb, "--id", workflow, "--address", f"127.0.0.1:{server.port}", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=30)
    return done.returncode, done.stdout


def start(server, workflow, *arguments):
    code, said = program(server, "start", workflow, "--time-scale", str(TIME_SCALE), *arguments)
    check(code == 0, said)


def pending(client, workflow):
    """The activity that runs or waits to be tried again, as describe shows it."""
    activities = client.get(f"/workflows/{workflow}").get("pendingActivities")
    return activities[0] if activities else {}


def epoch_on_record(client, workflow):
    details = pending(client, workflow).get("heartbeatDetails")
    return details[0]["epochs_done"] if details else 0


# What a worker says of an attempt: when, which run, which slot, which fence, what.
SAID = re.compile(r"(\d+):(\d+):(\d+\.\d+)  \w+  (\S+)  permit:gpu-pool:(\d)  fence (\d+)  (.*)")
BEGAN = time.time()


def attempts_said(*trainers):
    """In order of time: (seconds since midnight, run, slot, fence, what)."""
    found = []
    for trainer in trainers:
        for line in trainer.lines:
            said = SAID.match(line)
            if said:
                hours, minutes, seconds, workflow, slot, fence, what = said.groups()
                at = int(hours) * 3600 + int(minutes) * 60 + float(seconds)
                at += 86400 if at < BEGAN % 86400 - 60 else 0  # the test runs over midnight
                found.append((at, workflow, int(slot), int(fence), what))
    return sorted(found)


def check_nobody_met(said):
    """By the workers' own account: one in a slot at a time, so four in all at most."""
    stays = {}
    for at, workflow, slot, fence, _ in said:
        first, _, _ = stays.get((slot, fence), (at, at, workflow))
        stays[slot, fence] = (first, at, workflow)
    for (slot, fence), (first, last, workflow) in stays.items():
        for (other_slot, other_fence), (other_first, _, other) in stays.items():
            later = other_slot == slot and other_fence > fence
            check(not later or other_first > last, f"{workflow} met {other} in slot {slot}")
    inside = [sum(begin <= at <= end for begin, end, _ in stays.values()) for at, *_ in said]
    check(max(inside) == 4, f"{max(inside)} were inside at most, of 4")


def check_was_told_to_stop(said, workflow):
    """A run's end does not wait for its activity, which finds out by its next heartbeat."""
    words = [what for _, other, _, _, what in said if other == workflow]
    check(words[-1] == "is told to stop", words)


def terminate_a_holder(client, workflow):
    held = eventually(lambda: next((slot["permit"] for slot in client.pool("gpu-pool")["slots"]
                                    if slot.get("permit", {}).get("holder") == workflow), None),
                      f"a GPU for {workflow}")
    before = time.time()
    client.post(f"/workflows/{workflow}/terminate", {"reason": "test"})
    ended = client.permit(held["id"], held["runId"])
    check((ended["outcome"], ended["cause"]) == ("holder_closed", "terminated"), ended)
    check(client.permit(held["id"])["fence"] > held["fence"], "handed on in the same commit")
    return before


def check_went_on(said, workflow, on_record):
    """Its second attempt begins where the first one's last heartbeat was, under the same permit."""
    mine = [(slot, fence, what) for _, other, slot, fence, what in said if other == workflow]
    check(len({(slot, fence) for slot, fence, _ in mine}) == 1, mine)
    words = [what for _, _, what in mine]
    went_on = next(i for i, what in enumerate(words) if "attempt 2 goes on" in what)
    epoch = int(re.fullmatch(r"attempt 2 goes on after epoch (\d+)", words[went_on])[1])
    printed = sum(what.startswith("epoch") for what in words[:went_on])
    check(2 <= on_record <= epoch <= printed, (on_record, epoch, printed))
    check(words[went_on + 1].startswith(f"epoch {epoch + 1} of 14"), words[went_on + 1])
    check("epoch 1 of 14" not in "".join(words[went_on:]), words)
    return epoch


def check_was_lost(server, client, workflow, last_heartbeat):
    """Its lease ended, by the timer, a lease after its last epoch."""
    code, said = program(server, "result", workflow)
    check(code == 1 and "lease_expired" in said, said)
    held = next(hold for hold in client.get("/permits", pool="gpu-pool")["permits"]
                if hold["holder"] == workflow)
    held = client.permit(held["id"], held["runId"])
    check((held["outcome"], held["cause"]) == ("lease_expired", "timer"), held)
    lasted = seconds_of(held["deadline"]) - seconds_of(last_heartbeat)
    check(abs(lasted - LEASE) < 0.01, f"the lease ended {lasted} s after the last epoch")
    late = seconds_of(held["closedAt"]) - seconds_of(held["deadline"])
    check(0 <= late < 4, f"ended {late} s after its deadline")  # the backstop would be 5 s late


def eight_trainings_share_four_gpus():
    with Server(directory() / "permit.db", permit_worker=True) as server:
        client = server.client()
        ada = Trainer(server, "ada", "--at-once", "2")
        for workflow in ("train-1", "train-2"):
            start(server, workflow, "--epochs", "14")
        eventually(lambda: len(attempts_said(ada)) >= 2, "two attempts of ada's")
        bob = Trainer(server, "bob")
        try:
            start(server, "train-3", "--epochs", "14")
            start(server, "hangs", "--hang-after-epoch", "2")
            for i in range(5, 9):
                start(server, f"train-{i}")
            eventually(lambda: client.pool("gpu-pool").get("waiting") == 4, "a line of four")
            terminated = terminate_a_holder(client, "train-3")

            eventually(lambda: epoch_on_record(client, "train-1") >= 2, "two epochs of train-1")
            ada.kill()
            on_record = epoch_on_record(client, "train-1")
            check(pending(client, "train-1")["lastWorkerIdentity"] == "ada", "where it ran")

            eventually(lambda: epoch_on_record(client, "hangs") == 2, "the last sign of the silent")
            last_heartbeat = pending(client, "hangs")["lastHeartbeatTime"]

            losses = set()
            for i in (1, 2, 5, 6, 7, 8):
                code, said = program(server, "result", f"train-{i}")
                check(code == 0, said)
                epochs, loss, attempts = re.search(r"(\d+) epochs, loss (\S+), attempts (\d+)",
                                                   said).groups()
                losses.add((epochs, loss))
                check(i > 2 or int(attempts) >= 2, said)
            # As many epochs, the same loss, whoever died.
            check({epochs for epochs, _ in losses} == {"10", "14"} and len(losses) == 2, losses)
            check_was_lost(server, client, "hangs", last_heartbeat)
            eventually(lambda: "held" not in client.pool("gpu-pool"), "the end of all holds")
        finally:
            ada.kill()
            said = attempts_said(ada, bob)
            bob.signal(15)
            code = bob.wait()
            bob.kill()
        check(code == 0, f"the worker stopped with {code}")
        epoch = check_went_on(said, "train-1", on_record)
        check_was_told_to_stop(said, "train-3")
        ended = terminated - BEGAN + BEGAN % 86400
        check_nobody_met([one for one in said if one[1] != "train-3" or one[0] < ended])

        pool = client.pool("gpu-pool")
        outcomes = {ended["outcome"]: ended["holds"] for ended in pool["outcomes"]}
        check(outcomes == {"released": 6, "holder_closed": 1, "lease_expired": 1}, pool)
        check(pool["grants"] == sum(outcomes.values()) + pool.get("held", 0), pool)
        print(f"    train-1 went on after epoch {epoch} of 14 on the other worker")


def nonsense_is_refused():
    def ask(*arguments):
        done = subprocess.run([PROGRAM, *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=30)
        return done.returncode, done.stdout

    for arguments in ((), ("train",), ("start",), ("start", "--id"), ("start", "--idea", "x"),
                      ("start", "--id", "x", "--epochs", "1.5"),
                      ("start", "--id", "x", "--time-scale", "fast")):
        code, said = ask(*arguments)
        check(code == 2 and "usage: gpu_training" in said, (arguments, code, said))
    code, said = ask("result", "--id", "x", "--address", "127.0.0.1:1")
    check(code == 1 and "cannot reach" in said, said)
    with Server() as server, Trainer(server, "ada") as ada:
        code, said = program(server, "result", "nobody")
        check(code == 1 and "gpu_training: " in said, said)
        code, said = program(server, "start", "nothing", "--epochs", "0")
        code, said = program(server, "result", "nothing")
        check(code == 1 and "an epoch at least" in said, said)
        check(not server.client().get("/pools").get("pools"), "it asked for no GPU")
        check(ada.process.poll() is None, ada.lines)


run(eight_trainings_share_four_gpus, nonsense_is_refused)
