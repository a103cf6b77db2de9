#!/usr/bin/env python3
"""The event stream: a snapshot, then what has changed; nobody who comes back misses anything."""

import http.client
import json
import os
import random
import socket
import threading
import time

from support import NAMESPACE, Server, check, directory, eventually, run, start_permit

SEED = int(os.environ.get("SEED", "20261119"))


class Events:
    """One stream, read on a thread. `messages` are (event, id, data, when)."""

    def __init__(self, server, query="", last=None):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        headers = {"Last-Event-ID": last} if last else {}
        self.connection.connect()
        self.socket = self.connection.sock
        self.connection.request("GET", f"{NAMESPACE}/events{query}", headers=headers)
        self.response = self.connection.getresponse()
        check(self.response.status == 200, f"the stream is answered with {self.response.status}")
        self.messages = []
        self.ended = False
        self.last = last
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        event, number, data = "", None, ""
        try:
            for line in self.response:
                line = line.decode().rstrip("\n")
                if line.startswith("event: "):
                    event = line[7:]
                elif line.startswith("id: "):
                    number = line[4:]
                elif line.startswith("data: "):
                    data = line[6:]
                elif not line and event:
                    self.messages.append((event, number, json.loads(data), time.monotonic()))
                    self.last = number or self.last
                    event, number, data = "", None, ""
            self.ended = True
        except (OSError, ValueError, http.client.HTTPException, AttributeError):
            pass

    def named(self, event):
        return [message[2] for message in self.messages if message[0] == event]

    def wait(self, event, matches=lambda data: True, seconds=10):
        found = []

        def look():
            found[:] = [data for data in self.named(event) if matches(data)]
            return found

        eventually(look, f"a {event} message", seconds)
        return found[0]

    def holds(self):
        return [hold for data in self.named("changes") for hold in data.get("holds", [])]

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the server was first
        self.response.close()
        self.thread.join(10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def shows_an_acquire_at_once_and_how_it_ended():
    with Server() as server:
        client = server.client()
        client.set_pool("gpu", capacity=2)
        with Events(server) as events:
            snapshot = events.wait("snapshot")
            check([pool["pool"] for pool in snapshot["pools"]] == ["gpu"], f"pools: {snapshot}")
            check(len(snapshot["pools"][0]["slots"]) == 2, f"slots: {snapshot}")
            check(snapshot["now"] and snapshot["instance"] and snapshot["version"], str(snapshot))

            granted = client.acquire("gpu", "a", holder="train-a", reason="bert")
            held = lambda data: any(h["state"] == "held" for h in data.get("holds", []))
            changes = events.wait("changes", held)
            pool = changes["pools"][0]
            slot = pool["slots"][0]
            check(pool["partial"] and pool["held"] == 1 and len(pool["slots"]) == 1, str(pool))
            check(slot["permit"]["holder"] == "train-a", str(slot))

            client.release(granted["slots"][0]["id"], granted["token"])
            ended = lambda data: any(h["state"] == "closed" for h in data.get("holds", []))
            changes = events.wait("changes", ended)
            check(changes["holds"][0]["outcome"] == "released", str(changes))
            check(changes["pools"][0]["slots"][0]["freeSince"], str(changes))
            check(changes["pools"][0]["lastDay"] == [{"outcome": "released", "holds": 1}], str(changes))

            late = [how_late(client, events, f"again-{number}") for number in range(5)]
            # A busy machine is slow at times, a stream that is slow always.
            check(min(late) < 0.25, f"acquires were shown after {late} s")


def how_late(client, events, name):
    """How long after it was asked for a hold is shown, in seconds."""
    asked = time.monotonic()
    granted = client.acquire("gpu", name, holder=name)
    changes = events.wait("changes", lambda data: any(h["holder"] == name for h in data.get("holds", [])))
    came = next(m[3] for m in events.messages if m[2] is changes)
    client.release(granted["slots"][0]["id"], granted["token"])
    return came - asked


def shows_who_waits_settings_and_workflows():
    with Server() as server:
        client = server.client()
        client.set_pool("gpu", capacity=1)
        with Events(server) as events:
            events.wait("snapshot")
            client.acquire("gpu", "a", holder="first")
            client.acquire("gpu", "b", holder="second", wait="0.001s")
            line = lambda data: any(l.get("waiting") == 1 for l in data.get("lines", []))
            waiting = events.wait("changes", line)
            check(waiting["lines"][0]["waiters"][0]["holder"] == "second", str(waiting))
            check(waiting["pools"][0]["oldestWait"], str(waiting))

            client.post("/pools/gpu/drain", {"slot": "0", "identity": "ana", "reason": "fan"})
            whole = lambda data: any(p["slots"][0].get("drained") for p in data.get("pools", []))
            changes = events.wait("changes", whole)
            pool = changes["pools"][0]
            check("partial" not in pool and pool["changes"][0]["by"] == "ana", str(pool))

            client.start("job", requestId="1")
            began = lambda data: any(w["workflowId"] == "job" for w in data.get("workflows", []))
            events.wait("changes", began)
            client.post("/workflows/job/terminate", {"reason": "enough"})
            status = "WORKFLOW_EXECUTION_STATUS_TERMINATED"
            over = lambda data: any(w["status"] == status for w in data.get("workflows", []))
            events.wait("changes", over)

            client.set_pool("other", capacity=1)
            client.ask("DELETE", NAMESPACE + "/pools/other")
            events.wait("changes", lambda data: data.get("removed") == ["other"])


def resumes_without_a_gap():
    with Server() as server:
        client = server.client()
        client.set_pool("gpu", capacity=1)
        with Events(server) as events:
            events.wait("snapshot")
        for number in range(3):
            granted = client.acquire("gpu", str(number), holder=f"job-{number}")
            client.release("permit:gpu:0", granted["token"])
        with Events(server, last=events.last) as again:
            eventually(lambda: len(again.holds()) == 3, "three holds that came and went meanwhile")
            check(not again.named("snapshot") and not again.named("reset"), "no need to begin anew")
            check({h["state"] for h in again.holds()} == {"closed"}, "how they are now")
        with Events(server, query=f"?since={again.last}") as idle:
            idle.wait("ping")
            check(not idle.holds() and not idle.named("snapshot"), f"nothing new: {idle.messages}")


def begins_anew_where_it_is_not_known():
    database = directory() / "events.db"
    with Server(database) as server:
        client = server.client()
        client.set_pool("gpu", capacity=2)
        granted = client.acquire("gpu", "a", holder="before", reason="first")
        client.release(granted["slots"][0]["id"], granted["token"])
        client.acquire("gpu", "b", holder="held on")
        with Events(server) as events:
            events.wait("snapshot")
        server.kill()
    with Server(database) as server:
        for last in (events.last, "nonsense", "999-1", events.last.split("-")[0] + "-99999999"):
            with Events(server, last=last) as again:
                snapshot = again.wait("snapshot")
                check([m[0] for m in again.messages[:2]] == ["reset", "snapshot"], f"with {last}")
        check(snapshot["pools"][0]["held"] == 1, f"the state: {snapshot}")
        check(snapshot["holds"][0]["holder"] == "before", f"the ledger: {snapshot}")
        check(snapshot["pools"][0]["lastDay"] == [{"outcome": "released", "holds": 1}], str(snapshot))


def tells_of_one_pool_only_if_asked():
    with Server() as server:
        client = server.client()
        client.set_pool("a", capacity=1)
        client.set_pool("b", capacity=1)
        with Events(server, query="?pool=a") as events:
            snapshot = events.wait("snapshot")
            check([pool["pool"] for pool in snapshot["pools"]] == ["a"], str(snapshot))
            client.acquire("b", "1", holder="other")
            client.acquire("a", "1", holder="mine")
            changes = events.wait("changes", lambda data: data.get("holds"))
            check(len(events.holds()) == 1 and events.holds()[0]["pool"] == "a", str(changes))
            check(not changes.get("workflows"), str(changes))


def joins_what_comes_fast():
    """Hundreds of changes in a second are a dozen messages, the last of them right."""
    with Server() as server:
        client = server.client()
        client.set_pool("gpu", capacity=1)
        with Events(server) as events:
            events.wait("snapshot")
            began, cycles = time.monotonic(), 0
            while time.monotonic() - began < 2:
                granted = client.acquire("gpu", str(cycles), holder="loop")
                client.release("permit:gpu:0", granted["token"])
                cycles += 1
            took = time.monotonic() - began
            closed = lambda: {h["fence"] for h in events.holds() if h["state"] == "closed"}
            eventually(lambda: len(closed()) == cycles, f"{cycles} holds, each told")
            changes = len(events.named("changes"))
            check(changes <= took * 10 + 5, f"{changes} messages in {took:.1f} s")
            check(cycles > 3 * changes, f"{cycles} cycles in {changes} messages")


def a_slow_reader_skips_to_how_things_are():
    with Server() as server:
        client = server.client()
        client.set_pool("big", capacity=512)
        for number in range(8):
            client.acquire("big", str(number), count=64, holder=f"job-{number}-" + "x" * 60)
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        slow.connect(("127.0.0.1", server.port))
        slow.sendall(f"GET {NAMESPACE}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        with Events(server) as quick:
            quick.wait("snapshot")
            for round in range(30):  # more than any buffer between us takes; a message each
                told = len(quick.named("changes"))
                client.post("/pools/big/drain", {"reason": f"round {round}"})
                eventually(lambda: len(quick.named("changes")) > told, f"round {round}")
            received = b""
            slow.settimeout(10)
            while b'"reason":"round 29"' not in received:
                received += slow.recv(1 << 20)
            slow.close()
            told = received.count(b"event: changes")
            quick.wait("changes", lambda data: '"round 29"' in json.dumps(data))
            most = len(quick.named("changes"))
            check(told < most, f"the slow one got {told} messages, the quick one {most}")


def ends_with_the_server():
    with Server() as server:
        with Events(server) as events:
            events.wait("snapshot")
            began = time.monotonic()
            check(server.stop() == 0, "exit code")
            check(time.monotonic() - began < 3, "a stream does not hold up the stop")
            eventually(lambda: events.ended, "the last chunk")


# --- A model that is kept by the messages alone ---


class Model:
    def __init__(self):
        self.pools, self.lines, self.closed = {}, {}, set()
        self.applied = 0  # messages of the stream at hand

    def follow(self, events):
        """Applies what has come since."""
        messages = list(events.messages)
        for event, _, data, _ in messages[self.applied:]:
            self.apply(event, json.loads(json.dumps(data)))
        self.applied = len(messages)

    def apply(self, event, data):
        if event == "snapshot":
            self.pools = {pool["pool"]: pool for pool in data.get("pools", [])}
            self.lines = {line["pool"]: line for line in data.get("lines", [])}
            self.closed |= {hold["fence"] for hold in data.get("holds", [])}
        if event != "changes":
            return
        for pool in data.get("pools", []):
            if pool.pop("partial", False):
                known = self.pools[pool["pool"]]
                slots = {slot["slot"]: slot for slot in known["slots"]}
                slots.update({slot["slot"]: slot for slot in pool.get("slots", [])})
                pool["slots"] = list(slots.values())
                pool["changes"] = known.get("changes", [])
            self.pools[pool["pool"]] = pool
        for name in data.get("removed", []):
            self.pools.pop(name, None)
        for line in data.get("lines", []):
            self.lines[line["pool"]] = line
        self.closed |= {h["fence"] for h in data.get("holds", []) if h["state"] == "closed"}


def comparable(pool):
    """What both must agree on; what depends on the moment of asking left out."""
    pool = json.loads(json.dumps(pool))
    return {
        "held": pool.get("held", 0),
        "capacity": pool.get("capacity", 0),
        "waiting": pool.get("waiting", 0),
        "drained": pool.get("drained", False),
        "changes": pool.get("changes", []),
        "outcomes": pool.get("outcomes", []),
        "slots": {slot["slot"]: slot for slot in pool.get("slots", [])},
    }


def a_model_kept_by_messages_equals_the_server():
    """Random work of two seconds a round; the reader comes and goes; in the end both agree."""
    print(f"SEED={SEED}")
    choice = random.Random(SEED)
    with Server() as server:
        client = server.client()
        pools = {name: choice.randint(1, 5) for name in ("a", "b", "c")}
        for name, capacity in pools.items():
            client.set_pool(name, capacity=capacity)
        model, held, closed, number = Model(), [], set(), 0
        last = None
        for round in range(6):
            with Events(server, last=last) as events:
                began, connected = time.monotonic(), choice.random() * 1.2
                while time.monotonic() - began < connected:
                    number += 1
                    step(client, choice, number, pools, held, closed)
                if round == 5:
                    eventually(
                        lambda: model.follow(events) or agree(model, client, pools),
                        f"SEED={SEED} agreement: {differences(model, client, pools)}",
                    )
            model.follow(events)  # what came until it was closed: `last` is the last of it
            last = events.last
            for _ in range(choice.randint(0, 40)):  # while nobody reads
                number += 1
                step(client, choice, number, pools, held, closed)
            model.applied = 0
        missing = closed - model.closed - late(closed, client)
        check(not missing and len(closed) > 5, f"SEED={SEED} of {len(closed)} not told: {missing}")


def late(closed, client):
    """Those that ended after the last message was read."""
    holds = client.get("/permits", state="closed", pageSize=100)["permits"]
    return {hold["fence"] for hold in holds[:50]}


def differences(model, client, pools):
    """What the messages and the server say differently."""
    found = []
    for name in pools:
        truth = comparable(client.pool(name))
        told = comparable(model.pools.get(name, {}))
        found += [(name, key, truth[key], told[key]) for key in truth if truth[key] != told[key]]
        waiters = [w["id"] for w in client.get(f"/pools/{name}/waiters").get("waiters", [])][:50]
        line = [w["id"] for w in model.lines.get(name, {}).get("waiters", [])]
        found += [(name, "line", waiters, line)] if waiters != line else []
    return found


def agree(model, client, pools):
    return not differences(model, client, pools)


def step(client, choice, number, pools, held, closed):
    name = choice.choice(list(pools))
    what = choice.random()
    if what < 0.45:
        answer = client.acquire(name, f"r{number}", holder=f"job-{number}", wait="0.001s",
                                waitTimeout=choice.choice(["0s", "0.3s"]))
        if answer["state"] == "granted":
            held.append((answer["slots"][0], answer["token"]))
    elif what < 0.85 and held:
        slot, token = held.pop(choice.randrange(len(held)))
        client.release(slot["id"], token)
        closed.add(slot["fence"])
    elif what < 0.9 and held:
        slot, token = held.pop(choice.randrange(len(held)))
        client.post(f"/permits/{slot['id']}/force-release", {"fence": slot["fence"], "reason": "x"})
        closed.add(slot["fence"])
    elif what < 0.92:
        verb = choice.choice(["drain", "undrain", "undrain"])
        client.post(f"/pools/{name}/{verb}", {"reason": str(number)})
    elif held:
        slot, token = choice.choice(held)
        client.renew(slot["id"], token)


# --- Alerts ---


def alerts_say_what_to_see_to():
    with Server() as server:
        client = server.client()
        with Events(server) as events:
            events.wait("snapshot")
            client.start("lonely", queue="nobody-here")
            kinds = lambda data: [alert["kind"] for alert in data.get("alerts", [])]
            unserved = events.wait("changes", lambda data: "queue_unserved" in kinds(data))
            alert = unserved["alerts"][0]
            check(alert["queue"] == "nobody-here" and alert["message"] and alert["wayOut"], str(alert))
            task = client.poll("nobody-here")
            check(task is not None, "the task")
            events.wait("changes", lambda data: data.get("alertsChanged") and not kinds(data))

            client.set_pool("gpu", capacity=1)
            client.complete(task, start_permit("gpu", slots=["0", "1"], lease="60s", wait=True))
            found = events.wait("changes", lambda data: "capacity_mismatch" in kinds(data))
            check("lonely" in json.dumps(found["alerts"]), str(found["alerts"]))

            hold = client.permit("permit:gpu:0")
            client.post("/permits/permit:gpu:0/force-release", {"fence": hold["fence"]})
            client.acquire("gpu", "next", holder="next one")
            found = events.wait("changes", lambda data: "possible_overlap" in kinds(data))
            check("lonely" in json.dumps(found["alerts"]), str(found["alerts"]))


def tells_a_rate_when_it_has_changed_by_a_quarter():
    with Server() as server:
        client = server.client()
        client.start("one", queue="q")
        client.complete(client.poll("q"))
        with Events(server) as events:
            snapshot = events.wait("snapshot")
            check(snapshot["queues"][0]["addedPerSecond"] == 0.2, str(snapshot))
            time.sleep(12)  # the average is another one every second: one task in 6, 7, 8 s
            told = [data["queues"][0]["addedPerSecond"] for data in events.named("changes")
                    if "queues" in data]
            check(1 <= len(told) <= 4, f"rates that were told: {told}")
            for before, after in zip([0.2, *told], told):
                check(after <= 0.75 * before, f"rates that were told: {told}")
            stats = client.get("/task-queues/q", reportStats="true")["stats"]
            added, dispatched = stats["tasksAddRate"], stats["tasksDispatchRate"]
            # The task was dispatched a little after it was added, so its rate may be of one second less.
            check(0 < added < 0.1 and 0 < dispatched < 0.1 and abs(added - dispatched) < 0.015, str(stats))


def last_alerts(events):
    told = [data for event, _, data, _ in events.messages
            if event == "snapshot" or data.get("alertsChanged")]
    return [alert["kind"] for alert in told[-1].get("alerts", [])]


def parked_poll(server, queue):
    """A worker that waits for a task of the queue; close() is its death."""
    worker = server.client()

    def wait():
        try:
            worker.poll(queue, wait="60s", identity=f"worker-of-{queue}")
        except Exception:
            pass  # it was closed

    threading.Thread(target=wait, daemon=True).start()
    return worker


def kill(worker):
    worker.connection.sock.shutdown(socket.SHUT_RDWR)


def a_queue_whose_last_poller_has_gone_is_told_of_within_5_s():
    with Server() as server:
        client = server.client()
        with Events(server) as events:
            events.wait("snapshot")
            for run in ("a", "b", "c"):
                client.start(run, queue="work", workflowTaskTimeout="60s")  # longer than all of this takes
            busy, other = server.client(), server.client()
            check(busy.poll("work", identity="busy") is not None, "a task")
            check(other.poll("work", identity="other") is not None, "a task")
            # The third task waits. Both workers are at work, and nobody polls: no alarm.
            time.sleep(4.5)
            check(not last_alerts(events), last_alerts(events))
            other.close()
            time.sleep(4.5)
            check(not last_alerts(events), "one is left")
            gone = time.monotonic()
            busy.close()  # as a process that is killed does
            eventually(lambda: "queue_unserved" in last_alerts(events), "the alert", 5)
            print(f"    told after {time.monotonic() - gone:.1f} s")
            # Whoever comes takes the task.
            back = server.client()
            check(back.poll("work", identity="back") is not None, "the task")
            eventually(lambda: not last_alerts(events), "all is well")


def permits_that_nobody_serves_are_told_of_within_5_s():
    with Server() as server:
        client = server.client()
        client.set_pool("gpu", capacity=1)
        with Events(server) as events:
            events.wait("snapshot")
            workers = [parked_poll(server, "permits"), parked_poll(server, "permits")]
            polled = lambda: client.get("/task-queues/permits").get("pollers")
            eventually(polled, "the workers' polls")
            client.acquire("gpu", "a", holder="a", lease="60s")  # its task goes to one of them
            time.sleep(4.5)
            check(not last_alerts(events), last_alerts(events))
            for worker in workers:
                if worker.connection and worker.connection.sock:
                    kill(worker)
            eventually(lambda: "permits_unserved" in last_alerts(events), "the alert", 5)
            check(client.ask("GET", "/readyz?verbose")["warnings"], "readyz says it, too")
            again = parked_poll(server, "permits")
            eventually(lambda: not last_alerts(events), "served again")
            kill(again)


def refuses_what_makes_no_sense():
    with Server() as server:
        client = server.client()
        status, _, body = client.raw("GET", NAMESPACE + "/events?nonsense=1")
        check(status == 400 and b"PARAMETER_UNKNOWN" in body, f"{status} {body}")
        status, _, body = client.raw("GET", "/api/v1/namespaces/other/events")
        check(status == 404 and b"NAMESPACE_NOT_FOUND" in body, f"{status} {body}")


if __name__ == "__main__":
    run(
        shows_an_acquire_at_once_and_how_it_ended,
        shows_who_waits_settings_and_workflows,
        resumes_without_a_gap,
        begins_anew_where_it_is_not_known,
        tells_of_one_pool_only_if_asked,
        joins_what_comes_fast,
        a_slow_reader_skips_to_how_things_are,
        ends_with_the_server,
        a_model_kept_by_messages_equals_the_server,
        alerts_say_what_to_see_to,
        tells_a_rate_when_it_has_changed_by_a_quarter,
        a_queue_whose_last_poller_has_gone_is_told_of_within_5_s,
        permits_that_nobody_serves_are_told_of_within_5_s,
        refuses_what_makes_no_sense,
    )
