#!/usr/bin/env python3
"""permit run: exit codes, environment, waiting, limits, signals, and that slots are given back.

--clean N and --stress SECONDS: only the long forms, for scripts/soak.
"""

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import threading
import time

from run_support import Run, permit_run, pool_is_free, ready
from support import BINARY, Server, check, directory, eventually, run

parser = argparse.ArgumentParser()
parser.add_argument("--clean", type=int, default=0)
parser.add_argument("--stress", type=float, default=0)
LONG = parser.parse_args()
SERVER = Server(directory() / "permit.db", permit_worker=True)
CLIENT = SERVER.client()


def start(*arguments, **more):
    return Run(SERVER.port, *arguments, **more)


def finish(*arguments, **more):
    return start(*arguments, **more).finish()


def pool(name, capacity=1):
    CLIENT.set_pool(name, capacity=capacity)
    return name


def outcomes(name):
    return {one["outcome"]: one["holds"] for one in CLIENT.pool(name).get("outcomes", [])}


# It tells of an acquire that has taken 400 ms or more, and then of the release.
TOOK_LONG = re.compile(r"permit: acquired \S+ after ([4-9]\d\dms|\d+(\.\d)?s) \(.*\)\n")


def unprompted(done):
    """What it says though it did not have to wait; a busy machine or a slow disk may let it wait."""
    errors, waits = TOOK_LONG.subn("", done.errors)
    return re.sub(r"permit: released .*\n", "", errors) if waits else errors


def exit_codes_pass_through():
    gpu = pool("codes")
    for code in (0, 1, 7, 124):
        done = finish("-p", gpu, "--", "sh", "-c", f"exit {code}")
        check((done.code, unprompted(done)) == (code, ""), done)
    for name in ("TERM", "KILL", "SEGV"):
        done = finish("-p", gpu, "--", "sh", "-c", f"kill -{name} $$")
        check(done.code == 128 + getattr(signal, "SIG" + name), done)
    done = finish("-p", gpu, "--", "no-such-program")
    check(done.code == 127, done)
    check(done.errors == "permit: cannot run no-such-program: not found\n", done)
    program = directory() / "not_executable"
    program.write_text("#!/bin/sh\n")
    done = finish("-p", gpu, "--", str(program))
    check(done.code == 126 and "Permission denied" in done.errors, done)
    check(finish("-p", gpu, "--", "/tmp").code == 126, "a directory")
    program.chmod(0o755)
    program.write_text("#!/no/such/interpreter\n")  # found out only by trying
    done = finish("-p", gpu, "--", str(program))
    check(done.code == 127, done)
    check(CLIENT.pool(gpu)["grants"] == 8, "what cannot run is not granted anything")
    check(outcomes(gpu) == {"released": 8}, outcomes(gpu))


def refusals_have_their_own_codes():
    gpu = pool("gpu-pool")
    done = finish("-p", "gpu-poll", "--", "true")
    check(done.code == 3 and "did you mean gpu-pool?" in done.errors, done)
    done = finish("-p", gpu, "-n", "2", "--", "true")
    check(done.code == 2 and done.errors.count("\n") == 1, done)
    done = permit_run("127.0.0.1:1", "-p", gpu, "--", "true")
    check(done.code == 69 and done.errors.count("\n") == 1, done)
    check("cannot reach" in done.errors and "127.0.0.1:1" in done.errors, done)
    for wrong in (["--slotz", "2"], ["--lease", "45"], ["--warn-signal", "USR1@1s"],
                  ["--env", "A={slotz}"], ["--slots", "0"], ["--nonblock", "--wait", "1s"]):
        done = finish("-p", gpu, *wrong, "--", "true")
        check(done.code == 2 and done.errors.startswith("permit: "), done)
    with start("-p", gpu, "--", "cat") as holder:
        ready(holder)
        full = r"permit: gpu-pool is full \(1/1 held\)\. See: permit who gpu-pool\n"
        done = finish("-p", gpu, "--nonblock", "--", "true")
        check(done.code == 75 and re.fullmatch(full, done.errors), done)
        done = finish("-p", gpu, "--nonblock", "--conflict-exit-code", "9", "--", "true")
        check(done.code == 9, done)
        check(finish("-p", gpu, "--wait", "0s", "--", "true").code == 75, "no wait at all")
        began = time.monotonic()
        done = finish("-p", gpu, "--wait", "700ms", "--", "true")
        check(0.6 < time.monotonic() - began < 10, "the wait")
        check(done.code == 75, done)
        check("no slot of gpu-pool came free within 700ms (1/1 held)" in done.errors, done)
        check(not CLIENT.get(f"/pools/{gpu}/waiters").get("waiters"), "nobody is left in line")
    pool_is_free(CLIENT, gpu)


def the_environment_says_what_is_held():
    pool("env", 12)
    done = finish("-p", "env", "--slot", "3", "--lease", "90s", "--max-hold", "1h",
                  "--env", "RANK=slot-{slot}", "--env", "ALL={id} {fence} {{}}", "--", "env")
    seen = dict(line.split("=", 1) for line in done.output.splitlines())
    hold = CLIENT.get("/permits", pool="env")["permits"][0]
    check(seen["PERMIT_ID"] == hold["id"] == "permit:env:3", seen)
    check(seen["PERMIT_POOL"] == "env" and seen["PERMIT_SLOT"] == seen["PERMIT_SLOTS"] == "3", seen)
    check(seen["PERMIT_FENCE"] == str(hold["fence"]), seen)
    check(seen["PERMIT_RUN_ID"] == hold["runId"], seen)
    check(seen["PERMIT_HOLDER"] == hold["holder"], (seen, hold))
    check(re.fullmatch(r"env \(.+@.+:\d+\)", hold["holder"]), hold)
    check(re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", seen["PERMIT_LEASE_DEADLINE"]), seen)
    check(seen["PERMIT_MAX_HOLD_DEADLINE"] > seen["PERMIT_LEASE_DEADLINE"], seen)
    check(seen["PERMIT_ADDRESS"] == f"127.0.0.1:{SERVER.port}", seen)
    check(seen["PERMIT_NAMESPACE"] == "default", seen)
    check(seen["RANK"] == "slot-3" and seen["ALL"] == f"permit:env:3 {hold['fence']} {{}}", seen)
    check("CUDA_VISIBLE_DEVICES" not in seen, "no mask without --gpu")


def the_gpu_mask_is_replaced_and_sorted():
    pool("cards", 12)
    inherited = dict(os.environ, CUDA_VISIBLE_DEVICES="7", HIP_VISIBLE_DEVICES="7")
    holds = [start("-p", "cards", "--slot", str(slot), "--", "cat") for slot in range(12)
             if slot not in (2, 10)]
    for hold in holds:
        ready(hold)
    done = finish("-p", "cards", "-n", "2", "--gpu", "--", "env", env=inherited)
    for hold in holds:
        hold.close()
    seen = dict(line.split("=", 1) for line in done.output.splitlines())
    for name in ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"):
        check(seen[name] == "2,10", (name, seen))
    check(seen["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID", seen)
    check("HIP_VISIBLE_DEVICES" not in seen, "it would filter once more")
    done = finish("-p", "cards", "--slot", "5", "--gpu=rocm", "--", "env", env=inherited)
    seen = dict(line.split("=", 1) for line in done.output.splitlines())
    check(seen["ROCR_VISIBLE_DEVICES"] == "5" and "CUDA_VISIBLE_DEVICES" not in seen, seen)
    CLIENT.set_pool("named", slots=["left", "right"])
    done = finish("-p", "named", "--gpu", "--", "env")
    check(done.code == 2 and "is no device number" in done.errors and not done.output, done)
    pool_is_free(CLIENT, "named")


def waiting_is_told_once_and_silence_is_kept():
    gpu = pool("told")
    check(unprompted(finish("-p", gpu, "--", "true")) == "", "silent")
    with start("-p", gpu, "--lease", "30s", "--", "cat") as holder:
        ready(holder)
        waiter = start("-p", gpu, "--", "true")
        eventually(lambda: CLIENT.get("/pools/told/waiters").get("waiters"), "the first")
        quiet = start("-p", gpu, "-q", "--", "true")
        eventually(lambda: len(CLIENT.get("/pools/told/waiters").get("waiters", [])) == 2, "a line")
        time.sleep(1.5)  # for lines that come too often
    waited, silent = waiter.finish(), quiet.finish()
    check((waited.code, silent.code, silent.errors) == (0, 0, ""), (waited, silent))
    lines = waited.errors.splitlines()
    check(len(lines) == 3, lines)
    waiting = (r"permit: waiting for told: position 1, 1/1 held, soonest lease end (2\d|30)s "
               r"\(told:0, cat \(.*\)\), free in [23]\ds at the latest if nobody renews")
    check(re.fullmatch(waiting, lines[0]), lines)
    acquired = r"permit: acquired permit:told:0 after [1-9]s \(fence \d+, lease 2m\)"
    check(re.fullmatch(acquired, lines[1]), lines)
    check(re.fullmatch(r"permit: released permit:told:0 after \d+m?s, command exited 0", lines[2]),
          lines)


def leaving_while_waiting_leaves_the_line():
    gpu = pool("leave")
    with start("-p", gpu, "--", "cat") as holder:
        ready(holder)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            waiter = start("-p", gpu, "--", "true")
            eventually(lambda: CLIENT.get("/pools/leave/waiters").get("waiters"), "a waiter")
            began = time.monotonic()
            waiter.process.send_signal(number)
            done = waiter.finish()
            expected = -9 if number == signal.SIGKILL else 128 + number
            check(done.code == expected, done)
            eventually(lambda: not CLIENT.get("/pools/leave/waiters").get("waiters"), "left")
            check(time.monotonic() - began < 8, f"left at once, by {number!r}")  # its place would stay 15 s
    pool_is_free(CLIENT, gpu)
    check(outcomes(gpu) == {"released": 1}, outcomes(gpu))


def signals_reach_the_whole_group():
    gpu = pool("signals")
    script = ("import os, signal, sys, time\n"
              "who = 'parent' if os.fork() else 'child'\n"
              "def end(number, frame):\n"
              "    os.write(1, f'{who} got {signal.Signals(number).name}\\n'.encode())\n"
              "    if who == 'parent': os.wait()\n"
              "    os._exit(3)\n"
              "for name in sys.argv[1:]: signal.signal(getattr(signal, name), end)\n"
              "os.write(1, f'{who} ready\\n'.encode())\n"
              "while True: time.sleep(9)\n")
    names = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH"]
    for name in names:
        with start("-p", gpu, "--", "python3", "-c", script, *names) as job:
            eventually(lambda: job.text().count("ready") == 2, "both are ready")
            job.process.send_signal(getattr(signal, name))
            done = job.finish()
            check(f"parent got {name}\n" in done.output, (name, done))
            check(f"child got {name}\n" in done.output, (name, done))
            check((done.code, unprompted(done)) == (3, ""), (name, done))
    done = finish("-p", gpu, "--", "sh", "-c", "kill -TERM $PPID; kill -INT $PPID; exit 5")
    check(done.code == 5, f"the keeper itself cannot be told to end: {done}")


def ignored_signals_stay_ignored():
    gpu = pool("nohup")
    wrapper = ("nohup",)
    with start("-p", gpu, "--", "sh", "-c", "echo ready; read line; echo $line", wrapper=wrapper,
               stderr=subprocess.DEVNULL) as job:
        ready(job)
        job.process.send_signal(signal.SIGHUP)
        waiter = start("-p", gpu, "--", "true", wrapper=wrapper, stderr=subprocess.DEVNULL)
        eventually(lambda: CLIENT.get("/pools/nohup/waiters").get("waiters"), "a waiter")
        waiter.process.send_signal(signal.SIGHUP)
        done = job.finish("said\n")
        check(done.code == 0 and "said" in done.output, done)
        check(waiter.finish().code == 0, "who waits does not hear it either")


def input_goes_through_and_descriptors_do_not_leak():
    gpu = pool("input")
    done = start("-p", gpu, "--", "cat").finish("line\n" * 10_000)
    check(done.output == "line\n" * 10_000, "stdin to stdout")
    done = finish("-p", gpu, "--", "ls", "/proc/self/fd")
    check(done.output.split() == ["0", "1", "2", "3"], f"3 is ls's own: {done.output.split()}")
    # Who closes its output is seen to by the reader at once, whatever permit does.
    job = start("-p", gpu, "--", "sh", "-c", "exec >&- ; read line", stdin=subprocess.PIPE)
    began = time.monotonic()
    check(job.process.stdout.read() == "" and time.monotonic() - began < 5, "end of the output")
    check(job.process.poll() is None, "the command is still there")
    check(job.finish("\n").code == 0, "the command's end")


def a_time_limit_warns_then_stops():
    gpu = pool("limit")
    script = ("import signal, sys, time\n"
              "began = time.time()\n"
              "def say(number, frame):\n"
              "    print(signal.Signals(number).name, time.time() - began, flush=True)\n"
              "signal.signal(signal.SIGUSR1, say); signal.signal(signal.SIGTERM, say)\n"
              "print('ready', flush=True)\n"
              "while True: time.sleep(1)\n")
    began = time.monotonic()
    done = finish("-p", gpu, "--max-hold", "10s", "--warn-signal", "USR1@6s", "--kill-after", "3s",
                  "--", "python3", "-c", script)
    took = time.monotonic() - began
    check(done.code == 124, done)
    times = {line.split()[0]: float(line.split()[1]) for line in done.output.splitlines()[1:]}
    # At 4 s, at 7 s and, before the limit, at 10 s; the script's time begins a little later.
    check(1 < times["SIGUSR1"] < 6 and 4 < times["SIGTERM"] < 9.5, times)
    check(times["SIGTERM"] - times["SIGUSR1"] > 0.5, times)
    check(9 < took < 12.9, f"killed before the limit of 10 s: {took}")  # 3 s after the limit would be 13 s
    expected = (r"permit: time limit of permit:limit:0 \(--max-hold\) is near, after [6-9]s; stopping "
                r"the command \(TERM, then KILL in ([123](\.\d)?s|\d+ms)\)\n"
                r"permit: released permit:limit:0 after (9|1[012])s, command died by signal 9 \(KILL\)\n")
    check(re.fullmatch(expected, TOOK_LONG.sub("", done.errors)), done)
    check(outcomes(gpu) == {"released": 1}, outcomes(gpu))
    done = finish("-p", gpu, "--max-hold", "1s", "--", "sh", "-c", "trap 'exit 0' TERM; sleep 5 & wait")
    check(done.code == 124, f"stopped is 124, whatever the command says: {done}")


def a_time_limit_and_a_lease_begin_with_the_grant():
    gpu = pool("later")
    with start("-p", gpu, "--", "cat") as holder:
        ready(holder)
        job = start("-p", gpu, "--max-hold", "6s", "--lease", "3s", "--kill-after", "200ms", "--",
                    "sh", "-c", "echo ready; exec sleep 20")
        eventually(lambda: CLIENT.get("/pools/later/waiters").get("waiters"), "a waiter")
        time.sleep(4)
        began = time.monotonic()  # before the grant
    ready(job)
    done = job.finish()
    took = time.monotonic() - began
    # From the grant it is 6 s; from the time of asking it would be 2 s.
    check(done.code == 124 and 5 < took < 10, (took, done))


def a_lost_permit_stops_the_command():
    gpu = pool("lost")
    for more, code in (([], 124), (["--on-lost", "warn"], 0)):
        with start("-p", gpu, "--lease", "6s", "--kill-after", "10s", *more, "--",
                   "sh", "-c", "echo ready; sleep 10") as job:
            ready(job)
            began = time.monotonic()
            hold = CLIENT.get("/permits", pool=gpu, state="held")["permits"][0]
            CLIENT.post(f"/permits/{hold['id']}/force-release", {"runId": hold["runId"]})
            done = job.finish()
            took = time.monotonic() - began
            check(done.code == code, done)
            check("force_released (operator)" in done.errors, done)
            check(took < 7 if code else took > 7, f"took {took}")  # learned of at a renewal, after 2 s
            check("permit:lost:0 was lost" in done.errors, done)


def several_slots_are_all_or_none():
    gpu = pool("pairs", 3)
    used = directory() / "used"
    used.mkdir()
    # Each of the two slots is ours alone: the second to make its directory fails.
    script = (f"cd {used}; for s in $(echo $PERMIT_SLOTS | tr , ' '); do mkdir $s || exit 9; done; "
              "sleep 0.002; for s in $(echo $PERMIT_SLOTS | tr , ' '); do rmdir $s; done")
    end = time.monotonic() + (LONG.stress or 3)
    counts = []
    ones = []

    def work(slots):
        count = 0
        while time.monotonic() < end:
            done = finish("-p", gpu, "-n", slots, "-q", "--", "sh", "-c", script)
            check(done.code == 0, done)
            count += 1
        counts.append(count)
        if slots == "1":
            ones.append(count)

    failures = []

    def guarded(slots):
        try:
            work(slots)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(slots,)) for slots in ("2", "2", "1")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    CLIENT.close()
    check(not failures, failures)
    # Of some eighty each; on a slow machine fewer, but of all of them.
    check(min(counts) >= 2 and 10 * min(counts) >= max(counts), f"each got its turns: {counts}")
    pool_is_free(CLIENT, gpu)
    check(outcomes(gpu) == {"released": 2 * sum(counts) - ones[0]}, (outcomes(gpu), counts))
    print(f"{sum(counts)} jobs on 3 slots")


def clean_jobs_are_always_released():
    gpu = pool("clean", 2)
    jobs = LONG.clean or 100
    took = []
    for _ in range(jobs):
        began = time.monotonic()
        check(finish("-p", gpu, "--", "true").code == 0, "true")
        took.append(time.monotonic() - began)
    CLIENT.close()  # the server may have done so by now
    check(outcomes(gpu) == {"released": jobs}, outcomes(gpu))
    print(f"{jobs} jobs, median {statistics.median(took) * 1000:.1f} ms")


def what_the_command_leaves_behind_is_stopped():
    gpu = pool("rest")
    for start_it in ("sleep 60 &", "setsid sleep 60 &", "setsid sh -c 'sleep 60 & sleep 60' &"):
        began = time.monotonic()
        done = finish("-p", gpu, "--", "bash", "-c", start_it + " sleep 0.05; exit 4")
        check(done.code == 4, done)
        check("not all of its processes; stopping them" in done.errors, done)
        check(time.monotonic() - began < 8, "they were told, not waited for")  # KILL comes after 10 s
        check(outcomes(gpu).get("released"), outcomes(gpu))
    done = finish("-p", gpu, "--kill-after", "300ms", "--",
                  "bash", "-c", "setsid sh -c 'trap \"\" TERM; sleep 60; sleep 60' & sleep 0.1")
    check(done.code == 0, done)
    check(unprompted(finish("-p", gpu, "--", "sh", "-c", "sleep 0.02 & exit 0")) == "",
          "what ends by itself is left alone")


def closed_descriptors_are_no_harm():
    CLIENT.set_pool("closed", capacity=1)
    command = f"{BINARY} run -p closed -- sh -c 'exit 7'"
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        done = subprocess.run(["sh", "-c", f"{command} {closed}"], timeout=20, env=dict(
            os.environ, PERMIT_ADDRESS=f"127.0.0.1:{SERVER.port}"))
        check(done.returncode == 7, f"{closed}: {done.returncode}")


def odd_limits_are_refused():
    CLIENT.set_pool("odd", capacity=1)
    for flags in (("--max-hold", "0s"), ("--max-hold", "1ms"), ("--slot", ""), ("--report", ""),
                  ("--max-hold", "10s", "--warn-signal", "USR1@50s"), ("--command-timeout", "1s")):
        check(finish("-p", "odd", *flags, "--", "true").code == 2, flags)


def who_runs_it_is_on_record():
    CLIENT.set_pool("named", capacity=1)
    done = finish("-p", "named", "--identity", "alice@lab", "--", "printenv", "PERMIT_HOLDER")
    check(re.fullmatch(r"printenv PERMIT_HOLDER \(alice@lab:\d+\)\n", done.output), done)


def a_report_is_written():
    gpu = pool("report")
    path = directory() / "report.json"
    finish("-p", gpu, "--report", str(path), "--", "sh", "-c", "exit 7")
    report = json.loads(path.read_text())
    check(report["exitCode"] == report["commandExitCode"] == 7, report)
    check(report["released"] and report["acquired"], report)
    check(report["slots"][0]["id"] == "permit:report:0", report)
    # The half of it is for the end of the command.
    finish("-p", gpu, "--max-hold", "4s", "--report", str(path), "--", "sleep", "20")
    report = json.loads(path.read_text())
    check((report["exitCode"], report["stopped"], report["commandSignal"]) == (124, "max_hold", 15),
          report)
    with start("-p", gpu, "--", "cat") as holder:
        ready(holder)
        finish("-p", gpu, "--nonblock", "--report", str(path), "--", "true")
        report = json.loads(path.read_text())
        check(report["exitCode"] == 75 and not report["acquired"], report)


ALL = (
    exit_codes_pass_through,
    refusals_have_their_own_codes,
    the_environment_says_what_is_held,
    the_gpu_mask_is_replaced_and_sorted,
    waiting_is_told_once_and_silence_is_kept,
    leaving_while_waiting_leaves_the_line,
    signals_reach_the_whole_group,
    ignored_signals_stay_ignored,
    input_goes_through_and_descriptors_do_not_leak,
    a_time_limit_warns_then_stops,
    a_time_limit_and_a_lease_begin_with_the_grant,
    a_lost_permit_stops_the_command,
    several_slots_are_all_or_none,
    what_the_command_leaves_behind_is_stopped,
    clean_jobs_are_always_released,
    closed_descriptors_are_no_harm,
    odd_limits_are_refused,
    who_runs_it_is_on_record,
    a_report_is_written,
)
SOAK = (clean_jobs_are_always_released, several_slots_are_all_or_none)
with SERVER:
    run(*(SOAK if LONG.clean or LONG.stress else ALL))
