"""Cases 72 to 80: what a browser may be made to send. What it shows is in tests/web, where case 75 is."""

import json

from abuse_support import HOST, JSON_TYPE, POOLS, honest_request, request, say
from support import NAMESPACE, check

PUT = json.dumps({"capacity": 1}).encode()


def of_origin(port, *headers, method="PUT", target=POOLS + "/evil", host=None):
    body = PUT if method in ("PUT", "POST") else b""
    asked = request(method, target, b"".join(header + b"\r\n" for header in headers), body)
    if host is not None:
        asked = asked.replace(HOST, b"Host: " + host + b"\r\n")
    return say(port, asked)


def hosts(table, port, honest):
    for host in (b"evil.example", b"127.0.0.1.nip.io", b"localhost.evil.example", b"[::2]",
                 b"0.0.0.0", b"127.0.0.2", b"2130706433"):
        with table.line(72, f"Host {host.decode()}", honest):
            answer = of_origin(port, host=host)
            check((answer.status, answer.reason) == (421, "HOST_NOT_ALLOWED"), f"{answer}")
    for host in (b"localhost:%d", b"127.0.0.1:%d", b"[::1]:%d", b"LOCALHOST:%d"):
        with table.line(72, f"Host {host.decode()}", honest):
            answer = of_origin(port, method="GET", target=POOLS, host=host % port)
            check(answer.status == 200, f"{answer}")


def origins(table, port, honest):
    for headers in ((b"Origin: https://evil.example",), (b"Origin: null",),
                    (b"Origin: http://localhost:3000",), (b"Sec-Fetch-Site: cross-site",),
                    (b"Sec-Fetch-Site: same-site",), (b"Sec-Fetch-Site: cross-site",
                                                      b"Sec-Fetch-Mode: navigate",
                                                      b"Sec-Fetch-Dest: document")):
        with table.line(73, f"{headers}", honest):
            answer = of_origin(port, *headers)
            check((answer.status, answer.reason) == (403, "ORIGIN_NOT_ALLOWED"), f"{answer}")
    for kind in (b"text/plain", b"application/x-www-form-urlencoded",
                 b"multipart/form-data; boundary=b", b"application/json-patch"):
        with table.line(73, f"a form that sends {kind.decode()}", honest):
            asked = request("PUT", POOLS + "/evil", body=PUT).replace(
                JSON_TYPE, b"Content-Type: " + kind + b"\r\n")
            answer = say(port, asked)
            check((answer.status, answer.reason) == (415, "CONTENT_TYPE_UNSUPPORTED"), f"{answer}")
    for target in (POOLS, "/", "/livez"):
        with table.line(74, f"a preflight of {target}", honest):
            answer = of_origin(port, b"Origin: https://evil.example",
                               b"Access-Control-Request-Method: PUT", method="OPTIONS", target=target)
            check(answer.status == 403, f"{answer}")
            check("access-control" not in answer.head.lower(), answer.head)
        with table.line(74, f"no origin may read {target}", honest):
            answer = of_origin(port, method="GET", target=target)
            check(answer.status == 200 and "access-control" not in answer.head.lower(), answer.head)


def headers(table, port, honest):
    guards = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
              "X-Frame-Options": "DENY"}
    policy = ("default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'",
              "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'")
    with table.line(76, "the page", honest):
        answer = of_origin(port, method="GET", target="/")
        for name, value in guards.items():
            check(answer.header(name) == value, f"{name}: {answer.header(name)}")
        given = answer.header("Content-Security-Policy")
        for part in policy:
            check(part in given, f"{part} is not in {given}")
        check("unsafe" not in given, given)
    for target, status in ((POOLS, 200), (POOLS + "/none", 404), ("/api/v1/server", 200)):
        with table.line(76, f"the API, {target}", honest):
            answer = of_origin(port, method="GET", target=target)
            check(answer.status == status, f"{answer}")
            check(answer.header("Cache-Control") == "no-store", answer.head)
            check(answer.header("X-Content-Type-Options") == "nosniff", answer.head)
            check(answer.header("Content-Type") == "application/json", answer.head)
    for path in ("/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/assets/",
                 "/assets/../index.html", "/assets/%2e%2e%2findex.html", "/assets//etc/passwd",
                 "/assets/main.js/", "/assets", "/%c0%ae%c0%ae/etc/passwd", "/assets/main.js%00.css"):
        with table.line(77, path, honest):
            answer = of_origin(port, method="GET", target=path)
            check(answer.status in (400, 404) and b"root:" not in answer.received, f"{answer}")
    with table.line(77, "a backslash", honest):
        answer = say(port, b"GET /assets/..\\main.js HTTP/1.1\r\n" + HOST + b"\r\n")
        check(answer.status == 400, f"{answer}")


def all_gets(server, port):
    """Every GET that the server says it has, with variables filled in."""
    document = server.client().ask("GET", "/openapi.json")
    for path, methods in document["paths"].items():
        if "get" not in methods or path.endswith("/events"):
            continue  # events: a stream, which says how things are for as long as one listens
        for name, value in (("namespace", "default"), ("pool", "honest"), ("workflow_id", "running"),
                            ("id", "permit:honest:0")):
            path = path.replace("{" + name + "}", value)
        yield path.replace("{", "").replace("}", "")


def reading(table, server, honest):
    port = server.port
    with table.line(80, "no GET changes anything", honest):
        client = server.client()
        state = lambda: [client.get("/pools"), client.get("/workflows"), client.get("/permits")]
        before = state()
        count = 0
        for path in all_gets(server, port):
            for target in (path, path + "?capacity=0&reason=x"):
                answer = of_origin(port, method="GET", target=target)
                check(answer.status is not None and (answer.status < 500 or answer.status == 501),
                      f"GET {target}: {answer}")
                check(answer.header("Set-Cookie") is None, f"GET {target}: {answer.head}")
                count += 1
        check(count > 40 and state() == before, f"{count} GETs changed something")
    with table.line(80, "a page of another origin has no button here", honest):
        for verb in ("drain", "undrain"):
            answer = of_origin(port, b"Origin: http://localhost:1", method="POST",
                               target=f"{POOLS}/honest/{verb}")
            check(answer.status == 403, f"{answer}")
    with table.line(78, "no cookie before anybody has logged in", honest):
        for target in ("/", POOLS, "/livez", "/nothing", "/assets/main.js"):
            answer = of_origin(port, method="GET", target=target)
            check(answer.header("Set-Cookie") is None, answer.head)
    # The page makes the file and its name itself; the server sends no name and, for JSON, no page.
    with table.line(79, "a download has no name that anybody chose", honest):
        answer = of_origin(port, method="GET", target=f"{NAMESPACE}/workflows/running/history")
        check(answer.status == 200 and answer.header("Content-Disposition") is None, answer.head)
        check(answer.header("Content-Type") == "application/json", answer.head)


def run_browser(table, server):
    honest = lambda: honest_request(server.port)
    hosts(table, server.port, honest)
    origins(table, server.port, honest)
    headers(table, server.port, honest)
    reading(table, server, honest)
