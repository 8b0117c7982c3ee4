"""Evaluates alert rules over recordings of running processes, with prometheus' own promtool."""

import json
import pathlib
import re
import subprocess
import sys

rules, guide, recordings = map(pathlib.Path, sys.argv[1:])
rules = rules.resolve()
named = re.findall(r"- alert: (\w+)", rules.read_text())

# Each rule has a section in the runbook, and points to it.
sections = set(re.findall(r"^## (\w+)$", guide.read_text(), re.M))
for name in named:
    assert name in sections, f"{guide} has no section {name}"
    assert f"docs/operating.md#{name.lower()}\n" in rules.read_text(), f"{name} points elsewhere"
assert sections <= set(named), f"no alert: {sections - set(named)}"

# What is silent while something else fires is an alert, and so is that.
inhibited = (rules.parent / "alertmanager.yml").read_text()
unknown = set(re.findall(r"\b[A-Z][a-z]+[A-Z]\w+", re.sub(r"#.*", "", inhibited))) - set(named)
assert not unknown, f"alertmanager.yml has no alert: {unknown}"

# Half a second of a recording is a minute of the rules. What is an age in seconds is stretched like this,
# but for what it is while all is well.
STRETCH, WELL = 120, 5
AGES = re.compile(r"call_assistant_(sender_(oldest_due|behind)_seconds|loop_age_seconds\{loop=\"(leases|looks|clocks|levers)\")")


def stretched(name, value):
    if AGES.match(name) and value > WELL:
        return WELL + (value - WELL) * STRETCH
    return value


def series_of(looks):
    """The values of each series, `None` where it is missing."""
    found = {}
    for at, look in enumerate(looks):
        for instance, text in look.items():
            target = f'job="call-assistant",instance="{instance}"'
            values = {f"up{{{target}}}": 0 if text is None else 1}
            for line in (text or "").splitlines():
                if line.startswith("#"):
                    continue
                name, value = line.rsplit(" ", 1)
                value = stretched(name, float(value))
                name, _, labels = name.partition("{")
                labels = f"{{{target},{labels}" if labels else f"{{{target}}}"
                values[name + labels] = value
            for name, value in values.items():
                found.setdefault(name, [None] * len(looks))[at] = value
    return found


def entries(page):
    """The rows of a page's tables and the sections of its runbook: what is seen, and what to do."""
    text = page.read_text()
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    runbook = re.findall(r"^## (\w+)\n(.*?)(?=^#|\Z)", text, re.M | re.S)
    return [(row[0], row[-1]) for row in rows] + [(name, " ".join(told.split())) for name, told in runbook]


ENTRIES = entries(guide)


def minutes(test, begin, file):
    """How many minutes after its beginning each alert fired first."""
    # As it is at each minute; what is not expected is told.
    expr = 'group by (alertname) (ALERTS{alertstate="firing"})'
    each = [{"expr": expr, "eval_time": f"{at}m"} for at in range(begin, test["end"] + 1)]
    asked = dict(test["test"], tests=[dict(test["test"]["tests"][0], promql_expr_test=each)])
    file.write_text(json.dumps(asked))
    told = subprocess.run(["promtool", "test", "rules", file], capture_output=True, text=True)
    first = {}
    for at, names in re.findall(r"time: (\w+),[^\n]*\n(.*?)(?=expr:|\Z)", told.stdout + told.stderr, re.S):
        spent = sum(int(n) * {"h": 60, "m": 1, "s": 0}[unit] for n, unit in re.findall(r"(\d+)([hms])", at))
        got = names.partition("got:")[2]
        for name in re.findall(r'alertname="(\w+)"', got):
            first[name] = min(first.get(name, spent), spent)
    return {name: at - begin for name, at in sorted(first.items(), key=lambda of: of[1])}


def day(name, recording, after):
    """What happened on a bad day, and what is not as it should be."""
    (row, to_do), said, pattern = recording["row"], recording["said"], recording["says"]
    told = next((todo for seen, todo in ENTRIES if seen.startswith(row)), None)
    lines = [line for line in said if pattern and re.search(pattern, line)]
    mistakes = []
    if told is None:
        mistakes.append(f"the page has nothing that begins: {row}")
    elif to_do not in told:
        mistakes.append(f"the page does not tell: {to_do}")
    if pattern and not lines:
        mistakes.append(f"no log says: {pattern}")
    if unasked := set(after) - set(recording["fires"]) - set(recording["may_fire"]):
        mistakes.append(f"fires too: {', '.join(sorted(unasked))}")
    shown = lines[:1] + said[recording["before"] :][:3]
    return name, after, list(dict.fromkeys(shown)), told, mistakes


fired, wrong, days = set(), [], []
for path in sorted(recordings.glob("*.json")):
    recording = json.loads(path.read_text())
    looks, fires = recording["looks"], recording["fires"]
    # What the last look saw goes on: an hour of it for what is only told then.
    more = 75 if "DayKept" in fires else 0
    inputs = []
    for name, values in series_of(looks).items():
        texts = ["_" if value is None else f"{value:.6f}" for value in values]
        texts += [texts[-1]] * more
        inputs.append({"series": name, "values": " ".join(texts)})
    end = len(looks) + more - 1
    # Whatever fired at any time; `ALERTS` is what a server writes of its own rules.
    chosen = f'=~"{"|".join(fires)}"' if fires else f'!~"{"|".join(recording["may_fire"])}"'
    expr = f'group by (alertname) (max_over_time(ALERTS{{alertstate="firing",alertname{chosen}}}[1d]))'
    expected = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in fires]
    test = {
        "rule_files": [str(rules)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": inputs,
                "promql_expr_test": [
                    {"expr": expr, "eval_time": f"{end}m", "exp_samples": expected}
                ],
            }
        ],
    }
    file = path.with_suffix(".test.yml")
    file.write_text(json.dumps(test))
    told = subprocess.run(["promtool", "test", "rules", file], capture_output=True, text=True)
    if told.returncode != 0:
        wrong.append(f"{path.stem}: {told.stdout}{told.stderr}")
        continue
    fired.update(fires)
    if recording["row"]:
        after = minutes({"test": test, "end": end}, recording["begin"], file)
        days.append(day(path.stem, recording, after))
    print(f"{path.stem}: {', '.join(fires) or 'nothing fires'}, over {len(looks)} looks")

assert not wrong, "\n".join(wrong)
assert (recordings / "one_endpoint_is_broken.json").exists()
missing = set(named) - fired
# Without the library of faketime no clock is wrong.
assert missing <= {"ClockWrong", "DatabaseClockWrong"}, f"never seen to fire: {missing}"
print(f"{len(fired)} of {len(named)} rules fired")

print("\nBad days: when each alert fired, in minutes; what the log said; what the page tells to do")
for name, after, said, told, mistakes in days:
    print(f"\n{name}: {', '.join(f'{alert} {at}' for alert, at in after.items()) or 'nothing fires'}")
    for line in said:
        print(f"  log: {line[:200]}")
    print(f"  page: {told}")
    print(f"  {'; '.join(mistakes) or 'right'}")
assert not any(mistakes for *_, mistakes in days), "a bad day is not as the page has it"
