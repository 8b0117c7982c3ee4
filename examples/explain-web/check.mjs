// Asks the library inside the committed page and the one that was just built about every vector and every
// accident: both have to say the same, and what the files say.
//
//   node check.mjs
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

const here = new URL(".", import.meta.url);
const root = new URL("../../", here);
const target = process.env.CARGO_TARGET_DIR ? new URL(`file://${process.env.CARGO_TARGET_DIR}/`) : new URL("../../target/", here);
const built = readFileSync(new URL("wasm32-unknown-unknown/page/call_assistant_explain_web.wasm", target));
assert.ok(built.length <= 250 * 1024, `${built.length} bytes of wasm, more than 250 KiB`);
const page = readFileSync(new URL("explain.html", here), "utf8");
const committed = Buffer.from(/const WASM = "([^"]*)"/.exec(page)[1], "base64");

async function library(wasm) {
  const { instance: { exports } } = await WebAssembly.instantiate(wasm);
  return (name, fields) => {
    const question = Buffer.concat(fields.flatMap((field) => {
      const bytes = Buffer.from(field);
      const length = Buffer.alloc(4);
      length.writeUInt32LE(bytes.length);
      return [length, bytes];
    }));
    const at = exports.input(question.length);
    new Uint8Array(exports.memory.buffer).set(question, at);
    const answered = exports[name]();
    return Buffer.from(exports.memory.buffer, exports.output(), answered).toString();
  };
}
const [inPage, fresh] = await Promise.all([committed, built].map(library));

function both(fields) {
  const answer = fresh("explain", fields);
  assert.equal(inPage("explain", fields), answer, "the committed page is of another library: node build.mjs");
  return JSON.parse(answer);
}

const hex = (text) => Buffer.from(text, "hex");
const request = ({ signature, delivery, body }) => Buffer.concat([
  Buffer.from("POST / HTTP/1.1\r\nX-Service-Signature: "), hex(signature),
  Buffer.from(delivery === null ? "" : "\r\nX-Service-Delivery: "), hex(delivery ?? ""),
  Buffer.from("\r\n\r\n"), hex(body),
]);

// A page takes the header as text, and one of them.
let asked = 0;
for (const vector of JSON.parse(readFileSync(new URL("tests/vectors/signatures.json", root))).cases) {
  const latin = /[^\x09\x20-\x7e]/;
  // HTTP takes the spaces around a value away, which a header of 1025 bytes may consist of.
  const isTrimmed = vector.verdict === "too_long" && vector.signature[0]?.trim().length <= 1024;
  if (vector.signature.length !== 1 || latin.test(vector.signature[0]) || vector.tolerance !== undefined || isTrimmed) continue;
  const body = vector.body === undefined ? hex(vector.body_hex) : Buffer.from(vector.body);
  const [secret, ...others] = vector.secrets;
  const header = `X-Service-Signature: ${vector.signature[0]}`;
  const { proven, causes } = both([String(vector.now), "Service", header, body, secret, ...others.flatMap((other) => ["1", other])]);
  const codes = causes.map(({ code }) => code);
  const genuine = proven && codes.every((code) => code === "secret_other");
  if (vector.now_nanos === undefined) assert.equal(genuine, vector.verdict === "accepted", `${vector.name}: ${codes}`);
  asked++;
}
const accidents = JSON.parse(readFileSync(new URL("tests/webhook/wire/explain/accidents.json", root)));
for (const accident of accidents) {
  const head = request({ ...accident, body: "" });
  const others = accident.known.flatMap((other) => ["2", request(other)]);
  const { proven, causes } = both([String(accident.now), "Service", head, hex(accident.body), hex(accident.secret), ...others]);
  const found = [proven ? "proven" : "guessed", ...causes.map(({ code }) => code)].join(" ");
  assert.equal(found, accident.expected, accident.name);
  const split = JSON.parse(inPage("split", ["Service", request(accident)]));
  assert.equal(split?.head, head.length, accident.name);
}
console.log(`page: ${asked} vectors and ${accidents.length} accidents, ${committed.length} bytes of wasm`);
