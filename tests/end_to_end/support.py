"""The real server as a child process, and a small client of its API. Standard library only."""

import base64
import calendar
import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("PERMIT_BIN", str(REPOSITORY / "build-dev" / "permit"))
# PERMIT_WORKERS: where the worker programs are, if not beside the server's; for those built
# with a sanitizer.
WORKERS = pathlib.Path(os.environ.get("PERMIT_WORKERS", pathlib.Path(BINARY).parent))
NAMESPACE = "/api/v1/namespaces/default"
RPC = "/temporal.api.workflowservice.v1.WorkflowService/"


def directory():
    """The test's own empty directory; scripts/test removes it."""
    given = os.environ.get("PERMIT_TESTS_DIR")
    if given:
        return pathlib.Path(given)
    return pathlib.Path(tempfile.mkdtemp())


def back_up(database, copy):
    """A copy with all that was acknowledged; also of a dead server's file."""
    done = subprocess.run([BINARY, "server", "backup", "--database", database, "--to", copy],
                          capture_output=True, text=True, timeout=60)
    check(done.returncode == 0, f"backup: {done.stdout}{done.stderr}")


def check(condition, message):
    """Like assert, but says what it found and is never compiled out."""
    if not condition:
        raise AssertionError(message)


def skip(reason):
    print(reason)
    sys.exit(77)


class Unknown(Exception):
    """No answer came: the request was done once or not at all."""


class Refused(Exception):
    """The server said no."""

    def __init__(self, status, answer):
        super().__init__(f"{status} {answer}")
        self.status = status
        self.answer = answer if isinstance(answer, dict) else {}
        details = self.answer.get("details") or [{}]
        self.reason = details[0].get("reason", "")
        self.message = self.answer.get("message", "")


class Server:
    """One process of the server. Ends with the `with` block, whatever happens."""

    def __init__(self, database=None, *arguments, wrapper=(), port=0, permit_worker=False,
                 demo_pool=False, log_level="warn"):
        self.command = [*wrapper, BINARY, "server", "start-dev", "--port", str(port), *arguments]
        if not demo_pool:
            self.command.append("--no-demo-pool")
        if not permit_worker:
            self.command.append("--no-permit-worker")
        if database:
            self.command += ["--db-filename", str(database)]
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PERMIT_LOG_LEVEL": log_level},
        )
        self.port = None
        self.log = []  # all lines of stderr
        self.errors = []  # those of them that no test brings about by what it asks for
        for line in self.process.stdout:
            found = re.match(r"API\s+https?://127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found[1])
                break
        if self.port is None:
            raise RuntimeError(f"the server did not start: {self.process.communicate()[1]}")
        for stream, is_log in ((self.process.stdout, False), (self.process.stderr, True)):
            self.reader = threading.Thread(target=self._drain, args=(stream, is_log), daemon=True)
            self.reader.start()  # the last one is the log's

    def _drain(self, stream, is_log):
        for line in stream:
            if not is_log:
                continue
            self.log.append(line)
            if not re.search(r'"event":"(permit_|request_slow)|"level":"(debug|info)"', line):
                self.errors.append(line)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        if self.errors:
            print("the server wrote:", *self.errors[-20:], sep="\n  ")

    def client(self):
        return Client(self.port)

    def kill(self):
        """kill -9."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def stop(self, seconds=10):
        """SIGTERM; returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=seconds)
        self.reader.join(seconds)  # all that it wrote has been read
        return code


class Worker:
    """A worker's process. Ends with the `with` block, whatever happens."""

    def __init__(self, port, queue, *arguments, program="permit_test_worker"):
        self.process = subprocess.Popen(
            [WORKERS / program, f"127.0.0.1:{port}", queue, *map(str, arguments)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        self.lines = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        eventually(lambda: self.lines, "the worker's first line")

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join()
        check(not self.says("Sanitizer"), "\n".join(self.lines))

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, seconds=10):
        return self.process.wait(timeout=seconds)

    def says(self, text):
        return any(text in line for line in self.lines)


class Client:
    """One keep-alive connection, made anew when it breaks. Not for several threads."""

    def __init__(self, port, timeout=70, tls=None):
        self.port = port
        self.timeout = timeout
        self.tls = tls  # an SSLContext; None: plain HTTP
        self.connection = None

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def raw(self, method, target, body=None, headers=None):
        """Any request: returns (status, headers, body bytes). Raises Unknown if no answer came."""
        if self.connection is None and self.tls:
            self.connection = http.client.HTTPSConnection("127.0.0.1", self.port,
                                                          timeout=self.timeout, context=self.tls)
        elif self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, self.timeout)
        if headers is None:
            headers = {"Content-Type": "application/json"} if body is not None else {}
        try:
            self.connection.request(method, target, body, headers)
            response = self.connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Unknown(repr(error)) from None
        if response.will_close:
            self.close()
        return response.status, response.headers, answer

    def ask(self, method, target, body=None):
        """A JSON request. Returns the answer, or raises Refused."""
        text = None if body is None else json.dumps(body)
        status, _, answer = self.raw(method, target, text)
        try:
            answer = json.loads(answer)
        except ValueError:
            raise Refused(status, answer) from None
        if status >= 300:
            raise Refused(status, answer)
        return answer

    def get(self, path, **parameters):
        query = "?" + urllib.parse.urlencode(parameters) if parameters else ""
        return self.ask("GET", NAMESPACE + path + query)

    def post(self, path, body=None):
        return self.ask("POST", NAMESPACE + path, body or {})

    def put(self, path, body):
        return self.ask("PUT", NAMESPACE + path, body)

    def rpc(self, name, **message):
        return self.ask("POST", RPC + name, {"namespace": "default", **message})

    # --- Workflows ---

    def start(self, workflow, type="Test", queue="work", **more):
        request = {"workflowType": {"name": type}, "taskQueue": {"name": queue}, **more}
        return self.post(f"/workflows/{workflow}", request)

    def signal(self, workflow, name, run="", **more):
        execution = {"workflowExecution": {"runId": run}} if run else {}
        return self.post(f"/workflows/{workflow}/signal/{name}", {**execution, **more})

    def history(self, workflow, run=""):
        """All events, over all pages."""
        events = []
        parameters = {"execution.runId": run} if run else {}
        while True:
            page = self.get(f"/workflows/{workflow}/history", **parameters)
            events += page["history"]["events"]
            if not page.get("nextPageToken"):
                return events
            parameters["nextPageToken"] = page["nextPageToken"]

    def info(self, workflow, run=""):
        parameters = {"execution.runId": run} if run else {}
        return self.get(f"/workflows/{workflow}", **parameters)["workflowExecutionInfo"]

    def wait_closed(self, workflow, run=""):
        """Waits for the run's close event and returns it."""
        parameters = {"waitNewEvent": "true", "historyEventFilterType": 2}
        if run:
            parameters["execution.runId"] = run
        while True:
            events = self.get(f"/workflows/{workflow}/history", **parameters)["history"]["events"]
            if events:
                return events[0]

    def poll(self, queue="work", wait="5s", **more):
        """The next workflow task of the queue, or None."""
        task = self.rpc("PollWorkflowTaskQueue", taskQueue={"name": queue}, pollWait=wait, **more)
        return task if task.get("taskToken") else None

    def complete(self, task, *commands, **more):
        token = task if isinstance(task, str) else task["taskToken"]
        return self.rpc(
            "RespondWorkflowTaskCompleted", taskToken=token, commands=list(commands), **more
        )

    # --- Permits ---

    def acquire(self, pool, request, **more):
        return self.post(f"/pools/{pool}/acquire", {"requestId": request, **more})

    def renew(self, permit, token):
        return self.post(f"/permits/{permit}/renew", {"token": token})

    def release(self, permit, token):
        return self.post(f"/permits/{permit}/release", {"token": token})

    def permit(self, permit, run=""):
        return self.get(f"/permits/{permit}", **({"runId": run} if run else {}))

    def pool(self, pool):
        return self.get(f"/pools/{pool}")

    def set_pool(self, pool, **settings):
        return self.put(f"/pools/{pool}", settings)


# --- Commands ---


def payloads(value):
    def encode(data):
        return base64.b64encode(data).decode()

    data = encode(json.dumps(value).encode())
    return {"payloads": [{"metadata": {"encoding": encode(b"json/plain")}, "data": data}]}


def value_of(message):
    return json.loads(base64.b64decode(message["payloads"][0]["data"]))


def command(name, **attributes):
    """command("StartTimer", timerId="t", …)"""
    upper = re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()
    return {
        "commandType": "COMMAND_TYPE_" + upper,
        name[0].lower() + name[1:] + "CommandAttributes": attributes,
    }


def start_permit(pool, **request):
    return command("StartChildWorkflowExecution", permit={"pool": pool, **request})


def complete_workflow(value=None):
    result = {} if value is None else {"result": payloads(value)}
    return command("CompleteWorkflowExecution", **result)


def events_of(source, type):
    """The attributes of all events of one type: events_of(task, "TimerFired")."""
    events = source["history"]["events"] if isinstance(source, dict) else source
    name = type[0].lower() + type[1:] + "EventAttributes"
    return [event[name] for event in events if name in event]


def check_gapless(events):
    ids = [int(event["eventId"]) for event in events]
    check(ids == list(range(1, len(ids) + 1)), f"event ids are not 1..{len(ids)}: {ids}")


# --- The worker of permits ---


def permit_commands(task):
    """What PermitSlotWorkflow does next: the first of the release and the lease's end decides."""
    events = task["history"]["events"]
    has_timer = bool(events_of(events, "TimerStarted"))
    for event in events:
        if event.get("workflowExecutionSignaledEventAttributes", {}).get("signalName") == "release":
            cancel = [command("CancelTimer", timerId="lease")] if has_timer else []
            return [*cancel, complete_workflow("released")]
        if event.get("timerFiredEventAttributes", {}).get("timerId") == "lease":
            return [complete_workflow("lease_expired")]
    if has_timer:
        return []
    lease = value_of(events[0]["workflowExecutionStartedEventAttributes"]["input"])["lease_seconds"]
    passed = seconds_of(task["startedTime"]) - seconds_of(events[0]["eventTime"])
    left = f"{max(lease - passed, 0.001):.3f}s"
    return [command("StartTimer", timerId="lease", startToFireTimeout=left)]


def seconds_of(text):
    """An RFC 3339 time as seconds since 1970."""
    whole, _, fraction = text.rstrip("Z").partition(".")
    seconds = calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S"))
    return seconds + float("0." + (fraction or "0"))


@contextlib.contextmanager
def permit_worker(server, queue="permits"):
    """Serves permits on a thread while the block runs."""
    stopping = threading.Event()

    def serve():
        client = server.client()
        while not stopping.is_set():
            try:
                task = client.poll(queue, wait="0.2s")
                if task:
                    client.complete(task, *permit_commands(task))
            except Refused:
                continue  # the run ended meanwhile
            except Unknown:
                return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    client = server.client()
    eventually(
        lambda: client.get(f"/task-queues/{queue}").get("pollers"), "the permit worker's first poll"
    )
    try:
        yield
    finally:
        stopping.set()
        thread.join(10)


# --- Running ---


def parallel(server, connections, action):
    """action(client, number) on as many threads, all at once. Raises what one of them raised."""
    failures = []
    barrier = threading.Barrier(connections)

    def body(number):
        client = server.client()
        try:
            client.get("/pools")  # connects
            barrier.wait()
            action(client, number)
        except BaseException as error:
            failures.append(error)
            barrier.abort()
        finally:
            client.close()

    threads = [threading.Thread(target=body, args=(number,)) for number in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def eventually(condition, what, seconds=10):
    """Waits until condition() is true and returns what it returned."""
    end = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        check(time.monotonic() < end, f"not within {seconds} s: {what}")
        time.sleep(0.01)


def run(*cases):
    """Runs the cases in order; the first that fails ends the test."""
    for case in cases:
        began = time.monotonic()
        case()
        name = case.__name__.replace("_", " ")
        print(f"ok  {name} ({time.monotonic() - began:.1f} s)", flush=True)
