"""A receiver around verify.py: PORT, WEBHOOK_SECRET and STORED say where, with what, and into which file."""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.path.insert(0, sys.argv[1])
from verify import verify

stored, lock = open(os.environ["STORED"], "a"), threading.Lock()
seen = set()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        signatures = self.headers.get_all("X-Service-Signature")
        body = self.body()
        if not verify(signatures, body, os.environ["WEBHOOK_SECRET"].split("\n")):
            return self.answer(400)
        event = json.loads(body)
        with lock:
            if event["id"] not in seen:
                print(event["id"], event["type"], file=stored, flush=True)
                seen.add(event["id"])
        self.answer(204)

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers["Content-Length"]))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        return body

    def answer(self, status):
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_):
        pass


ThreadingHTTPServer.request_queue_size = 128
ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Receiver).serve_forever()
