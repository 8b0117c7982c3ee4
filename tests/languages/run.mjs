// Runs verify.mjs or verify_edge.mjs over the table of vectors: run.mjs VERIFY.MJS TABLE.TSV.

import { webcrypto } from "node:crypto";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

// Node 18 has Web Crypto, but not under the name that every runtime has it.
globalThis.crypto ??= webcrypto;

const [, , file, table] = process.argv;
const { verify } = await import(pathToFileURL(resolve(file)));

const unhex = (cell) => (cell === "-" ? [] : cell.split(",").map((text) => Buffer.from(text, "hex")));

async function verdict(...args) {
  try {
    const good = await verify(...args);
    return good === true ? "accepted" : good === false ? "refused" : String(good);
  } catch (error) {
    return String(error);
  }
}

let passed = 0;
const rows = readFileSync(table, "utf8").trimEnd().split("\n").slice(1);
for (const row of rows) {
  const [name, signatures, secrets, body, now, tolerance, expected] = row.split("\t");
  const keys = unhex(secrets).map(String);
  // Most cases have the tolerance that is the default.
  const rest = tolerance === "300" ? [] : [Number(tolerance)];
  const found = new Set();
  // Servers decode headers in one of these two ways.
  for (const encoding of ["latin1", "utf8"]) {
    const values = unhex(signatures).map((value) => value.toString(encoding));
    const forms = [values, ...(values.length === 1 ? values : []), ...(values.length ? [] : [undefined, null])];
    for (const form of forms) {
      for (const bytes of [Buffer.from(body, "hex"), new Uint8Array(Buffer.from(body, "hex"))]) {
        found.add(await verdict(form, bytes, keys, Number(now), ...rest));
      }
    }
  }
  if (found.size === 1 && found.has(expected)) {
    passed += 1;
  } else {
    console.error(`${name}: expected ${expected}, found ${[...found]}`);
  }
}
console.log([process.version, passed, rows.length].join("\t"));
process.exitCode = passed === rows.length ? 0 : 1;
