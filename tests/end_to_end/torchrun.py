#!/usr/bin/env python3
"""A real torchrun of two ranks under `permit run`: its mask, its check-point, how its hold ends."""

import json
import os
import signal
import subprocess

from support import BINARY, Server, check, directory, run, skip

PYTHON = "/usr/bin/python3"  # Debian's: python3-torch is for no other
TORCHRUN = "/usr/bin/torchrun"

TRAINING = '''
import json, os, signal, sys, time

told = []
signal.signal(signal.SIGTERM, lambda number, _: told.append(number))

import torch
import torch.distributed as dist

checkpoint, steps = sys.argv[1], int(sys.argv[2])
dist.init_process_group("gloo")
rank = dist.get_rank()
first = json.load(open(checkpoint))["step"] if os.path.exists(checkpoint) else 0
line = [f"rank {rank} of {dist.get_world_size()} from {first}"]
line += [os.environ.get(name, "-") for name in ("PERMIT_SLOTS", "CUDA_VISIBLE_DEVICES", "PERMIT_ID")]
print(" ".join(line), flush=True)
stopped = False
weight = torch.zeros(1)
for step in range(first, steps):
    gradient = torch.ones(1)
    dist.all_reduce(gradient)
    weight += gradient
    # One may be told before the other; all stop at the same step, or those that go on would hang.
    stop = torch.tensor([float(len(told))])
    dist.all_reduce(stop)
    if stop > 0:
        steps, stopped = step + 1, True
        break
    time.sleep(0.05)
if rank == 0:
    with open(checkpoint + ".new", "w") as file:
        json.dump({"step": steps, "stopped": stopped}, file)
    os.replace(checkpoint + ".new", checkpoint)
dist.barrier()
'''


def torchrun(checkpoint, steps):
    script = checkpoint.parent / "train.py"
    script.write_text(TRAINING)
    # Port 0, as the usual one may be taken; standard output to files, and from there to ours.
    return [TORCHRUN, "-r", "1", "-t", "1", "--nproc_per_node", "2", "--rdzv_backend", "c10d",
            "--rdzv_endpoint", "127.0.0.1:0", "--rdzv_id", "test", "--log_dir",
            str(checkpoint.parent / "logs"), str(script), str(checkpoint), str(steps)]


def under_permit(server, checkpoint, steps, *options, seconds=90):
    """The lines of the ranks, and how it exited."""
    environment = {**os.environ, "PERMIT_ADDRESS": f"http://127.0.0.1:{server.port}",
                   "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [BINARY, "run", "-p", "gpus", "-n", "2", "--gpu", *options, "--", *torchrun(checkpoint, steps)],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)
    lines = sorted(line[line.index("rank "):] for line in out.splitlines() if "rank " in line)
    return lines, process.returncode, err


def check_masks(lines, err):
    check(len(lines) == 2, f"{lines}\n{err}")
    for rank, line in enumerate(lines):
        check(line.startswith(f"rank {rank} of 2 "), lines)
        slots, devices, permit = line.split()[-3:]
        check(slots == devices, f"the devices are those of the slots: {line}")
        check(len(set(slots.split(","))) == 2 and "0" not in slots.split(","), line)
        check(permit == f"permit:gpus:{slots.split(',')[0]}", line)
    check(lines[0].split()[-3:] == lines[1].split()[-3:], lines)


def check_outcomes(client, outcomes):
    """All holds of the pool have ended so, and it is free but for the slot held by the test."""
    pool = client.pool("gpus")
    found = {count["outcome"]: int(count["holds"]) for count in pool.get("outcomes", [])}
    check(found == outcomes and pool["held"] == 1, pool)


def two_ranks_train_check_point_and_resume():
    checkpoint = directory() / "checkpoint.json"
    with Server(permit_worker=True) as server:
        client = server.client()
        client.set_pool("gpus", slots=["0", "1", "2"])
        # Slot 0 is somebody else's: a mask that is not that of the slots is seen.
        client.acquire("gpus", "other", only=["0"], lease="600s")

        lines, status, err = under_permit(server, checkpoint, 1_000_000, "--max-hold", "40s",
                                          "--kill-after", "15s")
        check_masks(lines, err)
        check(status == 124, f"exit code {status}\n{err}")
        saved = json.loads(checkpoint.read_text())
        check(saved["stopped"] and saved["step"] > 0, saved)
        check_outcomes(client, {"released": 2})

        lines, status, err = under_permit(server, checkpoint, saved["step"] + 10)
        check_masks(lines, err)
        check(f" from {saved['step']} " in lines[0], lines)
        check(status == 0, f"exit code {status}\n{err}")
        check(json.loads(checkpoint.read_text()) == {"step": saved["step"] + 10, "stopped": False},
              checkpoint.read_text())
        check_outcomes(client, {"released": 4})


def main():
    tried = [PYTHON, "-c", "import torch.distributed as d; assert d.is_gloo_available()"]
    try:
        if subprocess.run(tried, capture_output=True, timeout=60).returncode != 0:
            skip("python3-torch is not installed: apt-get install --no-install-recommends python3-torch")
    except OSError:
        skip(f"there is no {PYTHON}")
    run(two_ranks_train_check_point_and_resume)


main()
