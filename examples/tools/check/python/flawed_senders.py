"""Senders with one flaw each, for `check sender`: python3 flawed_senders.py FLAW"""
import json, sys, threading, time
from urllib.parse import urljoin
import sender
from sender import WAITS, Sender


class WritesAgain(Sender):  # envelope.same_bytes
    def body(self, delivery, number):
        body = super().body(delivery, number)
        return body if number == 1 else json.dumps(json.loads(body), sort_keys=True).encode()


class DecodedSecret(Sender):  # signature.bytes
    def key(self, secret):
        return bytes.fromhex(secret.removeprefix("whsec_"))


class OldTimestamp(Sender):  # schedule.unscaled
    def signature(self, delivery, number, body):
        if number == 1:
            delivery.signature = super().signature(delivery, number, body)
        return delivery.signature


class RedirectIsSuccess(Sender):  # answers.redirects
    def is_success(self, status):
        return status is not None and 200 <= status < 400


class FollowsRedirects(Sender):  # answers.redirects_stay
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


class ClientErrorsEnd(Sender):  # answers.others
    def settled(self, delivery, status):
        if status in (400, 401, 403, 404):
            delivery.status = "failed"
        return super().settled(delivery, status)


class FiveAttempts(Sender):  # schedule.six
    attempts = 5


class ShortNight(Sender):  # schedule.long_waits
    def wait(self, number):
        return min(WAITS[number - 1], 3600)


class GoneIsFailure(Sender):  # gone.disables
    def is_gone(self, status):
        return False


class NineteenDisable(Sender):  # failing.nineteen
    most_failures = 19


class NeverForgets(Sender):  # failing.reset
    def settled(self, delivery, status):
        before = delivery.endpoint.failures
        ended = super().settled(delivery, status)
        if delivery.status == "delivered":
            delivery.endpoint.failures = before
        return ended


class RedeliveryCounts(Sender):  # failing.redelivery
    def once(self, delivery):
        super().once(delivery)
        if delivery.status == "failed":
            self.count(delivery.endpoint)


class FloodsWhenEnabled(Sender):  # disabled.no_flood
    def enable(self, endpoint):
        super().enable(endpoint)
        for delivery in list(self.deliveries.values()):
            if delivery.endpoint is endpoint and delivery.status == "skipped":
                self.redeliver(delivery)


class KeepsCounting(Sender):  # disabled.counter
    def enable(self, endpoint):
        failures = endpoint.failures
        super().enable(endpoint)
        endpoint.failures = failures


class OneAtATime(Sender):  # beside.dead
    def __init__(self, *scale):
        super().__init__(*scale)
        self.only = threading.Lock()

    def attempt(self, delivery, number):
        with self.only:
            return super().attempt(delivery, number)


class SendsBesideItself(Sender):  # overlap.none
    def attempt(self, delivery, number):
        """Takes an attempt over from itself while it is still being made."""
        again = threading.Timer(1, self.post, (delivery.endpoint.url, *self.request(delivery, number)))
        if number == 2:
            again.start()
        try:
            return super().attempt(delivery, number)
        finally:
            again.cancel()


class AnyAddress(Sender):  # targets.refused
    def is_public(self, host):
        return True


class OtherAgent(Sender):  # headers.five
    def request(self, delivery, number):
        headers, body = super().request(delivery, number)
        return {**headers, "User-Agent": "Python-http.client"}, body


class UpperCase(Sender):  # signature.form
    def signature(self, delivery, number, body):
        return super().signature(delivery, number, body).upper().replace("T=", "t=").replace("V1=", "v1=")


class SlowClock(Sender):  # signature.time
    def now(self):
        return super().now() - 60


class BareSecret(Sender):  # signature.secret
    def add_endpoint(self, url):
        endpoint = super().add_endpoint(url)
        if endpoint:
            endpoint.secret = endpoint.secret.removeprefix("whsec_")
        return endpoint


class ZoneInLetters(Sender):  # envelope.fields
    def event(self, kind, data):
        event = super().event(kind, data)
        return {**event, "created_at": event["created_at"].replace("+00:00", "Z")}


class IdForEach(Sender):  # envelope.id_shared
    def request(self, delivery, number):
        headers, body = super().request(delivery, number)
        sent = [one for one in list(self.deliveries.values()) if one.event[0] == delivery.event[0] and one.status != "skipped"]
        return {**headers, "X-Service-Delivery": delivery.event[0] + ("_b" if sent.index(delivery) else "")}, body


class FewSuccesses(Sender):  # answers.success
    def is_success(self, status):
        return status in (200, 201, 202, 204)


class NoiseIsSuccess(Sender):  # answers.none
    def broken(self, error):
        return None if isinstance(error, OSError) else 204


class WaitsForBody(Sender):  # answers.head_decides
    def answered(self, response):
        is_cut = response.read(1) == b"" and response.length
        return None if is_cut else response.status


class ReadsWithoutEnd(Sender):  # answers.endless
    def answered(self, response):
        began = time.monotonic()
        while response.length is None and response.read(65536):
            time.sleep(0.01)
        return response.status if time.monotonic() - began < self.timeout / 2 else None


class GivesUpEarly(Sender):  # answers.timeout
    timeout = 5


class RedeliversTwice(Sender):  # redelivery.one_attempt
    def once(self, delivery):
        if not self.is_success(self.attempt(delivery, 1)):
            super().once(delivery)
        else:
            delivery.status = "delivered"


class RedeliversAnew(Sender):  # redelivery.same_bytes
    def once(self, delivery):
        event_id, kind, body = delivery.event
        delivery.event = event_id, kind, json.dumps(json.loads(body)).encode()
        super().once(delivery)


class TwentyOne(Sender):  # failing.twenty
    most_failures = 21


class PausesNewOnesAlone(Sender):  # disabled.no_attempts
    def pause(self, endpoint):
        super().pause(endpoint)
        endpoint.paused_in = endpoint.life

    def is_parked(self, delivery):
        return super().is_parked(delivery) and delivery.life != getattr(delivery.endpoint, "paused_in", None)


class SkippedIsLost(Sender):  # disabled.redelivery
    def redeliver(self, delivery):
        return delivery.status != "skipped" and super().redeliver(delivery)


class HalfAMinute(Sender):  # schedule.short_waits
    def wait(self, number):
        return 30 if number == 2 else super().wait(number)


class StopsLater(Sender):  # stop.is_an_end
    def stop(self):
        pass


if __name__ == "__main__":
    sender.main(globals()[sys.argv[1]])
