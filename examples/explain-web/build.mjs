// Writes the page with the library inside, and a policy that lets nothing out. It lies where the
// dashboard serves it, and opens from there in any browser.
//
//   cargo build -p call-assistant-explain-web --profile page --target wasm32-unknown-unknown
//   node examples/explain-web/build.mjs
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";

const here = new URL(".", import.meta.url);
const target = process.env.CARGO_TARGET_DIR ? new URL(`file://${process.env.CARGO_TARGET_DIR}/`) : new URL("../../target/", here);
const wasm = readFileSync(new URL("wasm32-unknown-unknown/page/call_assistant_explain_web.wasm", target));
if (wasm.length > 250 * 1024) throw new Error(`${wasm.length} bytes of wasm, more than 250 KiB`);

let page = readFileSync(new URL("page.html", here), "utf8").replace("@WASM@", wasm.toString("base64"));
const hash = (tag) => `'sha256-${createHash("sha256").update(page.split(`<${tag}>`)[1].split(`</${tag}>`)[0]).digest("base64")}'`;
const policy = `default-src 'none'; script-src ${hash("script")} 'wasm-unsafe-eval'; style-src ${hash("style")}; base-uri 'none'; form-action 'none'`;
page = page.replace("@CSP@", policy);
writeFileSync(new URL("explain.html", here), page);
console.log(`page: ${page.length} bytes, ${wasm.length} of them wasm`);
