#!/usr/bin/env python3
"""What README.md and docs/*.md say is true: their blocks run, their links lead somewhere, every error
has its line in docs/errors.md.

A block is known by what stands after its ```:
  sh run        runs in one shell for the whole file, against a server of the file's own
  text          what the block before it prints, if that is a `sh run`: the same lines in any order, but
                for times, names of hosts, slots and the like; a line "…" stands for any others
  toml server   must pass `permit server check`;  toml permit: `permit config list` must read it
  python        runs, with worker/python on its path
  sh, cpp       do not run, so NOT_RUN must say why
A comment <!-- until COMMAND --> waits for that to succeed; readers do not see it.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys

from support import BINARY, REPOSITORY, Server, check, directory, run

# Whose blocks another test runs: python_docs.py, install.py.
TESTED_ELSEWHERE = {"docs/python.md", "docs/install.md"}
PAGES = ["README.md", *sorted(f"docs/{file.name}" for file in (REPOSITORY / "docs").glob("*.md"))]

# Page, the block's first line: why nobody runs it here.
NOT_RUN = {
    ("README.md", "scripts/demo   # watch eight trainings share four GPUs: one terminated, one hung, a "
                  "worker killed"): "tests/end_to_end/demo.sh runs the first, and this is the second",
    ("README.md", "build/permit server start-dev"): "one is there already",
    ("README.md", "scripts/build dev                  # build with assertions and invariant checks "
                  "into build-dev/"): "a list",
    ("README.md", '#include "permits/semaphore.h"'): "compiled as readme_worker; worker.py runs it",
    ("docs/http.md", "permit server start --db-filename permit.db"): "it does not end",
    ("docs/cli.md", "permit pool set gpu-pool --gpus auto"): "needs GPUs; false ones are in the tests of the command",
    ("docs/cli.md", "permit list --watch"): "it does not end",
    ("docs/configuration.md", "permit server start --config /etc/permit/server.toml"): "it does not end",
    ("docs/configuration.md", "permit server start --no-permit-worker &"): "it does not end; "
                                                                           "worker.py runs such",
    ("docs/security.md", "permit api-key create ana --role admin --database /var/lib/permit/permit.db >ana.key"):
        "auth.py does it in a directory of its own",
    ("docs/security.md", "permit server start --listen 0.0.0.0:7376 --db-filename /var/lib/permit/permit.db "
                          "--tls-cert server.crt --tls-key server.key"):
        "it does not end",
    ("docs/tls.md", "permit server start --tls-cert server.crt --tls-key server.key"): "it does not end",
    ("docs/tls.md", "permit server start --tls-cert server.crt --tls-key server.key --tls-client-ca "
                    "authority.crt"): "it does not end; tls.py runs such",
    ("docs/tls.md", 'sudo install -m 600 -o "$(stat -c %u /var/lib/permit/permit.db)" server.key '
                    "/var/lib/permit/tls.key"): "it needs the package",
    ("docs/tls.md", "export PERMIT_ADDRESS=https://gpu-host:7376 PERMIT_TLS_CA=authority.crt"):
        "there is no such host; tls.py does it with another",
    ("docs/tls.md", "sudo systemctl reload permit    # or: kill -HUP of the server's process"):
        "it needs systemd; tls.py does what it does",
    ("docs/backup.md", "permit server start --db-filename copy.db --fence-epoch 1"): "it does not end; backup.py "
                                                                                     "runs it",
    ("docs/monitoring.md", "global:"): "monitoring.py gives it to promtool",
}

# What the blocks leave to their reader.
PRELUDE = r"""
set -euo pipefail
until_true() {
  for ((i = 0; i < 400; ++i)); do
    if eval "$1" >/dev/null 2>&1; then return; fi
    sleep 0.05
  done
  echo "not within 20 s: $1"
  exit 1
}
# Whether no `permit run` of this session has anything more to say.
keeper_is_gone() {
  local file name session rest
  for file in /proc/[0-9]*/stat; do
    read -r rest name rest rest rest session rest 2>/dev/null <"$file" || continue
    if [[ $name == '(run-keeper)' && $session == $$ ]]; then return 1; fi
  done
}
printf '%s\n' 'import os; print("training on", os.environ.get("CUDA_VISIBLE_DEVICES"))' >train.py
mkdir -p bin
printf '#!/bin/sh\necho "torchrun on $CUDA_VISIBLE_DEVICES"\n' >bin/torchrun
printf '#!/bin/sh\nexit 0\n' | tee backup >migrate
chmod +x bin/torchrun backup migrate
"""


class Block:
    def __init__(self, page, number, info, lines):
        self.place = f"{page}:{number}"
        self.page = page
        self.info = info
        self.text = "\n".join(lines) + "\n"
        self.first = lines[0] if lines else ""


def parts_of(page):
    """The page's blocks and its "until" comments, in order."""
    parts = []
    fence = None
    for number, line in enumerate((REPOSITORY / page).read_text().splitlines(), 1):
        if fence is not None:
            if line == "```":
                parts.append(Block(page, *fence))
                fence = None
            else:
                fence[2].append(line)
        elif line.startswith("```"):
            fence = (number, line[3:].strip(), [])
        elif line.startswith("<!-- until "):
            parts.append(line[len("<!-- until "):].removesuffix("-->").strip())
    check(fence is None, f"{page}: a block has no end")
    return parts


def blocks_of(page, info):
    return [part for part in parts_of(page) if isinstance(part, Block) and part.info == info]


# --- Running ---


CHANGING = [  # patterns, and what stands for what they match
    (r"\b\d{4}-\d\d-\d\d[T ]", ""),
    (r"\b\d\d:\d\d:\d\d(\.\d+)?Z?", "TIME"),
    (r"http://127\.0\.0\.1:\d+", "ADDRESS"),
    (r"[\w.-]+@[\w.-]+(:\d+)?", "WHO"),
    (r"\buser \w+", "user WHO"),
    (r"\b\d+(\.\d+)?(ms|s|m|h|d)\b( \d+(ms|s|m|h)\b)*", "D"),
    (r"(\bnow\b|D ago)", "AGO"),
    (r"\b[0-9a-f]{8}\b", "RUN"),
    (r"((?:permit:)?\b[a-z][\w-]*):\d\b", r"\1:SLOT"),
    (r"\bslot \d", "slot SLOT"),
    (r"\s+", " "),
    (r"\b(fence|Fence|--fence) \d+", r"\1 N"),
    (r"(D|RUN) \d+$", r"\1 N"),  # the column FENCE
    (r"(permit-cpp \S+ \w+ )\d+(/\d+ - )\d+( \(\d+%\))?", r"\1N\2N"),  # WORKFLOW and CACHE
]


def normal(text):
    """Its lines, without what differs from one time to the next, sorted."""
    lines = []
    for line in text.splitlines():
        if re.search(r"line \d+: +\d+ Killed", line):  # what the shell says of a job
            continue
        for pattern, instead in CHANGING:
            line = re.sub(pattern, instead, line)
        if line.strip():
            lines.append(line.strip())
    return sorted(lines)


# Said only if a grant takes longer than usual, as it may on a busy machine.
SLOW = re.compile(r"permit: (waiting for|acquired) |permit: released .*, command exited")


def check_output(block, output):
    expected, found = normal(block.text), normal(output)
    found = [line for line in found if line in expected or not SLOW.match(line)]
    if "…" in expected:
        missing = [line for line in expected if line != "…" and line not in found]
        check(not missing, f"{block.place}: missing {missing}\nin {found}")
    else:
        check(expected == found, f"{block.place}: the page says\n{expected}\nbut it is\n{found}")


def environment(port, scratch):
    inherited = {name: value for name, value in os.environ.items()
                 if not name.startswith(("PERMIT_", "XDG_")) and name != "CUDA_VISIBLE_DEVICES"}
    (scratch / "bin").mkdir()
    (scratch / "bin" / "permit").symlink_to(os.path.abspath(BINARY))
    return {**inherited, "HOME": str(scratch), "PERMIT_ADDRESS": f"http://127.0.0.1:{port}",
            "PATH": f"{scratch}/bin:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": str(REPOSITORY / "worker" / "python")}


def shell_script(page, port):
    script = PRELUDE
    number = 0
    for part in parts_of(page):
        if isinstance(part, str):
            script += f"until_true {shell_quoted(part)}\n"
        elif part.info == "sh run":
            number += 1
            script += f"printf '\\n@@ block {number}\\n'\n{part.text}"
    return script.replace("127.0.0.1:7376", f"127.0.0.1:{port}")


def shell_quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def run_shell(page, port, scratch, variables):
    """The output of each `sh run` block."""
    script = scratch / "blocks.sh"
    script.write_text(shell_script(page, port))
    shell = subprocess.Popen(["bash", script], cwd=scratch, env=variables, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             start_new_session=True)
    try:
        output = shell.communicate(timeout=100)[0]
    finally:
        end_session(shell.pid)
        shell.wait()
    check(shell.returncode == 0, f"{page}: exit code {shell.returncode} after\n{output}")
    return re.split(r"^@@ block \d+\n", output, flags=re.MULTILINE)[1:]


def end_session(session):
    """Kills what a block has left behind."""
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                os.kill(int(stat.parent.name), signal.SIGKILL)
        except OSError:
            continue  # it has ended meanwhile


def run_page(page):
    scratch = directory() / re.sub(r"\W", "_", page)
    scratch.mkdir()
    runnable = blocks_of(page, "sh run")
    pythons = blocks_of(page, "python")
    if page in TESTED_ELSEWHERE or not runnable and not pythons:
        return 0
    with Server(scratch / "permit.db", permit_worker=True, demo_pool=True) as server:
        variables = environment(server.port, scratch)
        outputs = iter(run_shell(page, server.port, scratch, variables))
        output = None
        for part in parts_of(page):
            if isinstance(part, Block) and part.info == "sh run":
                output = next(outputs)
            elif isinstance(part, Block):
                if part.info == "text" and output is not None:
                    check_output(part, output)
                output = None
        for block in pythons:
            done = subprocess.run([sys.executable, "-c", block.text], env=variables, timeout=60,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            check(done.returncode == 0, f"{block.place}:\n{done.stdout}")
    return len(runnable) + len(pythons)


def every_block_runs():
    counts = {page: run_page(page) for page in PAGES}
    print("    " + ", ".join(f"{page} {count}" for page, count in counts.items() if count))
    for page, least in (("README.md", 5), ("docs/cli.md", 20), ("docs/http.md", 7)):
        check(counts[page] >= least, f"only {counts[page]} blocks of {page} ran")


def the_tour_shows_what_it_says():
    """docs/http.md has answers too long to print; these are in them."""
    scratch = directory() / "tour"
    scratch.mkdir()
    with Server(scratch / "permit.db", permit_worker=True) as server:
        said = "".join(run_shell("docs/http.md", server.port, scratch,
                                 environment(server.port, scratch)))
    for expected in ('"state": "granted"', '"fence": 1', '"outcome": "released"',
                     '"eventType": "EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED"',
                     '"holder": "train-1"', "did you mean gpu?"):
        check(expected in said, f"missing {expected} in\n{said}")
    check(said.count('"code":') == 1, f"one refusal, on purpose, is in\n{said}")


def every_configuration_is_valid():
    scratch = directory() / "configurations"
    scratch.mkdir()
    counts = {"toml server": 0, "toml permit": 0}
    for page in PAGES:
        for info in counts:
            for block in blocks_of(page, info):
                file = scratch / "file.toml"
                file.write_text(block.text)
                verb = ["server", "check", "--config"] if info == "toml server" else [
                    "config", "list", "--config-file"]
                done = subprocess.run([BINARY, *verb, file], text=True, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, timeout=20)
                check(done.returncode == 0, f"{block.place}: {done.stdout}")
                counts[info] += 1
    check(min(counts.values()) > 0, counts)


def no_block_is_forgotten():
    known = {"sh run", "text", "toml server", "toml permit", "python", "json"}
    unused = dict(NOT_RUN)
    for page in sorted(set(PAGES) - TESTED_ELSEWHERE):
        for block in parts_of(page):
            if isinstance(block, str) or block.info in known:
                continue
            check((page, block.first) in NOT_RUN, f"{block.place}: mark it to run, or say in NOT_RUN "
                                                  f"why it does not: {block.first!r}")
            unused.pop((page, block.first), None)
    check(not unused, f"blocks that are not there any more: {list(unused)}")


def every_link_leads_somewhere():
    count = 0
    for page in PAGES:
        text = (REPOSITORY / page).read_text()
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match("https?:", target):
                continue
            path, _, anchor = target.partition("#")
            file = (REPOSITORY / page).parent / path if path else REPOSITORY / page
            check(file.exists(), f"{page}: there is no {target}")
            check(not anchor or anchor in anchors_of(file.read_text()), f"{page}: no {target}")
            count += 1
    check(count > 20, f"{count} links")


def anchors_of(text):
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    return slugs | set(re.findall(r'<a id="([^"]+)">', text))


# --- Errors ---

# Words in capitals that are no codes: environment variables, Temporal's names, columns, headings.
NOT_CODES = re.compile(
    r"\w+_|(COMMAND|EVENT|TASK_QUEUE)_TYPE_\w+|HISTORY_EVENT_FILTER_TYPE_\w+"
    r"|BAD_START_TIMER_ATTRIBUTES|TOML_UNREACHABLE"
    r"|CONTINUED_AS_NEW|TIMED_OUT|LEASE_EXPIRED|HOLDER_CLOSED|FORCE_RELEASED|STARTS_WITH"
    r"|NO_COLOR|CLICOLOR_FORCE|TEMPORAL_ADDRESS|(STATE|CACHE|RUNTIME|CONFIGURATION|LOGS)_DIRECTORY"
    r"|CREDENTIALS_DIRECTORY|XDG_\w+_HOME|NOTIFY_SOCKET|WATCHDOG_(USEC|PID)|JOURNAL_STREAM"
    r"|(CUDA|ROCR|HIP)_VISIBLE_DEVICES|CUDA_DEVICE_ORDER|PCI_BUS_ID|GPU_DEVICE_ORDINAL")
VARIABLES = re.compile(r"PERMIT_(ADDRESS|API_KEY|API_KEY_FILE|COLOR|CONFIG_FILE|FENCE|HOLDER|ID"
                       r"|IDENTITY|LEASE_DEADLINE|LOG_FORMAT|LOG_LEVEL|MAX_HOLD_DEADLINE|NAMESPACE|OUTPUT|POOL|PROFILE|QUEUE"
                       r"|RUN_ID|SLOT|SLOTS|TASK_QUEUE|TIME_FORMAT|TLS_(CA|CERT|KEY|SERVER_NAME))")
STATUS_OF = {"invalid_argument": 400, "failed_precondition": 400, "out_of_range": 400,
             "unauthenticated": 401, "permission_denied": 403, "not_found": 404,
             "already_exists": 409, "aborted": 409, "resource_exhausted": 429, "canceled": 499,
             "unimplemented": 501, "unavailable": 503, "deadline_exceeded": 504, "unknown": 500,
             "internal": 500, "data_loss": 500}
CODE = r'"([A-Z][A-Z_]+)"'
THROWN = re.compile(
    r"(?:\b(invalid_argument|not_found|failed_precondition|resource_exhausted|unauthenticated)\("
    r"|(?:Error|\brefuse)\(\s*(?:permit::)?ErrorCode::(\w+),"
    r"|(?:\brefuse\(\{?|Refusal\{|error_response\()(\d{3}),(?:\s*\d+,)?)"
    r'\s*(?:[^";]*\?\s*)?' + CODE + r"(?:\s*:\s*" + CODE + ")?")


def sources(*tops):
    for top in tops:
        for file in sorted((REPOSITORY / top).rglob("*")):
            if file.suffix in (".cpp", ".h"):
                yield file


def codes_in_sources():
    """{code: statuses the server gives it}; none if only clients do."""
    routes = (REPOSITORY / "orchestrator/http/routes.cpp").read_text()
    special = {code: int(status) for code, status in re.findall(r"\{" + CODE + r",\s*(\d{3})\}", routes)}
    codes = {}
    for file in sources("orchestrator", "worker", "permits", "apps"):
        text = file.read_text()
        for helper, kind, status, first, second in THROWN.findall(text):
            for code in filter(None, (first, second)):
                statuses = codes.setdefault(code, set())
                # What these throw ends the start of the server; nobody gets it as an answer.
                answers = (file.is_relative_to(REPOSITORY / "orchestrator")
                           and file.name not in ("server.cpp", "tls.cpp"))
                if status or answers:
                    statuses.add(int(status) if status else special.get(code, STATUS_OF[helper or kind]))
        # Whatever else looks like one: better a word too many to sort out than a code too few.
        for word in re.findall(r'"([A-Z]+_[A-Z_]+)"', text):
            if not NOT_CODES.fullmatch(word) and not VARIABLES.fullmatch(word):
                codes.setdefault(word, set())
    python = (REPOSITORY / "worker/python/permit.py").read_text()
    words = re.findall(r"^    code = " + CODE, python, re.MULTILINE)
    words += re.findall(r"Error\([^\n]*, " + CODE + r"\)", python)
    for code in words:
        codes.setdefault(code, set())
    check(len(codes) > 110, f"{len(codes)} codes: are the sources still written as THROWN expects?")
    return codes


def codes_in_the_page():
    text = (REPOSITORY / "docs/errors.md").read_text()
    rows = re.findall(r'^\| <a id="(\w+)"></a>`(\w+)\*?` \| ([\d, -]+) \| (.+) \| (.+) \|$', text,
                      re.MULTILINE)
    check(len(rows) == text.count("<a id="), "a row of docs/errors.md is not like the others")
    codes = [row[1] for row in rows]
    check(len(set(codes)) == len(codes), "a code is in docs/errors.md twice")
    return {code: {int(status) for status in re.findall(r"\d+", statuses)}
            for _, code, statuses, _, _ in rows}


def every_error_is_explained():
    thrown, told = codes_in_sources(), codes_in_the_page()
    missing = sorted(set(thrown) - set(told))
    check(not missing, f"docs/errors.md does not have {missing}; if a word is no code, say so in NOT_CODES")
    stale = sorted(set(told) - set(thrown))
    check(not stale, f"no source has {stale} of docs/errors.md")
    for code, statuses in thrown.items():
        if statuses:
            check(told[code] == statuses, f"{code} is answered with {statuses}, not {told[code]}")
    print(f"    {len(told)} codes")


def permit_failures_are_explained():
    common = (REPOSITORY / "orchestrator/protocol/common.h").read_text()
    kinds = re.search(r"enum class PermitFailureKind \{(.*?)\}", common, re.DOTALL)[1]
    page = (REPOSITORY / "docs/errors.md").read_text()
    for kind in re.findall(r"(\w+) = [1-9]", kinds):
        check(f"`{kind.upper()}`" in page, f"docs/errors.md does not have permitFailure {kind}")
    errors = "".join((REPOSITORY / "permits" / name).read_text()
                     for name in ("errors.cpp", "fence_guard.cpp"))
    for name in re.findall(r'PermitError\(\s*"(\w+)"', errors):
        check(f"| `{name}` |" in page, f"docs/errors.md does not have the exception {name}")


def the_page_has_the_exit_codes_of_the_command():
    said = subprocess.run([BINARY, "help", "exit-codes"], stdout=subprocess.PIPE, text=True, timeout=20)
    codes = re.findall(r"^ +(\d+\S*)  ", said.stdout, re.MULTILINE)
    check(len(codes) > 10, said.stdout)
    page = (REPOSITORY / "docs/errors.md").read_text().partition("## Exit codes")[2]
    found = re.findall(r"^\| (\d\S*) \|", page, re.MULTILINE)
    check(found == codes, f"the page has {found}, the command {codes}")


def every_setting_is_told():
    pages = "".join((REPOSITORY / page).read_text() for page in PAGES)
    text = "".join(file.read_text() for file in sources("apps", "worker", "permits"))
    for word in set(re.findall(r'"(PERMIT_[A-Z_]+)"', text)):
        if VARIABLES.fullmatch(word):
            check(f"`{word}`" in pages, f"no page tells of {word}")
    page = (REPOSITORY / "docs/configuration.md").read_text()
    config = (REPOSITORY / "apps/cli/server_config.cpp").read_text()
    for key in re.findall(r'key == "(\w+)"', config):
        check(f"`{key}`" in page, f"docs/configuration.md does not have {key}")
    settings = (REPOSITORY / "apps/cli/settings.cpp").read_text()
    for key in re.findall(r'^ +\{"(\w+)",', settings, re.MULTILINE):
        check(f"`{key}`" in page, f"docs/configuration.md does not have {key}")


def the_map_is_of_this_tree():
    """Each directory of the sources and of the tests' drivers stands in README's map."""
    text = (REPOSITORY / "README.md").read_text()
    tree = re.search(r"## Map of the tree\n\n```text\n(.*?)```", text, re.DOTALL)[1]
    told = set()
    top = ""
    for line in tree.splitlines():
        found = re.match(r"( *)([\w./]+)/( |$)", line)
        if found and not found[1]:
            top = found[2]
            told.add(top)
        elif found:
            told.add(f"{top}/{found[2]}")
    for name in told:
        check((REPOSITORY / name).is_dir(), f"README's map has {name}, which is not there")
    for name in ("orchestrator", "worker", "permits", "apps", "docs", "scripts", "tests"):
        check(name in told, f"README's map does not have {name}")
    for top in ("orchestrator", "apps"):
        for below in (REPOSITORY / top).iterdir():
            if below.is_dir():
                check(f"{top}/{below.name}" in told, f"README's map does not have {top}/{below.name}")


run(
    no_block_is_forgotten,
    every_link_leads_somewhere,
    the_map_is_of_this_tree,
    every_error_is_explained,
    permit_failures_are_explained,
    the_page_has_the_exit_codes_of_the_command,
    every_setting_is_told,
    every_configuration_is_valid,
    every_block_runs,
    the_tour_shows_what_it_says,
)
