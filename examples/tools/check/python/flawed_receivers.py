"""Receivers with one flaw each, for `check receiver`: python3 flawed_receivers.py FLAW STORED [PORT]"""
import json, re, sys, threading, time
import receiver
from receiver import Receiver


class Unescapes(Receiver):  # taken.exact_bytes
    def signed(self, body):
        return re.sub(rb"\\u00([2-7][0-9a-f])", lambda found: bytes.fromhex(found[1].decode()), body)


class TakesUnsigned(Receiver):  # refused.unsigned
    def is_genuine(self, values, body):
        return not values or super().is_genuine(values, body)


class TimeUnsigned(Receiver):  # refused.altered_time
    def is_genuine(self, values, body):
        """Believes the time of the header where the digest fits that of a second before."""
        earlier = [value.replace(value[2:12], str(int(value[2:12]) - 1), 1) for value in values if value[2:12].isdigit()]
        return super().is_genuine(values, body) or super().is_genuine(earlier, body)


class TakesOld(Receiver):  # refused.old
    def is_timely(self, t):
        return t <= time.time() + self.tolerance


class TakesFuture(Receiver):  # refused.ahead
    def is_timely(self, t):
        return t >= time.time() - self.tolerance


class ComparesStart(Receiver):  # refused.prefix
    def is_equal(self, given, digest):
        return digest.startswith(given)


class FirstDigestAlone(Receiver):  # taken.any_digest
    def is_one_of(self, given, digests):
        return super().is_one_of(given[:1], digests)


class NewSecretAlone(Receiver):  # taken.old_secret
    def is_genuine(self, values, body):
        self.secrets = self.secrets[:1]
        return super().is_genuine(values, body)


class ParsesFirst(Receiver):  # refused.before_reading
    def answer(self, headers, body):
        try:
            json.loads(body)
        except (ValueError, RecursionError):
            return 500
        return super().answer(headers, body)


class LargeRefused(Receiver):  # read.large
    def answer(self, headers, body):
        return 413 if len(body) > 500_000 else super().answer(headers, body)


class UnknownRefused(Receiver):  # read.unknown_type
    def answer(self, headers, body):
        return 422 if b'"receiver.check"' in body else super().answer(headers, body)


class FirstHeaderAlone(Receiver):  # refused.two_headers
    def signatures(self, headers):
        return super().signatures(headers)[:1]


class AnswersFirst(Receiver):  # stored.first
    def store(self, event, headers):
        threading.Timer(0.2, super().store, (event, headers)).start()


class StoresTwice(Receiver):  # stored.twice_at_once
    def store(self, event, headers):
        """Looks first, and stores a moment later: two that come at once both find nothing."""
        is_new = self.id_of(event, headers) not in self.seen
        time.sleep(0.05)
        if is_new:
            self.seen.add(self.id_of(event, headers))
            self.write(event)


class TellsByHeader(Receiver):  # stored.delivery_header
    def id_of(self, event, headers):
        return headers.get("X-Service-Delivery", "")


class FirstFails(Receiver):  # taken.genuine
    is_awake = False

    def answer(self, headers, body):
        was_awake, self.is_awake = self.is_awake, True
        return super().answer(headers, body) if was_awake else 500


class AsciiAlone(Receiver):  # taken.non_ascii
    def signed(self, body):
        return body.decode("ascii", "ignore").encode()


class NamesWithCase(Receiver):  # taken.header_case
    def signatures(self, headers):
        return [value for name, value in headers.items() if name == "X-Service-Signature"]


class UnknownPartRefused(Receiver):  # taken.other_parts
    def is_genuine(self, values, body):
        is_known = all(part.startswith(("t=", "v1=")) for value in values for part in value.split(","))
        return is_known and super().is_genuine(values, body)


class AnyDigest(Receiver):  # refused.wrong_signature, refused.altered_body, refused.altered_time
    # refused.prefix, refused.decoded_secret, refused.before_reading
    def is_equal(self, given, digest):
        return len(given) == len(digest)


class LineEndTrimmed(Receiver):  # refused.altered_body
    def is_genuine(self, values, body):
        return super().is_genuine(values, body) or super().is_genuine(values, body.rstrip(b"\n"))


class BareSecretToo(Receiver):  # refused.decoded_secret
    def __init__(self, stored, secrets):
        super().__init__(stored, secrets + [secret.removeprefix("whsec_") for secret in secrets])


class FirstTimeTaken(Receiver):  # refused.two_times
    def is_genuine(self, values, body):
        return super().is_genuine([re.sub(r"^(t=[0-9]+),t=[0-9]+", r"\1", value) for value in values], body)


class LengthNeeded(Receiver):  # read.chunked
    def answer(self, headers, body):
        return super().answer(headers, body) if "Content-Length" in headers else 411


class TenAtOnce(Receiver):  # read.burst
    room = threading.Semaphore(10)

    def answer(self, headers, body):
        if not self.room.acquire(blocking=False):
            return 503
        try:
            time.sleep(0.1)
            return super().answer(headers, body)
        finally:
            self.room.release()


class CopyRefused(Receiver):  # stored.again
    def answer(self, headers, body):
        before = len(self.seen)
        status = super().answer(headers, body)
        return 409 if status == 204 and len(self.seen) == before else status


if __name__ == "__main__":
    kind = globals()[sys.argv.pop(1)]
    receiver.main(kind)
