// Keeps a copy of all calls with calls.ts: the program of the guide's page on other languages, in TypeScript, with
// files in place of a database.

import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { type Call, Calls } from "./calls.ts";

const api = new Calls(process.env.SERVICE_API!, process.env.SERVICE_API_KEY!);

async function write(path: string, text: string) { // all of it, or nothing
  await writeFile(`${path}.new`, text, { flush: true });
  await rename(`${path}.new`, path);
}

async function store(calls: Call[]) { // a file for each call, in place of a row
  for (const call of calls) await write(`calls/${encodeURIComponent(call.id)}.json`, JSON.stringify(call));
}

await mkdir("calls", { recursive: true });
const watermark = await readFile("watermark", "utf8").catch(() => null);
const next = await api.sync(watermark, store);
if (next !== null) await write("watermark", next);
