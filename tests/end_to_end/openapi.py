#!/usr/bin/env python3
"""/openapi.json is an OpenAPI 3.1 document, lists the routes there are and no others, and what the
server answers is what it says."""

import base64
import http.client
import json
import re

from support import (
    NAMESPACE,
    RPC,
    Client,
    Refused,
    Server,
    check,
    command,
    complete_workflow,
    payloads,
    run,
    start_permit,
)

METHODS = {"get", "put", "post", "delete", "head"}
PERMIT_RPC = "/permit.api.v1.PermitService/"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


# --- The subset of JSON Schema that the document uses ---

KEYWORDS = {"$ref", "type", "format", "pattern", "enum", "items", "properties", "required", "anyOf",
            "additionalProperties", "contentEncoding", "description", "examples"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int,
         "number": (int, float), "null": type(None)}
FORMATS = {"int32", "int64", "double", "date-time"}


class Document:
    def __init__(self, document):
        self.document = document
        self.schemas = document["components"]["schemas"]
        self.paths = [(re.compile(re.sub(r"\\{path\\}", ".+", re.sub(
            r"\\{(?!path)\w+\\}", "[^/]*", re.escape(path))) + r"\Z"), path)
            for path in document["paths"]]

    def resolve(self, node):
        while "$ref" in node:
            target = self.document
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            node = target
        return node

    def path_of(self, target):
        """Words win over variables, as on the server."""
        target = target.split("?")[0]
        found = [path for pattern, path in self.paths if pattern.match(target)]
        check(found, f"the document has no path for {target}")
        return min(found, key=lambda path: path.count("{"))

    def operation(self, method, target):
        path = self.path_of(target)
        check(method.lower() in self.document["paths"][path], f"the document has no {method} {path}")
        return self.document["paths"][path][method.lower()]

    def problem(self, value, schema, place="$"):
        """What is wrong with the value, or None. A field that the schema does not name is wrong."""
        schema = self.resolve(schema)
        if "anyOf" in schema:
            problems = [self.problem(value, one, place) for one in schema["anyOf"]]
            return None if None in problems else problems[0]
        type = schema.get("type")
        if type is None:
            return None
        if not isinstance(value, TYPES[type]) or (isinstance(value, bool) and type != "boolean"):
            return f"{place} is not of type {type}: {value!r}"
        if type == "object":
            return self.problem_of_object(value, schema, place)
        if type == "array":
            found = (self.problem(one, schema["items"], f"{place}[{i}]") for i, one in enumerate(value))
            return next(filter(None, found), None)
        if "enum" in schema and value not in schema["enum"]:
            return f"{place} is none of {schema['enum']}: {value!r}"
        if "pattern" in schema and not re.search(schema["pattern"], value):
            return f"{place} is not like {schema['pattern']}: {value!r}"
        if schema.get("format") == "date-time" and not TIME.fullmatch(value):
            return f"{place} is not a time: {value!r}"
        if schema.get("contentEncoding") == "base64":
            base64.b64decode(value, validate=True)
        return None

    def problem_of_object(self, value, schema, place):
        for name in schema.get("required", []):
            if name not in value:
                return f"{place}.{name} is missing"
        properties = schema.get("properties", {})
        for name, one in value.items():
            rest = properties.get(name, schema.get("additionalProperties", False))
            if rest is False:
                return f"{place}.{name} is not in the schema"
            found = None if rest is True else self.problem(one, rest, f"{place}.{name}")
            if found:
                return found
        return None


class CheckedClient(Client):
    """Holds each request and each answer against the document."""

    def __init__(self, port):
        super().__init__(port)
        self.document = Document(document_of(Client(port))[0])
        self.seen = {}  # (method, path, status): how often

    def raw(self, method, target, body=None, headers=None):
        operation = self.document.operation(method, target)
        if body is not None:
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            self.agree(json.loads(body), schema, f"the body of {method} {target}")
        names = {one["name"] for one in operation.get("parameters", []) if one["in"] == "query"}
        for name in re.findall(r"[?&]([^=&]+)", target):
            check(name in names, f"{target}: {name} is no parameter")
        status, head, answer = super().raw(method, target, body, headers)
        self.seen.setdefault((method, self.document.path_of(target), status), 0)
        responses = operation["responses"]
        check(str(status) in responses or status >= 400, f"{method} {target}: {status}")
        response = self.document.resolve(responses.get(str(status), responses["default"]))
        for content_type, content in response.get("content", {}).items():
            if content_type == "application/json":
                self.agree(json.loads(answer), content["schema"], f"{status} of {method} {target}")
            if content_type != "*/*":
                check(head["Content-Type"] == content_type, f"{target}: {head['Content-Type']}")
        return status, head, answer

    def agree(self, value, schema, what):
        found = self.document.problem(value, schema)
        check(found is None, f"{what}: {found}\n{json.dumps(value)[:2000]}")

    def refused(self, reason, call, *arguments, **more):
        try:
            call(*arguments, **more)
        except Refused as error:
            check(error.reason == reason, f"{error.reason}, not {reason}: {error}")
            return error
        raise AssertionError(f"not refused with {reason}")


def document_of(client):
    status, head, text = client.raw("GET", "/openapi.json")
    check(status == 200 and head["Content-Type"] == "application/json", f"{status} {head}")
    return json.loads(text), text


# --- The document ---


def check_schema(document, schema, place):
    unknown = set(schema) - KEYWORDS
    check(not unknown, f"{place}: {unknown}")
    if "$ref" in schema:
        check(list(schema) == ["$ref"], f"{place}: more than a reference")
        return
    check(schema.get("type", "string") in TYPES, f"{place}: {schema}")
    check(schema.get("format", "int32") in FORMATS, f"{place}: {schema}")
    check(("items" in schema) == (schema.get("type") == "array"), f"{place}: {schema}")
    if "pattern" in schema:
        re.compile(schema["pattern"])
    enum = schema.get("enum", ["x"])
    check(enum and len(set(enum)) == len(enum) and all(isinstance(word, str) for word in enum), place)
    for name, one in schema.get("properties", {}).items():
        check_schema(document, one, f"{place}.{name}")
    for name in schema.get("required", []):
        check(name in schema["properties"], f"{place}: {name} is required and does not exist")
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            check_schema(document, schema[keyword], f"{place}.{keyword}")
    for one in schema.get("anyOf", []):
        check_schema(document, one, place)


def check_content(document, content, place):
    check(len(content) == 1, place)
    for content_type, media in content.items():
        check("/" in content_type and set(media) == {"schema"}, f"{place}: {content_type}")
        check_schema(document, media["schema"], place)


def check_operation(document, path, method, operation):
    place = f"{method} {path}"
    check(operation["x-role"] in ("open", "read", "worker", "admin"), place)
    check(operation.get("security", []) == [], place)
    check(not set(operation) - {"x-role", "security", "summary", "operationId", "tags", "parameters", "requestBody",
                                "responses"}, place)
    check(operation["summary"] and not operation["summary"].endswith("."), place)
    tags = {tag["name"] for tag in document.document["tags"]}
    check(len(operation["tags"]) == 1 and set(operation["tags"]) <= tags, place)
    parameters = operation.get("parameters", [])
    names = [(one["in"], one["name"]) for one in parameters]
    check(len(set(names)) == len(names), f"{place}: {names}")
    in_path = [one["name"] for one in parameters if one["in"] == "path"]
    check(in_path == re.findall(r"\{(\w+)\}", path), f"{place}: {in_path}")
    for one in parameters:
        check(one["in"] == "query" or one.get("required") is True, f"{place}: {one}")
        check_schema(document, one["schema"], place)
    check(("requestBody" in operation) <= (method in ("post", "put")), place)
    if "requestBody" in operation:
        check_content(document, operation["requestBody"]["content"], place)
    check("default" in operation["responses"] and len(operation["responses"]) > 1, place)
    for status, response in operation["responses"].items():
        check(re.fullmatch(r"[1-5]\d\d|default", status), f"{place}: {status}")
        response = document.resolve(response)
        check(response["description"], f"{place}: {status}")
        if "content" in response:
            check_content(document, response["content"], place)


def references_in(node):
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for one in node.values():
            yield from references_in(one)
    elif isinstance(node, list):
        for one in node:
            yield from references_in(one)


def it_is_an_openapi_document():
    with Server() as server:
        client = server.client()
        raw, text = document_of(client)
        check(document_of(client)[1] == text, "it is not the same twice")
    check(len(text) < 300_000, f"{len(text)} bytes")
    check(json.dumps(raw, separators=(",", ":"), ensure_ascii=False).encode() == text, "not compact")
    check(raw["openapi"] == "3.1.0", raw["openapi"])
    check(set(raw) == {"openapi", "info", "servers", "security", "tags", "paths",
                         "components"}, set(raw))
    check({"title", "version", "description"} == set(raw["info"]), raw["info"])
    document = Document(raw)
    ids = []
    for path, item in raw["paths"].items():
        check(path.startswith("/") and set(item) <= METHODS, f"{path}: {set(item)}")
        for method, operation in item.items():
            check_operation(document, path, method, operation)
            ids.append(operation["operationId"])
    check(len(set(ids)) == len(ids), "two operations of one id")
    for name, schema in document.schemas.items():
        check_schema(document, schema, name)
    references = set(references_in(raw))
    for reference in references:
        document.resolve({"$ref": reference})
    for name in document.schemas:
        check(f"#/components/schemas/{name}" in references, f"nobody refers to {name}")
    print(f"    {len(text)} bytes, {len(ids)} operations, {len(document.schemas)} schemas")


def answer_of(port, method, path):
    """Status, headers and, unless it is a stream, the answer to a request of this shape."""
    target = re.sub(r"\{id\}", "1", path).replace("{namespace}", "default")
    target = re.sub(r"\{\w+\}", "nobody", target)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        body, headers = None, {}
        if method in ("POST", "PUT"):
            body, headers = "{}", {"Content-Type": "application/json"}
        connection.request(method, target, body, headers)
        response = connection.getresponse()
        stream = response.headers.get("Content-Type", "").startswith("text/event-stream")
        return response.status, response.headers, b"" if stream else response.read()
    finally:
        connection.close()


def it_has_the_routes_there_are_and_no_others():
    for arguments in ((), ("--virtual-time",)):
        with Server(None, *arguments) as server:
            document = document_of(server.client())[0]
            check(("/api/v1/test/advance" in document["paths"]) == bool(arguments), "advance")
            count = 0
            for path, item in document["paths"].items():
                methods = {method.upper() for method in item}
                status, head, _ = answer_of(server.port, "OPTIONS", path)
                check(status == 405, f"OPTIONS {path}: {status}")
                check(set(head["Allow"].split(", ")) == methods, f"{path}: {head['Allow']}, {methods}")
                for method in methods:
                    status, _, answer = answer_of(server.port, method, path)
                    place = f"{method} {path}: {status} {answer[:300]}"
                    check(b"METHOD_NOT_ALLOWED" not in answer, place)
                    check(b"ROUTE_NOT_FOUND" not in answer or path in ("/", "/assets/{path}"), place)
                    check(status != 500, place)  # what is not in the document throws
                    offered = any(code < "400" for code in item[method.lower()]["responses"])
                    check(offered == (b"NOT_OFFERED" not in answer), place)
                    count += 1
            check(answer_of(server.port, "GET", "/api/v1/nothing")[0] == 404, "there is something")
    print(f"    {count} operations asked")


# --- What the server answers ---


def the_answers_about_permits(client):
    client.set_pool("gpu", slots=["a", "b"], rate={"perSecond": 100, "burst": 100}, reason="trial",
                    devices={"a": "GPU-1"}, identity="operator")
    grant = client.acquire("gpu", "r1", holder="nightly", lease="90s", labels={"team": "x"},
                           reason="trial")
    client.acquire("gpu", "r2", holder="second", only=["b"], maxHold="600s", lease="60s")
    waiting = client.acquire("gpu", "r3", holder="third", wait="0.01s")
    client.get("/pools")
    client.pool("gpu")
    waiter = client.get("/pools/gpu/waiters")["waiters"][0]
    check(waiting["ticket"]["id"] == waiter["id"], waiter)
    client.get(f"/waiters/{waiter['id']}/why")
    client.refused("POOL_FULL", client.acquire, "gpu", "r4", wait="0s")
    client.refused("CANNOT_FIT", client.acquire, "gpu", "r5", count=9)
    client.refused("POOL_NOT_FOUND", client.pool, "gpv")
    permit, token = grant["slots"][0]["id"], grant["token"]
    client.renew(permit, token)
    client.permit(permit)
    client.permit(permit, grant["slots"][0]["runId"])
    for wrong in (token[:-1] + "?", token[::-1]):
        error = client.refused("LEASE_LOST", client.renew, permit, wrong)
        check(token not in error.message and wrong not in error.message, "the token is in the error")
    client.post("/pools/gpu/drain", {"slot": "b", "reason": "dust", "identity": "operator"})
    client.post("/pools/gpu/undrain", {"slot": "b"})
    client.ask("DELETE", f"{NAMESPACE}/waiters/{waiter['id']}?identity=operator&reason=trial")
    client.release(permit, token)
    held = client.get("/permits", pool="gpu", state="held")["permits"][0]
    take = {"fence": held["fence"], "reason": "trial", "identity": "operator"}
    client.post(f"/permits/{held['id']}/force-release", take)
    client.refused("PERMIT_NOT_HELD", client.post, f"/permits/{held['id']}/force-release", take)
    client.get("/permits", since="2026-01-01T00:00:00Z")
    page = client.get("/permits", pageSize=1)
    client.get("/permits", pageSize=1, nextPageToken=page["nextPageToken"])
    client.get("/permits", pool="gpu", slot="b", outcome="force_released")
    client.refused("PARAMETER_UNKNOWN", client.ask_unlisted, "GET", NAMESPACE + "/pools?x=1")
    client.set_pool("empty", capacity=1)
    client.ask("DELETE", NAMESPACE + "/pools/empty")


def the_messages_of_the_stream(client):
    """Reads the snapshot, makes changes, and reads on until it has seen them and a ping."""
    target = NAMESPACE + "/events"
    schemas = client.document.operation("GET", target)["responses"]["200"]["content"]
    schemas = dict(zip(("snapshot", "changes", "ping"), schemas["text/event-stream"]["schema"]["anyOf"]))
    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=20)
    connection.request("GET", target)
    stream, seen, event = connection.getresponse(), {}, None
    check(stream.headers["Content-Type"] == "text/event-stream", stream.headers)
    while set(seen) != set(schemas):
        line = stream.readline().decode().rstrip("\n")
        check(stream.status == 200 and not stream.isclosed(), "the stream has ended")
        event = line[7:] if line.startswith("event: ") else event
        if line.startswith("data: "):
            client.agree(json.loads(line[6:]), schemas[event], f"a {event}")
            if event not in seen and event == "snapshot":
                client.acquire("gpu", "stream", holder="stream", lease="60s")
                client.start("stream")
            seen[event] = True
    connection.close()


def the_answers_about_workflows(client):
    client.start("w", input=[1, "two", {"three": [3]}], memo={"fields": {"why": "trial"}})
    client.signal("w", "poke", input=["now"])
    task = client.poll()
    failure = {"message": "no", "source": "trial", "cause": {"message": "because"}}
    client.complete(
        task, start_permit("gpu", lease="30s", labels={"a": "b"}),
        command("StartTimer", timerId="t", startToFireTimeout="0.001s"),
        command("RecordMarker", markerName="m", details={"d": payloads(1)}),
        command("ScheduleActivityTask", activityId="a", activityType={"name": "A"},
                taskQueue={"name": "work"}, startToCloseTimeout="10s", input=payloads([1]),
                retryPolicy={"maximumAttempts": 2, "initialInterval": "0.001s"}))
    activity = client.rpc("PollActivityTaskQueue", taskQueue={"name": "work"}, pollWait="5s")
    client.rpc("RecordActivityTaskHeartbeat", taskToken=activity["taskToken"], details=payloads(2))
    client.info("w")
    client.get("/workflows/w")
    client.rpc("RespondActivityTaskFailed", taskToken=activity["taskToken"], failure=failure)
    activity = client.rpc("PollActivityTaskQueue", taskQueue={"name": "work"}, pollWait="5s")
    client.rpc("RespondActivityTaskCompleted", taskToken=activity["taskToken"], result=payloads(3))
    client.pool("gpu")
    while not any("activityTaskCompletedEventAttributes" in event for event in client.history("w")):
        client.complete(client.poll())  # what comes before it: the child, the timer
    client.complete(client.poll(), complete_workflow([{"done": True}]))
    client.history("w")
    client.get("/workflows/w/history", waitNewEvent="true",
               historyEventFilterType="HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT")
    client.rpc("GetWorkflowExecutionHistory", execution={"workflowId": "w"})
    client.start("x")
    client.post("/workflows/x/cancel", {"reason": "trial"})
    client.post("/workflows/x/terminate", {"reason": "trial", "details": ["d"]})
    client.refused("WORKFLOW_NOT_FOUND", client.info, "nobody")
    client.get("/workflows", query="WorkflowType = 'Test'", pageSize=10)
    client.get("/workflow-count", query="ExecutionStatus = 'Completed'")
    client.get("/task-queues/work", taskQueueType="TASK_QUEUE_TYPE_ACTIVITY", reportStats="true")
    client.rpc("ListWorkflowExecutions", pageSize=5)


def the_answers_about_the_server(client):
    for target in ("/livez", "/readyz", "/metrics", "/openapi.json", "/api/v1/namespaces",
                   NAMESPACE, "/api/v1/system-info", "/api/v1/cluster-info", "/favicon.ico",
                   "/api/v1/server", "/livez?verbose", "/readyz?verbose"):
        check(client.raw("GET", target)[0] in (200, 204), target)
    for name in ("GetServerStatus", "ListTaskQueues", "ListPools", "ListPermits"):
        client.ask("POST", PERMIT_RPC + name, {"namespace": "default"})
    told = {"workerInstanceKey": "k", "hostInfo": {"hostName": "h"}, "deploymentVersion": {"buildId": "b"},
            "status": "WORKER_STATUS_RUNNING", "startTime": "2026-11-19T00:00:00Z",
            "activityTaskSlotsInfo": {"currentUsedSlots": 1, "totalProcessedTasks": 2}}
    client.post("/workers/heartbeat", {"workerHeartbeat": [told]})
    client.rpc("RecordWorkerHeartbeat", workerHeartbeat=[told])
    client.get("/workers", pageSize=1)
    client.get("/workers/describe/k")
    client.rpc("ListWorkers")
    client.rpc("DescribeWorker", workerInstanceKey="k")
    client.refused("WORKER_NOT_FOUND", client.get, "/workers/describe/nobody")
    client.refused("NAMESPACE_NOT_FOUND", client.ask, "GET", "/api/v1/namespaces/other")
    client.refused("NOT_OFFERED", client.ask, "POST", NAMESPACE + "/workflows/w/reset")
    client.refused("FIELD_INVALID", client.rpc_unlisted, "DescribeWorkflowExecution", execution=7)


class Session(CheckedClient):
    def ask_unlisted(self, method, target):
        """Past the check of parameters: the request is meant to be wrong."""
        return Client.ask(Client(self.port), method, target)

    def rpc_unlisted(self, name, **message):
        return Client.rpc(Client(self.port), name, **message)


def what_the_server_answers_is_what_it_says():
    with Server(None, permit_worker=True) as server:
        client = Session(server.port)
        the_answers_about_permits(client)
        the_answers_about_workflows(client)
        the_messages_of_the_stream(client)
        the_answers_about_the_server(client)
        print(f"    {len(client.seen)} kinds of answers")


def a_wrong_answer_would_be_noticed():
    with Server() as server:
        client = Session(server.port)
        client.set_pool("gpu", capacity=1)
        schemas = client.document.schemas
        for name, schema in (("capacity", {"type": "string"}), ("capacity", None),
                             ("changes", {"type": "array", "items": {"type": "string"}})):
            kept = schemas["PoolInfo"]["properties"].pop(name)
            if schema:
                schemas["PoolInfo"]["properties"][name] = schema
            try:
                client.pool("gpu")
            except AssertionError as error:
                check(name in str(error), error)
            else:
                raise AssertionError(f"{name} passes as {schema}")
            schemas["PoolInfo"]["properties"][name] = kept
        client.pool("gpu")


run(it_is_an_openapi_document, it_has_the_routes_there_are_and_no_others,
    what_the_server_answers_is_what_it_says, a_wrong_answer_would_be_noticed)
