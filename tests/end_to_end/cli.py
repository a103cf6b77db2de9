#!/usr/bin/env python3
"""The daily commands against a real server: what they print, their exit codes, what they refuse."""

import os
import re
import signal
import socket
import subprocess
import time

from cli_support import HOME, environment, on_terminal, permit
from support import BINARY, Refused, Server, check, directory, eventually, run

GPU = "gpu-pool"
SERVER = None


def ask(*arguments, **more):
    return permit(*arguments, server=SERVER, **more)


def hold(pool, request, **more):
    """A grant, as a script gets it."""
    request = {"holder": f"job {request}", "lease": "60s", **more, "requestId": request}
    return SERVER.client().post(f"/pools/{pool}/acquire", request)


def release(grant):
    return SERVER.client().release(grant["slots"][0]["id"], grant["token"])


def same(found, wanted):
    """Texts, but for digits: what is measured differs each time."""
    def plain(text):
        text = re.sub(r"\b\d+ms\b", "9s", text)  # what takes milliseconds may take a second
        return re.sub(r" +", " ", re.sub(r"\d+", "9", text)).strip()

    check(plain(found) == plain(wanted), f"found:\n{found}\nwanted:\n{wanted}")


# --- The server ---


def start_dev_says_where_things_are():
    began = time.monotonic()
    server = subprocess.Popen(
        [BINARY, "server", "start-dev", "--port", "0"], env=environment(), text=True,
        stdout=subprocess.PIPE,
    )
    text = "".join(server.stdout.readline() for _ in range(12))
    ready = time.monotonic() - began
    port = re.search(r":(\d+)", text)[1]
    permit("pool", "list", PERMIT_ADDRESS=f"127.0.0.1:{port}")
    server.send_signal(signal.SIGTERM)
    check(server.wait(10) == 0, "a graceful stop is exit 0")
    same(text, """permit 0.1.0  development server: no authentication, bound to 127.0.0.1

Page             http://127.0.0.1:9/
API              http://127.0.0.1:9
Metrics          http://127.0.0.1:9/metrics
Store            in memory (gone on exit; keep it with --db-filename dev.db)
Workers          built-in, queue "permits"

Try, in another terminal:
  permit --address http://127.0.0.1:9 run --pool demo -- sh -c 'echo slot $PERMIT_SLOT; sleep 20'
  permit --address http://127.0.0.1:9 list
Stop with Ctrl-C.
""")
    check(ready < 10, f"ready after {ready:.2f} s")  # 0.3 s on a machine that does nothing else


def a_busy_port_is_named_and_nothing_begins():
    database = directory() / "second.db"
    answer = permit(
        "server", "start-dev", "--port", SERVER.port, "--db-filename", database, code=1
    )
    wanted = f"port {SERVER.port} on 127.0.0.1 is in use (pid {SERVER.process.pid}, permit)"
    check(wanted in answer.err, answer.err)
    check(not database.exists() and answer.out == "", answer.out)


def a_locked_database_is_named():
    database = directory() / "locked.db"
    with Server(database) as first:
        answer = permit("server", "start", "--port", 0, "--db-filename", database, code=1)
        check(str(first.process.pid) in answer.err and "\n" not in answer.err[:-1], answer.err)


def only_loopback_is_listened_on():
    answer = permit("server", "start-dev", "--ip", "0.0.0.0", "--port", 0, code=78)
    check("without TLS" in answer.err, answer.err)
    host = socket.gethostbyname(socket.gethostname())
    if not host.startswith("127."):
        try:
            socket.create_connection((host, SERVER.port), timeout=1).close()
            check(False, f"{host} reaches it")
        except OSError:
            pass


def a_server_that_is_down_is_69_with_its_origin():
    for origin, more in (
        ("the default", {}), ("from --address", {"arguments": ("--address", "127.0.0.1:1")}),
        ("from PERMIT_ADDRESS", {"PERMIT_ADDRESS": "127.0.0.1:1"}),
    ):
        arguments = more.pop("arguments", ())
        if origin == "the default" and socket.socket().connect_ex(("127.0.0.1", 7376)) == 0:
            continue  # somebody runs one here
        answer = permit("list", *arguments, code=69, **more)
        check(answer.err.count("\n") == 1 and f"the address is {origin}" in answer.err, answer.err)
        check("Try: permit server start-dev" in answer.err and not answer.out, answer.err)


def the_time_limit_of_a_command_is_124():
    deaf = socket.socket()
    deaf.bind(("127.0.0.1", 0))
    deaf.listen()
    address = f"127.0.0.1:{deaf.getsockname()[1]}"
    answer = permit("list", "--command-timeout", "300ms", PERMIT_ADDRESS=address, code=124)
    check("--command-timeout" in answer.err, answer.err)


# --- Looking ---


def list_shows_every_slot():
    ask("pool", "set", GPU, "--capacity", 3)
    check("demo" not in ask("list", GPU).out, "one pool only")
    grant = hold(GPU, "llama", labels={"host": "gpu-host-a", "pid": "4121", "user": "ana"})
    slot = grant["slots"][0]["slot"]
    rows = {row.split()[0]: row for row in ask("list", GPU).out.splitlines() if row}
    check(rows["PERMIT"].split() == "PERMIT STATE HOLDER WORKER HELD LEASE LEFT FENCE".split(), rows)
    same(rows[f"permit:{GPU}:{slot}"],
         f"permit:{GPU}:9  held  job llama  9@gpu-host-a  9ms  9s  {grant['fence']}")
    free = next(i for i in "012" if i != slot)
    check(rows[f"permit:{GPU}:{free}"].split()[1:] == ["free", "-", "-", "-", "-", "-"], rows)
    same(rows[f"{GPU}:"], f"{GPU}: 1/3 held, 0 waiting")
    ids = ask("list", GPU, "--short").out
    check(ids == f"permit:{GPU}:{slot}\n", ids)
    release(grant)
    closed = ask("list", GPU, "--closed", "--since", "1h", "--outcome", "released").out
    check(re.search(rf"permit:{GPU}:{slot} +released +- +job llama", closed), closed)
    check(ask("list", "--closed", "--outcome", "force_released").out == "No such hold.\n", "none")
    ask("list", "--since", "1h", code=2)


def who_tells_why_somebody_waits():
    ask("pool", "set", "one", "--capacity", 1)
    grant = hold("one", "first", labels={"user": "ana"}, reason="training")
    client = SERVER.client()
    client.acquire("one", "second", holder="job second", wait="0.05s", waitTimeout="60s")
    text = ask("who", "one").out
    slot = grant["slots"][0]["id"]
    same(text, f"""one  1/1 held

{slot}  job first, user ana
  since 9:9:9 (9ms), lease ends 9:9:9 (9s), fence 9
  reason: training

Waiting, the next one first
  job second  9ms, position 1
    1 slot that would do is held; position 1 in the line
Soonest a slot must free, if nobody renews: 9s
""")
    both = ask("who", "one", "-o", "json").json()
    check(both["waiters"][0]["holder"] == "job second" and both["pool"]["held"] == 1, both)
    release(grant)


def describe_tells_of_a_possible_overlap():
    ask("pool", "set", "lost", "--capacity", 1)
    grant = hold("lost", "silent", lease="0.3s")
    slot = grant["slots"][0]["id"]
    eventually(lambda: SERVER.client().permit(slot)["state"] == "closed", "the lease's end")
    next_one = hold("lost", "next")
    run_id = grant["slots"][0]["runId"]
    text = ask("describe", "lost:0", "-r", run_id[-8:]).out
    check("lease_expired (cause timer)" in text, text)
    check("Possible overlap: its holder had not given it back" in text, text)
    check("Late release" not in text, text)
    try:
        release(grant)
        check(False, "a late release is refused")
    except Refused as refused:
        check(refused.status == 410 and "its lease ran out at 2" in refused.message, refused)
    text = ask("describe", "lost:0", "-r", run_id[-8:]).out
    check(re.search(r"Late release   [\d:]+, ignored: its holder went on for \d+m?s after", text), text)
    check(re.search(r"Possible overlap: \d+m?s on slot 0, with job next; a resource", text), text)
    check(SERVER.client().permit(slot)["state"] == "held", "the next holder is not touched")
    check(f"Next holder    job next (fence {next_one['fence']})" in text, text)
    events = ask("history", slot, "-r", run_id[-8:], "--all").out
    check("WorkflowExecutionCompleted" in events and "TimerFired" in events, events)
    history = ask("history", slot, "-r", run_id, "-o", "json").json()
    check(history["events"][0]["eventType"] == "EVENT_TYPE_WORKFLOW_EXECUTION_STARTED", history)
    ask("describe", "lost:7", code=3)
    check(ask("history", "lost:0", "-r", run_id[-8:], "--all").out == events, "the short name")
    ask("describe", slot, "-r", "ffffffff", code=3)
    ask("describe", "nonsense", code=2)
    release(next_one)


def watch_prints_each_change_once():
    ask("pool", "set", "seen", "--capacity", 2)
    watching = subprocess.Popen(
        [BINARY, "watch", "seen", "-o", "jsonl"], env=environment(SERVER), text=True,
        stdout=subprocess.PIPE,
    )
    lines = []
    time_limit = time.monotonic() + 15
    # It says nothing of what was before, so there is something new until it has begun to look.
    while not lines:
        check(time.monotonic() < time_limit, "watch prints nothing")
        release(hold("seen", f"again {time.monotonic()}"))
        os.set_blocking(watching.stdout.fileno(), False)
        lines = watching.stdout.readlines()
    os.set_blocking(watching.stdout.fileno(), True)
    grant = hold("seen", "told")
    release(grant)
    told = []
    while len(told) < 2:
        line = watching.stdout.readline()
        check(line, "watch has ended")
        if '"job told"' in line:
            told.append(line)
    check('"change":"acquired"' in told[0] and '"change":"released"' in told[1], told)
    watching.send_signal(signal.SIGINT)
    check(watching.wait(10) == -signal.SIGINT, "Ctrl-C ends it")


def report_adds_up():
    lines = ask("report", "--by", "pool", "-o", "jsonl").lines()
    lost = next(line for line in lines if line["of"] == "lost")
    check(lost["holds"] == 2 and lost["leaseExpired"] == 1 and lost["released"] == 1, lost)
    check("LEASE_EXPIRED" in ask("report").out, "a heading")
    ask("report", "--since", "7", code=2)


# --- Operators ---


def a_release_by_hand_says_whose_and_asks():
    ask("pool", "set", "mine", "--capacity", 1)
    grant = hold("mine", "running", labels={"user": "ana", "host": "gpu-host-b", "pid": "7"})
    slot, fence = grant["slots"][0]["id"], grant["fence"]
    shown, code = on_terminal("release", slot, server=SERVER, answers=[("release it anyway", "no")])
    check(code == 1 and "(user ana, not you) on 7@gpu-host-b" in shown, shown)
    check("does not stop the job" in shown and f"fence {fence}" in shown, shown)
    check("say --yes and --fence N" in ask("release", slot, code=2).err, "nobody to ask")
    check("which hold you mean" in ask("release", slot, "--yes", code=2).err, "no precondition")
    wrong = ask("release", slot, "--yes", "--fence", fence + 1, code=5)
    check(f"now held by job running (fence {fence}), not fence {fence + 1}" in wrong.err, wrong.err)
    shown, code = on_terminal(
        "release", slot, "--reason", "host is dead", server=SERVER,
        answers=[("release it anyway", "0")],
    )
    check(code == 0 and "force_released (cause operator, by " in shown, shown)
    check(f"Fence {fence} is void." in shown, shown)
    record = ask("history", slot).out
    check("WorkflowExecutionTerminated" in record and "host is dead" in record, record)
    check(ask("release", slot, "--yes", "--any-holder", code=3), "nobody holds it")


def a_hold_for_maintenance_is_given_back():
    ask("pool", "set", "kept", "--capacity", 2)
    text = ask("hold", "kept", "--slot", 1, "--for", "1h", "--reason", "new fan").out
    fence = re.search(r"fence (\d+)", text)[1]
    row = ask("who", "kept").out
    check("operator " in row and "reason: new fan" in row and "permit:kept:1" in row, row)
    check("--nonblock" not in ask("hold", "kept", "--slot", 1, "--nonblock", code=75).err, "full")
    given = ask("release", "kept:1", "--fence", fence, "--yes").out
    check("released" in given and "force" not in given, given)
    check(not list((HOME / ".local/state/permit/holds").iterdir()), "its token is forgotten")


def drains_are_on_record():
    ask("pool", "set", "drained", "--slots", "a,b", "--reason", "two rigs")
    ask("pool", "drain", "drained", "--slot", "a", "--reason", "broken cable")
    check(hold("drained", "one")["slots"][0]["slot"] == "b", "the other slot")
    state = ask("list", "drained").out
    check(re.search(r"permit:drained:a +drained", state), state)
    ask("pool", "undrain", "drained", "--slot", "a")
    changes = [c["what"] for c in ask("pool", "describe", "drained", "-o", "json").json()["changes"]]
    check(changes == ["undrained slot a", "drained slot a", "set 2 slots: a b"], changes)
    record = ask("pool", "describe", "drained").out
    check(re.search(r"drained slot a, by \S+@\S+: broken cable", record), record)
    check("did you mean drained?" in ask("pool", "describe", "drained1", code=3).err, "nearest")
    ask("pool", "delete", "drained", "--yes", code=1)  # it is held
    ask("pool", "set", "unused", "--capacity", 1)
    ask("pool", "delete", "unused", code=2)
    ask("pool", "delete", "unused", "--yes")
    ask("pool", "describe", "unused", code=3)


# --- GPUs ---


def with_gpus(script):
    """A PATH on which nvidia-smi is this shell script."""
    tools = directory() / "tools"
    tools.mkdir(exist_ok=True)
    (tools / "nvidia-smi").write_text("#!/bin/sh\n" + script)
    (tools / "nvidia-smi").chmod(0o755)
    return f"{tools}:{os.environ['PATH']}"


def gpus_are_slots_and_strangers_are_named():
    stranger = subprocess.Popen(["sleep", "60"])
    holder = subprocess.Popen(["sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE)
    child = int(holder.stdout.readline())
    path = with_gpus(f"""case "$*" in
      *query-gpu*) echo '0, GPU-aaaa, NVIDIA A100'; echo '1, GPU-bbbb, NVIDIA A100';;
      *compute-apps*) echo 'GPU-aaaa, {child}, python'; echo 'GPU-bbbb, {stranger.pid}, miner';;
    esac
    """)
    ask("pool", "set", "cards", "--gpus", "auto", PATH=path)
    pool = ask("pool", "describe", "cards", "-o", "json").json()
    devices = [slot["device"] for slot in pool["slots"]]
    check(devices == ["GPU-aaaa", "GPU-bbbb"], devices)
    grant = hold("cards", "a", only=["0"],
                 labels={"host": socket.gethostname(), "pid": str(holder.pid)})
    check(grant["slots"][0]["device"] == "GPU-aaaa", grant)
    text = ask("list", "cards", "--gpu", PATH=path).out
    check(f"without a permit: miner (pid {stranger.pid}) uses GPU-bbbb" in text, text)
    check(str(child) not in text.split("without")[1], text)
    sick = ask("doctor", PATH=path, code=1)
    check(f"process {stranger.pid} (miner) uses GPU-bbbb without a permit" in sick.err, sick.err)
    ask("pool", "set", "cards", "--device", "0=GPU-cccc", "--device", "1=GPU-dddd")
    check("0=GPU-cccc, 1=GPU-dddd" in ask("pool", "describe", "cards").out, "devices by hand")
    ask("pool", "set", "cards", "--device", "7=GPU-x", code=3)
    ask("pool", "set", "cards", "--device", "GPU-x", code=2)
    ask("pool", "set", "other", "--gpus", "auto", PATH="/nonexistent", code=3)
    release(grant)
    ask("pool", "delete", "cards", "--yes")
    for process in (stranger, holder):
        process.kill()
        process.wait()
    os.kill(child, signal.SIGKILL)


def the_doctor_is_silent_when_all_is_well():
    answer = ask("doctor")
    check(answer.out == "" and answer.err == "", answer.err)
    check(ask("doctor", "-o", "json").json() == {"problems": []}, "none")
    check("cannot reach" in permit("doctor", PERMIT_ADDRESS="127.0.0.1:1", code=1).err, "down")
    note = ask("doctor", TEMPORAL_ADDRESS="temporal:7233", code=None)
    check(note.code == 0, "ours is set")
    SERVER.client().start("nobody-home", queue="deserted")
    sick = ask("doctor", code=1).err
    check("no worker polls the workflow queue deserted, where 1 task waits" in sick, sick)
    SERVER.client().post("/workflows/nobody-home/terminate", {"reason": "done"})


# --- Configuration ---


def config_says_where_values_come_from():
    file = directory() / "permit.toml"
    here = {"PERMIT_CONFIG_FILE": str(file)}
    permit("config", "set", "output", "json", **here)
    permit("config", "list", "--profile", "lab", code=2, **here)
    permit("config", "set", "address", "http://lab:1", "--profile", "lab", **here)  # makes it
    permit("config", "set", "time_format", "iso", "--profile", "lab", **here)
    text = permit("config", "list", "--show-origin", "-o", "text", "--profile", "lab",
                  PERMIT_NAMESPACE="default", **here).out
    origins = {line.split()[0]: line.split(None, 2)[2] for line in text.splitlines()[1:]}
    check(origins["address"] == f"profile lab in {file}", origins)
    check(origins["output"] == "--output" and origins["namespace"] == "PERMIT_NAMESPACE", origins)
    check(origins["color"] == "default" and origins["time_format"].startswith("profile lab"), origins)
    check(permit("config", "get", "address", "--profile", "lab", **here).out == "http://lab:1\n", "")
    check(permit("config", "get", "output", **here).json()["origin"].startswith("profile default"), "")
    permit("config", "delete", "output", **here)
    check(permit("config", "get", "output", **here).out == "text\n", "deleted")
    permit("config", "get", "adress", code=2, **here)


def mistakes_in_files_are_named_with_their_place():
    file = directory() / "bad.toml"
    for text, place, wanted in (
        ('[profile.default]\nadress = "x"\n', 2, "there is no setting adress; did you mean address?"),
        ('[profile.default]\noutput = "xml"\n', 2, "output is one of text, json, jsonl, none"),
        ("[profile.default]\naddress = 5\n", 2, 'address must be a "text"'),
        ("[profil.default]\n", 1, "there is no section profil; did you mean profile?"),
        ("[profile.default\n", 1, ""),
    ):
        file.write_text(text)
        answer = permit("list", PERMIT_CONFIG_FILE=str(file), code=2)
        check(f"{file}:{place}: {wanted}" in answer.err, answer.err)
    server = directory() / "server.toml"
    for text, place, wanted in (
        ('[server]\nretention = 72\n', 2, 'retention = 72 is a bare number; say "72s" or "72m"'),
        ('[server]\nlisten = "7376"\n', 2, "listen: "),
        ('[server]\ndatabse = "x"\n', 2, "did you mean database?"),
        ('[pools.gpu]\ncapasity = 4\n', 2, "did you mean capacity?"),
        ('[pools.gpu]\norder = "fifo"\ncapacity = 1\n', 2, "order is fair or any"),
        ('[pools.gpu]\norder = "fair"\n', 1, "pool gpu needs capacity or slots"),
    ):
        server.write_text(text)
        for verb in ("check", "start"):
            answer = permit("server", verb, "--config", server, code=2)
            check(f"{server}:{place}: " in answer.err and wanted in answer.err, answer.err)
    for text in ('[pools."a/b"]\ncapacity = 1\n', '[pools.a]\nslots = ["x", "x"]\n',
                 '[pools.a]\nslots = ["x:y"]\n', '[server]\nretention = "0s"\n'):
        server.write_text(text)
        permit("server", "check", "--config", server, code=2)
    ask("list", "--config-file", "/nonexistent/permit.toml", code=2)
    ask("list", PERMIT_API_KEY="two\nlines", code=2)
    ask("list", PERMIT_API_KEY="with a newline at its end\n".replace(" ", "-"))
    full = subprocess.run([BINARY, "list"], env=environment(SERVER), stdout=open("/dev/full", "w"),
                          stderr=subprocess.PIPE, text=True, timeout=20)
    check(full.returncode == 1 and "cannot be written" in full.stderr, full.stderr)
    for duration in ("45", "1x", "", "10s5m", "-5s"):
        answer = ask("list", "--closed", f"--since={duration}", code=2)
        check("--since" in answer.err, answer.err)
    check("say 45s or 45m" in ask("list", "--closed", "--since", "45", code=2).err, "bare")


def a_configured_server_has_its_pools():
    database = directory() / "configured.db"
    file = directory() / "good.toml"
    file.write_text(f"""[server]
listen = "127.0.0.1:0"
database = "{database}"
retention = "1h30m"

[pools.gpu]
capacity = 2
devices = {{ 0 = "GPU-a", 1 = "GPU-b" }}
order = "fair"

[pools.vendor]
slots = ["x", "y", "z"]
rate = 2
burst = 4
""")
    check("is valid: 2 pools" in permit("server", "check", "--config", file).out, "check")
    for _ in range(2):  # a second start changes nothing, and so leaves no record
        server = subprocess.Popen(
            [BINARY, "server", "start", "--config", file], env=environment(), text=True,
            stdout=subprocess.PIPE,
        )
        text = ""
        while "Stop with" not in text:
            text += server.stdout.readline()
        address = re.search(r"http://127.0.0.1:\d+", text)[0]
        pools = permit("pool", "list", "-o", "json", PERMIT_ADDRESS=address).json()["pools"]
        server.send_signal(signal.SIGTERM)
        check(server.wait(10) == 0, "a graceful stop")
        check([pool["pool"] for pool in pools] == ["gpu", "vendor"], pools)
        check([slot["device"] for slot in pools[0]["slots"]] == ["GPU-a", "GPU-b"], pools)
        check(pools[1]["rate"] == {"perSecond": 2, "burst": 4}, pools)
        check([len(pool["changes"]) for pool in pools] == [1, 1], pools)
        check(pools[0]["changes"][0]["by"] == "config", pools)


with Server(permit_worker=True) as SERVER:
    run(
        start_dev_says_where_things_are,
        a_busy_port_is_named_and_nothing_begins,
        a_locked_database_is_named,
        only_loopback_is_listened_on,
        a_server_that_is_down_is_69_with_its_origin,
        the_time_limit_of_a_command_is_124,
        the_doctor_is_silent_when_all_is_well,
        list_shows_every_slot,
        who_tells_why_somebody_waits,
        describe_tells_of_a_possible_overlap,
        watch_prints_each_change_once,
        report_adds_up,
        a_release_by_hand_says_whose_and_asks,
        a_hold_for_maintenance_is_given_back,
        drains_are_on_record,
        gpus_are_slots_and_strangers_are_named,
        config_says_where_values_come_from,
        mistakes_in_files_are_named_with_their_place,
        a_configured_server_has_its_pools,
    )
