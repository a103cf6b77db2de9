"""`permit run` as a child process, for the tests of it."""

import collections
import os
import pathlib
import subprocess

from support import BINARY, check, eventually

Done = collections.namedtuple("Done", "code output errors")


class Run:
    """One `permit run`. Whatever it started ends with the `with` block."""

    def __init__(self, port, *arguments, wrapper=(), env=None, **more):
        address = port if isinstance(port, str) else f"127.0.0.1:{port}"
        more = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                "text": True, **more}
        self.process = subprocess.Popen(
            [*wrapper, BINARY, "run", *map(str, arguments)],
            env=dict(env or os.environ, PERMIT_ADDRESS=address), **more,
        )
        self.lines = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.process.poll() is None:
            self.finish()

    def readline(self):
        self.lines.append(self.process.stdout.readline())
        return self.lines[-1]

    def text(self):
        """What it has written so far; reads one more line."""
        self.readline()
        return "".join(self.lines)

    def finish(self, text="", seconds=30):
        """Writes `text`, closes its input, waits for its end."""
        try:
            output, errors = self.process.communicate(text or None, timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        return Done(self.process.returncode, "".join(self.lines) + (output or ""), errors or "")


def permit_run(address, *arguments):
    return Run(address, *arguments).finish()


def ready(job):
    """The command runs: it is `cat`, or says something by itself."""
    if "cat" in job.process.args:
        job.process.stdin.write("ready\n")
        job.process.stdin.flush()
    check(job.readline().strip() == "ready", f"not ready: {job.lines}")


def alive(pid):
    """Whether the process runs; who is dead and not yet buried does not."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def pids_in(text):
    return [int(word) for word in text.split() if word.isdigit()]


def pool_is_free(client, pool, seconds=5):
    eventually(lambda: not client.pool(pool).get("held"), f"{pool} is free", seconds)
