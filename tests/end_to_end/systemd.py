#!/usr/bin/env python3
"""What the server and the worker tell systemd, heard by a socket that plays its part."""

import http.client
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

import support
from support import check

UNITS = support.REPOSITORY / "scripts" / "packaging"


class Manager:
    """$NOTIFY_SOCKET, and all that came to it, each with the time it came at."""

    def __init__(self, abstract=False):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        if abstract:
            name = f"permit-test-{os.getpid()}-{time.monotonic_ns()}"
            self.socket.bind("\0" + name)
            self.name = "@" + name
        else:
            self.name = str(support.directory() / f"notify-{time.monotonic_ns()}")
            self.socket.bind(self.name)
        self.heard = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def hear(self, seconds):
        """One message; None if there was none for so long."""
        self.socket.settimeout(max(seconds, 0.001))
        try:
            message = self.socket.recv(4096).decode()
        except TimeoutError:
            return None
        self.heard.append((time.monotonic(), message))
        return message

    def await_message(self, pattern, seconds=10):
        """The next message with a line that matches; those before it are kept in `heard`."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            message = self.hear(end - time.monotonic())
            if message and re.search(f"^(?:{pattern})$", message, re.MULTILINE):
                return message
        raise AssertionError(f"no {pattern} within {seconds} s, only {self.heard}")

    def drain(self):
        while self.hear(0.001):
            pass


class Service:
    """A command as the service manager starts it."""

    def __init__(self, manager, *arguments, watchdog=None, watched=None):
        environment = {**os.environ, "NOTIFY_SOCKET": manager.name}
        if watchdog:
            environment["WATCHDOG_USEC"] = str(int(watchdog * 1e6))
        if watched is not None:
            environment["WATCHDOG_PID"] = str(watched)
        self.process = subprocess.Popen(
            [support.BINARY, *arguments], env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def port(self):
        for line in self.process.stdout:
            found = re.match(r"API\s+http://127\.0\.0\.1:(\d+)", line)
            if found:
                return int(found[1])
        raise AssertionError("the server did not say where it listens")

    def stop(self, seconds=15):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=seconds)


def server_arguments(*more, port=0):
    return ("server", "start-dev", "--port", str(port), "--no-demo-pool", *more)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ready_once_requests_are_answered():
    for abstract in (False, True):
        port = free_port()
        with Manager(abstract) as manager:
            with Service(manager, *server_arguments(port=port)) as service:
                manager.await_message("READY=1")
                # One try: by now the port is bound and the store is there.
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
                connection.request("GET", "/readyz")
                status = connection.getresponse().status
                connection.close()
                check(status == 200, f"/readyz: {status}")
                check(manager.heard[0][1] == "READY=1", manager.heard)
                check(service.stop() == 0, "exit code")


def never_ready_if_it_cannot_serve():
    database = support.directory() / "locked.db"
    with support.Server(database) as server:
        for arguments in (
            server_arguments("--db-filename", str(database)),  # in use
            server_arguments(port=server.port),  # taken
        ):
            with Manager() as manager:
                with Service(manager, *arguments) as service:
                    check(service.process.wait(timeout=20) == 1, "the server should have failed")
                    manager.drain()
                    check(not manager.heard, manager.heard)


def status_follows_the_holds():
    with Manager() as manager, Service(manager, *server_arguments()) as service:
        client = support.Client(service.port())
        manager.await_message("STATUS=0/0 held, 0 waiting")
        client.set_pool("gpu", capacity=4)
        client.set_pool("rig", capacity=1)
        manager.await_message("STATUS=0/5 held, 0 waiting")
        grant = client.acquire("rig", "first")
        manager.await_message("STATUS=1/5 held, 0 waiting")
        second = threading.Thread(
            target=lambda: support.Client(client.port).acquire("rig", "second"), daemon=True)
        second.start()
        manager.await_message("STATUS=1/5 held, 1 waiting")

        # Once a second is enough, however much happens.
        began = time.monotonic()
        while time.monotonic() < began + 2.5:
            held = client.acquire("gpu", f"brief-{time.monotonic_ns()}")
            client.release(held["slots"][0]["id"], held["token"])
        client.release(grant["slots"][0]["id"], grant["token"])
        second.join(10)
        manager.await_message("STATUS=1/5 held, 0 waiting")
        told = [message for at, message in manager.heard if at > began and "STATUS" in message]
        check(len(told) <= time.monotonic() - began + 1, told)


def status_is_right_in_the_end():
    """However little the service manager could take meanwhile."""
    with Manager() as manager, Service(manager, *server_arguments(), watchdog=0.05) as service:
        client = support.Client(service.port())
        manager.await_message("STATUS=0/0 held, 0 waiting")
        time.sleep(1.5)  # as a service manager that is busy: what it has not read fills up
        client.set_pool("gpu", capacity=7)
        time.sleep(1.5)
        manager.await_message("STATUS=0/7 held, 0 waiting")
        for _ in range(20):
            manager.await_message("WATCHDOG=1")


def silent_while_nothing_changes():
    with Manager() as manager, Service(manager, *server_arguments()) as service:
        service.port()
        manager.await_message("STATUS=0/0 held, 0 waiting")
        check(manager.hear(2.5) is None, manager.heard)


def watchdog_at_half_its_time():
    with Manager() as manager, Service(manager, *server_arguments(), watchdog=1.0) as service:
        service.port()
        manager.await_message("READY=1")
        for _ in range(6):
            manager.await_message("WATCHDOG=1", seconds=3)
        beats = [at for at, message in manager.heard if message == "WATCHDOG=1"]
        gaps = sorted(after - before for before, after in zip(beats, beats[1:]))
        middle = gaps[len(gaps) // 2]
        check(0.4 < middle < 0.9, f"every {middle:.2f} s, of {gaps}")

        # A loop that stands still says nothing; when it goes on, so do the beats.
        service.process.send_signal(signal.SIGSTOP)
        support.eventually(
            lambda: pathlib.Path(f"/proc/{service.process.pid}/stat").read_text().rsplit(")")[1]
            .split()[0] == "T", "the server stands still")
        manager.drain()
        check(manager.hear(1.5) is None, f"a beat of a stopped loop: {manager.heard[-1]}")
        service.process.send_signal(signal.SIGCONT)
        manager.await_message("WATCHDOG=1", seconds=5)


def no_watchdog_unless_it_is_for_this_process():
    for watched in (1, None):
        with Manager() as manager:
            watchdog = 0.5 if watched else None
            arguments = server_arguments()
            with Service(manager, *arguments, watchdog=watchdog, watched=watched) as service:
                service.port()
                manager.await_message("READY=1")
                manager.hear(1.2)
                manager.hear(1.2)
                check(not any("WATCHDOG" in message for _, message in manager.heard), manager.heard)


def stopping_on_term():
    with Manager() as manager, Service(manager, *server_arguments(), watchdog=2) as service:
        service.port()
        manager.await_message("READY=1")
        service.process.send_signal(signal.SIGTERM)
        message = manager.await_message("STOPPING=1")
        longer = re.search(r"^EXTEND_TIMEOUT_USEC=(\d+)$", message, re.MULTILINE)
        check(longer and int(longer[1]) >= 5_000_000, message)
        check(service.process.wait(timeout=15) == 0, "exit code")


def no_manager_no_matter():
    for name in ("", "relative", "/nowhere/at/all", "/" + 200 * "x", "@"):
        environment = {**os.environ, "NOTIFY_SOCKET": name, "WATCHDOG_USEC": "no number"}
        server = subprocess.Popen(
            [support.BINARY, *server_arguments()], env=environment, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )
        try:
            check(any(line.startswith("API ") for line in server.stdout), f"{name}: no start")
            server.terminate()
            check(server.wait(timeout=15) == 0, f"{name}: exit code")
        finally:
            if server.poll() is None:
                server.kill()
            server.communicate()


def the_worker_too():
    with support.Server() as server, Manager() as manager:
        address = f"http://127.0.0.1:{server.port}"
        with Service(manager, "worker", "start", "--address", address) as service:
            manager.await_message("READY=1")
            manager.await_message("STATUS=permits on queue permits of .*")
            client = server.client()
            support.eventually(
                lambda: client.get("/task-queues/permits").get("pollers"), "the worker polls")
            service.process.send_signal(signal.SIGTERM)
            check("EXTEND_TIMEOUT_USEC=" in manager.await_message("STOPPING=1"), manager.heard)
            check(service.process.wait(timeout=15) == 0, "exit code")


def units_are_right():
    """systemd's own check of the units, as installed here."""
    analyze = shutil.which("systemd-analyze")
    if not analyze:
        print("SKIPPED the check of the units: systemd-analyze is not installed")
        return
    directory = support.directory() / "units"
    directory.mkdir()
    for unit in ("permit.service", "permit-worker@.service"):
        text = (UNITS / (unit + ".in")).read_text()
        text = text.replace("@PERMIT_BINARY@", os.path.abspath(support.BINARY))
        text = text.replace("@PERMIT_ETC@", "/etc/permit")
        check("@PERMIT_" not in text, text)
        (directory / unit).write_text(text)
    for unit in ("permit.service", "permit-worker@permits.service"):
        # From the directory of the template, an instance is found beside it.
        done = subprocess.run(
            [analyze, "verify", "--man=no", "--recursive-errors=no", str(directory / unit)],
            capture_output=True, text=True, timeout=60,
            env={**os.environ, "SYSTEMD_UNIT_PATH": f"{directory}:"},
        )
        complaints = [line for line in done.stderr.splitlines() if "permit" in line]
        check(done.returncode == 0 and not complaints, f"{unit}: {done.returncode} {done.stderr}")


if __name__ == "__main__":
    support.run(
        ready_once_requests_are_answered,
        never_ready_if_it_cannot_serve,
        status_follows_the_holds,
        status_is_right_in_the_end,
        silent_while_nothing_changes,
        watchdog_at_half_its_time,
        no_watchdog_unless_it_is_for_this_process,
        stopping_on_term,
        no_manager_no_matter,
        the_worker_too,
        units_are_right,
    )
