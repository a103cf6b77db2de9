#!/usr/bin/env python3
"""Installs to a prefix, and builds and runs the program of the README against what is there."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading

import support
from support import check

BUILD = pathlib.Path(support.BINARY).resolve().parent
SCRATCH = support.directory()
PREFIX = SCRATCH / "prefix"
PROGRAM = SCRATCH / "worker.cpp"


def command(*words, seconds=150, **more):
    """Runs it; returns what it printed. Shows everything if it fails."""
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, timeout=seconds, **more)
    check(done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def documented(word):
    """The one block of docs/install.md that is marked to run and has this word in it."""
    text = (support.REPOSITORY / "docs/install.md").read_text()
    blocks = re.findall(r"^```sh run\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    found = [block for block in blocks if word in block]
    check(len(found) == 1, f"{word}: {blocks}")
    return found[0]


def installs():
    command("cmake", "--install", BUILD, "--prefix", PREFIX)
    for path in (
        "bin/permit", "lib/systemd/system/permit.service", "etc/permit/server.toml",
        "lib/systemd/system/permit-worker@.service", "include/permit/permits/semaphore.h",
        "lib/python3/dist-packages/permit.py",
    ):
        check((PREFIX / path).is_file(), f"{path} is missing")
    text = command(PREFIX / "bin/permit", "version", "--address", "http://127.0.0.1:1")
    check("permit 0." in text, text)
    unit = (PREFIX / "lib/systemd/system/permit.service").read_text()
    start = f"{PREFIX}/bin/permit server start --config {PREFIX}/etc/permit/server.toml"
    check(f"ExecStart={start}\n" in unit, unit)
    check("@PERMIT" not in unit, unit)
    cached = (BUILD / "CMakeCache.txt").read_text()
    source = re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", cached, re.MULTILINE)[1]
    for path in (*PREFIX.rglob("*.cmake"), *PREFIX.rglob("*.pc"), *PREFIX.rglob("*.h")):
        check(source not in path.read_text(), f"{path} names the tree it was built in")


def the_configuration_is_right():
    """As installed, and with all of its examples taken at their word, but for files that are not there."""
    file = PREFIX / "etc/permit/server.toml"
    examples = re.sub(r"^# (?=\[|(?!tls_)\w+ = )", "", file.read_text(), flags=re.MULTILINE)
    taken = SCRATCH / "taken.toml"
    taken.write_text(examples)
    for path, pools in ((file, set()), (taken, {"gpu-pool", "lab"})):
        database = SCRATCH / f"{path.stem}.db"
        with support.Server(database, "--config", str(path), "--no-demo-pool") as server:
            found = {pool["pool"] for pool in server.client().get("/pools").get("pools", [])}
            check(found == pools, f"{path}: {found}")


def man_pages_and_completions():
    """Made by the command itself."""
    made = SCRATCH / "man"
    made.mkdir()
    command(support.BINARY, "__man", made)
    pages = {page.name + ".gz" for page in made.iterdir()}
    installed = {page.name for page in (PREFIX / "share/man/man1").iterdir()}
    check("permit-run.1.gz" in pages and installed == pages, installed ^ pages)
    for shell, path in (
        ("bash", "bash-completion/completions/permit"), ("zsh", "zsh/vendor-completions/_permit"),
        ("fish", "fish/vendor_completions.d/permit.fish"),
    ):
        text = (PREFIX / "share" / path).read_text()
        check(text == command(support.BINARY, "completion", shell), f"{path} is another")


def headers_need_little():
    """All that is included can be found, and none of it is Beast, Asio or CLI11."""
    root = PREFIX / "include/permit"
    headers = sorted(path.relative_to(root) for path in root.rglob("*.h"))
    check(len(headers) > 30, headers)
    every = SCRATCH / "every_header.cpp"
    every.write_text("".join(f'#include "{header}"\n' for header in headers))
    needed = command("g++", "-std=c++20", "-M", "-I", root, every)
    heavy = set(re.findall(r"\S*(?:boost/beast|boost/asio|CLI)/\S*", needed))
    check(not heavy, f"public headers include {sorted(heavy)[:5]}")
    check("sqlite3.h" not in needed, "public headers include sqlite3.h")
    outside = {path for path in re.findall(r"\S+/(?:orchestrator|worker|permits)/\S+\.h", needed)
               if not path.startswith(str(root))}
    check(not outside, f"found elsewhere: {outside}")


def build_by_cmake():
    build = SCRATCH / "by_cmake"
    command("cmake", "-S", support.REPOSITORY / "tests/package", "-B", build, "-G", "Ninja",
            f"-DPROGRAM={PROGRAM}", f"-DCMAKE_PREFIX_PATH={PREFIX}", "-DCMAKE_BUILD_TYPE=None")
    command("cmake", "--build", build)
    return build / "consumer"


def build_by_pkg_config():
    # Where it was not installed to: permit.pc finds the rest from where it is itself.
    moved = SCRATCH / "moved"
    shutil.copytree(PREFIX, moved)
    found = {**os.environ, "PKG_CONFIG_PATH": str(moved / "lib/pkgconfig")}
    check(command("pkg-config", "--modversion", "permit", env=found).startswith("0."), "version")
    flags = command("pkg-config", "--cflags", "--libs", "permit", env=found)
    check(str(PREFIX) not in flags, flags)
    (SCRATCH / "trainer.cpp").symlink_to(PROGRAM)
    command("sh", "-c", documented("pkg-config"), env=found, cwd=SCRATCH)
    return SCRATCH / "trainer"


def run_consumer(program):
    """A training from start to end, by a server that was installed beside it."""
    with support.Server(permit_worker=True) as server:
        client = server.client()
        environment = {**os.environ, "PERMIT_ADDRESS": f"127.0.0.1:{server.port}"}
        worker = subprocess.Popen([program], env=environment)
        try:
            client.start("train-1", type="train", queue="training", input=["llama", 2])
            event = client.wait_closed("train-1")
            result = event["workflowExecutionCompletedEventAttributes"]["result"][0]
            check(re.fullmatch(r"llama-2\.ckpt from GPU [0-3]", result), result)
            worker.terminate()
            check(worker.wait(timeout=15) == 0, "the worker's exit code")
        finally:
            if worker.poll() is None:
                worker.kill()
            worker.wait()


def consumers_build_and_run():
    readme = (support.REPOSITORY / "README.md").read_text()
    PROGRAM.write_text(re.search(r"^```cpp\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)[1])
    programs, failures = [], []

    def build(way):
        try:
            programs.append(way())
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=build, args=(way,))
               for way in (build_by_cmake, build_by_pkg_config)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    check(len(programs) == 2, programs)
    for program in programs:
        run_consumer(program)


def another_version_is_refused():
    wrong = SCRATCH / "wrong"
    wrong.mkdir()
    (wrong / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(wrong NONE)\n"
        "find_package(permit 99.0 REQUIRED)\n")
    done = subprocess.run(
        ["cmake", "-S", wrong, "-B", wrong / "build", f"-DCMAKE_PREFIX_PATH={PREFIX}"],
        capture_output=True, text=True, timeout=60)
    check(done.returncode != 0 and "version" in done.stderr, done.stderr)


def the_python_client():
    environment = {**os.environ, "PYTHONPATH": str(PREFIX / "lib/python3/dist-packages")}
    check("prefix" in command(sys.executable, "-c", "import permit; print(permit.__file__)",
                              env=environment, cwd="/"), "another permit.py was found")


def uninstalls():
    (SCRATCH / "build").symlink_to(BUILD)
    command("sh", "-c", documented("install_manifest.txt"), cwd=SCRATCH)
    left = [path for path in PREFIX.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    check(not left, f"left over: {left}")


def the_documentation_is_right():
    """What docs/install.md says in CMake is what the consumer does."""
    text = (support.REPOSITORY / "docs/install.md").read_text()
    (block,) = re.findall(r"^```cmake\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    consumer = (support.REPOSITORY / "tests/package/CMakeLists.txt").read_text()
    for line in block.replace("trainer", "consumer").splitlines():
        check(line in consumer, line)


if __name__ == "__main__":
    if not shutil.which("cmake"):
        support.skip("cmake is not installed")
    if not shutil.which("pkg-config"):
        support.skip("pkg-config is not installed: scripts/setup --test")
    support.run(
        installs,
        the_configuration_is_right,
        man_pages_and_completions,
        headers_need_little,
        consumers_build_and_run,
        another_version_is_refused,
        the_python_client,
        the_documentation_is_right,
        uninstalls,
    )
