"""A service of the REST API, in one file, with Python's standard library alone: python3 service.py KEYS.json [PORT].

It shares no code with the crate. `POST /calls` on the second port, which it prints too, records a call.
"""
import base64, datetime, hashlib, hmac, http.server, json, os, re, socket, sys, threading, time, types
from fractions import Fraction
from urllib.parse import unquote_to_bytes

STATUS = {
    "invalid_parameter": (400, "invalid_request"), "invalid_cursor": (400, "invalid_request"),
    "invalid_credentials": (401, "authentication_error"), "subscription_inactive": (402, "permission_error"),
    "insufficient_scope": (403, "permission_error"), "plan_upgrade_required": (403, "permission_error"),
    "account_closed": (403, "permission_error"), "resource_not_found": (404, "invalid_request"),
    "method_not_allowed": (405, "invalid_request"), "rate_limit_exceeded": (429, "rate_limit_error"),
    "internal_error": (500, "api_error"),
}
SCOPES = {"account only": {"account:read"}, "calls only": {"calls:read"}, "none": set()}
TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?([Zz]|([+-])(\d\d):(\d\d))", re.ASCII)


class Refused(Exception):
    def __init__(self, code, message="refused", **headers):
        self.code, self.message, self.headers = code, message, headers


def instant(text):
    """Reads RFC 3339 as exact seconds since 1970, or raises ValueError."""
    found = TIME.fullmatch(text)
    if not found:
        raise ValueError("a space for +: write %2B" if " " in text else "not RFC 3339")
    year, month, day, hour, minute, second = map(int, found.groups()[:6])
    leap = second == 60
    at = datetime.datetime(year or 2000, month, day, hour, minute, 59 if leap else second)
    seconds = (at - datetime.datetime(1970, 1, 1)) // datetime.timedelta(seconds=1)
    if found[9]:
        if int(found[10]) > 23 or int(found[11]) > 59:
            raise ValueError("an offset that is none")
        seconds -= (int(found[10]) * 60 + int(found[11])) * (60 if found[9] == "+" else -60)
    if leap:
        if seconds % 86400 != 86399:
            raise ValueError("a second 60 that is none")
        return seconds + Fraction(999999999, 10**9)
    return seconds + Fraction(int((found[7] or "").ljust(9, "0")), 10**9)


class Service:
    quotas = {"account": 60, "calls": 600}
    most, default = 100, 50
    # Of HTTP: seconds for a head, threads, bytes of a body that are read for nothing, one request a connection.
    patience, threads, unread, closes = 10, 2000, 2**20, False

    def __init__(self, accounts):
        self.secret, self.lock, self.used = os.urandom(32), threading.Lock(), {}
        self.keys, self.lists = {}, {}
        for account in accounts:
            self.lists[account["id"], True] = list(account.get("calls", []))
            self.lists[account["id"], False] = list(account.get("test_calls", []))
            for key in account["keys"]:
                self.keys[key["secret"]] = (account, key)
        self.first = accounts[0]["id"]

    # What a request goes through, in this order.

    def answer(self, request):
        self.check_host(request)
        operation, call_id = self.route(request)
        self.check_method(request)
        account, key = self.authenticate(request)
        self.check_quota(key, operation)
        self.check_account(account)
        self.check_scope(key, operation, request)
        live = key.get("state") != "test"
        if operation == "account":
            return self.account(account, live)
        if call_id is not None:
            return self.call(account, live, call_id)
        return self.list(account, live, self.parameters(request.query))

    def check_host(self, request):
        hosts = request.hosts
        if not hosts and request.version == "HTTP/1.0":
            return
        if len(hosts) != 1 or not re.fullmatch(r"([A-Za-z0-9._~-]+|\[[0-9a-fA-F:.]+\])(:\d*)?", hosts[0]):
            raise Refused("invalid_parameter", "Host is missing, repeated or malformed")

    def route(self, request):
        parts = request.path.split("/")
        if parts == ["", "v1", "account"]:
            return "account", None
        if parts == ["", "v1", "calls"]:
            return "calls", None
        if len(parts) == 4 and parts[:3] == ["", "v1", "calls"] and parts[3]:
            return "calls", parts[3]
        raise Refused("resource_not_found")

    def check_method(self, request):
        if request.method not in ("GET", "HEAD"):
            raise Refused("method_not_allowed", Allow="GET, HEAD")

    def authenticate(self, request):
        given = request.authorizations
        found = re.fullmatch(r"(?i:bearer) +([\x21-\x7e]+)", given[0]) if len(given) == 1 else None
        account, key = self.keys.get(found[1], (None, {})) if found else (None, {})
        if account is None or not self.is_usable(key):
            raise self.unusable(key)
        return account, key

    def is_usable(self, key):
        return key.get("state") not in ("expired", "revoked")

    def unusable(self, key):
        return Refused("invalid_credentials", **{"WWW-Authenticate": "Bearer"})

    def bucket(self, key, operation):
        return key["secret"], operation

    def check_quota(self, key, operation):
        with self.lock:
            now, used = time.monotonic(), self.used.setdefault(self.bucket(key, operation), [])
            while used and used[0] <= now - 60:
                used.pop(0)
            if len(used) >= self.quotas[operation]:
                raise self.limited(used, now)
            used.append(now)

    def limited(self, used, now):
        return Refused("rate_limit_exceeded", **{"Retry-After": str(max(1, -int(-(used[0] + 60 - now) // 1)))})

    def check_account(self, account):
        if account.get("closing"):
            raise Refused("account_closed")
        if not account.get("subscription_active", True):
            raise Refused("subscription_inactive")
        if account.get("plan") == "none":
            raise Refused("plan_upgrade_required")

    def check_scope(self, key, operation, request):
        if operation + ":read" not in SCOPES.get(key.get("state"), {"account:read", "calls:read"}):
            raise Refused("insufficient_scope")

    # The three operations.

    def account(self, account, live):
        fields = {name: account.get(name) for name in ("id", "business_name", "timezone")}
        return {**fields, "livemode": live}

    def call(self, account, live, raw):
        try:
            if re.search(r"%(?![0-9A-Fa-f]{2})", raw):
                raise ValueError
            call_id = unquote_to_bytes(raw).decode()
            if len(call_id.encode()) > 255:
                raise ValueError
        except ValueError:
            raise Refused("invalid_parameter", "call_id is malformed") from None
        for call in self.lists[account["id"], live]:
            if call["id"] == call_id:
                return call
        raise self.missing(call_id)

    def missing(self, call_id):
        return Refused("resource_not_found")

    def list(self, account, live, given):
        bounds = {name: given.get(name) for name in ("created_after", "created_before")}
        position = None
        if "cursor" in given:
            position, bounds = self.open(given["cursor"], account, live, bounds)
        rows = [call for call in self.lists[account["id"], live] if self.selects(bounds, call)]
        rows.sort(key=self.order, reverse=True)
        if position is not None:
            rows = [call for call in rows if self.order(call) < position]
        limit = int(given.get("limit", self.default))
        page, more = rows[:limit], len(rows) > limit
        cursor = self.seal(account, live, bounds, page[-1]) if more else None
        return {"data": page, "next_cursor": cursor, "has_more": more}

    def order(self, call):
        return instant(call["started_at"]), call["id"].encode()

    def selects(self, bounds, call):
        at = instant(call["created_at"])
        after, before = bounds["created_after"], bounds["created_before"]
        return (after is None or instant(after) <= at) and (before is None or at < instant(before))

    def parameters(self, query):
        given = {}
        for part in query.split("&") if query else []:
            name, _, value = part.partition("=")
            try:
                name, value = (unquote_to_bytes(text.replace("+", " ")).decode() for text in (name, value))
            except ValueError:
                raise Refused("invalid_parameter", f"{name} is not UTF-8") from None
            self.take(given, name, value)
        self.check_bounds(given)
        return given

    def take(self, given, name, value):
        if name not in ("limit", "cursor", "created_after", "created_before"):
            raise Refused("invalid_parameter", f"{name} is unknown")
        if name in given:
            raise Refused("invalid_parameter", f"{name} is repeated")
        given[name] = self.read(name, value)

    def read(self, name, value):
        if name == "limit":
            if not re.fullmatch(r"[1-9][0-9]*", value, re.ASCII) or len(value) > 9 or int(value) > self.most:
                raise Refused("invalid_parameter", f"limit is not a number from 1 to {self.most}")
        if name.startswith("created"):
            try:
                instant(value)
            except ValueError as error:
                raise Refused("invalid_parameter", f"{name}: {error}") from None
        return value

    def check_bounds(self, given):
        after, before = given.get("created_after"), given.get("created_before")
        if after and before and instant(after) > instant(before):
            raise Refused("invalid_parameter", "created_before is earlier than created_after")

    # Cursors: the position and the filters under a MAC, bound to the account and the mode.

    def seal(self, account, live, bounds, last):
        body = json.dumps([last["started_at"], last["id"], bounds["created_after"], bounds["created_before"]]).encode()
        return base64.urlsafe_b64encode(self.mac(body, account, live) + body).decode().rstrip("=")

    def mac(self, body, account, live):
        return hmac.new(self.secret, self.bound_to(account, live) + body, hashlib.sha256).digest()

    def bound_to(self, account, live):
        return f"{account['id']} {live} ".encode()

    def open(self, text, account, live, asked):
        try:
            sealed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
            if base64.urlsafe_b64encode(sealed).decode().rstrip("=") != text:
                raise ValueError
            body = sealed[32:]
            if not hmac.compare_digest(self.mac(body, account, live), sealed[:32]):
                raise ValueError
        except ValueError:
            raise Refused("invalid_cursor") from None
        started_at, call_id, after, before = json.loads(body)
        bounds = {"created_after": after, "created_before": before}
        self.check_filters(bounds, asked)
        return (instant(started_at), call_id.encode()), bounds

    def check_filters(self, bounds, asked):
        def differs(name):
            return bounds[name] is None or instant(bounds[name]) != instant(asked[name])
        if any(asked[name] is not None and differs(name) for name in bounds):
            raise Refused("invalid_cursor")

    # What every answer has.

    def error(self, refused, request_id):
        error = {"type": STATUS[refused.code][1], "code": refused.code, "message": refused.message}
        return {"error": {**error, "request_id": request_id}}

    def status(self, code):
        return STATUS[code][0]

    def request_id(self, request):
        return "req_" + os.urandom(12).hex()

    def length(self, body):
        return {"Content-Length": str(len(body))}

    def headers(self, request_id):
        return {"Content-Type": "application/json", "X-Request-Id": request_id, "Cache-Control": "no-store"}

    def respond(self, request):
        request_id, status, more = self.request_id(request), 200, {}
        try:
            body = self.answer(request)
        except Refused as refused:
            status, more, body = self.status(refused.code), refused.headers, self.error(refused, request_id)
        return status, {**self.headers(request_id), **more}, json.dumps(body, ensure_ascii=False).encode()

    def malformed(self, code):
        """Returns the status for what is not HTTP."""
        return 400 if code >= 500 else code

    def is_cut(self, last_line):
        return last_line not in (b"\r\n", b"\n")

    def may_answer(self, request):
        return True

    def add_call(self):
        now = datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z")
        last = self.lists[self.first, True][-1]
        call = {**last, "id": "call_" + os.urandom(8).hex(), "started_at": now, "created_at": now}
        self.lists[self.first, True].append(call)


def handler(service):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version, timeout = "HTTP/1.1", 10

        def handle_one_request(self):
            # One time for the whole head, however slowly it comes.
            deadline = threading.Timer(service.patience, lambda: self.connection.shutdown(socket.SHUT_RDWR))
            deadline.daemon = True
            deadline.start()
            self.deadline = deadline
            try:
                super().handle_one_request()
            except OSError:
                self.close_connection = True
            finally:
                deadline.cancel()

        def parse_request(self):
            """Refuses a head that the other side cut, and the form of a request before HTTP/1.0."""
            stream, last = self.rfile, [b""]

            def readline(*size):
                last[0] = stream.readline(*size)
                return last[0]

            self.rfile = types.SimpleNamespace(readline=readline)
            try:
                parsed = super().parse_request()
            finally:
                self.rfile = stream
            self.deadline.cancel()
            if parsed and service.is_cut(last[0]):
                self.send_error(400)
                return False
            return parsed

        def respond(self):
            path, _, self.query = self.path.partition("?")
            self.method, self.path, self.version = self.command, path, self.request_version
            self.hosts = self.headers.get_all("Host", [])
            self.authorizations = self.headers.get_all("Authorization", [])
            if not service.may_answer(self):
                self.close_connection = True
                return
            status, headers, body = service.respond(self)
            self.close_connection |= service.closes
            self.send_response(status)
            for name, value in {**headers, **service.length(body)}.items():
                self.send_header(name, value)
            has_body = "Content-Length" in self.headers or "Transfer-Encoding" in self.headers
            if has_body:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(b"" if self.method == "HEAD" else body)
            if has_body:
                self.linger()

        def linger(self):
            """Closes so that the answer is not lost to a reset: reads a second more, up to 1 MiB."""
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(1)
            left = service.unread
            try:
                while left > 0 and (read := len(self.connection.recv(65536))):
                    left -= read
            except OSError:
                pass

        def send_error(self, code, *_):
            # Not HTTP: what the library answers has no envelope.
            self.close_connection, code = True, service.malformed(code)
            self.wfile.write(f"HTTP/1.1 {code} Refused\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())

        def log_message(self, *_):
            pass

    for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"):
        setattr(Handler, "do_" + method, Handler.respond)
    return Handler


class Server(http.server.ThreadingHTTPServer):
    request_queue_size, daemon_threads, threads = 512, True, 2000

    def verify_request(self, *_):
        return threading.active_count() < self.threads

    def handle_error(self, *_):
        pass


def main(kind=Service):
    with open(sys.argv[1]) as file:
        service = kind(json.load(file)["accounts"])
    server = Server(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0), handler(service))

    server.threads = service.threads

    class Recorder(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            service.add_call()
            self.send_response(201)
            self.end_headers()

        def log_message(self, *_):
            pass

    recorder = Server(("127.0.0.1", 0), Recorder)
    threading.Thread(target=recorder.serve_forever, daemon=True).start()
    print(json.dumps({"api": f"http://127.0.0.1:{server.server_port}",
                      "add_call": f"http://127.0.0.1:{recorder.server_port}/calls"}), flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
