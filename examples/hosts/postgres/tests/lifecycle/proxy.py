"""Runs deploy/haproxy.cfg in front of two API processes, and replaces both, one after the other: proxy.py PROGRAM.

Customers ask over TLS meanwhile, each on one connection for long and on a new one for each request. No request is refused,
and a process that hangs gets no more of them.
"""

import http.client
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import threading
import time

from host import DEPLOY, World, port, until

KEYS = ["service_live_" + digit * 32 for digit in "1234"]


def main(program):
    with World() as world:
        world.serve("data")
        world.run(program, "migrate")
        data, pem = world.path("data.json"), world.path("api.pem")
        with open(data, "w") as file:
            json.dump({"accounts": [{"id": "acct_1", "timezone": "Europe/Oslo", "keys": [
                {"name": f"key {at}", "secret": key} for at, key in enumerate(KEYS)]}]}, file)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost", "-keyout", world.path("key"), "-out", world.path("cert")],
                       check=True, capture_output=True)
        with open(pem, "w") as file:
            file.write(open(world.path("cert")).read() + open(world.path("key")).read())
        os.chmod(pem, 0o644)

        public, checks, apis = port(), [port(), port()], [port(), port()]
        start = lambda at, *more: world.start(program, "api", "--listen", f"127.0.0.1:{apis[at]}", "--dashboard", "127.0.0.1:0",
                                              "--metrics", f"127.0.0.1:{checks[at]}", "--drain-seconds", "5", *more)
        processes = [start(0, "--data", data), start(1)]
        text = (DEPLOY / "haproxy.cfg").read_text()
        for what, by in ((r"bind :443 ssl crt \S+", f"bind 127.0.0.1:{public} ssl crt {pem}"), (r" port 9100", ""),
                         (r"server one \S+", f"server one 127.0.0.1:{apis[0]} port {checks[0]}"),
                         (r"server two \S+", f"server two 127.0.0.1:{apis[1]} port {checks[1]}")):
            text, times = re.subn(what, by, text)
            assert times == 1, what
        config = world.path("haproxy.cfg")
        with open(config, "w") as file:
            file.write(text)
        os.chmod(config, 0o644)
        world.beside("haproxy", "-db", "-f", config, ready=public)

        trust = ssl.create_default_context(cafile=world.path("cert"))
        stop, asked = threading.Event(), []

        def ask(key, is_kept):
            connection = None
            while not stop.wait(1.2):
                began = time.monotonic()
                try:
                    connection = connection or http.client.HTTPSConnection("localhost", public, timeout=10, context=trust)
                    connection.request("GET", "/v1/account", headers={"Authorization": f"Bearer {key}"})
                    response = connection.getresponse()
                    said = response.status, response.read()[:200]
                except (OSError, http.client.HTTPException) as error:
                    said, connection = (None, repr(error)), None
                asked.append((began, time.monotonic() - began, *said))
                if connection and not is_kept:
                    connection.close()
                    connection = None

        until("both processes are ready", lambda: answered(public, trust))
        customers = [threading.Thread(target=ask, args=(key, at % 2 == 0)) for at, key in enumerate(KEYS)]
        for customer in customers:
            customer.start()
        time.sleep(3)
        for at in range(2):
            processes[at].end()
            processes[at] = start(at)
            time.sleep(4)
        replaced, most = len(asked), max(took for _, took, *_ in asked)
        # A process that hangs keeps what it has, and after two checks gets no more.
        hung = time.monotonic()
        processes[0].process.send_signal(signal.SIGSTOP)
        time.sleep(14)
        processes[0].process.send_signal(signal.SIGCONT)
        stop.set()
        for customer in customers:
            customer.join()
        for process in processes:
            process.end()
        wrong = [each for each in asked if each[2] != 200 and not hung - 1 < each[0] < hung + 5]
        assert not wrong, wrong[:5]
        assert any(began > hung + 5 for began, *_ in asked) and replaced > 20, len(asked)
    print(f"both processes replaced: {replaced} requests over TLS, none refused, {most:.1f} s at most")


def answered(public, trust):
    connection = http.client.HTTPSConnection("localhost", public, timeout=2, context=trust)
    try:
        connection.request("GET", "/v1/account")
        return connection.getresponse().status == 401
    except OSError:
        return False
    finally:
        connection.close()


main(os.path.abspath(sys.argv[1]))
