"""A PostgreSQL server, the roles of the durable host, a receiver, and requests to them."""

import collections
import contextlib
import glob
import http.client
import json
import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
PATIENCE = 60
# PostgreSQL does not run as root.
USER = pwd.getpwnam("postgres" if os.path.isdir("/etc/postgresql") else "nobody") if os.getuid() == 0 else None


def programs():
    """The folder of the server's programs, or None: `POSTGRESQL_BIN`, or Debian's newest, as in `private-server`.

    A program of `PATH` may be a copy without the server's libraries beside it.
    """
    if folder := os.environ.get("POSTGRESQL_BIN"):
        return folder
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda p: int(p.split("/")[-2]))
    found = shutil.which("initdb")
    return folders[-1] if folders else os.path.dirname(os.path.realpath(found)) if found else None


def until(what, ask, patience=PATIENCE):
    """Asks until the answer is true, and returns it."""
    end = time.monotonic() + patience
    while not (answer := ask()):
        assert time.monotonic() < end, f"waited {patience} s: {what}"
        time.sleep(0.05)
    return answer


def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def answers(port):
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


class Receiver:
    """Answers each event with 204, and keeps its id, its delivery's id and its bytes."""

    def __init__(self):
        self.got, lock = [], threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with lock:
                    outer.got.append((self.path, json.loads(body)["id"], body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, path):
        return f"http://127.0.0.1:{self.server.server_port}{path}"

    def times(self, path):
        """How often each event has arrived at a path."""
        return collections.Counter(event for at, event, _ in list(self.got) if at == path)


class World(contextlib.ExitStack):
    """A temporary folder with servers and processes, all of which end with it."""

    def __init__(self):
        super().__init__()
        self.folder = self.enter_context(tempfile.TemporaryDirectory(prefix="lifecycle-"))
        if USER:
            os.chown(self.folder, USER.pw_uid, USER.pw_gid)
        self.port = port()
        self.environment = dict(os.environ, PATH=f"{programs()}:{os.environ['PATH']}")
        for name in ("DATABASE_URL", "SECRETS_KEY_RING", "OPERATOR_TOKEN", "DATABASE_CA"):
            self.environment.pop(name, None)

    def path(self, name):
        return os.path.join(self.folder, name)

    def database(self, *command):
        """Runs a program of PostgreSQL, or a script that does, as a user that it accepts."""
        done = self.try_database(*command)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def refuses(self, *command):
        """Runs what fails, and returns what it says."""
        done = self.try_database(*command)
        assert done.returncode != 0, f"{command}: {done.stdout}"
        return done.stderr

    def try_database(self, *command):
        return subprocess.run(command, env=self.environment, cwd=self.folder, text=True, capture_output=True,
                              **({"user": USER.pw_uid, "group": USER.pw_gid, "extra_groups": []} if USER else {}))

    @property
    def options(self):
        return f"-p {self.port} -k {self.folder} -c listen_addresses= -c fsync=off"

    @property
    def url(self):
        return f"postgresql://postgres@{self.folder.replace('/', '%2F')}:{self.port}/postgres"

    def serve(self, data):
        """Starts a new server that archives its WAL."""
        os.makedirs(self.path("archive"), exist_ok=True)
        if USER:
            os.chown(self.path("archive"), USER.pw_uid, USER.pw_gid)
        self.database("initdb", "--username=postgres", "--auth=trust", "--no-sync", "--pgdata", self.path(data))
        archive = self.path("archive")
        with open(self.path(f"{data}/postgresql.auto.conf"), "a") as settings:
            settings.write(f"archive_mode = on\narchive_command = 'test ! -f {archive}/%f && cp %p {archive}/%f'\n")
        self.database("pg_ctl", "start", "--pgdata", self.path(data), "--wait", "--options", self.options,
                      "--log", self.path(f"{data}.log"))
        self.ends(data)

    def ends(self, data):
        self.callback(lambda: subprocess.run(
            ["pg_ctl", "stop", "--pgdata", self.path(data), "--mode", "immediate"], env=self.environment,
            capture_output=True, check=False, **({"user": USER.pw_uid} if USER else {})))

    def sql(self, statement):
        return self.database("psql", "--no-psqlrc", "--tuples-only", "--no-align", "--dbname", self.url,
                             "--command", statement)

    def run(self, program, role, *flags):
        """Runs a role that ends, and returns what it printed."""
        done = self.try_run(program, role, *flags)
        assert done.returncode == 0, f"{role}: {done.returncode} {done.stdout}{done.stderr}"
        return done.stdout

    def fails(self, program, role, *flags):
        """Runs a role that ends with 1, and returns what it says."""
        done = self.try_run(program, role, *flags)
        assert done.returncode == 1, f"{role}: {done.returncode} {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def try_run(self, program, role, *flags):
        return subprocess.run([program, *role.split(), "--database", self.url, *flags], env=self.environment,
                              text=True, capture_output=True)

    def ring(self, program):
        ring = self.path("ring")
        if not os.path.exists(ring):
            with open(ring, "w") as lines:
                lines.write(subprocess.run([program, "keygen", "1"], text=True, capture_output=True, check=True).stdout)
        return ring

    def start(self, program, role, *flags, url=None):
        return Process(self, program, role, flags, url or self.url)

    def beside(self, *command, ready):
        """Runs a program until the end of the test, once its port answers."""
        log = open(self.path(f"{ready}.log"), "w+")
        process = subprocess.Popen(command, stdout=log, stderr=log,
                                   **({"user": USER.pw_uid, "group": USER.pw_gid} if USER else {}))
        self.callback(process.wait)
        self.callback(process.kill)
        until(f"{command[0]} answers", lambda: process.poll() is not None or answers(ready))
        assert process.poll() is None, open(log.name).read()


class Process:
    """A role that goes on."""

    def __init__(self, world, program, role, flags, url):
        self.log = open(world.path(f"{role}-{time.monotonic_ns()}.log"), "w+")
        anywhere = role == "api" and "--listen" not in flags
        listening = ["--listen", "127.0.0.1:0", "--dashboard", "127.0.0.1:0"] if anywhere else []
        self.process = subprocess.Popen(
            [program, role, "--database", url, "--keys", world.ring(program), "--allow-loopback-endpoints",
             *listening, *flags],
            env=world.environment, stdout=subprocess.PIPE, stderr=self.log, text=True)
        world.callback(self.kill)
        said = json.loads(self.process.stdout.readline())
        if role == "api":
            self.api, self.dashboard = said["api"], said["dashboard"]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        """Ends it as a deployment does."""
        self.process.terminate()
        assert self.process.wait(PATIENCE) == 0
        self.process.stdout.close()

    def text(self):
        with open(self.log.name) as text:
            return text.read()

    def ask(self, method, path, body=None):
        """A request to the dashboard: its status and its JSON."""
        return request(self.dashboard, method, path, body)

    def read(self, path, key):
        """A request to the public API."""
        return request(self.api, "GET", path, None, {"Authorization": f"Bearer {key}"})


def request(url, method, path, body=None, headers=None):
    host = url.removeprefix("http://").rstrip("/")
    connection = http.client.HTTPConnection(host, timeout=10)
    try:
        text = None if body is None else json.dumps(body)
        connection.request(method, path, text, {**(headers or {}), "Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, json.loads(response.read() or b"null")
    finally:
        connection.close()
