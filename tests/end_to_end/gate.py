#!/usr/bin/env python3
"""The example of the gate: three at a vendor at once, and no more often than its pool says."""

import subprocess

from support import WORKERS, Server, check, directory, run, seconds_of


def gate(server, *arguments):
    """(exit code, calls, the most inside at once)"""
    command = [WORKERS / "gate", "--address", f"127.0.0.1:{server.port}", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=60)
    words = done.stdout.splitlines()[-1].split()
    check(words[1:2] == ["calls,"], done.stdout)
    lines = sum("calls the vendor" in line for line in done.stdout.splitlines())
    check(lines == int(words[0]), done.stdout)
    return done.returncode, int(words[0]), int(words[2])


def check_ledger(client, pool, grants):
    info = client.pool(pool)
    outcomes = {ended["outcome"]: ended["holds"] for ended in info["outcomes"]}
    check(outcomes == {"released": grants} and info["grants"] == grants, info)
    check("held" not in info and "waiting" not in info, info)


def at_most_three_are_inside():
    with Server(directory() / "permit.db", permit_worker=True) as server:
        # 2 s of calls at three at once, if nothing got in the way.
        code, calls, most = gate(server, "--calls", "60", "--time-scale", "600")
        check((code, calls, most) == (0, 60, 3), (code, calls, most))
        check_ledger(server.client(), "vendor", 60)


def without_the_gate_more_are_inside_and_the_program_says_so():
    with Server(permit_worker=True) as server:
        code, calls, most = gate(server, "--gate", "no", "--time-scale", "200")
        check(code == 1 and calls == 20 and most > 3, (code, calls, most))
        check(not server.client().get("/pools").get("pools"), "there is no gate")


def calls_begin_no_faster_than_the_pool_says():
    with Server(permit_worker=True) as server:
        code, calls, most = gate(server, "--calls", "20", "--per-second", "10",
                                 "--time-scale", "1000", "--pool", "slow")
        check(code == 0 and calls == 20 and most <= 3, (code, calls, most))
        holds = server.client().get("/permits", pool="slow")["permits"]
        since = sorted(seconds_of(hold["since"]) for hold in holds)
        check(len(since) == 20, holds)
        check(since[-1] - since[0] > 1.89, f"20 calls began within {since[-1] - since[0]} s")
        check_ledger(server.client(), "slow", 20)


run(
    at_most_three_are_inside,
    without_the_gate_more_are_inside_and_the_program_says_so,
    calls_begin_no_faster_than_the_pool_says,
)
