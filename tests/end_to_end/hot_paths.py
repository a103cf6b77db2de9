#!/usr/bin/env python3
"""What the requests that there are most of cost, in instructions: counted by callgrind, so that the
figure is the same however busy the machine is. The bounds are half as much again as was counted
when they were set; who makes a path cheaper may lower its bound."""

import pathlib
import re
import shutil
import subprocess
import sys

from support import BINARY, check, directory, skip

PROGRAM = pathlib.Path(BINARY).parent / "permit_hot_paths"
OPERATIONS = 200
# One operation each; "hold" is an acquire and its release.
BOUNDS = {
    "hold": 240_000,       # of a pool of one slot
    "hold-2000": 415_000,  # of a pool of 2,000
    "hold-line": 255_000,  # 32 clients, in the line for 4 slots
    "start": 102_000,
    "signal": 56_000,
    "run": 257_000,        # a run from its start to its end: one task
}


def count(path):
    database = directory() / f"{path}.db"
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=/dev/null",
         str(PROGRAM), path, str(OPERATIONS), str(database)],
        capture_output=True, text=True, timeout=120)
    check(done.returncode == 0, done.stdout + done.stderr)
    operations = int(re.search(r"^(\d+) operations$", done.stdout, re.M).group(1))
    check(OPERATIONS <= operations < 2 * OPERATIONS, f"{path}: {operations} operations")
    instructions = int(re.search(r"Collected : (\d+)", done.stderr).group(1))
    return instructions / operations


def main():
    if shutil.which("valgrind") is None or not PROGRAM.exists():
        skip("this test needs valgrind: scripts/setup --test")
    too_many = []
    for path, bound in BOUNDS.items():
        counted = count(path)
        print(f"{path}: {counted:,.0f} instructions, at most {bound:,}", flush=True)
        check(counted > 10_000, f"{path}: nothing was counted")
        if counted > bound:
            too_many.append(path)
    check(not too_many, f"more instructions than there may be: {', '.join(too_many)}")
    return 0


sys.exit(main())
