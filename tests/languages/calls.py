"""Reads calls with src/guide/languages/calls.py and calls.ts from the example `service`: calls.py SERVICE.

Between the two stands a gate, which before the n-th request creates calls, orders a fault of the
service or kills the program. So what is read depends on the number of the request, not on time.
The copies are the program of the guide's page, word for word, and copy.ts. Where CI=true or with npm at hand,
the compiler of TypeScript is installed; without it, TypeScript is skipped, and listed in the file
that SKIPPED names.
"""

import collections
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from http.client import HTTPConnection, IncompleteRead
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = ROOT / "src/guide/languages"
KEY, EXPIRED = "service_live_" + "0" * 32, "service_live_" + "1" * 32

WALK_PY = """
import sys
from calls import ApiError, Calls

base, key, tries, limit = sys.argv[1:]
try:
    for calls in Calls(base, key, int(tries), float(limit)).pages():
        for call in calls:
            print(call["id"])
except ApiError as error:
    sys.exit(f"refused: {error}")
"""

WALK_TS = """
import { ApiError, Calls } from "./calls.ts";

const [base = "", key = "", tries, limit] = process.argv.slice(2);
try {
  for await (const calls of new Calls(base, key, Number(tries), Number(limit)).pages()) {
    for (const call of calls) console.log(call.id);
  }
} catch (error) {
  console.error(error instanceof ApiError ? `refused: ${error.message}` : error);
  process.exit(1);
}
"""

COMPILE = (
    "npx tsc --strict --noUncheckedIndexedAccess --erasableSyntaxOnly --target es2022 --module nodenext"
    " --rewriteRelativeImportExtensions --outDir out walk.ts copy.ts"
)


def instant(seconds_ago):
    at = datetime.now(timezone.utc) - timedelta(seconds=seconds_ago)
    return at.isoformat().replace("+00:00", "Z")


class Service:
    """The example `service`, and the calls that it has."""

    def __init__(self, program, folder):
        self.ids, self.number = [], itertools.count(1)
        dice = random.Random(7)
        # Five at each `started_at`.
        calls = [self.call(3600 + n // 5, dice.randrange(3000)) for n in range(620)]
        account = {"id": "acct_1", "timezone": "Europe/Oslo", "calls": calls}
        account["keys"] = [{"secret": KEY}, {"secret": EXPIRED, "expires_at": "2026-01-01T00:00:00Z"}]
        data = folder / "data.json"
        data.write_text(json.dumps({"accounts": [account]}))
        command = [program, "--listen", "127.0.0.1:0", "--dashboard", "127.0.0.1:0", "--data", data]
        with open(folder / "service.log", "w") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
        line = json.loads(self.process.stdout.readline())
        self.api, self.dashboard = (line[name].removeprefix("http://") for name in ("api", "dashboard"))

    def call(self, started, created):
        call = {"id": f"call_{next(self.number)}", "started_at": instant(started), "created_at": instant(created)}
        names = ("answered_at", "ended_at", "duration_seconds", "summary")
        call |= dict.fromkeys(names) | {"appointment_ids": [], "summary": "Blåbær, and a line\nend"}
        call["caller"] = dict.fromkeys(("contact_id", "phone_number", "display_name"))
        self.ids.append(call["id"])
        return call

    def ask(self, method, path, body=None):
        connection = HTTPConnection(self.dashboard, timeout=30)
        connection.request(method, path, body and json.dumps(body))
        response = connection.getresponse()
        answer = json.loads(response.read())
        assert response.status < 300, (path, answer)
        return answer

    def add(self, started=0, created=0):
        self.ask("POST", "/accounts/acct_1/calls", self.call(started, created))

    def order(self, fault, **how):
        self.ask("POST", "/faults", {"fault": fault, **how})

    def faults_left(self):
        return [order["fault"] for order in self.ask("GET", "/faults")["data"]]


class Gate(ThreadingHTTPServer):
    """Passes requests on, with pages of another size. `before` and `after` run with a request's number, from 1."""

    daemon_threads = True

    def __init__(self, upstream, before=None, after=None, answer=None, page=100):
        super().__init__(("127.0.0.1", 0), Passing)
        self.upstream, self.before, self.after, self.answer = upstream, before, after, answer
        self.page, self.times = page, []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *_):  # the program was killed
        pass


class Passing(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        gate = self.server
        gate.times.append(time.monotonic())
        number = len(gate.times)
        if gate.answer:
            self.close_connection = True
            return gate.answer(self)
        if gate.before:
            gate.before(number)
        upstream = HTTPConnection(gate.upstream, timeout=30)
        path = self.path.replace("limit=100", f"limit={gate.page}")
        upstream.request("GET", path, headers={"Authorization": self.headers["Authorization"]})
        response = upstream.getresponse()
        try:
            body = response.read()
        except IncompleteRead as cut:
            body = cut.partial
            self.close_connection = True
        self.send_response_only(response.status)
        for name, value in response.getheaders():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        if gate.after:
            gate.after(number)

    def log_message(self, *_):
        pass


class Language:
    def __init__(self, name, run, service):
        self.name, self.run, self.service = name, run, service

    def start(self, program, *arguments, **environment):
        environment = {**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", **environment}
        command, folder = self.run
        return subprocess.Popen(
            [*command(program), *arguments], cwd=folder, env=environment, text=True, encoding="utf-8",
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )

    def walk(self, url, key=KEY, tries=5, limit=30):
        process = self.start("walk", url, key, str(tries), str(limit))
        output, errors = self.end(process)
        return process.returncode, output.split(), errors

    def end(self, process):
        try:
            return process.communicate(timeout=120)
        finally:
            process.kill()

    def reads_each_call_once(self):
        service = self.service
        faults = {
            2: ("cut", {}), 3: ("internal_error", {}), 5: ("rate_limit_exceeded", {"retry_after": 1}),
            6: ("slow", {"milliseconds": 200}), 8: ("invalid_cursor", {}), 10: ("lookup_fails", {}), 11: ("cut", {}),
        }
        before = set(service.ids)

        def create(number):
            service.add()
            service.add(started=3700)
            service.add(started=99999)
            if number in faults:
                fault, how = faults[number]
                service.order(fault, **how)

        status, ids, errors = self.walk(Gate(service.api, before=create).url)
        assert status == 0, errors
        repeated = [id for id, times in collections.Counter(ids).items() if times > 1]
        assert not repeated, repeated
        assert before <= set(ids) <= set(service.ids), before - set(ids)
        assert service.faults_left() == [], service.faults_left()

    def waits_as_long_as_it_was_told(self):
        self.service.order("rate_limit_exceeded", retry_after=3)
        gate = Gate(self.service.api)
        assert self.walk(gate.url)[0] == 0
        waited = gate.times[1] - gate.times[0]
        assert waited >= 3, waited

    def gives_up(self):
        """What does not help a second time is asked once; what may, as often as it was told."""
        for fault, tries, requests in [
            ("insufficient_scope", 5, 1), ("account_closed", 5, 1), ("internal_error", 2, 2), ("cut", 2, 2),
        ]:
            gate = Gate(self.service.api)
            self.service.order(fault, probability=1)
            status, ids, errors = self.walk(gate.url, tries=tries)
            assert (status, ids, len(gate.times)) == (1, [], requests), (fault, status, len(gate.times), errors)
            assert fault == "cut" or fault in errors, (fault, errors)
            self.service.ask("DELETE", "/faults")
        gate = Gate(self.service.api)
        status, _, errors = self.walk(gate.url, key=EXPIRED)
        assert (status, len(gate.times)) == (1, 1) and "invalid_credentials" in errors, errors
        self.service.order("invalid_cursor", probability=1)
        gate = Gate(self.service.api)
        status, _, errors = self.walk(gate.url)
        assert (status, len(gate.times)) == (1, 8) and "invalid_cursor" in errors, errors
        self.service.ask("DELETE", "/faults")
        for key in ("", KEY + "\n"):
            status, _, errors = self.walk(gate.url, key=key)
            assert status == 1 and "the key" in errors and KEY not in errors, errors

    def sends_the_key_nowhere_else(self):
        elsewhere = Gate(self.service.api)

        def redirect(request):
            request.send_response_only(302)
            request.send_header("Location", elsewhere.url + request.path)
            request.end_headers()

        gate = Gate(None, answer=redirect)
        status, _, errors = self.walk(gate.url)
        assert (status, len(gate.times), elsewhere.times) == (1, 1, []) and "302" in errors, errors

    def bounds_an_answer(self):
        sent = []

        def endless(piece, pause):
            def answer(request):
                request.send_response_only(200)
                request.end_headers()
                while True:
                    request.wfile.write(piece)
                    sent.append(len(piece))
                    time.sleep(pause)

            return answer

        for piece, pause in [(b" " * 65536, 0), (b" ", 0.05)]:
            sent.clear()
            gate = Gate(None, answer=endless(piece, pause))
            status, _, errors = self.walk(gate.url, tries=1, limit=30 if pause == 0 else 1)
            assert status == 1 and sum(sent) < 2**26, (status, sum(sent), errors)
        gate = Gate(self.service.api)
        self.service.order("slow", milliseconds=20000)
        status, ids, _ = self.walk(gate.url, tries=1, limit=0.5)
        assert (status, ids) == (1, []), status

    def copies_all_and_loses_none(self):
        service, dice, killed = self.service, random.Random(11), 0
        faults = {1: "internal_error", 4: "cut", 8: "invalid_cursor"}
        for run in range(11):
            process, number_of_kill = None, None if run in (3, 7, 10) else 2 + run % 3

            def before(number):
                # As late as a call may become visible, and anywhere in the list.
                service.add(started=dice.choice([0, 3650, 99999]), created=dice.randrange(50))
                if number == 2:
                    # Within the lag, above what the walk has passed: the next walk has to find it ...
                    service.add(started=0, created=58)
                if number == 3 and run in (3, 7):
                    # ... also if this one still meets calls that are a minute newer.
                    time.sleep(3)
                    service.add(started=99999, created=0)
                if number == 3 and run in faults:
                    service.order(faults[run])
                if number == number_of_kill and run % 2:
                    process.kill()  # which is waiting for this answer

            def after(number):
                if number == number_of_kill and run % 2 == 0:
                    time.sleep(dice.random() / 50)
                    process.kill()  # which is at this page, or has asked for the next one

            for _ in range(30 if run else 0):  # so that each walk has pages
                service.add(started=dice.randrange(5000), created=dice.randrange(5))
            gate = Gate(service.api, before=None if run == 10 else before, after=after, page=10)
            process = self.start("copy", SERVICE_API=gate.url, SERVICE_API_KEY=KEY)
            _, errors = self.end(process)
            killed += process.returncode == -9
            assert process.returncode in (0, -9), errors
        assert killed >= 4, killed
        lost = set(service.ids) - set(copied := self.copied())
        assert not lost and len(copied) == len(service.ids), sorted(lost)
        return f"{len(copied)} calls copied in {run + 1} runs, {killed} of them killed"

    def copied(self):
        folder = self.run[1]
        if (folder / "calls.db").exists():
            with sqlite3.connect(folder / "calls.db") as db:
                calls = [(id, json.loads(call)) for id, call in db.execute("SELECT id, call FROM calls")]
        else:
            calls = [(path.stem, json.loads(path.read_text())) for path in (folder / "calls").glob("*.json")]
        assert all(id == call["id"] and call["summary"].startswith("Blåbær,") for id, call in calls)
        return [id for id, _ in calls]

    def passes(self):
        self.reads_each_call_once()
        self.waits_as_long_as_it_was_told()
        self.gives_up()
        self.sends_the_key_nowhere_else()
        self.bounds_an_answer()
        print(f"{self.name}: {self.copies_all_and_loses_none()}")


def on_the_page():
    """The program of the page that keeps a copy."""
    page = (ROOT / "src/guide/languages.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.S | re.M)
    [program] = [block for block in blocks if "api.sync(" in block]
    return program


def python(folder):
    (folder / "walk.py").write_text(WALK_PY)
    (folder / "copy_calls.py").write_text(on_the_page())
    shutil.copy(FILES / "calls.py", folder)
    scripts = {"walk": "walk.py", "copy": "copy_calls.py"}
    return lambda program: [sys.executable, scripts[program]], folder


def typescript(folder):
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "walk.ts").write_text(WALK_TS)
    shutil.copy(ROOT / "tests/languages/copy.ts", folder)
    shutil.copy(FILES / "calls.ts", folder)
    packages = "npm install --silent --no-audit --no-fund typescript@5.9.3 @types/node@20.19.43"
    for missing in [name for name in ("node", "npm") if not shutil.which(name)]:
        return f"no {missing}"
    if subprocess.run(packages.split(), cwd=folder).returncode != 0:
        return "the compiler cannot be installed"
    subprocess.run(COMPILE.split(), cwd=folder, check=True)
    return lambda program: ["node", f"out/{program}.js"], folder


def main():
    [program] = sys.argv[1:]
    services = []
    with tempfile.TemporaryDirectory() as scratch:
        try:
            check(pathlib.Path(program).resolve(), pathlib.Path(scratch), services)
        finally:
            for service in services:
                service.process.kill()
                service.process.wait()


def check(program, scratch, services):
    languages = []
    for name, prepare in [("Python", python), ("TypeScript", typescript)]:
        folder = scratch / name
        folder.mkdir()
        run = prepare(folder)
        if isinstance(run, str):
            print(line := f"skipped: reading calls in {name}: {run}")
            with open(os.environ.get("SKIPPED", os.devnull), "a") as skipped:
                print(line, file=skipped)
            continue
        services.append(Service(program, folder))
        languages.append(Language(name, run, services[-1]))
    with ThreadPoolExecutor() as pool:
        list(pool.map(Language.passes, languages))


main()
