#!/usr/bin/env python3
"""The 87 cases of abuse, one table: bytes, crowds, values, states, browsers, logs. After each line an
honest request on a new connection must work. Ends with every number and where it was tried.

--full: the crowds in their full numbers and for their full times (some minutes).
"""

import re
import sys
import time

from abuse_browser import run_browser
from abuse_calls import run_calls
from abuse_framing import run_framing
from abuse_logs import run_logs
from abuse_many import run_many
from abuse_support import Table
from support import REPOSITORY, Server, check, directory

CASES = 87
# Lines of other suites, which scripts/test runs as well. Each has `case N` beside it.
OTHERS = {
    "tests/end_to_end/bad_input.py": [33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49,
                                      50, 51, 52, 53, 55, 59],
    "tests/end_to_end/page.py": [74, 76, 77],
    "tests/end_to_end/metrics.py": [84],
    "tests/orchestrator/limits_test.cpp": [55, 56, 60],
    "tests/web/pools.test.mjs": [75],
    "tests/web/workflow.test.mjs": [75, 79],
}
# Where keys, roles and TLS are tried.
ELSEWHERE = {
    "tests/end_to_end/auth.py": [61, 63, 64, 65, 66, 70, 71, 84, 85, 87],
    "tests/http/auth_test.cpp": [62],
    "tests/end_to_end/tls.py": [67, 68, 69, 70, 71],
}


def marked(path):
    """The numbers of the cases that a file says it has: `case 7`, `cases 61, 62`, `cases 67-70`."""
    text = path.read_text()
    numbers = set()
    for said in re.findall(r"\b[Cc]ases? ((?:\d+(?:-\d+)?)(?:(?:, | and )\d+(?:-\d+)?)*)", text):
        for part in re.split(r", | and ", said):
            first, _, last = part.partition("-")
            numbers.update(range(int(first), int(last or first) + 1))
    return numbers


def other_lines():
    """number → files, of those that are there and say so."""
    found, absent = {}, []
    for name, numbers in {**OTHERS, **ELSEWHERE}.items():
        path = REPOSITORY / name
        if not path.exists():
            check(name in ELSEWHERE, f"there is no {name}")
            absent.append((name, numbers))
            continue
        missing = set(numbers) - marked(path)
        check(not missing, f"{name} has no line for the cases {sorted(missing)}")
        for number in numbers:
            found.setdefault(number, []).append(path.name)
    return found, absent


def report(table):
    others, absent = other_lines()
    tried = 0
    for number in range(1, CASES + 1):
        lines = len(table.tried.get(number, []))
        places = ([f"{lines} line{'s' * (lines != 1)}"] if lines else []) + others.get(number, [])
        if not places:
            places = [f"not yet: {name}" for name, numbers in absent if number in numbers]
        else:
            tried += 1
        print(f"  {number:2}  {', '.join(places) or 'NOWHERE'}")
        check(places, f"case {number} is tried nowhere")
    lines = sum(len(lines) for lines in table.tried.values())
    print(f"{lines} lines; {tried} of {CASES} cases tried")
    for name, numbers in absent:
        print(f"{name} is missing, with the cases {numbers}")


def main():
    full = "--full" in sys.argv[1:]
    table = Table()
    with Server(directory() / "abuse.db", log_level="error") as server:
        server.client().set_pool("honest", capacity=3)
        began = time.monotonic()

        def done(what):
            check(server.process.poll() is None, f"the server has ended: {server.errors[-5:]}")
            print(f"ok  {what}, {time.monotonic() - began:.1f} s", flush=True)

        finish_crowds = run_many(table, server.port, full)
        if full:  # else they have others beside them, on servers of their own
            finish_crowds()
            done("slow and many")
        run_framing(table, server.port)
        done("framing")
        run_calls(table, server, full)
        done("values and states")
        run_browser(table, server)
        done("browsers")
        run_logs(table)
        done("logs and secrets")
        finish_crowds()
        done("slow and many, all of it")
        check(not table.failures, "\n\n".join(["", *table.failures]))
        check(not server.errors, f"the server logged: {server.errors[-5:]}")
        check(server.stop() == 0, "exit code")
    report(table)


main()
