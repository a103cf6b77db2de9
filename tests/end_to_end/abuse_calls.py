"""Cases 33 to 60: what is refused by its values or by the state of things. Most of them are lines of
bad_input.py, marked there with their numbers; here is what a table of refusals cannot say."""

import json
import re
import socket
import threading

from abuse_support import ADDRESS, honest_request, request, say
from support import NAMESPACE, REPOSITORY, RPC, Refused, check, check_gapless, command
from support import eventually, events_of, seconds_of, start_permit

START = {"workflowType": {"name": "T"}, "taskQueue": {"name": "abuse"}}


def refused(action, status, reason):
    try:
        answer = action()
    except Refused as refusal:
        check((refusal.status, refusal.reason) == (status, reason), f"{refusal}")
        return refusal
    raise AssertionError(f"answered {answer}, not {status} {reason}")


# --- Values ---


def values(table, client, honest):
    with table.line(33, "a million brackets and nothing else", honest):
        refused(lambda: client.raw_json("POST", "/workflows/deep", b"[" * 1_000_000), 400,
                "FIELD_INVALID")
    with table.line(34, "500,000 empty arrays", honest):
        body = b'{"workflowType":{"name":"T"},"input":[' + b",".join([b"[]"] * 500_000) + b"]}"
        refused(lambda: client.raw_json("POST", "/workflows/wide", body), 400, "JSON_TOO_LARGE")
    # docs/decisions.md, "JSON without a tree": an integer field takes its digits in quotes.
    with table.line(37, '"2" for an integer', honest):
        client.set_pool("quoted", capacity="2")
        check(client.pool("quoted")["capacity"] == 2, "the number that stands there")
        client.ask("DELETE", NAMESPACE + "/pools/quoted")
    with table.line(39, "NUL in a payload", honest):
        client.start("nul", queue="abuse", input=["a\0b"])
        text = client.raw("GET", NAMESPACE + "/workflows/nul/history")[2]
        check(b'"a\\u0000b"' in text and b"\0" not in text, "shown escaped")
    # docs/errors.md: a lease of 0 is one that was not given, so the default, two minutes.
    with table.line(43, "a lease of 0", honest):
        grant = client.acquire("honest", "zero", lease="0s")
        held = client.permit(grant["slots"][0]["id"])
        left = seconds_of(held["deadline"]) - seconds_of(held["since"])
        check(round(left) == 120, f"{left} s: {held}")
        client.release(grant["slots"][0]["id"], grant["token"])
    # A pool that is closed for good has no slots: 0 is a capacity, as a drain is a state.
    with table.line(44, "capacity 0", honest):
        client.set_pool("closed", capacity=0)
        refused(lambda: client.acquire("closed", "x", wait="0s"), 423, "POOL_FULL")
        client.ask("DELETE", NAMESPACE + "/pools/closed")
    with table.line(45, "an id with dots and a slash", honest):
        # `/` and `.` may be in an id, and mean nothing there.
        client.start("..%2F..%2Fx", queue="abuse")
        check(client.info("..%2F..%2Fx")["execution"]["workflowId"] == "../../x", "as it is")
        refused(lambda: client.info("x"), 404, "WORKFLOW_NOT_FOUND")
    with table.line(47, "no SQL is put together from values", honest):
        check_sql_is_ours()


def check_sql_is_ours():
    """Outside of store/ there is no SQL, and in it none is joined with anything that has a value."""
    sql = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE)\s[^\"]*(FROM|INTO|SET)\b")
    sources = REPOSITORY / "orchestrator"
    for path in sorted(sources.rglob("*.cpp")):
        for literal in re.findall(r'"((?:[^"\\]|\\.)*)"', path.read_text()):
            if sql.search(literal):
                check("store" in path.parts, f"{path.name} has SQL of its own: {literal}")
                check("'%" not in literal and not literal.endswith(("= '", "='", "= \\\"")),
                      f"{path.name} quotes a value into {literal}")


# --- State ---


def starts(table, client, honest):
    with table.line(48, "a running id", honest):
        run = client.start("running", queue="abuse")["runId"]
        refusal = refused(lambda: client.start("running", queue="abuse"), 409,
                          "WORKFLOW_ALREADY_STARTED")
        check(run in json.dumps(refusal.answer), "which run it is")
    with table.line(49, "the same request again", honest):
        first = client.start("again", queue="abuse", requestId="abuse-1")
        check(client.start("again", queue="abuse", requestId="abuse-1")["runId"] == first["runId"],
              "another answer")
        refused(lambda: client.start("again", queue="abuse"), 409, "WORKFLOW_ALREADY_STARTED")
        grant = client.acquire("honest", "abuse-2", holder="h")
        check(client.acquire("honest", "abuse-2", holder="h")["token"] == grant["token"], "the token")
        refused(lambda: client.acquire("honest", "abuse-2", holder="other"), 409, "REQUEST_ID_REUSED")
        client.release(grant["slots"][0]["id"], grant["token"])
    with table.line(58, "terminated by fifty at once", honest):
        client.start("storm", queue="abuse")
        storm(client, "/workflows/storm/terminate")
        closed = events_of(client.history("storm"), "WorkflowExecutionTerminated")
        check(len(closed) == 1, f"{len(closed)} ends")


def storm(client, path):
    asked = [json.dumps({"reason": f"n{i}"}).encode() for i in range(50)]
    statuses = []

    def terminate(body):
        statuses.append(say(client.port, request("POST", NAMESPACE + path, body=body)).status)

    threads = [threading.Thread(target=terminate, args=(body,)) for body in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    check(sorted(set(statuses)) == [200, 404] and statuses.count(200) == 1, f"answers {statuses}")


def tasks(table, client, honest, full):
    with table.line(54, "a heartbeat after its timeout", honest):
        client.start("late", queue="late")
        client.complete(client.poll("late"), command(
            "ScheduleActivityTask", activityId="a", activityType={"name": "A"},
            taskQueue={"name": "late"}, startToCloseTimeout="0.05s",
            retryPolicy={"maximumAttempts": 1}))
        task = client.rpc("PollActivityTaskQueue", taskQueue={"name": "late"}, pollWait="5s")
        eventually(lambda: events_of(client.history("late"), "ActivityTaskTimedOut"), "its timeout")
        refused(lambda: client.rpc("RecordActivityTaskHeartbeat", taskToken=task["taskToken"]), 404,
                "TASK_NOT_FOUND")
    # The limit is 10,000 and not 1,000, of a run's life and not of what is pending; of those that
    # pend while a worker has the task, the hundred-and-first takes the task away
    # (tests/scenarios/buffer_limit.txt). A smaller limit is in tests/orchestrator/limits_test.cpp.
    with table.line(55, "10,001 signals" if full else "a signal to a closed run", honest):
        client.start("signals", queue="abuse")
        if full:
            signal_often(client, "signals", 10_000)
            refused(lambda: client.signal("signals", "more"), 429, "SIGNALS_LIMIT")
        client.post("/workflows/signals/terminate", {})
        refused(lambda: client.signal("signals", "more"), 404, "WORKFLOW_ALREADY_COMPLETED")
    if full:  # 51,200 events; fewer are in tests/orchestrator/limits_test.cpp
        with table.line(56, "a history past its limit", honest):
            history_past_its_limit(client)
    with table.line(57, "a child with its parent's id", honest):
        client.start("ancestor", queue="ancestor")
        child = command("StartChildWorkflowExecution", workflowId="ancestor",
                        workflowType={"name": "T"}, taskQueue={"name": "ancestor"})
        client.complete(client.poll("ancestor"), child)
        failed = events_of(client.history("ancestor"), "StartChildWorkflowExecutionFailed")
        check(failed and failed[0]["cause"].endswith("ALREADY_EXISTS"), f"{failed}")
    length = 1000 if full else 100
    with table.line(57, f"a chain of {length} children", honest):
        chain_of_children(client, length)
    with table.line(60, "a poll for ten hours", honest):
        a_poll_for_ten_hours(client)


def signal_often(client, workflow, count):
    """On eight connections, pipelined: each request is its own, commits are shared."""
    target = f"{NAMESPACE}/workflows/{workflow}/signal/s"
    share = count // 8
    batch = request("POST", target, body=b"{}", close=False)
    last = request("POST", target, body=b"{}", close=True)
    failures = []

    def send():
        with socket.create_connection((ADDRESS, client.port), 60) as connection:
            threading.Thread(target=connection.sendall, args=(batch * (share - 1) + last,),
                             daemon=True).start()
            received = b""
            while some := connection.recv(1 << 16):
                received += some
        if received.count(b"HTTP/1.1 200 ") != share:
            failures.append(received[-300:])

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    check(not failures, f"{failures}")


def history_past_its_limit(client):
    """Its permit comes back, and it says why it ended."""
    client.start("endless", queue="endless")
    client.complete(client.poll("endless"), start_permit("honest", lease="600s"))
    marker = command("RecordMarker", markerName="m")
    for _ in range(6):
        check(any(slot.get("permit") for slot in client.pool("honest")["slots"]), "it holds a permit")
        client.signal("endless", "go")
        task = client.poll("endless")
        client.complete(task, *[marker] * 9_000)
        if client.info("endless")["status"] != "WORKFLOW_EXECUTION_STATUS_RUNNING":
            break
    info = client.info("endless")
    check(info["status"].endswith(("FAILED", "TERMINATED")), f"{info}")
    last = client.wait_closed("endless")
    check("history" in json.dumps(last).lower(), f"it does not say why: {last}")
    check(not any(slot.get("permit") for slot in client.pool("honest")["slots"]), "the slot is free")


def chain_of_children(client, length):
    """No limit is set to their depth, so the end of the first must be the end of all, at once."""
    client.start("chain-0", queue="chain")
    for i in range(1, length):
        child = command("StartChildWorkflowExecution", workflowId=f"chain-{i}",
                        workflowType={"name": "T"}, taskQueue={"name": "chain"})
        task = client.poll("chain")
        while task["workflowExecution"]["workflowId"] != f"chain-{i - 1}":
            client.complete(task)  # somebody's child has started
            task = client.poll("chain")
        client.complete(task, child)
    client.post("/workflows/chain-0/terminate", {})
    counted = lambda: int(client.get(
        "/workflow-count", query="WorkflowId STARTS_WITH 'chain-' AND ExecutionStatus = 'Running'"
    ).get("count", 0))
    eventually(lambda: counted() == 0, "every child has ended", 20)
    check_gapless(client.history(f"chain-{length - 1}"))


def a_poll_for_ten_hours(client):
    """Waits, for a minute at most (tests/orchestrator/limits_test.cpp), and gives way to a task."""
    answers = []
    other = type(client)(client.port)
    poll = threading.Thread(target=lambda: answers.append(other.poll("hours", wait="36000s")))
    poll.start()
    eventually(lambda: client.get("/task-queues/hours").get("pollers"), "the poll is parked")
    client.start("hours", queue="hours")
    poll.join(10)
    check(answers and answers[0]["taskToken"], f"{answers}")
    for wait in ("1e9s", "forever", "10h"):
        refused(lambda: client.poll("hours", wait=wait), 400, "FIELD_INVALID")


def run_calls(table, server, full):
    client = server.client()
    client.raw_json = lambda method, path, body: raw_json(client, method, path, body)
    honest = lambda: honest_request(server.port)
    values(table, client, honest)
    starts(table, client, honest)
    tasks(table, client, honest, full)


def raw_json(client, method, path, body):
    status, _, answer = client.raw(method, NAMESPACE + path, body, {"Content-Type": "application/json"})
    if status >= 300:
        raise Refused(status, json.loads(answer))
    return json.loads(answer)
