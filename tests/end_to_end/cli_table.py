#!/usr/bin/env python3
"""What holds of every command there is: help, man page, completion, JSON, colors, misspellings."""

import contextlib
import json
import os
import pty
import re
import select
import shlex
import shutil
import socket
import subprocess
import time

from support import BINARY, Server, check, directory, run, skip

ESCAPE = "\x1b"
missing = []  # what could not be tried here


def permit(*words, code=0, environment=None, **more):
    """One command. Returns (stdout, stderr)."""
    done = subprocess.run(
        [BINARY, *words], env={**BASE, **(environment or {})}, capture_output=True, text=True,
        timeout=30, stdin=subprocess.DEVNULL, **more,
    )
    check(code is None or done.returncode == code,
          f"permit {shlex.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout, done.stderr


BASE = {"HOME": str(directory()), "PATH": os.environ["PATH"], "TZ": "UTC", "LC_ALL": "C.UTF-8"}
TABLE = json.loads(permit("__commands")[0])
COMMANDS = {command["name"]: command for command in TABLE["commands"]}


# --- Help and man pages ---


def every_command_has_help_with_examples_first():
    for name, command in COMMANDS.items():
        check(command["summary"] and not command["summary"].endswith("."), command)
        check(command["examples"], f"{name} has no example")
        for page in (permit(*name.split(), "-h")[0], permit("help", *name.split())[0]):
            check(page.startswith(f"permit {name}: {command['summary']}\n"), page)
            check(page.index(command["examples"][0]) < page.index("Usage: "), page)
            for flag in command["flags"]:
                check(f"--{flag['name']}" in page and flag["help"], f"{name} {flag}")
        check(f"  permit {name} " in permit("help")[0], f"{name} is not in the overview")
    for flag in TABLE["globalFlags"]:
        check(f"--{flag['name']}" in permit("help", "flags")[0], flag)


def every_example_is_a_right_line():
    for name, command in COMMANDS.items():
        for example in command["examples"]:
            line = example[example.index("permit "):]
            words = shlex.split(line.replace(")", "") if "<(" in example else line)
            if "|" in words:
                words = words[: words.index("|")]
            check(permit("__parse", "--", *words[1:])[0] == name + "\n", example)


def every_command_has_a_man_page_without_a_warning():
    pages = directory() / "man"
    pages.mkdir()
    permit("__man", str(pages))
    wanted = {"permit.1"} | {f"permit-{name.replace(' ', '-')}.1" for name in COMMANDS}
    check({page.name for page in pages.iterdir()} == wanted, sorted(pages.iterdir()))
    tried = False
    for tool in (["man", "--warnings=w", "-l"], ["groff", "-man", "-ww", "-Tutf8", "-z"],
                 ["mandoc", "-T", "lint", "-W", "warning"]):
        if not shutil.which(tool[0]):
            continue
        tried = True
        for page in sorted(pages.iterdir()):
            done = subprocess.run([*tool, page], env={**BASE, "MANWIDTH": "80"},
                                  capture_output=True, text=True, timeout=30)
            said = done.stderr + (done.stdout if tool[0] == "mandoc" else "")
            check(done.returncode == 0 and said == "", f"{tool[0]} {page.name}: {said}")
    if not tried:
        missing.append("man pages were not formatted: there is no man, groff or mandoc")
    permit("__man", "/nowhere", code=1)


def help_is_as_wide_as_columns_says():
    def widest(columns):
        page = permit("help", "workflow", "list", environment={"COLUMNS": columns})[0]
        # Flags and examples are not broken.
        return max(len(line) for line in page.split("\n\n")[-1].splitlines())

    check(widest("60") <= 60 < widest("80") <= 80, (widest("60"), widest("80")))
    check(widest("1000") <= 96 and widest("x") <= 96, "at most 96")


# --- JSON ---

# Those that only look: what they are asked on a server in use, and whether that needs something to
# be there. All others must be in CHANGE.
LOOK = {
    "list": [[], ["gpu-pool"], ["--closed"], ["--closed", "--outcome", "released"]],
    "who": [[], ["gpu-pool"]],
    "describe": [["permit:gpu-pool:0"]],
    "history": [["permit:gpu-pool:0"], ["train-1", "--all"]],
    "report": [[], ["--by", "holder"], ["--by", "slot"]],
    "pool list": [[]],
    "pool describe": [["gpu-pool"]],
    "workflow list": [[], ["-q", "WorkflowType = 'Train'"]],
    "workflow count": [[]],
    "workflow describe": [["train-1"]],
    "workflow show": [["train-1"], ["done", "--follow"]],
    "workflow trace": [["done"]],
    "workflow result": [["done"]],
    "api-key list": [[]],
    "worker list": [[]],
    "worker describe": [["me@host"]],
    "task-queue list": [[]],
    "task-queue describe": [["training"]],
    "config list": [[], ["--show-origin"]],
    "config get": [["address"]],
    "config path": [[]],
    "server status": [[]],
    "doctor": [[]],
    "version": [[]],
}
NEEDS = ("gpu-pool", "permit:gpu-pool:0", "train-1", "done", "me@host", "training")
CHANGE = {
    "run", "release", "hold", "pool set", "pool drain", "pool undrain", "pool delete",
    "workflow start", "workflow execute", "workflow signal", "workflow query", "workflow cancel",
    "workflow terminate", "worker start", "server start-dev", "server start", "server check", "server backup",
    "api-key create", "api-key revoke", "config set", "config delete", "completion", "help",
    "watch",  # has no end; below
}


@contextlib.contextmanager
def server_in_use():
    with Server(None, "--no-demo-pool", permit_worker=True) as server:
        client = server.client()
        BASE["PERMIT_ADDRESS"] = f"http://127.0.0.1:{server.port}"
        client.set_pool("gpu-pool", capacity=2)
        grant = client.acquire("gpu-pool", "one", holder="ana", lease="60s")
        client.release(grant["slots"][0]["id"], grant["token"])
        for number in (2, 3):
            client.acquire("gpu-pool", f"r{number}", holder="li", lease="60s")
        client.acquire("gpu-pool", "waits", holder="eve", wait="0.010s")
        client.start("train-1", type="Train", queue="training", input=["a\x1b[2Jb"])
        client.start("done", type="Short", queue="short")
        client.complete(client.poll("short", identity="me@host"), {
            "commandType": "COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION",
            "completeWorkflowExecutionCommandAttributes": {"result": [1, {"a": None}]}})
        try:
            yield server, client
        finally:
            del BASE["PERMIT_ADDRESS"]


@contextlib.contextmanager
def empty_server():
    with Server(None, "--no-demo-pool") as server:
        BASE["PERMIT_ADDRESS"] = f"http://127.0.0.1:{server.port}"
        try:
            yield server
        finally:
            del BASE["PERMIT_ADDRESS"]


def check_json(name, words, code=0):
    document, _ = permit(*name.split(), *words, "-o", "json", code=code)
    lines, _ = permit(*name.split(), *words, "-o", "jsonl", code=code)
    if code in (0, None):
        json.loads(document)
        check(document.count("\n") == 1, f"{name}: more than one document\n{document}")
        for line in lines.splitlines():
            check(isinstance(json.loads(line), dict), f"{name}: {line}")
        check(permit(*name.split(), *words, "-o", "none", code=code)[0] == "", f"{name} -o none")
    else:
        check(document == "" and lines == "", f"{name}: {document}{lines}")


def every_command_is_known_here():
    unknown = set(COMMANDS) - set(LOOK) - CHANGE
    check(not unknown, f"say in this test whether these only look: {unknown}")


def what_only_looks_answers_json_on_an_empty_server():
    with empty_server():
        for name, lines in LOOK.items():
            if name not in COMMANDS:
                continue
            for words in lines:
                needs = any(word in NEEDS for word in words)
                code = 3 if needs else None if name == "doctor" else 0
                check_json(name, words, code)


def what_only_looks_answers_json_on_a_server_in_use():
    with server_in_use():
        for name, lines in LOOK.items():
            for words in lines if name in COMMANDS else []:
                check_json(name, words, None if name == "doctor" else 0)


def what_follows_answers_a_line_for_each_change():
    with server_in_use() as (_, client):
        watch = subprocess.Popen([BINARY, "watch", "-o", "jsonl"], env=BASE,
                                 stdout=subprocess.PIPE, text=True)
        client.set_pool("other", capacity=1)
        try:
            # It tells only what happens after its first look: do something until it does.
            for number in range(100):
                grant = client.acquire("other", f"w{number}", holder="ana", lease="60s")
                client.release(grant["slots"][0]["id"], grant["token"])
                if select.select([watch.stdout], [], [], 0.3)[0]:
                    break
            line = json.loads(watch.stdout.readline())
            check(line["change"] in ("acquired", "released"), line)
        finally:
            watch.kill()
            watch.wait()


# --- Colors ---


def on_terminal(words, environment=None):
    """What the command writes to a terminal."""
    leader, follower = pty.openpty()
    process = subprocess.Popen([BINARY, *words], env={**BASE, "TERM": "xterm", **(environment or {})},
                               stdin=follower, stdout=follower, stderr=follower)
    os.close(follower)
    seen = b""
    with contextlib.suppress(OSError):  # the other end is closed when it is done
        while piece := os.read(leader, 4096):
            seen += piece
    os.close(leader)
    process.wait(timeout=10)
    return seen.decode()


def nothing_in_a_pipe_has_escape_codes():
    with server_in_use():
        for name, lines in LOOK.items():
            for words in lines if name in COMMANDS else []:
                out, err = permit(*name.split(), *words, code=None)
                check(ESCAPE not in out + err, f"{name} {words}: {out!r}{err!r}")
                # Names from outside are made harmless, in color too.
                out, _ = permit(*name.split(), *words, "--color=always", code=None)
                check("\x1b[2J" not in out, f"{name} {words}: {out!r}")


def colors_come_when_they_are_wanted():
    with server_in_use():
        for words in (["list"], ["workflow", "list"], ["pool", "list"]):
            check(ESCAPE in on_terminal(words), f"{words} on a terminal")
            check(ESCAPE not in on_terminal(words, {"NO_COLOR": "1"}), f"{words}, NO_COLOR")
            check(ESCAPE not in on_terminal(words, {"TERM": "dumb"}), f"{words}, dumb")
            check(ESCAPE not in on_terminal([*words, "--color=never"]), f"{words}, never")
            check(ESCAPE in on_terminal([*words, "--color=always"], {"NO_COLOR": "1"}), words)
            check(ESCAPE not in on_terminal([*words, "-o", "json"]), f"{words}, JSON")
            check(ESCAPE in permit(*words, "--color=always")[0], f"{words}, always, in a pipe")
            forced = permit(*words, environment={"CLICOLOR_FORCE": "1"})[0]
            check(ESCAPE in forced, f"{words}, CLICOLOR_FORCE")
            check(ESCAPE not in permit(*words, environment={"PERMIT_COLOR": "never"})[0], words)
            check(ESCAPE not in permit(
                *words, "-o", "json", "--color=always")[0], f"{words}, JSON, always")


# --- Misspellings ---


def misspelt_words_get_one_suggestion_and_nothing_runs():
    for name, command in COMMANDS.items():
        *noun, verb = name.split()
        out, err = permit(*noun, verb[0] + "x" + verb[1:], code=2)
        check(out == "" and err.count("did you mean") == 1, err)
        check(err.endswith(f"did you mean {verb}?\n"), err)
        for flag in command["flags"]:
            wrong = "--" + flag["name"][0] + "x" + flag["name"][1:]
            out, err = permit(*name.split(), wrong, code=2)
            check(out == "" and err.count("did you mean") == 1, err)
            check(err.endswith(f"did you mean --{flag['name']}?\n"), err)
    for flag in TABLE["globalFlags"]:
        _, err = permit("list", "--" + flag["name"] + "x", code=2)
        check(err.endswith(f"did you mean --{flag['name']}?\n"), err)


def misspelt_pools_get_one_suggestion_and_nothing_runs():
    with server_in_use() as (_, client):
        before = client.pool("gpu-pool")
        for words in (["list"], ["who"], ["report"], ["watch"], ["pool", "describe"],
                      ["pool", "drain"], ["pool", "undrain"], ["pool", "delete", "--yes"]):
            out, err = permit(*words, "gpu-pol", code=3)
            check(out == "" and err.count("did you mean gpu-pool?") == 1, f"{words}: {out}{err}")
        ran = directory() / "ran"
        out, err = permit("run", "-p", "gpu-pol", "--nonblock", "--", "touch", str(ran), code=None)
        check(not ran.exists() and "did you mean gpu-pool?" in err, err)
        check(client.pool("gpu-pool") == before or not client.pool("gpu-pool").get("drained"),
              "nothing was done")


# --- Completion ---


def bash_completes(line):
    """What the function offers for the line, with the cursor at its end."""
    script = r"""
source <("$PERMIT" completion bash)
COMP_LINE=$1 COMP_POINT=${#1}
_permit
printf '%s\n' "${COMPREPLY[@]}"
"""
    done = subprocess.run(
        ["bash", "--norc", "-c", script, "bash", line], capture_output=True, text=True, timeout=20,
        env={**BASE, "PERMIT": BINARY, "PATH": f"{BIN}:{BASE['PATH']}"})
    check(done.returncode == 0 and done.stderr == "", done)
    return done.stdout.split()


BIN = directory() / "bin"


def shown(text):
    """What the terminal shows: zsh goes back and writes again."""
    while "\b" in text.lstrip("\b"):
        text = re.sub(r"[^\b]\x08", "", text.lstrip("\b"))
    return text


def type_at(shell, setup, line, expected):
    """Types the line, whose \\t are TABs, at a shell on a terminal, until it shows `expected`."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        shell, stdin=follower, stdout=follower, stderr=follower, start_new_session=True,
        env={**BASE, "PATH": f"{BIN}:{BASE['PATH']}", "TERM": "dumb", "PS1": "> "})
    os.close(follower)
    seen = ""

    def read_until(text, seconds=15):
        nonlocal seen
        end = time.monotonic() + seconds
        while text not in shown(seen):
            check(time.monotonic() < end, f"{shell[0]} does not show {text!r}:\n{seen!r}")
            if select.select([leader], [], [], 0.1)[0]:
                seen += os.read(leader, 4096).decode(errors="replace").replace("\a", "")

    try:
        os.write(leader, (setup + "; echo re''ady\n").encode())
        read_until("\nready")
        seen = ""
        os.write(leader, line.encode())
        read_until(expected)
    finally:
        process.kill()
        process.wait()
        os.close(leader)


def bash_completes_verbs_flags_values_and_live_names():
    BIN.mkdir(exist_ok=True)
    (BIN / "permit").symlink_to(BINARY)
    with server_in_use():
        check(bash_completes("permit pool d") == ["describe", "drain", "delete"], "verbs")
        check(bash_completes("permit list --clo") == ["--closed"], "flags")
        check(bash_completes("permit list -o js") == ["json", "jsonl"], "choices")
        check(bash_completes("permit list --output=js") == ["json", "jsonl"], "behind =")
        check(bash_completes("permit pool describe ") == ["gpu-pool"], "pools")
        check(bash_completes("permit run -p gp") == ["gpu-pool"], "a flag's pools")
        check(bash_completes("permit run --pool=") == ["gpu-pool"], "a flag's pools")
        check(bash_completes("permit workflow describe tr") == ["train-1"], "workflows")
        # bash puts it behind the last colon.
        check(bash_completes("permit describe permit:gpu-pool:") == ["0", "1"], "permits")
        check(bash_completes("permit describe per") == ["permit:gpu-pool:0", "permit:gpu-pool:1"],
              "permits")
        check("ls" in bash_completes("permit run -p gpu-pool -- l"), "programs")
        check(bash_completes(f"permit list --config-file {BIN}/per") == [f"{BIN}/permit"], "files")
        check(bash_completes("permit pool lisst ") == [], "nothing")
        type_at(["bash", "--norc", "-i"], "source <(permit completion bash)",
                "permit describe permit:gpu-pool:1\t\n\rpermit pool desc\t gpu-p\t\n", "gpu-pool  ")
        type_at(["bash", "--norc", "-i"], "source <(permit completion bash)",
                "echo =; permit describe perm\t", "permit describe permit:gpu-pool:")


def zsh_completes():
    if not shutil.which("zsh"):
        missing.append("completion was not tried in zsh: it is not installed")
        return
    with server_in_use():
        setup = "autoload -U compinit; compinit -u -D; source <(permit completion zsh)"
        type_at(["zsh", "-f", "-i"], setup, "permit pool desc\tgpu-p\t", "permit pool describe gpu-pool")
        type_at(["zsh", "-f", "-i"], setup, "permit describe permit:gpu-pool:\t", "permit:gpu-pool:1")
        type_at(["zsh", "-f", "-i"], setup, "permit workflow d\t\t", "permit workflow describe")


def fish_completes():
    if not shutil.which("fish"):
        missing.append("completion was not tried in fish: it is not installed")
        return

    def offered(line):
        script = f"permit completion fish | source; complete -C {shlex.quote(line)}"
        done = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True,
                              timeout=30, env={**BASE, "PATH": f"{BIN}:{BASE['PATH']}"})
        check(done.returncode == 0, done)
        return [each.split("\t")[0] for each in done.stdout.splitlines()]

    with server_in_use():
        check(sorted(offered("permit pool d")) == ["delete", "describe", "drain"], offered("permit pool d"))
        check(offered("permit describe permit:g") == ["permit:gpu-pool:0", "permit:gpu-pool:1"],
              offered("permit describe permit:g"))
        check("gpu-pool" in offered("permit pool describe "), "pools")
        check("--closed" in offered("permit list --clo"), "flags")


def completion_is_silent_and_quick_without_a_server():
    with Server() as server:
        gone = f"http://127.0.0.1:{server.port}"
    listener = socket.create_server(("127.0.0.1", 0))
    hangs = f"http://127.0.0.1:{listener.getsockname()[1]}"
    for address in (gone, hangs):
        for words in (["pool", "describe", ""], ["--address", address, "workflow", "result", ""]):
            began = time.monotonic()
            out, err = permit("__complete", "--", *words, environment={"PERMIT_ADDRESS": address})
            check(out == "" and err == "", (address, out, err))
            check(time.monotonic() - began < 5, "it took too long")
        out, _ = permit("__complete", "--", "pool", "li", environment={"PERMIT_ADDRESS": address})
        check(out.startswith("list\t"), out)
    listener.close()


def completion_asks_the_server_of_the_line():
    with server_in_use() as (server, _):
        address = BASE["PERMIT_ADDRESS"]
        for flags in (["--address", address], [f"--address={address}"]):
            out, _ = permit("__complete", "--", *flags, "pool", "describe", "gp",
                            environment={"PERMIT_ADDRESS": "http://127.0.0.1:9"})
            check(out == "gpu-pool\t\n", out)


run(
    every_command_has_help_with_examples_first,
    every_example_is_a_right_line,
    every_command_has_a_man_page_without_a_warning,
    help_is_as_wide_as_columns_says,
    every_command_is_known_here,
    what_only_looks_answers_json_on_an_empty_server,
    what_only_looks_answers_json_on_a_server_in_use,
    what_follows_answers_a_line_for_each_change,
    nothing_in_a_pipe_has_escape_codes,
    colors_come_when_they_are_wanted,
    misspelt_words_get_one_suggestion_and_nothing_runs,
    misspelt_pools_get_one_suggestion_and_nothing_runs,
    bash_completes_verbs_flags_values_and_live_names,
    zsh_completes,
    fish_completes,
    completion_is_silent_and_quick_without_a_server,
    completion_asks_the_server_of_the_line,
)
if missing:
    skip("all passed, but " + "; ".join(missing))
