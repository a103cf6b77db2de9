#!/usr/bin/env python3
"""The page's files come out of the binary as they are in apps/web, its modules as one, and out of a
directory no other file does. What the page shows is in tests/web."""

import gzip
import os
import re
import socket
import subprocess

from support import BINARY, NAMESPACE, REPOSITORY, Server, check, directory, run

TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml", ".png": "image/png",
         ".ico": "image/x-icon"}
GUARDS = {  # case 76 of abuse.py; the others are marked alike
    "Content-Security-Policy":
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; worker-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
    "Vary": "Accept-Encoding",
}


def get(client, target, method="GET", **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.raw(method, target, headers=headers)


def check_file(client, target, path, bytes_of_file=None):
    """The answers to everything that a browser may ask of one file. Returns how it was at its shortest."""
    bytes_of_file = path.read_bytes() if bytes_of_file is None else bytes_of_file
    shortest = len(bytes_of_file)
    status, head, body = get(client, target)
    check((status, body) == (200, bytes_of_file), f"{target}: {status}, {len(body)} bytes")
    check(head["Content-Type"] == TYPES.get(path.suffix, "application/octet-stream"),
          f"{target}: {head}")
    check("Content-Encoding" not in head, f"{target} is compressed, unasked")
    for name, value in GUARDS.items():
        check(head.get_all(name) == [value], f"{target}: {name}: {head.get_all(name)}")
    for accepted in ("gzip", "br, gzip;q=0.5", "gzip, deflate, br, zstd"):
        status, zipped, body = get(client, target, Accept_Encoding=accepted)
        if zipped["Content-Encoding"] == "gzip":
            shortest = len(body)
            check(len(body) < len(bytes_of_file), f"{target} has grown")
            body = gzip.decompress(body)
            check(zipped["ETag"] != head["ETag"], f"{target}: other bytes, the same tag")
        check((status, body) == (200, bytes_of_file), f"{target} with {accepted}: {status}")
    status, refused, _ = get(client, target, Accept_Encoding="gzip;q=0, br")
    check("Content-Encoding" not in refused, f"{target}: gzip, which was refused")
    for tag in (head["ETag"], "W/" + head["ETag"], f'"other", {head["ETag"]}', "*"):
        status, again, body = get(client, target, If_None_Match=tag)
        check((status, body) == (304, b"") and again["ETag"] == head["ETag"], f"{target} {tag}")
        check(again["Vary"] == "Accept-Encoding", again)
    check(get(client, target, If_None_Match='"other"')[0] == 200, f"{target} has changed")
    status, only, body = get(client, target, "HEAD")
    check((status, body) == (200, b""), f"HEAD {target}: {status} {body}")
    check(int(only["Content-Length"]) == len(bytes_of_file), f"HEAD {target}: {only}")
    return shortest


def the_binary_has_every_file():
    page = REPOSITORY / "apps/web"
    files = sorted(file for file in page.rglob("*") if file.is_file())
    modules = [str(file.relative_to(page)) for file in files if file.suffix == ".js"]
    with Server() as server:
        client = server.client()
        sizes = {}
        for file in files:
            if file.suffix != ".js":
                name = str(file.relative_to(page))
                sizes[name] = check_file(client, f"/assets/{name}", file)
        check_file(client, "/", page / "index.html")
        for name in ("main.js", "stream_worker.js"):
            joined = get(client, f"/assets/{name}")[2]
            sizes[name] = check_file(client, f"/assets/{name}", page / name, joined)
        everything = get(client, "/assets/main.js")[2].decode()
        for module in modules:
            check(f'"{module}"() {{' in everything, f"main.js does not have {module}")
            if module not in sizes:
                check(get(client, f"/assets/{module}")[0] == 404, f"{module} is there twice")
        check(not re.search(r"^\s*(import|export|//)", everything, re.MULTILINE), "something is left")
        print(f"    {len(modules)} modules in one, in all {sum(sizes.values())} bytes: {sizes}")
        check(sum(sizes.values()) < 100_000, f"the page is more than 100 KB as it is sent: {sizes}")
        check(get(client, "/favicon.ico")[0] in (200, 204), "an error in each browser's console")
        for target in ("/assets", "/assets/", "/assets/none.js", "/assets/../README.md",
                       "/assets/%2e%2e/README.md", "/index.html"):
            check(get(client, target)[0] == 404, target)
        for method in ("POST", "PUT", "DELETE"):
            status, head, _ = client.raw(method, "/")
            check(status == 405 and head["Allow"] == "GET, HEAD", f"{method} /: {status} {head}")


def make_page(root):
    page = root / "page"
    (page / "pages").mkdir(parents=True)
    (page / "index.html").write_text("<!doctype html><title>trial</title>")
    (page / "pages" / "pools.js").write_text("export {};\n")
    (page / "with space.txt").write_text("spaced")
    (page / ".secret").write_text("hidden")
    (root / "outside.txt").write_text("outside")
    (root / "outside").mkdir()
    (root / "outside" / "file.txt").write_text("outside")
    (page / "link.txt").symlink_to(root / "outside.txt")
    (page / "link").symlink_to(root / "outside")
    (page / "absolute.txt").symlink_to("/etc/passwd")
    os.mkfifo(page / "pipe.txt")
    return page


def a_directory_is_read_anew():
    page = make_page(directory() / "anew")
    with Server(None, "--ui-asset-path", str(page)) as server:
        client = server.client()
        check_file(client, "/", page / "index.html")
        check_file(client, "/assets/pages/pools.js", page / "pages" / "pools.js")
        check(get(client, "/assets/with%20space.txt")[2] == b"spaced", "a space")
        old = get(client, "/")[1]["ETag"]
        (page / "index.html").write_text("<!doctype html><title>better</title>")
        status, head, body = get(client, "/", If_None_Match=old)
        check((status, b"better" in body) == (200, True) and head["ETag"] != old, "not read anew")
        check(get(client, "/favicon.ico")[0] == 204, "no icon is no error")
        (page / "favicon.svg").write_text("<svg/>")
        check(get(client, "/favicon.ico")[1]["Content-Type"] == "image/svg+xml", "the icon")
        (page / "index.html").unlink()
        check(get(client, "/")[0] == 404, "it is gone")


def nothing_outside_of_the_directory_is_served():
    page = make_page(directory() / "outside")
    outside = [  # case 77
        "../outside.txt", "%2e%2e/outside.txt", "..%2foutside.txt", "%2e%2e%2foutside.txt",
        "..%5coutside.txt", "pages/../../outside.txt", "pages/..%2f..%2foutside.txt",
        "....//outside.txt", "./index.html", "%2e/index.html", "//etc/passwd", "%2fetc%2fpasswd",
        str(page), str(page).replace("/", "%2f") + "%2findex.html", "link.txt", "link/file.txt",
        "absolute.txt", ".secret", "pages", "pages/", "pages/.", "index.html/", "pipe.txt",
        "index.html%00.js", "index.html%00", "%c0%ae%c0%ae/outside.txt", "%252e%252e/outside.txt",
        "x" * 300, "pages/" * 200,
    ]
    with Server(None, "--ui-asset-path", str(page)) as server:
        client = server.client()
        for path in outside:
            status, _, body = get(client, f"/assets/{path}")
            check(status in (400, 404), f"{path}: {status} {body[:80]}")
            check(b"outside" not in body and b"root:" not in body, f"{path}: {body[:80]}")
        with socket.create_connection(("127.0.0.1", server.port)) as raw:  # as no library sends it
            raw.sendall(b"GET /assets/..\\outside.txt HTTP/1.1\r\nHost: localhost\r\n\r\n")
            check(raw.recv(100).startswith(b"HTTP/1.1 400 "), "a backslash")
        check_file(client, "/assets/index.html", page / "index.html")
        print(f"    {len(outside)} ways out, none is open")


def a_proxy_may_have_a_name_of_its_own():
    config = directory() / "server.toml"
    config.write_text('[server]\nallowed_hosts = ["permit.example.com"]\n')
    page = make_page(directory() / "named")
    pools = NAMESPACE + "/pools"
    with Server(None, "--config", str(config), "--ui-asset-path", str(page)) as server:
        client = server.client()
        own = f"http://127.0.0.1:{server.port}"
        for host, origin, wanted in (
            ("permit.example.com", "https://permit.example.com", 200),
            ("permit.example.com:8443", "https://permit.example.com:8443", 200),
            ("localhost:7400", "http://localhost:7400", 200),  # a tunnel
            (f"127.0.0.1:{server.port}", own, 200),
            ("permit.example.com", own, 403),
            (f"127.0.0.1:{server.port}", "http://127.0.0.1:3000", 403),
            (f"127.0.0.1:{server.port}", "null", 403),
            ("evil.example.com", "http://evil.example.com", 421),
        ):
            for method, target, body in (("GET", "/", None), ("GET", pools, None),
                                         ("PUT", pools + "/gpu", '{"capacity": 1}')):
                headers = {"Host": host, "Origin": origin, "Content-Type": "application/json"}
                status, head, answer = client.raw(method, target, body, headers)
                check(status == wanted, f"{method} {target} of {origin} at {host}: {status} {answer}")
                check(not any(name.lower().startswith("access-control") for name in head), head)
        status, head, _ = get(client, pools, "OPTIONS", Origin="http://localhost:3000",
                              Access_Control_Request_Method="PUT")
        check(status == 403, f"a preflight: {status} {head}")  # case 74


def a_directory_that_is_none_is_refused():
    for none in ("/nowhere", str(REPOSITORY / "README.md")):
        done = subprocess.run([BINARY, "server", "start-dev", "--port", "0", "--ui-asset-path", none],
                              capture_output=True, text=True, timeout=20)
        check(done.returncode == 1, done)
        check(done.stderr == f"permit: --ui-asset-path: there is no directory {none}\n", done.stderr)


run(the_binary_has_every_file, a_directory_is_read_anew,
    nothing_outside_of_the_directory_is_served, a_proxy_may_have_a_name_of_its_own,
    a_directory_that_is_none_is_refused)
