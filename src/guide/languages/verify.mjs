// Verifies webhooks. Copy this file into your program; it needs Node 18.3 or later.
//
//     app.post("/webhooks", express.raw({ type: "*/*" }), (request, response) => {
//       const signatures = request.headersDistinct["x-service-signature"];
//       if (!verify(signatures, request.body, [process.env.WEBHOOK_SECRET])) {
//         return response.status(400).end();
//       }
//
// signatures: the header's value, or an array of all its values. body: a Buffer or Uint8Array as
// received, before any JSON code; anything else throws. secrets: all that are valid now, two during
// a rotation. Only `true` means genuine.

import { createHmac, timingSafeEqual } from "node:crypto";

const SECRET = /^whsec_[!-~]{1,249}$/;
const PART = /^([!-<>-~]+)=([!-~]*)$/;
const TIMESTAMP = /^(0|[1-9][0-9]{0,18})$/;
const DIGEST = /^[0-9a-f]{64}$/;

export function verify(signatures, body, secrets, now = Math.floor(Date.now() / 1000), tolerance = 300) {
  if (!(body instanceof Uint8Array)) {
    throw new TypeError("body must be the bytes as received");
  }
  const parsed = parse(signatures ?? []);
  if (!parsed) {
    return false;
  }
  let genuine = false;
  for (const secret of secrets.filter((text) => SECRET.test(text))) {
    const hmac = createHmac("sha256", secret).update(`${parsed.timestamp}.`).update(body);
    const expected = Buffer.from(hmac.digest("hex"));
    for (const digest of parsed.digests) {
      genuine = timingSafeEqual(Buffer.from(digest), expected) || genuine;
    }
  }
  // A timestamp too large for a number is rounded, and remains much too far from `now`.
  return genuine && Math.abs(Number(parsed.timestamp) - now) <= tolerance;
}

function parse(signatures) {
  const [header, ...others] = [signatures].flat();
  if (header === undefined || others.length > 0 || header.length > 1024) {
    return null;
  }
  const parts = header.split(",");
  let timestamp = null;
  const digests = [];
  for (const part of parts) {
    const [, name, value] = PART.exec(part.replace(/^[ \t]+|[ \t]+$/g, "")) ?? [];
    if (name === undefined || (name === "t" && (timestamp !== null || !TIMESTAMP.test(value)))) {
      return null;
    }
    if (name === "t") {
      timestamp = value;
    } else if (name === "v1" && DIGEST.test(value)) {
      digests.push(value); // another v1 may be good, so an ill-formed one is ignored
    }
  }
  return timestamp === null || parts.length > 16 ? null : { timestamp, digests };
}
