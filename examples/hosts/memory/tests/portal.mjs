// Opens the owner's page by a link, alone and framed by another site, in a headless browser.
//
//   node examples/hosts/memory/tests/portal.mjs target/debug/examples/service
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
const folder = mkdtempSync(join(tmpdir(), "portal-"));
writeFileSync(join(folder, "token"), TOKEN + "\n");
const running = [];
let browser, passed = 0;
process.on("uncaughtException", end);
const failed = setTimeout(() => end(new Error("timed out")), 300_000);

function end(error) {
  clearTimeout(failed);
  running.forEach((one) => one.kill ? one.kill("SIGKILL") : one.close());
  browser?.close();
  rmSync(folder, { recursive: true, force: true });
  if (error) console.error(error, browser?.complaints);
  console.log(`owner's page: ${passed} passed, ${error ? 1 : 0} failed`);
  process.exit(error ? 1 : 0);
}

async function start(flags) {
  const service = spawn(process.argv[2], ["--listen", "127.0.0.1:0", "--dashboard", "127.0.0.1:0", "--operator-token-file", join(folder, "token"), ...flags], { stdio: ["ignore", "pipe", "ignore"] });
  running.push(service);
  let text = "";
  for await (const chunk of service.stdout) {
    text += chunk;
    if (text.includes("\n")) return JSON.parse(text.split("\n")[0]).dashboard;
  }
  throw new Error("the service ended without a word");
}
async function ask(dashboard, method, path, body) {
  const answer = await fetch(dashboard + path, { method, body: body && JSON.stringify(body), headers: { Authorization: `Bearer ${TOKEN}` } });
  return answer.json();
}
const link = async (dashboard, account) => dashboard + (await ask(dashboard, "POST", `/accounts/${account}/portal`)).path;

try {
  browser = await open({ width: 1280, height: 800 });
  const { page, run } = browser;
  const until = async (what, expression) => { await browser.until(what, expression); passed++; };
  const text = (selector) => `(document.querySelector(${JSON.stringify(selector)})?.textContent || "")`;
  const shows = (name) => `${text("h1")} === ${JSON.stringify(name)} && ${text("#live-text")} === "Live"`;
  const keep = async () => {
    await run(`document.querySelector("dialog input[name=kept]").checked = true; document.querySelector("dialog form").requestSubmit()`);
    await until("the secret's dialog has closed", `!document.querySelector("dialog")`);
  };
  const gone = `${text("h1")} === "You are not logged in" && document.querySelector("#find").hidden && !/acct_/.test(document.querySelector("#found").textContent)`;

  // An operator makes a link on the page, and the page shows it once.
  const dashboard = await start(["--allow-loopback-endpoints"]);
  await page("Page.navigate", { url: dashboard + "/#acct_fjord_dental" });
  await until("the form", `document.activeElement?.name === "token"`);
  await page("Input.insertText", { text: TOKEN });
  await run(`document.querySelector(".login").requestSubmit()`);
  await until("the operator's page", `${shows("Fjord Dental Clinic")} && !!document.querySelector('#tab-settings')`);
  await run(`document.querySelector('[data-key="portal"] , [data-key="portal"] button')?.click()`);
  await until("the dialog", `${text("dialog h2")} === "A link for the owner"`);
  await run(`document.querySelector("dialog form").requestSubmit()`);
  await until("the link", `${text("dialog h2")} === "The owner's link"`);
  const made = await run(text("dialog code"));
  assert.ok(made.startsWith(dashboard + "/portal#link="), made);
  assert.doesNotMatch(await run(text("dialog")), /secrets/, "it is there to be sent");
  await run(`document.querySelector("dialog form").requestSubmit()`);
  await until("the link's dialog has closed", `!document.querySelector("dialog")`);

  // It opens that account, and nothing of plans, other accounts or the sandbox, in whichever browser.
  await page("Page.navigate", { url: made });
  await until("the owner's page", `${shows("Fjord Dental Clinic")} && ${text("#kind")} === "owner"`);
  assert.equal(await run("location.pathname + location.hash"), "/portal#acct_fjord_dental", "the secret has left the address");
  assert.equal(await run("search.placeholder"), "Find evt_… or dlv_…");
  await run(`search.focus()`);
  await until("no account is offered", `!document.querySelector("#found").hidden && ${text("#found")} === "Type the full id of an event or a delivery."`);
  await run(`search.blur()`);
  const words = await run("document.body.innerText");
  assert.doesNotMatch(words, /Sandbox|Subscription|Plan\b|Harbour|Emit event|Record a call|Owner's link/);
  assert.deepEqual(await run(`[...document.querySelectorAll(".tabs a")].map((el) => el.firstChild.data)`), ["Deliveries", "Endpoints", "Alerts", "API keys", "Calls"]);
  for (const scheme of ["light", "dark"]) for (const width of [1280, 390]) {
    await page("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
    await page("Emulation.setDeviceMetricsOverride", { width, height: 800, deviceScaleFactor: 1, mobile: false });
    passed += await audit(browser, `owner's page, ${scheme}, ${width}`);
    if (process.env.SHOTS) await browser.shot(join(process.env.SHOTS, `portal-${scheme}-${width}.png`));
  }
  await page("Emulation.clearDeviceMetricsOverride");
  await page("Page.reload");
  await until("the same after a reload", `${shows("Fjord Dental Clinic")} && ${text("#kind")} === "owner"`);

  // It does what an owner does, and sees no other account.
  await run(`show("keys")`);
  await run(`document.querySelector('[data-key="add key"] , [data-key="add key"] button').click()`);
  await until("the key's dialog", `${text("dialog h2")} === "Create a key"`);
  await run(`document.querySelector("dialog input[name=name]").value = "made by the owner"; document.querySelector("dialog form").requestSubmit()`);
  await until("the key", `${text("dialog h2")} === "Key created"`);
  await keep();
  await until("the key in the list", `document.querySelector("main").innerText.includes("made by the owner")`);

  // What one endpoint goes through is one alert, which changes, and which somebody takes note of.
  const receiver = createServer((asked, answer) => { answer.statusCode = asked.url === "/ok" ? 204 : 410; answer.end(); });
  running.push(receiver);
  await new Promise((done) => receiver.listen(0, "127.0.0.1", done));
  const url = `http://127.0.0.1:${receiver.address().port}/`;
  const { id } = await ask(dashboard, "POST", "/accounts/acct_fjord_dental/endpoints", { url });
  await ask(dashboard, "POST", `/endpoints/${id}/ping`, {});
  await run(`show("alerts")`);
  const alert = (words) => `document.querySelectorAll(".alerts > li:not(.day)").length === 1 && ${words}.test(${text(".alerts > li:not(.day)")})`;
  await until("the alert", alert("/^criticaldisabled: the endpoint answered 410/"));
  const key = await run(`document.querySelector(".alerts > li:not(.day)").dataset.key`);
  await run(`window.noted = document.querySelector(".alerts > li:not(.day)")`);
  await ask(dashboard, "POST", "/clock", { advance_seconds: 86_500 });
  await until("the alert of the next day", alert("/^criticaldisabled for 1 day: .*1 earlier alert/"));
  assert.equal(await run(`window.noted.isConnected && window.noted.dataset.key`), key, "it is the same row");
  // An operator's note is no note of the owner's.
  const { data: [told] } = await ask(dashboard, "GET", "/accounts/acct_fjord_dental/alerts");
  await ask(dashboard, "POST", `/alerts/${told.id}/acknowledge`, { by: "ada" });
  await until("the operator's note", alert("/acknowledged by ada/"));
  await run(`document.querySelector(".alerts > li button").click()`);
  await until("the note", alert("/acknowledged by ada.*acknowledged by owner/s") + ` && !document.querySelector(".alerts > li button")`);
  passed += await audit(browser, "alerts");

  await run(`show("deliveries")`);
  // By the keyboard: two that were missed are selected, and redelivered together.
  const hook = await ask(dashboard, "POST", "/accounts/acct_fjord_dental/endpoints", { url: url + "ok" });
  await ask(dashboard, "POST", `/endpoints/${hook.id}/pause`, {});
  for (const type of ["note.one", "note.two"]) await ask(dashboard, "POST", "/accounts/acct_fjord_dental/events", { type, data: {} });
  await ask(dashboard, "POST", `/endpoints/${hook.id}/enable`, {});
  await run(`setFilter("endpoint", ${JSON.stringify(hook.id)})`);
  await until("both", `document.querySelectorAll("tbody .choose").length === 2`);
  const press = async (key) => { for (const type of ["keyDown", "keyUp"]) await page("Input.dispatchKeyEvent", { type, key, text: type === "keyDown" ? key : undefined }); };
  await run("document.activeElement?.blur()");
  await press("?");
  await until("what the keys do", `${text("dialog h2")} === "Keyboard shortcuts" && document.querySelectorAll("dialog kbd").length === 5`);
  await run(`document.querySelector("dialog form").requestSubmit()`);
  await until("that list has closed", `!document.querySelector("dialog")`);
  await press("/");
  await until("the search", `document.activeElement?.id === "search"`);
  await press("j");
  assert.equal(await run("document.activeElement.value"), "j", "whoever types is not disturbed");
  await run(`document.activeElement.value = ""; document.activeElement.blur()`);
  for (const key of ["j", "x", "j", "x"]) await press(key);
  await until("both are selected", `${text('[data-key="chosen"]')}.startsWith("2 selected")`);
  passed += await audit(browser, "a selection");
  if (process.env.SHOTS) await browser.shot(join(process.env.SHOTS, "portal-selection.png"), true);
  await run(`document.querySelector('[data-key="redeliver chosen"]').click()`);
  await until("both are redelivered", `/2 redeliveries accepted/.test(${text("#toasts")}) && !document.querySelector('[data-key="chosen"]')`);
  await run(`setFilter("endpoint", "")`);

  // First attempts that fail for more than a minute make an endpoint suspect.
  let status = 503;
  const asking = [];
  const slow = createServer((asked, answer) => {
    const end = () => { answer.statusCode = status; answer.end(); };
    if (status === null) asking.push(end); else setTimeout(end, 1000);
  });
  running.push(slow);
  await new Promise((done) => slow.listen(0, "127.0.0.1", done));
  const suspect = await ask(dashboard, "POST", "/accounts/acct_fjord_dental/endpoints", { url: `http://127.0.0.1:${slow.address().port}/` });
  const pings = async (many) => { for (let n = 0; n < many; n++) await ask(dashboard, "POST", `/endpoints/${suspect.id}/ping`, {}); };
  await pings(6);
  await run(`show("endpoints")`);
  await until("all of them have failed", `/^Last [6-9] attempts failed: HTTP 503$/.test(${text('.endpoint .fails')})`);
  await ask(dashboard, "POST", "/clock", { advance_seconds: 400 });
  await pings(2);
  await until("it is suspect", `seen.endpoints.some((e) => e.suspect_since) && [...document.querySelectorAll('.endpoint .badge')].some((el) => el.textContent === "failing")`);
  await run(`show("deliveries")`);

  // What is due behind the attempts that it lets hang says that it is delayed, why, and until when.
  status = null;
  await run("document.activeElement?.blur()");
  await pings(12);
  const hold = `[...document.querySelectorAll(".line")].map((el) => el.textContent).filter((words) => /waiting.*delayed: the endpoint is failing *due .*sent when another attempt ends/.test(words)).length`;
  await until("what is delayed", `${hold} > 0 && ${hold} === [...document.querySelectorAll(".line .badge")].filter((el) => el.textContent === "waiting" && /delayed/.test(el.closest("tr").textContent)).length`);
  const first = `[...document.querySelectorAll(".line")].find((el) => el.textContent.includes("delayed: the endpoint"))`;
  await run(`${first}.querySelector(".expand").click()`);
  await until("the same beside the list", `/delayed: the endpoint is failing since .* ago \\d{4}-\\d\\d-\\d\\d .*; sent when another attempt ends; due /.test(${text(".detail .tries")})`);
  passed += await audit(browser, "delayed deliveries");
  if (process.env.SHOTS) await browser.shot(join(process.env.SHOTS, "portal-held.png"));
  await run(`document.querySelector('.detail [data-key^="close"]').click()`);
  // Its answers are good again: nothing is delayed any more.
  status = 204;
  asking.splice(0).forEach((end) => end());
  await until("nothing is delayed", `!document.body.innerText.includes("delayed:") && [...document.querySelectorAll(".line .badge")].filter((el) => el.textContent === "delivered").length >= 12`);

  await run(`location.hash = "#acct_harbour_hair"`);
  await until("no other account", `${text("h1")} === "There is no such account"`);
  assert.doesNotMatch(await run("document.body.innerText"), /Harbour/);
  await run("setTimeout(() => history.back())");
  await until("back", shows("Fjord Dental Clinic"));

  // A revocation is seen at once, and nothing of the account stays.
  await ask(dashboard, "DELETE", "/accounts/acct_fjord_dental/portal");
  await until("that it has ended", gone);
  assert.doesNotMatch(await run("document.body.innerText"), /Fjord|acct_/);
  await page("Page.navigate", { url: "about:blank" });
  await page("Page.navigate", { url: made });
  await until("that the link has ended", gone);
  // The operator's login beside it is untouched.
  await page("Page.navigate", { url: dashboard + "/#acct_fjord_dental" });
  await until("the operator's page again", `${shows("Fjord Dental Clinic")} && ${text("#kind")} === "operator"`);

  // Another site frames the owner's page where it is named, and nowhere else; the operator's never.
  let inside = "";
  const site = createServer((_, answer) => answer.setHeader("Content-Type", "text/html").end(`<!doctype html><title>app</title><iframe width="1000" height="700" src="${inside}"></iframe>`));
  running.push(site);
  await new Promise((done) => site.listen(0, "localhost", done));
  const app = `http://localhost:${site.address().port}`;
  const framing = await start(["--portal-frame-ancestors", app]);
  // Of another site than this one: the browser tells a page below it nothing but its own.
  const framed = async () => {
    const { targetInfos } = await browser.all("Target.getTargets");
    const frame = targetInfos.find(({ type, url }) => type === "iframe" && url.startsWith(framing));
    if (!frame) return null;
    const { sessionId } = await browser.all("Target.attachToTarget", { targetId: frame.targetId, flatten: true });
    return async (expression) => (await browser.all("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true }, sessionId)).result.value;
  };
  inside = await link(framing, "acct_fjord_dental");
  await page("Page.navigate", { url: app });
  let within;
  for (const began = Date.now(); !within || !(await within(`${shows("Fjord Dental Clinic")} && ${text("#kind")} === "owner"`)); ) {
    assert.ok(Date.now() - began < 60_000, "not seen: the framed page");
    within = await framed();
    await new Promise((done) => setTimeout(done, 100));
  }
  passed++;
  if (process.env.SHOTS) await browser.shot(join(process.env.SHOTS, "portal-framed.png"));
  assert.equal(await within(`ask("POST", at("accounts", own, "keys"), { name: "framed", mode: "live", scopes: [] }).then((made) => made.name)`), "framed");
  assert.equal(await within("document.cookie"), "");
  const cookies = (await browser.all("Storage.getCookies")).cookies.filter(({ name, partitionKey }) => name === "portal_login" && partitionKey);
  assert.equal(cookies.length, 1, "a login of its own");
  assert.deepEqual([cookies[0].secure, cookies[0].sameSite, cookies[0].httpOnly], [true, "None", true]);
  for (const url of [framing + "/#acct_fjord_dental", await link(dashboard, "acct_fjord_dental")]) {
    inside = url;
    const before = browser.complaints.length;
    await page("Page.navigate", { url: app + "/?" + passed });
    for (const began = Date.now(); !browser.complaints.slice(before).some((words) => /frame-ancestors/.test(words)); ) {
      assert.ok(Date.now() - began < 60_000, `framed: ${url}`);
      await new Promise((done) => setTimeout(done, 50));
    }
    passed++;
  }
  end();
} catch (error) {
  end(error);
}
