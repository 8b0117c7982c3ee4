"""Services with one flaw each, for `check service`: python3 flawed_services.py FLAW KEYS.json [PORT]."""
import sys
import service
from service import Refused, Service


class LimitClamped(Service):
    def read(self, name, value):
        too_many = name == "limit" and value.isdecimal() and int(value) > self.most
        return super().read(name, str(self.most) if too_many else value)


class AfterExcluded(Service):
    def selects(self, bounds, call):
        return super().selects(bounds, call) and call["created_at"] != bounds["created_after"]


class BeforeIncluded(Service):
    def selects(self, bounds, call):
        is_at = call["created_at"] == bounds["created_before"]
        return is_at or super().selects(bounds, call)


class TiesReversed(Service):
    def order(self, call):
        at, call_id = super().order(call)
        return at, [-byte for byte in call_id]

    def open(self, *of):
        (at, call_id), bounds = super().open(*of)
        return (at, [-byte for byte in call_id]), bounds


class CursorOfAnyAccount(Service):
    def bound_to(self, account, live):
        return str(live).encode()


class FiltersForgotten(Service):
    def open(self, text, account, live, asked):
        return super().open(text, account, live, asked)[0], asked


class FiltersMayChange(Service):
    def check_filters(self, bounds, asked):
        pass


class ForeignCallTold(Service):
    def missing(self, call_id):
        exists = any(call["id"] == call_id for (_, live), calls in self.lists.items() if live for call in calls)
        return Refused("resource_not_found", "of another account" if exists else "refused")


class ExpiredTold(Service):
    def unusable(self, key):
        refused = super().unusable(key)
        refused.message = "the key has expired" if key.get("state") == "expired" else refused.message
        return refused


class Cached(Service):
    def headers(self, request_id):
        return {**super().headers(request_id), "Cache-Control": "private, max-age=60"}


class ScopeAfterParameters(Service):
    def check_scope(self, key, operation, request):
        if request.path == "/v1/calls":
            self.parameters(request.query)
        super().check_scope(key, operation, request)


class RefusalsUncounted(Service):
    def check_scope(self, key, operation, request):
        try:
            super().check_scope(key, operation, request)
        except Refused:
            self.used[self.bucket(key, operation)].pop()
            raise


class KeyInUrl(Service):
    def authenticate(self, request):
        name, _, key = request.query.partition("=")
        if name == "api_key" and not request.authorizations:
            request.authorizations = ["Bearer " + key]
        return super().authenticate(request)


class OnePageMore(Service):
    def list(self, account, live, given):
        page = super().list(account, live, given)
        if len(page["data"]) == int(given.get("limit", self.default)) and not page["has_more"]:
            cursor = self.seal(account, live, {"created_after": None, "created_before": None}, page["data"][-1])
            page.update(has_more=True, next_cursor=cursor)
        return page


if __name__ == "__main__":
    kind = globals()[sys.argv.pop(1)]
    service.main(kind)
