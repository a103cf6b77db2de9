#!/usr/bin/env python3
"""permit workflow, task-queue and worker, as people and scripts type them, on the real server."""

import contextlib
import json
import os
import pty
import re
import subprocess
import threading

from support import BINARY, Server, Worker, check, directory, eventually, events_of, run


class Answer:
    """One command that has ended."""

    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def __repr__(self):
        return f"exit {self.code}\n{self.out}{self.err}"

    def json(self):
        return json.loads(self.out)

    def lines(self):
        return [json.loads(line) for line in self.out.splitlines()]


class Shell:
    """Types commands at a server."""

    def __init__(self, server):
        self.environment = {
            "HOME": str(directory()), "PATH": os.environ["PATH"], "TZ": "UTC",
            "PERMIT_ADDRESS": f"http://127.0.0.1:{server.port}", "PERMIT_IDENTITY": "tester",
        }

    def __call__(self, *words, code=0, stdin=None):
        done = subprocess.run(
            [BINARY, *map(str, words)], env=self.environment, capture_output=True, text=True,
            timeout=60, input=stdin,
        )
        answer = Answer(done)
        check(done.returncode == code, f"permit {' '.join(map(str, words))}: {answer}")
        return answer

    def workflow(self, *words, **more):
        return self("workflow", *words, **more)

    def popen(self, *words, **more):
        return subprocess.Popen([BINARY, *words], env=self.environment, text=True, **more)


@contextlib.contextmanager
def world(*workers, permit_worker=False):
    """A server, a shell for it, and workers of "work" or "holders"."""
    programs = {"work": ("permit_test_worker",), "holders": ("permit_test_holder", "1")}
    with Server(permit_worker=permit_worker) as server, contextlib.ExitStack() as stack:
        for queue in workers:
            program, *arguments = programs[queue]
            stack.enter_context(Worker(server.port, queue, *arguments, program=program))
        client = server.client()
        if "holders" in workers:
            client.set_pool("silent", capacity=1)
        yield Shell(server), client


def a_workflow_is_executed_and_its_result_printed():
    with world("work") as (shell, client):
        answer = shell.workflow("execute", "--type", "Sum", "-t", "work", "-i", "3")
        check(answer.out == "12\n", answer)
        check("started, run" in answer.err, answer)
        quiet = shell.workflow("execute", "--quiet", "--type", "Sum", "-t", "work", "-i", "3")
        check(quiet.err == "", quiet)

        answer = shell.workflow("execute", "s", "--type", "Sum", "-t", "work", "-i", "2", "-o", "json")
        run_id = client.info("s")["execution"]["runId"]
        check(answer.json() == {
            "execution": {"workflowId": "s", "runId": run_id},
            "status": "WORKFLOW_EXECUTION_STATUS_COMPLETED", "result": [6]}, answer)
        check(shell.workflow("result", "s").out == "6\n", "result")
        check(shell.workflow("result", "-w", "s", "-r", run_id[-6:]).out == "6\n", "result -r")


def arguments_come_as_json_from_words_files_and_stdin():
    with world("work") as (shell, client):
        file = directory() / "argument.json"
        file.write_text("4\n")
        start = ("execute", "--type", "Sum", "-t", "work")
        check(shell.workflow(*start, "--input-file", file).out == "20\n", "from a file")
        check(shell.workflow(*start, "--input-file", "-", stdin="1").out == "2\n", "from stdin")
        answer = shell.workflow(*start, "-i", "four", code=2)
        check(answer.err == "permit: --input: four is not JSON; write a text as '\"four\"'\n", answer)
        shell.workflow(*start, "-i", "1", "--input-file", file, code=2)
        shell.workflow(*start, "--input-file", "/nowhere", code=2)
        shell.workflow("start", "m", "--type", "Sum", "-t", "idle", "-i", "[1, 2]", "-i", '"x"',
                       "--memo", 'who={"name": "ana"}', "--execution-timeout", "1h",
                       "--run-timeout", "30m", "--task-timeout", "5s")
        begun = events_of(client.history("m"), "WorkflowExecutionStarted")[0]
        check(begun["input"] == [[1, 2], "x"], begun)
        check(begun["workflowExecutionTimeout"] == "3600s", begun)
        check(begun["workflowRunTimeout"] == "1800s", begun)
        check(begun["workflowTaskTimeout"] == "5s", begun)
        check(begun["identity"] == "tester", begun)
        check(client.info("m")["memo"]["fields"]["who"] == {"name": "ana"}, client.info("m"))
        answer = shell.workflow("start", "--type", "Sum", "--memo", "who", code=2)
        check("is not KEY=JSON" in answer.err, answer)


def starting_twice_is_a_conflict_unless_a_policy_says_otherwise():
    with world() as (shell, client):
        start = ("start", "a", "--type", "T", "-t", "idle")
        first = shell.workflow(*start, "-o", "json").json()
        check(first["workflowId"] == "a" and first["started"] is True, first)
        answer = shell.workflow(*start, code=5)
        check("is already running" in answer.err, answer)
        again = shell.workflow(*start, "--id-conflict-policy", "UseExisting")
        check(f"a runs already, run {first['runId']}\n" == again.out, again)
        other = shell.workflow(*start, "--id-conflict-policy", "TerminateExisting", "-o", "json")
        check(other.json()["runId"] != first["runId"], other)
        shell.workflow("terminate", "a", "--reason", "enough")
        shell.workflow(*start, "--id-reuse-policy", "RejectDuplicate", code=5)
        shell.workflow(*start, "--id-reuse-policy", "AllowDuplicateFailedOnly")
        answer = shell.workflow("start", "b", "-t", "idle", code=2)
        check("--type NAME" in answer.err, answer)
        answer = shell.workflow("start", "b", "--type", "T", "-w", "c", code=2)
        check("two workflow ids" in answer.err, answer)
        # Without an id it gets one; without a queue, the environment's.
        shell.environment["PERMIT_TASK_QUEUE"] = "jobs"
        made = shell.workflow("start", "--type", "T", "-o", "json").json()
        check(client.info(made["workflowId"])["taskQueue"] == "jobs", made)


def how_a_run_ends_is_the_exit_code():
    with world("work") as (shell, client):
        shell.workflow("start", "slow", "--type", "Slow", "-t", "work", "-i", "100", "-i", "50")
        answer = shell.workflow("result", "slow", "--command-timeout", "200ms", code=124)
        check("--command-timeout" in answer.err, answer)
        answer = shell.workflow("cancel", "slow", "--reason", "wrong data")
        check(answer.out == "slow asked to cancel\n", answer)
        answer = shell.workflow("result", "slow", code=1)
        check(answer.err == "permit: slow was canceled\n" and answer.out == "", answer)
        canceled = events_of(client.history("slow"), "WorkflowExecutionCancelRequested")[0]
        check(canceled["cause"] == "wrong data" and canceled["identity"] == "tester", canceled)

        shell.workflow("start", "idle", "--type", "Nothing", "-t", "idle")
        answer = shell.workflow("terminate", "idle", "--reason", "no one")
        check(answer.out == "idle terminated\n", answer)
        answer = shell.workflow("result", "idle", code=1)
        check(answer.err == "permit: idle was terminated: no one\n", answer)
        answer = shell.workflow("result", "idle", "-o", "json", code=1)
        check(answer.json()["failure"]["message"] == "no one", answer)
        check(answer.json()["status"] == "WORKFLOW_EXECUTION_STATUS_TERMINATED", answer)

        shell.workflow("start", "late", "--type", "Nothing", "-t", "idle", "--run-timeout", "1s")
        answer = shell.workflow("result", "late", code=1)
        check(answer.err == "permit: late ran out of time\n", answer)
        answer = shell.workflow("result", "late", "-o", "json", code=1)
        check(answer.json()["status"] == "WORKFLOW_EXECUTION_STATUS_TIMED_OUT", answer)

        # One that fails: its worker is this test.
        client.start("bad", type="Bad", queue="mine")
        task = client.poll("mine")
        failure = {"message": "no data", "cause": {"message": "file gone"}}
        client.complete(task, {
            "commandType": "COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION",
            "failWorkflowExecutionCommandAttributes": {"failure": failure}})
        answer = shell.workflow("result", "bad", code=1)
        check(answer.err == "permit: bad failed: no data: file gone\n", answer)


def a_result_follows_the_runs_that_continue_one_another():
    with world() as (shell, client):
        first = client.start("long", type="Long", queue="mine")["runId"]
        waiter = shell.popen("workflow", "result", "long", "-r", first, stdout=subprocess.PIPE)
        client.complete(client.poll("mine"), {
            "commandType": "COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION",
            "continueAsNewWorkflowExecutionCommandAttributes": {"input": [2]}})
        client.complete(client.poll("mine"), {
            "commandType": "COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION",
            "completeWorkflowExecutionCommandAttributes": {"result": ["the end"]}})
        out, _ = waiter.communicate(timeout=20)
        check(out == '"the end"\n' and waiter.returncode == 0, out)


def what_is_not_there_is_not_found():
    with world() as (shell, client):
        for words in (["describe"], ["show"], ["result"], ["cancel"], ["terminate"], ["trace"],
                      ["signal", "--name", "x"], ["query", "--name", "x"]):
            verb, *more = words
            answer = shell.workflow(verb, "nope", *more, code=3)
            check("nope" in answer.err and answer.out == "", answer)
            answer = shell.workflow(verb, *more, code=2)
            check("needs a workflow id" in answer.err, answer)
        client.start("there")
        answer = shell.workflow("describe", "there", "-r", "ffffffff", code=3)
        check("no run of there ends in ffffffff" in answer.err, answer)
        shell.workflow("signal", "there", code=2)
        answer = shell.workflow("trce", "there", code=2)
        check(answer.err.endswith("did you mean trace?\n"), answer)
        answer = shell.workflow("list", "-q", "Foo = 1", code=2)
        check("Foo" in answer.err, answer)


def runs_are_listed_and_counted():
    with world("holders", permit_worker=True) as (shell, client):
        check(shell.workflow("list").out == "No such run.\n", "nothing yet")
        check(shell.workflow("list", "-o", "json").json() == {}, "nothing yet")
        check(shell.workflow("list", "-o", "jsonl").lines() == [], "nothing yet")
        for name in ("h1", "h2"):
            shell.workflow("start", name, "--type", "Hold", "-t", "holders", "-i", "60")
            if name == "h1":
                eventually(lambda: client.pool("silent").get("held"), "h1 has the slot")
        eventually(lambda: client.pool("silent").get("waiting"), "h2 waits")

        lines = shell.workflow("list").out.splitlines()
        head = lines[0].split("  ")
        check([word.strip() for word in head if word] == [
            "STATUS", "OUTCOME", "WORKFLOW ID", "RUN", "TYPE", "TASK QUEUE", "START", "DURATION"],
            lines)
        def row(name):
            return next(line for line in lines if f"  {name}  " in line)

        check(row("h1").startswith("Running  -"), lines)
        check(row("h2").startswith("Waiting  -"), lines)
        check(row("permit:silent:0").startswith("Running  held"), lines)
        check("PermitSlotWorkflow  permits" in row("permit:silent:0"), lines)
        # The API's own words in JSON.
        runs = shell.workflow("list", "-o", "json").json()["executions"]
        check(len(runs) == 3, runs)
        statuses = {item["execution"]["workflowId"]: item["status"] for item in runs}
        check(statuses["h2"] == "WORKFLOW_EXECUTION_STATUS_RUNNING", runs)
        check(shell.workflow("list", "-o", "jsonl").lines() == runs, "jsonl is the same")

        found = shell.workflow("list", "-q", "WorkflowType = 'Hold'", "-o", "jsonl").lines()
        check({item["execution"]["workflowId"] for item in found} == {"h1", "h2"}, found)
        few = shell.workflow("list", "--limit", "1")
        check(len(few.out.splitlines()) == 2 and "there are more" in few.err, few)
        check(shell.workflow("count", "-q", "WorkflowType = 'Hold'").out == "2\n", "count")
        check(shell.workflow("count", "-o", "json").json() == {"count": "3"}, "count")

        shell.workflow("signal", "h1", "--name", "done")
        check(shell.workflow("result", "h1").out == '"0"\n', "the slot")
        lines = shell.workflow("list", "-q", "WorkflowType = 'PermitSlotWorkflow'").out.splitlines()
        check(any(line.startswith("Completed  released") for line in lines), lines)


def a_run_is_described():
    with world("holders", "work", permit_worker=True) as (shell, client):
        shell.workflow("start", "h1", "--type", "Hold", "-t", "holders", "-i", "60", "--memo", "n=1")
        eventually(lambda: client.pool("silent").get("held"), "h1 has the slot")
        shell.workflow("start", "h2", "--type", "Hold", "-t", "holders", "-i", "60")
        eventually(lambda: client.pool("silent").get("waiting"), "h2 waits")
        text = shell.workflow("describe", "h1").out
        check(text.startswith("h1  Running\n"), text)
        check("Type           Hold, task queue holders\n" in text, text)
        check("Memo           n=1\n" in text, text)
        check(re.search(r"^Permit +permit:silent:0, held .*, lease left .*, fence \d+$", text, re.M), text)
        text = shell.workflow("describe", "h2").out
        check(text.startswith("h2  Waiting\n"), text)
        check(re.search(r"^Waits for +pool silent, .*, position 1\n +.*held", text, re.M), text)

        shell.workflow("start", "slow", "--type", "Slow", "-t", "work", "-i", "200", "-i", "50")
        eventually(
            lambda: client.get("/workflows/slow").get("pendingActivities", [{}])[0].get(
                "heartbeatDetails"), "a heartbeat")
        text = shell.workflow("describe", "slow").out
        check(re.search(
            r"^Activity +steps, attempt 1 on \S+ for \S+, heartbeat \S+ ago\n +progress \d+$",
            text, re.M), text)
        described = shell.workflow("describe", "slow", "-o", "json").json()
        check(described["workflowExecutionInfo"]["execution"]["workflowId"] == "slow", described)
        check(shell.workflow("describe", "slow", "-o", "jsonl").lines()[0].keys()
              == described.keys(), "jsonl")
        shell.workflow("start", "orphan", "--type", "X", "-t", "nobody")
        text = shell.workflow("describe", "orphan").out
        check("Workflow task  waits for a worker since" in text, text)
        shell.workflow("terminate", "orphan", "--reason", "x")
        text = shell.workflow("describe", "orphan").out
        check(text.startswith("orphan  Terminated\n") and "closed" in text, text)


def a_history_is_shown_and_followed():
    with world("work") as (shell, client):
        shell.workflow("execute", "s", "--type", "Sum", "-t", "work", "-i", "1")
        text = shell.workflow("show", "s").out
        check("WorkflowExecutionStarted" in text and "WorkflowTaskStarted" not in text, text)
        check("workflow-task events hidden; --all" in text, text)
        check("WorkflowTaskStarted" in shell.workflow("show", "s", "--all").out, "--all")
        events = shell.workflow("show", "s", "-o", "json").json()["events"]
        check(len(events) == len(client.history("s")), events)
        check(shell.workflow("show", "s", "-o", "jsonl").lines() == events, "jsonl")

        shell.workflow("start", "slow", "--type", "Slow", "-t", "work", "-i", "5", "-i", "50")
        follow = shell.popen("workflow", "show", "slow", "--follow", stdout=subprocess.PIPE)
        out, _ = follow.communicate(timeout=20)
        check(follow.returncode == 0 and "WorkflowExecutionCompleted" in out, out)


def a_long_history_comes_whole_in_pages():
    with world() as (shell, client):
        client.start("long")
        for number in range(1_100):  # more than a page, and more than is shortened at once
            client.signal("long", "note", input=[{"number": number, "padding": "x" * 20}])
        pages, token = [], None
        while True:
            page = client.get("/workflows/long/history", maximumPageSize=5_000,
                              **({"nextPageToken": token} if token else {}))
            pages.append(page["history"]["events"])
            token = page.get("nextPageToken")
            if not token:
                break
        check([len(page) for page in pages] == [1_000, 102], [len(page) for page in pages])
        events = pages[0] + pages[1]
        check([int(event["eventId"]) for event in events] == list(range(1, 1_103)), "ids")
        inputs = [event["input"][0]["number"] for event in events_of(events, "WorkflowExecutionSignaled")]
        check(inputs == list(range(1_100)), "as they were sent, in the short form")
        check(len(shell("workflow", "show", "-w", "long", "-o", "json").json()["events"]) == 1_102, "by command")


def signals_and_queries_reach_a_run():
    with world("holders", permit_worker=True) as (shell, client):
        client.start("mine", type="Mine", queue="mine")
        answer = shell.workflow("signal", "mine", "--name", "rate", "-i", "0.5", "-i", '"x"')
        check(answer.out == "mine got the signal rate\n", answer)
        got = events_of(client.history("mine"), "WorkflowExecutionSignaled")[0]
        check(got["signalName"] == "rate" and got["input"] == [0.5, "x"], got)
        check(shell.workflow("signal", "mine", "--name", "rate", "-o", "json").json() == {}, "json")

    with world("work") as (shell, client):
        shell.workflow("start", "s", "--type", "Sum", "-t", "work", "-i", "200")
        answer = shell.workflow("query", "s", "--name", "total")
        check(int(answer.out) % 2 == 0, answer)
        answer = shell.workflow("query", "s", "--name", "total", "-o", "json")
        check(isinstance(answer.json()["queryResult"][0], int), answer)
        answer = shell.workflow("query", "s", "--name", "totl", code=2)
        check("total" in answer.err, answer)
        shell.workflow("terminate", "s", "--reason", "x")
        answer = shell.workflow(
            "query", "s", "--name", "total", "--reject-condition", "not_open", code=1)
        check("Terminated" in answer.err, answer)


def several_are_ended_by_query_after_a_yes():
    with world() as (shell, client):
        for number in range(3):
            client.start(f"a-{number}", type="A", queue="idle")
        client.start("b", type="B", queue="idle")
        query = ("-q", "WorkflowType = 'A'")
        answer = shell.workflow("terminate", *query, code=2)
        check("finds 3 runs; say --yes" in answer.err, answer)
        check(client.info("a-0")["status"].endswith("RUNNING"), "nothing was done")
        shell.workflow("terminate", "b", *query, "--yes", code=2)

        answer = shell.workflow("cancel", *query, "--yes")
        check(answer.out == "3 of 3 asked to cancel\n", answer)
        # On a terminal it asks, with the number.
        leader, follower = pty.openpty()
        asks = shell.popen("workflow", "terminate", *query, "--reason", "all", stdin=follower,
                           stderr=follower, stdout=subprocess.PIPE)
        os.close(follower)
        asked = b""  # it may come in parts
        while b"terminate 3 runs? [y/N]" not in asked:
            asked += os.read(leader, 1000)
        os.write(leader, b"n\n")
        out, _ = asks.communicate(timeout=20)
        os.close(leader)
        check(asks.returncode == 1 and out == "", out)
        check(client.info("a-0")["status"].endswith("RUNNING"), "nothing was done")
        done = shell.workflow("terminate", *query, "--yes", "-o", "json").json()
        check(done == {"found": 3, "done": 3}, done)
        check(client.info("a-2")["status"].endswith("TERMINATED"), "done")
        check(client.info("b")["status"].endswith("RUNNING"), "not that one")
        check(shell.workflow("cancel", *query).out == "0 of 0 asked to cancel\n", "nothing left")


def a_trace_prints_each_change_into_a_pipe():
    with world("holders", permit_worker=True) as (shell, client):
        shell.workflow("start", "h", "--type", "Hold", "-t", "holders", "-i", "60")
        trace = shell.popen("workflow", "trace", "h", stdout=subprocess.PIPE)
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(iter(trace.stdout.readline, "")))
        reader.start()
        eventually(lambda: any("h / permit:silent:0  held, fence" in line for line in lines), "held")
        shell.workflow("start", "next", "--type", "Hold", "-t", "holders", "-i", "60")
        eventually(lambda: client.pool("silent").get("waiting"), "the next one waits")
        waits = shell.popen("workflow", "trace", "next", stdout=subprocess.PIPE)
        check("next  Running\n" in waits.stdout.readline(), "the first line")
        check("next / silent  waits in line\n" in waits.stdout.readline(), "the second line")
        shell.workflow("signal", "h", "--name", "done")
        check("next / permit:silent:0  held" in waits.stdout.readline(), "the third line")
        waits.kill()
        waits.communicate()
        check(trace.wait(timeout=20) == 0, lines)
        reader.join()
        text = "".join(lines)
        check("\x1b" not in text, "escape codes in a pipe")
        check("h / permit:silent:0  released\n" in text and "h  Completed\n" in text, text)
        check(len(lines) == len({line.split("  ", 1)[1] for line in lines}), "a line said twice")

        tree = shell.workflow("trace", "h", "-o", "json").json()
        check(tree["name"] == "h" and tree["state"] == "Completed", tree)
        run_id = client.get("/permits", pool="silent", state="closed")["permits"][0]["runId"]
        hold = client.permit("permit:silent:0", run_id)
        check(tree["children"] == [
            {"kind": "permit", "name": "permit:silent:0", "state": "released",
             "startTime": hold["since"], "closeTime": hold["closedAt"]}], (tree, hold))
        lines = shell.workflow("trace", "h", "-o", "jsonl").lines()
        check([line["path"] for line in lines] == ["h", "h / permit:silent:0"], lines)


def a_trace_on_a_terminal_is_drawn_anew():
    with world("work") as (shell, client):
        shell.workflow("start", "slow", "--type", "Slow", "-t", "work", "-i", "30", "-i", "100")
        leader, follower = pty.openpty()
        trace = shell.popen("workflow", "trace", "slow", stdout=follower, stderr=follower)
        os.close(follower)
        seen = b""
        with contextlib.suppress(OSError):  # the terminal is closed at the end
            while piece := os.read(leader, 4096):
                seen += piece
        os.close(leader)
        check(trace.wait(timeout=20) == 0, seen)
        text = seen.decode()
        check("└ " in text and "steps" in text and "attempt 1 on" in text, text)
        check("\x1b[2A" in text, "the cursor went up by the two lines of the last picture")
        last = text.rsplit("\x1b[2A", 1)[1]
        check("Completed" in last and "completed" in last, last)
        check("\x1b[?7h" in last, "wrapping is on again")


def queues_and_workers_are_listed():
    with world("work") as (shell, client):
        # The worker says that it is there before it has polled.
        queues = eventually(
            lambda: (found := shell("task-queue", "list", "-o", "json").json().get("queues", []))
            and len(found) > 1 and found, "polls for both kinds of tasks")
        check({queue["name"] for queue in queues} == {"work"}, queues)  # no worker's own
        check({queue["kind"] for queue in queues} == {"workflow", "activity"}, queues)
        lines = shell("task-queue", "list", "-o", "jsonl").lines()  # polled meanwhile
        named = [[(queue["name"], queue["kind"]) for queue in one] for one in (lines, queues)]
        check(named[0] == named[1], named)
        client.start("orphan", type="X", queue="nobody")
        text = shell("task-queue", "list").out
        check(re.search(r"^nobody +workflow +1 +\S.* +0\.\d\d +- +0 +", text, re.MULTILINE), text)
        check("no worker polls this queue: nobody (1 workflow task waits)" in text, text)
        text = shell("task-queue", "describe", "work").out
        identity = queues[0]["pollers"][0]["identity"]
        check(f"workflow tasks: {identity}" in text, text)
        check(shell("task-queue", "describe", "-t", "work", "-o", "json").json()["queues"], "json")
        answer = shell("task-queue", "describe", "wrok", code=3)
        check(answer.err == "permit: there is no task queue wrok; did you mean work?\n", answer)
        shell("task-queue", "describe", code=2)

        workers = shell("worker", "list", "-o", "json").json()["workers"]
        check([worker["identity"] for worker in workers] == [identity], workers)
        lines = shell("worker", "list", "-o", "jsonl").lines()
        check([line["identity"] for line in lines] == [identity], lines)
        told = workers[0]["workerHeartbeat"]
        pid, _, host = identity.partition("@")
        check(told["hostInfo"] == {"hostName": host, "processId": pid}, told)
        head, line = shell("worker", "list").out.splitlines()
        check(head.split() == ["WORKER", "STATUS", "VERSION", "TASK", "QUEUES", "WORKFLOW", "ACTIVITY",
                               "CACHE", "LAST", "SEEN"], head)
        check(line.split()[:7] == [identity, "running", "permit-cpp", "0.1.0", "work", "0/8", "0/8"], line)
        for name in (identity, told["workerInstanceKey"]):
            page = shell("worker", "describe", name).out
            check(f"{identity}  running, last seen " in page and f"{host}, process {pid}\n" in page, page)
            check("0/8 slots in use, 0 processed, 0 of them failed" in page, page)
            described = shell("worker", "describe", name, "-o", "json").json()["workers"]
            check(len(described) == 1 and len(described[0]["queues"]) == 2, described)
        shell("worker", "describe", "nobody", code=3)
        # One with a name and a build of its own, that has fallen silent; and one that only polls.
        client.rpc("RecordWorkerHeartbeat", workerHeartbeat=[{
            "workerInstanceKey": "k", "workerIdentity": "a name", "taskQueue": "other",
            "hostInfo": {"hostName": "far", "processId": "7"}, "status": "WORKER_STATUS_SHUTTING_DOWN",
            "deploymentVersion": {"buildId": "v7"}, "totalStickyCacheHit": 199, "totalStickyCacheMiss": 1,
            "workflowTaskSlotsInfo": {"currentUsedSlots": 3, "currentAvailableSlots": -1},
            "currentStickyCacheSize": 12}])
        client.poll("work", wait="0.001s", identity="curl")
        table = shell("worker", "list").out
        check(re.search(r"\(7@far\)  shutting_down  v7 +other +3/\? +- +12 \(99%\) +(now|\d+s)", table), table)
        check(re.search(r"^curl +- +- +work +- +- +- +(now|\d+s)", table, re.MULTILINE), table)
        check("found by 99% of their tasks (199 hits, 1 misses)" in shell("worker", "describe", "k").out,
              "describe")
    with world() as (shell, client):
        check("No worker is known." in shell("worker", "list").out, "empty")
        check(shell("worker", "list", "-o", "json").json() == {}, "empty")
        check(shell("task-queue", "list", "-o", "json").json() == {}, "empty")


run(
    a_workflow_is_executed_and_its_result_printed,
    arguments_come_as_json_from_words_files_and_stdin,
    starting_twice_is_a_conflict_unless_a_policy_says_otherwise,
    how_a_run_ends_is_the_exit_code,
    a_result_follows_the_runs_that_continue_one_another,
    what_is_not_there_is_not_found,
    runs_are_listed_and_counted,
    a_run_is_described,
    a_history_is_shown_and_followed,
    a_long_history_comes_whole_in_pages,
    signals_and_queries_reach_a_run,
    several_are_ended_by_query_after_a_yes,
    a_trace_prints_each_change_into_a_pipe,
    a_trace_on_a_terminal_is_drawn_anew,
    queues_and_workers_are_listed,
)
