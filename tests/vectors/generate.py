#!/usr/bin/env python3
"""Writes signatures.json and signatures.tsv, whose formats README.md describes.

The digests are those of CPython's hmac and hashlib; nothing of the crate is involved. The verdict
of every case is stated here by hand, not computed.
"""

import base64
import hashlib
import hmac
import json
import pathlib
import sys

NOW = 1767225600
SECRET = "whsec_test"
BODY = b'{"id":"evt_1","type":"ping","data":{"message":"hello"}}'

cases = []
unusable = []


def digest(body=BODY, t=NOW, key=SECRET, hash="sha256"):
    key = key if isinstance(key, bytes) else key.encode()
    t = t if isinstance(t, bytes) else str(t).encode()
    return hmac.new(key, t + b"." + body, hash).hexdigest()


def header(*v1, t=NOW):
    return ",".join([f"t={t}", *(f"v1={v}" for v in v1)])


def case(name, signature, verdict="accepted", *, body=BODY, secrets=(SECRET,), now=NOW, **more):
    entry = {"name": name, "secrets": list(secrets)}
    if isinstance(body, bytes):
        try:
            text = body.decode("ascii")
            entry["body" if text.isprintable() else "body_hex"] = (
                text if text.isprintable() else body.hex()
            )
        except UnicodeDecodeError:
            entry["body_hex"] = body.hex()
    entry["signature"] = [signature] if isinstance(signature, str) else list(signature)
    entry["now"] = now
    entry.update({key: more.pop(key) for key in ("now_nanos", "tolerance") if key in more})
    entry["verdict"] = verdict
    if verdict == "accepted":
        entry["secret"] = more.pop("secret", 0)
        entry["age"] = more.pop("age", 0)
    entry.update(more)
    assert all(other["name"] != name for other in cases), name
    cases.append(entry)


def bodies():
    for name, body in {
        "empty": b"",
        "an object": b"{}",
        "an event": BODY,
        "not utf-8": b'{"name":"M\xfcller"}',
        "every byte": bytes(range(256)),
        "nul": b'{"a":"\x00"}',
        "only nul": b"\x00",
        "lf at the end": BODY + b"\n",
        "cr lf at the end": BODY + b"\r\n",
        "cr lf within": b'{\r\n  "id": "evt_1"\r\n}\r\n',
        "bom": b"\xef\xbb\xbf" + BODY,
        "bom alone": b"\xef\xbb\xbf",
        "utf-16": BODY.decode().encode("utf-16"),
        "two forms of one letter": "{\"a\":\"\u00e9e\u0301\"}".encode(),
        "an emoji": '{"a":"\U0001f4de"}'.encode(),
        "escaped slash": b'{"a":"https:\\/\\/example.com"}',
        "blanks around": b"  {}  ",
        "a period first": b".{}",
        "not json": b"t=1,v1=2",
        "16 KiB": b"\xa5" * 16384,
    }.items():
        case(f"body: {name}", header(digest(body)), body=body)
    # "1767225600." is 11 bytes: a block of 64 ends at 53, and its padding needs 9 of them.
    for n in (1, 43, 44, 45, 52, 53, 54, 63, 64, 65, 107, 108, 109, 116, 117, 118, 128, 192, 1013):
        body = b"x" * n
        case(f"body: {n} bytes", header(digest(body)), body=body)
    for name, body in {
        "a trailing lf was added": BODY + b"\n",
        "the last byte was lost": BODY[:-1],
        "the first byte was lost": BODY[1:],
        "emptied": b"",
        "doubled": BODY + BODY,
        "one bit": BODY.replace(b"hello", b"hellp"),
        "a blank after a colon": BODY.replace(b'"id":', b'"id": '),
        "nul appended": BODY + b"\x00",
    }.items():
        case(f"tampered: {name}", header(digest()), "mismatch", body=body)


def secrets():
    everything = "".join(map(chr, range(0x21, 0x7F)))
    # HMAC hashes a key of more than 64 bytes first.
    for n in (7, 32, 63, 64, 65, 128, 255):
        key = "whsec_" + (everything * 3)[: n - 6]
        case(f"secret: {n} bytes", header(digest(key=key)), secrets=[key])
    encoded = "whsec_" + base64.b64encode(b"an endpoint's signing secret, 32").decode()
    case("secret: looks like base64", header(digest(key=encoded)), secrets=[encoded])
    for name, key in {
        "base64-decoded": base64.b64decode(encoded[6:]),
        "without its prefix": encoded[6:],
        "with a line end": encoded + "\n",
        "in quotes": f'"{encoded}"',
        "another": "whsec_another",
        "empty": "",
    }.items():
        case(f"wrong key: {name}", header(digest(key=key)), "mismatch", secrets=[encoded])


def digests():
    good = digest()
    for n in range(64):
        case(
            f"digest cut to {n}", header(good[:n]), "digest_length", part=2, length=n
        )
    for n in range(64):
        other = "%x" % (int(good[n], 16) ^ (1 << n % 4))
        case(f"digit {n} flipped", header(good[:n] + other + good[n + 1 :]), "mismatch")
    for n in (0, 31, 63):
        for bad in ("g", "G", "/", ":", "@", "`", "-"):
            text = good[:n] + bad + good[n + 1 :]
            case(f"digit {n} is {bad}", header(text), "digest_character", part=2, at=n)
    case("digest and a digit", header(good + "0"), "digest_length", part=2, length=65)
    case("digest twice in one", header(good + good), "digest_length", part=2, length=128)
    case("digest with 0x", header("0x" + good), "digest_length", part=2, length=66)
    case("all zeros", header("0" * 64), "mismatch")
    case("all ones", header("f" * 64), "mismatch")
    base64_digest = base64.b64encode(bytes.fromhex(good)).decode()
    case("digest in base64", header(base64_digest), "digest_length", part=2, length=44)
    for hash, length in (("sha1", 40), ("sha384", 96), ("sha512", 128)):
        text = digest(hash=hash)
        case(f"hmac-{hash}", header(text), "digest_length", part=2, length=length)
    case("hmac-sha3-256", header(digest(hash="sha3_256")), "mismatch")
    case(
        "sha256 without a key",
        header(hashlib.sha256(f"{NOW}.".encode() + BODY).hexdigest()),
        "mismatch",
    )
    for name, message in {
        "body alone": BODY,
        "without the period": f"{NOW}".encode() + BODY,
        "a colon for the period": f"{NOW}:".encode() + BODY,
        "the id before it": b"evt_1." + f"{NOW}.".encode() + BODY,
    }.items():
        text = hmac.new(SECRET.encode(), message, "sha256").hexdigest()
        case(f"signed: {name}", header(text), "mismatch")

    upper = good.upper()
    half = good[:32] + upper[32:]
    case("uppercase", header(upper), "digest_uppercase", part=2)
    case("half uppercase", header(half), "digest_uppercase", part=2)
    case("uppercase after another", header("0" * 64, upper), "digest_uppercase", part=3)
    case("uppercase of another body", header(digest(b"{}").upper()), "mismatch")
    case("uppercase under the second secret", header(upper), "digest_uppercase", part=2,
         secrets=["whsec_first", SECRET])
    case("uppercase beside the right one", header(upper, good))


def several():
    good = digest()
    zero = "0" * 64
    case("several v1: good first", header(good, zero))
    case("several v1: good last", header(zero, good))
    case("several v1: none good", header(zero, "f" * 64), "mismatch")
    case("several v1: good twice", header(good, good))
    case("several v1: good fifteenth", header(*[zero[:12]] * 14, good))
    for name, bad in {
        "empty": "",
        "short": good[:-1],
        "long": good + "0",
        "not hex": "g" * 64,
        "equals sign": "=",
        "uppercase": good.upper(),
    }.items():
        case(f"ill-formed v1 before: {name}", header(bad, good))
        case(f"ill-formed v1 after: {name}", header(good, bad))
    case("ill-formed v1 beside a wrong one", header(good[:-1], zero), "mismatch")
    case("ill-formed v1 twice", header("", good[:-1]), "digest_length", part=2, length=0)

    old, new = "whsec_old", "whsec_new"
    both = header(digest(key=new), digest(key=old))
    for name, signature, keys, index in (
        ("old signer, old verifier", header(digest(key=old)), [old], 0),
        ("both signed, old verifier", both, [old], 0),
        ("both signed, new verifier", both, [new], 0),
        ("both signed, both verify", both, [new, old], 0),
        ("both signed, both verify, old first", both, [old, new], 0),
        ("old signer, both verify", header(digest(key=old)), [new, old], 1),
        ("new signer, both verify", header(digest(key=new)), [new, old], 0),
        ("third of three", header(digest(key=old)), ["whsec_a", "whsec_b", old], 2),
    ):
        case(f"rotation: {name}", signature, secrets=keys, secret=index)
    case("rotation: old signer, new verifier", header(digest(key=old)), "mismatch", secrets=[new])


def window():
    for age in (0, 1, 299, 300):
        case(f"window: {age} s old", header(digest()), now=NOW + age, age=age)
        if age:
            case(f"window: {age} s ahead", header(digest()), now=NOW - age, age=-age)
    for age in (301, 302, 3600, 86400):
        case(f"window: {age} s old", header(digest()), "too_old", now=NOW + age, by=age)
        case(f"window: {age} s ahead", header(digest()), "too_new", now=NOW - age, by=age)
    case("window: 299.999999999 s old", header(digest()), now=NOW + 299,
         now_nanos=999999999, age=299)
    case("window: 300.000000001 s old", header(digest()), "too_old", now=NOW + 300,
         now_nanos=1, by=300)
    case("window: 299.5 s ahead", header(digest()), now=NOW - 300, now_nanos=500000000, age=-299)
    case("window: 300.5 s ahead", header(digest()), "too_new", now=NOW - 301,
         now_nanos=500000000, by=300)
    for tolerance in (1, 60, 3600):
        case(f"window of {tolerance} s: just in", header(digest()), now=NOW + tolerance,
             tolerance=tolerance, age=tolerance)
        case(f"window of {tolerance} s: just out", header(digest()), "too_old",
             now=NOW + tolerance + 1, tolerance=tolerance, by=tolerance + 1)
    case("stale and forged", header("0" * 64), "mismatch", now=NOW + 301)
    case("stale and uppercase", header(digest().upper()), "digest_uppercase", now=NOW + 301,
         part=2)

    case("t: zero", header(digest(t=0), t=0), now=0)
    case("t: one digit", header(digest(t=5), t=5), now=0, age=-5)
    case("t: now is before 1970", header(digest(t=5), t=5), now=-5, age=-10)
    case("t: in milliseconds", header(digest(t=NOW * 1000), t=NOW * 1000), "too_new",
         by=NOW * 999)
    for t in (2**31, 2**32, 2**53, 2**63 - 1, 2**63, 10**19 - 1):
        case(f"t: {t}", header(digest(t=t), t=t), "too_new", by=t - NOW)
        case(f"t: {t}, forged", header("0" * 64, t=t), "mismatch")
    case("t: now at the end of time", header(digest(t=0), t=0), "too_old",
         now=253402300799, by=253402300799)
    case("t: now at the start of time", header(digest(t=2**63), t=2**63), "too_new",
         now=-62167219200, by=2**63 + 62167219200)
    for t in (NOW - 1, NOW + 1, f"{NOW}0"):
        case(f"t: another than signed, {t}", header(digest(), t=t), "mismatch")


def grammar():
    good = digest()
    for t in ("", "+1", "-1", "-0", "01", "00", "007", f"0{NOW}", f"+{NOW}", f"-{NOW}", "1.0",
              "1e9", "0x1", "1_0", "a", "-9223372036854775808", "10000000000000000000",
              "18446744073709551616", "9" * 40, "\uff11".encode("utf-8").decode("latin-1")):
        verdict = "not_printable" if not t.isascii() else "timestamp"
        case(f"t is {t!r}", header(digest(t=t.encode("latin-1").decode()) if t.isascii() else good,
                                   t=t), verdict, part=1)

    right = f"t={NOW},v1={good}"
    for text in (f"v1={good},t={NOW}", f" {right}", f"{right} ", f"\t{right}\t",
                 f"t={NOW} ,\tv1={good}", f"t={NOW}, v1={good}", f"{right},x=y", f"x=y,{right}",
                 f"{right},v0=0", f"{right},v2={good}", f"{right},T=1", f"{right},V1=x",
                 f"{right},x=", f"{right},x==", f"{right},x=a=b", f"{right},tt=1", f"{right},v11=x",
                 f"{right},\"=\"", right + ",x=y" * 14,
                 right + ",x=" + "y" * (1024 - len(right) - 3)):
        shown = text.replace(good, "HEX").replace("\t", "TAB")
        case(f"form: {shown if len(shown) < 99 else shown[:40] + '...'}", text)

    for text, cause, part in (
        ("", "not_pair", 1), (" ", "not_pair", 1), ("\t", "not_pair", 1), (",", "not_pair", 1),
        ("=", "not_pair", 1), ("t", "not_pair", 1), (good, "not_pair", 1),
        (f",{right}", "not_pair", 1), (f"{right},", "not_pair", 3), (f"{right}, ", "not_pair", 3),
        (f"t={NOW},,v1={good}", "not_pair", 2), (f"{right},x", "not_pair", 3),
        (f"{right},=x", "not_pair", 3), (f"t:{NOW},v1:{good}", "not_pair", 1),
        (f"t={NOW};v1={good}", "timestamp", 1), (f"t={NOW}&v1={good}", "timestamp", 1),
        (f"t={NOW} v1={good}", "blank", 1), (f"t ={NOW},v1={good}", "blank", 1),
        (f"t= {NOW},v1={good}", "blank", 1), (f"t={NOW},v1 ={good}", "blank", 2),
        (f"t={NOW},v1=\t{good}", "blank", 2), (f"{right},x=a b", "blank", 3),
        (f"t={NOW},v1={good[:32]} {good[32:]}", "blank", 2),
        (f"{right}\n", "not_printable", 2), (f"{right}\r\n", "not_printable", 2),
        (f"{right}\x00", "not_printable", 2), (f"{right},x=\x7f", "not_printable", 3),
        (f"{right},x=\x80", "not_printable", 3), (f"{right},x=\xff", "not_printable", 3),
        (f"\xa0{right}", "not_printable", 1), (f"\x0b{right}", "not_printable", 1),
        (f"t={NOW},t={NOW},v1={good}", "two_timestamps", 2),
        (f"{right},t={NOW}", "two_timestamps", 3), (f"{right},t=1", "two_timestamps", 3),
        (f"{right}, {right}", "two_timestamps", 3),
        (f"v1={good}", "no_timestamp", None), (f"T={NOW},v1={good}", "no_timestamp", None),
        (f"x=y,v1={good}", "no_timestamp", None), (f"t={NOW}", "no_digest", None),
        (f"t={NOW},v0={good}", "no_digest", None), (f"t={NOW},V1={good}", "no_digest", None),
        (f"t={NOW},v2={good}", "no_digest", None), (f"t={NOW},sha256={good}", "no_digest", None),
        (right + ",x=y" * 15, "too_many_parts", None), (right + f",v1={good}" * 14 + ",x=y", None, None),
        (right + ",x=" + "y" * (1024 - len(right) - 2), "too_long", None),
        ("x" * 1025, "too_long", None), (",".join(["x=y"] * 17), "too_many_parts", None),
    ):
        shown = text.replace(good, "HEX").encode("unicode_escape").decode()
        shown = shown if len(shown) < 99 else shown[:40] + "..."
        if cause is None:
            # Fifteen digests of 68 bytes are more than 1 KiB.
            cause = "too_long"
        more = {} if part is None else {"part": part}
        if cause == "too_long":
            more["length"] = len(text)
        case(f"malformed: {shown}, {cause}", text, cause, **more)

    case("no header", [], "missing")
    case("two headers, the same", [right, right], "repeated", header="signature")
    case("two headers, the first good", [right, "t=1,v1=0"], "repeated", header="signature")
    case("two headers, the last good", ["t=1,v1=0", right], "repeated", header="signature")


def loose_readings():
    """What the number readers, decoders and containers of other languages let through."""
    good = digest()
    right = header(good)
    # `now` is the number that a looser reader finds in `t`, and the digest covers `t` as sent.
    for t, now in (("+5", 5), ("-5", -5), ("+0", 0), ("-0", 0), ("017", 17), ("017", 15),
                   ("1e3", 1000), ("0x10", 16), ("0b11", 3), ("0o17", 15), ("5.0", 5), ("5.", 5), (".5", 0),
                   ("5_0", 50), ("5n", 5), ("5L", 5), ("5d", 5), ("5s", 5), ('"5"', 5), ("'5'", 5),
                   ("%35", 5), ("=5", 5), ("5=", 5), ("", 0), ("null", 0), ("false", 0),
                   ("true", 1), ("NaN", NOW), ("nan", NOW), ("Infinity", NOW), ("-Infinity", NOW),
                   (f"{2**64 + NOW}", NOW), (f"{2**64}", 0), (f"{10**20}", 0)):
        case(f"t is {t!r}, now is {now}", header(digest(t=t), t=t), "timestamp", now=now, part=1)
    for name, t, now in (("arabic-indic", "\u0665", 5), ("devanagari", "\u096b", 5),
                         ("fullwidth", "\uff15", 5), ("mathematical", "\U0001d7d3", 5)):
        t = t.encode()
        text = header(digest(t=t), t=t.decode("latin-1"))
        case(f"t is {name} five", text, "not_printable", now=now, part=1)
    for name, t, now in (("two", b"\xb2", 2), ("one", b"\xb9", 1)):
        text = header(digest(t=t), t=t.decode("latin-1"))
        case(f"t is superscript {name} in latin-1", text, "not_printable", now=now, part=1)
    # Cut to 31, 32 or 63 bits, rounded to a double, or negated where no negative exists.
    for t, now in ((NOW + 2**31, NOW), (NOW + 2**32, NOW), (NOW + 2**63, NOW), (2**31, 0),
                   (2**32, 0), (2**53 + 1, 0), (2**63, 0), (2**63 + 1, 0), (2**63, -1),
                   (2**63 - 1, -10)):
        case(f"t: {t}, now is {now}", header(digest(t=t), t=t), "too_new", now=now, by=t - now)

    case("t: 0, now is 300 s before 1970", header(digest(t=0), t=0), now=-300, age=-300)
    case("t: 0, now is 301 s before 1970", header(digest(t=0), t=0), "too_new", now=-301, by=301)

    # What was signed is what a careless reader makes of what came.
    for name, came, signed in (
        ("lossy utf-8", b'{"name":"M\xfcller"}', '{"name":"M\ufffdller"}'.encode()),
        ("question mark for a byte", b'{"name":"M\xfcller"}', b'{"name":"M?ller"}'),
        ("latin-1 to utf-8", b'{"name":"M\xfcller"}', '{"name":"M\u00fcller"}'.encode()),
        ("bom dropped", b"\xef\xbb\xbf" + BODY, BODY),
        ("cr lf to lf", b'{\r\n"id":1}', b'{\n"id":1}'),
        ("cut at nul", b"{}\x00{}", b"{}"),
        ("spaces around dropped", b" {} \n", b"{}"),
        ("json written again", b'{"a": 750.0}', b'{"a":750}'),
        ("escapes written again", b'{"a":"\\u00fc\\/"}', '{"a":"\u00fc/"}'.encode()),
        ("composed letters", '{"a":"e\u0301"}'.encode(), '{"a":"\u00e9"}'.encode()),
        ("surrogate as utf-8", b'"\xed\xa0\xbd"', '"\ufffd"'.encode()),
    ):
        case(f"loose body: {name}", header(digest(signed)), "mismatch", body=came)

    # Hex readers that take a sign or a space for a digit.
    body = next(b for b in (b"%d" % n for n in range(1000)) if digest(b)[6] == "0")
    for sign in "+-":
        text = digest(body)[:6] + sign + digest(body)[7:]
        case(f"digit 6 is {sign} for 0", header(text), "digest_character", body=body, part=2, at=6)
    for name, text, length in (
        ("63 digits", good[:63], 63), ("65 digits", good + "a", 65), ("empty", "", 0),
        ("an equals sign before", "=" + good, 65), ("an equals sign after", good + "=", 65),
        ("in quotes", f'"{good}"', 66), ("with its name", f"sha256={good}", 71),
        ("with a colon per byte", ":".join(good[i : i + 2] for i in range(0, 64, 2)), 95),
        ("percent-encoded first digit", f"%{ord(good[0]):02x}{good[1:]}", 66),
    ):
        case(f"v1: {name}", header(text), "digest_length", part=2, length=length)
    for name, text in (
        ("64 bytes of latin-1", "\xe9" * 64),
        ("the last digit in latin-1", good[:63] + "\xe9"),
        ("the first digit fullwidth",
         chr(ord(good[0]) + 0xFEE0).encode().decode("latin-1") + good[1:]),
        ("a line end and a digit less", good[:63] + "\n"),
        ("a line end before", "\n" + good),
        ("nul before", "\x00" + good),
        ("nul for the last digit", good[:63] + "\x00"),
    ):
        case(f"v1: {name}", header(text), "not_printable", part=2)
    case("v1: nul after the right one", header(good + "\x00", good), "not_printable", part=2)
    case("v1: joined without a name", f"{right},{good}", "not_pair", part=3)

    for byte in (0x00, 0x0A, 0x0B, 0x0C, 0x0D, 0x1C, 0x1F, 0x7F, 0x85, 0xA0):
        c = chr(byte)
        case(f"trimmed: {byte:02x} first", c + right, "not_printable", part=1)
        case(f"trimmed: {byte:02x} after t", f"t={NOW}{c},v1={good}", "not_printable", part=1)
        case(f"trimmed: {byte:02x} within t", f"t={c}{NOW},v1={good}", "not_printable", part=1)
        case(f"trimmed: {byte:02x} before v1", f"t={NOW},{c}v1={good}", "not_printable", part=2)
        case(f"trimmed: {byte:02x} in the last value", f"{right},x={c}", "not_printable", part=3)
    for name, c in (("bom", "\ufeff"), ("em space", "\u2003"), ("ideographic space", "\u3000"),
                    ("line separator", "\u2028"), ("zero-width space", "\u200b")):
        text = c.encode().decode("latin-1")
        case(f"trimmed: {name} first", text + right, "not_printable", part=1)
        case(f"trimmed: {name} last", right + text, "not_printable", part=2)
    case("trimmed: tabs and spaces around all", f" \tt={NOW}\t ,\t v1={good} \t")
    case("trimmed: a tab in t", f"t=\t{NOW},v1={good}", "blank", part=1)
    case("trimmed: spaces up to 1024 bytes", right + " " * (1024 - len(right)))
    case("trimmed: spaces up to 1025 bytes", right + " " * (1025 - len(right)), "too_long",
         length=1025)
    case("a space alone as the third part", f"{right}, ,x=y", "not_pair", part=3)
    case("two commas at the end", f"{right},,", "not_pair", part=3)

    for name in ("__proto__", "constructor", "toString", "t[]", "v1[]", "t.", "%74", "v1%20", "v"):
        case(f"name {name} beside the right ones", f"{right},{name}=1")
        case(f"name {name} for t", f"{name}={NOW},v1={good}", "no_timestamp")
        case(f"name {name} for v1", f"t={NOW},{name}={good}", "no_digest")
    case("split at the last equals sign: t", f"t={NOW}=,{right}", "timestamp", part=1)
    case("split at the last equals sign: v1", f"t={NOW},v1=x={good}", "digest_length", part=2,
         length=66)
    case("comma percent-encoded", f"t={NOW}%2Cv1={good}", "timestamp", part=1)
    case("colons, spaces and braces of a list", f"[t={NOW},v1={good}]", "no_timestamp")
    case("two headers, the first empty", ["", right], "repeated", header="signature")
    case("two headers, the last empty", [right, ""], "repeated", header="signature")
    case("three headers", [right] * 3, "repeated", header="signature")
    case("two headers, one part each", [f"t={NOW}", f"v1={good}"], "repeated", header="signature")
    case("an empty header", "", "not_pair", part=1, secrets=["whsec_a", SECRET])


def unusable_secrets():
    """No secret is one of these, so the digest under it must not count. JSON lacks them, since the
    crate refuses them before there is a verifier."""
    for name, secrets in {
        "none": [],
        "empty": [""],
        "empty beside a good one": ["whsec_another", ""],
        "the prefix alone": ["whsec_"],
        "without the prefix": ["secret"],
        "a prefix in uppercase": ["WHSEC_test"],
        "a line end after": ["whsec_test\n"],
        "a line end before": ["\nwhsec_test"],
        "a space within": ["whsec_te st"],
        "not ascii": ["whsec_t\u00e9st"],
        "256 bytes": ["whsec_" + "x" * 250],
        "an unset variable": ["undefined"],
        "an unset variable of python": ["None"],
        "two in one": ["whsec_a whsec_b"],
    }.items():
        key = secrets[-1] if secrets else ""
        unusable.append({"name": f"unusable secret: {name}", "secrets": secrets,
                         "body": BODY.decode(), "signature": [header(digest(key=key))],
                         "now": NOW, "verdict": "mismatch"})


def table():
    yield "name", "signatures", "secrets", "body", "now", "tolerance", "verdict"
    for case in cases + unusable:
        # Verifiers in other languages are given whole seconds.
        if case.get("now_nanos", 0):
            continue
        body = bytes.fromhex(case["body_hex"]) if "body_hex" in case else case["body"].encode()
        yield (
            case["name"],
            ",".join(value.encode("latin-1").hex() for value in case["signature"])
            if case["signature"] else "-",
            ",".join(secret.encode().hex() for secret in case["secrets"])
            if case["secrets"] else "-",
            body.hex(),
            str(case["now"]),
            str(case.get("tolerance", 300)),
            "accepted" if case["verdict"] == "accepted" else "refused",
        )


def written(path, text):
    if "--check" not in sys.argv:
        path.write_text(text)
    elif path.read_text() != text:
        sys.exit(f"{path} is not what {__file__} writes")


def main():
    # RFC 4231, test case 2: is this HMAC-SHA256 at all?
    known = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    assert hmac.new(b"Jefe", b"what do ya want for nothing?", "sha256").hexdigest() == known
    for family in (bodies, secrets, digests, several, window, grammar, loose_readings,
                   unusable_secrets):
        family()
    assert len(cases) >= 200
    here = pathlib.Path(__file__)
    lines = ",\n".join(json.dumps(case) for case in cases)
    written(here.with_name("signatures.json"), f'{{"format": 1, "cases": [\n{lines}\n]}}\n')
    rows = list(table())
    assert all(cell.isprintable() for row in rows for cell in row)
    written(here.with_name("signatures.tsv"), "".join("\t".join(row) + "\n" for row in rows))
    print(f"{len(cases)} cases, {len(rows) - 1} rows")


main()
