"""Reads a text of metrics with prometheus' own parser, and the names that the pages use."""

import re
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families

text_file, library_file, host_file = sys.argv[1:]
with open(text_file, encoding="utf-8") as file:
    text = file.read()
families = {family.name: family for family in text_string_to_metric_families(text)}
samples = {}
for family in families.values():
    assert family.documentation, family.name
    if family.name.endswith("_seconds"):
        assert family.unit == "seconds", family.name
    for sample in family.samples:
        key = (sample.name, frozenset(sample.labels.items()))
        assert key not in samples, key
        samples[key] = sample.value

# What the test has counted, as this parser sees it.
for name, labels, value in [
    ("call_assistant_sender_attempts_total", {"outcome": "5xx"}, 1),
    ("call_assistant_sender_attempt_duration_seconds_bucket", {"le": "0.25"}, 1),
    ("call_assistant_sender_attempt_duration_seconds_sum", {}, 10.125),
    ("call_assistant_sender_oldest_due_seconds", {}, 1.5),
    ("call_assistant_api_requests_total", {"operation": "none", "status": "4xx"}, 1),
    ("call_assistant_receiver_verifications_total", {"result": "mismatch"}, 1),
    ("host_threads", {"name": 'a "quoted"\nname \\'}, 4),
]:
    assert samples[(name, frozenset(labels.items()))] == value, (name, labels)

guide = ""
for name in library_file, host_file:
    with open(name, encoding="utf-8") as file:
        guide += file.read()
names = {name for name, _ in samples}
# What only hosts have: their tests compare these rows.
names |= set(re.findall(r"^\| `(\w+)` \| (?:database|process|sender)[,:]", guide, re.M))
# Roles of the database are called so, too.
roles = {"call_assistant_api", "call_assistant_sender", "call_assistant_operator"}
for name in sorted(set(re.findall(r"call_assistant_\w+", guide)) - roles):
    known = name in names or name in families
    assert known, f"a page has {name}, which is in no text"
print(f"{len(families)} families, {len(samples)} samples")
