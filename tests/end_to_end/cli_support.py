"""The `permit` command as a person runs it: in a home of its own, without a terminal."""

import json
import os
import pty
import select
import subprocess
import time

from support import BINARY, check, directory

HOME = directory() / "home"
HOME.mkdir(exist_ok=True)


def environment(server=None, **more):
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "ASAN_OPTIONS") if name in os.environ}
    address = {"PERMIT_ADDRESS": f"http://127.0.0.1:{server.port}"} if server else {}
    return {**kept, "HOME": str(HOME), "TZ": "UTC", **address, **more}


class Answer:
    def __init__(self, done):
        self.code = done.returncode
        self.out = done.stdout
        self.err = done.stderr

    def json(self):
        return json.loads(self.out)

    def lines(self):
        return [json.loads(line) for line in self.out.splitlines()]


def permit(*arguments, server=None, code=0, seconds=20, **more):
    """Runs it to its end; `code` is the exit code it must have, None: any."""
    done = subprocess.run(
        [BINARY, *map(str, arguments)], env=environment(server, **more), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=seconds,
    )
    answer = Answer(done)
    check(
        code is None or answer.code == code,
        f"permit {' '.join(map(str, arguments))}: exit {answer.code}, not {code}\n"
        f"{answer.out}{answer.err}",
    )
    check("Sanitizer" not in answer.err, answer.err)
    return answer


def on_terminal(*arguments, server=None, answers=(), seconds=20):
    """Runs it on a terminal; each of `answers` is (text to wait for, what to type). Returns
    (everything shown, exit code)."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(BINARY, [BINARY, *map(str, arguments)], environment(server, TERM="xterm"))
    shown = ""
    waiting = list(answers)
    end = time.monotonic() + seconds
    try:
        while True:
            check(time.monotonic() < end, f"not within {seconds} s, shown so far:\n{shown}")
            if not select.select([terminal], [], [], 0.1)[0]:
                continue
            try:
                data = os.read(terminal, 4096)
            except OSError:  # the other side is closed
                data = b""
            if not data:
                break
            shown += data.decode()
            if waiting and waiting[0][0] in shown:
                os.write(terminal, waiting.pop(0)[1].encode() + b"\n")
    finally:
        os.close(terminal)
        status = os.waitpid(pid, 0)[1]
    return shown, os.waitstatus_to_exitcode(status)
