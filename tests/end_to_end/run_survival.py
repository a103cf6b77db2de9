#!/usr/bin/env python3
"""permit run when processes are killed, the server goes away, and on a terminal."""

import os
import pathlib
import pty
import random
import re
import select
import signal
import subprocess
import time

from run_support import Run, alive, pids_in, pool_is_free, ready
from support import BINARY, Server, check, directory, eventually, run

SERVER = Server(directory() / "permit.db", permit_worker=True)
CLIENT = SERVER.client()

# A tree of processes, some in sessions of their own, all deaf to TERM; each says its number.
TREE = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for leaves_group in (False, True, False):
    if os.fork() == 0 and leaves_group: os.setsid()
os.write(1, f"{os.getpid()}\\n".encode())
while True: time.sleep(9)
"""


def start(*arguments, **more):
    return Run(SERVER.port, *arguments, **more)


def keeper_of(job):
    children = pathlib.Path(f"/proc/{job.process.pid}/task/{job.process.pid}/children")
    return eventually(lambda: pids_in(children.read_text()), "the keeper")[0]


def tree(pool, *more):
    job = start("-p", pool, "--kill-after", "300ms", *more, "--", "python3", "-c", TREE)
    pids = [int(job.readline()) for _ in range(8)]
    check(all(alive(pid) for pid in pids), pids)
    return job, pids


def a_killed_wrapper_takes_all_with_it():
    CLIENT.set_pool("killed", capacity=1)
    for who in ("wrapper", "keeper"):
        job, pids = tree("killed")
        victim = job.process.pid if who == "wrapper" else keeper_of(job)
        # Whoever comes next looks whether anybody is left.
        signs = [word for pid in pids for word in ("-e", f"/proc/{pid}", "-o")]
        others = start("-p", "killed", "-q", "--", "sh", "-c",
                       f"for pid in {' '.join(map(str, pids))}; do "
                       "grep -q '^State:.[^Z]' /proc/$pid/status 2>/dev/null && echo left $pid; "
                       "done; echo looked")
        eventually(lambda: CLIENT.get("/pools/killed/waiters").get("waiters"), f"a waiter {signs}")
        began = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        done = others.finish()
        took = time.monotonic() - began
        check((done.code, done.output) == (0, "looked\n"), (who, done))
        check(took < 10, f"freed after {took} s, not at the lease's end")  # which is after 2 min
        ended = job.process.wait(timeout=10)
        check(ended == (-9 if who == "wrapper" else 125), (who, ended))
        job.finish()
    pool_is_free(CLIENT, "killed")
    found = {one["outcome"] for one in CLIENT.pool("killed")["outcomes"]}
    check(found == {"released"}, found)


def a_command_outlives_nobody_even_if_all_of_permit_is_killed():
    CLIENT.set_pool("both", capacity=1)
    job = start("-p", "both", "--lease", "1s", "--", "sh", "-c", "echo $$; exec sleep 60")
    command = int(job.readline())
    for pid in (keeper_of(job), job.process.pid):
        os.kill(pid, signal.SIGSTOP)
    keeper = keeper_of(job)
    for pid in (job.process.pid, keeper):
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: not alive(command), "the command's end")
    job.finish()
    pool_is_free(CLIENT, "both", seconds=8)


def a_keeper_killed_while_waiting_leaves_no_slot_behind():
    CLIENT.set_pool("waits", capacity=1)
    with start("-p", "waits", "--", "cat") as holder:
        ready(holder)
        job = start("-p", "waits", "--", "true")
        eventually(lambda: CLIENT.get("/pools/waits/waiters").get("waiters"), "a waiter")
        os.kill(keeper_of(job), signal.SIGKILL)
        done = job.finish()
        check(done.code == 125, done)
        check(not CLIENT.get("/pools/waits/waiters").get("waiters"), "it has left the line")
    pool_is_free(CLIENT, "waits")


def restart(database, port, down=0.0):
    time.sleep(down)
    return Server(database, port=port, permit_worker=True)


def a_restart_of_the_server_costs_no_job():
    database = directory() / "restarted.db"
    with Server(database, permit_worker=True) as server:
        server.client().set_pool("gpu", capacity=1)
        # An outage that is longer than from one renewal to the next, and shorter than what is left then.
        job = Run(server.port, "-p", "gpu", "--lease", "9s", "--kill-after", "500ms", "--",
                  "sh", "-c", "echo ready; sleep 8")
        ready(job)
        waiter = Run(server.port, "-p", "gpu", "--", "echo", "mine")
        eventually(lambda: server.client().get("/pools/gpu/waiters").get("waiters"), "a waiter")
        waiter_id = server.client().get("/pools/gpu/waiters")["waiters"][0]["id"]
        server.kill()
    with restart(database, server.port, down=3.2) as server:
        client = server.client()
        check(client.get("/pools/gpu/waiters")["waiters"][0]["id"] == waiter_id, "the same place")
        done = job.finish()
        check(done.code == 0, done)
        waited = waiter.finish()
        check((waited.code, waited.output) == (0, "mine\n"), waited)
        pool = client.pool("gpu")
        check(pool["outcomes"] == [{"outcome": "released", "holds": 2}], pool)


def without_a_server_the_command_is_stopped_in_time():
    database = directory() / "gone.db"
    with Server(database, permit_worker=True) as server:
        server.client().set_pool("gpu", capacity=2)
        job = Run(server.port, "-p", "gpu", "--lease", "5s", "--kill-after", "2s", "--",
                  "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done")
        defiant = Run(server.port, "-p", "gpu", "--lease", "2s", "--on-lost", "warn", "--",
                      "sh", "-c", "echo ready; sleep 4")
        ready(job)
        ready(defiant)
        granted = time.monotonic()
        server.kill()
        killed = time.monotonic()
    code = job.process.wait(timeout=20)
    ended = time.monotonic()
    done = job.finish()
    check(code == 124 and "stopping the command (TERM, then KILL in" in done.errors, done)
    check("cannot reach" in done.errors and "the command goes on, and is stopped in" in done.errors,
          done)
    check(re.search("lease of permit:gpu:[01] ends soon, and the server does not answer; stopping "
                    r"the command \(TERM, then KILL in (1(\.\d)?s|\d+ms)\)", done.errors), done)
    # It gave the permit back for a while after the command had ended: look at the lines' times.
    check(ended - killed < 8, f"{ended - killed} s")
    check(granted <= killed, "times")
    done = defiant.finish()
    check(done.code == 0, done)
    check("may have ended, as the server does not answer; the command goes on" in done.errors, done)
    check("was not released" in done.errors, done)


def a_keeper_that_is_stopped_alone_is_woken():
    CLIENT.set_pool("woken", capacity=1)
    job = start("-p", "woken", "--lease", "6s", "--", "cat")
    ready(job)
    os.kill(keeper_of(job), signal.SIGSTOP)
    fence = CLIENT.permit("permit:woken:0")["fence"]
    renewed = CLIENT.permit("permit:woken:0").get("renewedAt")
    eventually(lambda: CLIENT.permit("permit:woken:0").get("renewedAt") != renewed, "a renewal")
    check(CLIENT.permit("permit:woken:0")["fence"] == fence, "still the same hold")
    check(job.finish().code == 0, "the command ends by itself")


def a_machine_that_slept_past_the_deadline_stops_at_once():
    CLIENT.set_pool("slept", capacity=1)
    job = start("-p", "slept", "--lease", "1s", "--kill-after", "5s", "--",
                "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done")
    ready(job)
    both = (job.process.pid, keeper_of(job))
    for pid in both:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(1.3)
    for pid in both:
        os.kill(pid, signal.SIGCONT)
    began = time.monotonic()
    done = job.finish()
    check(time.monotonic() - began < 4, "at once")  # KILL would come 5 s after TERM
    check(done.code == 124, done)
    check(re.search(r"lease of permit:slept:0 ended after [1-9](\.\d)?s; stopping the command \(KILL\)",
                    done.errors), done)


class Terminal:
    """An interactive shell on a terminal of its own."""

    def __init__(self):
        self.shell, self.master = pty.fork()
        if self.shell == 0:
            os.environ.update(PS1="$ ", PERMIT_ADDRESS=f"127.0.0.1:{SERVER.port}", TERM="xterm")
            os.environ.pop("PROMPT_COMMAND", None)
            os.execvp("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"])
        self.text = ""
        self.expect(r"\$ $")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.master)  # hangs up
        eventually(lambda: os.waitpid(self.shell, os.WNOHANG)[0], "the shell's end")

    def type(self, text):
        self.text = ""
        os.write(self.master, text.encode())

    def read_for(self, seconds):
        end = time.monotonic() + seconds
        while select.select([self.master], [], [], max(end - time.monotonic(), 0))[0]:
            self.text += os.read(self.master, 65536).decode()
        return self.text

    def expect(self, pattern, seconds=10):
        end = time.monotonic() + seconds
        while not re.search(pattern, self.text):
            left = end - time.monotonic()
            check(left > 0, f"{pattern!r} is not in {self.text!r}")
            if select.select([self.master], [], [], left)[0]:
                self.text += os.read(self.master, 65536).decode()
        return self.text


    def expect_at_a_prompt(self, pattern, seconds=10):
        """What a shell says before its next prompt, once it has learned of it."""
        end = time.monotonic() + seconds
        self.type("\n")
        while not re.search(pattern, self.read_for(0.2)):
            check(time.monotonic() < end, f"{pattern!r} is not in {self.text!r}")
            os.write(self.master, b"\n")


PERMIT = f"{BINARY} run -p tty"


def the_terminal_is_the_commands():
    CLIENT.set_pool("tty", capacity=1)
    with Terminal() as terminal:
        terminal.type(PERMIT + " -- sh -c 'test -t 0 && echo on a tty; read a; echo \"<$a>\"'\n")
        terminal.expect("\non a tty")
        terminal.type("typed\n")
        terminal.expect(r"<typed>\r\n\$ $")
        terminal.type(PERMIT + " -- sh -c 'echo go; exec sleep 60'\n")
        terminal.expect(r"\ngo\r\n")
        terminal.type("\x03")
        terminal.expect(r"\$ $")
        terminal.type("echo code $?\n")
        terminal.expect(r"\ncode 130\r\n\$ $")
        # A command that dies with the terminal in disorder leaves it in order.
        terminal.type(PERMIT + " -- sh -c 'stty -echo; kill -KILL $$'\n")
        terminal.expect(r"\r\n\$ $")
        terminal.type("stty -a | grep -o -e '-*echo '\n")
        terminal.expect("\necho ")
    pool_is_free(CLIENT, "tty")


def jobs_can_be_stopped_and_continued():
    CLIENT.set_pool("tty", capacity=1)
    with Terminal() as terminal:
        terminal.type(PERMIT + " --lease 6s -- sh -c 'echo go; read a; echo \"<$a>\"; exit 6'\n")
        terminal.expect(r"\ngo\r\n")
        terminal.type("\x1a")
        terminal.expect(r"Stopped.*\r\n\$ $")
        time.sleep(6.5)  # longer than the lease, which is renewed all the same
        terminal.type("fg\n")
        terminal.expect("permit run|run -p")
        terminal.type("again\n")
        terminal.expect(r"<again>\r\n\$ $")
        terminal.type("echo code $?\n")
        terminal.expect(r"\ncode 6\r\n\$ $")
        # In the background it runs until it wants to read.
        terminal.type(PERMIT + " -- sh -c 'echo go; read a; echo \"<$a>\"' &\n")
        terminal.expect(r"go\r\n")
        terminal.expect_at_a_prompt("Stopped")
        terminal.type("fg\n")
        terminal.expect(r"run -p")
        time.sleep(0.1)
        terminal.type("third\n")
        terminal.expect(r"<third>\r\n\$ $")
    pool_is_free(CLIENT, "tty")


def a_pipeline_shares_the_terminal():
    CLIENT.set_pool("tty", capacity=1)
    with Terminal() as terminal:
        terminal.type(PERMIT + " -- sh -c 'echo go; exec sleep 60' | cat; echo codes ${PIPESTATUS[*]}\n")
        terminal.expect(r"\ngo\r\n")
        terminal.type("\x03")
        terminal.expect(r"\ncodes 130.*\r\n\$ $|\^C\r\n\$ $")
        terminal.type("echo word | " + PERMIT + " -- sh -c 'read a; read b </dev/tty; echo $a $b'\n")
        time.sleep(0.3)
        terminal.type("key\n")
        terminal.expect(r"\nword key\r\n\$ $")
        terminal.type(PERMIT + " -- sh -c 'echo go; exec sleep 60' | cat\n")
        terminal.expect(r"\ngo\r\n")
        terminal.type("\x1a")
        terminal.expect(r"Stopped.*\r\n\$ $")
        terminal.type("kill -KILL %1\n")
    pool_is_free(CLIENT, "tty")


def a_signal_in_the_first_moments_leaves_no_slot_behind():
    CLIENT.set_pool("moments", capacity=1)
    moments = random.Random(20261118)
    for number in range(90):
        job = start("-p", "moments", "--lease", "60s", "--", "sleep", "0.01")
        time.sleep(moments.random() * 0.02)  # anywhere in its start
        job.process.send_signal((signal.SIGINT, signal.SIGTERM, signal.SIGKILL)[number % 3])
        job.finish()
    pool_is_free(CLIENT, "moments", seconds=10)


def a_server_that_hangs_is_left_in_time():
    server = Server(directory() / "hung.db", permit_worker=True)
    with server:
        client = server.client()
        client.set_pool("hung", capacity=1)
        server.process.send_signal(signal.SIGSTOP)
        try:
            doctor = subprocess.Popen([BINARY, "doctor"], stderr=subprocess.DEVNULL, env=dict(
                os.environ, PERMIT_ADDRESS=f"127.0.0.1:{server.port}"))
            told = Run(server.port, "-p", "hung", "--", "true")
            others = [Run(server.port, "-p", "hung", *more, "--", "true")
                      for more in (("--nonblock",), ("--wait", "1s"))]
            time.sleep(0.3)  # it has asked, or will when it is told to end: both must do
            told.process.send_signal(signal.SIGTERM)
            check(told.finish(seconds=20).code == 143, "TERM")
            for job in others:
                done = job.finish(seconds=20)
                check(done.code == 69 and "does not answer" in done.errors, done)
            check(doctor.wait(20) == 1, "the doctor is not kept either")
        finally:
            server.process.send_signal(signal.SIGCONT)
        # What it had been asked by those who have gone is not granted to nobody.
        grant = client.acquire("hung", "next", lease="60s")
        check(grant["state"] == "granted", grant)


def stopping_while_waiting_keeps_the_place():
    CLIENT.set_pool("tty", capacity=1)
    holder = start("-p", "tty", "--", "cat")
    ready(holder)
    with Terminal() as terminal:
        terminal.type(PERMIT + " -- sh -c 'echo mine $PERMIT_SLOT'\n")
        terminal.expect("waiting for tty: position 1")
        terminal.type("\x1a")
        terminal.expect(r"Stopped.*\r\n\$ $")
        holder.finish()
        eventually(lambda: CLIENT.pool("tty").get("held"), "the slot is granted")
        check("mine 0" not in terminal.read_for(0.3), "it does not run while it is stopped")
        terminal.type("fg\n")
        terminal.expect(r"\nmine 0\r\n[^$]*\$ $")
        # In place: each line overwrites the one before.
        holder = start("-p", "tty", "--", "cat")
        ready(holder)
        terminal.type(PERMIT + " -- true\n")
        terminal.expect("\r\x1b\\[Kpermit: waiting for tty")
        terminal.type("\x03")
        terminal.expect(r"permit: left the line of tty\r\n\$ $")
        holder.finish()
    pool_is_free(CLIENT, "tty")


with SERVER:
    run(
        a_killed_wrapper_takes_all_with_it,
        a_command_outlives_nobody_even_if_all_of_permit_is_killed,
        a_keeper_killed_while_waiting_leaves_no_slot_behind,
        a_signal_in_the_first_moments_leaves_no_slot_behind,
        a_server_that_hangs_is_left_in_time,
        a_restart_of_the_server_costs_no_job,
        without_a_server_the_command_is_stopped_in_time,
        a_keeper_that_is_stopped_alone_is_woken,
        a_machine_that_slept_past_the_deadline_stops_at_once,
        the_terminal_is_the_commands,
        jobs_can_be_stopped_and_continued,
        a_pipeline_shares_the_terminal,
        stopping_while_waiting_keeps_the_place,
    )
