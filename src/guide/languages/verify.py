"""Verifies webhooks. Copy this file into your program; it needs Python 3.7 or later.

    signatures = request.headers.getlist("X-Service-Signature")        # Flask
    if not verify(signatures, request.get_data(), [os.environ["WEBHOOK_SECRET"]]):
        return "", 400

`signatures`: the header's value, or a list of all its values. `body`: the bytes as received, before
any JSON code. `secrets`: all that are valid now, two during a rotation. Only `True` means genuine.
"""

import hashlib
import hmac
import re
import time

_SECRET = re.compile(r"whsec_[!-~]{1,249}")
_PART = re.compile(r"([!-<>-~]+)=([!-~]*)")
_TIMESTAMP = re.compile(r"0|[1-9][0-9]{0,18}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


def verify(signatures, body, secrets, now=None, tolerance=300):
    now = int(time.time()) if now is None else now
    timestamp, digests = _parse([signatures] if isinstance(signatures, str) else signatures)
    if timestamp is None:
        return False
    message = timestamp.encode() + b"." + body
    genuine = False
    for secret in secrets:
        if _SECRET.fullmatch(secret or ""):
            expected = hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()
            for digest in digests:
                genuine |= hmac.compare_digest(digest, expected)
    return genuine and abs(int(timestamp) - now) <= tolerance


def _parse(signatures):
    malformed = None, []
    if signatures is None or len(signatures) != 1 or len(signatures[0]) > 1024:
        return malformed
    parts = signatures[0].split(",")
    if len(parts) > 16:
        return malformed
    timestamp, digests = None, []
    for part in parts:
        pair = _PART.fullmatch(part.strip(" \t"))
        if not pair:
            return malformed
        name, value = pair.groups()
        if name == "t":
            if timestamp is not None or not _TIMESTAMP.fullmatch(value):
                return malformed
            timestamp = value
        elif name == "v1" and _DIGEST.fullmatch(value):
            digests.append(value)  # another v1 may be good, so an ill-formed one is ignored
    return timestamp, digests
