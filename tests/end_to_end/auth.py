#!/usr/bin/env python3
"""API keys: who may ask what, of every route; and what nobody may find out, get past or switch off."""

import contextlib
import fcntl
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import sqlite3
import struct
import subprocess
import sys
import threading
import time

from support import (BINARY, NAMESPACE, REPOSITORY, RPC, Client, Refused, Server, Unknown, Worker, check, command,
                     directory, eventually, run)

ROLES = ["open", "read", "worker", "admin"]
WRONG = "permit_" + "W" * 43
PERMIT_RPC = "/permit.api.v1.PermitService/"
JSON = {"Content-Type": "application/json"}


def permit(*words, code=0, **environment):
    """One command. Returns (stdout, stderr)."""
    base = {"HOME": str(directory()), "PATH": os.environ["PATH"], "TZ": "UTC"}
    done = subprocess.run([BINARY, *map(str, words)], env={**base, **environment}, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=30)
    check(done.returncode == code, f"{words}: exit {done.returncode}, not {code}\n{done.stdout}{done.stderr}")
    return done.stdout, done.stderr


def make_key(database, name, role, *more):
    """In a database that no server runs on. Returns the secret."""
    return permit("api-key", "create", name, "--role", role, "--database", database, *more)[0].strip()


class Keyed(Client):
    """A client that sends a key; or other headers of its own."""

    def __init__(self, port, key=None, source="127.0.0.1", headers=None, timeout=20):
        super().__init__(port, timeout)
        self.headers = {**({"Authorization": f"Bearer {key}"} if key else {}), **(headers or {})}
        self.source = source

    def raw(self, method, target, body=None, headers=None):
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, self.timeout,
                                                         source_address=(self.source, 0))
        headers = dict(JSON if headers is None and body is not None else headers or {})
        return super().raw(method, target, body, {**headers, **self.headers})

    def reason(self, method, target, body=None):
        """(status, reason) of what may be refused."""
        status, head, answer = self.raw(method, target, None if body is None else json.dumps(body))
        challenge = head.get("WWW-Authenticate", "")
        check((status == 401) == challenge.startswith("Bearer"), f"{method} {target}: {status} {challenge}")
        try:
            return status, json.loads(answer)["details"][0]["reason"]
        except (ValueError, KeyError, TypeError):
            return status, ""


class Guarded:
    """A server that asks for keys, with one of each role: keys["read"], ..."""

    def __init__(self, name, *arguments, auth=True, **more):
        self.database = directory() / f"{name}.db"
        self.keys = {role: make_key(self.database, f"the-{role}", role) for role in ROLES[1:]}
        self.arguments = [*(("--auth", "keys") if auth else ()), *arguments]
        self.more = more
        self.server = None

    def start(self):
        self.server = Server(self.database, *self.arguments, **self.more)
        return self.server

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.server.__exit__()

    def client(self, role=None, **more):
        return Keyed(self.server.port, self.keys.get(role, role), **more)


# --- Every route, for everybody ---


def operations(client):
    """(method, target, body, role) of every route, as the server's own document has them."""
    document = client.ask("GET", "/openapi.json")
    for path, item in document["paths"].items():
        for method, operation in item.items():
            check(operation.get("x-role") in ROLES, f"{method} {path} says no role: {operation.get('x-role')}")
            open_to_all = operation["x-role"] == "open"
            check(("security" in operation) == open_to_all, f"{method} {path}: security")
            target = re.sub(r"{(\w+)}", lambda found: "default" if found[1] == "namespace" else "x", path)
            body = {} if "requestBody" in operation else None
            yield method.upper(), target, body, operation["x-role"]


def status_of(client, method, target, body):
    """The status, and nothing more of a stream than that."""
    if not target.endswith("/events"):
        return client.reason(method, target, body)
    connection = http.client.HTTPConnection("127.0.0.1", client.port, 10, source_address=(client.source, 0))
    with contextlib.closing(connection):
        connection.request(method, target, headers=client.headers)
        answer = connection.getresponse()
        reason = "" if answer.status == 200 else json.loads(answer.read())["details"][0]["reason"]
        return answer.status, reason


def is_let_in(answer):
    """Whatever came of it then: a login without a key in its body fails, for one."""
    return answer[1] not in ("API_KEY_MISSING", "ROLE_TOO_LOW") and (answer[0] not in (401, 403) or
                                                                     answer == (401, "API_KEY_WRONG"))


def every_route_has_its_role():
    """Case 63, and case 84 of /metrics: each route, for each role and for nobody."""
    with Guarded("matrix", "--virtual-time") as world:
        admin = world.client("admin")
        secrets = {}
        for name in ("revoked", "expired"):
            more = {"lifetime": "60s"} if name == "expired" else {}
            made = admin.post("/api-keys", {"name": name, "role": "admin", **more})
            secrets[name] = made["secret"]
        admin.ask("DELETE", NAMESPACE + "/api-keys/revoked")
        admin.ask("POST", "/api/v1/test/advance", {"seconds": 61})
        refusals = {None: "API_KEY_MISSING", WRONG: "API_KEY_WRONG", secrets["revoked"]: "API_KEY_REVOKED",
                    secrets["expired"]: "API_KEY_EXPIRED"}
        routes = list(operations(admin))
        check(len(routes) > 120, f"only {len(routes)} routes")
        needed = {}
        for number, (method, target, body, role) in enumerate(routes):
            needed.setdefault(role, []).append(target)
            # Wrong keys in a hurry: from another address each time.
            source = f"127.0.{1 + number // 200}.{1 + number % 200}"
            for key, reason in refusals.items():
                got = status_of(world.client(key, source=source), method, target, body)
                if key is None and role == "open":
                    check(is_let_in(got), f"{method} {target} without a key: {got}")
                else:
                    check(got == (401, reason) or method == "HEAD" and got[0] == 401,
                          f"{method} {target} with {reason}: {got}")
            for caller in ROLES[1:]:
                got = status_of(world.client(caller), method, target, body)
                may = ROLES.index(caller) >= ROLES.index(role)
                if may:
                    check(is_let_in(got), f"{method} {target} as {caller}: {got}")
                else:
                    check(got == (403, "ROLE_TOO_LOW"), f"{method} {target} as {caller}: {got}")
        # What stands in the table by hand, so that a slip of the pen there is seen here.
        for target in ("/metrics", NAMESPACE + "/pools", NAMESPACE + "/events", RPC + "QueryWorkflow"):
            check(target in needed["read"], target)
        for target in (RPC + "StartWorkflowExecution", RPC + "PollWorkflowTaskQueue", RPC + "RespondWorkflowTaskCompleted",
                       NAMESPACE + "/pools/x/acquire", PERMIT_RPC + "ReleasePermit"):
            check(target in needed["worker"], target)
        for target in (RPC + "TerminateWorkflowExecution", NAMESPACE + "/workflows/x/terminate", "/api/v1/test/advance",
                       NAMESPACE + "/pools/x/drain", NAMESPACE + "/permits/x/force-release", NAMESPACE + "/waiters/x",
                       NAMESPACE + "/api-keys", PERMIT_RPC + "SetPool", PERMIT_RPC + "CreateApiKey"):
            check(target in needed["admin"], target)
        open_ones = {"/", "/assets/x", "/favicon.ico", "/livez", "/readyz", "/openapi.json", "/api/v1/login",
                     "/api/v1/logout"}
        check(set(needed["open"]) == open_ones, needed["open"])
        print(f"    {len(routes)} routes: " + ", ".join(f"{len(needed[role])} {role}" for role in ROLES))


def what_is_asked_counts_not_only_where():
    """Case 63 of the inner objects: what a body asks for takes a role, and a namespace, too."""
    with Guarded("inner") as world:
        worker, admin = world.client("worker"), world.client("admin")
        worker.start("mine")
        for more in ({"workflowIdConflictPolicy": "WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING"},
                     {"workflowIdReusePolicy": "WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING"}):
            start = {"workflowType": {"name": "T"}, "taskQueue": {"name": "q"}, **more}
            for target, body in ((f"{NAMESPACE}/workflows/mine", start),
                                 (RPC + "StartWorkflowExecution", {"namespace": "default", "workflowId": "mine", **start}),
                                 (f"{NAMESPACE}/workflows/mine/signal-with-start/s", start)):
                check(worker.reason("POST", target, body) == (403, "ROLE_TOO_LOW"), target)
        check(admin.info("mine")["status"].endswith("RUNNING"), "a worker's key has ended a run")
        admin.start("mine", workflowIdConflictPolicy="WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING")

        # A completion with a command that aims elsewhere is refused with all the others in it.
        timer = command("StartTimer", timerId="t", startToFireTimeout="60s")
        for number, bad in enumerate((
                    command("StartChildWorkflowExecution", namespace="other", workflowId="child",
                            workflowType={"name": "T"}),
                    command("SignalExternalWorkflowExecution", namespace="other", execution={"workflowId": "x"},
                            signalName="s"),
                    command("RequestCancelExternalWorkflowExecution", namespace="other", workflowId="x"))):
            worker.start(f"aims-{number}", queue=f"queue-{number}")
            with contextlib.suppress(Refused):
                worker.complete(worker.poll(f"queue-{number}"), timer, bad)
            events = [event["eventType"] for event in worker.history(f"aims-{number}")]
            check("EVENT_TYPE_TIMER_STARTED" not in events and "EVENT_TYPE_WORKFLOW_TASK_FAILED" in events, events)
        task = worker.poll()
        for target, body in ((RPC + "PollWorkflowTaskQueue", {"namespace": "other", "taskQueue": {"name": "q"}}),
                             ("/api/v1/namespaces/other/pools/p/acquire", {"requestId": "r"})):
            check(worker.reason("POST", target, body) == (404, "NAMESPACE_NOT_FOUND"), target)
        refused = admin.reason("POST", "/api/v1/namespaces/other/api-keys", {"name": "o", "role": "read"})
        check(refused == (404, "NAMESPACE_NOT_FOUND"), refused)

        # A key of another namespace, as only another server could have made it.
        world.server.stop()
        with contextlib.closing(sqlite3.connect(world.database)) as rows:
            rows.execute("UPDATE api_keys SET namespace = 'other' WHERE name = 'the-worker'")
            rows.commit()
            rows.execute("VACUUM")  # pages without a seal: else this change would be damage
        world.start()
        stranger = world.client("worker")
        for method, target, body in (("GET", NAMESPACE + "/pools", None), ("GET", NAMESPACE + "/workflows/mine", None),
                                     ("POST", NAMESPACE + "/pools/p/acquire", {"requestId": "r"}),
                                     ("POST", RPC + "PollWorkflowTaskQueue", {"namespace": "default", "taskQueue": {"name": "work"}}),
                                     ("POST", RPC + "RespondWorkflowTaskCompleted", {"taskToken": task["taskToken"]})):
            got = stranger.reason(method, target, body)
            check(got == (404, "NAMESPACE_NOT_FOUND"), f"{method} {target} with a key of another namespace: {got}")


# --- Keys that are none ---


def raw_answer(port, *lines, source="127.0.0.1"):
    with contextlib.closing(socket.create_connection(("127.0.0.1", port), 10, (source, 0))) as peer:
        head = [*lines, f"Host: 127.0.0.1:{port}", "Connection: close", "", ""]
        peer.sendall("\r\n".join(head).encode())
        answer = b""
        while part := peer.recv(65536):
            answer += part
        return int(answer.split(b" ", 2)[1]), answer.decode()


def what_is_no_key_is_refused():
    """Cases 61, 66: none, the wrong scheme, too long, twice, in the query."""
    with Guarded("wrong", log_level="debug") as world:
        port, good = world.server.port, world.keys["read"]
        get = f"GET {NAMESPACE}/pools HTTP/1.1"
        cases = [
            ("none", [get], 401, "API_KEY_MISSING"),
            ("another scheme", [get, "Authorization: Basic dXNlcjpwYXNz"], 401, "API_KEY_WRONG"),
            ("no scheme", [get, f"Authorization: {good}"], 401, "API_KEY_WRONG"),
            ("a scheme only", [get, "Authorization: Bearer"], 401, "API_KEY_WRONG"),
            ("a prefix of one", [get, f"Authorization: Bearer {good[:-1]}"], 401, "API_KEY_WRONG"),
            ("more than one", [get, f"Authorization: Bearer {good}x"], 401, "API_KEY_WRONG"),
            ("one with a space", [get, f"Authorization: Bearer  {good}"], 401, "API_KEY_WRONG"),
            ("3 kB", [get, f"Authorization: Bearer permit_{'a' * 3000}"], 401, "API_KEY_WRONG"),
            ("10 kB", [get, f"Authorization: Bearer permit_{'a' * 10_000}"], 431, ""),
            ("two", [get, f"Authorization: Bearer {good}", f"Authorization: Bearer {good}"], 400, "HEADER_REPEATED"),
            ("two, one wrong", [get, f"Authorization: Bearer {WRONG}", f"Authorization: Bearer {good}"], 400,
             "HEADER_REPEATED"),
            ("in the query", [f"GET {NAMESPACE}/pools?access_token={good} HTTP/1.1"], 400, "API_KEY_IN_TARGET"),
            ("in the query and right", [f"GET {NAMESPACE}/pools?pool={good} HTTP/1.1", f"Authorization: Bearer {good}"],
             400, "API_KEY_IN_TARGET"),
            ("any in the query", [f"GET {NAMESPACE}/pools?api_key=something HTTP/1.1"], 400, "API_KEY_IN_TARGET"),
            ("in the path", [f"GET /{good} HTTP/1.1"], 400, "API_KEY_IN_TARGET"),
            ("in other letters", [f"GET /{good.replace('_', '%5F')} HTTP/1.1"], 400, "API_KEY_IN_TARGET"),
            ("in others still", [f"GET {NAMESPACE}/pools?a=%70{good[1:]} HTTP/1.1"], 400, "API_KEY_IN_TARGET"),
            ("a cookie that is a key", [get, f"Cookie: permit_session_{port}={good}"], 401, "API_KEY_MISSING"),
            ("right", [get, f"Authorization: Bearer {good}"], 200, ""),
            ("right, in small letters", [get, f"authorization: bearer {good}"], 200, ""),
        ]
        for number, (what, lines, status, reason) in enumerate(cases):
            got, answer = raw_answer(port, *lines, source=f"127.0.2.{number + 1}")
            check(got == status and reason in answer, f"{what}: {answer[:400]}")
            check(("WWW-Authenticate: Bearer" in answer) == (status == 401), f"{what}: {answer[:400]}")
            check(good not in answer, f"{what}: the key comes back in the answer")
        check(world.client("read").get("/pools") == {}, "an honest request")
        world.server.stop()
        check(not any(good in line for line in world.server.log), "the key is in the log")
        check(any('"status":400' in line for line in world.server.log), "the log was not looked at")


def a_flood_of_wrong_keys_stops_only_itself():
    """Case 65: 429 for the peer that floods, and for nobody else."""
    with Guarded("flood") as world:
        good = world.client("read")
        elsewhere = world.client("read", source="127.0.0.7")
        seen = {}
        bad = world.client(WRONG, source="127.0.0.9")
        neighbour = world.client("read", source="127.0.0.9")
        for _ in range(300):
            status, reason = bad.reason("GET", NAMESPACE + "/pools")
            seen[status] = reason
            for honest in (good, elsewhere, neighbour):
                check(honest.raw("GET", NAMESPACE + "/pools")[0] == 200, "an honest key was refused")
            if 429 in seen:
                break
        check(seen == {401: "API_KEY_WRONG", 429: "API_KEYS_WRONG"}, seen)
        status, head, _ = bad.raw("GET", NAMESPACE + "/pools")
        check(status != 429 or head["Retry-After"], head)
        other = world.client(WRONG, source="127.0.0.10").reason("GET", NAMESPACE + "/pools")
        check(other == (401, "API_KEY_WRONG"), f"another peer pays for it: {other}")
        # More peers than anybody remembers.
        for number in range(300):
            world.client(WRONG, source=f"127.1.{number // 250}.{1 + number % 250}").reason("GET", "/livez")
        eventually(lambda: bad.reason("GET", "/livez")[0] == 401, "the peer may try again after a second")
        eventually(lambda: any('"event":"api_keys_wrong"' in line for line in world.server.log), "the log says so")
        world.server.errors.clear()


# --- The end of a key ---


def waiting(world, key, target, body=None):
    """A thread that asks and waits; its answers come into the list that is returned."""
    answers = []

    def ask():
        with contextlib.suppress(Unknown):  # the server goes before the last one
            answers.append(world.client(key, timeout=60).reason("GET" if body is None else "POST", target, body))

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    return thread, answers


def what_waits_ends_with_its_key():
    """Case 64: long polls and event streams, too."""
    with Guarded("ends") as world:
        admin = world.client("admin")
        admin.set_pool("one", capacity=1)
        admin.acquire("one", "holder")
        admin.start("w")
        secrets = [admin.post("/api-keys", {"name": "short", "role": "worker", "lifetime": "6s"})["secret"],
                   admin.post("/api-keys", {"name": "gone", "role": "worker"})["secret"]]
        threads, answers = [], []
        for secret in secrets:
            for target, body in ((RPC + "PollActivityTaskQueue", {"namespace": "default", "taskQueue": {"name": "idle"}}),
                                 (NAMESPACE + "/pools/one/acquire", {"requestId": "r" + secret[-4:], "wait": "60s"}),
                                 (f"{NAMESPACE}/workflows/w/history?waitNewEvent=true&historyEventFilterType=2", None)):
                thread, answer = waiting(world, secret, target, body)
                threads.append(thread)
                answers.append(answer)
        streams = []
        for secret in secrets:
            connection = http.client.HTTPConnection("127.0.0.1", world.server.port, 20)
            connection.request("GET", NAMESPACE + "/events", headers={"Authorization": f"Bearer {secret}"})
            streams.append(connection.getresponse())
            check(streams[-1].status == 200, streams[-1].status)
        stays, _ = waiting(world, "worker", RPC + "PollActivityTaskQueue",
                           {"namespace": "default", "taskQueue": {"name": "idle"}, "pollWait": "40s"})
        eventually(lambda: len(admin.get("/pools/one/waiters").get("waiters", [])) == 2, "both stand in line")
        permit("api-key", "revoke", "gone", "--address", f"127.0.0.1:{world.server.port}", PERMIT_API_KEY=world.keys["admin"])
        end = time.monotonic() + 16  # 5 s after the end of the key are promised; without that it is a minute
        check(world.client(secrets[1]).reason("GET", NAMESPACE + "/pools") == (401, "API_KEY_REVOKED"), "the next request")
        for stream in reversed(streams):
            while stream.read1(65536):
                check(time.monotonic() < end, "an event stream outlives its key")
        for thread in threads:
            thread.join(max(0.1, end - time.monotonic()))
        late = [answer for answer in answers if not answer or answer[0][0] != 401]
        check(not late, f"{len(late)} long polls outlive their key: {late}")
        check(stays.is_alive(), "a long poll of another key has ended, too")
        check(world.client(secrets[0]).reason("GET", NAMESPACE + "/pools") == (401, "API_KEY_EXPIRED"), "the next request")
        # The task of a poll that was cut off is for the next one.
        check(admin.poll("work", wait="5s"), "the workflow's task is lost")


def keys_outlive_a_kill():
    with Guarded("kill") as world:
        made = world.client("admin").post("/api-keys", {"name": "new", "role": "worker"})
        world.server.kill()
        world.start()
        check(world.client(made["secret"]).get("/pools") == {}, "the key that was made")
        world.client("admin").ask("DELETE", NAMESPACE + "/api-keys/new?identity=ana")
        world.server.kill()
        world.start()
        check(world.client(made["secret"]).reason("GET", NAMESPACE + "/pools")[1] == "API_KEY_REVOKED", "revoked")
        keys = {key["name"]: key for key in world.client("admin").get("/api-keys")["keys"]}
        check(keys["new"]["state"] == "revoked" and keys["new"]["revokedBy"] == "ana (key the-admin)", keys["new"])
        check(made["key"]["id"] == keys["new"]["id"] and "secret" not in json.dumps(keys), keys)
        again = world.client("admin").post("/api-keys", {"name": "new", "role": "read"})
        check(again["key"]["id"] == made["key"]["id"] + 1, again)
        twice = world.client("admin").reason("POST", NAMESPACE + "/api-keys", {"name": "new", "role": "read"})
        check(twice == (409, "API_KEY_EXISTS"), twice)
        for body, reason in (({"name": "1", "role": "read"}, "API_KEY_NAME_INVALID"),
                             ({"name": "a b", "role": "read"}, "API_KEY_NAME_INVALID"),
                             ({"name": "ok"}, "API_KEY_ROLE_INVALID"),
                             ({"name": "ok", "role": "read", "lifetime": "-1s"}, "API_KEY_LIFETIME_INVALID")):
            got = world.client("admin").reason("POST", NAMESPACE + "/api-keys", body)
            check(got == (400, reason), f"{body}: {got}")


def an_older_database_gets_the_table():
    database = directory() / "older.db"
    with Server(database) as server:
        server.stop()
    with contextlib.closing(sqlite3.connect(database)) as rows:
        fresh = rows.execute("SELECT sql FROM sqlite_master WHERE name = 'api_keys'").fetchone()
        schemas = (pathlib.Path(__file__).parent.parent / "support/old_schemas.h").read_text()
        rows.executescript(re.search(r'back_to_schema_4 = R"sql\((.*?)\)sql"', schemas, re.S).group(1))
        rows.execute("DROP TABLE api_keys")
        rows.execute("PRAGMA user_version = 2")
        rows.commit()
        rows.execute("VACUUM")  # pages without a seal: else this change would be damage
    with Server(database) as server:
        server.client().post("/api-keys", {"name": "first", "role": "admin"})
        server.stop()
    with contextlib.closing(sqlite3.connect(database)) as rows:
        check(rows.execute("SELECT sql FROM sqlite_master WHERE name = 'api_keys'").fetchone() == fresh, "another table")
        check(rows.execute("PRAGMA user_version").fetchone()[0] >= 3, "its version")


# --- What nobody may find out ---


def secrets_are_nowhere():
    """Case 82, 83, 85: in no log, metric, error, list, file, or command line."""
    with Guarded("canary", log_level="debug") as world:
        port = world.server.port
        secrets = list(world.keys.values())
        admin = world.client("admin")
        made = admin.post("/api-keys", {"name": "canary", "role": "read", "identity": "ana"})
        secrets.append(made["secret"])
        seen = []
        for secret in secrets:
            plain = world.client(None)
            for method, target, body in (
                ("GET", f"/{secret}", None), ("GET", f"{NAMESPACE}/pools/{secret}", None),
                ("GET", f"{NAMESPACE}/pools?since={secret}", None), ("POST", "/api/v1/login", {secret: 1}),
                ("POST", "/api/v1/login", {"key": secret + "x"}), ("POST", f"{NAMESPACE}/pools/p/acquire", {"holder": secret}),
            ):
                answer = plain.raw(method, target, None if body is None else json.dumps(body))[2].decode()
                # The one thing that may come back is what was sent as the name of a field.
                seen.append("" if body and secret in body else answer)
            seen.append(world.client(secret[:-1] + "!").raw("GET", "/livez")[2].decode())
            seen.append(world.client(secret).raw("GET", f"{NAMESPACE}/pools/nothing")[2].decode())
        for target in ("/metrics", "/api/v1/server", NAMESPACE + "/api-keys", NAMESPACE + "/workflows", "/openapi.json"):
            seen.append(admin.raw("GET", target)[2].decode())
        process = pathlib.Path(f"/proc/{world.server.process.pid}")
        seen += [(process / "cmdline").read_text(), (process / "environ").read_text()]
        # Also not of a command that got it as a flag.
        watching = subprocess.Popen([BINARY, "watch", "--address", f"127.0.0.1:{port}", "--api-key", secrets[0]],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={"HOME": str(directory())})
        try:
            cmdline = pathlib.Path(f"/proc/{watching.pid}/cmdline")
            eventually(lambda: "xxxxxxxx" in cmdline.read_text(), "the key is wiped from the command line")
            seen.append(cmdline.read_text())
            check(watching.poll() is None, "watch has ended")
        finally:
            watching.kill()
            watching.wait()
        world.server.stop()
        world.server.reader.join(5)
        seen += world.server.log
        seen += [file.read_bytes().decode("latin1") for file in directory().glob("canary.db*")]
        check(any('"event":"api_key_created"' in line and '"key":"canary"' in line and '"by":"ana (key the-admin)"' in line
                  for line in world.server.log), world.server.log[-30:])
        check(any('"event":"request_failed"' in line and '"key":"the-read"' in line for line in world.server.log),
              "the log does not name the key of a request")
        for secret in secrets:
            for text in seen:
                at = text.find(secret[7:40])
                check(at < 0, f"a secret is in: …{text[max(0, at - 200):at + 60]}…")


def without_a_key_there_is_only_whether_it_is_well():
    with Guarded("health") as world:
        nobody = world.client(None)
        for target in ("/livez", "/readyz"):
            check(nobody.ask("GET", target) == {"status": "ok"}, target)
            check(nobody.reason("GET", target + "?verbose") == (401, "API_KEY_MISSING"), target)
            check("checks" in world.client("read").ask("GET", target + "?verbose"), target)
        check(nobody.reason("GET", "/metrics") == (401, "API_KEY_MISSING"), "/metrics")
        check(world.client("read").raw("GET", "/metrics")[0] == 200, "/metrics with a key")
        told = world.client("worker").ask("GET", "/api/v1/server")
        check((told["key"], told["role"]) == ("the-worker", "worker"), told)
        check(any(item["name"] == "auth" and item["value"] == "keys" for item in told["settings"]), told["settings"])


def operators_stand_in_the_books_with_their_key():
    with Guarded("books") as world:
        admin = world.client("admin")
        admin.set_pool("gpu", capacity=1, identity="ana", reason="r")
        admin.post("/pools/gpu/drain", {"identity": "eve (key someone-else)"})
        changes = [change["by"] for change in admin.pool("gpu")["changes"]]
        check(changes == ["eve (key someone-else) (key the-admin)", "ana (key the-admin)"], changes)
        admin.post("/pools/gpu/undrain")
        held = admin.acquire("gpu", "r1", holder="job")
        admin.acquire("gpu", "r2", holder="other", wait="0.01s")
        waiter = admin.get("/pools/gpu/waiters")["waiters"][0]["id"]
        admin.ask("DELETE", f"{NAMESPACE}/waiters/{waiter}?identity=ana&reason=r")
        admin.post(f"/permits/{held['slots'][0]['id']}/force-release", {"fence": held["fence"], "identity": "ana"})
        log = world.server.log
        eventually(lambda: any("permit_closed" in line and "force_released" in line for line in log), "the end of the hold")
        admin.start("w")
        admin.post("/workflows/w/terminate", {"identity": "ana"})
        end = admin.history("w")[-1]["workflowExecutionTerminatedEventAttributes"]
        check(end["identity"] == "ana (key the-admin)", end)


# --- Without keys, as before ---


def without_auth_a_key_counts_all_the_same():
    with Guarded("none", auth=False) as world:
        nobody = world.client(None)
        nobody.set_pool("p", capacity=1)
        check(world.client(WRONG).reason("GET", NAMESPACE + "/pools") == (401, "API_KEY_WRONG"), "a wrong key")
        check(world.client("read").reason("PUT", NAMESPACE + "/pools/p", {"capacity": 2}) == (403, "ROLE_TOO_LOW"), "read")
        check(nobody.pool("p")["capacity"] == 1, "it was done")
        # What is meant for a proxy in front is none of our business.
        for header in ("Bearer of-a-proxy", "Basic dXNlcjpwYXNz", "Negotiate x"):
            client = world.client(None, headers={"Authorization": header})
            check(client.raw("GET", NAMESPACE + "/pools")[0] == 200, header)


# --- Starting ---


def start_refused(*arguments, says, config=None):
    words = ["server", "start-dev", "--port", "0", *arguments]
    if config:
        file = directory() / "refused.toml"
        file.write_text(config)
        words += ["--config", file]
    out, err = permit(*words, code=78)
    check(out == "" and err.startswith("permit: ") and err.count("\n") == 1, out + err)
    check(says in err, f"{arguments} does not say {says!r}: {err}")


def a_token_is_needed_by_all_but_admins():
    """Who holds by a token loses the permit to nobody else with a worker's key, whatever way is tried."""
    with Guarded("tokens") as world:
        admin, worker, reader = (world.client(role) for role in ("admin", "worker", "read"))
        admin.set_pool("gpu", capacity=1)
        ask = {"requestId": "only-the-holder-knows", "holder": "train", "lease": "600s"}
        grant = worker.post("/pools/gpu/acquire", ask)
        permit_id, run_id = grant["slots"][0]["id"], grant["slots"][0]["runId"]
        execution = {"workflowId": permit_id, "runId": run_id}

        def still_held():
            held = worker.get(f"/permits/{permit_id}")
            check("outcome" not in held and held["deadline"] == grant["deadline"], held)

        for target, more in (("signal/release", {}), ("signal/renew", {}), ("cancel", {}),
                             ("SignalWorkflowExecution", {"signalName": "release"}),
                             ("RequestCancelWorkflowExecution", {})):
            is_rpc = target[0].isupper()
            path = RPC + target if is_rpc else f"{NAMESPACE}/workflows/{permit_id}/{target}"
            body = {"workflowExecution": execution, **({"namespace": "default"} if is_rpc else {}), **more}
            check(worker.reason("POST", path, body) == (403, "ROLE_TOO_LOW"), target)
        still_held()
        tries = {
            "Signal": command("SignalExternalWorkflowExecution", execution=execution, signalName="release"),
            "Renew": command("SignalExternalWorkflowExecution", execution=execution, signalName="renew"),
            "Cancel": command("RequestCancelExternalWorkflowExecution", **execution),
        }
        for name, tried in tries.items():
            worker.start(name, queue=name)
            worker.complete(worker.poll(name), tried)
            types = [event["eventType"] for event in worker.history(name)]
            check(any(kind.endswith("EXTERNAL_WORKFLOW_EXECUTION_FAILED") for kind in types), types)
        still_held()

        # Who knows the requestId can ask for the same grant again, and its token.
        for target in (f"{NAMESPACE}/workflows/{permit_id}/history", f"{NAMESPACE}/permits/{permit_id}"):
            text = reader.raw("GET", target)[2]
            check(b"train" in text and b"only-the-holder" not in text, text)
        admin.post(f"/workflows/{permit_id}/signal/nudge", {"workflowExecution": execution})
        task = worker.poll("permits")
        check("train" in json.dumps(task) and "only-the-holder" not in json.dumps(task), task)
        check(worker.post("/pools/gpu/acquire", ask)["token"] == grant["token"], "asked again by who knows")

        check(admin.reason("POST", f"{NAMESPACE}/workflows/{permit_id}/cancel", {})[0] == 200, "an admin may")


def the_secret_of_tokens_is_kept_safe():
    """The file beside the database: long, its owner's only, and the same whatever name the database has."""
    database = directory() / "secret.db"
    key = pathlib.Path(f"{database}.key")
    key.write_text("")  # as a crash may leave it
    key.chmod(0o600)
    with Server(database) as server:
        server.client().set_pool("gpu", capacity=1)
        token = server.client().acquire("gpu", "r", holder="h", lease="600s")["token"]
    secret = key.read_text()
    check(re.fullmatch("[0-9A-Za-z]{43}", secret), f"a secret of {len(secret)} characters")
    check(database.stat().st_mode & 0o777 == 0o600, f"others may read {database}")
    link = directory() / "link.db"
    link.symlink_to(database)
    with Server(link) as server:
        check(server.client().acquire("gpu", "r", holder="h", lease="600s")["token"] == token, "another secret")
    check(not pathlib.Path(f"{link}.key").exists(), "a second secret")
    key.chmod(0o640)
    start_refused("--db-filename", database, says=f"chmod 600 {key}")


def an_open_server_does_not_start():
    """Case 70: beyond loopback without keys or TLS."""
    database = directory() / "open.db"
    start_refused("--ip", "0.0.0.0", says="--insecure")
    start_refused("--ip", "0.0.0.0", says="--insecure", config="[server]\nauth = \"keys\"\n")
    start_refused("--ip", "::", "--db-filename", database, says="without TLS")
    start_refused("--ip", "192.0.2.1", "--insecure", says="--db-filename")
    start_refused("--ip", "0.0.0.0", "--insecure", "--auth", "none", says="everybody")
    start_refused("--insecure", says="auth = \"none\"", config="[server]\nlisten = \"0.0.0.0:7376\"\nauth = \"none\"\n")
    start_refused("--ip", "0.0.0.0", "--insecure", "--db-filename", database,
                  says=f"permit api-key create admin --role admin --database {database}")
    start_refused("--auth", "keys", says="--db-filename")
    make_key(database, "worker", "worker")
    make_key(database, "short", "admin", "--expires", "1ms")
    make_key(database, "admin", "admin")
    permit("api-key", "revoke", "admin", "--database", database)
    start_refused("--auth", "keys", "--db-filename", database, says="api-key create admin")
    listed = json.loads(permit("api-key", "list", "--database", database, "-o", "json")[0])["keys"]
    check([key["state"] for key in listed] == ["valid", "expired", "revoked"], listed)
    # Not on a database that is in use.
    make_key(database, "admin", "admin")
    with Server(database, "--auth", "keys") as server:
        for words in (("create", "other", "--role", "read"), ("list",), ("revoke", "admin")):
            _, err = permit("api-key", *words, "--database", database, code=1)
            check("in use" in err and str(server.process.pid) in err, err)
    permit("api-key", "list", "--database", directory() / "nowhere.db", code=3)


def loopback_up():
    """In a network of its own, which begins with nothing that works."""
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP


def beyond_loopback():
    """Runs in a network of its own: nobody else may reach what is open here."""
    loopback_up()
    database = directory() / "beyond.db"
    admin = make_key(database, "admin", "admin")
    server = subprocess.Popen([BINARY, "server", "start", "--listen", "0.0.0.0:7399", "--insecure", "--db-filename", database],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        eventually(lambda: "Stop with" in server.stdout.readline(), "the server's start")
        host = socket.gethostname()
        for name, expected in (("10.9.8.7:7399", 200), ("[2001:db8::1]:7399", 200), (f"{host}:7399", 200), ("localhost", 200),
                               ("evil.example", 421), ("1.2.3.4.evil.example", 421)):
            client = Keyed(7399, admin, headers={"Host": name})
            status, _, answer = client.raw("GET", NAMESPACE + "/pools")
            check(status == expected, f"Host: {name}: {status} {answer}")
        check(Keyed(7399).reason("GET", NAMESPACE + "/pools") == (401, "API_KEY_MISSING"), "without a key")
        check(Keyed(7399).ask("GET", "/readyz") == {"status": "ok"}, "readyz")
    finally:
        server.kill()
        server.wait()


def beyond_loopback_keys_are_asked_for():
    alone = [shutil.which("unshare") or "unshare", "--net"]
    if subprocess.run([*alone, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        print("    not tried: this needs a network namespace (root)")
        return
    done = subprocess.run([*alone, sys.executable, __file__, "--beyond-loopback"], capture_output=True, text=True,
                          timeout=60, check=False)
    check(done.returncode == 0, done.stdout + done.stderr)


# --- Clients ---


def commands_send_their_key():
    """Cases 71, 87: from a file, if only its owner may read it, or from the environment."""
    with Guarded("cli", permit_worker=True) as world:
        address = f"127.0.0.1:{world.server.port}"

        def ask(*words, code=0, **environment):
            return permit(*words, "--address", address, code=code, **environment)

        _, err = ask("list", code=4)
        check("API key" in err, err)
        ask("list", "--api-key", world.keys["read"])
        ask("list", f"--api-key={world.keys['read']}")
        ask("list", PERMIT_API_KEY=world.keys["read"] + "\n")
        file = directory() / "key"
        file.write_text(world.keys["worker"] + "\n")
        file.chmod(0o640)
        for words, environment in ((["--api-key-file", file], {}), ([], {"PERMIT_API_KEY_FILE": str(file)})):
            _, err = ask("list", *words, code=2, **environment)
            check(f"chmod 600 {file}" in err, err)
        file.chmod(0o600)
        ask("list", "--api-key-file", file)
        ask("list", "--api-key-file", file, PERMIT_API_KEY=WRONG)
        config = directory() / "permit.toml"
        config.write_text(f'[profile.default]\naddress = "{address}"\napi_key_file = "{file}"\n')
        _, err = permit("pool", "set", "gpu", "--capacity", "1", "--config-file", config, code=4)
        check("takes an API key with the role admin" in err, err)
        ask("pool", "set", "gpu", "--capacity", "1", PERMIT_API_KEY=world.keys["admin"])
        permit("run", "-p", "gpu", "--config-file", config, "--", "true")
        # The worker inside the server needs none to end a lease.
        world.client("worker").acquire("gpu", "r", lease="0.2s")
        eventually(lambda: world.client("read").pool("gpu").get("held", 0) == 0, "the lease ends")
        check(world.client("read").get("/permits", pool="gpu")["permits"][0]["outcome"] == "lease_expired", "its outcome")
        # A worker of the SDK, and Python's client.
        os.environ["PERMIT_API_KEY"] = world.keys["worker"]
        try:
            with Worker(world.server.port, "work") as worker:
                eventually(lambda: world.client("read").get("/task-queues/work").get("pollers"), "it polls")
                check(not worker.says("API_KEY"), worker.lines)
        finally:
            del os.environ["PERMIT_API_KEY"]
        script = ("import permit\n"
                  "with permit.hold('gpu', wait='5s') as held: print('slot', held.slot)\n")
        for key_file, code in ((file, 0), (config, 1)):
            done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=False,
                                  env={"PYTHONPATH": str(REPOSITORY / "worker/python"), "PERMIT_ADDRESS": f"http://{address}",
                                       "PERMIT_API_KEY_FILE": str(key_file)})
            check((done.returncode, "slot 0" in done.stdout) == (code, code == 0), done.stderr)
        check("chmod 600" in done.stderr, done.stderr)


def keys_are_made_listed_and_revoked_by_command():
    with Guarded("verbs") as world:
        address = f"127.0.0.1:{world.server.port}"
        admin = {"PERMIT_API_KEY": world.keys["admin"], "PERMIT_ADDRESS": address}
        out, err = permit("api-key", "create", "ci", "--role", "worker", "--expires", "90d", **admin)
        check(re.fullmatch(r"permit_[0-9A-Za-z]{43}\n", out), out)
        check("not shown again" in err and out.strip() not in err, err)
        made = json.loads(permit("api-key", "create", "ci2", "--role", "read", "-o", "json", **admin)[0])
        check(made["key"]["role"] == "read" and made["secret"].startswith("permit_"), made)
        world.client(out.strip()).get("/pools")
        table, _ = permit("api-key", "list", **admin)
        check(re.search(r"^ *4  ci +worker +valid .*(-\d\d|\d\d:\d\d)", table, re.MULTILINE), table)
        check("permit_" not in table and "ID  NAME" in table, table)
        permit("api-key", "revoke", str(made["key"]["id"]), **admin)
        out, _ = permit("api-key", "revoke", "ci", **admin)
        check("ci is revoked" in out, out)
        permit("api-key", "revoke", "ci", code=3, **admin)
        permit("api-key", "create", "x", code=2, **admin)
        permit("api-key", "create", "ci", "--role", "boss", code=2, **admin)
        permit("api-key", "create", "x", "--role", "read", "--namespace", "other", code=3, **admin)
        permit("api-key", "list", code=4, PERMIT_ADDRESS=address, PERMIT_API_KEY=world.keys["worker"])


# --- Browsers ---


def a_browser_has_a_session():
    with Guarded("page") as world:
        port = world.server.port
        own = {"Sec-Fetch-Site": "same-origin", "Origin": f"http://127.0.0.1:{port}"}
        page = world.client(None, headers=own)

        def log_in(key, client=page):
            status, head, answer = client.raw("POST", "/api/v1/login", json.dumps({"key": key}))
            return status, head.get("Set-Cookie", ""), answer.decode()

        status, cookie, answer = log_in(world.keys["worker"])
        check(status == 200 and json.loads(answer) == {"name": "the-worker", "role": "worker"}, answer)
        name, _, rest = cookie.partition("=")
        value, *attributes = rest.split("; ")
        check(name == f"permit_session_{port}" and re.fullmatch(r"[0-9A-Za-z]{43}", value), cookie)
        check(sorted(attributes) == ["HttpOnly", "Path=/", "SameSite=Strict"], cookie)
        check(world.keys["worker"] not in cookie + answer, "the key itself comes back")
        secure = world.client(None, headers={"Origin": f"https://127.0.0.1:{port}", "Sec-Fetch-Site": "same-origin"})
        check(log_in(world.keys["read"], secure)[1].endswith("; Secure"), "behind a proxy with TLS")
        for key in (WRONG, "", "x" * 5000):
            status, wrong, answer = log_in(key)
            check((status, wrong) == (401, "") and "API_KEY_WRONG" in answer, answer)

        cookies = {"Cookie": f"other=1; {name}={value}; permit_session_1=x"}
        inside = world.client(None, headers={**own, **cookies})
        check(inside.get("/pools") == {}, "the session's reads")
        check(inside.reason("PUT", NAMESPACE + "/pools/p", {"capacity": 1}) == (403, "ROLE_TOO_LOW"), "its role")
        inside.start("by-page")
        # Whoever gets a browser to send its cookie still does not come from the page.
        bare = world.client(None, headers=cookies)
        check(bare.get("/pools") == {}, "a plain read")
        check(bare.reason("POST", NAMESPACE + "/workflows/x", {}) == (403, "ORIGIN_MISSING"), "not from a page")
        for headers in ({"Origin": "http://127.0.0.1:1"}, {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "cross-site"},
                        {"Origin": "null"}):
            got = world.client(None, headers={**cookies, **headers}).reason("POST", NAMESPACE + "/workflows/x", {})
            check(got == (403, "ORIGIN_NOT_ALLOWED"), f"{headers}: {got}")
        status, head, _ = inside.raw("POST", "/api/v1/logout", "{}")
        check(status == 200 and "Max-Age=0" in head["Set-Cookie"], head)
        check(inside.reason("GET", NAMESPACE + "/pools") == (401, "API_KEY_MISSING"), "after the logout")

        # A session ends with its key.
        value = log_in(world.keys["read"])[1].partition("=")[2].split(";")[0]
        reader = world.client(None, headers={**own, "Cookie": f"{name}={value}"})
        reader.get("/pools")
        world.client("admin").ask("DELETE", NAMESPACE + "/api-keys/the-read")
        check(reader.reason("GET", NAMESPACE + "/pools")[0] == 401, "a session of a revoked key")
        # GET never changes anything (I25): what changes is not to be had by it.
        for method, target, _, role in operations(page):
            check(role != "admin" or method != "GET" or target.endswith("/api-keys"), f"GET {target} takes an admin")


if __name__ == "__main__":
    if sys.argv[1:] == ["--beyond-loopback"]:
        beyond_loopback()
        sys.exit()
    run(
        a_token_is_needed_by_all_but_admins, the_secret_of_tokens_is_kept_safe,
        every_route_has_its_role,
        what_is_asked_counts_not_only_where,
        what_is_no_key_is_refused,
        a_flood_of_wrong_keys_stops_only_itself,
        what_waits_ends_with_its_key,
        keys_outlive_a_kill,
        an_older_database_gets_the_table,
        secrets_are_nowhere,
        without_a_key_there_is_only_whether_it_is_well,
        operators_stand_in_the_books_with_their_key,
        without_auth_a_key_counts_all_the_same,
        an_open_server_does_not_start,
        beyond_loopback_keys_are_asked_for,
        commands_send_their_key,
        keys_are_made_listed_and_revoked_by_command,
        a_browser_has_a_session,
    )
