// Pauses and slows down sending on the page of the durable host, in a headless browser: what the operator and the
// owner are shown, and what the receiver gets.
//
//   node examples/hosts/postgres/tests/levers.mjs target/debug/call-assistant-postgres
//
// Exit status 0: everything held.
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import assert from "node:assert/strict";
import { audit } from "../../../testing/axe.mjs";
import { open } from "../../../testing/browser.mjs";

const TOKEN = "the-operators-own-token";
const folder = mkdtempSync(join(tmpdir(), "levers-"));
writeFileSync(join(folder, "token"), TOKEN + "\n");
let host, browser, passed = 0;
const got = [];
const receiver = createServer((asked, answer) => { got.push(Date.now()); asked.resume(); answer.statusCode = 204; answer.end(); });
process.on("uncaughtException", end);
const failed = setTimeout(() => end(new Error("timed out")), 300_000);

async function end(error) {
  clearTimeout(failed);
  if (error) { console.error(error, browser?.complaints); process.exitCode = 1; }
  console.log(`levers: ${passed} passed, ${error ? 1 : 0} failed`);
  browser?.close();
  receiver.close();
  receiver.closeAllConnections();
  // It stops its own PostgreSQL.
  if (host?.exitCode === null) { host.kill("SIGINT"); await new Promise((done) => host.on("exit", done)); }
  rmSync(folder, { recursive: true, force: true });
}

try {
  await new Promise((done) => receiver.listen(0, "127.0.0.1", done));
  host = spawn(process.argv[2], ["demo", "--listen", "127.0.0.1:0", "--dashboard", "127.0.0.1:0", "--operator-token-file", join(folder, "token"), "--allow-loopback-endpoints"], { stdio: ["ignore", "pipe", "ignore"] });
  let said = "";
  for await (const chunk of host.stdout) { said += chunk; if (said.includes("\n")) break; }
  const { dashboard } = JSON.parse(said.split("\n")[0]);
  const ask = async (method, path, body) => {
    const answer = await fetch(dashboard + path, { method, body: body && JSON.stringify(body), headers: { Authorization: `Bearer ${TOKEN}` } });
    assert.ok(answer.ok, `${method} ${path}: ${answer.status}`);
    return answer.json();
  };
  const { data: [{ id: account }] } = await ask("GET", "/accounts");
  const { id: endpoint } = await ask("POST", `/accounts/${account}/endpoints`, { url: `http://127.0.0.1:${receiver.address().port}/` });
  const emit = () => ask("POST", `/accounts/${account}/events`, { type: "note", data: {} });

  browser = await open({ width: 1280, height: 800 });
  const { page, run } = browser;
  const until = async (what, expression) => { await browser.until(what, expression); passed++; };
  const text = (selector) => `(document.querySelector(${JSON.stringify(selector)})?.textContent || "")`;
  const click = (key) => run(`document.querySelector('[data-key=${JSON.stringify(key)}]').click()`);
  const title = (words) => `${text("dialog h2")} === ${JSON.stringify(words)}`;
  const submit = () => run(`document.querySelector("dialog form").requestSubmit()`);
  const lever = (words) => `${text("#h-levers")} === "Sending is paused or limited" && ${words}.test(${text('[data-key="card levers"] li')})`;
  const free = `!!document.querySelector(".tabs") && !document.querySelector('[data-key="card levers"]')`;
  const delivered = (n) => `[...document.querySelectorAll(".line .badge")].filter((el) => el.textContent === "delivered").length === ${n}`;
  const operators = async () => {
    await page("Page.navigate", { url: "about:blank" });
    await page("Page.navigate", { url: `${dashboard}/#${account}` });
  };

  await operators();
  await until("the form", `document.activeElement?.name === "token"`);
  await page("Input.insertText", { text: TOKEN });
  await run(`document.querySelector(".login").requestSubmit()`);
  await until("nothing is paused", free);
  await emit();
  await until("it is delivered", delivered(1));
  // The hours of the day are those of this host.
  await run(`show("endpoints")`);
  await until("the hours of the day", `document.querySelector(".strip")?.ariaLabel === "Events of the last 24 hours: 1 delivered" || document.querySelector(".strip")?.ariaLabel === "Events of the last 24 hours: 1 waiting"`);
  passed += await audit(browser, "an endpoint's day");

  await run(`show("deliveries")`);

  // A pace that is none is refused, in the dialog. A pause stops every sender, and says so to both.
  await click("pause");
  await until("it asks", title("Pause sending?"));
  passed += await audit(browser, "the question");
  // What is typed takes the place of the 0.
  await page("Input.insertText", { text: "99999" });
  assert.equal(await run(`document.querySelector("dialog input[name=pace]").value`), "99999");
  await submit();
  await until("why not", `/per_second: expected a whole number from 0 to 10000/.test(${text("dialog .wrong")})`);
  await run(`document.querySelector("dialog input[name=pace]").value = "0"`);
  await submit();
  await until("it is told", `${text("#toasts")}.includes("Sending is paused")`);
  await until("it is paused", lever("/This account is paused *set by operator /"));
  passed += await audit(browser, "a pause");
  // Senders look every few seconds.
  await new Promise((done) => setTimeout(done, 4000));
  for (let n = 0; n < 3; n++) await emit();
  await until("they wait", `[...document.querySelectorAll(".line .badge")].filter((el) => el.textContent === "waiting").length === 3`);
  await page("Page.navigate", { url: "about:blank" });
  await page("Page.navigate", { url: dashboard + "/" });
  await until("the fleet has the lever, and the only sender, which owns all shards", `/^set *Account acct_\\w+ is paused *set by operator /.test(${text('[data-key="card levers"] li')}) && ${text('[data-key="card processes"]')}.includes("64 shards")`);
  await until("what is pending was counted", `/Pending3Due, but failing or paused3/.test(${text('[data-key="card sending"]')}) && document.querySelector('[data-key="card sending"] .strip').ariaLabel.startsWith("Most pending in the last day: 3 from")`);
  passed += await audit(browser, "the fleet of the durable host");
  await operators();
  await new Promise((done) => setTimeout(done, 2000));
  assert.equal(got.length, 1, "sent while it is paused");
  const waiting = `[...document.querySelectorAll(".line")].filter((el) => /sending is paused *due .*sent after the pause/.test(el.textContent)).length`;
  await until("why they wait, and until when", `${waiting} === 3`);
  const owner = dashboard + (await ask("POST", `/accounts/${account}/portal`, {})).path;
  await page("Page.navigate", { url: owner });
  await until("the owner is told, and not by whom", lever("/This account is paused *since /"));
  assert.equal(await run(`document.querySelectorAll('[data-key="card levers"] button').length`), 0, "the owner undoes nothing");
  assert.doesNotMatch(await run(text('[data-key="card levers"]')), /operator|set by/i);
  passed += await audit(browser, "what an owner sees");

  // Undone: what has waited is sent.
  await operators();
  await until("it is still paused", lever("/This account is paused/"));
  await run(`document.querySelector('[data-key^="undo lever"]').click()`);
  await until("what has waited is sent", `${free} && ${delivered(4)}`);
  assert.equal(got.length, 4);

  // One a second, of the one sender.
  await click("pause");
  await until("it asks again", title("Pause sending?"));
  await run(`document.querySelector("dialog input[name=pace]").value = "50"`);
  await submit();
  await until("it is slower", lever("/This account is limited to 50 attempts per second *set by operator /"));
  // Whoever sets another one is told what stands.
  await click("pause");
  await until("what it replaces", `${text("dialog .warn")} === "This account is limited to 50 attempts per second, set by operator. The new limit replaces it."`);
  await run(`document.querySelector("dialog input[name=pace]").value = "1"`);
  await submit();
  await until("it is slow", lever("/This account is limited to 1 attempt per second *set by operator /"));
  await new Promise((done) => setTimeout(done, 4000));
  for (let n = 0; n < 5; n++) await emit();
  await until("all are sent", delivered(9));
  const [first, last] = [got[4], got[8]];
  assert.ok(last - first >= 3000, `five in ${last - first} ms`);
  await page("Page.navigate", { url: "about:blank" });
  await page("Page.navigate", { url: owner });
  await until("the owner is told the pace", lever("/This account is limited to 1 attempt per second *since /"));
  // One of another account, and of another's endpoint, is not this owner's matter.
  const { data: [, other] } = await ask("GET", "/accounts");
  await ask("POST", "/levers", { account_id: other.id, per_second: 0 });
  await ask("POST", "/levers", { endpoint_id: endpoint, per_second: 2 });
  await until("its own endpoint's", `document.querySelectorAll('[data-key="card levers"] li').length === 2 && /Endpoint whep_/.test(${text('[data-key="card levers"]')})`);
  assert.equal((await run(text('[data-key="card levers"]'))).includes(other.id), false);

  // Everything is paused on the fleet, and goes on.
  await page("Page.navigate", { url: "about:blank" });
  await page("Page.navigate", { url: dashboard + "/" });
  await until("the fleet", `${text("h1")} === "Fleet" && !!document.querySelector('[data-key="pause"]')`);
  await click("pause");
  await until("of what", `${title("Pause sending?")} && ${text("dialog code")} === "Everything: all accounts"`);
  await submit();
  const all = `[...document.querySelectorAll('[data-key="card levers"] li')].find((li) => li.textContent.includes("Everything is paused"))`;
  await until("everything is paused", `!!${all}`);
  await run(`${all}.querySelector("button").click()`);
  await until("it goes on", `!${all}`);
  await end();
} catch (error) {
  await end(error);
}
