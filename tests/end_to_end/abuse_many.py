"""Cases 26 to 32: slow peers, and many of them, all at once on a server that may have 256 MiB."""

import contextlib
import os
import pathlib
import resource
import selectors
import socket
import struct
import subprocess
import sys
import threading
import time

from abuse_support import ADDRESS, HOST, JSON_TYPE, honest_request, receive_all, request, say
from support import NAMESPACE, RPC, Server, check, eventually

MEMORY_BYTES = 256 << 20
# docs/configuration.md has no settings for these; orchestrator/http/gate.h has the numbers.
HEAD_SECONDS, BODY_SECONDS, BODY_GRACE_SECONDS, WRITE_SECONDS = 5, 15, 5, 15
LATE = {False: 15, True: 4}  # what a loaded machine may add, and one that has only this to do
TCP_REPAIR = 19
SLOW_GET = b"GET / HTTP/1.1\r\n" + HOST + b"A: "


# --- A server with little memory ---


def memory_group():
    """A control group of the kernel's, or None where there is none to be made."""
    for root, limit, peak in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                               "memory.max_usage_in_bytes"),
                              ("/sys/fs/cgroup", "memory.max", "memory.peak")):
        group = pathlib.Path(root) / f"permit-abuse-{os.getpid()}"
        try:
            group.mkdir()
            (group / limit).write_text(str(MEMORY_BYTES))
            return group, peak
        except OSError:
            with contextlib.suppress(OSError):
                group.rmdir()
    return None


@contextlib.contextmanager
def little_server(*arguments, descriptors=0):
    """A server that the kernel ends if it takes more memory than it may."""
    found = memory_group()
    if found:
        cap = f"echo $$ > {found[0]}/cgroup.procs; "
    else:
        cap = "ulimit -v 1048576; "  # of addresses, of which memory is a part
    if descriptors:
        cap += f"ulimit -n {descriptors}; "
    server = None
    try:
        server = Server(None, *arguments, wrapper=("sh", "-c", cap + 'exec "$@"', "sh"),
                        log_level="error")
        with server:
            server.client().set_pool("honest", capacity=3)
            yield server
            check(server.process.poll() is None, "the server has ended")
            said = f"{resident_peak(server) >> 20} MiB resident at most"
            if found:
                peak = found[0] / found[1]
                said += f", {int(peak.read_text()) >> 20} MiB with buffers" if peak.exists() else ""
            check(resident_peak(server) <= MEMORY_BYTES, said)
            print(f"    {said}, of 256 MiB by {'a control group' if found else 'ulimit'}")
    finally:
        if found:
            with contextlib.suppress(OSError):
                eventually(lambda: not (found[0] / "cgroup.procs").read_text(), "the group's end")
                found[0].rmdir()


def resident_peak(server):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) << 10


def allow_all_descriptors():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def descriptors_of(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def cpu_seconds(server):
    fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# --- Many connections ---


class Crowd:
    """Connections that each send something first and then a byte now and then, until closed."""

    def __init__(self, port, count, first, trickle, interval):
        self.selector = selectors.DefaultSelector()
        self.trickle, self.interval = trickle, interval
        self.answers = []  # (seconds until it was closed, what came)
        self.count = count
        self.open = {}
        for _ in range(count):
            connection = socket.create_connection((ADDRESS, port), 30)
            connection.setblocking(False)
            if first:
                connection.send(first)
            self.open[connection] = [time.monotonic(), b""]
            self.selector.register(connection, selectors.EVENT_READ)

    def run(self, seconds):
        """Until all are closed, or for so long."""
        end = time.monotonic() + seconds
        next_byte = time.monotonic() + self.interval
        while self.open and time.monotonic() < end:
            for key, _ in self.selector.select(0.05):
                self.read(key.fileobj)
            if time.monotonic() >= next_byte:
                next_byte += self.interval
                for connection in self.open:
                    with contextlib.suppress(OSError):
                        connection.send(self.trickle)
        return self

    def read(self, connection):
        began, received = self.open[connection]
        try:
            some = connection.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            some = b""
        if some:
            self.open[connection][1] = received + some
            return
        self.selector.unregister(connection)
        connection.close()
        del self.open[connection]
        self.answers.append((time.monotonic() - began, received))

    def close(self):
        for connection in self.open:
            connection.close()
        self.selector.close()
        self.open = {}

    def check_closed(self, seconds, late, statuses):
        check(not self.open, f"{len(self.open)} of {self.count} are open still")
        slowest = max(age for age, _ in self.answers)
        check(slowest <= seconds + late, f"closed after {slowest:.1f} s, not {seconds}")
        for _, received in self.answers:
            # A reset may overtake the answer.
            fits = not received or any(received.startswith(b"HTTP/1.1 %d " % s) for s in statuses)
            check(fits, f"answered {received[:60]}")
        return slowest


def crowd_line(number, what, statuses, seconds, late, *crowd):
    """(number, what, body): a crowd that must be closed in time."""

    def body(port):
        gathered = Crowd(port, *crowd)
        try:
            slowest = gathered.run(seconds + late + 5).check_closed(seconds, late, statuses)
        finally:
            gathered.close()
        print(f"    case {number}: {gathered.count} {what}: closed within {slowest:.1f} s")

    return number, what, body


def slow_reader(number, what, late, asked):
    """Somebody who asks for much and reads nothing."""

    def body(port):
        reader = socket.socket()
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with reader:
            reader.connect((ADDRESS, port))
            reader.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                reader.send(asked)
            own = reader.getsockname()[1]
            began = time.monotonic()
            eventually(lambda: not is_connected(port, own), f"{what} is closed",
                       WRITE_SECONDS + late + 3)
            took = time.monotonic() - began
            check(took > WRITE_SECONDS - 3, f"closed after {took:.1f} s already")
            received, _ = receive_all(reader, 1)
            check(len(received) < 4 << 20, f"{len(received)} bytes had gone out")
        print(f"    case {number}: {what}: closed after {took:.1f} s")

    return number, what, body


def connections_of(port, state="01"):
    """The remote ports of the server's side of all connections, with each one's timer."""
    found = {}
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[1].split(":")[1], 16) == port and fields[3] == state:
            kind, when = fields[5].split(":")
            found[int(fields[2].split(":")[1], 16)] = (int(kind), int(when, 16))
    return found


def is_connected(port, remote):
    return remote in connections_of(port)


def polls_that_are_dropped(server, count, seconds):
    """Opened and dropped in a loop, half of them by a reset."""
    body = b'{"namespace":"default","taskQueue":{"name":"dropped"},"identity":"d"}'
    poll = request("POST", RPC + "PollWorkflowTaskQueue", body=body, close=False)
    end = time.monotonic() + seconds
    opened = 0
    while time.monotonic() < end:
        polls = []
        for _ in range(count):
            connection = socket.create_connection((ADDRESS, server.port), 30)
            connection.sendall(poll)
            polls.append(connection)
        opened += count
        for i, connection in enumerate(polls):
            if i % 2 == 0:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
    client = server.client()
    eventually(lambda: not client.get("/task-queues/dropped").get("pollers"), "no poller is left", 20)
    print(f"    case 30: {opened} polls opened and dropped")


def a_poller_that_vanishes(port, seconds=90):
    """Its machine has gone without a word: the server's keepalive finds out."""
    body = b'{"namespace":"default","taskQueue":{"name":"vanished"},"identity":"v"}'
    connection = socket.create_connection((ADDRESS, port), 10)
    connection.sendall(request("POST", RPC + "PollWorkflowTaskQueue", body=body, close=False))
    own = connection.getsockname()[1]
    eventually(lambda: own in connections_of(port), "it is connected")
    keepalive, ticks = eventually(
        lambda: next((t for p, t in connections_of(port).items() if p == own and t[0] == 2), None),
        "a keepalive timer is set")
    check(ticks <= 30 * os.sysconf("SC_CLK_TCK"), f"kept alive after {ticks} ticks only")
    try:
        connection.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)  # closes without a segment
    except PermissionError:
        connection.close()
        print("    case 31: only root may vanish; the keepalive timer is set, to 30 s")
        return
    connection.close()
    began = time.monotonic()
    eventually(lambda: own not in connections_of(port), "the half-open poller is freed", seconds)
    print(f"    case 31: a poller that vanished was freed after {time.monotonic() - began:.0f} s")


def a_storm_of_resets(server, count):
    for _ in range(count):
        connection = socket.create_connection((ADDRESS, server.port), 30)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
    print(f"    case 32: {count} connections reset at once")


def no_descriptor_left(table):
    """More peers than the server has descriptors: it waits, does not spin, and recovers."""
    with little_server(descriptors=200) as server:
        with table.line(29, "no descriptor left", lambda: honest_request(server.port, 30)):
            crowd = [socket.create_connection((ADDRESS, server.port), 30) for _ in range(400)]
            eventually(lambda: descriptors_of(server) >= 199, "all descriptors are taken")
            before = cpu_seconds(server)
            time.sleep(1)  # to see whether it spins
            used = cpu_seconds(server) - before
            for connection in crowd:
                connection.close()
            check(used < 0.5, f"{used} s of a second spent on waiting for a descriptor")
            print(f"    case 29: 400 peers, 200 descriptors: {used:.2f} s of CPU in a second")
        check(server.errors == [], server.errors)


def past_the_cap(table):
    """16,384 connections are served, the next ones are told so."""
    with Server(log_level="error") as server:
        server.client().set_pool("honest", capacity=3)
        with table.line(29, "past the cap", lambda: honest_request(server.port, 60)):
            crowd = [socket.create_connection((ADDRESS, server.port), 30) for _ in range(4000)]
            later = [socket.create_connection((ADDRESS, server.port), 30) for _ in range(12_500)]
            said = say(server.port, seconds=5)
            for connection in crowd + later:
                connection.close()
            check(said.status in (503, None), f"the last one was answered {said}")


# --- What honest people notice ---


class Honest:
    """Asks all the time, and knows how long it took."""

    def __init__(self, port):
        self.port = port
        self.took = []
        self.failure = None
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        try:
            while not self.stopping.wait(0.02):
                self.took.append(honest_request(self.port, 30))
        except Exception as error:
            self.failure = error

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join(60)

    def p99(self):
        return sorted(self.took)[int(len(self.took) * 0.99)]


def baseline(port):
    return sorted(honest_request(port) for _ in range(100))[98]


# --- All at once ---


def make_large_history(server):
    client = server.client()
    client.start("large", queue="large")
    for i in range(10):
        client.signal("large", f"s{i}", input=["x" * 900_000])


def heads_that_trickle_alone(port):
    """Case 26 with nothing else at work: how much longer the slowest honest requests take.

    The crowd is a process of its own, so that what the crowd does is not counted as waiting.
    """
    def honest_p99(amid):
        with Honest(port) as honest:
            amid()
        check(honest.failure is None and len(honest.took) >= 200, f"{honest.failure}")
        return honest.p99()

    def crowd():
        for _ in range(2):
            subprocess.run([sys.executable, __file__, str(port), "2000"], check=True)

    def nobody():
        time.sleep(2 * HEAD_SECONDS)

    ratios = []
    while len(ratios) < 3 and (not ratios or ratios[-1] > 2):
        quiet = honest_p99(nobody)
        noticed = honest_p99(crowd)
        ratios.append(noticed / quiet)
        print(f"    case 26: 2,000 heads that trickle, and nothing else: an honest p99 of "
              f"{noticed * 1000:.2f} ms, {quiet * 1000:.2f} ms without: {ratios[-1]:.2f} times")
    check(ratios[-1] <= 2, f"honest requests take {ratios} times as long")


def run_all(table, port, lines):
    """Each on a thread of its own, from the same moment."""

    def one(number, what, body):
        with table.line(number, what, lambda: honest_request(port, 30)):
            body(port)

    threads = [threading.Thread(target=one, args=line, daemon=True) for line in lines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(200)
        check(not thread.is_alive(), "one of the crowds goes on for ever")


def heads_that_trickle(late, count, interval):
    return crowd_line(26, "heads that trickle", (408,), HEAD_SECONDS, late, count, SLOW_GET, b"a", interval)


def lines_of(server, full):
    slow_put = (b"PUT " + NAMESPACE.encode() + b"/pools/slow HTTP/1.1\r\n" + HOST + JSON_TYPE
                + b"Content-Length: 1000\r\n\r\n")
    history = request("GET", NAMESPACE + "/workflows/large/history", close=False)
    interval = HEAD_SECONDS if full else 1
    late = LATE[full]
    return [
        heads_that_trickle(late, 2000 if full else 400, interval),
        # Slower than 1 KiB/s is given up after 5 s; nobody may take longer than 15.
        crowd_line(27, "bodies of 10 B/s", (408,), BODY_GRACE_SECONDS, late, 50, slow_put, b"a", 0.1),
        crowd_line(27, "bodies that stop", (408,), BODY_GRACE_SECONDS, late, 50, slow_put + b"{", b"", 99),
        slow_reader(28, "who asks for 9 MiB of history and reads none", late, history),
        slow_reader(25, "who sends 50 requests and reads no answer", late, history * 50),
        crowd_line(29, "peers who say nothing", (), HEAD_SECONDS, late, 5000 if full else 1000, b"", b"",
                   99),
        (30, "polls opened and dropped", lambda port: polls_that_are_dropped(
            server, 1000 if full else 100, 60 if full else 4)),
        (32, "a storm of resets", lambda port: a_storm_of_resets(server, 20_000 if full else 1500)),
    ]


def slow_and_many(table, full):
    with little_server() as server:
        make_large_history(server)
        if full:
            with table.line(26, "others hardly notice it by itself"):
                heads_that_trickle_alone(server.port)
        quiet = baseline(server.port)
        before = descriptors_of(server)
        with Honest(server.port) as honest:
            run_all(table, server.port, lines_of(server, full))
        with table.line(26, "others hardly notice"):
            check(honest.failure is None and honest.took, f"an honest request: {honest.failure}")
            noticed = f"p99 {honest.p99() * 1000:.1f} ms amid it all, {quiet * 1000:.1f} ms before"
            # Twice as long is what the slow heads may cost, and that is measured by itself above;
            # here all crowds, the server, and whatever else the machine does share two cores.
            check(honest.p99() <= max(2 * quiet, 0.1 if full else 3.0), noticed)
            print(f"    case 26: {len(honest.took)} honest requests, {noticed}")
        with table.line(30, "no descriptor leaks", lambda: honest_request(server.port)):
            eventually(lambda: descriptors_of(server) <= before + 3, "descriptors are given back", 20)
        with table.line(32, "the server is at rest", lambda: honest_request(server.port)):
            began = cpu_seconds(server)
            time.sleep(1)  # to see whether it spins
            check(cpu_seconds(server) - began < 0.5, "it spins")
        check(server.errors == [], server.errors)


def run_many(table, port, full):
    """Begins, on threads of their own; returns what waits for their end."""
    allow_all_descriptors()
    failures = []

    def vanish():
        with table.line(31, "a half-open poller", lambda: honest_request(port)):
            a_poller_that_vanishes(port)

    def crowds():
        try:
            slow_and_many(table, full)
            no_descriptor_left(table)
            if full:
                past_the_cap(table)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=one, daemon=True) for one in (vanish, crowds)]
    for thread in threads:
        thread.start()

    def finish():
        for thread in threads:
            thread.join(300)
            check(not thread.is_alive(), "the crowds go on for ever")
        if failures:
            raise failures[0]

    return finish


def main():
    """abuse_many.py PORT COUNT: a crowd of trickling heads; alone in its process."""
    port, count = map(int, sys.argv[1:])
    allow_all_descriptors()
    heads_that_trickle(LATE[True], count, HEAD_SECONDS)[2](port)


if __name__ == "__main__":
    main()
