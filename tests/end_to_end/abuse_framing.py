"""Cases 1 to 25: bytes that mean to be read in two ways, and what is no HTTP at all."""

import json
import random
import socket

from abuse_support import ADDRESS, HOST, JSON_TYPE, POOLS, SMUGGLED
from abuse_support import honest_request, nothing_was_smuggled, receive_all, request, say, send_raw
from support import NAMESPACE, check

TARGET = NAMESPACE.encode() + b"/pools/smuggled-too"


def put(*headers, end=b"\r\n"):
    """The head of a request that would make a pool, but for its framing."""
    return b"PUT " + TARGET + b" HTTP/1.1\r\n" + HOST + JSON_TYPE + b"".join(headers) + end


def get(*headers, line=b"GET / HTTP/1.1\r\n", host=HOST):
    return line + host + b"".join(headers) + b"\r\n"


CL4 = b"Content-Length: 4\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
EMPTY_CHUNKED = put(CHUNKED)
MANY = b"".join(b"%c: 1\r\n" % (97 + i % 26) for i in range(1500))
CLIENT_HELLO = bytes.fromhex("16030100a5010000a10303") + bytes(range(160))

# The server takes no Transfer-Encoding whatever, since its clients know their lengths: where the
# one header would do it says 411 in place of the table's 400 or 501 (docs/errors.md,
# LENGTH_REQUIRED). A chunk is thus never read: 14 and 15 end before their bodies begin.
REFUSED = [
    (1, "CL and TE", put(CL4, CHUNKED), 400, "LENGTH_AMBIGUOUS"),
    (2, "TE and CL", put(CHUNKED, CL4), 400, "LENGTH_AMBIGUOUS"),
    (3, "CL 4 and CL 5", put(CL4, b"Content-Length: 5\r\n"), 400, "HEADER_REPEATED"),
    (4, "CL 4 twice", put(CL4, CL4), 400, "HEADER_REPEATED"),
    (5, "CL 4, 4", put(b"Content-Length: 4, 4\r\n"), 400, "LENGTH_INVALID"),
    *[
        (6, f"CL {length!r}", put(b"Content-Length: " + length + b"\r\n"), 400, "LENGTH_INVALID")
        for length in (b"+4", b"-1", b"0x4", b"", b"18446744073709551616", b"4 4", b"4;", b"1e1")
    ],
    (7, "TE xchunked", put(b"Transfer-Encoding: xchunked\r\n"), 411, "LENGTH_REQUIRED"),
    (8, "TE gzip, chunked", put(b"Transfer-Encoding: gzip, chunked\r\n"), 411, "LENGTH_REQUIRED"),
    (8, "TE chunked, identity", put(b"Transfer-Encoding: chunked, identity\r\n"), 411,
     "LENGTH_REQUIRED"),
    (8, "TE chunked, chunked", put(b"Transfer-Encoding: chunked, chunked\r\n"), 411,
     "LENGTH_REQUIRED"),
    (8, "TE twice", put(CHUNKED, CHUNKED), 411, "LENGTH_REQUIRED"),
    (9, "a space before the colon", put(b"Transfer-Encoding : chunked\r\n"), 400, "HEADER_INVALID"),
    (10, "TE in HTTP/1.0", put(CHUNKED).replace(b"HTTP/1.1", b"HTTP/1.0"), 505,  # at the line before
     "VERSION_UNSUPPORTED"),
    (11, "folded TE", put(b"Transfer-Encoding:\r\n chunked\r\n"), 400, "HEADER_FOLDED"),
    (11, "folded with a tab", put(b"A: b\r\n\tTransfer-Encoding: chunked\r\n"), 400,
     "HEADER_FOLDED"),
    (12, "bare LF", put(b"A: b\n"), 400, "BARE_LF"),
    (12, "only LFs", put().replace(b"\r\n", b"\n"), 400, "BARE_LF"),
    (12, "bare CR", put(b"A: b\rContent-Length: 4\r\n"), 400, "BARE_CR"),
    (12, "NUL", put(b"A: b\0c\r\n"), 400, "HEAD_BYTE_INVALID"),
    (14, "a chunk of 2^64 + 1", EMPTY_CHUNKED + b"10000000000000001\r\n", 411, "LENGTH_REQUIRED"),
    (14, "a chunk of 0x1", EMPTY_CHUNKED + b"0x1\r\na\r\n0\r\n\r\n", 411, "LENGTH_REQUIRED"),
    (14, "60,000 zeros", EMPTY_CHUNKED + b"0" * 60_000 + b"1\r\na\r\n", 411, "LENGTH_REQUIRED"),
    (14, "an extension of 100 kB", EMPTY_CHUNKED + b"1;" + b"x" * 100_000 + b"\r\na\r\n", 411,
     "LENGTH_REQUIRED"),
    (15, "a trailer that authorises",
     EMPTY_CHUNKED + b"0\r\nAuthorization: Bearer good\r\nHost: evil\r\n\r\n", 411,
     "LENGTH_REQUIRED"),
    (15, "a trailer that is announced", put(b"Trailer: Authorization\r\n", CHUNKED), 400,
     "HEADER_NOT_SUPPORTED"),
    (16, "byte 0xFF", put(b"A: \xff\r\n"), 400, "HEAD_BYTE_INVALID"),
    (16, "UTF-8", put(b"A: \xc3\xa9\r\n"), 400, "HEAD_BYTE_INVALID"),
    (17, "a space in the target", get(line=b"GET /a b HTTP/1.1\r\n"), 400, "REQUEST_LINE_INVALID"),
    (17, "a NUL in the target", get(line=b"GET /a\0b HTTP/1.1\r\n"), 400, "HEAD_BYTE_INVALID"),
    (17, "a tab in the target", get(line=b"GET /a\tb HTTP/1.1\r\n"), 400, "TARGET_INVALID"),
    (18, "absolute form", get(line=b"GET http://evil/ HTTP/1.1\r\n"), 400, "TARGET_FORM_INVALID"),
    (18, "CONNECT", get(line=b"CONNECT evil:443 HTTP/1.1\r\n"), 405, "METHOD_NOT_ALLOWED"),
    (18, "asterisk form", get(line=b"OPTIONS * HTTP/1.1\r\n"), 400, "TARGET_FORM_INVALID"),
    (19, "HTTP/0.9", b"GET /\r\n", 400, "REQUEST_LINE_INVALID"),
    (19, "HTTP/1.2", get(line=b"GET / HTTP/1.2\r\n"), 505, "VERSION_UNSUPPORTED"),
    (19, "HTTP/2.0", get(line=b"GET / HTTP/2.0\r\n"), 505, "VERSION_UNSUPPORTED"),
    (19, "the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "VERSION_UNSUPPORTED"),
    (19, "a TLS ClientHello", CLIENT_HELLO, 400, "HEAD_BYTE_INVALID"),
    (19, "a Redis command", b"*1\r\n$4\r\nPING\r\n", 400, "REQUEST_LINE_INVALID"),
    (20, "1,500 headers", get(MANY), 431, "HEADERS_TOO_MANY"),
    (21, "9 KiB of one header", get(b"A: " + b"a" * 9216 + b"\r\n"), 431, "HEADER_TOO_LONG"),
    (21, "9 KiB of headers", get(*[b"A: " + b"a" * 3000 + b"\r\n"] * 3), 431, "HEAD_TOO_LARGE"),
    (21, "a target of 9 KiB", get(line=b"GET /" + b"a" * 9216 + b" HTTP/1.1\r\n"), 414,
     "TARGET_TOO_LONG"),
    (21, "a target of 3 KiB", get(line=b"GET /" + b"a" * 3072 + b" HTTP/1.1\r\n"), 414,
     "TARGET_TOO_LONG"),
    (22, "no Host", get(host=b""), 400, "HOST_INVALID"),
    (22, "two Hosts", get(HOST), 400, "HEADER_REPEATED"),
    (22, "an empty Host", get(host=b"Host:\r\n"), 400, "HOST_INVALID"),
    (23, "Expect and a body of 1 GB",
     put(b"Content-Length: 1000000000\r\nExpect: 100-continue\r\n"), 413, "BODY_TOO_LARGE"),
    (23, "an unknown Expect", put(CL4, b"Expect: 200-ok\r\n"), 417, "EXPECTATION_UNKNOWN"),
    (24, "GET with a body", get(CL4) + b"null", 400, "BODY_NOT_ALLOWED"),
    (24, "HEAD with a body", get(CL4, line=b"HEAD / HTTP/1.1\r\n") + b"null", 400,
     "BODY_NOT_ALLOWED"),
]


def refused_rows(table, port):
    for number, what, start, status, reason in REFUSED:
        with table.line(number, what, lambda: honest_request(port)):
            answer = say(port, start + SMUGGLED)
            check((answer.status, answer.reason) == (status, reason),
                  f"answered {answer}, expected {status} {reason}")
            check(answer.header("Connection") == "close" and answer.closed, f"not closed: {answer}")
            check(answer.answers == 1, f"{answer.answers} answers to one request: {answer.received}")
            nothing_was_smuggled(port)


def an_empty_chunked_body_in_three_segments(table, port):
    with table.line(13, "in three segments", lambda: honest_request(port)):
        answer = say(port, EMPTY_CHUNKED, b"0\r\n", b"\r", b"\n")
        check((answer.status, answer.reason) == (411, "LENGTH_REQUIRED"), f"{answer}")


def every_byte_apart(table, port):
    """The verdict must not depend on the segments; here for one line, by fuzzing for all."""
    with table.line(1, "each byte apart", lambda: honest_request(port)):
        answer = say(port, *[bytes([byte]) for byte in put(CL4, CHUNKED)])
        check((answer.status, answer.reason) == (400, "LENGTH_AMBIGUOUS"), f"{answer}")


def a_mebibyte_of_anything(table, port):
    chance = random.Random(87)
    for what, bytes_sent in (("random bytes", chance.randbytes(1 << 20)), ("NULs", bytes(1 << 20)),
                             ("line ends", b"\r\n" * (1 << 19)), ("letters", b"G" * (1 << 20))):
        with table.line(19, f"1 MiB of {what}", lambda: honest_request(port)):
            answer = say(port, bytes_sent, seconds=5)
            check(answer.closed, f"still open after 5 s: {answer}")
            # A reset may overtake the answer.
            check(answer.status in (400, 414, None), f"{answer}")


def a_body_that_is_not_asked_for(table, port):
    """The refusal comes before the body, and none of the body is a request."""
    with table.line(23, "413 comes without the body", lambda: honest_request(port)):
        with socket.create_connection((ADDRESS, port), 10) as connection:
            send_raw(connection, [put(b"Content-Length: 5000000\r\nExpect: 100-continue\r\n")])
            received, closed = receive_all(connection, 6)
            check(received.startswith(b"HTTP/1.1 413 ") and closed, f"{received[:80]}")


def pipelined_requests_are_answered_in_order(table, port):
    with table.line(25, "100 at once", lambda: honest_request(port)):
        asked = b""
        for i in range(100):
            last = i == 99
            body = json.dumps({"capacity": 1, "reason": f"n{i}"}).encode()
            asked += request("PUT", f"{POOLS}/piped{i}", body=body, close=last)
        answer = say(port, asked, seconds=20)
        named = [line.split(b'"')[0].decode()
                 for line in answer.received.split(b'{"pool":"piped')[1:]]
        check(named == [str(i) for i in range(100)], f"the answers came as {named}")
        check(answer.closed, "the last one asked to close")
        for i in range(100):
            check(say(port, request("DELETE", f"{POOLS}/piped{i}")).status == 200, f"pool {i}")


def run_framing(table, port):
    refused_rows(table, port)
    an_empty_chunked_body_in_three_segments(table, port)
    every_byte_apart(table, port)
    a_mebibyte_of_anything(table, port)
    a_body_that_is_not_asked_for(table, port)
    pipelined_requests_are_answered_in_order(table, port)
