#!/usr/bin/env python3
"""Writes grafana.json from the tables of metrics in src/metrics.rs of the library and in docs/operating.md, or checks
that it is so.

    examples/hosts/postgres/deploy/dashboard.py [--check]
"""

import json
import pathlib
import re
import sys

here = pathlib.Path(__file__).resolve().parent
library = here.parents[3] / "src" / "metrics.rs"
guide = here.parent / "docs" / "operating.md"
file = here / "grafana.json"

JOB = '{job="call-assistant"}'
# Of the store: each process shows the same.
STORED = re.compile(
    r"call_assistant_(sender_(pending|held|oldest_due_seconds|endpoints)|shards_unowned"
    r"|recoveries_running|sending_paused|sending_throttled|oldest_lever_seconds|writes_waiting"
    r"|oldest_day_seconds|store_up|unreadable_secrets|late_accounts)$"
)
ROWS = [
    ("Webhooks", r"call_assistant_sender_"),
    ("Public API", r"call_assistant_api_"),
    ("Database and processes", r"call_assistant_|process_"),
]


def query(name, told):
    labels = re.findall(r" by `(\w+)`", told)
    by = ", ".join(labels)
    if name.endswith("_bucket"):
        return [(f"histogram_quantile({q}, sum by (le) (rate({name}{JOB}[5m])))", f"p{q * 100:g}") for q in (0.5, 0.95, 0.99)]
    legend = " ".join(f"{{{{{label}}}}}" for label in labels)
    if name.endswith("_total"):
        return [(f"sum by ({by}) (rate({name}{JOB}[5m]))", legend or "a second")]
    if STORED.match(name):
        return [(f"max by ({by}) ({name}{JOB})", legend or "now")]
    return [(f"{name}{JOB}", " ".join(["{{instance}}", legend]).strip())]


def panel(number, name, told, x, y):
    title = name.removeprefix("call_assistant_").removesuffix("_total").removesuffix("_bucket").replace("_", " ")
    unit = "s" if "seconds" in name and not name.endswith(("_total", "start_time_seconds")) else "short"
    unit = "bytes" if name.endswith("_bytes") else unit
    return {
        "id": number,
        "type": "timeseries",
        "title": title,
        "description": told.replace("`", ""),
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "gridPos": {"x": x, "y": y, "w": 8, "h": 7},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0 if name != "call_assistant_clock_ahead_seconds" else None}, "overrides": []},
        "targets": [
            {"refId": chr(65 + at), "expr": expr, "legendFormat": legend}
            for at, (expr, legend) in enumerate(query(name, told))
        ],
    }


def dashboard():
    told = library.read_text().replace("//! ", "") + guide.read_text()
    table = re.findall(r"^\| `((?:call_assistant|process)_\w+)` \| (.*) \|$", told, re.M)
    table = [(name, told) for name, told in table if not name.startswith("call_assistant_receiver_")]
    assert len(table) > 30, table
    panels, number, y, taken = [], 0, 0, set()
    for title, pattern in ROWS:
        chosen = [row for row in table if re.match(pattern, row[0]) and row[0] not in taken]
        taken.update(name for name, _ in chosen)
        number += 1
        panels.append({"id": number, "type": "row", "title": title, "collapsed": False, "gridPos": {"x": 0, "y": y, "w": 24, "h": 1}, "panels": []})
        y += 1
        for at, (name, told) in enumerate(chosen):
            number += 1
            panels.append(panel(number, name, told, at % 3 * 8, y + at // 3 * 7))
        y += (len(chosen) + 2) // 3 * 7
    datasource = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}
    return {
        "title": "call-assistant",
        "uid": "call-assistant",
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [datasource]},
        "panels": panels,
    }


text = json.dumps(dashboard(), indent=1) + "\n"
if sys.argv[1:] == ["--check"]:
    assert file.read_text() == text, f"{file} is not what the tables of metrics say: run {sys.argv[0]}"
    print(f"{file.name} is what the tables say")
else:
    file.write_text(text)
