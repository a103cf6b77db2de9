#!/usr/bin/env python3
"""https: the command, workers and Python over it, what is refused, and certificates that change.

--figures adds what TLS costs: processor time of a request, and memory of a parked connection."""

import http.client
import json
import os
import resource
import select
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

import support
from support import BINARY, REPOSITORY, Client, Refused, Server, Unknown, check, directory, eventually
from cli_support import permit
from tls_support import (
    Authority, Certificate, TlsServer, arguments, context, need_openssl, openssl, served_serial)

need_openssl()
AUTHORITY = Authority("authority")
OTHER = Authority("other-authority")
OWN = AUTHORITY.issue("server")
TRUST = {"PERMIT_TLS_CA": str(AUTHORITY.certificate)}
PYTHON = REPOSITORY / "worker" / "python"
sys.path.insert(0, str(PYTHON))
sys.dont_write_bytecode = True
import permit as python_permit  # noqa: E402


def honest(server):
    """A request that a user would make is answered, on a connection of its own."""
    client = server.client()
    status, _, _ = client.raw("GET", "/readyz")
    client.close()
    check(status == 200, f"/readyz: {status}")


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=15)


def everything_until_closed(sock, seconds=15):
    sock.settimeout(seconds)
    received = b""
    try:
        while True:
            data = sock.recv(65536)
            if not data:
                return received
            received += data
    except ConnectionResetError:
        return received


# --- Those who use it ---


def the_command_speaks_it():
    with TlsServer(AUTHORITY, OWN, permit_worker=True) as server:
        by_name = {"PERMIT_ADDRESS": f"https://localhost:{server.port}", **TRUST}
        permit("pool", "set", "gpu", "--capacity", 2, **by_name)
        flags = ("--address", server.address, "--tls-ca", AUTHORITY.certificate)
        check("gpu" in permit("pool", "list", *flags).out, "by flags")
        permit("config", "set", "address", server.address, "--profile", "tls")
        permit("config", "set", "tls_ca", AUTHORITY.certificate, "--profile", "tls")
        check("gpu" in permit("pool", "list", "--profile", "tls").out, "by a profile")
        check(permit("doctor", **by_name).err == "", "doctor")

        watcher = subprocess.Popen(
            [BINARY, "watch", "-o", "jsonl"], stdout=subprocess.PIPE, text=True,
            env={**os.environ, **by_name, "PERMIT_ADDRESS": server.address})
        try:
            client = server.client()
            eventually(lambda: b"permit_event_streams 1" in client.raw("GET", "/metrics")[2],
                       "somebody watches")
            said = permit("run", "-p", "gpu", "--lease", "6s", "--", "sh", "-c",
                          "sleep 2.5; echo $PERMIT_ADDRESS $PERMIT_TLS_CA", **by_name)
            check(said.out == f"{by_name['PERMIT_ADDRESS']} {AUTHORITY.certificate}\n", said.out)
            changes = [json.loads(watcher.stdout.readline())["change"] for _ in range(2)]
            check(changes == ["acquired", "released"], changes)
        finally:
            watcher.kill()
            watcher.communicate()
        named = permit("pool", "list", "--address", server.address, "--tls-server-name", "permit.test",
                       **TRUST)
        check("gpu" in named.out, named.out)


def workers_speak_it():
    with TlsServer(AUTHORITY, OWN) as server:
        programs = [[BINARY, "worker", "start", "--address", server.address],
                    [support.WORKERS / "permit_test_worker", server.address, "work"]]
        processes = [subprocess.Popen(program, env={**os.environ, **TRUST}, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL) for program in programs]
        try:
            client = server.client()
            client.set_pool("gpu", capacity=1)
            client.start("sum", type="Sum", queue="work", input=support.payloads(3))
            done = client.wait_closed("sum")["workflowExecutionCompletedEventAttributes"]
            check(done["result"] == [12], done)
            processes[1].terminate()
            check(processes[1].wait(timeout=15) == 0, "the worker drains")

            # The lease of a silent holder is ended by `permit worker start`.
            grant = client.acquire("gpu", "silent", lease="0.3s")
            again = client.acquire("gpu", "next", lease="30s", wait="10s")
            check(grant["state"] == again["state"] == "granted", again)
        finally:
            for process in processes:
                process.kill()
                process.wait()


def python_speaks_it():
    with TlsServer(AUTHORITY, OWN) as server:
        server.client().set_pool("gpu", capacity=1)
        os.environ.update(TRUST)
        try:
            for address in (server.address, f"https://localhost:{server.port}"):
                with python_permit.hold("gpu", address=address, lease="4s") as held:
                    time.sleep(4.5)  # it is renewed, over one connection
                    held.check()
            line = threading.Thread(target=hold_for, args=(server.address, 0.5), daemon=True)
            with python_permit.hold("gpu", address=server.address):
                line.start()
                client = server.client()
                eventually(lambda: client.pool("gpu").get("waiting"), "somebody waits")
            line.join(10)
            check(not line.is_alive(), "its turn has come")
        finally:
            for name in TRUST:
                del os.environ[name]


def hold_for(address, seconds):
    with python_permit.hold("gpu", address=address):
        time.sleep(seconds)


def large_messages_get_through():
    with TlsServer(AUTHORITY, OWN) as server:
        client = server.client()
        client.start("large", input=["x" * 1_500_000])
        for number in range(3):
            client.signal("large", "more", input=[f"{number}" * 1_500_000])
        sock = server.context.wrap_socket(connect(server.port), server_hostname="127.0.0.1")
        sock.sendall(f"GET {support.NAMESPACE}/workflows/large/history HTTP/1.1\r\nHost: localhost\r\n"
                     "Connection: close\r\n\r\n".encode())
        time.sleep(0.5)  # a reader who is in no hurry: the server has to keep what does not fit
        received = bytearray()
        while data := sock.recv(65536):
            received += data
        head, _, body = bytes(received).partition(b"\r\n\r\n")
        events = json.loads(body)["history"]["events"]
        check(b" 200 " in head[:20] and len(body) > 4_000_000, (head, len(body)))
        check(support.events_of(events, "WorkflowExecutionSignaled"), "the signals are there")
        honest(server)


def half_closed_peers_get_their_answer():
    """With the closing words of TLS, and with the end of the socket alone."""
    with TlsServer(AUTHORITY, OWN) as server:
        for closes_tls in (True, False):
            raw = connect(server.port)
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            tls = server.context.wrap_bio(incoming, outgoing, server_hostname="localhost")
            shake_hands(raw, tls, incoming, outgoing)
            tls.write(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
            raw.sendall(outgoing.read())
            if closes_tls:
                try:
                    tls.unwrap()
                except ssl.SSLWantReadError:
                    raw.sendall(outgoing.read())
            raw.shutdown(socket.SHUT_WR)
            incoming.write(everything_until_closed(raw))
            check(b" 200 " in tls.read(65536), "the answer")
            raw.close()
        honest(server)


def shake_hands(raw, tls, incoming, outgoing):
    while True:
        try:
            tls.do_handshake()
            raw.sendall(outgoing.read())
            return
        except ssl.SSLWantReadError:
            raw.sendall(outgoing.read())
            incoming.write(raw.recv(65536))


# --- What is refused ---


def client_hello(version, suites):
    """As old as this: (3, 1) is TLS 1.0. Without extensions."""
    suites = b"".join(struct.pack(">H", suite) for suite in suites)
    body = bytes(version) + os.urandom(32) + b"\0" + struct.pack(">H", len(suites)) + suites + b"\1\0"
    message = b"\1" + struct.pack(">I", len(body))[1:] + body
    return b"\x16\3\1" + struct.pack(">H", len(message)) + message


ECDHE_GCM, ECDHE_CBC, RSA_AES = 0xC02B, 0xC009, 0x002F
ALERTS = {40: "handshake_failure", 70: "protocol_version"}


def what_is_weak_is_refused():
    """Case 67: old versions, and suites without secrecy."""
    table = [
        ("SSL 3", (3, 0), [ECDHE_CBC, RSA_AES], 40),
        ("TLS 1.0", (3, 1), [ECDHE_CBC, RSA_AES], 70),
        ("TLS 1.1", (3, 2), [ECDHE_CBC, RSA_AES], 70),
        ("NULL", (3, 3), [0x0000, 0x0001, 0x0002, 0x003B, 0xC006], 40),
        ("EXPORT", (3, 3), [0x0003, 0x0006, 0x0008], 40),
        ("RC4", (3, 3), [0x0004, 0x0005, 0xC007, 0xC011], 40),
        ("anonymous", (3, 3), [0x0018, 0x0034, 0x00A6, 0xC018], 40),
        ("no forward secrecy", (3, 3), [RSA_AES, 0x009C, 0x009D], 40),
        ("CBC", (3, 3), [ECDHE_CBC, 0xC00A, 0xC023], 40),
    ]
    with TlsServer(AUTHORITY, OWN) as server:
        for name, version, suites, alert in table:
            with connect(server.port) as raw:
                raw.sendall(client_hello(version, suites))
                answer = everything_until_closed(raw)
            found = answer[:1] == b"\x15" and answer[5:6] == b"\2" and answer[6]
            check(found == alert, f"{name}: {answer}, not {ALERTS[alert]}")
            honest(server)
        for least in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            made = context(AUTHORITY)
            made.minimum_version = made.maximum_version = least
            with made.wrap_socket(connect(server.port), server_hostname="localhost") as sock:
                check(sock.compression() is None and sock.cipher()[2] >= 128, sock.cipher())


def renegotiation_is_refused():
    with TlsServer(AUTHORITY, OWN) as server:
        client = subprocess.Popen(
            ["openssl", "s_client", "-connect", f"127.0.0.1:{server.port}", "-tls1_2", "-CAfile",
             AUTHORITY.certificate], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        try:
            for line in client.stdout:
                if "Verify return code" in line:
                    break
            client.stdin.write("R\n")
            client.stdin.flush()
            said = client.stdout.read()  # it gives up by itself
            check("RENEGOTIATING" in said and "no renegotiation" in said, said)
        finally:
            client.kill()
            client.communicate()
        honest(server)


def keys_may_change_under_way():
    with TlsServer(AUTHORITY, OWN) as server:
        client = subprocess.Popen(
            ["openssl", "s_client", "-connect", f"127.0.0.1:{server.port}", "-tls1_3", "-crlf",
             "-CAfile", AUTHORITY.certificate], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        try:
            for line in client.stdout:
                if "Verify return code" in line:
                    break
            for command in ("K\n", "K\n", "k\n"):  # and the server's, too; only its own
                client.stdin.write(command)
                client.stdin.flush()
                while "KEYUPDATE" not in client.stdout.readline():
                    pass
            client.stdin.write("GET /livez HTTP/1.1\nHost: localhost\nConnection: close\n\n")
            client.stdin.flush()
            check("HTTP/1.1 200 " in client.stdout.read(), "it is answered")
        finally:
            client.kill()
            client.communicate()
        honest(server)


def plain_bytes_are_refused():
    with TlsServer(AUTHORITY, OWN, log_level="info") as server:
        for request in (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"DELETE /x HTTP/1.1\r\n\r\n",
                        b"\0\0\0\0", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x80\x2e\1\0\2"):
            with connect(server.port) as raw:
                raw.sendall(request)
                answer = everything_until_closed(raw)
            check(answer.startswith(b"HTTP/1.1 400 ") and b'"TLS_REQUIRED"' in answer, answer)
            honest(server)
        for noise in (b"\x16" + os.urandom(4000), b"\x16\3\1\xff\xff" + os.urandom(70_000),
                      client_hello((3, 3), [ECDHE_GCM])[:-3] + os.urandom(3)):
            with connect(server.port) as raw:
                raw.sendall(noise)
                raw.shutdown(socket.SHUT_WR)
                check(b"HTTP" not in everything_until_closed(raw), "an alert, or nothing")
            honest(server)
        failures = eventually(lambda: server.events("tls_failed"), "a line of it")
        check("127.0.0.1" in failures[0]["msg"], failures)
    with Server() as server:
        with connect(server.port) as raw:
            raw.sendall(client_hello((3, 3), [ECDHE_GCM]))
            check(everything_until_closed(raw).startswith(b"HTTP/1.1 400 "), "a plain 400")
        honest(server)


def whoever_is_slow_in_the_handshake_is_closed():
    with TlsServer(AUTHORITY, OWN) as server:
        hello = client_hello((3, 3), [ECDHE_GCM])
        began = time.monotonic()
        socks = {connect(server.port): rest for rest in (b"", hello[6:], hello[40:])}
        for sock, rest in socks.items():
            sock.sendall(hello[: len(hello) - len(rest)] if rest else b"")
        closed = {}
        while len(closed) < len(socks) and time.monotonic() < began + 30:
            for sock, rest in socks.items():
                if sock in closed:
                    continue
                if select.select([sock], [], [], 0)[0]:
                    closed[sock] = time.monotonic() - began
                elif rest:  # another byte now and then does not help
                    sock.send(rest[:1])
                    socks[sock] = rest[1:]
            honest(server)
            time.sleep(0.5)
        check(len(closed) == len(socks), "they are still there")
        check(4 < min(closed.values()) and max(closed.values()) < 20, closed)  # after 5 s, each
        for sock in socks:
            sock.close()


# --- Certificates of clients ---


def clients_show_who_they_are():
    """Case 68: none, expired, of another authority, signed by itself."""
    client_authority = Authority("clients")
    good = client_authority.issue("worker", names="DNS:worker")
    cases = [
        ("none", None, False),
        ("right", good, True),
        ("expired", client_authority.issue("expired", days=-1), False),
        ("of another authority", OTHER.issue("stranger"), False),
        ("self-signed", Authority("selfmade"), False),
        ("of the server's authority", AUTHORITY.issue("server-side"), False),
    ]
    versions = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
    with TlsServer(AUTHORITY, OWN, client_ca=client_authority, client=good) as server:
        for name, own, is_let_in in cases:
            for version in versions:
                made = context(AUTHORITY, own)
                made.minimum_version = made.maximum_version = version
                try:
                    with made.wrap_socket(connect(server.port), server_hostname="localhost") as sock:
                        sock.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
                        answer = sock.recv(1000)
                except ssl.SSLError as error:
                    answer = error.reason
                if is_let_in:
                    check(answer.startswith(b"HTTP/1.1 200"), f"{name}, {version.name}: {answer}")
                else:
                    check("ALERT" in str(answer), f"{name}, {version.name}: {answer}")
            honest(server)
        check_clients_with_certificates(server, good, cases[3][1])


def check_clients_with_certificates(server, good, stranger):
    to = {"PERMIT_ADDRESS": server.address, **TRUST}
    mine = {"PERMIT_TLS_CERT": str(good.certificate), "PERMIT_TLS_KEY": str(good.key)}
    permit("pool", "set", "gpu", "--capacity", 1, **to, **mine)
    check(permit("run", "-p", "gpu", "--", "true", **to, **mine).err == "", "run")
    said = permit("pool", "list", **to, code=69)
    check("wants a certificate of you" in said.err, said.err)
    said = permit("run", "-p", "gpu", "--", "true", **to, code=69)
    check("wants a certificate of you" in said.err, said.err)
    flags = ("--tls-cert", stranger.certificate, "--tls-key", stranger.key)
    said = permit("pool", "list", *flags, **to, code=69)
    check("refuses your certificate" in said.err, said.err)
    for wrong in (("--tls-key", good.key), ("--tls-cert", good.certificate, "--tls-key", stranger.key),
                  ("--tls-cert", "nowhere.crt"), ("--tls-ca", good.key)):
        said = permit("pool", "list", *wrong, **to, code=2)
        check("tls_" in said.err, said.err)
    python = [sys.executable, "-c", "import permit\nwith permit.hold('gpu') as p: print(p.slot)"]
    environment = {**os.environ, **to, "PYTHONPATH": str(PYTHON)}
    done = subprocess.run(python, env={**environment, **mine}, capture_output=True, text=True, timeout=20)
    check(done.stdout == "0\n", done.stderr)
    os.environ.update(to)
    try:
        check(python_code() == "TLS_CERTIFICATE_REQUIRED", "Python without a certificate")
        os.environ["PERMIT_TLS_CERT"] = "nowhere.crt"
        check(python_code() == "TLS_FILE_INVALID", "Python with a file that is not there")
    finally:
        for name in (*to, "PERMIT_TLS_CERT"):
            os.environ.pop(name, None)


def python_code(address=None):
    try:
        with python_permit.hold("gpu", address=address, wait=0):
            return "held"
    except python_permit.Error as error:
        return error.code


# --- Clients that doubt ---


def clients_look_at_whom_they_talk_to():
    other_name = AUTHORITY.issue("elsewhere", names="DNS:elsewhere.test,IP:10.1.2.3")
    with TlsServer(AUTHORITY, OWN) as right, TlsServer(AUTHORITY, other_name) as wrong, \
            Server() as plain:
        right.client().set_pool("gpu", capacity=1)
        cases = [  # address, environment, the code, what the sentence has
            (right.address, TRUST, "held", ""),
            (right.address, {}, "TLS_UNTRUSTED", "say whom to trust"),
            (right.address, {"PERMIT_TLS_CA": str(OTHER.certificate)}, "TLS_UNTRUSTED", "not trusted"),
            (right.address, {**TRUST, "PERMIT_TLS_SERVER_NAME": "permit.test"}, "held", ""),
            (right.address, {**TRUST, "PERMIT_TLS_SERVER_NAME": "permit.evil"}, "TLS_NAME_MISMATCH",
             "localhost, permit.test, 127.0.0.1"),
            (wrong.address, TRUST, "TLS_NAME_MISMATCH", "not for 127.0.0.1 but for elsewhere.test, 10."),
            (f"https://localhost:{wrong.port}", TRUST, "TLS_NAME_MISMATCH", "not for localhost"),
            (f"https://127.0.0.1:{plain.port}", TRUST, "TLS_NOT_SPOKEN", "speaks no TLS"),
            (f"http://127.0.0.1:{right.port}", TRUST, "TLS_REQUIRED", "https://"),
        ]
        for address, environment, code, words in cases:
            exit_code = {"held": 0, "TLS_REQUIRED": 2}.get(code, 69)
            said = permit("pool", "list", PERMIT_ADDRESS=address, code=exit_code, **environment)
            check(words in said.err, said.err)
            said = permit("run", "-p", "gpu", "--", "true", PERMIT_ADDRESS=address, code=exit_code,
                          **environment)
            check(words in said.err, said.err)
            os.environ.update(environment)
            try:
                check(python_code(address) == code, f"{address}: {python_code(address)}, not {code}")
            finally:
                for name in environment:
                    del os.environ[name]
        said = permit("doctor", PERMIT_ADDRESS=right.address, code=1)
        check("not trusted" in said.err and "Is it running" not in said.err, said.err)


# --- The server's own files ---


def what_would_not_be_safe_does_not_start():
    """Cases 70, 71: keys that others may read, what has expired, what does not fit."""
    exposed = AUTHORITY.issue("exposed")
    exposed.key.chmod(0o640)
    old = AUTHORITY.issue("old", days=-1)
    no_pem = Certificate("no-pem")
    no_pem.certificate.write_text("hello")
    no_pem.key.write_text("hello")
    no_pem.key.chmod(0o600)
    locked = Certificate("locked")
    openssl("ec", "-in", OWN.key, "-aes128", "-passout", "pass:secret", "-out", locked.key)
    locked.key.chmod(0o600)
    nowhere = Certificate("nowhere")
    cases = [  # certificate, key, more, what is said
        (exposed.certificate, exposed.key, (), "mode 0640: others may read it. Say: chmod 600"),
        (OWN.certificate, OTHER.key, (), "is not that of the certificate"),
        (old.certificate, old.key, (), "has expired at 20"),
        (nowhere.certificate, OWN.key, (), "No such file"),
        (OWN.certificate, nowhere.key, (), "No such file"),
        (directory(), OWN.key, (), "Is a directory"),
        (no_pem.certificate, OWN.key, (), "not in PEM form"),
        (OWN.certificate, no_pem.key, (), "no private key in PEM form"),
        (OWN.certificate, locked.key, (), "without a passphrase"),
        (OWN.certificate, OWN.key, ("--tls-client-ca", nowhere.certificate), "No such file"),
        (OWN.certificate, OWN.key, ("--tls-client-ca", OWN.key), "not in PEM form"),
    ]
    for certificate, key, more, words in cases:
        said = permit("server", "start-dev", "--port", 0, "--tls-cert", certificate, "--tls-key", key,
                      *more, code=78)
        check(words in said.err and said.err.count("\n") == 1 and not said.out, said.err)
    for words in (("--tls-cert", OWN.certificate), ("--tls-key", OWN.key),
                  ("--tls-client-ca", AUTHORITY.certificate)):
        said = permit("server", "start-dev", "--port", 0, *words, code=78)
        check("tls_key" in said.err, said.err)
    # A service's credentials are as systemd has made them.
    with TlsServer(AUTHORITY, exposed_credential(exposed)):
        pass
    file = directory() / "server.toml"
    file.write_text(f'[server]\ntls_cert = "{OWN.certificate}"\ntls_key = "{exposed.key}"\n')
    check("others may read it" in permit("server", "check", "--config", file, code=2).err, "check")
    file.write_text(f'[server]\ntls_cert = "{OWN.certificate}"\ntls_key = "{OWN.key}"\n')
    permit("server", "check", "--config", file)
    with Server(None, "--config", str(file)) as server:
        info = Client(server.port, tls=context(AUTHORITY)).ask("GET", "/api/v1/server")
        settings = {one["name"]: one.get("value") for one in info["settings"]}
        check(settings["tls_cert"] == str(OWN.certificate), settings)


def exposed_credential(exposed):
    os.environ["CREDENTIALS_DIRECTORY"] = str(exposed.directory)
    return exposed


def renewed_certificates_are_taken():
    """Case 69: by HUP, under parked polls and a stream."""
    os.environ.pop("CREDENTIALS_DIRECTORY", None)
    used = Certificate("used")
    OWN.copy_to(used.certificate, used.key)
    second = AUTHORITY.issue("second")
    with TlsServer(AUTHORITY, used, log_level="info") as server:
        client = server.client()
        client.set_pool("gpu", capacity=1)
        grant = client.acquire("gpu", "holds", lease="60s")
        answers = []
        polls = [threading.Thread(target=wait_in_line, args=(server.client(), number, answers))
                 for number in range(5)]
        for poll in polls:
            poll.start()
        stream = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=15,
                                             context=server.context)
        stream.request("GET", support.NAMESPACE + "/events")
        events = stream.getresponse()
        while b"snapshot" not in events.readline():
            pass
        eventually(lambda: client.pool("gpu").get("waiting") == 5, "five wait")
        first = served_serial(server.port, AUTHORITY)

        second.copy_to(used.certificate, used.key)
        reload(server, "tls_loaded", 2)
        renewed = served_serial(server.port, AUTHORITY)
        check(first != renewed, f"{first} is still shown")

        used.key.write_text("half of a k")
        reload(server, "tls_not_loaded", 1)
        check(served_serial(server.port, AUTHORITY) == renewed, "the old one stays")
        OWN.copy_to(used.certificate, used.key)
        used.key.chmod(0o644)
        reload(server, "tls_not_loaded", 2)
        check("others may read it" in server.events("tls_not_loaded")[1]["error"], "why")

        client.release(grant["slots"][0]["id"], grant["token"])  # on its old connection
        eventually(lambda: "granted" in answers, "one who waited has its turn")
        end = time.monotonic() + 10
        while b"released" not in events.readline().lower():  # the stream goes on, too
            check(time.monotonic() < end, "the stream says nothing of the release")
        stream.close()
        honest(server)
        check(server.stop() == 0, "it stops")
        for poll in polls:
            poll.join(10)
        check(sorted(set(answers)) == ["granted", "waiting"], answers)
    with Server(log_level="info") as plain:  # of start-dev: a terminal that is closed ends it
        plain.process.send_signal(signal.SIGHUP)
        check(plain.process.wait(timeout=10) == -signal.SIGHUP, "SIGHUP")


def wait_in_line(client, number, answers):
    try:
        answers.append(client.acquire("gpu", f"waits-{number}", wait="50s")["state"])
    except (Refused, Unknown) as error:
        answers.append(repr(error))


def reload(server, event, count):
    server.process.send_signal(signal.SIGHUP)
    eventually(lambda: len(server.events(event)) == count, f"{event} {count} times")


# --- Figures ---


def memory_of(server):
    text = open(f"/proc/{server.process.pid}/status").read()
    return int(next(line for line in text.splitlines() if line.startswith("VmRSS")).split()[1])


def parked_connections_cost_little():
    count = 2000
    least = count + 200
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < least:
        print(f"SKIPPED {count} connections: the limit of files is {hard}")
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, least), hard))
    each = {}
    for kind in ("plain", "TLS"):
        with Server() if kind == "plain" else TlsServer(AUTHORITY, OWN) as server:
            honest(server)
            before = memory_of(server)
            socks = []
            for _ in range(count):
                sock = connect(server.port)
                if kind == "TLS":
                    sock = server.context.wrap_socket(sock, server_hostname="localhost")
                sock.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
                check(b" 200 " in sock.recv(1000), "it serves")
                socks.append(sock)
            each[kind] = (memory_of(server) - before) / count
            socks[0].sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
            check(b" 200 " in socks[0].recv(1000), "the first is still there")
            for sock in socks:
                sock.close()
    print(f"    {count} parked: {each['plain']:.1f} KiB each, {each['TLS']:.1f} KiB each with TLS")
    check(each["TLS"] < 60, each)


def what_a_request_costs():
    """Sequential requests on one connection, by curl, and the server's processor time for them."""
    count = 20_000
    figures = {}
    for kind in ("http", "https"):
        with Server() if kind == "http" else TlsServer(AUTHORITY, OWN) as server:
            before, began = cpu_seconds(server), time.monotonic()
            subprocess.run(
                ["curl", "-s", "--cacert", AUTHORITY.certificate, "-o", "/dev/null",
                 f"{kind}://localhost:{server.port}/livez?n=[1-{count}]"], check=True, timeout=150)
            took = time.monotonic() - began
            figures[kind] = ((cpu_seconds(server) - before) / count * 1e6, count / took)
            opened = time.monotonic()
            if kind == "https":
                for _ in range(300):
                    server.context.wrap_socket(
                        connect(server.port), server_hostname="localhost").close()
                print(f"    a handshake: {(time.monotonic() - opened) / 300 * 1000:.2f} ms, both sides")
    (plain, plain_rate), (tls, tls_rate) = figures["http"], figures["https"]
    print(f"    a request: {plain:.1f} us of the server's processor, {tls:.1f} us with TLS "
          f"({tls / plain:.2f} times); one after the other {plain_rate:.0f}/s and {tls_rate:.0f}/s")


def cpu_seconds(server):
    fields = open(f"/proc/{server.process.pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


cases = [
    the_command_speaks_it,
    workers_speak_it,
    python_speaks_it,
    large_messages_get_through,
    half_closed_peers_get_their_answer,
    what_is_weak_is_refused,
    renegotiation_is_refused,
    keys_may_change_under_way,
    plain_bytes_are_refused,
    whoever_is_slow_in_the_handshake_is_closed,
    clients_show_who_they_are,
    clients_look_at_whom_they_talk_to,
    what_would_not_be_safe_does_not_start,
    renewed_certificates_are_taken,
    parked_connections_cost_little,
]
if "--figures" in sys.argv:
    cases.append(what_a_request_costs)
support.run(*cases)
