// Verifies webhooks with Web Crypto: for edge runtimes, Deno, Bun, and Node 20 or later. Copy this
// file into your program.
//
//     const body = new Uint8Array(await request.arrayBuffer());
//     const signature = request.headers.get("X-Service-Signature");
//     if (!(await verify(signature, body, [env.WEBHOOK_SECRET]))) {
//       return new Response(null, { status: 400 });
//     }
//
// signatures: the header's value, or an array of all its values. body: a Uint8Array of the bytes as
// received, before any JSON code; anything else throws. secrets: all that are valid now, two during
// a rotation. Await the promise: only `true` means genuine.

const SECRET = /^whsec_[!-~]{1,249}$/;
const PART = /^([!-<>-~]+)=([!-~]*)$/;
const TIMESTAMP = /^(0|[1-9][0-9]{0,18})$/;
const DIGEST = /^[0-9a-f]{64}$/;

export async function verify(signatures, body, secrets, now = Math.floor(Date.now() / 1000), tolerance = 300) {
  if (!(body instanceof Uint8Array)) {
    throw new TypeError("body must be the bytes as received");
  }
  const parsed = parse(signatures ?? []);
  if (!parsed) {
    return false;
  }
  const text = new TextEncoder();
  const start = text.encode(`${parsed.timestamp}.`);
  const message = new Uint8Array(start.length + body.length);
  message.set(start);
  message.set(body, start.length);
  let genuine = false;
  for (const secret of secrets.filter((text) => SECRET.test(text))) {
    const hmac = { name: "HMAC", hash: "SHA-256" };
    const key = await crypto.subtle.importKey("raw", text.encode(secret), hmac, false, ["sign"]);
    const expected = new Uint8Array(await crypto.subtle.sign("HMAC", key, message));
    for (const digest of parsed.digests) {
      genuine = equal(digest, expected) || genuine;
    }
  }
  // A timestamp too large for a number is rounded, and remains much too far from `now`.
  return genuine && Math.abs(Number(parsed.timestamp) - now) <= tolerance;
}

// Compares in a time that does not depend on where the two differ.
function equal(digest, expected) {
  return expected.reduce((all, byte, i) => all | (byte ^ parseInt(digest.slice(2 * i, 2 * i + 2), 16)), 0) === 0;
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
