"""Senders with one flaw each, for `check sender`: python3 flawed_senders.py FLAW"""
import json, sys, threading
from urllib.parse import urljoin
import sender
from sender import WAITS, Sender


class WritesAgain(Sender):
    def body(self, delivery, number):
        body = super().body(delivery, number)
        return body if number == 1 else json.dumps(json.loads(body), sort_keys=True).encode()


class DecodedSecret(Sender):
    def key(self, secret):
        return bytes.fromhex(secret.removeprefix("whsec_"))


class OldTimestamp(Sender):
    def signature(self, delivery, number, body):
        if number == 1:
            delivery.signature = super().signature(delivery, number, body)
        return delivery.signature


class RedirectIsSuccess(Sender):
    def is_success(self, status):
        return status is not None and 200 <= status < 400


class FollowsRedirects(Sender):
    def post(self, url, headers, body):
        self.headers = headers, body
        return super().post(url, headers, body)

    def answered(self, response):
        if response.status in (301, 302, 307, 308):
            location = response.getheader("Location") or "/"
            super().post(urljoin(self.base, location), *self.headers)
        return response.status

    def request(self, delivery, number):
        self.base = delivery.endpoint.url
        return super().request(delivery, number)


class ClientErrorsEnd(Sender):
    def settled(self, delivery, status):
        if status in (400, 401, 403, 404):
            delivery.status = "failed"
        return super().settled(delivery, status)


class FiveAttempts(Sender):
    attempts = 5


class ShortNight(Sender):
    def wait(self, number):
        return min(WAITS[number - 1], 3600)


class GoneIsFailure(Sender):
    def is_gone(self, status):
        return False


class NineteenDisable(Sender):
    most_failures = 19


class NeverForgets(Sender):
    def settled(self, delivery, status):
        before = delivery.endpoint.failures
        ended = super().settled(delivery, status)
        if delivery.status == "delivered":
            delivery.endpoint.failures = before
        return ended


class RedeliveryCounts(Sender):
    def once(self, delivery):
        super().once(delivery)
        if delivery.status == "failed":
            self.count(delivery.endpoint)


class FloodsWhenEnabled(Sender):
    def enable(self, endpoint):
        super().enable(endpoint)
        for delivery in list(self.deliveries.values()):
            if delivery.endpoint is endpoint and delivery.status == "skipped":
                self.redeliver(delivery)


class KeepsCounting(Sender):
    def enable(self, endpoint):
        failures = endpoint.failures
        super().enable(endpoint)
        endpoint.failures = failures


class OneAtATime(Sender):
    def __init__(self, *scale):
        super().__init__(*scale)
        self.only = threading.Lock()

    def attempt(self, delivery, number):
        with self.only:
            return super().attempt(delivery, number)


class SendsBesideItself(Sender):
    def attempt(self, delivery, number):
        """Takes an attempt over from itself while it is still being made."""
        again = threading.Timer(1, self.post, (delivery.endpoint.url, *self.request(delivery, number)))
        if number == 2:
            again.start()
        try:
            return super().attempt(delivery, number)
        finally:
            again.cancel()


class AnyAddress(Sender):
    def is_public(self, host):
        return True


if __name__ == "__main__":
    sender.main(globals()[sys.argv[1]])
