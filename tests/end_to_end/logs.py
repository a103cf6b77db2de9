#!/usr/bin/env python3
"""The log: each line is JSON with known keys, each transition has one line, nothing that anybody can
name breaks one, and nobody who does not read it holds up the server."""

import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import threading
import time

from support import BINARY, NAMESPACE, REPOSITORY, Client, Refused, Server, Unknown, check, directory
from support import eventually, run, start_permit

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
HOSTILE = ['a\nb {"level":"error"}', "\x1b[2J\x1b]0;x\x07", "\u009b2J", "\u202etxt.exe", 'q"\\\u2028',
           "\x7f\t\r", "ünï 漢字"]


def documented():
    """(events, keys) of docs/logs.md, in the order of its tables."""
    text = (REPOSITORY / "docs" / "logs.md").read_text()
    events, keys = text.split("## Events")[1].split("## Traces")[0].split("## Keys")
    names = lambda part: re.findall(r"^\| `([a-z_]+)`", part, re.MULTILINE)
    return names(events), names(keys)


EVENTS, KEYS = documented()


def parsed(lines):
    """Every line as a dictionary; each must be in order."""
    found = []
    for line in lines:
        value = json.loads(line)
        unknown = set(value) - set(KEYS)
        check(not unknown, f"keys that docs/logs.md does not have: {unknown} in {line}")
        check(value["event"] in EVENTS, f"an event that docs/logs.md does not have: {line}")
        check(list(value) == [key for key in KEYS if key in value], f"keys in another order: {line}")
        check(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", value["ts"]), line)
        check(value["level"] in ("debug", "info", "warn", "error"), line)
        found.append(value)
    return found


def events(server, event):
    return [line for line in parsed(server.log) if line["event"] == event]


def eventually_line(server, event, matches=lambda line: True):
    wanted = lambda: [line for line in events(server, event) if matches(line)]
    return eventually(wanted, f"a line {event}")[0]


def slot_of(grant):
    return grant["slots"][0]


# --- What is documented ---


def the_events_and_keys_are_those_of_the_sources():
    sources = [path.read_text() for folder in ("orchestrator", "apps/cli")
               for path in (REPOSITORY / folder).rglob("*.cpp")]
    said = set()
    for text in sources:
        said |= set(re.findall(r'\.event = "([a-z_]+)"', text))
        said |= set(re.findall(r'\.event = [^;]*\? "([a-z_]+)" : "[a-z_]+"', text))
        said |= set(re.findall(r'\.event = [^;]*\? "[a-z_]+" : "([a-z_]+)"', text))
        said |= set(re.findall(r'complain\("([a-z_]+)"', text))
        said |= set(re.findall(r'Level::[a-z]+, "([a-z_]+)"', text))
    check(said == set(EVENTS), f"docs/logs.md and the sources differ in {said ^ set(EVENTS)}")
    log = (REPOSITORY / "orchestrator/protocol/log.cpp").read_text()
    keys = ["ts", "level", "event", "msg", *re.findall(r'visit\(R"\(,"([a-z_]+)":', log)]
    check(keys == KEYS, f"docs/logs.md has {KEYS}, log.cpp {keys}")


# --- Transitions ---


def each_transition_has_one_line():
    with Server(permit_worker=True, log_level="debug") as server:
        client = server.client()
        client.set_pool("gpu", capacity=2, identity="ana", reason="two cards")
        first = client.acquire("gpu", "r1", holder="train-1", reason="bert")
        second = client.acquire("gpu", "r2", holder="train-2", lease="3s")
        waiting = client.acquire("gpu", "r3", holder="train-3")  # when the second's lease is over
        client.renew(slot_of(first)["id"], first["token"])
        client.release(slot_of(first)["id"], first["token"])
        try:
            client.release(slot_of(second)["id"], second["token"])
            check(False, "a late release was taken")
        except Refused as refused:
            check(refused.reason == "LEASE_LOST", refused)
        client.post(f"/permits/{slot_of(waiting)['id']}/force-release",
                    {"fence": waiting["fence"], "reason": "stuck", "identity": "ana"})
        client.post("/pools/gpu/drain", {"slot": "0", "identity": "ana", "reason": "fan"})
        both = client.acquire("gpu", "r4", holder="train-4", count=1)
        ticket = client.acquire("gpu", "r5", holder="waits", wait="0.01s")["ticket"]
        client.ask("DELETE", f"{NAMESPACE}/waiters/{ticket['id']}?identity=ana&reason=enough")
        run_id = client.start("job", requestId="start-1")["runId"]
        task = client.poll()
        client.complete(task, start_permit("gpu", lease="60s", wait=True))
        client.release(slot_of(both)["id"], both["token"])
        client.post("/workflows/job/terminate", {"reason": "enough"})
        closed = lambda: len(events(server, "permit_closed")) == 5
        eventually(closed, "the last line")
        check(server.stop() == 0, "exit code")

        acquired = {line["fence"]: line for line in events(server, "permit_acquired")}
        ends = {line["fence"]: line for line in events(server, "permit_closed")}
        check(len(acquired) == len(events(server, "permit_acquired")) == 5, "five grants, each once")
        check(set(ends) == set(acquired) and len(ends) == 5, "five ends, each once")
        line = acquired[first["fence"]]
        wanted = {"level": "info", "namespace": "default", "pool": "gpu", "holder": "train-1",
                  "reason": "bert", "wait_ms": 0, "request_id": "r1",
                  "run_id": slot_of(first)["runId"], "slot": slot_of(first)["slot"],
                  "workflow_id": slot_of(first)["id"]}
        check({key: line.get(key) for key in wanted} == wanted, line)
        check(acquired[waiting["fence"]]["wait_ms"] > 100, acquired[waiting["fence"]])

        def ended(grant):
            line = ends[grant["fence"]]
            return line["level"], line["outcome"], line.get("cause"), line.get("possible_overlap", False)

        check(ended(first) == ("info", "released", None, False), ended(first))
        check(ended(second) == ("warn", "lease_expired", "timer", True), ended(second))
        check(ended(waiting) == ("warn", "force_released", "operator", True), ended(waiting))
        check(2000 < ends[second["fence"]]["held_ms"] < 8000, ends[second["fence"]])  # the backstop: 8 s
        of_job = [line for line in ends.values() if line["holder"] == "job"]
        check(of_job[0]["outcome"] == "holder_closed" and of_job[0]["cause"] == "terminated", of_job)

        late = events(server, "permit_released_late")
        check([line["fence"] for line in late] == [second["fence"]], late)
        check([line["fence"] for line in events(server, "permit_renewed")] == [first["fence"]], "renewed")
        acts = [(line["msg"], line.get("by"), line.get("reason"))
                for line in events(server, "pool_changed")]
        check(acts == [("set capacity 2", "ana", "two cards"), ("drained slot 0", "ana", "fan")], acts)
        removed = events(server, "waiter_removed")
        check([(line["holder"], line["by"], line["reason"]) for line in removed]
              == [("waits", "ana", "enough")], removed)
        started = [line for line in events(server, "workflow_started") if line["workflow_id"] == "job"]
        check([line["run_id"] for line in started] == [run_id], started)
        check(started[0]["task_queue"] == "work" and started[0]["request_id"] == "start-1", started)
        over = [line for line in events(server, "workflow_closed") if line["workflow_id"] == "job"]
        check([line["outcome"] for line in over] == ["terminated"], over)
        life = [line["event"] for line in parsed(server.log) if line["event"].startswith("server_")]
        check(life == ["server_started", "server_ready", "server_stopping", "server_stopped"], life)


def what_was_answered_has_its_line_and_a_restart_repeats_none():
    """kill -9 in the middle of it all, three times."""
    database = directory() / "killed.db"
    held, freed, lines = set(), set(), []
    for round in range(3):
        with Server(database, log_level="info") as server:
            client = server.client()
            client.set_pool("gpu", capacity=2000)

            def work(number):
                mine = server.client()
                try:
                    for turn in range(1000):
                        grant = mine.acquire("gpu", f"{round}-{number}-{turn}", holder=f"h{number}")
                        held.add(grant["fence"])
                        if turn % 3 == 0:
                            continue
                        mine.release(slot_of(grant)["id"], grant["token"])
                        freed.add(grant["fence"])
                except (Unknown, Refused):
                    pass  # it was killed

            threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(4)]
            for thread in threads:
                thread.start()
            enough = len(held) + 40
            eventually(lambda: len(held) >= enough, "some holds", 30)
            server.kill()
            for thread in threads:
                thread.join(10)
            server.reader.join(10)
            whole = [line for line in server.log if line.endswith("\n")]
            lines += parsed(whole)
    acquired = [line["fence"] for line in lines if line["event"] == "permit_acquired"]
    closed = [line["fence"] for line in lines if line["event"] == "permit_closed"]
    check(len(set(acquired)) == len(acquired), "a grant has two lines")
    check(len(set(closed)) == len(closed), "an end has two lines")
    check(held <= set(acquired), f"answered, and no line: {held - set(acquired)}")
    check(freed <= set(closed), f"answered, and no line: {freed - set(closed)}")
    check(len(held) > 60 and freed, f"{len(held)} holds")


def nothing_is_logged_of_what_came_to_nothing():
    with Server(log_level="debug") as server:
        client = server.client()
        client.set_pool("gpu", capacity=1)
        client.acquire("gpu", "a", holder="a")
        try:
            client.acquire("gpu", "b", holder="b", wait="0s")
            check(False, "granted")
        except Refused as refused:
            check(refused.reason == "POOL_FULL", refused)
        line = eventually_line(server, "request_failed")
        check(line["level"] == "debug" and line["status"] == 423, line)
        check(line["method"] == "POST" and line["path"].endswith("/pools/gpu/acquire"), line)
        check(line["error"].startswith("POOL_FULL: "), line)
        check(len(events(server, "permit_acquired")) == 1, "the refused one is not in the log")
        polls = [line for line in parsed(server.log) if "Poll" in line.get("path", "")]
        check(not polls, polls)


# --- Names ---


def hostile_names_break_no_line():
    with Server(log_level="debug") as server:
        client = server.client()
        client.set_pool("gpu", capacity=len(HOSTILE))
        for number, name in enumerate(HOSTILE):
            client.acquire("gpu", f"r{number}", holder="q\"\u202e", reason=name)
        found = lambda: len(events(server, "permit_acquired")) == len(HOSTILE)
        eventually(found, "a line for each")
        names = [line["reason"] for line in events(server, "permit_acquired")]
        check(names == HOSTILE, f"{names}")


def on_a_terminal_it_is_text_that_moves_no_cursor():
    master, slave = pty.openpty()
    environment = {**os.environ, "TZ": "UTC"}
    environment.pop("PERMIT_LOG_LEVEL", None)
    process = subprocess.Popen([BINARY, "server", "start-dev", "--port", "0"], stdout=slave,
                               stderr=slave, stdin=slave, env=environment)
    os.close(slave)
    shown = [""]

    def read(until):
        end = time.monotonic() + 10
        while until not in shown[0]:
            check(time.monotonic() < end, f"no {until!r} in {shown[0]!r}")
            if select.select([master], [], [], 0.1)[0]:
                shown[0] += os.read(master, 65536).decode()

    try:
        read("server_ready")
        check(shown[0].startswith("permit 0."), "where things are comes first")
        port = int(re.search(r"API +http://127\.0\.0\.1:(\d+)", shown[0])[1])
        client = Client(port)
        for number, name in enumerate(HOSTILE[:4]):
            grant = client.acquire("demo", f"r{number}", holder="q\"\u202e", reason=name)
        client.post(f"/permits/{slot_of(grant)['id']}/force-release", {"fence": grant["fence"]})
        read("force_released")
        lines = shown[0].split("\r\n")
        ended = next(line for line in lines if "permit_closed" in line)
        check(re.match(r"\d\d:\d\d:\d\d WARN permit_closed demo:\d force_released ", ended), ended)
        check("possible_overlap" in ended and "held=" in ended, ended)
        log = [line for line in lines if re.match(r"\d\d:\d\d:\d\d ", line)]
        for line in log:
            check(not re.search("[\x00-\x1f\x7f\u0080-\u009f\u202a-\u202e\u2028]", line), repr(line))
        check(sum("permit_acquired" in line for line in log) == 4, log)
    finally:
        process.terminate()
        while True:  # until it has written its last
            try:
                if not os.read(master, 65536):
                    break
            except OSError:
                break
        check(process.wait(10) == 0, "exit code")
        os.close(master)


# --- Levels and places ---


def levels_leave_out_what_is_less():
    for level, quiet in (("error", True), ("warn", True), ("info", False)):
        with Server(log_level=level) as server:
            client = server.client()
            client.set_pool("gpu", capacity=1)
            grant = client.acquire("gpu", "a", holder="a")
            client.release(slot_of(grant)["id"], grant["token"])
            check(server.stop() == 0, "exit code")
            check(bool(parsed(server.log)) != quiet, f"{level}: {server.log}")


def a_flag_wins_over_the_environment_and_that_over_the_file():
    file = directory() / "log.toml"
    file.write_text('[log]\nlevel = "error"\nformat = "text"\nslow = "2s"\n')
    with Server(None, "--config", str(file), log_level="info") as server:
        settings = {one["name"]: one for one in server.client().ask("GET", "/api/v1/server")["settings"]}
        check((settings["log.level"]["value"], settings["log.level"]["origin"])
              == ("info", "environment"), settings["log.level"])
        check((settings["log.format"]["value"], settings["log.format"]["origin"])
              == ("text", f"file {file}"), settings["log.format"])
        check(settings["log.slow"]["value"] == "2s", settings["log.slow"])
        eventually(lambda: any(" INFO server_ready" in line for line in server.log), "text in a pipe")
    with Server(None, "--config", str(file), "--log-level", "debug", "--log-format", "json") as server:
        eventually_line(server, "server_ready")
    for arguments, wanted in ((["--log-level", "loud"], "--log-level"),
                              (["--log-format", "xml"], "--log-format")):
        done = subprocess.run([BINARY, "server", "start-dev", "--port", "0", *arguments], timeout=20,
                              capture_output=True, text=True)
        check(done.returncode == 2 and wanted in done.stderr, done)
    done = subprocess.run([BINARY, "server", "start-dev", "--port", "0"], timeout=20, text=True,
                          capture_output=True, env={**os.environ, "PERMIT_LOG_LEVEL": "loud"})
    check(done.returncode == 2 and "PERMIT_LOG_LEVEL is one of debug" in done.stderr, done)
    file.write_text('[log]\nlevel = "loud"\n')
    done = subprocess.run([BINARY, "server", "check", "--config", file], capture_output=True, text=True)
    check(done.returncode == 2 and f"{file}:2: level is one of" in done.stderr, done)


def a_signal_toggles_debug():
    with Server(log_level="info") as server:
        client = server.client()
        client.start("before")
        server.process.send_signal(signal.SIGUSR1)
        eventually_line(server, "log_level_changed", lambda line: "debug" in line["msg"])
        client.start("between")
        eventually_line(server, "workflow_started", lambda line: line["workflow_id"] == "between")
        server.process.send_signal(signal.SIGUSR1)
        eventually_line(server, "log_level_changed", lambda line: "info" in line["msg"])
        client.start("after")
        check(server.stop() == 0, "exit code")
        started = [line["workflow_id"] for line in events(server, "workflow_started")]
        check(started == ["between"], started)


def under_systemd_each_line_begins_with_its_priority():
    read_end, write_end = os.pipe()
    status = os.fstat(write_end)
    environment = {**os.environ, "JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}",
                   "PERMIT_LOG_LEVEL": "info"}
    process = subprocess.Popen([BINARY, "server", "start-dev", "--port", "0"], env=environment,
                               stdout=subprocess.PIPE, stderr=write_end, text=True)
    os.close(write_end)
    for line in process.stdout:
        found = re.match(r"API\s+http://127\.0\.0\.1:(\d+)", line)
        if found:
            break
    client = Client(int(found[1]))
    grant = client.acquire("demo", "a", holder="a")
    client.post(f"/permits/{slot_of(grant)['id']}/force-release", {"fence": grant["fence"]})
    process.terminate()
    check(process.wait(10) == 0, "exit code")
    process.stdout.close()
    with os.fdopen(read_end) as log:
        lines = log.read().splitlines()
    priorities = {"debug": "<7>", "info": "<6>", "warn": "<4>", "error": "<3>"}
    for line in parsed([line[3:] for line in lines]):
        pass
    found = {json.loads(line[3:])["level"]: line[:3] for line in lines}
    check(found == {level: priorities[level] for level in ("info", "warn")}, found)


def a_log_that_nobody_reads_holds_up_nothing():
    read_end, write_end = os.pipe()
    environment = {**os.environ, "PERMIT_LOG_LEVEL": "debug"}
    process = subprocess.Popen([BINARY, "server", "start-dev", "--port", "0", "--no-permit-worker"],
                               env=environment, stdout=subprocess.PIPE, stderr=write_end, text=True)
    os.close(write_end)
    try:
        for line in process.stdout:
            found = re.match(r"API\s+http://127\.0\.0\.1:(\d+)", line)
            if found:
                break
        client = Client(int(found[1]))
        slowest = 0
        for number in range(1000):  # some 700 KB; a pipe takes 64, and the server keeps as much
            began = time.monotonic()
            grant = client.acquire("demo", f"r{number}", holder="x" * 200)
            client.release(slot_of(grant)["id"], grant["token"])
            slowest = max(slowest, time.monotonic() - began)
        check(slowest < 5, f"the slowest took {slowest:.1f} s")
        text = ""
        end = time.monotonic() + 20
        while "log_lines_dropped" not in text.rpartition("\n")[0]:
            check(time.monotonic() < end, "the dropped lines are not told of")
            if select.select([read_end], [], [], 0.1)[0]:
                text += os.read(read_end, 65536).decode()
        lines = parsed(text.rpartition("\n")[0].splitlines())  # not one of them is broken
        dropped = sum(line.get("dropped", 0) for line in lines)
        told = sum(line["event"] in ("permit_acquired", "permit_closed") for line in lines)
        check(dropped > 100, f"{dropped} dropped")
        check(told + dropped >= 2000, f"{told} told and {dropped} dropped of 2000")
        os.close(read_end)
        read_end = None
        for number in range(20):  # and now nobody can ever read it
            grant = client.acquire("demo", f"s{number}", holder="y")
            client.release(slot_of(grant)["id"], grant["token"])
        check(process.poll() is None, "the server has ended")
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()
        if read_end is not None:
            os.close(read_end)


# --- Requests and traces ---


def a_full_disk_under_the_log_keeps_no_server_alive():
    with open("/dev/full", "w") as full:
        server = subprocess.Popen([BINARY, "server", "start-dev", "--port", "0"],
                                  stdout=subprocess.PIPE, stderr=full, text=True)
    try:
        for line in server.stdout:
            if line.startswith("Stop with"):
                break
        server.send_signal(signal.SIGTERM)
        check(server.wait(10) == 0, "it ends")
    finally:
        server.kill()
        server.wait()


def a_trace_is_in_the_lines_that_it_causes_and_goes_on_with_the_run():
    with Server(log_level="debug") as server:
        client = server.client()
        client.set_pool("gpu", capacity=1)
        parent = f"00-{TRACE}-{SPAN}-01"

        def ask(method, target, body, traceparent):
            headers = {"Content-Type": "application/json", "traceparent": traceparent}
            status, _, answer = client.raw(method, target, json.dumps(body), headers)
            return status, json.loads(answer)

        status, grant = ask("POST", f"{NAMESPACE}/pools/gpu/acquire",
                            {"requestId": "a", "holder": "a"}, parent)
        check(status == 200, grant)
        line = eventually_line(server, "permit_acquired")
        check((line["trace_id"], line["span_id"]) == (TRACE, SPAN), line)
        client.release(slot_of(grant)["id"], grant["token"])
        check("trace_id" not in eventually_line(server, "permit_closed"), "it was another request")
        ask("POST", f"{NAMESPACE}/pools/nowhere/acquire", {"requestId": "b", "holder": "b"}, parent)
        check(eventually_line(server, "request_failed")["trace_id"] == TRACE, "a failed request")

        def header(workflow):
            started = client.history(workflow)[0]["workflowExecutionStartedEventAttributes"]
            return started.get("header", {}).get("fields", {})

        start = {"workflowType": {"name": "T"}, "taskQueue": {"name": "q"}}
        ask("POST", f"{NAMESPACE}/workflows/traced", start, parent)
        check(header("traced") == {"_tracer-data": {"traceparent": parent}}, header("traced"))
        check(eventually_line(server, "workflow_started")["trace_id"] == TRACE, "started")
        own = {**start, "header": {"fields": {"_tracer-data": {"traceparent": "own"}}}}
        ask("POST", f"{NAMESPACE}/workflows/own", own, parent)
        check(header("own") == {"_tracer-data": {"traceparent": "own"}}, header("own"))
        for number, bad in enumerate(("", "00-0", f"ff-{TRACE}-{SPAN}-01", f"00-{'0' * 32}-{SPAN}-01",
                                      f"00-{TRACE.upper()}-{SPAN}-01", parent + "-00")):
            status, _ = ask("POST", f"{NAMESPACE}/workflows/bad-{number}", start, bad)
            check(status == 200 and not header(f"bad-{number}"), f"{bad}: {header(f'bad-{number}')}")


def slow_answers_get_a_line_and_waiting_is_not_slow():
    with Server(None, "--log-slow", "0.001ms", log_level="warn") as server:
        client = server.client()
        client.get("/pools")
        line = eventually_line(server, "request_slow")
        check(line["status"] == 200 and line["path"] == NAMESPACE + "/pools", line)
        client.poll(wait="0.2s")
        client.get("/pools")
        eventually(lambda: len(events(server, "request_slow")) >= 2, "another")
        check(not any("Poll" in line["path"] for line in events(server, "request_slow")), "a poll")


def the_server_says_what_it_is_and_keeps_its_secret():
    database = directory() / "secret.db"
    with Server(database, "--retention", "90m") as server:
        client = server.client()
        client.set_pool("gpu", capacity=2)
        client.acquire("gpu", "a", holder="a")
        status, _, text = client.raw("GET", "/api/v1/server")
        said = json.loads(text)
        check(status == 200 and said["pid"] == server.process.pid and said["ready"], said)
        check(said["held"] == 1 and said["store"] == str(database) and said["storeBytes"] > 0, said)
        check(said["version"] and said["compiler"] and said["host"] and said["startTime"], said)
        settings = {one["name"]: one for one in said["settings"]}
        check((settings["retention"]["value"], settings["retention"]["origin"]) == ("1h30m", "flag"),
              settings)
        check(settings["permit_queue"]["origin"] == "default", settings)
        key = settings["token_key"]
        check(key["secret"] and key["value"] == "(set)" and key["origin"] == f"file {database}.key", key)
        secret = pathlib.Path(f"{database}.key").read_text().strip()
        check(len(secret) >= 16 and secret.encode() not in text, "the secret is told")
        check({"payloadBytes", "connections", "lease"} <= {one["name"] for one in said["limits"]}, said)


def a_worker_says_what_it_has_to_say_in_the_same_way():
    environment = {**os.environ, "PERMIT_ADDRESS": "http://127.0.0.1:1"}
    worker = subprocess.Popen([BINARY, "worker", "start"], env=environment, text=True,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        line = parsed([worker.stderr.readline()])[0]
        check(line["event"] == "worker_says" and "cannot poll" in line["msg"], line)
        check(line["task_queue"] == "permits", line)
    finally:
        worker.kill()
        worker.wait()
        worker.stderr.close()


if __name__ == "__main__":
    run(
        the_events_and_keys_are_those_of_the_sources,
        each_transition_has_one_line,
        what_was_answered_has_its_line_and_a_restart_repeats_none,
        nothing_is_logged_of_what_came_to_nothing,
        hostile_names_break_no_line,
        on_a_terminal_it_is_text_that_moves_no_cursor,
        levels_leave_out_what_is_less,
        a_flag_wins_over_the_environment_and_that_over_the_file,
        a_signal_toggles_debug,
        under_systemd_each_line_begins_with_its_priority,
        a_log_that_nobody_reads_holds_up_nothing,
        a_full_disk_under_the_log_keeps_no_server_alive,
        a_trace_is_in_the_lines_that_it_causes_and_goes_on_with_the_run,
        slow_answers_get_a_line_and_waiting_is_not_slow,
        the_server_says_what_it_is_and_keeps_its_secret,
        a_worker_says_what_it_has_to_say_in_the_same_way,
    )
