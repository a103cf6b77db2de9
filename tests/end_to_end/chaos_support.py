"""What the tests share that break things on purpose: the shim, the load, the checker, the books."""

import json
import mmap
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import threading
import time

from support import BINARY, Refused, Server, Unknown, check, eventually, parallel

TOOLS = pathlib.Path(os.environ.get("PERMIT_TOOLS", pathlib.Path(BINARY).parent))


def tool(name):
    return str(TOOLS / name)


class Shim:
    """Rules for the calls of one server process; see tests/shim/shim.cpp."""

    CALLS = "open read write sync truncate unlink rename send receive accept reply allocate".split()
    FILES = "none db wal redo shm lock key more socket memory any".split()

    def __init__(self, database, rules, armed=True):
        self.path = pathlib.Path(f"{database}.shim-state")
        size = 8 * (3 + len(self.CALLS) * len(self.FILES))
        self.path.write_bytes(bytes(size))
        with open(self.path, "r+b") as file:
            self.state = mmap.mmap(file.fileno(), size)
        if armed:
            self.arm()
        self.wrapper = (
            "env", f"LD_PRELOAD={tool('libpermit_shim.so')}", f"PERMIT_SHIM_DATABASE={database}",
            f"PERMIT_SHIM_STATE={self.path}", f"PERMIT_SHIM={rules}",
        )

    def arm(self):
        self.state[0:8] = struct.pack("<Q", 1)

    def disarm(self):
        self.state[0:8] = struct.pack("<Q", 0)

    def word(self, index):
        return struct.unpack_from("<Q", self.state, 8 * index)[0]

    @property
    def fired(self):
        return self.word(1)

    @property
    def fired_at(self):
        """Seconds of the monotonic clock."""
        return self.word(2) / 1e6

    def calls(self, call, file):
        return self.word(3 + self.CALLS.index(call) * len(self.FILES) + self.FILES.index(file))

    def all_calls(self):
        counts = {}
        for call in self.CALLS:
            for file in self.FILES:
                if self.calls(call, file):
                    counts[f"{call} {file}"] = self.calls(call, file)
        return counts


class LockLoad:
    """permit_lock_load on one pool, and its history. Ends with the `with` block."""

    def __init__(self, port, history, pool="lock", seconds=3600, **options):
        self.history = pathlib.Path(history)
        command = [tool("permit_lock_load"), "--port", port, "--history", history, "--pool", pool,
                   "--seconds", seconds]
        for name, value in options.items():
            option = "--" + name.replace("_", "-")
            command += [option] if value is True else [option, value]
        self.process = subprocess.Popen(
            list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def terminate(self):
        """SIGTERM, once it listens for one: before that it would just be its end."""
        eventually(lambda: self.process.poll() is not None or self.catches(signal.SIGTERM), "the load's start")
        self.process.terminate()

    def catches(self, number):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"^SigCgt:\s*(\w+)", status, re.MULTILINE)[1], 16) >> (number - 1) & 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def end(self, seconds=60):
        """SIGTERM: it gives back what it holds and looks at all slots. What it says."""
        self.terminate()
        return self.wait(seconds)

    def wait(self, seconds=60):
        said, _ = self.process.communicate(timeout=seconds)
        check(self.process.returncode == 0, said)
        return said.strip()


class Locks:
    """What the checker says of histories; summed up over many."""

    def __init__(self):
        self.operations = self.ok = self.unknown = self.grants = self.expired = 0

    def check(self, *histories, min_grants=1, min_ok_percent=30):
        command = [tool("permit_lock_check"), "--min-grants", str(min_grants), "--min-ok-percent",
                   str(min_ok_percent), *map(str, histories)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
        check(done.returncode == 0, f"{done.stdout}{done.stderr} in {histories}")
        numbers = list(map(int, re.findall(r"(\d+) (?:op|ok|without|grants|expired)", done.stdout)))
        self.operations += numbers[0]
        self.ok += numbers[1]
        self.unknown += numbers[2]
        self.grants += numbers[3]
        self.expired += numbers[4]
        return done.stdout.strip()

    def __str__(self):
        return (f"{self.operations} lock operations: {self.ok} ok, {self.unknown} without an "
                f"answer, {self.grants} grants, {self.expired} expired; 0 violations")


class Recorder:
    """A lock history written by Python clients, from any thread; see tests/lock_history/history.h"""

    def __init__(self, path, pool, capacity):
        self.path = path
        self.pool = pool
        self.lock = threading.Lock()
        self.count = 0
        self.file = open(path, "w")
        self.file.write(f"pool {pool} {capacity}\n")

    @staticmethod
    def now():
        return time.monotonic_ns() // 1000

    def ask(self, what, at=None):
        """Before it is sent. `at`: when it was first asked, under the same request id."""
        with self.lock:
            self.count += 1
            self.file.write(f"> {at or self.now()} {self.count} {what}\n")
            return self.count

    def answer(self, operation, what):
        with self.lock:
            self.file.write(f"< {self.now()} {operation} {what}\n")

    def flush(self):
        with self.lock:
            self.file.flush()

    def close(self):
        with self.lock:
            self.file.close()


def granted(pool, answer):
    """What a Recorder is told of an acquire that was granted one slot."""
    slot = answer["slots"][0]
    return f"ok {pool}:{slot['slot']} {slot['fence']} {slot['runId']}"


class Book:
    """Signals and lists of many threads, and what became of each signal. The server may die
    meanwhile; then look for all of them, and ask again for what got no answer."""

    def __init__(self, name, workflows=4):
        self.name = name
        self.workflows = [f"{name}-{number}" for number in range(workflows)]
        self.asked = {}  # request id → (workflow, state, when it was asked)
        self.acked_after = []  # (asked, answered) of all acknowledged
        self.threads = []
        self.failures = []
        self.stopping = threading.Event()

    def begin(self, server, threads=3):
        client = server.client()
        for workflow in self.workflows:
            client.start(workflow, requestId=f"{workflow}-start")
        client.close()
        self.threads = [
            threading.Thread(target=self.guarded, args=(server.client(), number), daemon=True)
            for number in range(threads)
        ]
        for thread in self.threads:
            thread.start()

    def guarded(self, client, number):
        turn = 0
        try:
            while not self.stopping.is_set():
                turn += 1
                workflow = self.workflows[(number + turn) % len(self.workflows)]
                self.signal(client, workflow, f"{self.name}.{number}.{turn}")
                if turn % 5 == 0:
                    self.look(client)
        except Unknown:
            pass  # the server is dead
        except BaseException as error:
            self.failures.append(error)
        finally:
            client.close()

    @staticmethod
    def look(client):
        """Lists are read by another thread, over a connection of its own."""
        try:
            client.get("/workflows", query="WorkflowType = 'Test'")
            client.get("/permits", pool="lock", pageSize=50)
        except Refused:
            pass

    def signal(self, client, workflow, request):
        asked = time.monotonic()
        self.asked[request] = (workflow, "unknown")
        try:
            client.signal(workflow, "poke", requestId=request, input=["x" * 1000])
            self.asked[request] = (workflow, "acked")
            self.acked_after.append((asked, time.monotonic()))
        except Refused as refused:
            # 507: nothing was done. Other 5xx: nobody knows.
            known = refused.status < 500 or refused.status == 507
            self.asked[request] = (workflow, "refused" if known else "unknown")

    def end(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(30)
            check(not thread.is_alive(), "a client hangs on a dead server")
        if self.failures:
            raise self.failures[0]

    def found(self, client):
        """How often each request is in the histories."""
        counts = dict.fromkeys(self.asked, 0)
        for workflow in self.workflows:
            for event in client.history(workflow):
                request = event.get("workflowExecutionSignaledEventAttributes", {}).get("requestId")
                if request:
                    check(request in counts, f"{request} was never asked for")
                    counts[request] += 1
        return counts

    def verify(self, server):
        """Acknowledged: once. Refused: never. Unknown: at most once, and once when asked again."""
        client = server.client()
        for request, count in self.found(client).items():
            state = self.asked[request][1]
            right = {"acked": count == 1, "refused": count == 0, "unknown": count <= 1}[state]
            check(right, f"signal {request}, {state}, is there {count} times")
        for request, (workflow, state) in list(self.asked.items()):
            if state == "unknown":
                self.signal(client, workflow, request)
                check(self.asked[request][1] == "acked", f"{request} asked again: not taken")
        for request, count in self.found(client).items():
            once = self.asked[request][1] == "acked"
            check(count == once, f"signal {request} is there {count} times after asking again")
        client.close()

    def counts(self):
        states = [state for _, state in self.asked.values()]
        return {state: states.count(state) for state in sorted(set(states))}


def files_of(database):
    """It, and what is beside it that has commits."""
    database = pathlib.Path(database)
    names = (database.name, f"{database.name}-wal", f"{database.name}-shm", f"{database.name}-redo*")
    return [path for name in names for path in database.parent.glob(name)]


def check_file(database, copy):
    """A dead server's database, looked at in a copy: sound, and no id has two open runs."""
    for path in files_of(copy):
        path.unlink()
    for path in files_of(database):
        shutil.copy(path, str(copy) + path.name[len(pathlib.Path(database).name):])
    connection = sqlite3.connect(copy)
    try:
        report = connection.execute("PRAGMA integrity_check").fetchone()
        check(report == ("ok",), f"integrity_check: {report}")
        if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'runs'").fetchone():
            return
        twice = connection.execute(
            "SELECT workflow_id FROM runs WHERE +status = 1 GROUP BY +workflow_id "
            "HAVING count(*) > 1").fetchall()
        check(not twice, f"ids with two open runs: {twice}")
    finally:
        connection.close()


def wait_dead(server, seconds=30):
    """Returns the exit code; negative: the signal."""
    try:
        return server.process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return None


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid):
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def totals(**figures):
    """The last line of a run, for the ledger of scripts/soak."""
    print("TOTALS " + json.dumps(figures), flush=True)


__all__ = [name for name in dir() if not name.startswith("_")]
