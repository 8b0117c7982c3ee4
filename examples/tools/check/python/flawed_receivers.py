"""Receivers with one flaw each, for `check receiver`: python3 flawed_receivers.py FLAW STORED [PORT]"""
import json, re, sys, threading, time
import receiver
from receiver import Receiver


class Unescapes(Receiver):
    def signed(self, body):
        return re.sub(rb"\\u00([2-7][0-9a-f])", lambda found: bytes.fromhex(found[1].decode()), body)


class TakesUnsigned(Receiver):
    def is_genuine(self, values, body):
        return not values or super().is_genuine(values, body)


class TimeUnsigned(Receiver):
    def is_genuine(self, values, body):
        """Believes the time of the header where the digest fits that of a second before."""
        earlier = [value.replace(value[2:12], str(int(value[2:12]) - 1), 1) for value in values if value[2:12].isdigit()]
        return super().is_genuine(values, body) or super().is_genuine(earlier, body)


class TakesOld(Receiver):
    def is_timely(self, t):
        return t <= time.time() + self.tolerance


class TakesFuture(Receiver):
    def is_timely(self, t):
        return t >= time.time() - self.tolerance


class ComparesStart(Receiver):
    def is_equal(self, given, digest):
        return digest.startswith(given)


class FirstDigestAlone(Receiver):
    def is_one_of(self, given, digests):
        return super().is_one_of(given[:1], digests)


class NewSecretAlone(Receiver):
    def is_genuine(self, values, body):
        self.secrets = self.secrets[:1]
        return super().is_genuine(values, body)


class ParsesFirst(Receiver):
    def answer(self, headers, body):
        try:
            json.loads(body)
        except (ValueError, RecursionError):
            return 500
        return super().answer(headers, body)


class LargeRefused(Receiver):
    def answer(self, headers, body):
        return 413 if len(body) > 500_000 else super().answer(headers, body)


class UnknownRefused(Receiver):
    def answer(self, headers, body):
        return 422 if b'"receiver.check"' in body else super().answer(headers, body)


class FirstHeaderAlone(Receiver):
    def signatures(self, headers):
        return super().signatures(headers)[:1]


class AnswersFirst(Receiver):
    def store(self, event, headers):
        threading.Timer(0.2, super().store, (event, headers)).start()


class StoresTwice(Receiver):
    def store(self, event, headers):
        """Looks first, and stores a moment later: two that come at once both find nothing."""
        is_new = self.id_of(event, headers) not in self.seen
        time.sleep(0.05)
        if is_new:
            self.seen.add(self.id_of(event, headers))
            self.write(event)


class TellsByHeader(Receiver):
    def id_of(self, event, headers):
        return headers.get("X-Service-Delivery", "")


if __name__ == "__main__":
    kind = globals()[sys.argv.pop(1)]
    receiver.main(kind)
