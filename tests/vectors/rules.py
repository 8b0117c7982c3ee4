#!/usr/bin/env python3
"""Writes the files of the corpus but the signatures', whose formats README.md describes.

Each rule is written here a second time, from src/guide/protocol.md: nothing of the crate is involved. Random steps come
from a fixed seed, so the files are the same each time.
"""

import datetime
import json
import pathlib
import random
import sys
from fractions import Fraction

EPOCH = datetime.datetime(1970, 1, 1)
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


def seconds(day):
    return (day - EPOCH) // datetime.timedelta(seconds=1)


# Timestamps.


def times():
    """Texts with the instant of each, in seconds and nanoseconds since 1970 and as it is written; or with null."""

    def case(text, at, offset=0, nanos=0):
        utc = at.replace(year=2000) - datetime.timedelta(minutes=offset) if offset else at
        fraction = f".{nanos:09}".rstrip("0").rstrip(".")
        written = f"{at.year:04}-{utc.month:02}-{utc.day:02}T{utc.hour:02}:{utc.minute:02}:{utc.second:02}{fraction}Z"
        return {"text": text, "seconds": seconds(at) - offset * 60, "nanos": nanos, "written": written}

    at = datetime.datetime(2026, 7, 24, 10, 0, 0)
    for letters in ("TZ", "tz", "Tz", "tZ"):
        yield case(f"2026-07-24{letters[0]}10:00:00{letters[1]}", at)
    for offset in (0, 1, 59, 60, 120, 330, 345, 765, 1439):
        for sign, way in (("+", 1), ("-", -1)):
            yield case(f"2026-07-24T10:00:00{sign}{offset // 60:02}:{offset % 60:02}", at, way * offset)
    for digits in ("0", "1", "10", "01", "123", "123456", "123456789", "999999999", "000000001", "000000010", "000000000"):
        yield case(f"2026-07-24T10:00:00.{digits}Z", at, nanos=int(digits.ljust(9, "0")))
        yield case(f"2026-07-24T04:30:00.{digits}-05:30", at, nanos=int(digits.ljust(9, "0")))
    for year in (1, 4, 100, 400, 1582, 1600, 1899, 1900, 1969, 1970, 2000, 2023, 2024, 2100, 2400, 9999):
        for month, day in ((1, 1), (2, 28), (2, 29), (3, 1), (12, 31)):
            text = f"{year:04}-{month:02}-{day:02}T23:59:59Z"
            try:
                yield case(text, datetime.datetime(year, month, day, 23, 59, 59))
            except ValueError:
                yield {"text": text, "seconds": None}
    # Second 60 is the last nanosecond before midnight in UTC, in any month.
    for text, day in (
        ("2016-12-31T23:59:60Z", (2016, 12, 31)), ("2016-12-31T23:59:60.000000001Z", (2016, 12, 31)),
        ("1990-12-31T15:59:60-08:00", (1990, 12, 31)), ("2017-01-01T05:29:60+05:30", (2016, 12, 31)),
        ("2026-07-24T23:59:60Z", (2026, 7, 24)), ("9999-12-31T23:59:60Z", (9999, 12, 31)),
    ):
        yield case(text, datetime.datetime(*day, 23, 59, 59), nanos=999_999_999)
    for text in (
        "", "now", " 2026-07-24T10:00:00Z", "+2026-07-24T10:00:00Z", "226-07-24T10:00:00Z", "12026-07-24T10:00:00Z",
        "20260724T100000Z", "2026-7-24T10:00:00Z", "2026-00-24T10:00:00Z", "2026-13-24T10:00:00Z", "2026-07-00T10:00:00Z",
        "2026-07-32T10:00:00Z", "2026-06-31T10:00:00Z", "2026-07-24", "2026-07-24 10:00:00Z", "2026-07-24_10:00:00Z",
        "2026-07-24T24:00:00Z", "2026-07-24T10:60:00Z", "2026-07-24T10:00Z", "2026-07-24T10:00:61Z", "2026-07-24T10:00:0",
        "2026-07-24T10:00:00.Z", "2026-07-24T10:00:00.+00:00", "2026-07-24T10:00:00,5Z", "2026-07-24T10:00:00.1234567890Z",
        "2026-07-24T10:00:00", "2026-07-24T10:00:00.5", "2026-07-24T10:00:00 00:00", "2026-07-24T10:00:00.25 02:00",
        "2026-07-24T10:00:00\u221201:00", "2026-07-24T10:00:00+", "2026-07-24T10:00:00+1:00", "2026-07-24T10:00:00+0100",
        "2026-07-24T10:00:00+24:00", "2026-07-24T10:00:00-23:60", "2026-07-24T10:00:00+01:00:00", "2026-07-24T10:00:00Z ",
        "2026-07-24T10:00:00ZZ", "\u0662026-07-24T10:00:00Z", "9999-12-31T23:59:59-01:00", "0000-01-01T00:00:00+01:00",
        "2016-12-31T23:58:60Z", "2016-12-31T22:59:60Z", "2016-12-31T23:59:60+01:00", "2016-12-31T23:59:60-00:01",
        "2017-01-01T00:00:60Z", "9999-12-31T23:59:60-00:01", "1784887200",
    ):
        yield {"text": text, "seconds": None}


def written(day, form, name=None):
    """Writes an HTTP date in one of the three forms, with the name of another day if one is given."""
    name, month = name or DAYS[day.weekday()], MONTHS[day.month - 1]
    clock = f"{day.hour:02}:{day.minute:02}:{day.second:02}"
    return [
        f"{name[:3]}, {day.day:02} {month} {day.year:04} {clock} GMT",
        f"{name}, {day.day:02}-{month}-{day.year % 100:02} {clock} GMT",
        f"{name[:3]} {month} {day.day:2} {clock} {day.year:04}",
    ][form]


def dates():
    """HTTP dates in the three forms of RFC 9110, each with the name of its weekday or of another one."""
    day = datetime.datetime(2026, 1, 1, 12, 34, 56)
    while day.year == 2026:
        for form in range(3):
            yield {"text": written(day, form), "seconds": seconds(day)}
        yield {"text": written(day, day.day % 3, DAYS[(day.weekday() + 1) % 7]), "seconds": None}
        day += datetime.timedelta(days=1)
    for year in (1, 1600, 1900, 1969, 1970, 1999, 2000, 2024, 2069, 2100, 9999):
        day = datetime.datetime(year, 2, 28, 23, 59, 59)
        for form in (0, 2):
            yield {"text": written(day, form), "seconds": seconds(day)}
    # Two digits of a year: from 70 on they are of the twentieth century.
    for year in (1970, 1999, 2000, 2026, 2069):
        day = datetime.datetime(year, 12, 31, 10)
        yield {"text": written(day, 1), "seconds": seconds(day)}
    yield {"text": written(datetime.datetime(1969, 12, 31, 10), 1), "seconds": None}
    yield {"text": "Thu, 29 Feb 2024 00:00:00 GMT", "seconds": seconds(datetime.datetime(2024, 2, 29))}
    for day in (datetime.datetime(1994, 11, 6, 8, 49, 37), datetime.datetime(1994, 11, 16, 8, 49, 37)):
        for form in range(3):
            whole = written(day, form)
            yield {"text": whole, "seconds": seconds(day)}
            for at in range(len(whole)):
                yield {"text": whole[:at], "seconds": None}
                for damage in ("#", "", "\u00e9"):
                    yield {"text": whole[:at] + damage + whole[at + 1:], "seconds": None}
    for text in (
        "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 31 Nov 1994 08:49:37 GMT", "Thu, 29 Feb 2023 00:00:00 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT ago", "Sunda, 06-Nov-94 08:49:37 GMT", "Sun, 06-Nov-94 08:49:37 GMT",
        "Sun Nov 06 08:49:37 1994 GMT", "1994-11-06T08:49:37Z", "Son, 06 Nov 1994 08:49:37 GMT",
        "Sonntag, 06-Nov-94 08:49:37 GMT", "Sunday, 06-Now-94 08:49:37 GMT", "Sun Nov  0 08:49:37 1994",
    ):
        yield {"text": text, "seconds": None}


# Retry-After.


def waits():
    """A header, what Date says beside it, the reader's clock, and the seconds to wait: an hour at most, null for none."""
    now = datetime.datetime(2026, 1, 1, 1, 23, 20)

    def case(header, wait, date=None, clock=now):
        return {"header": header, "date": date, "now": seconds(clock), "wait": wait}

    for header, wait in (
        ("120", 120), ("0", 0), ("7", 7), ("007", 7), (" \t5 ", 5), ("3600", 3600), ("3601", 3600), ("18446744073709551616", 3600),
        ("9" * 26, 3600), ("", None), (" ", None), ("-1", None), ("+5", None), ("1.5", None), ("1e3", None), ("5s", None),
        ("\u0665", None), ("5, 5", None), ("soon", None), ("0x10", None), ("1_000", None),
    ):
        yield case(header, wait)
    for ahead in (-86_400, -10, 0, 1, 30, 3599, 3600, 3601, 86_400):
        then = now + datetime.timedelta(seconds=ahead)
        for form in range(3):
            yield case(written(then, form), min(max(ahead, 0), 3600))
        # The distance from the answer's own Date counts, so a wrong clock of the reader's changes nothing.
        for wrong in (-7200, 0, 7200):
            clock = now + datetime.timedelta(seconds=wrong)
            yield case(written(then, 0), min(max(ahead, 0), 3600), date=written(now, 0), clock=clock)
    then = now + datetime.timedelta(seconds=30)
    yield case("\t " + written(then, 0) + " ", 30, date=" " + written(now, 0) + "\t")
    yield case(written(then, 0), 30, date="yesterday")
    yield case("5", 5, date=written(now, 0))
    yield case("Fri, 31 Dec 9999 23:59:59 GMT", 3600)


# Rate windows.


def rates():
    """N requests in any 60 s: what is admitted counts for 60 s, what is refused counts for nothing."""
    random.seed(48)
    plans = [(3, [0, 10, 20, 20, 59.999999999, 60, 60, 70, 75]), (1, [0, *range(60), 60, 119, 120]), (2, [0, 0, 0, 60, 60, 60, 600, 600, 600])]
    for number, most in enumerate((1, 2, 3, 5, 10, 60) * 3):
        at, asked = Fraction(0), []
        for _ in range(60):
            at += random.choice((Fraction(0), Fraction(1, 10**9), Fraction(random.randrange(10**6), 10**4), Fraction(60, most)))
            asked.append(at)
        plans.append((most, asked))
    for most, asked in plans:
        admitted, rows = [], []
        for at in map(Fraction, map(lambda at: round(at * 10**9) if isinstance(at, float) else at * 10**9, asked)):
            counts = [one for one in admitted if at - one < 60 * 10**9]
            if len(counts) < most:
                admitted.append(at)
                rows.append({"at": int(at), "wait": None})
                continue
            wait = int(counts[-most] + 60 * 10**9 - at)
            rows.append({"at": int(at), "wait": wait, "retry_after": max(1, -(-wait // 10**9))})
        yield {"per_minute": most, "asked": rows}


# The order of refusals.

CHECKS = [
    ("path", 404, "resource_not_found", "invalid_request"),
    ("method", 405, "method_not_allowed", "invalid_request"),
    ("credential", 401, "invalid_credentials", "authentication_error"),
    ("rate", 429, "rate_limit_exceeded", "rate_limit_error"),
    ("closing", 403, "account_closed", "permission_error"),
    ("subscription", 402, "subscription_inactive", "permission_error"),
    ("plan", 403, "plan_upgrade_required", "permission_error"),
    ("scope", 403, "insufficient_scope", "permission_error"),
    ("parameters", 400, "invalid_parameter", "invalid_request"),
    ("cursor", 400, "invalid_cursor", "invalid_request"),
    ("resource", 404, "resource_not_found", "invalid_request"),
]
NOT_OF = {"/v1/account": {"parameters", "cursor", "resource"}, "/v1/calls": {"resource"}, "/v1/calls/call_1": {"cursor"}}


def refusals():
    """Each pair of faults that a request can have, and the answer: that of the first in the order."""
    for target, others in NOT_OF.items():
        of = [check for check in CHECKS if check[0] not in others]
        for place, (name, status, code, kind) in enumerate(of):
            # An authenticated request that is not limited counts, whatever it is answered.
            counts = name not in ("path", "method", "credential", "rate")
            for faults in [[name]] + [[name, later[0]] for later in of[place + 1:]]:
                yield {"target": target, "faults": faults, "status": status, "code": code, "type": kind, "counts": counts}


# The ledger of retries.

RETRIES = [10, 60, 600, 3600, 21600]
ANSWERS = [200, 204, 299, 199, 300, 302, 400, 404, 410, 429, 500, 503, "timeout", "refused", "reset", "dns", "tls", "unsent"]


class Endpoint:
    def __init__(self):
        self.failures, self.disabled, self.life = 0, None, 0


class Delivery:
    def __init__(self, endpoint, at):
        self.status, self.attempts, self.due, self.life = "waiting", 0, at, endpoint.life
        if endpoint.disabled:
            self.status, self.due = "skipped", None

    def finish(self, endpoint, answer, at):
        is_current = not endpoint.disabled and self.life == endpoint.life
        if answer == "unsent":
            self.due = at
            return
        self.attempts += 1
        if answer == 410:
            self.status, self.due = "gone", None
            if is_current:
                endpoint.disabled = "gone"
        elif isinstance(answer, int) and 200 <= answer < 300:
            self.status, self.due = "delivered", None
            if is_current:
                endpoint.failures = 0
        elif self.attempts <= len(RETRIES):
            self.due = at + RETRIES[self.attempts - 1]
        else:
            self.status, self.due = "failed", None
            if is_current:
                endpoint.failures += 1
                if endpoint.failures == 20:
                    endpoint.disabled = "failing"


def ledger():
    """Deliveries of one endpoint, one after another: each attempt begins when it is due, and ends as it is said."""
    random.seed(48)

    def case(name, deliveries):
        endpoint, at, rows = Endpoint(), 0, []
        for answers in deliveries:
            if answers == "enable":
                endpoint.failures, endpoint.disabled, endpoint.life = 0, None, endpoint.life + 1
                rows.append({"do": "enable", "at": at, **state(endpoint)})
                continue
            delivery = Delivery(endpoint, at)
            rows.append({"do": "accept", "at": at, "status": delivery.status, **state(endpoint)})
            for answer in answers:
                if delivery.due is None:
                    break
                at = max(at, delivery.due)
                ends = at + random.choice((0, 1, 10))
                delivery.finish(endpoint, answer, ends)
                rows.append({"do": "attempt", "at": at, "ends": ends, "answer": answer, "status": delivery.status,
                             "attempts": delivery.attempts, "due": delivery.due, **state(endpoint)})
                at = ends
        return {"name": name, "steps": rows}

    def state(endpoint):
        return {"failures": endpoint.failures, "disabled": endpoint.disabled}

    for answer in ANSWERS:
        yield case(f"{answer} at once", [[answer]])
        yield case(f"{answer} at the last attempt", [[500] * 5 + [answer]])
    yield case("twenty in a row disable", [[500] * 6] * 21)
    yield case("nineteen and a success", [[500] * 6] * 19 + [[200]] + [[500] * 6] * 19)
    yield case("enabled again, the count begins at zero", [[500] * 6] * 20 + ["enable"] + [[500] * 6] * 20 + [[200]])
    yield case("gone, skipped, enabled", [[410], [200], "enable", [200]])
    yield case("what is not sent does not count", [["unsent", "unsent", 500, "unsent", 200]])
    for number in range(40):
        deliveries = [[random.choice(ANSWERS) for _ in range(12)] for _ in range(random.randrange(1, 6))]
        yield case(f"random {number}", deliveries)


# The bodies of events.

KNOWN = ["call.ended", "call.transferred", "appointment.created", "appointment.updated", "appointment.cancelled",
         "contact.created", "contact.updated", "usage.threshold_reached", "ping"]
CALL = {"id": "call_1", "caller": {"contact_id": None, "phone_number": "+4712345678", "display_name": None},
        "started_at": "2026-01-01T09:30:00Z", "answered_at": None, "ended_at": None, "duration_seconds": 240,
        "summary": None, "appointment_ids": [], "created_at": "2026-01-01T09:34:10Z"}


def events():
    """A body, and what a reader makes of it: the fields of an event and whether the data fits its type, or the field at fault."""
    envelope = {"id": "evt_1", "type": "ping", "created_at": "2026-01-01T09:34:11+00:00", "api_version": "2026-01-15",
                "account_id": "acct_1", "origin": {"source": "voice", "credential_id": None, "idempotency_key": None},
                "data": {"message": "hello"}}

    def reads(name, fits=True, text=None, **changed):
        shown = {key: value for key, value in {**envelope, **changed}.items() if value is not ...}
        at = datetime.datetime.fromisoformat(shown["created_at"].replace("Z", "+00:00"))
        origin = shown.get("origin")
        return {"name": name, "body": text or json.dumps(shown), "reads": {
            "id": shown["id"], "type": shown["type"], "created_at": int(at.timestamp()), "account_id": shown["account_id"],
            "source": origin["source"] if origin else None, "is_known": shown["type"] in KNOWN, "fits": fits}}

    def refused(name, body, field=None):
        return {"name": name, "body": body, "reads": None, "field": field}

    objects = {"call.ended": CALL, "call.transferred": {**CALL, "target_label": "Front desk", "transferred_at": "2026-03-01T09:32:00Z"},
               "appointment.created": {"id": "appt_1"}, "appointment.updated": {"id": "appt_1", "room": 3},
               "appointment.cancelled": {"id": "appt_7", "status": "cancelled"}, "contact.created": {"id": "cont_1"},
               "contact.updated": {"id": "cont_1", "tags": [1.0, {"a": None}]}}
    for kind, inner in objects.items():
        yield reads(kind, type=kind, data={"object": inner})
        yield reads(f"{kind}, fields of a later version", type=kind, data={"object": {**inner, "later": {"x": [1]}}, "more": 1})
        yield reads(f"{kind} without an object", fits=False, type=kind, data={})
        yield reads(f"{kind} with a list for the object", fits=False, type=kind, data={"object": []})
    yield reads("usage", type="usage.threshold_reached", data={"minutes_used": 75.0, "minutes_included": 100})
    yield reads("a ping without its message", fits=False, data={})
    yield reads("a ping whose message is a number", fits=False, data={"message": 5})
    yield reads("a call whose id is a number", fits=False, type="call.ended", data={"object": {**CALL, "id": 5}})
    for data in ({}, {"object": {"id": 1.0}, "x": []}, None, [1], "text", 7):
        yield reads(f"an unknown type with {json.dumps(data)}", type="call.paused", data=data)
    for origin in (None, ..., {"source": "dashboard"}, {"source": "api", "credential_id": "key_1", "idempotency_key": "k 1"}):
        yield reads(f"origin {'left out' if origin is ... else json.dumps(origin)}", origin=origin)
    for text in ("2026-01-01T09:34:11Z", "2026-01-01T10:34:11+01:00", "2026-01-01T09:34:11-00:00"):
        yield reads(f"created_at {text}", created_at=text)
    yield reads("a field of a later version", later={"x": [1]})
    yield reads("blanks and escapes", text=json.dumps(envelope, indent=3).replace("hello", "h\\u0065ll\\ud83d\\udcdeo"))
    yield reads("fields in another order", text=json.dumps(dict(reversed(envelope.items()))))
    yield reads("text outside of ASCII", text=json.dumps({**envelope, "data": {"message": "Søn 予約"}}, ensure_ascii=False))
    whole = json.dumps(envelope)
    for field in ("id", "type", "created_at", "account_id", "data"):
        without = {name: value for name, value in envelope.items() if name != field}
        yield refused(f"without {field}", json.dumps(without), field)
        yield refused(f"{field} twice", whole[:-1] + f', "{field}": {json.dumps(envelope[field])}}}', field)
    for field, value in (("id", "call_1"), ("id", "evt_ "), ("id", None), ("id", 1), ("type", 7), ("type", None), ("account_id", ""),
                         ("created_at", "2026-01-01T09:34:11"), ("created_at", "2026-01-01"), ("created_at", 1767260051)):
        yield refused(f"{field} is {json.dumps(value)}", json.dumps({**envelope, field: value}), field)
    for body in ("", "null", "[]", "{}}", "evt_1", "\ufeff" + whole, whole + "x", whole[:-1], whole[:40], json.dumps([whole])):
        yield refused(f"no object: {body[:12]!r} of {len(body)}", body)


FILES = {"times": times, "dates": dates, "waits": waits, "rates": rates, "refusals": refusals, "ledger": ledger, "events": events}


def main():
    here, total = pathlib.Path(__file__), 0
    for name, cases in FILES.items():
        lines = [json.dumps(case) for case in cases()]
        assert len(lines) == len(set(lines)) or name == "dates", name
        lines, total = list(dict.fromkeys(lines)), total + len(lines)
        text = '{"format": 1, "cases": [\n' + ",\n".join(lines) + "\n]}\n"
        path = here.with_name(f"{name}.json")
        if "--check" not in sys.argv:
            path.write_text(text)
        elif path.read_text() != text:
            sys.exit(f"{path} is not what {here} writes")
    print(f"{total} cases in {len(FILES)} files")


main()
