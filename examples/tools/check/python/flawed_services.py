"""Services with one flaw each, for `check service`: python3 flawed_services.py FLAW KEYS.json [PORT]."""
import re, select, socket, sys, threading
import service
from service import Refused, Service, instant


class LimitClamped(Service):  # list.limit_range
    def read(self, name, value):
        too_many = name == "limit" and value.isdecimal() and int(value) > self.most
        return super().read(name, str(self.most) if too_many else value)


class AfterExcluded(Service):  # filters.after_is_included
    def selects(self, bounds, call):
        return super().selects(bounds, call) and call["created_at"] != bounds["created_after"]


class BeforeIncluded(Service):  # filters.before_is_not
    def selects(self, bounds, call):
        is_at = call["created_at"] == bounds["created_before"]
        return is_at or super().selects(bounds, call)


class TiesReversed(Service):  # list.ties
    def order(self, call):
        at, call_id = super().order(call)
        return at, [-byte for byte in call_id]

    def open(self, *of):
        (at, call_id), bounds = super().open(*of)
        return (at, [-byte for byte in call_id]), bounds


class CursorOfAnyAccount(Service):  # cursors.of_others
    def bound_to(self, account, live):
        return str(live).encode()


class FiltersForgotten(Service):  # filters.on_all_pages
    def open(self, text, account, live, asked):
        return super().open(text, account, live, asked)[0], asked


class FiltersMayChange(Service):  # cursors.of_other_filters
    def check_filters(self, bounds, asked):
        pass


class ForeignCallTold(Service):  # call.foreign
    def missing(self, call_id):
        exists = any(call["id"] == call_id for (_, live), calls in self.lists.items() if live for call in calls)
        return Refused("resource_not_found", "of another account" if exists else "refused")


class ExpiredTold(Service):  # keys.alike
    def unusable(self, key):
        refused = super().unusable(key)
        refused.message = "the key has expired" if key.get("state") == "expired" else refused.message
        return refused


class Cached(Service):  # form.no_store
    def headers(self, request_id):
        return {**super().headers(request_id), "Cache-Control": "private, max-age=60"}


class ScopeAfterParameters(Service):  # order.scope_then_parameters
    def check_scope(self, key, operation, request):
        if request.path == "/v1/calls":
            self.parameters(request.query)
        super().check_scope(key, operation, request)


class RefusalsUncounted(Service):  # quotas.refusals_count
    def check_scope(self, key, operation, request):
        try:
            super().check_scope(key, operation, request)
        except Refused:
            self.used[self.bucket(key, operation)].pop()
            raise


class KeyInUrl(Service):  # keys.in_url
    def authenticate(self, request):
        name, _, key = request.query.partition("=")
        if name == "api_key" and not request.authorizations:
            request.authorizations = ["Bearer " + key]
        return super().authenticate(request)


class OnePageMore(Service):  # list.last_page
    def list(self, account, live, given):
        page = super().list(account, live, given)
        if len(page["data"]) == int(given.get("limit", self.default)) and not page["has_more"]:
            cursor = self.seal(account, live, {"created_after": None, "created_before": None}, page["data"][-1])
            page.update(has_more=True, next_cursor=cursor)
        return page


# The account and the single call.


class FieldMore(Service):  # account.fields
    def account(self, account, live):
        return {**super().account(account, live), "plan": account.get("plan")}


class NameOfAnother(Service):  # account.values
    def account(self, account, live):
        return {**super().account(account, live), "business_name": "Another"}


class AlwaysLive(Service):  # account.livemode
    def account(self, account, live):
        return super().account(account, True)


class StrictAccount(Service):  # account.parameters
    def check_scope(self, key, operation, request):
        super().check_scope(key, operation, request)
        if operation == "account" and request.query:
            raise Refused("invalid_parameter", "unknown")


class NoHead(Service):  # head.as_get
    def check_method(self, request):
        if request.method == "HEAD":
            raise Refused("method_not_allowed", Allow="GET, HEAD")
        super().check_method(request)


class Altered(Service):
    """Alters each call once, when it is loaded."""

    def __init__(self, accounts):
        super().__init__(accounts)
        self.lists = {of: [self.altered(call) for call in calls] for of, calls in self.lists.items()}


class TranscriptShown(Altered):  # call.fields
    def altered(self, call):
        return {**call, "transcript": ""}


class ZoneInNumbers(Altered):  # call.times
    def altered(self, call):
        return {**call, "ended_at": call["ended_at"] and call["ended_at"].replace("Z", "+00:00")}


class SummaryCut(Altered):  # call.as_given
    def altered(self, call):
        return {**call, "summary": call["summary"] and call["summary"][:9]}


class SummaryNotListed(Service):  # call.as_listed
    def list(self, account, live, given):
        page = super().list(account, live, given)
        return {**page, "data": [{**call, "summary": None} for call in page["data"]]}


class EscapesKept(Service):  # call.encoded
    def call(self, account, live, raw):
        found = super().call(account, live, raw)
        if "%" in raw:
            raise self.missing(raw)
        return found


class StrictCall(Service):  # call.parameters
    def check_scope(self, key, operation, request):
        super().check_scope(key, operation, request)
        if request.path.startswith("/v1/calls/") and request.query:
            raise Refused("invalid_parameter", "unknown")


class BadIdMissing(Service):  # call.bad_id
    def call(self, account, live, raw):
        try:
            return super().call(account, live, raw)
        except Refused:
            raise self.missing(raw) from None


class ShortIds(Service):  # call.missing
    def call(self, account, live, raw):
        if len(raw) > 200:
            raise Refused("invalid_parameter", "call_id is too long")
        return super().call(account, live, raw)


class ModesTogether(Service):  # call.other_mode
    def call(self, account, live, raw):
        try:
            return super().call(account, live, raw)
        except Refused:
            return super().call(account, not live, raw)


class SlashAtTheEnd(Service):  # paths.unknown
    def route(self, request):
        request.path = request.path.rstrip("/") or "/"
        return super().route(request)


class OptionsAnswered(Service):  # methods.others
    def check_method(self, request):
        if request.method == "OPTIONS":
            request.method = "GET"
        super().check_method(request)


# The list.


class SwapsTwo(Service):  # list.order
    def list(self, account, live, given):
        page = super().list(account, live, given)
        if len(page["data"]) > 90:
            page["data"][0], page["data"][2] = page["data"][2], page["data"][0]
        return page


class DefaultOf25(Service):  # list.default
    default = 25


class NinetyNine(Service):  # list.limits
    def list(self, account, live, given):
        return super().list(account, live, {**given, "limit": "99"} if given.get("limit") == "100" else given)


class LooseNumbers(Service):  # list.limit_grammar
    def read(self, name, value):
        return super().read(name, value.strip(" +") if name == "limit" else value)


class UnknownIgnored(Service):  # list.unknown
    def take(self, given, name, value):
        if name in ("limit", "cursor", "created_after", "created_before"):
            super().take(given, name, value)


class LastOfTwo(Service):  # list.repeated
    def take(self, given, name, value):
        given.pop(name, None)
        super().take(given, name, value)


class FlagIsNumber(Service):  # list.form
    def list(self, account, live, given):
        page = super().list(account, live, given)
        return {**page, "has_more": 1} if page["has_more"] else page


class LosesOne(Service):  # list.walk
    def list(self, account, live, given):
        if given.get("limit") != "1" or "cursor" not in given:
            return super().list(account, live, given)
        page = super().list(account, live, {**given, "limit": "2"})
        return {**page, "data": page["data"][1:]}


class Offsets(Service):  # list.walk_while_added
    """A page begins at a number of calls, so a call that arrives shows the last one again."""

    def __init__(self, accounts):
        super().__init__(accounts)
        self.counts = {}

    def seal(self, account, live, bounds, last):
        cursor = super().seal(account, live, bounds, last)
        self.counts[cursor] = len(self.lists[account["id"], live])
        return cursor

    def open(self, text, account, live, asked):
        (at, call_id), bounds = super().open(text, account, live, asked)
        return (at, call_id + b"~" * (len(self.lists[account["id"], live]) > self.counts[text])), bounds


class TestSeesLive(Service):  # list.own
    def __init__(self, accounts):
        super().__init__(accounts)
        self.lists[self.first, False] += self.lists[self.first, True][:1]


class LongSpanCut(Service):  # filters.select, filters.on_all_pages
    def selects(self, bounds, call):
        after, before = bounds["created_after"], bounds["created_before"]
        is_late = after and before and instant(call["created_at"]) > instant(after) + 3600
        return super().selects(bounds, call) and not is_late


class Microseconds(Service):  # filters.precision
    def selects(self, bounds, call):
        at, after, before = (text and instant(text) * 10**6 for text in (
            call["created_at"], bounds["created_after"], bounds["created_before"]))
        return (after is None or after // 1 <= at) and (before is None or at < -(-before // 1))


class CapitalsAlone(Service):  # filters.texts
    def read(self, name, value):
        if name.startswith("created") and re.search("[tz]", value):
            raise Refused("invalid_parameter", f"{name} is not RFC 3339")
        return super().read(name, value)


class DatesTaken(Service):  # filters.bad_texts
    def read(self, name, value):
        is_date = name.startswith("created") and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value)
        return super().read(name, value + "T00:00:00Z" if is_date else value)


class PlusUnexplained(Service):  # filters.plus
    def read(self, name, value):
        try:
            return super().read(name, value)
        except Refused:
            raise Refused("invalid_parameter", name) from None


class BoundsMayCross(Service):  # filters.wrong_order
    def check_bounds(self, given):
        pass


class EqualBoundsRefused(Service):  # filters.equal
    def check_bounds(self, given):
        super().check_bounds(given)
        if "created_after" in given and given["created_after"] == given.get("created_before"):
            raise Refused("invalid_parameter", "created_before is created_after")


# Cursors.


class Remembers(Service):
    """Takes for a cursor of its own whatever is like one that it has made."""

    def __init__(self, accounts):
        super().__init__(accounts)
        self.made = []

    def seal(self, account, live, bounds, last):
        cursor = super().seal(account, live, bounds, last)
        self.made.append(cursor)
        return cursor

    def open(self, text, account, live, asked):
        near = next((cursor for cursor in self.made if self.is_near(text, cursor)), text)
        return super().open(near, account, live, asked)


class FirstLettersFree(Remembers):  # cursors.altered
    def is_near(self, text, cursor):
        return text[3:] == cursor[3:]


class CutUnnoticed(Remembers):  # cursors.cut
    def is_near(self, text, cursor):
        return len(text) == len(cursor) - 1 and cursor.startswith(text)


class PaddingTaken(Remembers):  # cursors.longer
    def is_near(self, text, cursor):
        return text == cursor + "="


class LastLetterFree(Remembers):  # cursors.canonical
    def is_near(self, text, cursor):
        return len(text) == len(cursor) and text[:-1] == cursor[:-1]


class EmptyCursorTaken(Service):  # cursors.nonsense
    def take(self, given, name, value):
        if (name, value) != ("cursor", ""):
            super().take(given, name, value)


class ModeUnbound(Service):  # cursors.of_other_mode
    def bound_to(self, account, live):
        return account["id"].encode()


class Local(Service):
    """Knows the request, the account and the key of the thread."""

    def __init__(self, accounts):
        super().__init__(accounts)
        self.local = threading.local()

    def authenticate(self, request):
        account, key = super().authenticate(request)
        self.local.request, self.local.account, self.local.key = request, account, key
        return account, key


class CursorOfKey(Local):  # cursors.of_second_key
    def bound_to(self, account, live):
        return super().bound_to(account, live) + self.local.key["secret"].encode()


class FiltersOnce(Service):  # cursors.repeat_filters
    def check_filters(self, bounds, asked):
        if any(asked.values()):
            raise Refused("invalid_cursor")


class CursorOnce(Remembers):  # cursors.repeat_filters, cursors.again
    def is_near(self, text, cursor):
        return False

    def open(self, text, account, live, asked):
        if text not in self.made:
            raise Refused("invalid_cursor")
        opened = super().open(text, account, live, asked)
        self.made = [cursor for cursor in self.made if cursor != text]
        return opened


class CursorsExplained(Service):  # cursors.unlike
    def open(self, text, account, live, asked):
        try:
            return super().open(text, account, live, asked)
        except Refused:
            raise Refused("invalid_cursor", f"{len(text)} letters") from None


# Keys, scopes and the order of refusals.


class NoKeyNeeded(Service):  # keys.missing
    def authenticate(self, request):
        if request.path == "/v1/calls" and not request.authorizations:
            return next(iter(self.keys.values()))
        return super().authenticate(request)


class KeysWithoutCase(Service):  # keys.unknown
    def authenticate(self, request):
        request.authorizations = [re.sub("SERVICE_.*", lambda key: key[0].lower(), one) for one in request.authorizations]
        return super().authenticate(request)


class ExpiredTaken(Service):  # keys.expired, keys.alike
    def is_usable(self, key):
        return key.get("state") != "revoked"


class RevokedTaken(Service):  # keys.revoked, keys.alike, order.key_then_parameters
    def is_usable(self, key):
        return key.get("state") != "expired"


class FirstKeyTaken(Service):  # keys.malformed
    def authenticate(self, request):
        request.authorizations = request.authorizations[:1]
        return super().authenticate(request)


class OneScheme(Service):  # keys.scheme
    def authenticate(self, request):
        if not all(one.startswith("Bearer ") for one in request.authorizations):
            raise self.unusable({})
        return super().authenticate(request)


class KeyDecides(Local):  # keys.side_by_side
    def account(self, account, live):
        name = self.local.key["name"]
        return {**super().account(account, live), **({"business_name": None} if name == "second" else {})}


class ListAlone(Service):  # scopes.grant
    def check_scope(self, key, operation, request):
        super().check_scope(key, operation, request)
        if key["name"] == "calls only" and request.path != "/v1/calls":
            raise Refused("insufficient_scope")


class AccountForAll(Service):  # scopes.lacking
    def check_scope(self, key, operation, request):
        if operation != "account":
            super().check_scope(key, operation, request)


class KeyBeforePath(Service):  # order.path_then_key
    def route(self, request):
        try:
            return super().route(request)
        except Refused:
            self.authenticate(request)
            raise


class KeyBeforeMethod(Service):  # order.method_then_key
    def check_method(self, request):
        try:
            super().check_method(request)
        except Refused:
            self.authenticate(request)
            raise


class ParametersBeforeKey(Service):  # order.key_then_parameters
    def authenticate(self, request):
        try:
            return super().authenticate(request)
        except Refused:
            if request.path == "/v1/calls":
                self.parameters(request.query)
            raise


class SubscriptionFirst(Service):  # order.closed_first, order.account_then_scope
    def check_account(self, account):
        if not account.get("subscription_active", True):
            raise Refused("subscription_inactive")
        super().check_account(account)


class PlanFirst(Service):  # order.inactive_then_plan, order.account_then_scope
    def check_account(self, account):
        if account.get("plan") == "none" and not account.get("closing"):
            raise Refused("plan_upgrade_required")
        super().check_account(account)


class ParametersBeforePlan(Local):  # order.plan_then_parameters
    def check_account(self, account):
        if account.get("plan") == "none" and self.local.request.path == "/v1/calls":
            self.parameters(self.local.request.query)
        super().check_account(account)


class ScopeBeforeAccount(Local):  # order.account_then_scope
    def check_account(self, account):
        if self.local.key["name"] == "none":
            raise Refused("insufficient_scope")
        super().check_account(account)


class MissingBeforeScope(Local):  # order.scope_then_missing
    def check_scope(self, key, operation, request):
        try:
            self.call(self.local.account, True, request.path.removeprefix("/v1/calls/"))
        except Refused as refused:
            if refused.code == "resource_not_found" and request.path.startswith("/v1/calls/"):
                raise
        super().check_scope(key, operation, request)


class CursorBeforeLimit(Service):  # order.parameters_then_cursor
    def read(self, name, value):
        if name == "cursor" and len(value) < 20:
            raise Refused("invalid_cursor")
        return super().read(name, value)


# Rate limits.


class WaitTooLong(Service):  # quotas.account
    def limited(self, used, now):
        refused = super().limited(used, now)
        refused.headers["Retry-After"] = str(min(60, int(refused.headers["Retry-After"]) + 3))
        return refused


class LimitedCount(Service):  # quotas.account, quotas.limited_are_free
    def limited(self, used, now):
        used[:] = [now] * len(used)
        return super().limited(used, now)


class FewerCalls(Service):  # quotas.calls
    quotas = {"account": 60, "calls": 599}


class OneBucket(Service):  # quotas.apart
    def bucket(self, key, operation):
        return (key["secret"], operation) if key["name"] not in ("spare 3", "spare 4") else operation


class AccountBeforeLimit(Local):  # quotas.before_account
    def check_quota(self, key, operation):
        self.check_account(self.local.account)
        super().check_quota(key, operation)


class BadHostsCount(Service):  # quotas.badly_hosted_are_free
    def check_host(self, request):
        try:
            super().check_host(request)
        except Refused:
            if len(request.authorizations) == 1:
                _, key = self.authenticate(request)
                if key["name"] == "spare 5":
                    self.check_quota(key, "account")
            raise


# HTTP.


class FirstHost(Service):  # hosts.one
    def check_host(self, request):
        request.hosts = request.hosts[:1]
        super().check_host(request)


class HostAlways(Service):  # hosts.http_1_0
    def check_host(self, request):
        request.version = "HTTP/1.1"
        super().check_host(request)


class ShortHeads(Service):  # wire.long_head
    def check_host(self, request):
        super().check_host(request)
        if sum(map(len, request.headers.values())) > 4096:
            raise Refused("invalid_parameter", "a head of 4 KiB at most")


class FailsAtNonsense(Service):  # wire.not_http
    def malformed(self, code):
        return code


class OneRequestEach(Service):  # wire.pipelined
    closes = True


class HalfClosedIsGone(Service):  # wire.half_closed
    def may_answer(self, request):
        if request.authorizations:
            return True
        readable, _, _ = select.select([request.connection], [], [], 0.1)
        return not readable or request.connection.recv(1, socket.MSG_PEEK) != b""


class CutHeadsTaken(Service):  # wire.cut_head
    def is_cut(self, last_line):
        return False


class BodiesRefused(Service):  # wire.unread_body
    def check_host(self, request):
        super().check_host(request)
        if int(request.headers.get("Content-Length", 0)) > 100_000:
            raise Refused("invalid_parameter", "a body")


class ReadsWithoutEnd(Service):  # wire.endless_body
    unread = 2**40


class FewConnections(Service):  # wire.idle
    threads = 300


class Impatient(Service):  # wire.slow_head
    patience = 1


# The form of every answer.


class CharsetNamed(Service):  # form.type
    def headers(self, request_id):
        return {**super().headers(request_id), "Content-Type": "application/json; charset=utf-8"}


class NoLength(Service):  # form.length
    closes = True

    def length(self, body):
        return {}


class BareIds(Service):  # form.request_id
    def request_id(self, request):
        return super().request_id(request).removeprefix("req_")


class OneId(Service):  # form.request_id_once
    def request_id(self, request):
        return "req_000000000000"


class IdOfClient(Service):  # form.request_id_own
    def request_id(self, request):
        return request.headers.get("X-Request-Id") or super().request_id(request)


class OpenToBrowsers(Service):  # form.no_cors
    def headers(self, request_id):
        return {**super().headers(request_id), "Access-Control-Allow-Origin": "*"}


class MessageNull(Service):  # form.envelope
    def unusable(self, key):
        refused = super().unusable(key)
        refused.message = None
        return refused


class OtherIdInBody(Service):  # form.error_id
    def error(self, refused, request_id):
        return super().error(refused, "req_other")


class PaymentIs403(Service):  # form.status
    def status(self, code):
        return 403 if code == "subscription_inactive" else super().status(code)


class TypeOfItsOwn(Service):  # form.error_type
    def error(self, refused, request_id):
        shown = super().error(refused, request_id)
        if refused.code == "resource_not_found":
            shown["error"]["type"] = "not_found"
        return shown


class ChallengeExplained(Service):  # form.challenge
    def unusable(self, key):
        return Refused("invalid_credentials", **{"WWW-Authenticate": 'Bearer error="invalid_token"'})


class GetAlone(Service):  # form.allow
    def check_method(self, request):
        if request.method not in ("GET", "HEAD"):
            raise Refused("method_not_allowed", Allow="GET")


class RetryAfterMore(Service):  # form.retry_after
    def check_account(self, account):
        try:
            super().check_account(account)
        except Refused as refused:
            refused.headers["Retry-After"] = "60"
            raise


class KeyShown(Service):  # form.no_key
    def check_scope(self, key, operation, request):
        try:
            super().check_scope(key, operation, request)
        except Refused as refused:
            refused.message = key["secret"] + " lacks the scope"
            raise


if __name__ == "__main__":
    kind = globals()[sys.argv.pop(1)]
    service.main(kind)
