// Where an operator lands: 10,000 accounts, of which 12 need attention. How large and how late the first screen is, what
// is seen of it, and the way from there to an account.
//
//   node examples/hosts/memory/tests/fleet.mjs target/debug/examples/service [FOLDER FOR SCREENSHOTS]
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
const folder = mkdtempSync(join(tmpdir(), "fleet-"));
let service, browser, passed = 0;
function end(error) {
  if (error) console.error(error, browser?.complaints);
  console.log(`fleet: ${passed} passed, ${error ? 1 : 0} failed`);
  service?.kill("SIGKILL");
  browser?.close();
  rmSync(folder, { recursive: true, force: true });
  process.exit(error ? 1 : 0);
}
process.on("uncaughtException", end);
setTimeout(() => end(new Error("timed out")), 300_000);

const receiver = createServer((request, response) => {
  request.resume().on("end", () => { response.statusCode = { "/gone": 410, "/down": 503 }[request.url] ?? 204; response.end(); });
}).listen(0, "127.0.0.1");
await once(receiver, "listening");
const receiving = `http://127.0.0.1:${receiver.address().port}`;
const accounts = Array.from({ length: 10_000 }, (_, n) => ({ id: `acct_${String(n).padStart(5, "0")}`, timezone: "UTC", business_name: `Business ${n}` }));
// Twelve, three of them with an endpoint that answers 410, and two that are fine.
const troubled = Array.from({ length: 12 }, (_, n) => accounts[n * 800 + 7]);
troubled.forEach((account, n) => {
  account.endpoints = (n < 3 ? ["/gone", "/down"] : ["/down"]).concat("/fine").map((path, at) => ({ id: `whep_${n}_${at}`, url: receiving + path }));
});
accounts[5].endpoints = [{ id: "whep_fine", url: receiving + "/fine" }];
// As long as a name may be, in one word.
troubled[3].business_name = accounts[2].business_name = "Tannlegeforeningen".repeat(55);
const data = join(folder, "data.json");
writeFileSync(data, JSON.stringify({ accounts }));
service = spawn(binary, ["--listen", "127.0.0.1:0", "--dashboard", "127.0.0.1:0", "--allow-loopback-endpoints", "--data", data], { stdio: ["ignore", "pipe", "ignore"] });
let text = "";
for await (const chunk of service.stdout) { text += chunk; if (text.includes("\n")) break; }
const { dashboard } = JSON.parse(text.split("\n")[0]);
const json = async (method, path, body) => (await fetch(dashboard + path, { method, body: body && JSON.stringify(body) })).json();
browser = await open({ width: 1280, height: 900 });
const { page, run } = browser;
const until = async (what, expression) => { await browser.until(what, expression); passed++; };
const shown = (selector) => `(document.querySelector(${JSON.stringify(selector)})?.textContent || "")`;

try {
  // Before anything has failed nobody is told that something has, and the other way round.
  await page("Page.navigate", { url: dashboard + "/" });
  await until("nothing fails", `${shown("h1")} === "Fleet" && ${shown(".summary.good")} === "No endpoint fails" && !document.querySelector('[data-key="card troubled"]')`);
  passed += await audit(browser, "a fleet in which nothing fails");
  // An endpoint that has failed for more than a minute is suspect.
  const emit = async (n) => { for (const account of [...troubled, accounts[5]]) await json("POST", `/accounts/${account.id}/events`, { type: "call.noted", data: { n } }); };
  await emit(0);
  // One rule on both pages: an endpoint is here as soon as its account's page says that it is failing.
  let here = [];
  while (here.length < 15) { await new Promise((done) => setTimeout(done, 100)); here = (await json("GET", "/fleet")).troubled; }
  await until("one attempt", `document.querySelectorAll('[data-key^="row trouble"]').length === 12 && ${shown(".summary.bad")} === "12 accounts need attention"`);
  for (const { id } of [...troubled, accounts[5]]) {
    const { endpoints } = await json("GET", `/accounts/${id}/overview`);
    const bad = endpoints.filter((e) => e.failing_since || ["gone", "failing"].includes(e.reason)).map((e) => e.id).sort();
    assert.deepEqual(here.filter((row) => row.account_id === id).map((row) => row.endpoint_id).sort(), bad, id);
  }
  for (let n = 1; n < 5; n++) await emit(n);
  await json("POST", "/clock", { advance_seconds: 90 });
  await emit(5);
  for (let told; told?.data.length !== 15; told = await json("GET", "/alerts?before=&limit=1000")) await new Promise((done) => setTimeout(done, 100));

  // Its answers together, without the page.
  const took = [];
  for (let n = 0; n < 11; n++) {
    const began = performance.now();
    await Promise.all(["/login", "/accounts?search=&after=&limit=50", "/fleet", "/alerts?before=&limit=20"].map(async (path) => (await fetch(dashboard + path)).arrayBuffer()));
    took.push(performance.now() - began);
  }
  took.sort((a, b) => a - b);
  // The first screen in a browser: what it has received, the page included, and when the last row is there.
  const seenAt = `new MutationObserver(() => { if (!window.seenAt && document.querySelectorAll('[data-key^="row trouble"]').length === 12) window.seenAt = performance.now(); }).observe(document, { childList: true, subtree: true })`;
  const { identifier } = await page("Page.addScriptToEvaluateOnNewDocument", { source: seenAt });
  for (const coding of ["identity", "gzip"]) {
    await page("Network.setExtraHTTPHeaders", { headers: { "Accept-Encoding": coding } });
    await page("Page.navigate", { url: "about:blank" });
    await page("Page.navigate", { url: dashboard + "/" });
    await until("all twelve", `${shown(".summary.bad")} === "12 accounts need attention" && window.seenAt > 0`);
    const [bytes, ms] = await run(`[["navigation", "resource"].flatMap((type) => performance.getEntriesByType(type)).reduce((sum, one) => sum + one.transferSize, 0), Math.round(seenAt)]`);
    console.log(`the first screen, ${coding}: ${bytes} bytes and ${ms} ms in a browser; its answers ${took[5].toFixed(1)} ms (median of 11)`);
    if (coding === "identity") continue;
    assert.ok(bytes < 50_000, `${bytes} bytes`);
    // A build for tests is many times slower.
    if (binary.includes("/release/")) assert.ok(ms < 200, `${ms} ms`);
  }
  await page("Page.removeScriptToEvaluateOnNewDocument", { identifier });
  await page("Network.setExtraHTTPHeaders", { headers: {} });
  passed++;

  // Why, since when, and how many.
  const row = (n) => `document.querySelector('[data-key="row trouble ${troubled[n].id}"]')`;
  const cells = await run(`[...${row(0)}.cells].map((cell) => cell.innerText)`);
  assert.match(cells[0], /^Business 7\s+acct_00007$/);
  assert.match(cells[1], /^1 endpoint answered 410, disabled\s+http:.*\/gone\s+1 endpoint failing: HTTP 503\s+http:.*\/down$/);
  assert.match(cells[2], /^(just now|\d+ (s|min) ago)\s+\d{4}-/);
  assert.deepEqual(cells.slice(3), ["6", "6", "nobody"], "what waits at the one that fails, and what the other has missed");
  assert.equal(await run(`document.documentElement.scrollWidth <= innerWidth`), true);
  // A long name is cut, and moves no column out.
  assert.deepEqual(await run(`[...document.querySelectorAll("main .scroll")].map((el) => el.scrollWidth - el.clientWidth)`), [0, 0]);
  assert.equal(await run(`document.querySelector('[data-key="trouble ${troubled[3].id}"]').title`), troubled[3].business_name);
  assert.match(await run(shown('[data-key="card sending"]')), /Pending72.*Failing12Disabled automatically3/);
  assert.match(await run(`document.querySelector('[data-key="card sending"] .strip').ariaLabel`), /^Most pending in the last day: \d+ from \d\d:\d\d$/);
  passed += 4;
  for (const [width, height] of [[1280, 900], [390, 844]]) for (const scheme of ["light", "dark"]) {
    await page("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: width < 500 });
    await page("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
    await until(`nothing is wider than ${width}`, `document.documentElement.scrollWidth <= ${width}`);
    if (shots) await browser.shot(join(shots, `fleet-${width}-${scheme}.png`), true);
  }
  passed += await audit(browser, "the fleet");

  // Whoever acknowledges takes it on: with the last of an account's endpoints, it needs nobody else.
  const latest = (await json("GET", "/fleet")).troubled.map((row) => row.account_id)[0];
  const { data: alerts } = await json("GET", "/alerts?before=&limit=1000");
  assert.equal(alerts.length, 15);
  assert.deepEqual(alerts.map((alert) => alert.at), alerts.map((alert) => alert.at).sort().reverse(), "newest first");
  const rest = alerts.filter((alert) => alert.account_id === troubled[5].id);
  assert.equal(rest.length, 1);
  await run(`document.querySelector('[data-key="acknowledge ${rest[0].id}"]').click()`);
  await until("whose, and who", `${shown("dialog code")} === "${troubled[5].id} · ${receiving}/down" && !!document.querySelector("dialog[open] input[name=by]")`);
  await run(`{ document.querySelector("dialog input[name=by]").value = "Ada"; document.querySelector("dialog form").requestSubmit(); }`);
  await until("one fewer", `${shown(".summary.bad")} === "11 accounts need attention · 1 account acknowledged" && ${row(5)}.cells[5].innerText === "Ada" && !${row(5)}.nextSibling`);

  // An account, and back.
  await run(`document.querySelector('[data-key="trouble ${latest}"]').click()`);
  await until("its endpoints", `location.hash === "#${latest}/endpoints" && ${shown("h1")}.startsWith("Business") && document.querySelectorAll(".endpoint.failing").length >= 1`);
  // Its page breaks the name.
  await run(`location.hash = "#acct_00002"`);
  await until("the long name", `${shown("h1")}.startsWith("Tannlege") && document.documentElement.scrollWidth <= innerWidth`);
  await run(`document.querySelector('[data-key="to fleet"]').click()`);
  await until("the fleet again", `${shown("h1")} === "Fleet" && document.querySelectorAll('[data-key^="row trouble"]').length === 12`);
  // One search, by words of a name.
  await run(`{ search.focus(); search.value = "9999 BUS"; search.dispatchEvent(new Event("input")); }`);
  await until("it is found", `[...document.querySelectorAll("#found li")].map((li) => li.dataset.key).join() === "account acct_09999"`);
  await run(`document.querySelector("#found li").click()`);
  await until("it is shown", `${shown("h1")} === "Business 9999"`);

  // A search that finds nothing says so, and ends with its screen.
  await run(`document.querySelector('[data-key="to fleet"]').click()`);
  const seek = `{ search.focus(); search.value = "nobody"; search.dispatchEvent(new Event("input")); }`;
  const nobody = `${shown('[data-key="card accounts"]')}.includes("No account matches nobody")`;
  const ten = `document.querySelectorAll('[data-key^="row account"]').length === 10 && search.value === ""`;
  await run(seek);
  await until("nothing is found", nobody);
  await run(`document.querySelector('[data-key="clear search"]').click()`);
  await until("all again", ten);
  await run(seek);
  await until("nothing is found again", nobody);
  await run(`location.hash = "#acct_00007"`);
  await until("an account", `${shown("h1")} === "Business 7"`);
  await run(`document.querySelector('[data-key="to fleet"]').click()`);
  await until("all once more", ten);

  // The id of an endpoint, as alerts and logs have it, leads to its deliveries.
  await run(`{ search.focus(); search.value = "whep_0_1"; search.dispatchEvent(new Event("input")); take(0); }`);
  await until("its deliveries", `location.hash === "#acct_00007?endpoint=whep_0_1" && ${shown("h1")} === "Business 7"`);
  await page("Page.navigate", { url: dashboard + "/#" });
  await until("back on the fleet", `${shown("h1")} === "Fleet"`);
  await run(`{ search.focus(); search.value = "evt_1"; take(0); }`);
  await until("an event needs its account", `${shown("#errors")}.startsWith("open the event’s account first")`);

  // A service that does not answer leaves what was seen, and says so.
  await page("Page.navigate", { url: dashboard + "/#" });
  await until("the fleet", `${shown(".summary.bad")}.startsWith("11 accounts")`);
  await page("Network.setBlockedURLs", { urls: ["*/fleet"] });
  await until("it is stale", `${shown("#live-text")}.startsWith("The service does not answer · as of ") && document.querySelectorAll('[data-key^="row trouble"]').length === 12`);
  const own = browser.complaints.filter((words) => !/Failed to load resource/.test(words));
  assert.deepEqual(own, [], "the page complains");
  end();
} catch (error) {
  end(error);
}
