#!/usr/bin/env python3
"""Runs every Python block of docs/python.md, each in a process of its own, against a real server."""

import os
import re
import signal
import subprocess
import sys

from support import (REPOSITORY, Server, check, command, complete_workflow, directory, eventually,
                     events_of, payloads, run, value_of)

# What the blocks leave to their reader.
PRELUDE = """
def train(epoch): pass
def save(epoch): pass
def train_step(model, step): pass
max_over_ranks = lambda value: value
"""


def blocks():
    return re.findall(r"^```python\n(.*?)^```$", (REPOSITORY / "docs" / "python.md").read_text(),
                      re.MULTILINE | re.DOTALL)


def start(block, number, port):
    file = directory() / f"block{number}.py"
    file.write_text(PRELUDE + block)
    environment = {**os.environ, "PERMIT_ADDRESS": f"http://127.0.0.1:{port}",
                   "PYTHONPATH": str(REPOSITORY / "worker" / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.Popen([sys.executable, file], env=environment, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def call_activity(client):
    """What the workflow of the text does."""
    client.start("train", queue="driver")
    arguments = [payloads(value)["payloads"][0] for value in ("resnet", 3, "0")]
    client.complete(client.poll("driver"), command(
        "ScheduleActivityTask", activityId="1", activityType={"name": "train_epoch"},
        taskQueue={"name": "training"}, input={"payloads": arguments}, startToCloseTimeout="30s"))
    task = eventually(lambda: client.poll("driver"), "the activity's end", 30)
    client.complete(task, complete_workflow())
    return value_of(events_of(task, "ActivityTaskCompleted")[0]["result"])


def every_block_runs():
    expected = (" with fence 1", "resnet on 2 slots", "(7, '", "False", None)
    found = blocks()
    check(len(found) == len(expected), f"{len(found)} blocks")
    with Server(permit_worker=True) as server:
        client = server.client()
        client.set_pool("gpu-pool", capacity=4)
        for number, (block, output) in enumerate(zip(found, expected)):
            process = start(block, number, server.port)
            try:
                if output is None:
                    check(call_activity(client) == "resnet-3.ckpt on 0", "the result")
                    process.send_signal(signal.SIGTERM)
                    output = "stopping"
                said = process.communicate(timeout=30)[0]
            finally:
                process.kill()
                process.wait()
            check(process.returncode == 0 and output in said, f"block {number}:\n{block}\n{said}")
        pool = client.pool("gpu-pool")
        outcomes = [count["outcome"] for count in pool["outcomes"]]
        check(not pool.get("held") and outcomes == ["released"], pool)
        print(f"    {len(found)} blocks")


run(every_block_runs)
