#!/usr/bin/env python3
"""Bad input of every kind gets a 4xx (or 501), a stable reason and one sentence; nothing changes.

Each line of a table is a request and what it is answered with. After each an honest request must
work, and at the end the database must hold what it held before. Byte-level HTTP is in
tests/http/gate_test.cpp.
"""

import base64
import json
import re
import socket
import sqlite3

from support import (
    NAMESPACE,
    RPC,
    Refused,
    Server,
    back_up,
    check,
    command,
    complete_workflow,
    directory,
    eventually,
    events_of,
    run,
)

JSON = {"Content-Type": "application/json"}
START = '{"workflowType":{"name":"T"},"taskQueue":{"name":"q"}'  # to be continued and closed
PERMIT_UNTIMED = '{"workflowType":{"name":"PermitSlotWorkflow"},"taskQueue":{"name":"permits"}'
PERMIT_START = PERMIT_UNTIMED + ',"workflowExecutionTimeout":"60s"'
WORKFLOW = "/workflows/bad"
POLL = RPC + "PollWorkflowTaskQueue"
COMPLETE = RPC + "RespondWorkflowTaskCompleted"


class World:
    """A server with honest work in progress, and a check that bad requests leave it alone."""

    def __init__(self, server):
        self.server = server
        self.client = client = server.client()
        self.cases = 0
        self.failures = []
        client.set_pool("gpu", capacity=1)
        client.set_pool("rigs", slots=["a", "b"])
        client.start("learned", queue="learned")
        self.grant = client.acquire("gpu", "holder", holder="honest", lease="3600s")
        self.ask_in_line()
        self.permit = self.grant["slots"][0]
        started = client.start("honest", requestId="honest-1", workflowTaskTimeout="120s")
        self.run_id = started["runId"]
        activity = command(
            "ScheduleActivityTask",
            activityId="a",
            activityType={"name": "A"},
            taskQueue={"name": "work"},
            startToCloseTimeout="600s",
        )
        task = client.poll()
        client.complete(task, activity)
        self.used_token = task["taskToken"]
        client.signal("honest", "go", self.run_id)
        self.task = client.poll()
        self.token = self.task["taskToken"]
        self.activity = client.rpc(
            "PollActivityTaskQueue", taskQueue={"name": "work"}, pollWait="5s"
        )["taskToken"]
        self.closed_run = client.start("closed", queue="closed")["runId"]
        client.post("/workflows/closed/terminate", {})

    def ask_in_line(self):
        """Keeps a place in line, for 15 s."""
        self.client.acquire("gpu", "waiter", holder="patient", wait="0.01s")
        eventually(
            lambda: "expires" in self.client.get("/pools/gpu/waiters")["waiters"][0], "15 s begin"
        )

    def database(self):
        """What is on disk, but for the counters of commits and the time of the last."""
        copy = directory() / "copy.db"
        copy.unlink(missing_ok=True)
        back_up(directory() / "permit.db", copy)
        connection = sqlite3.connect(copy)
        lines = [line for line in connection.iterdump() if 'INSERT INTO "server"' not in line]
        connection.close()
        return lines

    def refused(self, what, method, target, body, status, reason, headers=None, names=""):
        """One request, refused as expected; then an honest one."""
        self.cases += 1
        try:
            self.check_refused(what, method, target, body, status, reason, headers, names)
        except AssertionError as error:
            self.failures.append(str(error))

    def check_refused(self, what, method, target, body, status, reason, headers, names):
        if target.startswith("/workflows") or target.startswith("/pools"):
            target = NAMESPACE + target
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode()
        if headers is None:
            headers = JSON if body is not None else {}
        got, _, answer = self.client.raw(method, target, body, headers)
        text = answer.decode(errors="replace")
        where = f"{what}: {method} {target[:80]} {(body or b'')[:80]}"
        where += f"\n  answered {got} {text[:500]}"
        check(got == status, f"{where}\n  expected {status} {reason}")
        answer = json.loads(text)
        found = answer["details"][0]["reason"]
        check(found == reason, f"{where}\n  expected {status} {reason}")
        self.check_sentence(answer["message"], where)
        check(names in text, f"{where}\n  does not name {names}")
        check(isinstance(answer["code"], int), where)
        honest = self.server.client()
        check(honest.info("honest")["execution"]["runId"] == self.run_id, where)
        honest.close()

    @staticmethod
    def check_sentence(message, where):
        check(10 <= len(message) <= 400, f"{where}\n  message of {len(message)} characters")
        check(message.isprintable(), f"{where}\n  unprintable message")
        leaks = re.search(r"sqlite|SELECT|INSERT|/tmp|\.cpp|std::|exception", message)
        check(not leaks, f"{where}\n  the message shows the inside")
        temporals_own = message.startswith("Workflow execution is already running. ")
        one = temporals_own or not re.search(r"[.!?] [A-Z]", message)
        check(one, f"{where}\n  more than one sentence")

    def all_refused(self, cases):
        """Rows of: what, method, target, body, status, reason[, options]."""
        self.ask_in_line()
        before = self.database()
        for case in cases:
            self.refused(*case[:6], **(case[6] if len(case) > 6 else {}))
        after = self.database()
        changed = set(before) ^ set(after)
        check(not changed, f"the database changed: {sorted(changed)[:4]}")


def malformed_json(world):
    def bad(what, body, reason="JSON_INVALID", status=400, **options):
        return (what, "POST", WORKFLOW, body, status, reason, options)

    many_keys = ",".join(f'"k{i}":1' for i in range(50_001))
    deep = "[" * 100 + "]" * 100
    world.all_refused(
        [
            # case 38: what is no JSON.
            bad("empty", ""),
            bad("spaces", "  "),
            bad("cut off", "{"),
            bad("cut off in a string", '{"identity":"a'),
            bad("cut off in a key", '{"iden'),
            bad("no value", '{"identity":}'),
            bad("single quotes", "{'identity':'a'}"),
            bad("bare key", "{identity:1}"),
            bad("trailing comma", START + ",}"),
            bad("no comma", '{"identity":"a" "requestId":"b"}'),
            bad("wrong bracket", START + "]"),
            bad("text after the end", START + "} x"),
            bad("a second object", START + "}{}"),
            bad("comment", START + "} // comment"),
            bad("comment inside", "{/**/}"),
            bad("byte order mark", b"\xef\xbb\xbf" + START.encode() + b"}"),
            bad("UTF-16", (START + "}").encode("utf-16")),
            bad("not UTF-8", b'{"identity":"\xff"}'),
            bad("overlong UTF-8", b'{"identity":"\xc0\xaf"}'),
            bad("UTF-8 surrogate", b'{"identity":"\xed\xa0\x80"}'),
            bad("cut-off UTF-8", b'{"identity":"\xe2\x82"}'),
            bad("lone surrogate", '{"identity":"\\ud800"}'),
            bad("surrogates the wrong way round", '{"identity":"\\udc00\\ud800"}'),
            bad("unknown escape", '{"identity":"\\x41"}'),
            bad("short escape", '{"identity":"\\u12"}'),
            bad("raw newline in a string", '{"identity":"a\nb"}'),
            bad("raw NUL in a string", b'{"identity":"a\x00b"}'),
            # case 36: no number of these is one.
            bad("NaN", START + ',"input":[NaN]}'),
            bad("Infinity", START + ',"input":[-Infinity]}'),
            bad("hexadecimal", START + ',"input":[0x10]}'),
            bad("leading zero", START + ',"input":[01]}'),
            bad("leading plus", START + ',"input":[+1]}'),
            bad("no digit after the point", START + ',"input":[1.]}'),
            bad("True", START + ',"input":[True]}'),
            bad("array", "[]", "FIELD_INVALID"),
            bad("null", "null", "FIELD_INVALID"),
            bad("number", "1", "FIELD_INVALID"),
            bad("string", '"x"', "FIELD_INVALID"),
            # cases 33, 34: too deep, too many.
            bad("a million brackets", "[" * 1_000_000, "FIELD_INVALID"),
            bad(
                "a million brackets inside", START + ',"input":' + "[" * 1_000_000, "JSON_TOO_DEEP"
            ),
            bad("nested too deep", START + f',"input":{deep}}}', "JSON_TOO_DEEP"),
            bad(
                "too many values",
                START + f',"input":[{",".join(["[]"] * 60_000)}]}}',
                "JSON_TOO_LARGE",
            ),
            bad(
                "too many keys",
                START + ',"memo":{"fields":{' + many_keys + "}}}",
                "JSON_TOO_LARGE",
            ),
            # case 35
            bad("duplicate key", '{"identity":"a","identity":"b"}', "JSON_DUPLICATE_KEY"),
            bad(
                "duplicate key, escaped",
                '{"identity":"a","\\u0069dentity":"b"}',
                "JSON_DUPLICATE_KEY",
            ),
            bad(
                "duplicate key in a payload",
                START + ',"input":[{"a":1,"a":2}]}',
                "JSON_DUPLICATE_KEY",
            ),
            # cases 41, 42: neither another type nor a coding, so no bomb either.
            bad("no Content-Type", START + "}", "CONTENT_TYPE_UNSUPPORTED", 415, headers={}),
            bad(
                "form",
                "a=b",
                "CONTENT_TYPE_UNSUPPORTED",
                415,
                headers={"Content-Type": "application/x-www-form-urlencoded"},
            ),
            bad(
                "plain text",
                START + "}",
                "CONTENT_TYPE_UNSUPPORTED",
                415,
                headers={"Content-Type": "text/plain"},
            ),
            bad(
                "compressed",
                START + "}",
                "CONTENT_ENCODING_UNSUPPORTED",
                415,
                headers={**JSON, "Content-Encoding": "gzip"},
            ),
            bad(
                "another site's page",
                START + "}",
                "ORIGIN_NOT_ALLOWED",
                403,
                headers={**JSON, "Origin": "https://evil.example"},
            ),
        ]
    )


def wrong_types_and_unknown_fields(world):
    def field(text, reason="FIELD_INVALID", status=400, names=""):
        return (text, "POST", WORKFLOW, START + "," + text + "}", status, reason, {"names": names})

    world.all_refused(
        [
            # case 40: what only the server may set.
            field('"status":"RUNNING"', "FIELD_UNKNOWN", names="status"),
            field('"fence":9', "FIELD_UNKNOWN", names="fence"),
            field('"runId":"x"', "FIELD_UNKNOWN", names="runId"),
            field('"parentWorkflowExecution":{}', "FIELD_UNKNOWN", names="parentWorkflowExecution"),
            field('"Identity":"x"', "FIELD_UNKNOWN", names="Identity"),
            field('"priority":{"key":1}', "FIELD_UNKNOWN", names="priority.key"),
            field('"memo":{"fields":{},"x":1}', "FIELD_UNKNOWN", names="memo.x"),
            field('"identity":5'),
            field('"identity":{}', names="identity"),
            field('"identity":["a"]'),
            field('"requestId":true'),
            field('"identity":"a\\u0000b"'),  # case 39
            field('"priority":[]', names="priority"),
            # case 37: whole numbers are not rounded.
            field('"priority":{"priorityKey":1.5}', names="priority.priorityKey"),
            field('"priority":{"priorityKey":"five"}'),
            field('"priority":{"priorityKey":99999999999}'),
            field('"priority":{"priorityKey":18446744073709551616}'),
            field('"priority":{"priorityKey":-9223372036854775809}'),
            field('"priority":{"priorityKey":9}', "PRIORITY_INVALID"),
            field('"priority":{"priorityKey":-1}', "PRIORITY_INVALID"),
            field('"priority":{"fairnessWeight":1e999}'),
            field('"workflowTaskTimeout":10'),
            field('"workflowTaskTimeout":"10"'),
            field('"workflowTaskTimeout":"10m"'),
            field('"workflowTaskTimeout":"1e3s"'),
            field('"workflowTaskTimeout":"99999999999999999999s"'),
            field('"workflowTaskTimeout":"-1s"', "DURATION_INVALID"),
            field('"workflowRunTimeout":"4000000000s"', "DURATION_INVALID"),
            field('"workflowIdReusePolicy":"SOMETIMES"', "ENUM_UNKNOWN"),
            field('"workflowIdReusePolicy":99', "ENUM_UNKNOWN"),
            field('"workflowIdReusePolicy":{}'),
            field('"memo":{"fields":[]}'),
            field('"header":7'),
            field('"cronSchedule":"* * * * *"', "FIELD_UNSUPPORTED", 501, "cronSchedule"),
            field('"retryPolicy":{"maximumAttempts":3}', "FIELD_UNSUPPORTED", 501, "retryPolicy"),
            field('"workflowStartDelay":"5s"', "FIELD_UNSUPPORTED", 501),
            field(f'"identity":"{"x" * 256}"', "NAME_INVALID"),
            field('"identity":"a\\nb"', "NAME_INVALID"),
            field(f'"requestId":"{"x" * 256}"', "NAME_INVALID"),
            field(f'"input":["{"x" * (2 * 1024 * 1024 + 1)}"]', "PAYLOAD_TOO_LARGE"),
            ("no type", "POST", WORKFLOW, '{"taskQueue":{"name":"q"}}', 400, "NAME_INVALID"),
            ("no queue", "POST", WORKFLOW, '{"workflowType":{"name":"T"}}', 400, "NAME_INVALID"),
            ("type as text", "POST", WORKFLOW, '{"workflowType":"T"}', 400, "FIELD_INVALID"),
            (
                "contradicting policies", "POST", WORKFLOW,
                START + ',"workflowIdReusePolicy":4,"workflowIdConflictPolicy":1}', 400,
                "POLICY_INVALID",
            ),
        ]
    )


def an_oversized_body(world):
    head = (
        f"POST {NAMESPACE}{WORKFLOW} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Content-Type: application/json\r\nContent-Length: {5 * 1024 * 1024}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", world.server.port), 10) as connection:
        connection.sendall(head.encode())
        answer = connection.recv(65536).decode()
    check(answer.startswith("HTTP/1.1 413 ") and "BODY_TOO_LARGE" in answer, answer)
    world.cases += 1


def ids_and_names(world):
    # case 45: what may be in a name. case 46: percent-encoding, decoded once and strictly.
    def workflow(id, status=400, reason="WORKFLOW_ID_INVALID"):
        return (f"workflow id {id}", "POST", f"/workflows/{id}", START + "}", status, reason)

    def pool(name, status=400, reason="POOL_NAME_INVALID"):
        return (f"pool {name}", "PUT", f"/pools/{name}", '{"capacity":1}', status, reason)

    def slots(names, reason="SLOT_NAME_INVALID"):
        return (f"slots {names}", "PUT", "/pools/new", {"slots": names}, 400, reason)

    world.all_refused(
        [
            workflow("", 400, "WORKFLOW_ID_INVALID"),
            workflow("x" * 256),
            workflow("..%2Fx%20"),
            workflow("%20lead"),
            workflow("trail%20"),
            workflow("a%0Ab"),
            workflow("a%22b"),
            workflow("%E2%80%AEabc"),  # right-to-left override
            workflow("%F0%9F%92%A5"),  # an emoji
            workflow("tr%D0%B0in"),  # a Cyrillic a
            workflow("%252e%252e"),  # encoded twice
            workflow("a%3Fb"),
            workflow("%", reason="TARGET_INVALID"),
            workflow("%zz", reason="TARGET_INVALID"),
            workflow("%2", reason="TARGET_INVALID"),
            workflow("a%00b", reason="TARGET_INVALID"),
            workflow("%C0%AF", reason="TARGET_INVALID"),
            workflow("%FF", reason="TARGET_INVALID"),
            workflow("permit:a:b:c", reason="PERMIT_ID_INVALID"),
            workflow("permit:gpu", reason="PERMIT_ID_INVALID"),
            workflow("permit::0", reason="PERMIT_ID_INVALID"),
            workflow("permit:gpu:", reason="PERMIT_ID_INVALID"),
            workflow("permit:gpu:%3F7"),
            workflow("permit:gpu:0", reason="PERMIT_TYPE_INVALID"),
            pool("a:b"),
            pool("x" * 65),
            pool("a%20b"),
            pool("a%2Fb"),
            pool("%D0%B0"),
            slots(["a:b"]),
            slots([""]),
            slots(["x" * 65]),
            slots(["a", "a"], "SLOTS_INVALID"),
            slots(["a b"]),
        ]
    )


def routes_and_parameters(world):
    def get(target, status, reason, **options):
        return (target, "GET", target, None, status, reason, options)

    history = "/workflows/honest/history?"
    page = base64.b64encode(b"1.1").decode()  # case 59: of another query, or made up
    held = f"/workflows/{world.permit['id']}/history?maximumPageSize=1&nextPageToken="
    run = base64.b64decode(world.client.get(held.rpartition("&")[0])["nextPageToken"]).split(b".")[0]
    before_first = base64.b64encode(run + b".0").decode()
    world.client.get(held + base64.b64encode(run + b".1").decode())
    world.all_refused(
        [
            get("/nothing", 404, "ROUTE_NOT_FOUND"),
            get("/api/v0/namespaces/default/pools", 404, "ROUTE_NOT_FOUND"),
            get("/api/v1/namespaces/default/pools/gpu/", 404, "ROUTE_NOT_FOUND"),
            get("//livez", 404, "ROUTE_NOT_FOUND"),
            get("/../../etc/passwd", 404, "ROUTE_NOT_FOUND"),
            get("/api/v1/namespaces/other/workflows/honest", 404, "NAMESPACE_NOT_FOUND"),
            get("/api/v1/namespaces/Default/workflows/honest", 404, "NAMESPACE_NOT_FOUND"),
            get("/workflows/nobody", 404, "WORKFLOW_NOT_FOUND"),
            get("/workflows/Honest", 404, "WORKFLOW_NOT_FOUND"),  # ids are compared byte by byte
            get("/workflows/honest?execution.runId=no-such", 404, "WORKFLOW_NOT_FOUND"),
            get(f"/workflows/honest?execution.runId={world.closed_run}", 404, "WORKFLOW_NOT_FOUND"),
            get("/workflows/honest?runId=x", 400, "PARAMETER_UNKNOWN", names="runId"),
            get("/workflows/honest?execution.runId=a&execution.runId=b", 400, "PARAMETER_INVALID"),
            get("/workflows/honest?execution.runId=%zz", 400, "TARGET_INVALID"),
            get(history + "waitNewEvent=maybe", 400, "PARAMETER_INVALID"),
            get(history + "maximumPageSize=many", 400, "PARAMETER_INVALID"),
            get(history + "maximumPageSize=99999999999", 400, "PARAMETER_INVALID"),
            get(history + "historyEventFilterType=9", 400, "PARAMETER_INVALID"),
            get(history + "nextPageToken=!!", 400, "PAGE_TOKEN_INVALID"),
            get(history + "nextPageToken=Zm9yZ2Vk", 400, "PAGE_TOKEN_INVALID"),
            get(history + f"nextPageToken={page}", 400, "PAGE_TOKEN_INVALID"),  # another run's
            get(held + before_first, 400, "PAGE_TOKEN_INVALID"),  # of what comes before all events
            get("/pools/gpv", 404, "POOL_NOT_FOUND", names="gpu"),
            get("/pools/gpu/waiters?page=2", 400, "PARAMETER_UNKNOWN"),
            get(NAMESPACE + "/permits/gpu:0", 400, "PERMIT_ID_INVALID"),
            get(NAMESPACE + "/permits/permit:gpu:7", 404, "WORKFLOW_NOT_FOUND"),
            get("/workflows/honest/history-reverse", 501, "NOT_OFFERED"),
            ("reset", "POST", "/workflows/honest/reset", "{}", 501, "NOT_OFFERED"),
            ("DELETE", "DELETE", "/workflows/honest", None, 405, "METHOD_NOT_ALLOWED"),
            ("PUT", "PUT", "/workflows/honest", "{}", 405, "METHOD_NOT_ALLOWED"),
            ("PATCH", "PATCH", "/workflows/honest", "{}", 501, "METHOD_UNKNOWN"),
            ("lower case", "get", "/workflows/honest", None, 501, "METHOD_UNKNOWN"),
            ("GET with a body", "GET", "/pools", "{}", 400, "BODY_NOT_ALLOWED"),
            ("no such call", "POST", RPC + "NoSuchCall", "{}", 404, "ROUTE_NOT_FOUND"),
            ("GET of a call", "GET", POLL, None, 405, "METHOD_NOT_ALLOWED"),
            ("time", "POST", "/api/v1/test/advance", '{"seconds":1}', 404, "ROUTE_NOT_FOUND"),
            ("long target", "GET", "/" + "x" * 3000, None, 414, "TARGET_TOO_LONG"),
        ]
    )


def stale_and_forged_task_tokens(world):
    def token(what, token, status=404, reason="TASK_NOT_FOUND", rpc=COMPLETE):
        body = {"namespace": "default", "taskToken": token}
        return (what, "POST", rpc, body, status, reason)

    raw = base64.b64decode(world.token)
    kind, run_number, event, attempt, nonce, seal = raw.decode().split(".")

    def forged(*parts):
        """With the seal of the token that it is made from."""
        return base64.b64encode(".".join((*parts, seal)).encode()).decode()

    flipped = bytes([*raw[:-1], raw[-1] ^ 1])
    complete_activity = RPC + "RespondActivityTaskCompleted"
    heartbeat = RPC + "RecordActivityTaskHeartbeat"
    fail = RPC + "RespondWorkflowTaskFailed"
    cases = [  # case 51
        token("no token", ""),
        token("not base64", "!!!", 400, "FIELD_INVALID"),
        token("not text", 5, 400, "FIELD_INVALID"),
        token("random", base64.b64encode(b"\x00\x01\xff").decode()),
        token("long", base64.b64encode(b"w" * 100_000).decode()),
        token("cut off", base64.b64encode(raw[:-3]).decode()),
        token("bit flipped", base64.b64encode(flipped).decode()),
        token("without its seal", base64.b64encode(raw[:-33]).decode()),
        token("under another seal", base64.b64encode(raw[:-32] + b"0" * 32).decode()),
        token("longer", base64.b64encode(raw + b"0").decode()),
        token("another run's", forged(kind, str(int(run_number) - 1), event, attempt, nonce)),
        token("no such run", forged(kind, "999999", event, attempt, nonce)),
        token("number too large", forged(kind, "9" * 30, event, attempt, nonce)),
        token("negative", forged(kind, "-1", event, attempt, nonce)),
        token("next attempt", forged(kind, run_number, event, "2", nonce)),
        token("guessed nonce", forged(kind, run_number, event, attempt, "1")),
        token("used before", world.used_token),
        token("used before, failing", world.used_token, rpc=fail),
        token("an activity's for a workflow task", world.activity),
        token("a workflow task's for an activity", world.token, rpc=complete_activity),
        token("forged heartbeat", forged("a", run_number, event, attempt, "1"), rpc=heartbeat),
    ]
    by_id = "/workflows/honest/activities/"
    cases += [
        ("no such activity", "POST", by_id + "b/complete", "{}", 404, "TASK_NOT_FOUND"),
        ("no such activity", "POST", by_id + "b/heartbeat", "{}", 404, "TASK_NOT_FOUND"),
        (
            "of nobody", "POST", "/workflows/nobody/activities/a/complete", "{}", 404,
            "WORKFLOW_NOT_FOUND",
        ),
        (
            "of a closed run", "POST", "/workflows/closed/activities/a/fail", "{}", 404,
            "WORKFLOW_ALREADY_COMPLETED",
        ),
        ("no failure", "POST", by_id + "a/fail", "{}", 400, "FAILURE_MISSING"),
        ("no namespace", "POST", POLL, '{"taskQueue":{"name":"q"}}', 404, "NAMESPACE_NOT_FOUND"),
        ("no queue", "POST", POLL, '{"namespace":"default"}', 400, "NAME_INVALID"),
        (
            "long queue", "POST", POLL, {"namespace": "default", "taskQueue": {"name": "q" * 256}},
            400, "NAME_INVALID",
        ),
    ]
    world.all_refused(cases)


def completions_with_commands_that_may_not_be(world):
    def body(*commands):
        return {"namespace": "default", "taskToken": world.token, "commands": list(commands)}

    def refused(what, body, reason, status=400, **options):
        return (what, "POST", COMPLETE, body, status, reason, options)

    timer = command("StartTimer", timerId="t", startToFireTimeout="1s")
    world.all_refused(  # case 53
        [
            refused(
                "no such command", body({"commandType": "COMMAND_TYPE_FLY"}), "COMMAND_UNKNOWN"
            ),
            refused("no command type", body({}), "FIELD_INVALID"),
            refused("command as text", body("StartTimer"), "FIELD_INVALID"),
            refused(
                "attributes of another",
                body({**timer, "commandType": "COMMAND_TYPE_CANCEL_TIMER"}), "FIELD_INVALID",
            ),
            refused(
                "unknown attribute", body(command("StartTimer", timerId="t", colour="red")),
                "FIELD_UNKNOWN", names="commands[0]",
            ),
            refused("after the close", body(complete_workflow(), timer), "COMMAND_AFTER_CLOSE"),
            refused(
                "too many", body(*[command("RecordMarker", markerName="m")] * 10_001),
                "COMMANDS_LIMIT",
            ),
        ]
    )

    # These fail the task, as Temporal has it: the worker's code is wrong, and it is told so once.
    client = world.client
    child = "StartChildWorkflowExecution"
    wrong = [
        ("no timer id", [command("StartTimer", startToFireTimeout="1s")]),
        ("no time", [command("StartTimer", timerId="t")]),
        ("timer twice", [timer, timer]),
        ("no such timer", [command("CancelTimer", timerId="none")]),
        ("no such activity", [command("RequestCancelActivityTask", scheduledEventId="99")]),
        (
            "activity without a type",
            [command("ScheduleActivityTask", activityId="x", startToCloseTimeout="1s")],
        ),
        (
            "activity without a timeout",
            [command("ScheduleActivityTask", activityId="x", activityType={"name": "A"})],
        ),
        ("child without an id", [command(child, workflowType={"name": "T"})]),
        ("child with a bad id", [command(child, workflowId="a b", workflowType={"name": "T"})]),
        (
            "child of another namespace",
            [command(child, namespace="other", workflowId="x", workflowType={"name": "T"})],
        ),
        (
            "permit of another type",
            [command(child, workflowId="permit:gpu:0", workflowType={"name": "T"})],
        ),
        ("abandoned permit", [command(child, permit={"pool": "gpu"}, parentClosePolicy="ABANDON")]),
        ("permit with an id", [command(child, workflowId="permit:gpu:0", permit={"pool": "gpu"})]),
        ("bad pool", [command(child, permit={"pool": "g p u"})]),
        ("endless lease", [command(child, permit={"pool": "gpu", "lease": "99999999999s"})]),
        (
            "release without a run",
            [
                command(
                    "SignalExternalWorkflowExecution",
                    signalName="release",
                    execution={"workflowId": "permit:gpu:0"},
                ),
            ],
        ),
        ("failure missing", [command("FailWorkflowExecution")]),
    ]
    for what, commands in wrong:
        workflow = "wrong-" + what.replace(" ", "-")
        client.start(workflow, queue=workflow)
        task = client.poll(workflow)
        message = {"namespace": "default", "taskToken": task["taskToken"], "commands": commands}
        world.refused(what, "POST", COMPLETE, message, 400, "COMMAND_REJECTED")
        events = client.history(workflow)
        check(len(events_of(events, "WorkflowTaskFailed")) == 1, f"{what}: {events}")
        started = events_of(events, "WorkflowTaskCompleted")
        check(not started, f"{what}: a part of the completion was taken")
        again = client.poll(workflow)  # offered again, and an honest answer is taken
        check(again["attempt"] == 2, again)
        client.complete(again, complete_workflow())


def runs_that_are_not_what_the_caller_thinks(world):
    def post(what, path, body, status, reason, names=""):
        return (what, "POST", "/workflows/" + path, body, status, reason, {"names": names})

    start = START + "}"
    again = START + ',"requestId":"honest-1"}'
    other_run = {"workflowExecution": {"runId": world.closed_run}}
    other_chain = {"firstExecutionRunId": world.closed_run}
    terminating = PERMIT_START + ',"workflowIdConflictPolicy":"TERMINATE_EXISTING"}'
    permit = "permit:gpu:0"
    holder = world.permit["runId"]
    done, unknown = "WORKFLOW_ALREADY_COMPLETED", "WORKFLOW_NOT_FOUND"
    running, policy = "WORKFLOW_ALREADY_STARTED", "PERMIT_POLICY_INVALID"
    world.all_refused(
        [
            # case 48; case 49: the same request id for another request; cases 50, 55: of what has closed.
            post("start of a running id", "honest", start, 409, running, world.run_id),
            post("another's request id", "honest", again, 409, "REQUEST_ID_REUSED"),
            post("signal to nobody", "nobody/signal/s", "{}", 404, unknown),
            post("signal to a closed run", "closed/signal/s", "{}", 404, done),
            post("signal to another id's run", "honest/signal/s", other_run, 404, unknown),
            post("long signal name", "honest/signal/" + "s" * 256, "{}", 400, "NAME_INVALID"),
            post("cancel of a closed run", "closed/cancel", "{}", 404, done),
            post("cancel of another chain", "honest/cancel", other_chain, 404, unknown),
            post("terminate twice", "closed/terminate", "{}", 404, done),
            post("terminate another's run", "honest/terminate", other_run, 404, unknown),
            # Permits: every release names its run.
            post("no run", permit + "/signal/release", "{}", 400, "RUN_ID_REQUIRED", holder),
            post("no run", permit + "/signal/renew", "{}", 400, "RUN_ID_REQUIRED", holder),
            post("another run", permit + "/signal/release", other_run, 404, unknown),
            post("a held permit", permit, PERMIT_START + "}", 409, running, holder),
            post("no timeout", "permit:rigs:a", PERMIT_UNTIMED + "}", 409, "PERMIT_REFUSED"),
            post("no such slot", "permit:rigs:z", PERMIT_START + "}", 409, "PERMIT_REFUSED"),
            post("over a running permit", permit, terminating, 400, policy),
            post(
                "signal with start of a permit", permit + "/signal-with-start/release",
                PERMIT_UNTIMED + "}", 400, policy,
            ),
        ]
    )


def pools_and_holders(world):
    def put(settings, reason, status=400):
        return (f"pool {settings}", "PUT", "/pools/gpu", settings, status, reason)

    def acquire(request, reason, status=400, pool="gpu", names=""):
        if not isinstance(request, str):
            request = {"requestId": "new", "wait": "0s", **request}
        what, path = f"acquire {request}", f"/pools/{pool}/acquire"
        return (what, "POST", path, request, status, reason, {"names": names})

    def holder(verb, body, reason, status=400, id="permit:gpu:0", names=""):
        what, target = f"{verb} {body}", f"{NAMESPACE}/permits/{id}/{verb}"
        return (what, "POST", target, body, status, reason, {"names": names})

    # cases 43, 44: leases and capacities; case 50: releases by those who do not hold it.
    token = world.grant["token"]
    fence = world.grant["fence"]
    lost = ("LEASE_LOST", 410)
    world.all_refused(
        [
            put({"capacity": -1}, "CAPACITY_INVALID"),
            put({"capacity": 1_000_000_000}, "CAPACITY_INVALID"),
            put({"capacity": 1.5}, "FIELD_INVALID"),
            put({"capacity": "many"}, "FIELD_INVALID"),
            put({"capacity": 1, "slots": ["a"]}, "POOL_INVALID"),
            put({"rate": {"perSecond": 0, "burst": 1}}, "RATE_INVALID"),
            put({"rate": {"perSecond": 1, "burst": 0}}, "RATE_INVALID"),
            put({"rate": {"perSecond": -1, "burst": 1}}, "RATE_INVALID"),
            put('{"rate":{"perSecond":1e999,"burst":1}}', "FIELD_INVALID"),
            put({"order": "fastest"}, "ENUM_UNKNOWN"),
            put({"held": 0}, "FIELD_UNKNOWN"),
            put({"drained": True}, "FIELD_UNKNOWN"),
            ("unknown pool", "PUT", "/pools/none", {"order": "fair"}, 404, "POOL_NOT_FOUND"),
            ("delete a held pool", "DELETE", "/pools/gpu", None, 409, "POOL_IN_USE"),
            ("delete no pool", "DELETE", "/pools/none", None, 404, "POOL_NOT_FOUND"),
            ("drain no pool", "POST", "/pools/none/drain", "{}", 404, "POOL_NOT_FOUND"),
            ("drain no slot", "POST", "/pools/gpu/drain", {"slot": "9"}, 404, "SLOT_NOT_FOUND"),
            ("waiters of no pool", "GET", "/pools/none/waiters", None, 404, "POOL_NOT_FOUND"),
            ("no such waiter", "DELETE", NAMESPACE + "/waiters/999", None, 404, "WAITER_NOT_FOUND"),
            ("waiter 0", "DELETE", NAMESPACE + "/waiters/0", None, 400, "WAITER_ID_INVALID"),
            ("waiter x", "DELETE", NAMESPACE + "/waiters/x", None, 400, "WAITER_ID_INVALID"),
            ("waiter 1e3", "DELETE", NAMESPACE + "/waiters/1e3", None, 400, "WAITER_ID_INVALID"),
            acquire({}, "POOL_FULL", 423),
            acquire({}, "POOL_NOT_FOUND", 404, pool="gpo", names="gpu"),
            acquire('{"holder":"x"}', "NAME_INVALID", names="requestId"),
            acquire({"requestId": "holder"}, "REQUEST_ID_REUSED", 409),
            acquire({"requestId": "waiter", "holder": "other"}, "REQUEST_ID_REUSED", 409),
            acquire({"count": 2}, "CANNOT_FIT", 422),
            acquire({"count": -1}, "COUNT_INVALID"),
            acquire({"count": 10_001}, "COUNT_INVALID"),
            acquire({"only": ["9"]}, "CANNOT_FIT", 422),
            acquire({"lease": "-1s"}, "LEASE_INVALID"),
            acquire({"lease": "1000000000s"}, "LEASE_INVALID"),
            acquire({"lease": "1e12s"}, "FIELD_INVALID"),
            acquire({"lease": "NaNs"}, "FIELD_INVALID"),
            acquire({"lease": 60}, "FIELD_INVALID"),
            acquire({"maxHold": "-1s"}, "DURATION_INVALID"),
            acquire({"waitTimeout": "-1s"}, "DURATION_INVALID"),
            acquire({"order": "fast"}, "ENUM_UNKNOWN"),
            acquire({"priority": 6}, "PRIORITY_INVALID"),
            acquire({"priority": -1}, "PRIORITY_INVALID"),
            acquire({"holder": "a\tb"}, "NAME_INVALID"),
            acquire({"holder": "x" * 256}, "NAME_INVALID"),
            acquire({"reason": "x" * 1001}, "LABELS_INVALID"),
            acquire({"labels": {str(i): "x" for i in range(33)}}, "LABELS_INVALID"),
            acquire({"labels": {"": "x"}}, "NAME_INVALID"),
            acquire({"labels": ["x"]}, "FIELD_INVALID"),
            acquire({"fence": 1}, "FIELD_UNKNOWN", names="fence"),
            acquire({"token": "x"}, "FIELD_UNKNOWN"),
            holder("renew", {"token": "0" * 32}, *lost),
            holder("renew", {"token": ""}, *lost),
            holder("renew", {}, *lost),
            holder("renew", {"token": token[:-1]}, *lost),
            holder("renew", {"token": token + "0"}, *lost),
            holder("renew", {"token": token.upper()}, *lost),
            holder("renew", {"token": token, "lease": "-5s"}, "LEASE_INVALID"),
            holder("renew", {"token": token, "lease": "forever"}, "FIELD_INVALID"),
            holder("release", {"token": "0" * 32}, *lost),
            holder("release", {"token": token}, *lost, id="permit:rigs:a"),  # another pool's
            holder("release", {"token": token}, *lost, id="permit:none:0"),
            holder("release", {"token": token}, "PERMIT_ID_INVALID", id="gpu"),
            holder("release", {"token": token}, "PERMIT_ID_INVALID", id="honest"),
            holder("force-release", {}, "RUN_ID_REQUIRED"),
            holder(
                "force-release",
                {"runId": world.run_id},
                "HOLDER_CHANGED",
                409,
                names=world.permit["runId"],
            ),
            holder("force-release", {"fence": fence + 1}, "HOLDER_CHANGED", 409),
            holder("force-release", {"fence": fence - 1 or 99}, "HOLDER_CHANGED", 409),
            holder("force-release", {"runId": "x"}, "PERMIT_NOT_HELD", 404, id="permit:rigs:a"),
            holder("force-release", {"fence": "one"}, "FIELD_INVALID"),
        ]
    )


def a_differing_belief(world):
    """Until an operator has set a pool, callers must agree on its slots."""
    client = world.client
    client.start("believer", queue="believer")
    permit = {"pool": "believed", "slots": ["0", "1"], "lease": "60s"}
    client.complete(client.poll("believer"), command("StartChildWorkflowExecution", permit=permit))
    body = {"requestId": "x", "slots": ["0", "1", "2", "3"], "wait": "0s"}
    world.refused("belief", "POST", "/pools/believed/acquire", body, 409, "CAPACITY_MISMATCH")


def what_looks_like_sql_is_text(world):
    """case 47: stored as it came, in every string that takes it."""
    client = world.client
    text = "x'); DROP TABLE runs; --\" \\ % _ ☃"
    permit = client.acquire("rigs", text, holder=text, reason=text, labels={text: text})
    slot = permit["slots"][0]
    shown = client.permit(slot["id"])
    check((shown["holder"], shown["reason"]) == (text, text), shown)
    check(client.acquire("rigs", text, holder=text)["fence"] == permit["fence"], "same request id")
    client.release(slot["id"], permit["token"])
    client.start("text", queue=text, requestId=text, identity=text, input=[text, "\0"])
    task = client.poll(text)
    started = events_of(task, "WorkflowExecutionStarted")[0]
    check((started["identity"], started["requestId"]) == (text, text), started)
    client.complete(task, command("RecordMarker", markerName=text), complete_workflow(text))
    check(
        client.history("text")[0]["workflowExecutionStartedEventAttributes"]["input"] == [
            text,
            "\0",
        ],
        "input",
    )


def the_honest_go_on(world):
    """Nothing of all this has harmed those who were there before."""
    client = world.client
    world.client.complete(world.token)
    client.rpc("RespondActivityTaskCompleted", taskToken=world.activity)
    again = {"namespace": "default", "taskToken": world.activity}  # case 52
    world.refused(
        "an activity twice",
        "POST",
        RPC + "RespondActivityTaskCompleted",
        again,
        404,
        "TASK_NOT_FOUND",
    )
    again = {"namespace": "default", "taskToken": world.token}
    world.refused("a task twice", "POST", COMPLETE, again, 404, "TASK_NOT_FOUND")
    client.renew("permit:gpu:0", world.grant["token"])
    client.release("permit:gpu:0", world.grant["token"])
    granted = client.acquire("gpu", "waiter", holder="patient")
    check(granted["state"] == "granted" and granted["fence"] > world.grant["fence"], granted)
    for target in ("permit:gpu:0/release", "permit:gpu:0/renew"):
        body = {"token": world.grant["token"]}
        world.refused(
            "a lost permit", "POST", f"{NAMESPACE}/permits/{target}", body, 410, "LEASE_LOST"
        )
    body = {"workflowExecution": {"runId": world.permit["runId"]}}
    closed = "/workflows/permit:gpu:0/signal/release"
    world.refused("a closed permit", "POST", closed, body, 404, "WORKFLOW_ALREADY_COMPLETED")
    check(client.permit("permit:gpu:0")["state"] == "held", "the next holder was not touched")


def main():
    with Server(directory() / "permit.db") as server:
        world = World(server)

        def bound(case):
            def run_it():
                case(world)
                check(not world.failures, "\n\n".join(["", *world.failures]))

            run_it.__name__ = case.__name__
            return run_it

        cases = [
            malformed_json,
            wrong_types_and_unknown_fields,
            an_oversized_body,
            ids_and_names,
            routes_and_parameters,
            stale_and_forged_task_tokens,
            completions_with_commands_that_may_not_be,
            runs_that_are_not_what_the_caller_thinks,
            pools_and_holders,
            a_differing_belief,
            what_looks_like_sql_is_text,
            the_honest_go_on,
        ]
        run(*[bound(case) for case in cases])
        check(server.stop() == 0, "exit code")
        logged = [line for line in server.errors if "no worker serves the permits" not in line]
        check(not logged, f"the server logged: {logged}")
        print(f"{world.cases} bad requests")


main()
