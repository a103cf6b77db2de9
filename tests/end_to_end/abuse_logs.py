"""Cases 81 to 87: what the server says to those who should not hear it."""

import base64
import json
import os
import pathlib
import re
import secrets
import stat

from abuse_support import honest_request, request, say
from support import NAMESPACE, RPC, Server, check, command, complete_workflow, directory, eventually
from support import payloads

ESCAPES = ["a\nb", "\x1b[2J\x1b]0;owned\x07", "\r{\"level\":\"error\",\"event\":\"server_failed\"}",
           "\u009b31m", "\u202e", "\u2028"]
ENVIRONMENT = "canary-env-" + secrets.token_hex(8)


def lines_of(server):
    return [json.loads(line) for line in server.log]


def log_injection(table, server, honest):
    """One line for each event, in order, of a bounded length."""
    client = server.client()
    with table.line(81, "escapes in names", honest):
        for i, text in enumerate(ESCAPES):
            grant = client.acquire("honest", f"log-{i}", reason=text)
            client.release(grant["slots"][0]["id"], grant["token"])
        eventually(lambda: sum(line["event"] == "permit_acquired" for line in lines_of(server))
                   >= len(ESCAPES), "their lines")
    with table.line(81, "escapes in a path and a User-Agent", honest):
        for agent in (b"\x1b[2J", b"a\r\n b"):
            say(server.port, request("GET", "/nothing", b"User-Agent: " + agent + b"\r\n"))
        for path in ("/%0a%1b[2J", "/%0d%0aforged", "/%e2%80%a8", "/" + "x" * 2000):
            check(say(server.port, request("GET", path)).status in (400, 404), path)
        for text in ("x\n" * 500_000, "\x1b" * 500_000, "y" * 1_000_000):
            body = json.dumps({"requestId": "r", "holder": text}).encode()
            check(say(server.port, request("POST", NAMESPACE + "/pools/honest/acquire", body=body)
                      ).status == 400, "a holder of a megabyte")
    with table.line(81, "every line is one line", honest):
        eventually(lambda: any("x" * 100 in line for line in server.log), "the last of them")
        for line in server.log:
            check(json.loads(line)["event"], line)
            check(line.endswith("\n") and "\n" not in line[:-1], repr(line))
            check(not re.search("[\x00-\x09\x0b-\x1f\x7f\u0080-\u009f]", line), repr(line)[:300])
            check(len(line) <= 8192, f"a line of {len(line)} bytes")
        forged = [line for line in lines_of(server) if line["event"] == "server_failed"]
        check(not forged, forged)


# --- Canaries ---


class Canaries:
    """Secrets that nobody may find anywhere but where they were put."""

    def __init__(self):
        self.secrets = {"environment": ENVIRONMENT}

    def new(self, where):
        self.secrets[where] = f"canary-{secrets.token_hex(8)}"
        return self.secrets[where]

    def check_absent(self, place, text, but=()):
        if isinstance(text, str):
            text = text.encode("utf-8", "replace")
        for where, secret in self.secrets.items():
            if where in but:
                continue
            for form in (secret.encode(), base64.b64encode(secret.encode()).rstrip(b"=")[:-2],
                         secret.encode().hex().encode()):
                check(form not in text, f"what was put in the {where} is in {place}")


def put_canaries(server, canaries):
    client = server.client()
    client.start("canary", queue="work", input=[canaries.new("input")],
                 memo={"fields": {"m": canaries.new("memo")}},
                 header={"fields": {"h": canaries.new("header")}})
    client.signal("canary", "s", input=[canaries.new("signal")])
    task = client.poll()
    canaries.secrets["task token"] = task["taskToken"]
    client.complete(task, command(
        "ScheduleActivityTask", activityId="a", activityType={"name": "A"}, startToCloseTimeout="9s",
        taskQueue={"name": "work"}, input=payloads(canaries.new("activity"))))
    activity = client.rpc("PollActivityTaskQueue", taskQueue={"name": "work"}, pollWait="5s")
    client.rpc("RespondActivityTaskFailed", taskToken=activity["taskToken"],
               failure={"message": canaries.new("failure")})
    client.signal("canary", "go")
    client.complete(client.poll(), complete_workflow(canaries.new("result")))
    grant = client.acquire("honest", "canary")
    canaries.secrets["permit token"] = grant["token"]
    bearer = canaries.new("Authorization header")
    headers = {"Authorization": f"Bearer {bearer}", "Content-Type": "application/json"}
    for method, target, body in (("GET", "/nothing", None), ("GET", NAMESPACE + "/pools", None),
                                 ("POST", NAMESPACE + "/workflows/bad%20id", "{"),
                                 ("PUT", NAMESPACE + "/pools/honest", '{"capacity":-1}')):
        client.raw(method, target, body, headers)
    bodies = []
    wrong, field = canaries.new("wrong token"), canaries.new("unknown field")
    for body in (f'{{"token":"{wrong}"}}', f'{{"token":"{wrong}', f'{{"{field}":1}}',
                 f'{{"token":["{wrong}"]}}', f'{{"token":"{wrong}"}} x', f'{{"lease":"{wrong}"}}'):
        bodies.append(client.raw("POST", NAMESPACE + "/permits/permit:honest:0/renew", body,
                                 headers)[2])
    client.release(grant["slots"][0]["id"], grant["token"])
    return bodies


def canaries_nowhere(table, server, honest):
    canaries = Canaries()
    with table.line(82, "put in every place", honest):
        bodies = put_canaries(server, canaries)
    client = server.client()
    pid = server.process.pid
    with table.line(82, "not in the log", honest):
        eventually(lambda: any('"permit_closed"' in line for line in server.log), "its lines")
        canaries.check_absent("the log", "".join(server.log), but=("unknown field",))
    with table.line(82, "not in metrics, health, lists and errors", honest):
        for target in ("/metrics", "/livez", "/readyz", "/api/v1/server", "/api/v1/server/history",
                       NAMESPACE + "/pools", NAMESPACE + "/permits", "/openapi.json"):
            canaries.check_absent(target, client.raw("GET", target)[2])
        for body in bodies:  # an unknown field is named to whoever sent it, and to nobody else
            canaries.check_absent("an error", body, but=("unknown field",))
        # A list has the memo, which is there to be listed; neither input, result nor token.
        canaries.check_absent("the list of runs", client.raw("GET", NAMESPACE + "/workflows")[2],
                              but=("memo",))
    with table.line(82, "not in what ps shows", honest):
        canaries.check_absent("the command line", pathlib.Path(f"/proc/{pid}/cmdline").read_bytes())
        canaries.check_absent("the name", pathlib.Path(f"/proc/{pid}/comm").read_bytes())
        names = "\n".join(str(path) for path in directory().rglob("*"))
        canaries.check_absent("the names of files", names)


def errors_tell_nothing(table, server, honest):
    leak = re.compile(r"sqlite|SELECT |INSERT |UPDATE |/tmp|/home|/usr|\.cpp|std::|exception|0x[0-9a-f]{6}"
                      r"|boost|asio|permit [0-9]", re.IGNORECASE)
    client = server.client()
    for method, target, body in (
            ("GET", "/nothing", None), ("PUT", NAMESPACE + "/pools/honest", "{"),
            ("PUT", NAMESPACE + "/pools/a%3Ab", '{"capacity":1}'), ("PATCH", "/", None),
            ("GET", NAMESPACE + "/workflows?query='", None),
            ("GET", NAMESPACE + "/workflows?nextPageToken=AAAA", None),
            ("GET", NAMESPACE + "/workflows/%ff", None),
            ("POST", RPC + "RespondWorkflowTaskCompleted", '{"namespace":"default","taskToken":"AA=="}'),
            ("POST", RPC + "QueryWorkflow", '{"namespace":"default","execution":{"workflowId":"none"}}')):
        with table.line(83, f"{method} {target[-40:]}", honest):
            status, head, answer = client.raw(method, target, body)
            check(400 <= status < 502, f"{status}")
            message = json.loads(answer)["message"]
            check(not leak.search(message), message)
            check(head["Server"] == "permit", f"Server: {head['Server']}")
            check("X-Powered-By" not in head, f"{head}")


def metrics_are_bounded(table, server, honest):
    with table.line(84, "no id is a label", honest):
        text = server.client().raw("GET", "/metrics")[2].decode()
        for name in ("canary", "running", "log-0", "permit:honest", "..%2F", "../"):
            check(f'"{name}' not in text, f"{name} is a label")
        series = text.count("\n")
        client = server.client()
        for i in range(200):
            client.raw("GET", f"/api/v1/namespaces/default/workflows/w{i}?x{i}=1")
            client.raw("GET", f"/path{i}")
        grown = client.raw("GET", "/metrics")[2].decode().count("\n") - series
        check(grown < 60, f"{grown} lines more after 400 paths")


def health_tells_little(table, server, honest):
    client = server.client()
    with table.line(85, "/livez", honest):
        status, _, body = client.raw("GET", "/livez")
        check(status == 200 and len(body) < 40, body)
    with table.line(85, "/readyz", honest):
        status, _, body = client.raw("GET", "/readyz")
        check(status == 200 and not re.search(rb"/tmp|permit\.db|default|honest", body), body)


def files_are_closed(table, honest):
    """What a crash or a look at the disk would show."""
    database = directory() / "modes.db"
    generous = ("sh", "-c", 'ulimit -S -c "$(ulimit -H -c)"; exec "$@"', "sh")
    with Server(database, wrapper=generous) as server:
        client = server.client()
        client.set_pool("honest", capacity=3)
        grant = client.acquire("honest", "modes")
        with table.line(86, "no core is dumped", honest):
            limits = pathlib.Path(f"/proc/{server.process.pid}/limits").read_text()
            soft = re.search(r"Max core file size +(\S+)", limits)[1]
            check(soft == "0", f"cores up to {soft}")
        with table.line(87, "the secret is a file of its owner's", honest):
            key = pathlib.Path(str(database) + ".key")
            check(stat.S_IMODE(key.stat().st_mode) == 0o600, oct(key.stat().st_mode))
            secret = key.read_bytes().strip()
            for name in ("environ", "cmdline"):
                text = pathlib.Path(f"/proc/{server.process.pid}/{name}").read_bytes()
                check(secret not in text and grant["token"].encode() not in text, name)


def run_logs(table):
    """On a server with a debug log and with a secret in its environment."""
    os.environ["PERMIT_ABUSE_SECRET"] = ENVIRONMENT
    with Server(directory() / "logs.db", log_level="debug") as server:
        del os.environ["PERMIT_ABUSE_SECRET"]
        server.client().set_pool("honest", capacity=3)
        honest = lambda: honest_request(server.port)
        log_injection(table, server, honest)
        canaries_nowhere(table, server, honest)
        errors_tell_nothing(table, server, honest)
        metrics_are_bounded(table, server, honest)
        health_tells_little(table, server, honest)
        files_are_closed(table, honest)
