#!/usr/bin/env python3
"""What one customer makes and asks for at full speed is nobody else's wait: over a host in memory and one over a database.

    examples/hosts/memory/tests/flood.py [--seconds 60] target/release/examples/service
    examples/hosts/memory/tests/flood.py [--late 1000000] target/release/call-assistant-postgres demo

An owner does what the page allows with 32 connections, and then asks for all of it with 32. With `--late`, a customer
with so many imported calls (by `psql`, of a host whose banner says where its database is) asks for pages whose bounds
leave nearly all out, 64 at a time by 8 keys. Before and meanwhile, another tenant uses the public API and an operator the
dashboard: each has one connection of its own, and a process of its own measures. The control is the same flood of another
host on the same machine: what it does to the tenant is the machine's.
"""

import argparse
import http.client
import itertools
import json
import multiprocessing
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

TOKEN = "the-operators-own-token"
OPERATOR = {"Authorization": f"Bearer {TOKEN}"}
OWNER, TENANT = "acct_fjord_dental", "acct_other"


class Asker:
    """One connection, which is made again where it was closed."""

    def __init__(self, url, headers):
        self.address, self.headers = url.removeprefix("http://"), headers
        self.connection = None

    def ask(self, method, path, body=None):
        text = None if body is None else json.dumps(body)
        for attempt in range(2):
            self.connection = self.connection or http.client.HTTPConnection(self.address, timeout=30)
            try:
                self.connection.request(method, path, text, self.headers)
                answer = self.connection.getresponse()
                return answer.status, answer.read(), answer
            except (http.client.HTTPException, OSError):
                self.connection.close()
                self.connection = None
                if attempt:
                    return 0, b"", None


def measure(url, headers, path, seconds, told):
    """Asks some fifty times a second with these in turn, and tells the statuses and how long each answer took."""
    asker, took, statuses, end = Asker(url, {}), [], {}, time.monotonic() + seconds
    for asker.headers in itertools.cycle(headers):
        if time.monotonic() >= end:
            break
        began = time.perf_counter()
        status, *_ = asker.ask("GET", path)
        took.append(time.perf_counter() - began)
        statuses[status] = statuses.get(status, 0) + 1
        time.sleep(0.02)
    took.sort()
    at = lambda share: round(1000 * took[min(len(took) - 1, int(share * len(took)))], 1)
    told.put({"n": len(took), "p50": at(0.5), "p99": at(0.99), "max": at(1), "statuses": statuses})


class Host:
    def __init__(self, command, folder):
        token = pathlib.Path(folder, "token")
        token.write_text(f"ada:operator:{TOKEN}\n")
        flags = ["--listen", "127.0.0.1:0", "--dashboard", "127.0.0.1:0", "--operator-token-file", token]
        flags += ["--allow-loopback-endpoints", "--time-scale", "0.01"]
        self.log = pathlib.Path(folder, "log")
        self.process = subprocess.Popen(
            [*command, *flags], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log.open("w"), text=True
        )
        self.line = json.loads(self.process.stdout.readline())
        self.operator = Asker(self.line["dashboard"], OPERATOR)
        made, *_ = self.operator.ask("POST", "/accounts", {"id": TENANT, "timezone": "UTC", "plan": "pro"})
        assert made == 201, made
        # Enough keys for fifty requests a second.
        self.tenant = [{"Authorization": f"Bearer {self.key(TENANT)}"} for _ in range(8)]

    def key(self, account):
        body = {"name": "flood", "mode": "live", "scopes": ["account:read", "calls:read"]}
        status, text, _ = self.operator.ask("POST", f"/accounts/{account}/keys", body)
        assert status == 201, text
        return json.loads(text)["secret"]

    def owner(self):
        _, made, _ = self.operator.ask("POST", f"/accounts/{OWNER}/portal", {})
        link = json.loads(made)["path"].split("#link=")[1]
        status, text, answer = Asker(self.line["dashboard"], {}).ask("POST", "/portal-login", {"link": link})
        assert status == 200, text
        cookie = answer.getheader("set-cookie").split(";")[0]
        return {"Cookie": cookie, "X-Portal-Token": json.loads(text)["token"]}

    def memory(self, what="VmRSS"):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"{what}:\s+(\d+)", status)[1]) / 1024

    def beside(self, seconds):
        """What another tenant and an operator see in this time."""
        asked = {
            "tenant": (self.line["api"], self.tenant, "/v1/calls?limit=1"),
            "operator": (self.line["dashboard"], [OPERATOR], "/accounts?limit=50"),
        }
        told = {name: multiprocessing.Queue() for name in asked}
        for name, (url, headers, path) in asked.items():
            multiprocessing.Process(target=measure, args=(url, headers, path, seconds, told[name])).start()
        return {name: queue.get(timeout=seconds + 60) for name, queue in told.items()}


def flood(url, works, seconds, counted):
    """Does these things over and over, each worker by a connection of its own."""
    end = time.monotonic() + seconds

    def work(headers, steps):
        asker = Asker(url, headers)
        for step in itertools.cycle(steps):
            if time.monotonic() >= end:
                return
            status = step(asker)
            counted[status] = counted.get(status, 0) + 1

    threads = [threading.Thread(target=work, args=each) for each in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def makes():
    """What an owner's page makes: each step by what was made before."""
    of, known = f"/accounts/{OWNER}/", {"keys": [], "endpoints": [], "deliveries": []}

    def make(kind, path, body):
        def step(asker):
            status, text, _ = asker.ask("POST", path, body)
            if status == 201:
                known[kind].append(json.loads(text)["id"])
            return status

        return step

    def change(kind, method, tail, body, takes=False):
        def step(asker):
            if not known[kind]:
                status, text, _ = asker.ask("GET", f"{of}{kind}?limit=200" if kind != "endpoints" else of + kind)
                if status == 200:
                    known[kind] += [row["id"] for row in json.loads(text)["data"]]
                return status
            one = known[kind].pop(0)
            if not takes:
                known[kind].append(one)
            return asker.ask(method, f"/{kind}/{one}{tail}", body)[0]

        return step

    key = {"name": "b" * 100, "mode": "live", "scopes": []}
    return [
        make("keys", of + "keys", key),
        change("keys", "POST", "/revoke", {}, True),
        make("endpoints", of + "endpoints", {"url": "http://127.0.0.1:9/", "description": "x" * 200}),
        change("endpoints", "POST", "/ping", {}),
        change("endpoints", "PATCH", "", {"description": "y" * 200}),
        change("deliveries", "POST", "/redeliver", {}),
        change("deliveries", "POST", "/send", {}),
        change("endpoints", "POST", "/recover", {"dry_run": True}),
        change("endpoints", "POST", "/recover", {}),
        change("endpoints", "DELETE", "", None, True),
    ]


def asks():
    paths = ["overview", "deliveries", "keys", "endpoints", "recoveries", "alerts", "day", "deliveries?type=none"]
    return [lambda asker, path=path: asker.ask("GET", f"/accounts/{OWNER}/{path}")[0] for path in paths]


def in_process(*args):
    told = multiprocessing.Queue()

    def run():
        counted = {}
        flood(*args, counted)
        told.put(counted)

    multiprocessing.Process(target=run).start()
    return told


def owning(steps, seconds):
    def begin(host):
        owner, all_of_it = host.owner(), steps()
        turned = [all_of_it[nth:] + all_of_it[:nth] for nth in range(len(all_of_it))]
        works = [(owner, turned[nth % len(turned)]) for nth in range(32)]
        return in_process(host.line["dashboard"], works, seconds)

    return begin


def late(calls, seconds):
    return lambda host: late_of(host, calls, seconds)


def late_of(host, calls, seconds):
    database = re.search(r"psql (\S+)", host.log.read_text())[1]
    sql = f"""INSERT INTO calls (account_id, livemode, id, started_at, created_at, body)
        SELECT '{OWNER}', true, 'call_late_' || n, t, t + interval '40 days', b.body
        FROM generate_series(1, {calls}) AS n, LATERAL (SELECT timestamptz '2025-01-01' + n * interval '1 s' AS t) AS s,
        (SELECT body FROM calls LIMIT 1) AS b"""
    subprocess.run(["psql", "-q", database, "-c", sql, "-c", "VACUUM ANALYZE calls"], check=True)
    window = "created_after=2025-02-10T00:00:00Z&created_before=2025-02-10T01:00:00Z"
    steps = [lambda asker: asker.ask("GET", f"/v1/calls?limit=1&{window}")[0]]
    keys = [{"Authorization": f"Bearer {host.key(OWNER)}"} for _ in range(8)]
    return in_process(host.line["api"], [(keys[nth % 8], steps) for nth in range(64)], seconds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--late", type=int, default=0)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        hosts = []
        try:
            for name in ("host", "control"):
                pathlib.Path(folder, name).mkdir()
                hosts.append(Host(options.command, pathlib.Path(folder, name)))
            wrong = run(*hosts, options)
        finally:
            for host in hosts:
                host.process.terminate()
                host.process.wait()
    print("\n".join(wrong) or "right")
    sys.exit(bool(wrong))


def run(host, control, options):
    before, resident = host.beside(10), host.memory()
    print("before", json.dumps(before), f"{resident:.0f} MiB")
    phases, asking = [], min(options.seconds, 20)
    if options.late:
        phases.append(("pages past an import", asking, late(options.late, asking)))
    else:
        phases.append(("makes", options.seconds, owning(makes, options.seconds)))
        phases.append(("asks for all", asking, owning(asks, asking)))
    wrong = []
    for name, seconds, begin in phases:
        other = begin(control)
        print(name, "control", json.dumps(host.beside(seconds)), "the flood was told", other.get(timeout=120))
        told = begin(host)
        seen = host.beside(seconds)
        grown = host.memory("VmHWM") - resident
        print(name, json.dumps(seen), f"{grown:.0f} MiB more at most;", "the flood was told", told.get(timeout=120))
        for who, allowed in ("tenant", max(20, 3 * before["tenant"]["p99"])), ("operator", None):
            if set(seen[who]["statuses"]) != {200}:
                wrong.append(f"{name}: {who}: {seen[who]['statuses']}")
            if allowed and seen[who]["p99"] > allowed:
                wrong.append(f"{name}: {who}: p99 {seen[who]['p99']} ms, more than {allowed}")
        if options.late and seen["tenant"]["p50"] > 3 * before["tenant"]["p50"]:
            wrong.append(f"{name}: the tenant's median {seen['tenant']['p50']} ms")
        if grown > 64:
            wrong.append(f"{name}: {grown:.0f} MiB more")
    return wrong


if __name__ == "__main__":
    main()
