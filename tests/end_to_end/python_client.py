#!/usr/bin/env python3
"""Holds of the Python client, worker/python/permit.py, against the real server."""

import ast
import asyncio
import datetime
import http.server
import inspect
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time

from support import REPOSITORY, Server, check, directory, eventually, parallel, run

FILE = REPOSITORY / "worker" / "python" / "permit.py"
sys.path.insert(0, str(FILE.parent))
sys.dont_write_bytecode = True
import permit  # noqa: E402

logging.getLogger("permit").setLevel(logging.ERROR)  # the losses here are on purpose


def raises(kind, action, code=None, says=""):
    """The error, which must be of this kind."""
    try:
        action()
    except kind as error:
        check(code is None or error.code == code, repr(error))
        check(says in str(error), str(error))
        return error
    raise AssertionError(f"no {kind.__name__}")


def outcome(client, p):
    return client.permit(p.id, p.run_id).get("outcome")


def waiting(client, pool):
    return client.pool(pool).get("waiting", 0)


def force_release(client, p):
    client.post(f"/permits/{p.id}/force-release", {"runId": p.run_id, "reason": "test"})


def python(code, port, **options):
    """Another process with the client, whose lines are read with readline."""
    environment = {**os.environ, "PERMIT_ADDRESS": f"127.0.0.1:{port}", "PYTHONPATH": str(FILE.parent),
                   "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.Popen([sys.executable, "-u", "-c", inspect.cleandoc(code)], env=environment,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


class Elsewhere:
    """A hold on another thread, until it is told to leave."""

    def __init__(self, pool, **options):
        self.leave = threading.Event()
        self.permit = None
        self.error = None
        self.granted = threading.Event()
        self.thread = threading.Thread(target=self._hold, args=(pool, options), daemon=True)
        self.thread.start()

    def _hold(self, pool, options):
        try:
            with permit.hold(pool, **options) as self.permit:
                self.granted.set()
                self.leave.wait(60)
        except permit.Error as error:
            self.error = error
            self.granted.set()

    def __enter__(self):
        check(self.granted.wait(10), "not granted")
        check(self.error is None, self.error)
        return self.permit

    def __exit__(self, *_):
        self.end()

    def end(self):
        self.leave.set()
        self.thread.join(20)
        check(not self.thread.is_alive(), "the hold does not end")


# --- One process ---


def it_is_one_file_for_python_3_9():
    source = FILE.read_text()
    tree = ast.parse(source, feature_version=(3, 9))
    subprocess.run([sys.executable, "-m", "py_compile", FILE], check=True,
                   env={**os.environ, "PYTHONPYCACHEPREFIX": str(directory())})
    names = {node.names[0].name if isinstance(node, ast.Import) else node.module
             for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))}
    modules = {name.split(".")[0] for name in names}
    foreign = modules - getattr(sys, "stdlib_module_names", modules)  # unknown to Python 3.9
    check(not foreign, f"not in the standard library: {foreign}")


def a_hold_is_released_by_its_block(client):
    with permit.hold("one", reason="a test", labels={"job": "7"}, holder="me") as p:
        check(p.slot == "0" and p.slots == ("0",) and p.id == "permit:one:0", p.slots)
        held = client.permit(p.id)
        check(held["runId"] == p.run_id and int(held["fence"]) == p.fence, held)
        check(held["holder"] == "me" and held["reason"] == "a test", held)
        left = (p.deadline - datetime.datetime.now(datetime.timezone.utc)).total_seconds()
        check(110 < left <= 120.1, f"the lease is 2 minutes if nothing is said: {left}")
        check(110 < p.remaining() <= 120, p.remaining())
        check(not p.lost and not p.stop_requested, "it is new")
        p.check()
    check(outcome(client, p) == "released", "its outcome")
    check(not client.pool("one").get("held"), "the slot is free")


def an_exception_releases_and_goes_on(client):
    def fail():
        nonlocal p
        with permit.hold("one") as p:
            raise ValueError("of the user")

    p = None
    raises(ValueError, fail, says="of the user")
    check(outcome(client, p) == "released", "its outcome")


def fences_only_grow(_):
    fences = []
    for _ in range(3):
        with permit.hold("one") as p:
            fences.append(p.fence)
    check(fences == sorted(set(fences)), fences)


def who_waits_is_served_in_order(client):
    with permit.hold("one"):
        order = []
        line = []
        for i in range(3):
            one = Elsewhere("one")
            eventually(lambda: waiting(client, "one") == i + 1, "its place in line")
            line.append(one)
    for one in line:
        with one as p:
            order.append(p.fence)
    check(order == sorted(order), order)


def a_grant_after_a_wait_is_confirmed_at_once(client):
    """Its answer may have been on its way for long, and the lease began when it was granted."""
    with permit.hold("one"):
        later = Elsewhere("one")
        eventually(lambda: waiting(client, "one") == 1, "its place in line")
        time.sleep(1.5)
    with later as p:
        granted = permit._time_of(client.permit(p.id, p.run_id)["since"])
        eventually(lambda: p.deadline > granted + datetime.timedelta(minutes=2), "the renewal")  # not after 40 s


def no_wait_is_refused_at_once(client):
    with permit.hold("one"):
        for zero in (0, datetime.timedelta(0)):
            began = time.monotonic()
            error = raises(permit.AcquireTimeout, permit.hold("one", wait=zero).__enter__, "POOL_FULL",
                           "permit who one")
            check(time.monotonic() - began < 5 and isinstance(error, permit.Error), error)
        check(not waiting(client, "one"), "it left the line")


def a_wait_ends_and_leaves_the_line(client):
    with permit.hold("one"):
        began = time.monotonic()
        raises(permit.AcquireTimeout, permit.hold("one", wait="600ms").__enter__, "WAIT_TIMED_OUT",
               "within 600ms")
        check(0.6 <= time.monotonic() - began < 8, time.monotonic() - began)
        check(not waiting(client, "one"), "it left the line")


def two_slots_or_none(client):
    with permit.hold("two", slots=2) as both:
        check(both.slots == ("0", "1"), both.slots)
        check(both.gpu_env()["CUDA_VISIBLE_DEVICES"] == "0,1", both.gpu_env())
    with permit.hold("two"):
        raises(permit.AcquireTimeout, permit.hold("two", slots=2, wait=0).__enter__)
        check(client.pool("two")["held"] == 1, "not one of the two")
    check(not client.pool("two").get("held"), "both are free")
    raises(permit.Error, permit.hold("two", slots=3).__enter__, "CANNOT_FIT")


def a_decorated_function_gets_its_permit(client):
    @permit.needs("two", slots=2, reason="decorated")
    def work(number, *, permit):
        """What it does."""
        return number, permit.slots, client.pool("two")["held"]

    check(work.__name__ == "work" and work.__doc__, "it keeps its name")
    results = work(7), work(number=8)
    check(results == ((7, ("0", "1"), 2), (8, ("0", "1"), 2)), results)
    check(not client.pool("two").get("held"), "both are free")


def durations_have_units(_):
    for wrong in (45, 45.0, "45", "45 s", "1.5 hours", "", "m", "-1s", True, None, "0s", "1h30"):
        raises(permit.InvalidArgument, lambda: permit.hold("one", lease=wrong))
    raises(ValueError, lambda: permit.hold("one", wait=45), says="say 45s or 45m")
    right = {"45s": 45, "1h30m": 5400, "250ms": 0.25, "1.5h": 5400, "2d": 172800,
             datetime.timedelta(minutes=2): 120}
    for text, seconds in right.items():
        check(abs(permit._seconds(text, "x") - seconds) < 1e-9, text)
    raises(permit.InvalidArgument, lambda: permit.hold("one", on_lost="explode"))
    raises(permit.InvalidArgument, lambda: permit.hold("one", slots=0))
    raises(TypeError, lambda: permit.hold("one", leese="2m"))
    raises(permit.InvalidArgument, lambda: permit.needs("one", lease=5))


def ctrl_c_while_it_is_given_back_is_no_leak(client):
    """At every line of it but the very first."""
    def interrupt(after):
        held = permit.hold("one", lease="60s")
        held.__enter__()
        code = (permit.hold.__exit__.__code__, permit.Permit.release.__code__,
                permit.Permit._give_back.__code__, permit.Permit._release_one.__code__)
        seen = 0

        def trace(frame, event, _):
            nonlocal seen
            if frame.f_code not in code:
                return None
            if event == "line":
                seen += 1
                if seen == after:
                    sys.settrace(None)
                    raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            held.__exit__(None, None, None)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        check(not client.pool("one").get("held"), f"interrupted at line {after}: still held")
        return seen >= after

    places = 2
    while interrupt(places):
        places += 1
    check(places > 10, f"only {places} places")


def errors_say_the_way_out(_):
    raises(permit.InvalidArgument, lambda: permit.hold("one", priority=0))
    raises(permit.InvalidArgument, permit.hold("one", api_key="two\nlines").__enter__)
    error = raises(permit.PoolNotFound, permit.hold("tow").__enter__, "POOL_NOT_FOUND")
    check("did you mean two" in str(error), error)
    nowhere = permit.hold("one", address="127.0.0.1:1")
    error = raises(permit.Unreachable, nowhere.__enter__, "SERVER_UNREACHABLE", "Is it running?")
    check("http://127.0.0.1:1" in str(error), error)
    for wrong in ("ftp://x", "http://x:y", "http://", "x:1/path"):
        raises(permit.InvalidArgument, permit.hold("one", address=wrong).__enter__)


def devices_become_the_environment(client):
    with permit.hold("one") as p:
        check(p.gpu_env() == {"CUDA_VISIBLE_DEVICES": "0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
              p.gpu_env())
        check(p.gpu_env("rocm") == {"ROCR_VISIBLE_DEVICES": "0"}, p.gpu_env("rocm"))
        p._grants[0]["device"] = "GPU-8932f937"  # as a pool with a device map answers
        check(p.gpu_env()["CUDA_VISIBLE_DEVICES"] == "GPU-8932f937", p.gpu_env())
    client.set_pool("named", slots=["left"])
    with permit.hold("named") as p:
        raises(permit.Error, p.gpu_env, "DEVICE_UNKNOWN", "permit pool set named --device left=")


def the_key_and_the_namespace_are_sent(_):
    asked = []

    class Recorder(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append((self.path, self.headers.get("Authorization")))
            body = b'{"code": 16, "message": "the key is not known"}'
            self.send_response(401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Recorder) as recorder:
        threading.Thread(target=recorder.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{recorder.server_port}"
        file = directory() / "key"
        file.write_text("from a file\n")
        file.chmod(0o600)
        os.environ["PERMIT_API_KEY_FILE"] = str(file)
        os.environ["PERMIT_NAMESPACE"] = "lab"
        try:
            raises(permit.NotAllowed, permit.hold("one", address=address).__enter__, says="PERMIT_API_KEY")
            os.environ["PERMIT_API_KEY"] = "from the environment"
            raises(permit.NotAllowed, permit.hold("one", address=address).__enter__)
        finally:
            for name in ("PERMIT_API_KEY", "PERMIT_API_KEY_FILE", "PERMIT_NAMESPACE"):
                os.environ.pop(name, None)
        recorder.shutdown()
    path = "/api/v1/namespaces/lab/pools/one/acquire"
    check(asked == [(path, "Bearer from a file"), (path, "Bearer from the environment")], asked)


# --- Renewal and loss ---


def renewals_outlive_the_lease(client):
    with permit.hold("one", lease="6s") as p:  # so long that a renewal may be a second late
        first = p.deadline
        time.sleep(8)
        p.check()
        check(p.deadline > first + datetime.timedelta(seconds=3), "the deadline moved")
        check(0 < p.remaining() <= 6, p.remaining())
        check(not p.stop_requested, "all is well")
    check(outcome(client, p) == "released", "its outcome")


def a_lost_hold_is_told(client):
    seen = []

    def lose():
        with permit.hold("one", lease="9s") as p:
            seen.append(p)
            force_release(client, p)
            eventually(lambda: p.lost, "the loss, by the next renewal", 7)
            check(p.stop_requested and p.remaining() == 0, "it is over")
            raises(permit.LeaseLost, p.check, "LEASE_LOST")

    raises(permit.LeaseLost, lose, "LEASE_LOST", "taken away before its time")
    check(outcome(client, seen[0]) == "force_released", "its outcome")
    # Lost just before the end, and so found by the release.
    with_block = permit.hold("one")
    force_release(client, with_block.__enter__())
    raises(permit.LeaseLost, lambda: with_block.__exit__(None, None, None), "LEASE_LOST")
    # Only said.
    with permit.hold("one", lease="3s", on_lost="warn") as p:
        force_release(client, p)
        eventually(lambda: p.lost, "the loss")
    # One of two is all.
    with permit.hold("two", slots=2, lease="3s", on_lost="warn") as p:
        fence = client.permit("permit:two:1")["fence"]
        client.post("/permits/permit:two:1/force-release", {"fence": fence, "reason": "test"})
        eventually(lambda: p.lost, "the loss")
    check(not client.pool("two").get("held"), "the other one is free, too")


def the_users_exception_is_not_hidden_by_a_loss(client):
    def lose():
        with permit.hold("one", lease="3s") as p:
            force_release(client, p)
            eventually(lambda: p.lost, "the loss")
            raise ValueError("of the user")

    raises(ValueError, lose)


def max_hold_ends_it_with_a_warning(client):
    def hold_long():
        with permit.hold("one", lease="30s", max_hold="8s", warn_before="4s") as p:
            check(not p.stop_requested, "it has just begun")
            eventually(lambda: p.stop_requested, "the warning")
            check(not p.lost and 0 < p.remaining() < 4, p.remaining())
            eventually(lambda: p.lost, "the end")

    raises(permit.LeaseLost, hold_long, says="max_hold")


def terminate_ends_the_process_group(server, client):
    child = python("""
        import permit, time, subprocess
        with permit.hold("one", lease="3s", on_lost="terminate") as p:
            inner = subprocess.Popen(["sleep", "60"])
            print(p.run_id, inner.pid)
            time.sleep(60)
        """, server.port, start_new_session=True)
    run_id, inner = child.stdout.readline().split()
    client.post("/permits/permit:one:0/force-release", {"runId": run_id, "reason": "test"})
    check(child.wait(20) == -signal.SIGTERM, child.returncode)
    eventually(lambda: not os.path.exists(f"/proc/{inner}") or
               open(f"/proc/{inner}/stat").read().split()[2] == "Z", "the end of its group")
    child.communicate()


def a_signal_asks_to_stop(server, client):
    child = python("""
        import permit, time
        permit.stop_on_signals()
        with permit.hold("one") as p:
            print(p.run_id)
            while not p.stop_requested:
                time.sleep(0.01)
            print("saved")
        """, server.port)
    run_id = child.stdout.readline().strip()
    child.terminate()
    check(child.communicate(timeout=20)[0] == "saved\n" and child.returncode == 0, child.returncode)
    check(client.permit("permit:one:0", run_id)["outcome"] == "released", "its outcome")
    child = python("""
        import permit, time
        permit.stop_on_signals()
        print("ready")
        time.sleep(60)
        """, server.port)
    child.stdout.readline()
    child.terminate()
    time.sleep(0.3)
    check(child.poll() is None, "the first one only asks")
    child.terminate()
    check(child.wait(20) == -signal.SIGTERM, "the second one ends it")
    child.communicate()


def a_killed_holder_frees_its_slot_after_the_lease(server, client):
    child = python("""
        import permit, time
        with permit.hold("one", lease="3s") as p:
            print(p.run_id)
            time.sleep(60)
        """, server.port)
    run_id = child.stdout.readline().strip()
    time.sleep(3.5)
    check(client.pool("one")["held"] == 1, "it renews")
    child.kill()
    child.communicate()
    began = time.monotonic()
    with permit.hold("one", wait="10s"):
        check(time.monotonic() - began < 7, "the slot was not free after the lease")  # the backstop: 8 s
    check(client.permit("permit:one:0", run_id)["outcome"] == "lease_expired", "its outcome")


def ctrl_c_while_waiting_leaves_the_line(server, client):
    with permit.hold("one"):
        for moment in (0.1, 0.6):  # in the first, short question, and in the long one
            child = python("""
                import permit
                print("ready")
                with permit.hold("one"):
                    pass
                """, server.port)
            child.stdout.readline()
            eventually(lambda: waiting(client, "one") == 1, "its place in line")
            time.sleep(moment)
            child.send_signal(signal.SIGINT)
            began = time.monotonic()
            eventually(lambda: not waiting(client, "one"), "leaving the line")  # its place would stay 15 s
            check("KeyboardInterrupt" in child.communicate(timeout=10)[1], "its end")
            check(child.returncode == -signal.SIGINT, child.returncode)
            check(time.monotonic() - began < 10, "it took too long")


def a_fork_leaves_the_hold_to_its_parent(client):
    with permit.hold("one") as p:
        child = os.fork()
        if child == 0:
            p.release()
            os._exit(0)
        os.waitpid(child, 0)
        check(client.pool("one")["held"] == 1, "the child released it")
        p.check()


def a_permit_released_twice_is_released_once(client):
    p = permit.hold("one").__enter__()
    p.release()
    p.release()
    check(outcome(client, p) == "released" and not p.lost, "its outcome")


# --- The server goes away ---


def a_hold_survives_a_restart():
    database = directory() / "restart.db"
    servers = []
    server = Server(database, permit_worker=True)
    port = server.port
    try:
        server.client().set_pool("one", capacity=1)
        address = f"127.0.0.1:{port}"
        with permit.hold("one", lease="9s", address=address) as p:
            waiter = Elsewhere("one", address=address)
            eventually(lambda: waiting(server.client(), "one") == 1, "a place in line")
            for _ in range(2):
                server.kill()
                time.sleep(3.2)  # longer than to the next renewal
                server = Server(database, port=port, permit_worker=True)
                time.sleep(2)
                p.check()
            time.sleep(2)
            p.check()
            check(not waiter.granted.is_set(), "the waiter waits on")
        with waiter as later:
            check(later.fence > p.fence, (later.fence, p.fence))
        check(outcome(server.client(), p) == "released", "its outcome")
        # A release waits for the server, too.
        with Elsewhere("one", lease="20s", address=address) as p:
            server.kill()
            starting = threading.Timer(1, lambda: servers.append(
                Server(database, port=port, permit_worker=True)))
            starting.start()
        starting.join()
        server = servers.pop()
        check(outcome(server.client(), p) == "released", "its outcome")
        check(not server.client().pool("one").get("held"), "the slot is free")
    finally:
        server.kill()


def a_server_that_stays_away_costs_the_hold_at_its_deadline():
    with Server(directory() / "gone.db", permit_worker=True) as server:
        server.client().set_pool("one", capacity=1)
        # The warning comes a quarter of the lease before its end.
        hold = permit.hold("one", lease="10s", address=f"127.0.0.1:{server.port}")
        p = hold.__enter__()
        time.sleep(1)
        confirmed = p.deadline
        server.kill()
        began = time.monotonic()
        time.sleep(0.3)
        p.check()
        eventually(lambda: p.stop_requested, "the warning")
        check(not p.lost, "it is not over yet")
        eventually(lambda: p.lost, "the loss")
        late = (datetime.datetime.now(datetime.timezone.utc) - confirmed).total_seconds()
        check(-1 < late < 4, f"{late} s after its deadline, {time.monotonic() - began} s after the kill")
        raises(permit.LeaseLost, p.check, says="could not be renewed")
        raises(permit.LeaseLost, lambda: hold.__exit__(None, None, None))


def a_loss_that_no_thread_saw_is_told_at_the_end():
    """As when an extension module has kept the interpreter's lock, and the server is away besides."""
    keep, permit.Permit._keep = permit.Permit._keep, lambda self, pause: None
    try:
        with Server(directory() / "starved.db", permit_worker=True) as server:
            server.client().set_pool("one", capacity=1)
            hold = permit.hold("one", lease="500ms", address=f"127.0.0.1:{server.port}")
            p = hold.__enter__()
            server.kill()
            eventually(lambda: p.lost, "the loss")
            raises(permit.LeaseLost, lambda: hold.__exit__(None, None, None), says="could not be renewed")
    finally:
        permit.Permit._keep = keep


def terminate_comes_before_the_slot_can_be_given_away():
    with Server(directory() / "terminate.db", permit_worker=True) as server:
        server.client().set_pool("one", capacity=1)
        child = python("""
            import permit, signal, sys, time
            signal.signal(signal.SIGTERM, lambda *_: (print(held._confirmed - permit._now()), sys.exit(0)))
            with permit.hold("one", lease="12s", on_lost="terminate") as held:
                print("held")
                time.sleep(60)
            """, server.port, start_new_session=True)
        child.stdout.readline()
        server.kill()
        left = float(child.stdout.readline())
        check(0 < left <= 1, f"{left} s before the deadline")  # a twelfth of the lease
        child.kill()
        child.communicate()


class Lossy:
    """Between client and server: swallows the answer of every second request."""

    def __init__(self, port):
        self.seen = []
        lossy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
                connection.request("POST", self.path, body, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                content = answer.read()
                connection.close()
                lossy.seen.append(self.path)
                if len(lossy.seen) % 2 == 1:
                    self.close_connection = True
                    return
                self.send_response(answer.status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def lost_answers_change_nothing(server, client):
    lossy = Lossy(server.port)
    try:
        before = int(client.pool("one")["grants"])
        with permit.hold("one", lease="4500ms", address=f"127.0.0.1:{lossy.server.server_port}") as p:
            time.sleep(4.6)
            p.check()
        check(outcome(client, p) == "released", "its outcome")
        check(int(client.pool("one")["grants"]) == before + 1, "one hold")
        check(len(lossy.seen) >= 6, lossy.seen)
    finally:
        lossy.close()


# --- asyncio ---


def the_async_twin_holds_and_waits(client):
    async def work(number, running):
        async with permit.ahold("two") as p:
            running.append(number)
            check(len(running) <= 2, running)
            await asyncio.sleep(0.05)
            running.remove(number)
            return p

    @permit.needs("one")
    async def decorated(*, permit):
        return permit.slot

    async def main():
        running = []
        # More than an executor has threads.
        permits = await asyncio.gather(*(work(number, running) for number in range(40)))
        check(len({p.fence for p in permits}) == 40, "each had its own")
        check(all(outcome(client, p) == "released" for p in permits), "their outcomes")
        check(await decorated() == "0", "the decorated one")

    asyncio.run(asyncio.wait_for(main(), 60))


def a_canceled_task_leaves_the_line(client):
    async def wait_in_line():
        async with permit.ahold("one"):
            raise AssertionError("it must not get in")

    async def main():
        async with permit.ahold("one"):
            for moment in (0, 0.02, 0.4):
                task = asyncio.ensure_future(wait_in_line())
                await asyncio.sleep(moment)
                task.cancel()
                try:
                    await asyncio.wait_for(task, 5)
                    raise AssertionError("it was not canceled")
                except asyncio.CancelledError:
                    pass
                check(not waiting(client, "one"), "it left the line")
        check(not client.pool("one").get("held"), "the slot is free")
        try:
            async with permit.ahold("one"):
                await asyncio.wait_for(wait_in_line(), 0.3)
        except asyncio.TimeoutError:
            pass
        check(not client.pool("one").get("held") and not waiting(client, "one"), "all is free")

    asyncio.run(asyncio.wait_for(main(), 60))


def a_lost_async_hold_cancels_its_block(client):
    async def work():
        async with permit.ahold("one", lease="3s") as p:
            force_release(client, p)
            await asyncio.sleep(60)

    async def main():
        began = time.monotonic()
        try:
            await work()
            raise AssertionError("it went on")
        except permit.LeaseLost:
            check(time.monotonic() - began < 20, "it was not interrupted")
        await asyncio.sleep(0)  # no cancellation is left over
        # Canceled by somebody else: that is what it stays.
        task = asyncio.ensure_future(inside())
        await asyncio.sleep(0.3)
        task.cancel()
        try:
            await task
            raise AssertionError("it was not canceled")
        except asyncio.CancelledError:
            check(not client.pool("one").get("held"), "the slot is free")

    async def inside():
        async with permit.ahold("one"):
            await asyncio.sleep(60)

    asyncio.run(asyncio.wait_for(main(), 60))


def many_threads_never_overlap(server, client):
    inside = []

    def work(_, number):
        for _ in range(10):
            with permit.hold("one") as p:
                inside.append(number)
                check(len(inside) == 1, inside)
                inside.remove(number)
                check(p.fence > 0, p.fence)

    parallel(server, 6, work)
    check(not client.pool("one").get("held"), "the slot is free")


def main():
    it_is_one_file_for_python_3_9()
    with Server(permit_worker=True) as server:
        os.environ["PERMIT_ADDRESS"] = f"http://127.0.0.1:{server.port}"
        client = server.client()
        client.set_pool("one", capacity=1)
        client.set_pool("two", capacity=2)

        def case(function):
            def bound():
                given = {"server": server, "client": client, "_": client}
                function(*(given[name] for name in inspect.signature(function).parameters))
                eventually(lambda: not any(
                    pool.get("held") or pool.get("waiting")
                    for pool in map(client.pool, ("one", "two"))), "free pools")

            bound.__name__ = function.__name__
            return bound

        run(*map(case, (
            a_hold_is_released_by_its_block, an_exception_releases_and_goes_on, fences_only_grow,
            who_waits_is_served_in_order,
            a_grant_after_a_wait_is_confirmed_at_once, no_wait_is_refused_at_once, a_wait_ends_and_leaves_the_line,
            two_slots_or_none, a_decorated_function_gets_its_permit, durations_have_units,
            ctrl_c_while_it_is_given_back_is_no_leak,
            errors_say_the_way_out, devices_become_the_environment, the_key_and_the_namespace_are_sent,
            renewals_outlive_the_lease, a_lost_hold_is_told,
            the_users_exception_is_not_hidden_by_a_loss, max_hold_ends_it_with_a_warning,
            terminate_ends_the_process_group, a_signal_asks_to_stop,
            a_killed_holder_frees_its_slot_after_the_lease, ctrl_c_while_waiting_leaves_the_line,
            a_fork_leaves_the_hold_to_its_parent, a_permit_released_twice_is_released_once,
            lost_answers_change_nothing, the_async_twin_holds_and_waits, a_canceled_task_leaves_the_line,
            a_lost_async_hold_cancels_its_block, many_threads_never_overlap,
        )))
    run(a_hold_survives_a_restart, a_server_that_stays_away_costs_the_hold_at_its_deadline,
        a_loss_that_no_thread_saw_is_told_at_the_end, terminate_comes_before_the_slot_can_be_given_away)


main()
