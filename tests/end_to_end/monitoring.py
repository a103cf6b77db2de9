#!/usr/bin/env python3
"""What comes with the metrics: docs/monitoring.md names all of them, promtool takes them, and alerts and
dashboard ask only for what is there."""

import json
import re
import shutil
import subprocess

from metrics_support import scrape
from support import REPOSITORY, Server, check, directory, eventually, run, skip, start_permit

FILES = REPOSITORY / "scripts" / "monitoring"
RULES = FILES / "permit.rules.yml"
OURS = re.compile(r"\b(?:permit|http_server|process)_\w+")
EXPRESSION = re.compile(r"expr: (?:>-\n((?: {10}.*\n)+)|(.*)\n)")


def promtool(*arguments, given=None):
    done = subprocess.run(["promtool", *map(str, arguments)], input=given, text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check(done.returncode == 0, f"promtool {arguments}:\n{done.stdout}")
    return done.stdout


def busy_server():
    """Something of everything has happened to it."""
    server = Server(None, "--metrics-per-slot", permit_worker=True)
    client = server.client()
    client.set_pool("gpu", capacity=2)
    granted = client.acquire("gpu", "a")
    client.acquire("gpu", "b", lease="0.2s")
    client.start("w", type='odd "type"', queue="odd \\ queue")
    client.complete(client.poll("odd \\ queue"), start_permit("gpu", order="fair", lease="60s"))
    client.release(granted["slots"][0]["id"], granted["token"])
    client.poll("idle", wait="0.01s")
    client.get("/permits")
    expired = lambda: scrape(client).value("permit_closed_total", outcome="lease_expired") == 1
    eventually(expired, "the lease has run out")
    return server, client


def promtool_has_nothing_to_say():
    server, client = busy_server()
    with server:
        said = promtool("check", "metrics", given=scrape(client).text)
        check(said.strip() == "", said)
        accept = {"Accept": "application/openmetrics-text"}
        _, _, body = client.raw("GET", "/metrics", headers=accept)
        parsed_by_prometheus(body.decode())


def parsed_by_prometheus(openmetrics):
    """By its own parser for OpenMetrics, which is behind this verb; it wants times."""
    lines = [line if line.startswith("#") else f"{line} 1700000000" for line in openmetrics.splitlines()]
    file = directory() / "metrics.txt"
    file.write_text("\n".join(lines) + "\n")
    promtool("tsdb", "create-blocks-from", "openmetrics", file, directory() / "blocks")


def the_page_names_each_metric():
    server, client = busy_server()
    with server:
        metrics = scrape(client)
    rows = {}
    text = (REPOSITORY / "docs" / "monitoring.md").read_text()
    for name, kind, labels in re.findall(r"^\| `(\w+)` \| (\w+) \|([\w, ]*)\|", text, re.MULTILINE):
        check(name not in rows, f"{name} is on the page twice")
        rows[name] = (kind, set(filter(None, re.split(r",\s*", labels.strip()))))
    unsaid = set(metrics.families) - set(rows)
    check(not unsaid, f"docs/monitoring.md lacks {sorted(unsaid)}")
    check(not set(rows) - set(metrics.families), f"there are no {set(rows) - set(metrics.families)}")
    for name, (kind, labels) in rows.items():
        family = metrics.families[name]
        check(family["type"] == kind, f"{name} is a {family['type']}, the page says {kind}")
        for _, found, _ in family["samples"]:
            check(set(found) - {"le"} == labels, f"{name} has {sorted(found)}, the page says {labels}")
    alerts = set(re.findall(r"^\| `(Permit\w+)` \|", text, re.MULTILINE))
    check(alerts == set(re.findall(r"alert: (\w+)", RULES.read_text())), f"alerts: {alerts}")


def the_page_shows_a_valid_configuration():
    scratch = directory() / "prometheus"
    scratch.mkdir()
    text = (REPOSITORY / "docs" / "monitoring.md").read_text()
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (scratch / "prometheus.yml").write_text(block)
    shutil.copy(RULES, scratch)
    promtool("check", "config", scratch / "prometheus.yml")


def alerts_fire_when_they_should():
    promtool("check", "rules", RULES)
    promtool("test", "rules", FILES / "permit.rules.test.yml")
    tests = (FILES / "permit.rules.test.yml").read_text()
    for alert in re.findall(r"alert: (\w+)", RULES.read_text()):
        check(re.search(rf"alertname: {alert}\n\s+eval_time: \w+\n\s+exp_alerts", tests), f"{alert} is not tried")


def check_names(expressions, metrics, what):
    known = set(metrics.families)
    for name, family in metrics.families.items():
        if family["type"] == "histogram":
            known |= {name + "_bucket", name + "_sum", name + "_count"}
    count = 0
    for expression in expressions:
        for name in OURS.findall(re.sub(r'"[^"]*"', "", expression)):
            check(name in known, f"{what}: there is no metric {name}: {expression}")
            count += 1
    check(count >= len(expressions) - 1, f"{what}: {count} names in {len(expressions)} expressions")


def check_labels(expressions, metrics, what):
    """Each selector's labels are those of its metric, or Prometheus' own."""
    for expression in expressions:
        for name, selector in re.findall(r"(\w+)\{([^}]*)\}", expression):
            if name == "up":
                continue
            family = next(of for of in (re.sub(r"_(bucket|sum|count)$", "", name), name) if of in metrics.families)
            labels = {label for _, found, _ in metrics.families[family]["samples"] for label in found}
            if not labels:
                continue
            wanted = set(re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*"', selector))
            check(wanted <= labels | {"instance", "job"}, f"{what}: {name} has no labels {wanted - labels}")


def alerts_and_dashboard_ask_for_what_there_is():
    server, client = busy_server()
    with server:
        metrics = scrape(client)
    rules = [(block or line).strip() for block, line in EXPRESSION.findall(RULES.read_text())]
    check(len(rules) == RULES.read_text().count("- alert:"), f"{len(rules)} rules were found")
    check_names(rules, metrics, "permit.rules.yml")
    check_labels(rules, metrics, "permit.rules.yml")

    board = json.loads((FILES / "dashboard.json").read_text())
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    check(len({panel["id"] for panel in board["panels"]}) == len(board["panels"]), "ids are used twice")
    asked = [target["expr"] for panel in panels for target in panel["targets"]]
    asked += [annotation["expr"] for annotation in board["annotations"]["list"]]
    check(len(asked) > 40, f"{len(asked)} expressions")
    check_names(asked, metrics, "dashboard.json")
    check_labels(asked, metrics, "dashboard.json")
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            check_names([variable["definition"]], metrics, "dashboard.json")
    check_language([expression.replace("$__rate_interval", "5m") for expression in asked])
    shown = {name for expression in asked for name in OURS.findall(expression)}
    print(f"    {len(asked)} expressions of {len(shown)} series in {len(panels)} panels")


def check_language(expressions):
    """That Prometheus understands them."""
    rules = [f"      - record: asked:{number}\n        expr: {json.dumps(expression)}"
             for number, expression in enumerate(expressions)]
    file = directory() / "dashboard.rules.yml"
    file.write_text("groups:\n  - name: dashboard\n    rules:\n" + "\n".join(rules) + "\n")
    promtool("check", "rules", file)


if shutil.which("promtool") is None:
    skip("promtool is missing: scripts/setup --test")
run(promtool_has_nothing_to_say,
    the_page_names_each_metric,
    the_page_shows_a_valid_configuration,
    alerts_fire_when_they_should,
    alerts_and_dashboard_ask_for_what_there_is)
