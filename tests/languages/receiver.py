"""Runs the shell commands of the guide's page on other languages against a receiver that uses verify.py.

Each command must print the status that the page says after it. Without curl or openssl this is
skipped, and listed in the file that SKIPPED names.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "src/guide/languages"))
from verify import verify  # noqa: E402

SECRET = "whsec_of-the-test"


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        genuine = verify(self.headers.get_all("X-Service-Signature"), body, [SECRET])
        self.send_response(204 if genuine else 400)
        self.end_headers()

    def log_message(self, *_):
        pass


missing = [name for name in ("bash", "curl", "openssl") if not shutil.which(name)]
if missing:
    print(line := f"skipped: the commands that check a receiver: no {', '.join(missing)}")
    with open(os.environ.get("SKIPPED", os.devnull), "a") as skipped:
        print(line, file=skipped)
    sys.exit()

page = (ROOT / "src/guide/languages.md").read_text()
[commands] = [block for block in re.findall(r"^```sh\n(.*?)^```", page, re.S | re.M) if "deliver()" in block]
expected = re.findall(r"# (\d{3})\b", commands)
server = HTTPServer(("127.0.0.1", 0), Receiver)
threading.Thread(target=server.serve_forever, daemon=True).start()
environment = {**os.environ, "URL": f"http://127.0.0.1:{server.server_port}/hooks", "WEBHOOK_SECRET": SECRET}
environment |= {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
with tempfile.TemporaryDirectory() as scratch:
    printed = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands], cwd=scratch, env=environment, check=True, timeout=60,
        capture_output=True, text=True,
    )
assert len(expected) == 11 and printed.stdout.split() == expected, (printed.stdout, expected)
print(f"{len(expected)} deliveries got the status that the page says")
