"""Reads what GET /metrics says, strictly."""

import re

from support import check

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)$")
OF_HISTOGRAM = ("_bucket", "_count", "_sum")


class Metrics:
    """One scrape: families by name, each with its type, help and samples (name, labels, value)."""

    def __init__(self, text, openmetrics=False):
        self.text = text
        self.families = {}
        lines = text.split("\n")
        check(lines.pop() == "", "the text does not end with a line's end")
        if openmetrics:
            check(lines.pop() == "# EOF", "OpenMetrics does not end with # EOF")
        family = None
        for line in lines:
            if line.startswith("# HELP "):
                _, _, family, help_text = line.split(" ", 3)
                check(family not in self.families, f"{family} is said twice")
                check(help_text.strip(), f"{family} has no help")
                self.families[family] = {"type": None, "samples": []}
            elif line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ")
                check(name == family, f"the type of {name} stands under {family}")
                self.families[family]["type"] = kind
            else:
                self.families[family]["samples"].append(self.sample(line, family))

    def sample(self, line, family):
        found = SAMPLE.match(line)
        check(found, f"no sample: {line}")
        name, text, value = found.groups()
        kind = self.families[family]["type"]
        suffixes = OF_HISTOGRAM if kind == "histogram" else ("", "_total")
        check(name in [family + suffix for suffix in suffixes], f"{name} stands under {family}")
        labels = dict(LABEL.findall(text or ""))
        check(LABEL.sub("", text or "") == "", f"labels that are none: {line}")
        return name, labels, float(value)

    def all(self, name):
        """The samples of that very name: (labels, value)."""
        return [(labels, value) for family in self.families.values()
                for of, labels, value in family["samples"] if of == name]

    def value(self, name, **labels):
        """The sum over the samples that have these labels."""
        return sum(value for of, value in self.all(name) if labels.items() <= of.items())

    def labels(self, name, label):
        return {labels.get(label) for labels, _ in self.all(name)}


def scrape(client):
    status, headers, body = client.raw("GET", "/metrics")
    check(status == 200, f"/metrics: {status}")
    check(headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8", str(headers))
    return Metrics(body.decode())


def check_balance(metrics, pool):
    """Every grant has ended in one way, or is held."""
    acquires = metrics.value("permit_acquires_total", pool=pool)
    closed = metrics.value("permit_closed_total", pool=pool)
    held = metrics.value("permit_pool_slots_held", pool=pool)
    check(acquires == closed + held, f"{pool}: {acquires} grants, {closed} ended, {held} held")
    return acquires
