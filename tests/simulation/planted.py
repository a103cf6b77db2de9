#!/usr/bin/env python3
"""Puts bugs into a copy of the engine, one at a time, and counts the seeds until the simulation
finds each. Exit 1 if one is not found.

Usage: tests/simulation/planted.py [--seeds N] [--seconds S] [--jobs J] [--level 1|2]
                                   [--worlds W] [--tree DIRECTORY] [NUMBER...]

The product itself knows nothing of this: each bug is a replacement of text, guarded by PLANTED(n),
in a copy that is built once. All bugs are in the same build; the environment variable PLANT picks
one. They stand in planted_bugs.py. With --tree the copy is kept there, and brought up to date.
"""

import argparse
import concurrent.futures
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from planted_bugs import BUGS

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
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
REGRESS = os.path.join(ROOT, "tests", "regress")
WORLD = 1_000_003  # so far apart are the first seeds of two worlds


def planted_files(root):
    """The files that bugs are in, with all of them."""
    contents = {}
    for number, _, _, edits in BUGS:
        for file, text, instead in edits:
            if file not in contents:
                with open(os.path.join(root, file), encoding="utf-8") as source:
                    contents[file] = source.read()
            if contents[file].count(text) != 1:
                sys.exit(f"bug {number}: {file} has its text {contents[file].count(text)} times, "
                         f"not once:\n{text}")
            contents[file] = contents[file].replace(text, instead)
    return contents


def write_if_new(path, content):
    try:
        with open(path, "rb") as file:
            if file.read() == content:
                return
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def bring_up_to_date(root, tree):
    planted = planted_files(root)
    skip = {".git"}
    for directory, names, files in os.walk(root):
        names[:] = [name for name in names if name not in skip and not name.startswith("build")]
        for name in files:
            path = os.path.join(directory, name)
            relative = os.path.relpath(path, root)
            if relative in planted:
                content = planted[relative].encode()
            else:
                with open(path, "rb") as file:
                    content = file.read()
            target = os.path.join(tree, relative)
            write_if_new(target, content)
            shutil.copymode(path, target)
    write_if_new(os.path.join(tree, "plant.h"), PLANT_H.encode())


def build(tree, directory):
    log = os.path.join(tree, "build.log")
    with open(log, "w", encoding="utf-8") as output:
        configured = subprocess.run(
            ["cmake", "-S", tree, "-B", directory, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
             "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG",
             f"-DCMAKE_CXX_FLAGS=-include {tree}/plant.h"],
            stdout=output, stderr=output, check=False)
        built = configured.returncode == 0 and subprocess.run(
            ["cmake", "--build", directory, "--target", "permit_simulation"],
            stdout=output, stderr=output, check=False).returncode == 0
    if not built:
        with open(log, encoding="utf-8") as output:
            text = output.read()
        errors = [line for line in text.splitlines() if "error" in line]
        sys.exit("\n".join(errors[:40]) or text[-4000:])


def hunt(simulation, bug, world, options):
    """The seeds that it took, or None; the seconds; what was found."""
    number, _, level, _ = bug
    first = 1 + world * WORLD
    began = time.monotonic()
    command = [simulation, "--seeds", str(options.seeds), "--first-seed", str(first),
               "--level", options.level or str(level), "--repeat-each", "0"]
    try:
        run = subprocess.run(command, check=False, env=dict(os.environ, PLANT=str(number)),
                             capture_output=True, text=True, timeout=options.seconds)
        said = run.stdout + run.stderr
        crashed = run.returncode < 0
    except subprocess.TimeoutExpired:
        said, crashed = "", False
    seconds = time.monotonic() - began
    found = re.search(r"^SEED=(\d+)\n(.*)", said, re.MULTILINE)
    if found:
        return int(found[1]) - first + 1, seconds, found[2]
    if crashed:
        return 1, seconds, f"the simulation ends by signal {-run.returncode}"
    return None, seconds, ""


def percentile(numbers, share):
    numbers = sorted(numbers)
    return numbers[min(len(numbers) - 1, int(len(numbers) * share))]


def hunt_all(simulation, options):
    chosen = [bug for bug in BUGS if not options.numbers or bug[0] in options.numbers]
    hunts = [(bug, world) for bug in chosen for world in range(options.worlds)]
    print(f"{'bug':>3}  level  {'seeds':>14}  {'seconds':>7}  found as", flush=True)
    missed = []
    counts = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = pool.map(lambda one: hunt(simulation, one[0], one[1], options), hunts)
        of_bug = []
        for (bug, world), result in zip(hunts, results):
            of_bug.append(result)
            if world + 1 < options.worlds:
                continue
            seeds = " ".join("NOT" if one[0] is None else str(one[0]) for one in of_bug)
            seconds = sum(one[1] for one in of_bug)
            what = next((one[2] for one in of_bug if one[2]), bug[1])
            print(f"{bug[0]:>3}  {options.level or bug[2]:>5}  {seeds:>14}  {seconds:>7.1f}  "
                  f"{what[:100]}", flush=True)
            counts += [one[0] for one in of_bug if one[0] is not None]
            if any(one[0] is None for one in of_bug):
                missed.append(bug[0])
            of_bug = []
    print(f"{len(chosen) - len(missed)} of {len(chosen)} planted bugs are found", end="")
    if counts:
        print(f"; seeds: median {statistics.median(counts):g}, "
              f"95 % within {percentile(counts, 0.95)}", end="")
    print("" if not missed else "; not found: " + " ".join(map(str, missed)), flush=True)
    return 1 if missed or not scripts_bite(simulation, chosen) else 0


def scripts_bite(simulation, chosen):
    """Whether the kept scripts still break what the bug in their name breaks, and only with it."""
    numbers = {bug[0] for bug in chosen}
    bite = True
    for name in sorted(os.listdir(REGRESS)):
        match = re.fullmatch(r"planted_(\d+)\.repro", name)
        if not match or int(match[1]) not in numbers:
            continue
        for plant, expected in ((match[1], 1), ("0", 0)):
            run = subprocess.run([simulation, "--replay", os.path.join(REGRESS, name)], check=False,
                                 env=dict(os.environ, PLANT=plant), capture_output=True)
            if run.returncode != expected:
                print(f"{name} exits {run.returncode} with bug {plant}, not {expected}: draw it anew "
                      f"with PLANT={match[1]} permit_simulation --seed S --shrink")
                bite = False
    return bite


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5000, help="at most, per bug and world")
    parser.add_argument("--seconds", type=int, default=600, help="at most, per bug and world")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="hunts at once")
    parser.add_argument("--level", choices=["1", "2", "both"], help="for all bugs")
    parser.add_argument("--worlds", type=int, default=1, help="of seeds, for each bug")
    parser.add_argument("--tree", help="where the copy is kept")
    parser.add_argument("--build-only", action="store_true", help="with --tree")
    parser.add_argument("numbers", type=int, nargs="*")
    options = parser.parse_args()

    tree = os.path.abspath(options.tree) if options.tree else tempfile.mkdtemp("-permit-planted")
    try:
        bring_up_to_date(ROOT, tree)
        print(f"building an engine with {len(BUGS)} planted bugs", flush=True)
        directory = os.path.join(tree, "build-planted")
        build(tree, directory)
        if options.build_only:
            return 0
        return hunt_all(os.path.join(directory, "permit_simulation"), options)
    finally:
        if not options.tree:
            shutil.rmtree(tree)


if __name__ == "__main__":
    sys.exit(main())
