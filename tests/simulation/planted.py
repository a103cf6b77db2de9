#!/usr/bin/env python3
"""Puts bugs into a copy of the engine, one at a time, and counts the seeds until the simulation
finds each. Exit 1 if one is not found.

Usage: tests/simulation/planted.py [--seeds N] [NUMBER...]

The product itself knows nothing of this: each bug is a replacement of text, guarded by PLANTED(n),
in a copy that is built once. A replacement whose text is gone from the tree is an error: move it
along with the code. All bugs are in the same build; the environment variable PLANT picks one.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

PLANT_H = """#pragma once
#include <cstdlib>
namespace permit {
inline const int planted = [] {
  const char* number = std::getenv("PLANT");
  return number == nullptr ? 0 : std::atoi(number);
}();
}
#define PLANTED(n) (::permit::planted == (n))
"""

SERVICE = "orchestrator/service/"
CORE = "orchestrator/core/"
STORE = "orchestrator/store/"

# Number, what the bug is, and its edits: (file, text, what stands there instead).
BUGS = [
    (1, "uniqueness is checked against earlier batches only, and the index is not unique", [
        (SERVICE + "uniqueness.cpp", "  if (latest == nullptr) return true;\n",
         "  if (latest == nullptr) return true;\n"
         "  if (PLANTED(1) && latest->start_time == change.now()) return true;\n"),
        (STORE + "store.cpp", "  database_.execute(schema_sql);\n",
         "  database_.execute(schema_sql);\n"
         '  if (PLANTED(1)) database_.execute("DROP INDEX runs_open; '
         'CREATE INDEX runs_open ON runs (namespace, workflow_id) WHERE status = 1");\n'),
    ]),
    (4, "a refused request's runs stay in memory as it left them", [
        (SERVICE + "change.cpp",
         "  for (const RunNumber number : order_) parts_.cache.forget(number);\n",
         "  for (const RunNumber number : order_) {\n"
         "    if (!PLANTED(4)) parts_.cache.forget(number);\n  }\n"),
    ]),
    (5, "a run id in a request is ignored: the release of an old run reaches the new one", [
        (SERVICE + "client_api.cpp", "execution.run_id.empty() || by_chain\n",
         "execution.run_id.empty() || by_chain || PLANTED(5)\n"),
        (SERVICE + "messages.cpp", "      target.run_id.empty() ? latest_run(",
         "      target.run_id.empty() || PLANTED(5) ? latest_run("),
    ]),
    (11, "the fence counter is not written", [
        (STORE + "store.cpp", "  const std::int64_t owned =\n      sql_->put_counters.run("
         "counters_.commit_seq, counters_.fence,",
         "  std::int64_t fence = counters_.fence;\n"
         "  if (PLANTED(11)) fence = 0;\n"
         "  if (PLANTED(12)) fence = committed_.fence;\n"
         "  const std::int64_t owned =\n      sql_->put_counters.run("
         "counters_.commit_seq, fence,"),
    ]),
    (12, "the fence counter is written with the next commit", []),  # with 11
    (17, "replies leave before their commit", [
        (SERVICE + "service.cpp", "  if (store_.in_batch()) store_.commit(now_);\n",
         "  if (store_.in_batch() && !PLANTED(17)) store_.commit(now_);\n"),
        (SERVICE + "service.cpp",
         "  for (const std::unique_ptr<Reply>& reply : replies) reply->send();\n",
         "  for (const std::unique_ptr<Reply>& reply : replies) reply->send();\n"
         "  if (PLANTED(17) && store_.in_batch()) store_.commit(now_);\n"),
    ]),
    (18, "synchronous=NORMAL", [
        (STORE + "database.cpp", 'execute("PRAGMA synchronous = FULL;")',
         'execute(PLANTED(18) ? "PRAGMA synchronous = NORMAL;" : "PRAGMA synchronous = FULL;")'),
    ]),
    (19, "a batch that failed on a full disk is acknowledged", [
        (SERVICE + "service.cpp", "reply->refuse(error);",
         "PLANTED(19) ? reply->send() : reply->refuse(error);"),
    ]),
    (20, "an I/O error is answered as a refusal, and the server goes on", [
        (STORE + "database.cpp", "  switch (primary) {\n    case SQLITE_FULL:\n",
         "  if (PLANTED(20) && primary == SQLITE_IOERR) throw DiskFull(message);\n"
         "  switch (primary) {\n    case SQLITE_FULL:\n"),
    ]),
    (23, "history and state are written in two transactions", [
        (SERVICE + "change.cpp", "  // First what closes, then what opens under the same id.\n",
         "  if (PLANTED(23)) {\n    parts_.store.commit(now());\n    parts_.store.begin();\n  }\n"
         "  // First what closes, then what opens under the same id.\n"),
    ]),
    (29, "a run that no worker ever polled has no backstop", [
        (CORE + "run_state.cpp",
         "  Time due = std::min(expiration(state), workflow_task_due(state));\n",
         "  Time due = std::min(expiration(state), workflow_task_due(state));\n"
         "  if (PLANTED(29) && state.last_completed_started_id == 0) "
         "due = workflow_task_due(state);\n"),
    ]),
    (36, "a release that comes after the lease timer counts too", [
        (CORE + "run_state.cpp",
         'if (e.signal_name == "release" && !state_.lease_timer_fired) ',
         'if (e.signal_name == "release" && (!state_.lease_timer_fired || PLANTED(36))) '),
    ]),
    (37, "a workflow task's token is taken whatever attempt it was for", [
        (SERVICE + "worker_api.cpp",
         "  const bool current = run->task_started() && task.nonce == token->nonce &&\n"
         "                       task.attempt == token->attempt &&\n"
         "                       task.scheduled_event_id == token->scheduled_event_id;\n",
         "  const bool same = task.nonce == token->nonce && task.attempt == token->attempt &&\n"
         "                    task.scheduled_event_id == token->scheduled_event_id;\n"
         "  const bool current = run->task_started() && (same || PLANTED(37));\n"),
    ]),
    (39, "a task that a poller was given never times out, so a lost answer loses it", [
        (CORE + "run_state.cpp",
         "  if (state.task_started()) return after(task.started_time, task.timeout);\n",
         "  if (PLANTED(39) && state.task_started()) return never;\n"
         "  if (state.task_started()) return after(task.started_time, task.timeout);\n"),
    ]),
    (47, "a parent's close leaves its requests in the waiting line", [
        (CORE + "transition.cpp", "    if (!child.waits_for.empty()) {\n",
         "    if (!child.waits_for.empty() && !PLANTED(47)) {\n"),
    ]),
    (48, "a child's close is told to its parent's workflow id, whatever run has it now", [
        (SERVICE + "messages.cpp",
         "  core::RunState* parent = run_by_id(message.parent.run_id);\n"
         "  if (parent == nullptr || !parent->is_open()) return;\n"
         "  const auto child = parent->children.find(message.initiated_event_id);\n"
         "  if (child == parent->children.end()) return;\n",
         "  core::RunState* parent = run_by_id(message.parent.run_id);\n"
         '  if (PLANTED(48)) parent = latest_run("default", message.parent.workflow_id);\n'
         "  if (parent == nullptr || !parent->is_open()) return;\n"
         "  const auto child = parent->children.find(message.initiated_event_id);\n"
         "  if (child == parent->children.end()) return;\n"),
    ]),
    (51, "a grant is not told to a parent whose task a worker has", [
        (SERVICE + "pools.cpp",
         "    change.step(parent, [&](core::Transition& t) { t.receive(std::move(started)); });\n",
         "    if (PLANTED(51) && parent.task_started()) continue;\n"
         "    change.step(parent, [&](core::Transition& t) { t.receive(std::move(started)); });\n"),
    ]),
    (52, "a start that does not want to wait is granted and refused", [
        (SERVICE + "pools.cpp",
         "  pool.line.insert(std::move(waiter));\n  pool_of_waiter_[id] = pool.name;\n",
         "  const Waiter asked = PLANTED(52) ? waiter : Waiter();\n"
         "  pool.line.insert(std::move(waiter));\n  pool_of_waiter_[id] = pool.name;\n"),
        (SERVICE + "pools.cpp", "  if (still == nullptr) return;\n  if (request.wait) {\n",
         "  if (PLANTED(52) && still == nullptr && !request.wait) refuse(change, asked, {});\n"
         "  if (still == nullptr) return;\n  if (request.wait) {\n"),
    ]),
    # Our own.
    (65, "priorities in line are lost when the line is loaded again", [
        (SERVICE + "pools.cpp", "    Waiter waiter = read_json<Waiter>(row.waiter_json);\n",
         "    Waiter waiter = read_json<Waiter>(row.waiter_json);\n"
         "    if (PLANTED(65)) waiter.priority = 3;\n"),
    ]),
    (66, "a renewal after the deadline revives the lease", [
        (CORE + "clock_transitions.cpp",
         "  if (deadline <= now || state.lease_timer_fired) return std::nullopt;\n",
         "  if (!PLANTED(66) && (deadline <= now || state.lease_timer_fired)) "
         "return std::nullopt;\n"),
    ]),
]


def plant(tree):
    for number, _, edits in BUGS:
        for file, text, instead in edits:
            path = os.path.join(tree, file)
            with open(path, encoding="utf-8") as source:
                content = source.read()
            if content.count(text) != 1:
                sys.exit(f"bug {number}: {file} has its text {content.count(text)} times, not once:"
                         f"\n{text}")
            with open(path, "w", encoding="utf-8") as source:
                source.write(content.replace(text, instead))


def build(tree, directory):
    header = os.path.join(tree, "plant.h")
    with open(header, "w", encoding="utf-8") as file:
        file.write(PLANT_H)
    log = os.path.join(tree, "build.log")
    with open(log, "w", encoding="utf-8") as output:
        configured = subprocess.run(
            ["cmake", "-S", tree, "-B", directory, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
             "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG", f"-DCMAKE_CXX_FLAGS=-include {header}"],
            stdout=output, stderr=output, check=False)
        built = configured.returncode == 0 and subprocess.run(
            ["cmake", "--build", directory, "--target", "permit_simulation"],
            stdout=output, stderr=output, check=False).returncode == 0
    if not built:
        with open(log, encoding="utf-8") as output:
            sys.exit(output.read()[-4000:])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5000, help="at most, per bug")
    parser.add_argument("numbers", type=int, nargs="*")
    options = parser.parse_args()
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

    scratch = tempfile.mkdtemp(prefix="permit-planted-")
    try:
        tree = os.path.join(scratch, "tree")
        shutil.copytree(root, tree, ignore=shutil.ignore_patterns("build*", ".git"))
        plant(tree)
        print(f"building an engine with {len(BUGS)} planted bugs", flush=True)
        directory = os.path.join(scratch, "build")
        build(tree, directory)
        return hunt(os.path.join(directory, "permit_simulation"), options)
    finally:
        shutil.rmtree(scratch)


def hunt(simulation, options):
    chosen = [bug for bug in BUGS if not options.numbers or bug[0] in options.numbers]
    missed = 0
    print(f"{'bug':>3}  {'seeds':>6}  {'seconds':>7}  found as")
    for number, what, _ in chosen:
        began = time.monotonic()
        run = subprocess.run([simulation, "--seeds", str(options.seeds)], check=False,
                             env=dict(os.environ, PLANT=str(number)), capture_output=True,
                             text=True, timeout=900)
        found = re.search(r"^SEED=(\d+)\n(.*)", run.stdout + run.stderr, re.MULTILINE)
        seconds = time.monotonic() - began
        if found:
            print(f"{number:>3}  {found[1]:>6}  {seconds:>7.1f}  {found[2][:100]}", flush=True)
        else:
            missed += 1
            print(f"{number:>3}  {'NOT':>6}  {seconds:>7.1f}  {what}", flush=True)
    print(f"{len(chosen)} planted bugs, {missed} not found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
