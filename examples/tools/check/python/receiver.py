"""A receiver of webhooks, in one file, with Python's standard library alone: python3 receiver.py STORED [PORT]

It shares no code with the crate. The variable WEBHOOK_SECRET has the secrets, each on a line; STORED is the file to
which it adds the id of each event that is stored.
"""
import hashlib, hmac, http.server, json, os, re, sys, threading, time


class Receiver:
    tolerance = 300

    def __init__(self, stored, secrets):
        self.stored, self.secrets = open(stored, "a"), secrets
        self.lock, self.seen = threading.Lock(), set()

    def answer(self, headers, body):
        """Returns the status of the answer."""
        if not self.is_genuine(self.signatures(headers), body):
            return self.refusal()
        try:
            event = json.loads(body)
        except ValueError:
            event = {}
        self.store(event, headers)
        return 204

    def refusal(self):
        return 400

    def signatures(self, headers):
        return headers.get_all("X-Service-Signature", [])

    def is_genuine(self, values, body):
        parts = [part.strip().partition("=") for part in values[0].split(",")] if len(values) == 1 else []
        times = [value for name, _, value in parts if name == "t"]
        if len(times) != 1 or not re.fullmatch(r"[0-9]{1,19}", times[0]):
            return False
        given = [value for name, _, value in parts if name == "v1"]
        signed = self.prefix(times[0]) + self.signed(body)
        digests = [hmac.new(self.key(secret), signed, hashlib.sha256).hexdigest() for secret in self.secrets]
        return self.is_one_of(given, digests) and self.is_timely(int(times[0]))

    def prefix(self, t):
        return t.encode() + b"."

    def signed(self, body):
        return body

    def key(self, secret):
        return secret.encode()

    def is_one_of(self, given, digests):
        return any(self.is_equal(one, digest) for one in given for digest in digests)

    def is_equal(self, given, digest):
        return hmac.compare_digest(given.encode(), digest.encode())

    def is_timely(self, t):
        return abs(time.time() - t) <= self.tolerance

    def id_of(self, event, headers):
        return event.get("id", "")

    def store(self, event, headers):
        with self.lock:
            if self.id_of(event, headers) in self.seen:
                return
            self.seen.add(self.id_of(event, headers))
            self.write(event)

    def write(self, event):
        self.stored.write(event.get("id", "") + "\n")
        self.stored.flush()


def handler(receiver):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            status = receiver.answer(self.headers, self.body())
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def body(self):
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

        def log_message(self, *_):
            pass

    return Handler


class Server(http.server.ThreadingHTTPServer):
    request_queue_size, daemon_threads = 512, True


def main(kind=Receiver):
    receiver = kind(sys.argv[1], os.environ["WEBHOOK_SECRET"].splitlines())
    server = Server(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0), handler(receiver))
    print(json.dumps({"url": f"http://127.0.0.1:{server.server_port}/hooks"}), flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
