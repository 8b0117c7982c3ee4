"""Signs and verifies what it is asked to with the stripe package, JSON in and JSON out."""

import json
import sys

import stripe

asked = json.load(sys.stdin)
answer = {"peer": f"stripe {stripe.VERSION} (PyPI)", "verified": {}, "signed": {}}

for case in asked["verify"]:
    try:
        stripe.WebhookSignature.verify_header(
            bytes.fromhex(case["body"]), case["header"], case["secret"], case["tolerance"]
        )
        verdict = "accepted"
    except stripe.SignatureVerificationError as error:
        verdict = str(error)
    except UnicodeDecodeError:
        verdict = "not text"
    answer["verified"][case["name"]] = verdict

for case in asked["sign"]:
    try:
        body = bytes.fromhex(case["body"]).decode()
    except UnicodeDecodeError:
        continue
    answer["signed"][case["name"]] = stripe.WebhookSignature.generate_signature_header(
        body, case["secret"], case["time"]
    )

json.dump(answer, sys.stdout)
