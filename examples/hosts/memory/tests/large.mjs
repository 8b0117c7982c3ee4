// The page of an account with two of five endpoints failing and 10,000 deliveries, among 5,000 accounts: how large
// and how late its answer is, and what a reader sees of it without scrolling.
//
//   node examples/hosts/memory/tests/large.mjs target/debug/examples/service [FOLDER FOR SCREENSHOTS]
//
// Exit status 0: everything held.
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import assert from "node:assert/strict";
import { audit } from "../../../testing/axe.mjs";
import { open } from "../../../testing/browser.mjs";

const [binary, shots] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "large-"));
let service, browser, passed = 0;
function end(error) {
  if (error) console.error(error, browser?.complaints);
  console.log(`large: ${passed} passed, ${error ? 1 : 0} failed`);
  service?.kill("SIGKILL");
  browser?.close();
  rmSync(folder, { recursive: true, force: true });
  process.exit(error ? 1 : 0);
}
process.on("uncaughtException", end);
const failed = setTimeout(() => end(new Error("timed out")), 600_000);

const receiver = createServer((request, response) => {
  request.resume().on("end", () => { response.statusCode = request.url.startsWith("/down") ? 503 : 204; response.end(); });
}).listen(0, "127.0.0.1");
await once(receiver, "listening");
const receiving = `http://127.0.0.1:${receiver.address().port}`;
const paths = ["/crm", "/down/billing", "/calendar", "/down/reports", "/archive"];
const accounts = Array.from({ length: 5000 }, (_, n) => ({ id: `acct_${String(n).padStart(4, "0")}`, timezone: "UTC", business_name: `Business ${n}` }));
accounts[2500].endpoints = paths.map((path, n) => ({ id: `whep_${n}`, url: receiving + path }));
const data = join(folder, "data.json");
writeFileSync(data, JSON.stringify({ accounts }));
service = spawn(binary, ["--listen", "127.0.0.1:0", "--dashboard", "127.0.0.1:0", "--allow-loopback-endpoints", "--data", data], { stdio: ["ignore", "pipe", "ignore"] });
let text = "";
for await (const chunk of service.stdout) { text += chunk; if (text.includes("\n")) break; }
const { dashboard } = JSON.parse(text.split("\n")[0]);
const account = `${dashboard}/accounts/acct_2500`;

// 2,000 events for five endpoints each.
let emitted = 0;
await Promise.all(Array.from({ length: 8 }, async () => {
  while (emitted < 2000) {
    emitted++;
    const answer = await fetch(account + "/events", { method: "POST", body: JSON.stringify({ type: "call.noted", data: { number: emitted, note: "Asked for an appointment on Friday." } }) });
    assert.equal(answer.status, 201, await answer.text());
  }
}));
const delivered = async () => (await (await fetch(account + "/deliveries?limit=1000&status=delivered")).json()).data.length;
for (let n = 0; n < 300 && await delivered() < 1000; n++) await new Promise((done) => setTimeout(done, 200));

const took = [];
let size = 0;
for (let n = 0; n < 20; n++) {
  const began = performance.now();
  const answer = await fetch(account + "/overview");
  size = (await answer.arrayBuffer()).byteLength;
  took.push(performance.now() - began);
}
took.sort((a, b) => a - b);
const days = performance.now();
const day = await (await fetch(account + "/day")).json();
const counted = performance.now() - days;
assert.deepEqual(day.data.map((one) => one.counted), [2000, 2000, 2000, 2000, 2000]);
const page = (await (await fetch(dashboard + "/")).arrayBuffer()).byteLength;
const search = performance.now();
const found = await (await fetch(dashboard + "/accounts?search=business%2049&limit=50")).json();
const searched = performance.now() - search;
console.log(`overview: ${size} bytes, ${took[10].toFixed(1)} ms (median of 20), ${took[19].toFixed(1)} ms at most; page: ${page} bytes; a search over 5,000 accounts: ${searched.toFixed(1)} ms; the hours of a day: ${counted.toFixed(1)} ms`);
assert.ok(size < 100_000, `the overview has ${size} bytes`);
assert.ok(page < 100_000, `the page has ${page} bytes`);
// A build for tests is many times slower.
if (binary.includes("/release/")) assert.ok(took[10] < 50, `the overview takes ${took[10]} ms`);
assert.equal(found.data.length, 50);
passed += 3;

browser = await open({ width: 1280, height: 800 });
for (const [width, height] of [[1280, 800], [390, 844]]) {
  for (const scheme of ["light", "dark"]) {
    const { page: devtools, run, until } = browser;
    await devtools("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: width < 500 });
    await devtools("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
    await devtools("Page.navigate", { url: "about:blank" });
    await devtools("Page.navigate", { url: dashboard + "/#acct_2500" });
    await until("the count", `/^2 of 5 endpoints failing/.test(document.querySelector(".summary")?.textContent)`);
    // What fails is said without scrolling; a screen has room for deliveries below it.
    const bottom = (selector) => run(`Math.round(document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect().bottom)`);
    const lines = await run(`[...document.querySelectorAll(".line")].filter((el) => el.getBoundingClientRect().bottom <= innerHeight).length`);
    const places = [await bottom(".summary"), await bottom(".tabs")];
    console.log(`${width} x ${height}, ${scheme}: the count and the tabs end at ${places} pixels, and ${lines} deliveries are seen`);
    if (shots) await browser.shot(join(shots, `large-${width}-${scheme}.png`));
    assert.ok(places[0] <= height && (width < 500 || places[1] <= height && lines >= 8), `${width}: ${places}, ${lines} deliveries`);
    // Both that fail are the first endpoints.
    await run(`show("endpoints")`);
    await until("both failures", `[...document.querySelectorAll(".endpoint")].map((el) => el.classList.contains("failing")).join() === "true,true,false,false,false"`);
    await until("the hours of the day", `[...document.querySelectorAll(".endpoint.failing .strip .bad")].filter((el) => /^M2[23] /.test(el.getAttribute("d"))).length === 2`);
    assert.ok(await bottom(".endpoint.failing") <= height, `${width}: the first that fails`);
    if (shots) await browser.shot(join(shots, `large-endpoints-${width}-${scheme}.png`));
    assert.ok(await run(`document.documentElement.scrollWidth <= ${width}`), `wider than ${width}`);
    passed += 2;
  }
}
passed += await audit(browser, "many deliveries");
await browser.run(`show("endpoints")`);
// Of more attempts than are kept, the number is not shown as one of an hour.
let pinged = 0;
await Promise.all(Array.from({ length: 8 }, async () => {
  while (pinged < 2200) {
    pinged++;
    const answer = await fetch(dashboard + "/endpoints/whep_0/ping", { method: "POST", body: "{}" });
    assert.equal(answer.status, 201, await answer.text());
  }
}));
await browser.until("that there were more", `[...document.querySelectorAll(".endpoint .number small")].some((el) => el.textContent === "of the latest 4,096")`);
passed += 2;
clearTimeout(failed);
end();
