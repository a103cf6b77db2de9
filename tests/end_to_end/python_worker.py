#!/usr/bin/env python3
"""Activities in Python, by worker/python/permit.py: killed, drained, canceled, under a permit."""

import inspect
import os
import re
import signal
import subprocess
import sys
import threading
import time

from support import (REPOSITORY, Server, Worker, check, command, complete_workflow, directory,
                     eventually, events_of, payloads, run, value_of)

CLIENT = REPOSITORY / "worker" / "python"
sys.path.insert(0, str(CLIENT))
sys.dont_write_bytecode = True
import permit  # noqa: E402

PROGRAM = '''
import os, sys, threading, time
import permit

@permit.activity
def add(a, b):
    return {"sum": a + b, "by": permit.this_activity().workflow_id}

def repeat(text, times):
    return text * times

@permit.activity(name="say nothing")
def nothing():
    pass

@permit.activity
def fail(kind):
    if kind == "once" and permit.this_activity().attempt > 1:
        return permit.last_heartbeat()
    permit.heartbeat("here", 7)
    if kind == "exit":
        sys.exit(3)
    if kind == "result":
        return threading.Lock()
    if kind == "final":
        raise permit.NonRetryable("never again", {"row": 5}, type="BadRow")
    try:
        {}["missing"]
    except KeyError as error:
        raise ValueError("it does not work: " + kind) from error

@permit.activity
def steps(count, milliseconds):
    first = permit.last_heartbeat() or 0
    print("from", first, flush=True)
    for step in range(first, count):
        permit.heartbeat(step)
        if step % 20 == 10:
            print("step", step, flush=True)
        time.sleep(milliseconds / 1000)
    print("done", flush=True)
    return first

@permit.activity
def stop_politely():
    print("begun", flush=True)
    while True:
        try:
            permit.heartbeat()
        except permit.Canceled:
            print("saving", permit.cancelled(), flush=True)
            raise
        time.sleep(0.02)

def train_model(model, slot):
    first = permit.last_heartbeat() or 0
    print("epoch", first, "on", slot, flush=True)
    for epoch in range(first, 40):
        permit.heartbeat(epoch)
        time.sleep(0.1)
    return f"{model} on {permit.gpu_env(slot)['CUDA_VISIBLE_DEVICES']} from {first}"

print("ready", flush=True)
permit.Worker("python", [add, repeat, nothing, fail, steps, stop_politely, train_model], concurrency=2).run()
print("stopped", flush=True)
'''


class PythonWorker(Worker):
    def __init__(self, port):
        environment = {**os.environ, "PERMIT_ADDRESS": f"127.0.0.1:{port}", "PYTHONPATH": str(CLIENT),
                       "PYTHONDONTWRITEBYTECODE": "1"}
        self.process = subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.lines = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        eventually(lambda: self.says("ready"), "its first line")

    def wait(self, seconds=10):
        status = super().wait(seconds)
        self.reader.join(seconds)
        return status


class HereWorker:
    """On a thread of this process."""

    def __init__(self, activities, **options):
        self.worker = permit.Worker("python", activities, **options)
        self.thread = threading.Thread(target=self.worker.run)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.worker.stop()
        self.thread.join(20)
        check(not self.thread.is_alive(), "it does not stop")


def schedule(client, workflow, name, *arguments, heartbeat="10s", attempts=1):
    """A workflow, played by the test, that calls an activity."""
    client.start(workflow, queue="driver")
    client.complete(client.poll("driver"), command(
        "ScheduleActivityTask", activityId="1", activityType={"name": name},
        taskQueue={"name": "python"}, input={"payloads": [payloads(a)["payloads"][0] for a in arguments]},
        startToCloseTimeout="60s", heartbeatTimeout=heartbeat,
        retryPolicy={"initialInterval": "0.05s", "maximumAttempts": attempts}))


def result(client, workflow, event="Completed"):
    """The attributes of the activity's last event."""
    task = None
    while not task:
        task = client.poll("driver")
    found = events_of(task, "ActivityTask" + event)
    client.complete(task, complete_workflow())
    check(found, task["history"]["events"][-3:])
    return found[0]


def arguments_and_results_are_json(client):
    schedule(client, "add", "add", 2, 40)
    check(value_of(result(client, "add")["result"]) == {"sum": 42, "by": "add"}, "the result")
    schedule(client, "unicode", "add", "Grü", "ße ☃")
    check(value_of(result(client, "unicode")["result"])["sum"] == "Grüße ☃", "the result")
    schedule(client, "nothing", "say nothing")
    check("result" not in result(client, "nothing"), "None is no result, like void")


def exceptions_are_failures(client):
    schedule(client, "fails", "fail", "always")
    failure = result(client, "fails", "Failed")["failure"]
    check(failure["message"] == "it does not work: always", failure)
    check(failure["applicationFailureInfo"]["type"] == "ValueError", failure)
    check("in fail" in failure["stackTrace"] and failure["source"] == "PermitPython", failure)
    check(failure["cause"]["applicationFailureInfo"]["type"] == "KeyError", failure)
    schedule(client, "retried", "fail", "once", attempts=3)
    check(value_of(result(client, "retried")["result"]) == ["here", 7],
          "the second attempt knows what the first said, though it was never sent in time")
    schedule(client, "final", "fail", "final", attempts=5)
    failed = result(client, "final", "Failed")
    info = failed["failure"]["applicationFailureInfo"]
    check(info["type"] == "BadRow" and info["nonRetryable"], failed)
    check(value_of(info["details"]) == {"row": 5}, failed)
    check(failed["retryState"] == "RETRY_STATE_NON_RETRYABLE_FAILURE", failed)
    for kind, type_name in (("exit", "SystemExit"), ("result", "TypeError")):
        schedule(client, kind, "fail", kind)
        failure = result(client, kind, "Failed")["failure"]
        check(failure["applicationFailureInfo"]["type"] == type_name, failure)
    schedule(client, "unknown", "ad")
    failure = result(client, "unknown", "Failed")["failure"]
    check('no activity \'ad\'; it has: add, fail' in failure["message"], failure)
    schedule(client, "misfit", "add", 1)
    check("missing 1 required" in result(client, "misfit", "Failed")["failure"]["message"], "the misfit")


def a_result_that_is_refused_fails(client):
    schedule(client, "large", "repeat", "x", 3_000_000, attempts=3)
    failure = result(client, "large", "Failed")["failure"]
    check(failure["applicationFailureInfo"]["type"] == "ResultRefused", failure)


def a_canceled_activity_stops(client, worker):
    # Told at a heartbeat, of which there is one in four fifths of this; the rest is for a busy machine.
    schedule(client, "cancel", "stop_politely", heartbeat="8s")
    eventually(lambda: worker.says("begun"), "its start")
    client.post("/workflows/cancel/cancel", {})
    task = eventually(lambda: client.poll("driver"), "the request")
    scheduled = [event for event in task["history"]["events"]
                 if "activityTaskScheduledEventAttributes" in event][0]["eventId"]
    client.complete(task, command("RequestCancelActivityTask", scheduledEventId=scheduled))
    result(client, "cancel", "Canceled")
    check(worker.says("saving True"), worker.lines)


def heartbeats_keep_it_alive_and_are_few(client):
    """On a thread of this process, to be able to count what is sent."""
    sent = []

    class Counting(permit._Heartbeats):
        def _send(self, message):
            sent.append(message)
            return super()._send(message)

    def beat():
        began = time.monotonic()
        while time.monotonic() - began < 12:
            permit.heartbeat("so far")
            time.sleep(0.01)

    original, permit._Heartbeats = permit._Heartbeats, Counting
    try:
        with HereWorker([beat]):
            schedule(client, "alive", "beat", heartbeat="5s")  # sent every 4 s: a second of a busy machine
            result(client, "alive")
    finally:
        permit._Heartbeats = original
    check(3 <= len(sent) <= 8, f"{len(sent)} heartbeats were sent in 12 s")  # of hundreds that were told


def what_runs_for_too_long_is_told_to_stop(client):
    begun = threading.Event()

    def endless():
        begun.set()
        while True:
            permit.heartbeat("so far")
            time.sleep(0.01)

    with HereWorker([endless], drain="300ms"):
        schedule(client, "endless", "endless")
        check(begun.wait(10), "not begun")
    failure = result(client, "endless", "Failed")["failure"]
    check(failure["applicationFailureInfo"]["type"] == "Canceled", failure)


def a_thread_without_an_activity_is_told_so(client):
    said = []

    def forgetful():
        thread = threading.Thread(target=lambda: said.append(error_of(permit.heartbeat)))
        thread.start()
        thread.join()

    with HereWorker([forgetful]):
        schedule(client, "forgetful", "forgetful")
        result(client, "forgetful")
    check(said and said[0].code == "NO_ACTIVITY", said)


def error_of(action):
    try:
        action()
    except permit.Error as error:
        return error
    return None


def an_idle_worker_stops_at_once(server):
    with PythonWorker(server.port) as worker:
        client = server.client()
        eventually(lambda: client.get("/task-queues/python", taskQueueType="TASK_QUEUE_TYPE_ACTIVITY")
                   .get("pollers"), "its polls")
        began = time.monotonic()
        worker.signal(signal.SIGTERM)
        check(worker.wait() == 0 and worker.says("stopped"), worker.lines)
        check(time.monotonic() - began < 8, "parked polls held it up")


def a_drained_worker_ends_what_it_has(server, client):
    schedule(client, "drain", "steps", 30, 50)
    with PythonWorker(server.port) as worker:
        eventually(lambda: worker.says("step 10"), "the activity's middle")
        worker.signal(signal.SIGTERM)
        check(worker.wait() == 0 and worker.says("done"), worker.lines)
    check(value_of(result(client, "drain")["result"]) == 0, "the first attempt counted")


def a_second_signal_ends_it_at_once(server, client):
    schedule(client, "twice", "steps", 1000, 50)
    with PythonWorker(server.port) as worker:
        eventually(lambda: worker.says("step 10"), "the activity's middle")
        worker.signal(signal.SIGTERM)
        eventually(lambda: worker.says("stopping"), "the first signal's effect")
        worker.signal(signal.SIGTERM)
        check(worker.wait(8) == 128 + signal.SIGTERM, "exit code")  # 50 s of its steps are left
    client.post("/workflows/twice/terminate", {"reason": "done"})


def an_attempt_takes_up_where_a_killed_one_was(server, client):
    schedule(client, "resume", "steps", 100, 30, heartbeat="1s", attempts=20)  # of which some may be late
    with PythonWorker(server.port) as worker:
        eventually(lambda: worker.says("step 50"), "half of the steps")
    with PythonWorker(server.port):
        first = value_of(result(client, "resume")["result"])
    check(1 <= first < 100, f"the second attempt began at {first}")  # not at 0, and not at the end


def a_workflow_in_cpp_trains_in_python(server, client):
    client.set_pool("training", capacity=1)
    with Worker(server.port, "work", 1, program="permit_test_holder"), PythonWorker(server.port) as python:
        client.start("train", type="Train", input=["resnet"])
        eventually(lambda: python.says("epoch 0 on 0"), "the attempt")
        held = client.permit("permit:training:0")
        close = client.wait_closed("train")  # after twice the lease: the heartbeats renew the permit
    check("workflowExecutionCompletedEventAttributes" in close, close)
    said = close["workflowExecutionCompletedEventAttributes"]["result"]
    # From 0, if no heartbeat was so late that there was a second attempt.
    check(len(said) == 1 and re.fullmatch(r"resnet on 0 from \d+", said[0]), said)
    ended = client.permit("permit:training:0", held["runId"])
    check(ended["outcome"] == "released" and ended["deadline"] > held["deadline"], ended)


def a_dead_worker_frees_the_slot(server, client):
    with Worker(server.port, "work", 1, program="permit_test_holder"):
        client.start("dies", type="Train", input=["resnet"])
        with PythonWorker(server.port) as worker:
            eventually(lambda: worker.says("epoch 0 on 0"), "the attempt")
            held = client.permit("permit:training:0")
        eventually(lambda: client.permit("permit:training:0", held["runId"]).get("state") == "closed",
                   "the end of its permit")
        ended = client.permit("permit:training:0", held["runId"])
        check(ended["outcome"] == "lease_expired", ended)
        close = client.wait_closed("dies")
        check("PermitLost" in str(close), close)


def a_restart_of_the_server_costs_nothing():
    database = directory() / "python_worker.db"
    server = Server(database)
    try:
        schedule(server.client(), "restart", "steps", 60, 30)
        with PythonWorker(server.port) as worker:
            eventually(lambda: worker.says("step 10"), "its start")
            port = server.port
            server.kill()
            eventually(lambda: worker.says("done"), "its end, while the server is away")
            server = Server(database, port=port)
            check(value_of(result(server.client(), "restart")["result"]) == 0, "the first attempt counted")
    finally:
        server.kill()


def outside_of_a_worker_it_is_a_function(_):
    @permit.activity
    def tried(x):
        permit.heartbeat(x)
        return permit.last_heartbeat(), permit.cancelled(), permit.this_activity()

    check(tried(1) == (None, False, None), "a notebook can try it out")

    async def never():
        pass

    for wrong in (lambda: permit.activity(never), lambda: permit.Worker("q", [])):
        try:
            wrong()
            raise AssertionError("it was accepted")
        except permit.InvalidArgument:
            pass


def main():
    with Server(permit_worker=True) as server:
        os.environ["PERMIT_ADDRESS"] = f"127.0.0.1:{server.port}"
        client = server.client()

        def case(function, **given):
            given.update(server=server, client=client, _=None)

            def bound():
                function(*(given[name] for name in inspect.signature(function).parameters))

            bound.__name__ = function.__name__
            return bound

        run(case(outside_of_a_worker_it_is_a_function))
        with PythonWorker(server.port) as worker:
            run(*(case(function, worker=worker) for function in (
                arguments_and_results_are_json, exceptions_are_failures, a_result_that_is_refused_fails,
                a_canceled_activity_stops,
            )))
        run(*map(case, (
            heartbeats_keep_it_alive_and_are_few, what_runs_for_too_long_is_told_to_stop,
            a_thread_without_an_activity_is_told_so,
            an_idle_worker_stops_at_once, a_drained_worker_ends_what_it_has,
            a_second_signal_ends_it_at_once, an_attempt_takes_up_where_a_killed_one_was,
            a_workflow_in_cpp_trains_in_python, a_dead_worker_frees_the_slot,
        )))
    run(a_restart_of_the_server_costs_nothing)


main()
