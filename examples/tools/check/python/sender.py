"""A sender of webhooks with the kit's control plane, in one file, with Python's standard library alone: python3 sender.py

It shares no code with the crate. It keeps everything in memory, and has a thread for each delivery.
"""
import datetime, hashlib, hmac, http.client, http.server, ipaddress, json, os, re, threading, time
from urllib.parse import parse_qs, urlsplit

WAITS = [10, 60, 600, 3600, 21600]


class Endpoint:
    def __init__(self, url, number):
        self.id, self.url, self.secret = f"we_{number}", url, "whsec_" + os.urandom(16).hex()
        self.is_active, self.failures, self.life = True, 0, 0


class Delivery:
    def __init__(self, number, endpoint, event):
        self.id, self.endpoint, self.event, self.status = f"dlv_{number}", endpoint, event, "pending"
        self.life, self.in_flight = endpoint.life, threading.Lock()


class Sender:
    most_failures, attempts, timeout = 20, 6, 10

    def __init__(self, scale=1.0):
        self.scale, self.is_stopped = scale, threading.Event()
        self.lock, self.endpoints, self.deliveries = threading.RLock(), {}, {}

    # The verbs.

    def add_endpoint(self, url):
        if not self.may_be_called(url):
            return None
        endpoint = Endpoint(url, len(self.endpoints))
        self.endpoints[endpoint.id] = endpoint
        return endpoint

    def emit(self, kind, data):
        event = self.event(kind, data)
        body = json.dumps(event, ensure_ascii=False).encode()
        with self.lock:
            for endpoint in self.endpoints.values():
                delivery = Delivery(len(self.deliveries), endpoint, (event["id"], kind, body))
                self.deliveries[delivery.id] = delivery
                if not endpoint.is_active:
                    delivery.status = "skipped"
                    continue
                self.start(delivery)
        return event["id"]

    def event(self, kind, data):
        return {
            "id": "evt_" + os.urandom(12).hex(), "type": kind,
            "created_at": datetime.datetime.now(datetime.timezone.utc).isoformat(),
            "api_version": "2026-01-15", "account_id": "acct_1",
            "origin": {"source": "voice", "credential_id": None, "idempotency_key": None}, "data": data,
        }

    def start(self, delivery):
        threading.Thread(target=self.deliver, args=(delivery,), daemon=True).start()

    def enable(self, endpoint):
        with self.lock:
            endpoint.is_active, endpoint.failures, endpoint.life = True, 0, endpoint.life + 1

    def disable(self, endpoint):
        with self.lock:
            endpoint.is_active = False

    def pause(self, endpoint):
        self.disable(endpoint)

    def redeliver(self, delivery):
        with self.lock:
            if delivery.status == "pending" or not delivery.endpoint.is_active:
                return False
            delivery.status, delivery.life = "pending", delivery.endpoint.life
        threading.Thread(target=self.once, args=(delivery,), daemon=True).start()
        return True

    def stop(self):
        """Returns once no attempt is being made, and none begins any more."""
        self.is_stopped.set()
        for delivery in list(self.deliveries.values()):
            with delivery.in_flight:
                pass

    # A delivery.

    def deliver(self, delivery):
        for number in range(1, self.attempts + 1):
            with self.lock:
                if self.is_stopped.is_set():
                    return
                if self.is_parked(delivery):
                    delivery.status = "parked"
                    return
            status = self.attempt(delivery, number)
            if self.settled(delivery, status):
                return
            if number < self.attempts:
                self.is_stopped.wait(self.wait(number) * self.scale)
        self.end_failed(delivery)

    def is_parked(self, delivery):
        return not delivery.endpoint.is_active or delivery.life != delivery.endpoint.life

    def wait(self, number):
        return WAITS[number - 1]

    def settled(self, delivery, status):
        """Ends a delivery by the answer to an attempt, if it does."""
        with self.lock:
            if self.is_success(status):
                delivery.status, delivery.endpoint.failures = "delivered", 0
            elif self.is_gone(status):
                delivery.status = "gone"
                self.disable(delivery.endpoint)
            return delivery.status != "pending"

    def is_success(self, status):
        return status is not None and 200 <= status < 300

    def is_gone(self, status):
        return status == 410

    def end_failed(self, delivery):
        with self.lock:
            delivery.status = "failed"
            if delivery.life == delivery.endpoint.life:
                self.count(delivery.endpoint)

    def count(self, endpoint):
        endpoint.failures += 1
        if endpoint.failures >= self.most_failures:
            self.disable(endpoint)

    def once(self, delivery):
        """One attempt by hand, which counts only if it succeeds."""
        status = self.attempt(delivery, 1)
        if not self.settled(delivery, status):
            delivery.status = "failed"

    # An attempt.

    def attempt(self, delivery, number):
        """Posts, and returns the status of the answer; None if there was none in time."""
        with delivery.in_flight:
            if self.is_stopped.is_set():
                return None
            return self.post(delivery.endpoint.url, *self.request(delivery, number))

    def request(self, delivery, number):
        event_id, kind, _ = delivery.event
        body = self.body(delivery, number)
        headers = {
            "Content-Type": "application/json", "User-Agent": "Service-Webhooks/1.0",
            "X-Service-Signature": self.signature(delivery, number, body),
            "X-Service-Event": kind, "X-Service-Delivery": event_id,
        }
        return headers, body

    def body(self, delivery, number):
        return delivery.event[2]

    def signature(self, delivery, number, body):
        t = str(self.now())
        signed = self.key(delivery.endpoint.secret), t.encode() + b"." + body
        return f"t={t},v1={hmac.new(*signed, hashlib.sha256).hexdigest()}"

    def now(self):
        return int(time.time())

    def key(self, secret):
        return secret.encode()

    def post(self, url, headers, body):
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=self.timeout)
        # One clock for the whole attempt up to the head of the answer, however slowly it comes.
        try:
            connection.connect()
            deadline = threading.Timer(self.timeout, connection.sock.shutdown, [2])
            deadline.daemon = True
            deadline.start()
            try:
                connection.request("POST", parts.path or "/", body, headers)
                return self.answered(connection.getresponse())
            finally:
                deadline.cancel()
        except (OSError, http.client.HTTPException) as error:
            return self.broken(error)
        finally:
            connection.close()

    def broken(self, error):
        return None

    def answered(self, response):
        return response.status

    # What may be called: public addresses by https. The kit's own endpoints are on this machine.

    def may_be_called(self, url):
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname or "", parts.port
        except ValueError:
            return False
        if parts.username is not None or "#" in url:
            return False
        is_kit = parts.scheme == "http" and host == "127.0.0.1"
        return is_kit or parts.scheme == "https" and self.is_public(host)

    def is_public(self, host):
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            last = host.rstrip(".").split(".")[-1]
            is_disguised = re.fullmatch(r"\d+|0x[0-9a-f]*", last)
            return "." in host and not is_disguised and last not in ("internal", "local", "localhost")
        inner = getattr(address, "ipv4_mapped", None) or address
        if address in ipaddress.ip_network("64:ff9b::/96"):
            return False
        return inner.is_global and not inner.is_multicast


class Control(http.server.BaseHTTPRequestHandler):
    kind, sender = Sender, None

    def do_GET(self):
        of = parse_qs(urlsplit(self.path).query)["endpoint"][0]
        rows = [{"id": one.id, "event_id": one.event[0], "status": one.status}
                for one in list(self.sender.deliveries.values()) if one.endpoint.id == of]
        self.answer(200, {"data": rows[::-1]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        sender, words = self.sender, self.path.strip("/").split("/")
        if words == ["clock"]:
            if sender:
                sender.is_stopped.set()
            type(self).sender = self.kind(body["scale"])
        elif words == ["endpoints"]:
            endpoint = sender.add_endpoint(body["url"])
            if endpoint is None:
                return self.answer(400, {"error": "this URL must not be called"})
            return self.answer(201, {"id": endpoint.id, "secret": endpoint.secret})
        elif words == ["events"]:
            return self.answer(201, {"id": sender.emit(body["type"], body["data"])})
        elif words == ["stop"]:
            sender.stop()
        elif words[2] == "enable":
            sender.enable(sender.endpoints[words[1]])
        elif words[2] == "pause":
            sender.pause(sender.endpoints[words[1]])
        elif not sender.redeliver(sender.deliveries[words[1]]):
            return self.answer(409, {"error": "it is pending, or its endpoint is disabled"})
        return self.answer(200, {})

    def answer(self, status, body):
        self.send_response(status)
        text = json.dumps(body).encode()
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def main(kind=Sender):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("OfKind", (Control,), {"kind": kind}))
    print(json.dumps({"control": f"http://127.0.0.1:{server.server_port}"}), flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
