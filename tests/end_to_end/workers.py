#!/usr/bin/env python3
"""What the server knows of its workers: real ones, in C++ and in Python, that come, work, stop and are
killed; and a server that does not want to know."""

import contextlib
import datetime
import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

from support import (REPOSITORY, Refused, Server, Worker, check, command, eventually, payloads, run)

CLIENT = REPOSITORY / "worker" / "python"
PROGRAM = """
import sys, time, permit

def steps(count, milliseconds):
    for step in range(count):
        permit.heartbeat(step)
        time.sleep(milliseconds / 1000)
    return count

print("ready", flush=True)
permit.Worker(sys.argv[1], [steps], concurrency=2, build_id="v7").run()
"""


class PythonWorker(Worker):
    def __init__(self, port, queue):
        environment = {**os.environ, "PERMIT_ADDRESS": f"127.0.0.1:{port}", "PYTHONPATH": str(CLIENT),
                       "PYTHONDONTWRITEBYTECODE": "1"}
        self.process = subprocess.Popen([sys.executable, "-c", PROGRAM, queue], env=environment,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.lines = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        eventually(lambda: self.says("ready"), "its first line")


KINDS = (Worker, PythonWorker)  # both have an activity `steps`


def workers(client):
    """By process id."""
    found = client.get("/workers").get("workersInfo", [])
    return {worker["workerHeartbeat"]["hostInfo"]["processId"]: worker for worker in found}


def told_by(client, worker):
    """What the worker has told last, or {}."""
    return workers(client).get(str(worker.process.pid), {}).get("workerHeartbeat", {})


def seen(client, worker, matches, what, seconds=10):
    def look():
        heartbeat = told_by(client, worker)
        return heartbeat if heartbeat and matches(heartbeat) else None

    return eventually(look, what, seconds)


def is_in(status):
    return lambda heartbeat: heartbeat["status"] == "WORKER_STATUS_" + status


def slots(heartbeat, kind="activity"):
    """Those in use, and those that are not."""
    info = heartbeat[kind + "TaskSlotsInfo"]
    return info.get("currentUsedSlots", 0), info.get("currentAvailableSlots", 0)


def schedule_steps(client, queue, count, milliseconds):
    """A workflow, played by the test, whose activity takes so long."""
    client.start(f"of-{queue}", queue="driver")
    client.complete(client.poll("driver"), command(
        "ScheduleActivityTask", activityId="1", activityType={"name": "steps"},
        taskQueue={"name": queue}, startToCloseTimeout="60s", heartbeatTimeout="30s",
        input={"payloads": [payloads(n)["payloads"][0] for n in (count, milliseconds)]}))


# --- Coming and going ---


def a_worker_is_known_from_its_start():
    """Within a second, on a machine that has nothing else to do; not by its heartbeat of every ten."""
    with Server() as server:
        client = server.client()
        for kind in KINDS:
            with kind(server.port, "work") as worker:
                heartbeat = seen(client, worker, is_in("RUNNING"), f"{kind.__name__}'s heartbeat", 5)
            check(heartbeat["workerIdentity"] == f"{worker.process.pid}@{socket.gethostname()}", heartbeat)
            check(heartbeat["hostInfo"]["hostName"] == socket.gethostname(), heartbeat)
            check(heartbeat["taskQueue"] == "work" and heartbeat["sdkVersion"] == "0.1.0", heartbeat)
            in_python = kind is PythonWorker
            check(heartbeat["sdkName"] == ("permit-python" if in_python else "permit-cpp"), heartbeat)
            check(heartbeat.get("deploymentVersion") == ({"buildId": "v7"} if in_python else None),
                  heartbeat)
            check(slots(heartbeat) == (0, 2 if in_python else 8), heartbeat)
            check(("workflowTaskSlotsInfo" in heartbeat) != in_python, heartbeat)
            start, beat = (datetime.datetime.fromisoformat(heartbeat[key]) for key in ("startTime", "heartbeatTime"))
            check(start <= beat, heartbeat)
            described = client.get(f"/workers/describe/{heartbeat['workerInstanceKey']}")
            check(described["workerInfo"]["workerHeartbeat"] == heartbeat, described)


def a_worker_shows_what_it_works_on_and_how_it_stops():
    with Server() as server, Worker(server.port, "cpp") as cpp, \
            PythonWorker(server.port, "python") as python:
        client = server.client()
        for worker, queue, total in ((cpp, "cpp", 8), (python, "python", 2)):
            seen(client, worker, is_in("RUNNING"), "its first heartbeat")
            schedule_steps(client, queue, 200, 100)  # 20 s: longer than from heartbeat to heartbeat
        for worker, total in ((cpp, 8), (python, 2)):
            busy = seen(client, worker, lambda told: slots(told)[0] == 1, "its slot in use", 20)
            check(busy["status"] == "WORKER_STATUS_RUNNING" and sum(slots(busy)) == total, busy)
            elapsed = float(busy["elapsedSinceLastHeartbeat"].rstrip("s"))
            check(9.5 < elapsed < 16, busy)

            worker.signal(signal.SIGTERM)
            # The server knows it from the call that sends the polls away, maybe before it is told.
            drains = is_in("SHUTTING_DOWN")
            seen(client, worker, lambda told: drains(told) and slots(told) == (1, 0), "that it drains", 5)
        for worker in (cpp, python):
            check(worker.wait(30) == 0, worker.lines)
            ended = told_by(client, worker)
            check(is_in("SHUTDOWN")(ended) and slots(ended) == (0, 0), ended)
            check(ended["activityTaskSlotsInfo"]["totalProcessedTasks"] == 1, ended)
            check("silent" not in workers(client)[str(worker.process.pid)], "it has said that it ends")


def the_runs_that_a_worker_keeps_are_counted():
    with Server() as server, Worker(server.port, "work") as worker:
        client = server.client()
        client.start("sum", type="Sum", input=[5])
        client.wait_closed("sum")
        worker.signal(signal.SIGTERM)
        check(worker.wait() == 0, worker.lines)
        told = told_by(client, worker)
        # Each activity and each timer, but the last. A task that overtakes the reply to the answer
        # before it begins anew.
        missed = told.get("totalStickyCacheMiss", 0)
        check(told["totalStickyCacheHit"] + missed >= 9 and missed <= 3, told)
        check("currentStickyCacheSize" not in told, told)
        check(told["workflowTaskSlotsInfo"]["totalProcessedTasks"] >= 10, told)
        check("totalFailedTasks" not in told["workflowTaskSlotsInfo"], told)


def a_killed_worker_is_listed_as_silent_and_then_forgotten():
    for kind in KINDS:
        with Server(None, "--virtual-time") as server:
            client = server.client()

            def advance(seconds):
                client.ask("POST", "/api/v1/test/advance", {"seconds": seconds})

            with kind(server.port, "work") as killed, kind(server.port, "work") as stopped:
                for worker in (killed, stopped):
                    seen(client, worker, is_in("RUNNING"), "its heartbeat")
                killed.kill()
                stopped.signal(signal.SIGTERM)
                stopped.wait()
            found = workers(client)
            check(len(found) == 2 and not any(worker.get("silent") for worker in found.values()), found)
            advance(31)
            found = workers(client)
            check(found[str(killed.process.pid)]["silent"], found)
            check("silent" not in found[str(stopped.process.pid)], found)
            advance(30)
            check(list(workers(client)) == [str(killed.process.pid)], "a minute after its end")
            advance(540)
            check(workers(client) == {}, "after ten minutes")


def a_worker_comes_back_to_a_server_that_was_started_again():
    with Server() as server:
        port = server.port
        with Worker(port, "work") as cpp, PythonWorker(port, "work") as python:
            for worker in (cpp, python):
                seen(server.client(), worker, is_in("RUNNING"), "its heartbeat")
            server.kill()
            with Server(port=port) as again:
                for worker in (cpp, python):
                    seen(again.client(), worker, is_in("RUNNING"), "its next heartbeat", 20)


def the_servers_own_worker_is_one():
    with Server(permit_worker=True) as server:
        client = server.client()
        found = eventually(lambda: workers(client).get(str(server.process.pid)), "it", 5)
        heartbeat = found["workerHeartbeat"]
        check(heartbeat["taskQueue"] == "permits", heartbeat)
        check(heartbeat["workerIdentity"] == f"permit-server@{server.process.pid}", heartbeat)
        began = time.monotonic()
        check(server.stop() == 0 and time.monotonic() - began < 5, "its end is not held up")


# --- Those who do not want to know ---


class StockServer(http.server.ThreadingHTTPServer):
    """Has polls that wait, and no RecordWorkerHeartbeat: it answers that with a status and a body."""

    daemon_threads = True

    def __init__(self, status, body):
        super().__init__(("127.0.0.1", 0), Handler)
        self.status, self.body = status, body
        self.calls = []
        self.goodbye = threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self):
        self.shutdown()
        self.server_close()

    def count(self, name):
        return self.calls.count(name)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        name = self.path.rpartition("/")[2]
        self.server.calls.append(name)
        status, body = 200, b"{}"
        if name.startswith("Poll"):
            self.server.goodbye.wait(30)
        elif name == "ShutdownWorker":
            self.server.goodbye.set()
        elif name == "RecordWorkerHeartbeat":
            status, body = self.server.status, self.server.body
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def a_server_that_knows_no_such_call_is_asked_once():
    answers = [(404, b"404 page not found\n"),
               (404, b'{"code":5,"message":"Not Found","details":[]}'),
               (501, b'{"code":12,"message":"Method Not Allowed","details":[]}')]
    with contextlib.ExitStack() as stack:
        pairs = []
        for status, body in answers:
            for kind in KINDS:
                stock = StockServer(status, body)
                stack.callback(stock.close)
                pairs.append((stock, stack.enter_context(kind(stock.server_address[1], "work"))))
        for stock, _ in pairs:
            eventually(lambda: stock.count("RecordWorkerHeartbeat"), "the first heartbeat")
        time.sleep(2.5)  # a server that is away would be asked again after 1 s
        for stock, worker in pairs:
            worker.signal(signal.SIGTERM)
            check(worker.wait() == 0, worker.lines)
            check(stock.count("RecordWorkerHeartbeat") == 1, stock.calls)
            check(stock.count("ShutdownWorker") >= 1, stock.calls)
            check(not worker.says("eartbeat"), worker.lines)


# --- As requests ---


def the_calls_take_and_answer_what_they_should(server):
    client = server.client()
    minimal = {"workerInstanceKey": "k1"}
    check(client.rpc("RecordWorkerHeartbeat", identity="me", workerHeartbeat=[minimal]) == {}, "answer")
    told = client.get("/workers")["workersInfo"]
    check(told[0]["workerHeartbeat"].items() >= {"workerInstanceKey": "k1", "workerIdentity": "me"}.items(),
          told)
    # All that Temporal's SDKs send, its numbers as text or not.
    whole = {
        "workerInstanceKey": "k2", "workerIdentity": "sdk", "taskQueue": "q",
        "hostInfo": {"hostName": "h", "processId": "7", "workerGroupingKey": "g",
                     "currentHostCpuUsage": 0.5, "currentHostMemUsage": 0.25},
        "deploymentVersion": {"buildId": "b", "deploymentName": "d"},
        "sdkName": "temporal-go", "sdkVersion": "1.38.0", "status": 1,
        "startTime": "2026-11-19T00:00:00+01:00", "heartbeatTime": "2026-11-19T00:00:10Z",
        "elapsedSinceLastHeartbeat": "60s", "totalStickyCacheHit": "12", "totalStickyCacheMiss": 3,
        "workflowTaskSlotsInfo": {"currentAvailableSlots": -1, "currentUsedSlots": 2,
                                  "slotSupplierKind": "ResourceBased", "totalProcessedTasks": 5,
                                  "totalFailedTasks": "1", "lastIntervalProcessedTasks": 1,
                                  "lastIntervalFailureTasks": 0},
        "activityTaskSlotsInfo": {}, "nexusTaskSlotsInfo": {}, "localActivitySlotsInfo": {},
        "workflowPollerInfo": {"currentPollers": 2}, "workflowStickyPollerInfo": {},
        "activityPollerInfo": {}, "nexusPollerInfo": {}, "currentStickyCacheSize": 4,
        "plugins": [{"name": "p", "version": "1"}], "drivers": []}
    client.post("/workers/heartbeat", {"workerHeartbeat": [whole]})
    told = client.get("/workers/describe/k2")["workerInfo"]["workerHeartbeat"]
    check(told["totalStickyCacheHit"] == 12 and told["status"] == "WORKER_STATUS_RUNNING", told)
    check(told["workflowTaskSlotsInfo"] == {"currentAvailableSlots": -1, "currentUsedSlots": 2,
                                            "totalProcessedTasks": 5, "totalFailedTasks": 1}, told)
    check(told["activityTaskSlotsInfo"] == {} and told["startTime"] == "2026-11-18T23:00:00Z", told)
    namespace = client.rpc("DescribeNamespace")["namespaceInfo"]
    check(namespace["capabilities"] == {"workerHeartbeats": True}, namespace)

    pages, token = [], {}
    while token is not None:
        page = client.get("/workers", pageSize=1, **token)
        pages.append([worker["workerHeartbeat"]["workerInstanceKey"] for worker in page["workersInfo"]])
        token = {"nextPageToken": page["nextPageToken"]} if "nextPageToken" in page else None
    check(pages == [["k1"], ["k2"]], pages)
    check(len(client.rpc("ListWorkers")["workersInfo"]) == 2, "the RPC")
    check(client.rpc("DescribeWorker", workerInstanceKey="k1")["workerInfo"], "the RPC")


def what_makes_no_sense_is_refused(server):
    client = server.client()

    def refused_as(reason, status, action, *arguments, **more):
        try:
            answer = action(*arguments, **more)
        except Refused as error:
            check(error.reason == reason and error.status == status and error.message, error)
            return error.message
        raise AssertionError(f"{arguments} {more} was answered with {answer}")

    def refused(reason, status, heartbeat=None, **message):
        sent = {"workerHeartbeat": [heartbeat]} if heartbeat is not None else message
        return refused_as(reason, status, client.rpc, "RecordWorkerHeartbeat", **sent)

    key = {"workerInstanceKey": "bad"}
    check("workerHeartbeat.workerInstanceKey" in refused("NAME_INVALID", 400, {}), "the message")
    check("workerHeartbeat.taskQueue" in refused("NAME_INVALID", 400, {**key, "taskQueue": "x" * 256}),
          "the message")
    refused("NAME_INVALID", 400, {**key, "hostInfo": {"hostName": "a\u0001"}})
    check("workflowTaskSlotsInfo.currentUsedSlots must be 0 or more" in refused(
        "WORKER_HEARTBEAT_INVALID", 400,
        {**key, "workflowTaskSlotsInfo": {"currentUsedSlots": -1}}), "the message")
    refused("DURATION_INVALID", 400, {**key, "elapsedSinceLastHeartbeat": "-1s"})
    refused("ENUM_UNKNOWN", 400, {**key, "status": "WORKER_STATUS_ASLEEP"})
    refused("FIELD_INVALID", 400, {**key, "currentStickyCacheSize": 3_000_000_000})
    refused("FIELD_UNKNOWN", 400, {**key, "mood": "good"})
    check("100" in refused("WORKER_HEARTBEATS_TOO_MANY", 400, workerHeartbeat=[
        {"workerInstanceKey": f"bad{i}"} for i in range(101)]), "the message")
    refused_as("NAMESPACE_NOT_FOUND", 404, client.ask, "GET", "/api/v1/namespaces/other/workers")
    refused_as("WORKER_NOT_FOUND", 404, client.get, "/workers/describe/nobody")
    refused_as("PAGE_TOKEN_INVALID", 400, client.get, "/workers", nextPageToken="?")
    refused_as("PARAMETER_UNKNOWN", 400, client.get, "/workers", query="Status='running'")
    refused_as("FIELD_UNSUPPORTED", 501, client.rpc, "ListWorkers", query="Status='running'")
    check(not any("bad" in json.dumps(worker) for worker in client.get("/workers").get("workersInfo", [])),
          "nothing of it was kept")


def with_server(case):
    def run_case():
        with Server() as server:
            case(server)

    run_case.__name__ = case.__name__
    return run_case


run(
    a_worker_is_known_from_its_start,
    a_worker_shows_what_it_works_on_and_how_it_stops,
    the_runs_that_a_worker_keeps_are_counted,
    a_killed_worker_is_listed_as_silent_and_then_forgotten,
    a_worker_comes_back_to_a_server_that_was_started_again,
    the_servers_own_worker_is_one,
    a_server_that_knows_no_such_call_is_asked_once,
    with_server(the_calls_take_and_answer_what_they_should),
    with_server(what_makes_no_sense_is_refused),
)
