"""Writes accidents.json: deliveries that something happened to, and what is to be said of each.

    python3 accidents.py           writes the file next to this one
    python3 accidents.py --check   exits with 1 if the file is not what this writes

The digests are those of CPython's hmac. What is said is stated here, not computed: `proven` or
`guessed`, and the codes. Each byte string is in hex. `known` are other deliveries.
"""

import base64
import gzip
import hashlib
import hmac
import html
import json
import pathlib
import sys
import urllib.parse

NOW = 1767225600
SECRET = "whsec_cGxlYXNlIGRvIG5vdCBkZWNvZGUgdGhpcw"
BARE = SECRET.removeprefix("whsec_")
BODY = (
    '{"id":"evt_1","type":"call.ended","created_at":"2026-01-01T00:00:00+00:00",'
    '"api_version":"2026-01-01","account_id":"acct_1","origin":{"source":"voice",'
    '"credential_id":null,"idempotency_key":null},"data":{"object":{"id":"call_1",'
    '"caller":{"contact_id":null,"phone_number":"+49 30 1","display_name":"Zoë <M&M\'s> – “A”"},'
    '"summary":"see https://example.com/a \\"b\\"\\n","appointment_ids":[],"extra":{}}}}'
).encode()
USAGE = b'{"id":"evt_1","type":"usage.threshold_reached","data":{"used":750.0,"of":1000,"rate":0.750}}'
OTHER = b'{"id":"evt_2","type":"ping","data":{"message":"hello"}}'
ROWS = []


def digest(body, time=NOW, secret=SECRET):
    key = secret if isinstance(secret, bytes) else secret.encode()
    return hmac.new(key, f"{time}.".encode() + body, hashlib.sha256).hexdigest()


def header(body=BODY, time=NOW, secret=SECRET):
    return f"t={time},v1={digest(body, time, secret)}"


def row(name, expected, body=BODY, signature=None, secret=SECRET, delivery=None, now=NOW, known=()):
    data = lambda value: (value if isinstance(value, bytes) else value.encode()).hex()
    ROWS.append({
        "name": name,
        "expected": expected,
        "signature": data(header() if signature is None else signature),
        "delivery": None if delivery is None else data(delivery),
        "body": data(body),
        "secret": data(secret),
        "now": now,
        "known": [
            {"signature": data(s), "delivery": None if d is None else data(d), "body": data(b)}
            for s, d, b in known
        ],
    })


# What was called proven, and was wrong.

mangled = BODY.replace("Zoë".encode(), b"Zo?")
second = header(time=NOW + 10)
row("a mangled first attempt, an intact second one", "proven body_changed", mangled, known=[(second, None, BODY)])
row("an empty first attempt, an intact second one", "proven body_empty", b"", known=[(second, None, BODY)])
row("a first attempt cut off, an intact second one", "proven body_cut_off", BODY[:300], known=[(second, None, BODY)])
row("an intact second attempt of a rotated secret", "guessed", signature=header(secret="whsec_rotated"), known=[(header(), None, mangled)])
row("a leading period", "proven body_period_prepended", b"." + BODY)
row("a leading time", "proven body_time_prepended", f"{NOW}.".encode() + BODY)
whole = base64.b64encode(SECRET.encode()).decode()
row("the base64 of the whole secret", "proven secret_base64", secret=whole)
row("the base64 of the whole secret, with a line end", "proven secret_base64 secret_space", secret=base64.b64encode(SECRET.encode() + b"\n").decode())
row("the base64 of the whole secret, broken into lines", "proven secret_base64", secret=whole[:20] + "\n" + whole[20:])
row("the base64 of the whole secret, in quotes", "proven secret_quotes secret_base64", secret=f'"{whole}"')
row("the whole header set of another delivery", "proven delivery_other", signature=header(OTHER), delivery="evt_2", known=[(header(OTHER), "evt_2", OTHER)])
row("the signature of another delivery", "proven delivery_other", signature=header(OTHER), delivery="evt_1", known=[(header(OTHER), "evt_2", OTHER)])

# The verifier's own reason.

upper = header().split("v1=")[0] + "v1=" + digest(BODY).upper()
row("uppercase, and a trailing comma", "proven digest_uppercase signature_malformed", signature=upper + ",")
row("old, and a trailing comma", "proven signature_malformed time_too_old", signature=header() + ",", now=NOW + 4000)
row("old, in semicolons", "proven signature_malformed time_too_old", signature=header().replace(",", ";"), now=NOW + 301)
row("too new, and pasted with its name", "proven signature_label time_too_new", signature="X-Service-Signature: " + header(), now=NOW - 400)
millis = NOW * 1000 + 123
row("milliseconds", "proven time_milliseconds", signature=header(time=millis))
row("milliseconds, and old", "proven time_milliseconds time_too_old", signature=header(time=millis), now=NOW + 4000)
row("milliseconds sent, seconds signed, and old", "proven time_milliseconds time_too_old", signature=f"t={millis},v1={digest(BODY)}", now=NOW + 4000)
row("seconds sent, milliseconds signed", "proven signed_milliseconds", signature=f"t={NOW},v1={digest(BODY, millis)}")
row("old", "proven time_too_old", now=NOW + 301)
row("a line end, and old", "proven body_line_end_added time_too_old", BODY + b"\n", now=NOW + 301)

# A secret that cannot be one.

for name, code, secret in [
    ("empty", "secret_empty", ""),
    ("spaces", "secret_empty", " \n"),
    ("the prefix alone", "secret_empty", "whsec_"),
    ("an unexpanded variable", "secret_not_expanded", "${WEBHOOK_SECRET}"),
    ("an unexpanded variable of a shell", "secret_not_expanded", "$WEBHOOK_SECRET"),
    ("an unexpanded template", "secret_not_expanded", "{{ webhook_secret }}"),
    ("an API key", "secret_api_key", "service_live_0123456789abcdef"),
    ("an API key for tests", "secret_api_key", "service_test_0123456789abcdef"),
    ("shortened", "secret_shortened", "whsec_cGxl\u2026"),
    ("shortened with periods", "secret_shortened", "whsec_cGxl..."),
    ("masked", "secret_shortened", "whsec_****************"),
    ("uppercase", "secret_uppercase", SECRET.upper()),
    ("a placeholder", "secret_placeholder", "whsec_your_secret_here"),
    ("a placeholder in brackets", "secret_placeholder", "<signing secret>"),
    ("a placeholder of x", "secret_placeholder", "whsec_xxxxxxxxxxxx"),
    ("no prefix", "secret_invalid", "correct horse battery staple"),
]:
    row(f"secret: {name}", f"guessed {code}", secret=secret)
row("an empty secret and an empty body", "guessed secret_empty body_empty", b"", secret="")
row("an empty secret, and no digest", "proven secret_empty signature_malformed", signature=f"t={NOW}", secret="")

# A secret with something to it.

for name, codes, secret in [
    ("a quote and a comma", "secret_punctuation secret_quotes", f'{SECRET}",'),
    ("a semicolon", "secret_punctuation", f"{SECRET};"),
    ("a line of a shell", "secret_punctuation secret_quotes secret_label", f'export WEBHOOK_SECRET="{SECRET}";'),
    ("a line of JSON", "secret_quotes secret_punctuation secret_label", f'"secret": "{SECRET}",'),
    ("all of a JSON", "secret_punctuation secret_quotes secret_label", f'{{"secret":"{SECRET}"}}'),
    ("a literal line end", "secret_literal_line_end", SECRET + "\\n"),
    ("a literal CR LF", "secret_literal_line_end", SECRET + "\\r\\n"),
    ("a literal line end in quotes", "secret_quotes secret_literal_line_end", f'"{SECRET}\\n"'),
    ("a zero-width space after it", "secret_space", SECRET + "\u200b"),
    ("a zero-width space inside", "secret_space_inside", SECRET[:12] + "\u200b" + SECRET[12:]),
    ("a line break inside", "secret_space_inside", SECRET[:20] + "\n" + SECRET[20:]),
    ("a line break and an indentation inside", "secret_space_inside", SECRET[:20] + "\r\n    " + SECRET[20:]),
    ("a line break inside and at the end", "secret_space secret_space_inside", SECRET[:20] + "\n" + SECRET[20:] + "\n"),
    ("without its prefix", "secret_prefix_missing", BARE),
    ("its prefix twice", "secret_label", "whsec_" + SECRET),
]:
    row(f"secret: {name}", f"proven {codes}", secret=secret)
row("the signer drops the prefix", "proven signer_prefix_dropped", signature=header(secret=BARE))
row("the signer decodes the secret", "proven signer_base64_decoded", signature=header(secret=b"please do not decode this"))
row("the signer has a line end", "proven signer_line_end", signature=header(secret=SECRET + "\n"))

# A body that was wrapped, or written in another form.

def chunked(body, sizes):
    frames, rest = b"", body
    for size in sizes:
        chunk, rest = rest[:size], rest[size:]
        frames += f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n"
    return frames + f"{len(rest):x}\r\n".encode() + rest + b"\r\n0\r\n\r\n"


text = BODY.decode()
head = "POST /hooks HTTP/1.1\r\nHost: example.com\r\nContent-Type: application/json\r\n\r\n".encode()
b64 = base64.b64encode(BODY).decode()
compact = lambda value: json.dumps(value, separators=(",", ":"))
gateway = lambda body, is_base64: compact({"resource": "/hooks", "headers": {"host": "h"}, "body": body, "isBase64Encoded": is_base64})
for name, codes, body in [
    ("a form's field", "body_form_encoded", "payload=" + urllib.parse.quote_plus(BODY)),
    ("a form's field among others", "body_form_encoded", "a=b&payload=" + urllib.parse.quote(BODY) + "&c=d"),
    ("all of it encoded", "body_form_encoded", urllib.parse.quote(BODY)),
    ("taken for a field's name", "body_form_encoded", urllib.parse.quote_plus(BODY) + "="),
    ("one chunk", "body_chunked", chunked(BODY, [])),
    ("three chunks", "body_chunked", chunked(BODY, [10, 100])),
    ("a whole request", "body_request", head + BODY),
    ("a whole request with LF", "body_request", head.replace(b"\r\n", b"\n") + BODY),
    ("a whole request, and a line end", "body_wrapped", head + BODY + b"\n"),
    ("a whole request, in chunks", "body_request body_chunked", head + chunked(BODY, [100])),
    ("API Gateway", "body_wrapped", gateway(text, False)),
    ("API Gateway, base64", "body_wrapped body_base64", gateway(b64, True)),
    ("API Gateway, indented", "body_wrapped", json.dumps({"version": "2.0", "body": text}, indent=2)),
    ("SNS", "body_wrapped", json.dumps({"Type": "Notification", "Message": text})),
    ("SQS", "body_wrapped", json.dumps({"Records": [{"messageId": "1", "body": text}]})),
    ("SNS in SQS", "body_wrapped body_wrapped", json.dumps({"Records": [{"body": compact({"Message": text})}]})),
    ("an object in an object", "body_wrapped", b'{"payload":' + BODY + b"}"),
    ("an object in an object, written again", "body_wrapped body_rewritten", json.dumps({"detail": json.loads(BODY)}, ensure_ascii=False)),
    ("a list of one", "body_wrapped", b"[" + BODY + b"]"),
    ("a line of a log", "body_wrapped", b"2026-01-01T00:00:00Z INFO received: " + BODY),
    ("Windows-1252 read", "body_read_as_windows1252", BODY.replace(b"\xe2\x80\x9d", b'\\"').decode("cp1252").encode()),
    ("Windows-1252 written", "body_written_as_windows1252", text.encode("cp1252")),
    ("Latin-1 read", "body_read_as_latin1", BODY.decode("latin-1").encode()),
    ("UTF-16 with a mark", "body_written_as_utf16", text.encode("utf-16")),
    ("UTF-16, the other order", "body_written_as_utf16", text.encode("utf-16-be")),
    ("HTML escapes", "body_html_escaped", html.escape(text)),
    ("HTML escapes of PHP", "body_html_escaped", html.escape(text).replace("&#x27;", "&#039;").replace("&#039;", "&#39;")),
    ("HTML escapes of quotes only", "body_html_escaped", text.replace("&", "&amp;").replace('"', "&quot;")),
    ("a Buffer in JSON", "body_byte_list", compact({"type": "Buffer", "data": list(BODY)})),
    ("a list of bytes", "body_byte_list", str(list(BODY))),
    ("a list of Java's bytes", "body_byte_list", str([byte - 256 if byte > 127 else byte for byte in BODY])),
    ("hex", "body_hex", BODY.hex()),
    ("hex of a database", "body_hex", "\\x" + BODY.hex()),
    ("hex of Node's console", "body_hex", f"<Buffer {BODY.hex(' ')}>"),
    ("base64", "body_base64", b64),
    ("base64 in lines", "body_base64", base64.encodebytes(BODY)),
    ("a JSON string", "body_quoted", json.dumps(text)),
    ("a JSON string in a JSON string", "body_quoted body_quoted", json.dumps(json.dumps(text))),
    ("a Python literal", "body_bytes_literal", repr(BODY)),
    ("Python's JSON", "body_rewritten", json.dumps(json.loads(BODY))),
    ("a line end", "body_line_end_added", BODY + b"\r\n"),
    ("a byte order mark", "body_byte_order_mark_added", b"\xef\xbb\xbf" + BODY),
]:
    signed = BODY.replace(b"\xe2\x80\x9d", b'\\"') if name == "Windows-1252 read" else BODY
    row(f"body: {name}", f"proven {codes}", body, header(signed))
row("body: a number of JavaScript", "proven body_numbers_rewritten", USAGE.replace(b"750.0,", b"750,"), header(USAGE))
row("body: two numbers of JavaScript", "proven body_numbers_rewritten", USAGE.replace(b"750.0,", b"750,").replace(b"0.750}", b"0.75}"), header(USAGE))
row("body: a number of Python", "proven body_numbers_rewritten", USAGE.replace(b"1000", b"1000.0"), header(USAGE))
row("body: all numbers of JavaScript, in Python's JSON", "proven body_numbers_rewritten body_rewritten", b'{"id": "evt_1", "a": [1, 2, 3, 4, 5, 6]}', header(b'{"id":"evt_1","a":[1.0,2.0,3.0,4.0,5.0,6.0]}'))
row("body: gzip", "guessed body_gzip", gzip.compress(BODY, mtime=0))
row("body: empty", "guessed body_empty", b"")
row("body: cut off", "guessed body_cut_off", BODY[:-9])
row("body: replaced characters", "guessed body_replacement_characters", BODY.replace("ë".encode(), "\ufffd".encode()))
row("body: the object of a parser", "guessed body_not_json", b"[object Object]")
row("body: another event", "guessed delivery_id_differs", OTHER, delivery="evt_1")

# A header that was pasted or printed.

for name, codes, value in [
    ("with its name", "signature_label", "X-Service-Signature: " + header()),
    ("with its name, in quotes", "signature_label signature_quoted", f"\"X-Service-Signature: {header()}\""),
    ("as a variable", "signature_label", "signature=" + header()),
    ("in quotes", "signature_quoted", f'"{header()}"'),
    ("in single quotes", "signature_quoted", f"'{header()}'"),
    ("as a list of JavaScript", "signature_quoted", f'["{header()}"]'),
    ("as a list of Python", "signature_quoted", f"['{header()}']"),
    ("as bytes of Python", "signature_quoted", f"b'{header()}'"),
    ("as a list of Go", "signature_quoted", f"[{header()}]"),
    ("as a map of Ruby", "signature_label signature_quoted", f'{{"X-Service-Signature"=>["{header()}"]}}'.replace("=>", ": ")),
    ("in quotes, in uppercase", "digest_uppercase signature_quoted", f'"{upper}"'),
]:
    row(f"header: {name}", f"proven {codes}", signature=value)
row("header: in quotes, and a line end", "proven body_line_end_added signature_quoted", BODY + b"\n", f'"{header()}"')
row("header: with its name, of another secret", "proven signature_label", signature="X-Service-Signature: " + header(secret="whsec_other"))
row("header: a digest in base64", "proven digest_base64", signature=f"t={NOW},v1=" + base64.b64encode(bytes.fromhex(digest(BODY))).decode())
row("header: cut", "proven digest_cut", signature=header()[:-20])
row("nothing is wrong", "proven")
row("forged", "guessed", signature=header(secret="whsec_forged"))


def main():
    names = [row["name"] for row in ROWS]
    assert len(set(names)) == len(names), "two rows have one name"
    path = pathlib.Path(__file__).with_name("accidents.json")
    lines = ",\n".join(json.dumps(row) for row in ROWS)
    text = f"[\n{lines}\n]\n"
    if "--check" in sys.argv:
        sys.exit(0 if path.read_text() == text else f"{path.name} is not what this writes")
    path.write_text(text)
    print(f"{len(ROWS)} accidents")


main()
