"""What the parts of abuse.py share: the table of cases, raw sockets, an honest request after each."""

import contextlib
import json
import re
import socket
import threading
import time

from support import NAMESPACE, check

ADDRESS = "127.0.0.1"
POOLS = NAMESPACE + "/pools"
HOST = b"Host: localhost\r\n"
JSON_TYPE = b"Content-Type: application/json\r\n"
# A second request in the bytes of the first: nobody may ever carry it out.
SMUGGLED = (b"PUT " + (POOLS + "/smuggled").encode() + b" HTTP/1.1\r\n" + HOST + JSON_TYPE
            + b'Content-Length: 14\r\n\r\n{"capacity":1}')


class Table:
    """Which line has tried which case, and what went wrong. For several threads."""

    def __init__(self):
        self.tried = {}
        self.failures = []
        self.lock = threading.Lock()

    @contextlib.contextmanager
    def line(self, number, what, honest=None):
        """One line of the suite: its body must not raise, and then an honest request must work."""
        check(1 <= number <= 87, f"there is no case {number}")
        began = time.monotonic()
        try:
            yield
            if honest is not None:
                honest()
        except Exception as error:  # also what a socket throws: the other lines are still tried
            with self.lock:
                self.failures.append(f"case {number}, {what}: {type(error).__name__}: {error}")
        took = time.monotonic() - began
        if took > 3:
            print(f"    case {number}, {what}: {took:.1f} s")
        with self.lock:
            self.tried.setdefault(number, []).append(what)


class Answer:
    """One raw answer, and what came behind it."""

    def __init__(self, received, closed):
        self.received = received
        self.closed = closed
        head, _, self.rest = received.partition(b"\r\n\r\n")
        self.head = head.decode("latin-1")
        found = re.match(r"HTTP/1\.1 (\d{3}) ", self.head)
        self.status = int(found[1]) if found else None
        self.answers = len(re.findall(rb"HTTP/1\.1 \d{3} [A-Z]", received))

    def header(self, name):
        found = re.search(rf"^{name}: (.*?)\r?$", self.head, re.MULTILINE | re.IGNORECASE)
        return found[1] if found else None

    @property
    def reason(self):
        """The stable code of an error; empty for what is none."""
        try:
            return json.loads(self.rest)["details"][0]["reason"]
        except (ValueError, KeyError, IndexError, TypeError):
            return ""

    def __repr__(self):
        return f"{self.status} {self.reason or self.rest[:60]} closed={self.closed}"


def send_raw(connection, pieces):
    """All pieces, one segment each; what the other side no longer takes is dropped."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        for piece in pieces:
            connection.sendall(piece)
            if len(pieces) > 1:
                time.sleep(0.002)  # no promise of a segment, but nearly always one
    except (BrokenPipeError, ConnectionResetError):
        pass


def receive_all(connection, seconds):
    """Everything until the peer closes: (bytes, whether it did)."""
    received = b""
    end = time.monotonic() + seconds
    while True:
        connection.settimeout(max(end - time.monotonic(), 0.01))
        try:
            some = connection.recv(1 << 16)
        except ConnectionResetError:
            return received, True
        except TimeoutError:
            return received, False
        if not some:
            return received, True
        received += some


def say(port, *pieces, seconds=6):
    """Opens a connection, sends the pieces and reads until the server closes."""
    with socket.create_connection((ADDRESS, port), 10) as connection:
        send_raw(connection, pieces)
        return Answer(*receive_all(connection, seconds))


def request(method, target, headers=b"", body=b"", close=True):
    """The bytes of an honest request."""
    head = f"{method} {target} HTTP/1.1\r\n".encode() + HOST + headers
    if body:
        head += JSON_TYPE + f"Content-Length: {len(body)}\r\n".encode()
    return head + (b"Connection: close\r\n" if close else b"") + b"\r\n" + body


def honest_request(port, seconds=10):
    """On a connection of its own; returns how long it took."""
    began = time.monotonic()
    answer = say(port, request("GET", POOLS + "/honest"), seconds=seconds)
    check(answer.status == 200 and json.loads(answer.rest)["capacity"] == 3,
          f"an honest request was answered {answer}")
    return time.monotonic() - began


def nothing_was_smuggled(port):
    answer = say(port, request("GET", POOLS + "/smuggled"))
    check(answer.status == 404, f"a hidden request was carried out: {answer}")
