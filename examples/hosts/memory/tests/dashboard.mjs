// Drives the dashboard's page in a headless browser, against the real service and a real receiver.
//
//   node examples/hosts/memory/tests/dashboard.mjs target/debug/examples/service [FOLDER FOR SCREENSHOTS]
//
// Exit status 0: everything held.
import { execFile, spawn } from "node:child_process";
import { createHash, createHmac } from "node:crypto";
import { createServer } from "node:http";
import { once } from "node:events";
import { promisify } from "node:util";
import { join } from "node:path";
import assert from "node:assert/strict";
import { audit } from "../../../testing/axe.mjs";
import { open } from "../../../testing/browser.mjs";

const [binary, shots] = process.argv.slice(2);
let service, browser;
process.on("uncaughtException", (error) => { console.error(error); end(1); });
const failed = setTimeout(() => { console.error("timed out"); end(1); }, 900_000);
let passed = 0;

function end(status) {
  service?.kill("SIGKILL");
  browser?.close();
  process.exit(status);
}

async function line(stream, found) {
  let text = "";
  for await (const chunk of stream) {
    text += chunk;
    const match = text.match(found);
    if (match) return match;
  }
  throw new Error("ended without a word");
}

// A receiver: one path for each kind of answer, one of them hostile to whoever shows it.
const HOSTILE = '<img src=x onerror="document.title=\'owned\'"><script>document.title="owned"</script>';
const LONG = "/hooks/" + "a-rather-long-path/".repeat(12);
let later = 410; // what the last one answers
const got = []; // what was posted to it
const receiver = createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part)).on("end", () => {
    got.push({ url: request.url, headers: request.headers, body: Buffer.concat(parts).toString() });
    response.statusCode = { "/good": 204, "/broken": 503, "/gone": 410, [LONG]: later }[request.url] || 404;
    response.end(response.statusCode === 503 ? HOSTILE : undefined);
  });
}).listen(0, "127.0.0.1");
await once(receiver, "listening");
const receiving = `http://127.0.0.1:${receiver.address().port}`;

service = spawn(binary, ["--listen", "127.0.0.1:0", "--dashboard", "127.0.0.1:0", "--allow-loopback-endpoints", "--time-scale", "0.0002"], { stdio: ["ignore", "pipe", "ignore"] });
const first = JSON.parse((await line(service.stdout, /^(.*)\n/))[1]);

browser = await open({ width: 1360, height: 1000 });
const { page, run, complaints } = browser;
async function until(what, expression) {
  await browser.until(what, expression);
  passed++;
}
const text = (selector) => `(document.querySelector(${JSON.stringify(selector)})?.textContent || "")`;
// What is shown: the text of the page's own script is not.
const says = (words) => `document.body.innerText.includes(${JSON.stringify(words)})`;
const asks = (title) => `document.querySelector("dialog[open] h2")?.textContent === ${JSON.stringify(title)}`;
const closed = `!document.querySelector("dialog")`;
const KEYS = { Tab: 9, Enter: 13, Escape: 27, " ": 32, ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40 };
async function press(key) {
  const event = { key, code: key === " " ? "Space" : key, windowsVirtualKeyCode: KEYS[key], text: key === "Enter" ? "\r" : key === " " ? " " : undefined };
  await page("Input.dispatchKeyEvent", { type: "keyDown", ...event });
  await page("Input.dispatchKeyEvent", { type: "keyUp", ...event });
}
const type = (words) => page("Input.insertText", { text: words });
// Once each: what has the focus keeps it, and no key is lost.
async function focusOn(what, expression) {
  await until(what, `(() => { const el = ${expression}; el?.focus(); return !!el && document.activeElement === el; })()`);
}
const focus = (key) => focusOn(key, `document.querySelector('[data-key="${key}"]')`);
async function opens(key, dialog) {
  await focus(key);
  await press("Enter");
  await until("the dialog of " + key, dialog);
}
// Another tab, as a reader of the keyboard goes there.
async function tab(name) {
  await focusOn("the tabs", `document.querySelector(".tabs [aria-selected=true]")`);
  const names = await run(`[...document.querySelectorAll(".tabs a")].map((el) => el.id.slice(4))`);
  const now = names.indexOf(await run(`document.activeElement.id.slice(4)`));
  const key = names.indexOf(name) < now ? "ArrowLeft" : "ArrowRight";
  for (let n = Math.abs(names.indexOf(name) - now); n > 0; n--) await press(key);
  await until("the tab " + name, `document.activeElement.id === "tab-${name}" && document.activeElement.ariaSelected === "true" && document.querySelectorAll(".tabs [tabindex='0']").length === 1 && document.querySelector("[role=tabpanel]").getAttribute("aria-labelledby") === "tab-${name}"`);
}
// One field finds accounts, events and deliveries.
const typeSearch = (words) => run(`{ search.focus(); search.value = ""; search.dispatchEvent(new Event("input")); }`).then(() => type(words));
async function find(words, key = "id") {
  await typeSearch(words);
  await until("it is offered: " + words, `document.querySelector("#found li[aria-selected=true]")?.dataset.key === ${JSON.stringify(key)} && document.querySelectorAll("#found li").length === ${key === "id" ? 6 : 1} && document.activeElement.getAttribute("aria-activedescendant") === document.querySelector("#found li[aria-selected=true]").id`);
  await press("Enter");
  await until("the list has closed", `document.querySelector("#found").hidden && document.activeElement.id !== "search" && search.value === ""`);
}
// What is done less often is behind "More".
const menu = (id) => run(`document.querySelector('[data-key="more ${id}"]').open = true`);
async function confirm(title) {
  await until("the question: " + title, asks(title));
  await focusOn("its answer", `document.querySelector("dialog[open] button[type=submit]")`);
  await press("Enter");
}
// A secret stays until its reader says that it is kept, whatever is pressed.
async function keepSecret() {
  for (const key of ["Escape", "Escape"]) await press(key);
  for (const type of ["mousePressed", "mouseReleased"]) await page("Input.dispatchMouseEvent", { type, x: 4, y: 4, button: "left", clickCount: 1 });
  await focusOn("Close", `document.querySelector("dialog[open] button[type=submit]")`);
  await press("Enter");
  await until("the secret is still there", `!!document.querySelector("dialog[open] code") && document.querySelector("dialog code").checkVisibility()`);
  await focusOn("the promise", `document.querySelector("dialog[open] input[name=kept]")`);
  await press(" ");
  await press("Escape");
  await until("the secret is gone", `!document.querySelector("dialog code")?.textContent.startsWith("whsec_") && (${closed} || ${asks("Send a ping?")})`);
}
const axe = async (what) => { passed += await audit(browser, what); };
async function shot(name) {
  if (!shots) return;
  await new Promise((done) => setTimeout(done, 300)); // transitions
  await browser.shot(join(shots, name + ".png"), name.endsWith("whole"));
}

try {
  if (process.env.SLOWER) await page("Emulation.setCPUThrottlingRate", { rate: Number(process.env.SLOWER) });
  await page("Page.navigate", { url: first.dashboard + "/#acct_fjord_dental" });
  await until("the first account", `${text("h1")} === "Fjord Dental Clinic"`);
  await until("how many accounts there are", `${text("#count")} === "5 accounts" && document.querySelector("#search").ariaExpanded === "false" && document.querySelector("#found").hidden`);
  await until("it is live", `${text("#live-text")} === "Live"`);
  await tab("keys");
  await until("every state of a key", `["full","account only","calls only","none","test","expired","revoked"].every((s) => [...document.querySelectorAll(".badge")].some((b) => b.textContent === s))`);
  await axe("the keys");
  await tab("alerts");
  await until("no alert", says("No alert"));
  await axe("no alerts");
  await tab("calls");
  await axe("the calls");
  await tab("settings");
  await axe("the settings");
  await run(`document.querySelector("button.skip").click()`);
  assert.equal(await run(`document.activeElement.id + location.hash`), "main#acct_fjord_dental/settings", "what skips is no address");

  // By keyboard alone: an endpoint for each kind of receiver. Its secret is shown, once.
  await tab("deliveries");
  await until("the way to the first", says("Add your first endpoint"));
  await tab("endpoints");
  await until("the same way", says("Add your first endpoint"));
  for (const path of ["/good", "/broken", "/gone"]) {
    await opens("add endpoint", `document.activeElement?.name === "url"`);
    await type(receiving + path);
    if (path === "/broken") await shot("dialog");
    if (path === "/broken") await axe("the dialog of an endpoint");
    await press("Enter");
    await until("the secret", `${text("dialog code")}.startsWith("whsec_")`);
    if (path === "/broken") await shot("secret");
    if (path === "/broken") await axe("a secret");
    await keepSecret();
    await until("the secret is nowhere", `!${says("whsec_")}`);
    if (path === "/good") {
      await until("the first is tried at once", asks("Send a ping?"));
      await axe("the first ping");
      await press("Escape");
    }
    await until("the endpoint", says(receiving + path));
  }

  // A refused one says why, in the dialog.
  await opens("add endpoint", `document.activeElement?.name === "url"`);
  await type("http://10.0.0.1/");
  await press("Enter");
  await until("why it is refused", `${text("dialog .wrong")}.includes("url is not https")`);
  await axe("a refusal in a dialog");
  await press("Escape");
  await until("the dialog is gone", closed);

  // A call, with a summary that would like to be a script.
  await tab("sandbox");
  await opens("record", `document.activeElement?.name === "name"`);
  await type(HOSTILE);
  await press("Enter");
  await tab("calls");
  await until("the caller's name as text", `[...document.querySelectorAll("td")].some((td) => td.textContent.includes("<script>"))`);
  await tab("deliveries");
  await until("delivered", `[...document.querySelectorAll("td .badge")].some((b) => b.textContent === "delivered")`);
  await until("gone", `[...document.querySelectorAll("td .badge")].some((b) => b.textContent === "gone")`);
  await tab("endpoints");
  await until("disabled", `[...document.querySelectorAll(".endpoint .badge")].some((b) => b.textContent === "disabled")`);
  // A failing endpoint is visible at once, and first: not when it has used up its attempts.
  await until("what fails is first", `(() => { const row = document.querySelector(".endpoint"); return row.textContent.includes("/broken") && [...row.querySelectorAll(".badge")].some((b) => b.textContent.startsWith("failing")) && /attempts? failed: HTTP 503/.test(row.querySelector(".fails").textContent); })()`);
  await until("and it is said above all", `${text(".summary.bad")}.includes("1 of 3 endpoints failing")`);
  await until("the hours of the day", `/^Events of the last 24 hours: 1 (failing|missed); worst hour: 1 of 1 not delivered, from \\d\\d:\\d\\d$/.test(document.querySelector(".strip")?.ariaLabel)`);
  await axe("endpoints");
  await tab("deliveries");
  await until("failed after several, without touching anything", `[...document.querySelectorAll("tbody tr")].some((tr) => tr.textContent.includes("failed") && tr.querySelectorAll(".pips i.bad").length > 1)`);

  // Its attempts, and the hostile answer as text.
  await focusOn("its attempts", `[...document.querySelectorAll("tbody tr")].find((tr) => tr.textContent.includes("failed"))?.querySelector(".expand")`);
  await press("Enter");
  await until("several attempts", `document.querySelectorAll(".tries .try").length > 1`);
  await until("the body as it is signed", `${text(".exact")}.startsWith('{"id":"evt_')`);
  await until("the receiver's answer as text", `[...document.querySelectorAll(".answer")].some((el) => el.textContent.includes("<script>"))`);
  // Each attempt has the request as it was sent: its signature once nobody can send it again.
  await until("a request for each attempt", `document.querySelectorAll('[data-key^="request "]').length === 6 && /shown in [56] minutes, when receivers reject it as too old/.test(document.body.textContent)`);
  assert.equal(await run(`document.body.textContent.includes(${JSON.stringify(got.find((one) => one.url === "/broken").headers["x-service-signature"])})`), false, "a signature that could be replayed");
  await until("the focus stays", `document.activeElement?.classList.contains("expand")`);
  await until("each answer, and the latest request", `document.querySelectorAll(".try > div > .answer").length === 6 && [...document.querySelectorAll('[data-key^="request "]')].map((el) => el.open).join() === "true,false,false,false,false,false"`);
  await axe("an open delivery");
  await run(`document.querySelector('[data-key^="Pretty "]').click()`);
  await until("the body indented", `${text(".pretty")}.split("\\n").length > 10 && JSON.parse(${text(".pretty")}).type === "call.ended"`);
  await axe("an indented body");
  await run(`document.querySelector('[data-key^="Exact "]').click()`);
  if (shots) await run("scrollTo(0, 0)");
  await shot("whole");
  assert.equal(await run("document.title.includes('owned')"), false, "the page runs what it shows");
  passed++;

  await until("nothing but elements", `[...document.querySelector("main").childNodes].every((node) => node.nodeType === 1)`);

  // Enable, ping, redeliver.
  await tab("endpoints");
  await focusOn("Enable", `[...document.querySelectorAll(".endpoint button")].find((b) => b.textContent === "Enable")`);
  await press("Enter");
  await until("enabled", `![...document.querySelectorAll(".endpoint .badge")].some((b) => b.textContent === "disabled")`);
  await tab("deliveries");
  await focusOn("its attempts", `document.querySelector("tbody .expand")`);
  await press("Enter");
  // A row is open: its reader is told of the new one, and nothing moves.
  await run(`doing("Ping accepted", "POST", "endpoints", seen.endpoints.find(failing).id, "ping")()`);
  const order = () => run(`[...document.querySelectorAll("tbody .expand")].map((el) => el.dataset.key).join(" ")`);
  const before = await order();
  await until("something new", `/^Show [1-9]\\d* new$/.test(${text(`[data-key="new deliveries"]`)})`);
  assert.equal(await order(), before, "rows move under the reader");
  await focus("new deliveries");
  await press("Enter");
  await until("the ping", `[...document.querySelectorAll(".line .clip")].some((b) => b.textContent === "ping")`);
  // From where its reader has learnt why it failed.
  const redeliver = `[...document.querySelectorAll(".detail button")].find((b) => b.textContent === "Redeliver")`;
  if (!(await run(`!!${redeliver}`))) {
    await focusOn("the one that failed", `[...document.querySelectorAll("tbody tr")].find((tr) => tr.textContent.includes("Redeliver"))?.querySelector(".expand")`);
    await press("Enter");
  }
  await focusOn("Redeliver", redeliver);
  await press("Enter");
  await until("redelivered manually", `document.querySelectorAll(".pips[aria-label*='manual']").length > 0 && document.querySelectorAll('.detail [data-key^="copy id "]').length === 2`);

  // Twenty events a second, and no click is lost: each is pressed for longer than a redraw is away.
  const account = first.dashboard + "/accounts/acct_fjord_dental";
  const emit = (type) => fetch(account + "/events", { method: "POST", body: JSON.stringify({ type, data: {} }) }).then((answer) => assert.equal(answer.status, 201));
  const mouse = (type, at) => page("Input.dispatchMouseEvent", { type, ...at, button: "left", clickCount: 1 });
  const middle = (selector) => run(`(() => { const { x, y, width, height } = document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect(); return { x: x + width / 2, y: y + height / 2 }; })()`);
  const set = (name, value) => run(`{ const el = document.querySelector('[data-key="filter ${name}"]'); el.value = ${JSON.stringify(value)}; el.dispatchEvent(new Event("change")); }`);
  await set("type", "ping");
  await until("only the ping", `document.querySelectorAll("tbody .expand").length === 1`);
  await run(`document.querySelector("tbody .expand").scrollIntoView({ block: "center" })`);
  const emitting = setInterval(() => emit("note"), 50);
  const lost = [];
  let missed = 0;
  for (let n = 0; n < 100; n++) {
    const before = await run(`document.querySelector("tbody .expand").ariaExpanded`);
    const at = await middle("tbody .expand");
    await mouse("mousePressed", at);
    // Between two messages to the browser the list may have moved: then this test has pressed beside it.
    const hit = await run(`!!document.querySelector("tbody .expand:active")`);
    await new Promise((done) => setTimeout(done, 120));
    await mouse("mouseReleased", at);
    if (!hit) missed++;
    else if (await run(`document.querySelector("tbody .expand").ariaExpanded`) === before) lost.push({ n, at, now: await middle("tbody .expand") });
  }
  // What is being read or typed stays as it is: marked text, an open part, a day that is typed with pauses.
  if (await run(`document.querySelector("tbody .expand").ariaExpanded`) === "false") await run(`document.querySelector("tbody .expand").click()`);
  await until("its body", `document.querySelectorAll(".detail .exact").length === 1 && !!document.querySelector(".detail details")`);
  await run(`{ document.querySelector(".detail details").open = false; document.querySelector('[data-key="filter from"]').focus(); }`);
  for (const part of ["20", "26", "-11", "-20"]) {
    await type(part);
    await new Promise((done) => setTimeout(done, 700));
  }
  assert.deepEqual(await run(`[document.activeElement.dataset.key, document.activeElement.value, document.querySelector(".detail details").open]`), ["filter from", "2026-11-20", false]);
  await run(`{ document.activeElement.value = ""; document.activeElement.blur(); getSelection().selectAllChildren(document.querySelector(".detail .exact")); }`);
  const marked = await run(`getSelection().toString()`);
  assert.ok(marked.length > 100, marked);
  await new Promise((done) => setTimeout(done, 2500));
  assert.equal(await run(`getSelection().toString()`), marked, "marked text");
  await run(`{ getSelection().empty(); document.querySelector('.detail [data-key^="close"]').click(); }`);
  clearInterval(emitting);
  assert.deepEqual(lost, [], "clicks lost of 100");
  assert.ok(missed <= 5, `${missed} clicks of 100 beside the row`);
  passed++;
  await set("type", "");

  // A click anywhere in a row opens it, and one that ends a selection does not. It stays open though the service is busy.
  const cell = ".line [data-label=Endpoint]";
  await run(`{ const real = fetch; let busy = [503, 429]; window.fetch = (path, ...rest) => path.startsWith("/deliveries/") && busy.length ? Promise.resolve(new Response("{}", { status: busy.shift() })) : real(path, ...rest); window.restore = () => { window.fetch = real; return busy.length; }; }`);
  await run(`getSelection().selectAllChildren(document.querySelector("${cell}"))`);
  await run(`document.querySelector("${cell}").click()`);
  assert.equal(await run(`document.querySelectorAll(".detail").length`), 0, "a text is marked");
  await run(`getSelection().empty()`);
  const click = async () => { const at = await middle(cell); await mouse("mousePressed", at); await mouse("mouseReleased", at); };
  await click();
  assert.equal(await run(`document.querySelectorAll(".detail").length`), 1, "a click in the row");
  await until("its body, at the third time of asking", `document.querySelectorAll(".detail .exact").length === 1`);
  assert.deepEqual(await run(`[restore(), document.querySelector("#errors").textContent]`), [0, ""]);
  await click();
  await until("it is closed again", `!document.querySelector(".detail")`);

  // What is found is not among the latest fifty: the store looks at all of them.
  for (let n = 0; n < 25; n++) await emit("note");
  await until("the failed one is no longer among the latest", `![...document.querySelectorAll("tbody tr .badge")].some((b) => b.textContent === "failed") || document.querySelectorAll("tbody tr").length > 40`);
  const rows = `document.querySelectorAll("[aria-labelledby=h-deliveries] tbody .expand").length`;
  await set("type", "call.ended");
  await until("only calls", `${rows} === 3 && ![...document.querySelectorAll(".line > td:first-child .clip")].some((el) => el.textContent !== "call.ended")`);
  await set("status", "missed");
  await until("the one that failed", `${rows} >= 1 && ${rows} < 3`);
  await find("evt_nobody");
  await until("none", says("No delivery of the last thirty days matches the filters."));
  await focus("filter none");
  await press("Enter");
  await until("all again", `${rows} === 50`);
  await focus("older");
  await press("Enter");
  await until("the second page", `${says("Page 2")} && ${rows} > 1 && !document.querySelector('[data-key="newer"]').disabled`);
  await focus("newer");
  await press("Enter");
  await until("the first page", `${rows} === 50`);

  // An endpoint with a long URL is down, comes back, and gets what it missed.
  const add = await fetch(account + "/endpoints", { method: "POST", body: JSON.stringify({ url: receiving + LONG }) });
  const { id: down } = await add.json();
  for (let n = 0; n < 3; n++) { await emit("note"); await emit("other"); }
  const go = (name) => run(`show(${JSON.stringify(name)})`);
  await go("endpoints");
  await until("it is disabled", `!!document.querySelector('[data-key="enable ${down}"]')`);
  later = 204;
  for (const width of [390, 1024]) {
    await page("Emulation.setDeviceMetricsOverride", { width, height: 844, deviceScaleFactor: 1, mobile: width < 500 });
    await until(`nothing is wider than ${width}`, `document.documentElement.scrollWidth <= ${width}`);
    await until(`every action is within ${width}`, `[...document.querySelectorAll(".endpoint button, .endpoint summary")].filter((b) => b.checkVisibility()).every((b) => { const box = b.getBoundingClientRect(); return box.width > 0 && box.left >= 0 && box.right <= ${width}; })`);
    if (width < 760) {
      await go("deliveries");
      await until("rows are cards", `[...document.querySelectorAll(".scroll")].every((el) => el.scrollWidth <= el.clientWidth) && [...document.querySelectorAll("td")].every((td) => { const box = td.getBoundingClientRect(); return box.left >= 0 && box.right <= ${width}; })`);
      await go("endpoints");
    }
    await run(`document.querySelector('[data-key="enable ${down}"]').scrollIntoView({ block: "center" })`);
    await shot("width-" + width);
  }
  const box = await middle(`[data-key="enable ${down}"]`);
  for (const type of ["mousePressed", "mouseReleased"]) await mouse(type, box);
  await until("what it missed, by type", `/Recover \\d/.test(${text(`[data-key="recover ${"${down}"}"]`)}) && ${says("Missed: 3 note, 3 other")}`.replaceAll("${down}", down));
  await page("Emulation.clearDeviceMetricsOverride");
  await opens("recover " + down, `document.querySelectorAll("dialog input[name=type]").length === 2`);
  await shot("recover");
  await axe("a recovery");
  const choose = (selector, value) => run(`{ const el = document.querySelector("dialog ${selector}"); ${value === undefined ? "el.checked = !el.checked" : `el.value = ${JSON.stringify(value)}`}; el.dispatchEvent(new Event("input", { bubbles: true })); }`);
  const counts = (words) => until("the count: " + words, `${text(".counted")} === ${JSON.stringify(words)}`);
  await counts("6 deliveries");
  await choose("input[name=type][value=note]");
  await counts("3 deliveries");
  await choose("input[name=type][value=note]");
  for (const [value, words] of [["2020-01-01 10:00", "0 deliveries"], ["soon", "Until: expected a day or a time such as 2026-11-22 14:03"], ["", "6 deliveries"]]) {
    await choose("input[name=until]", value);
    await counts(words);
  }
  for (const status of ["gone", "skipped", "parked"]) await choose(`input[name=status][value=${status}]`);
  await counts("0 deliveries");
  for (const status of ["gone", "skipped", "parked"]) await choose(`input[name=status][value=${status}]`);
  await counts("6 deliveries");
  await confirm("Recover missed deliveries");
  await until("all are delivered", `!document.querySelector('[data-key="recover ${down}"]') && !document.querySelector("progress")`);
  const recovered = await (await fetch(account + "/recoveries")).json();
  assert.deepEqual(recovered.data.map((r) => [r.status, r.redelivered]), [["completed", 6]]);

  // Pause, another secret, delete.
  await menu(down);
  await focus("pause " + down);
  await press("Enter");
  await until("it asks", asks("Pause this endpoint?"));
  assert.equal((await (await fetch(first.dashboard + "/endpoints/" + down)).json()).status, "active", "it is asked first");
  await confirm("Pause this endpoint?");
  await until("paused", says("paused by its owner or an operator"));
  await menu(down);
  await axe("a menu");
  await opens("rotate " + down, `!!document.querySelector("dialog select[name=overlap]")`);
  await axe("a rotation");
  await confirm("Rotate the signing secret");
  await until("the new secret", `${text("dialog code")}.startsWith("whsec_")`);
  await keepSecret();
  await until("both sign", says("the previous secret also signs until"));
  await menu(down);
  await focus("delete " + down);
  await press("Enter");
  await confirm("Delete this endpoint?");
  await until("it is deleted", `!document.querySelector('[data-key="delete ${down}"]')`);

  // A key: its secret once, and then revoked.
  await tab("keys");
  await opens("add key", `document.activeElement?.name === "name"`);
  await axe("the dialog of a key");
  await type("CRM sync");
  await press("Enter");
  await until("the secret", `${text("dialog code")}.startsWith("service_live_")`);
  const secret = await run(text("dialog code"));
  const ask = () => fetch(first.api + "/v1/account", { headers: { Authorization: "Bearer " + secret } }).then((answer) => answer.status);
  assert.equal(await ask(), 200);
  await keepSecret();
  await until("the key", `[...document.querySelectorAll("td")].some((td) => td.textContent === "CRM sync")`);
  await focusOn("Revoke", `[...document.querySelectorAll("tr")].find((tr) => tr.textContent.includes("CRM sync"))?.querySelector("button")`);
  await press("Enter");
  await confirm("Revoke this key?");
  await until("revoked", `[...document.querySelectorAll("tr")].some((tr) => tr.textContent.includes("CRM sync") && tr.textContent.includes("revoked"))`);
  assert.equal(await ask(), 401);

  // The sandbox: a fault on order, and the clock.
  await tab("sandbox");
  await run(`document.querySelector('[data-key="order"]').click()`);
  await until("what can be ordered", `document.querySelectorAll("dialog select[name=fault] option").length === 30`);
  await axe("the dialog of a fault");
  const fault = (name) => run(`{ const el = document.querySelector("dialog select[name=fault]"); el.value = "${name}"; el.onchange({ target: el }); }`);
  const late = `(() => { const el = document.querySelector("dialog input[name=late]"); return el.checkVisibility() ? el.closest("label").textContent + " " + el.value : ""; })()`;
  for (const [name, words, whom] of [["slow", "Delay in milliseconds 3000", 2], ["rate_limit_exceeded", "Retry-After in seconds 1", 2], ["no_signature", "", 5], ["lookup_fails", "", 2]]) {
    await fault(name);
    assert.deepEqual(await run(`[${late}, document.querySelectorAll("dialog select[name=whom] option").length]`), [words, whom], name);
  }
  await run(`document.querySelector("dialog select[name=whom]").value = "account"`);
  await run(`document.querySelector("dialog form").requestSubmit()`);
  await until("it is ordered", `${text("#faults")}.includes("lookup_fails") && ${text("#faults")}.includes("next 1") && ${text("#faults")}.includes("for acct_fjord_dental")`);
  await axe("a fault that is ordered");
  const api = await fetch(first.api + "/v1/account", { headers: { Authorization: `Bearer ${first.accounts[0].keys[0].secret}` } });
  assert.equal(api.status, 500);
  await run(`document.querySelector('[data-key="advance +8 h"]').click()`);
  await until("eight hours later, and it has struck", `/28,[78]\\d\\d s ahead/.test(${text("#faults")}) && !${text("#faults")}.includes("lookup_fails")`);

  // Another account, and how it stands.
  await find("corner bakery", "account acct_closing");
  await until("its deliveries", says("Add your first endpoint"));
  await go("settings");
  await until("the other account", `${text(".verdict")}.includes("403 account_closed")`);
  await shot("empty");
  await axe("an account without anything");
  await focus("standing closing");
  await press(" ");
  await until("it is open again", `${text(".verdict .badge")} === "200"`);

  // What stops a customer asks first; what is refused there changes nothing.
  const closing = () => fetch(first.dashboard + "/accounts/acct_closing").then((answer) => answer.json());
  await focus("standing closing");
  await press(" ");
  await until("it asks", asks("Schedule this account for deletion?"));
  await press("Escape");
  await until("it is not done", `${closed} && !document.querySelector('[data-key="standing closing"]').checked`);
  assert.equal((await closing()).closing, false);
  await focus("standing subscription_active");
  await press(" ");
  await confirm("Set the subscription inactive?");
  await until("it is inactive", `${text(".verdict .badge")} === "402 subscription_inactive" && !document.querySelector('[data-key="standing subscription_active"]').checked`);
  await run(`{ const el = document.querySelector('[data-key="standing plan"]'); el.value = "none"; el.dispatchEvent(new Event("change")); }`);
  await until("it asks for the plan", asks("Change the plan to none?"));
  await axe("a question");
  await press("Escape");
  await until("the plan stays", `${closed} && document.querySelector('[data-key="standing plan"]').value !== "none"`);
  await focus("standing subscription_active");
  await press(" ");
  await until("it is active again", `${text(".verdict .badge")} === "200"`);

  // The address says what is shown, and Back goes where the reader was.
  await run("history.back()");
  await until("the tab before", `${says("Add your first endpoint")} && location.hash === "#acct_closing"`);
  await run("history.back()");
  await until("the account before", `${text("h1")} === "Fjord Dental Clinic" && location.hash === "#acct_fjord_dental/sandbox" && !!document.querySelector("#faults")`);
  await run(`document.querySelector("#tab-deliveries").click()`);
  await until("its deliveries", `location.hash === "#acct_fjord_dental" && ${rows} === 50`);
  // What is asked for often is one press, and in the address.
  const chip = (name) => run(`document.querySelector('[data-key="chip ${name}"]').click()`);
  const pressed = (name) => `document.querySelector('[data-key="chip ${name}"]').ariaPressed === "true"`;
  await chip("failing");
  await until("what is failing", `location.hash === "#acct_fjord_dental?status=failing" && ${pressed("failing")} && ${rows} >= 1 && [...document.querySelectorAll("tbody .badge")].every((el) => ["failed", "gone", "parked", "waiting", "sending"].includes(el.textContent)) && document.querySelectorAll(".pips i.bad").length >= ${rows}`);
  await chip("hour");
  await until("of the last hour: eight hours have gone", `location.hash === "#acct_fjord_dental?status=failing&within=hour" && ${says("No delivery of the last thirty days matches the filters.")}`);
  await axe("chips");
  await chip("day");
  await until("of the last day", `location.hash === "#acct_fjord_dental?status=failing&within=day" && ${rows} >= 1 && !(${pressed("hour")})`);
  await set("from", "2020-01-01");
  await until("days in place of a span", `location.hash === "#acct_fjord_dental?status=failing&from=2020-01-01" && !(${pressed("day")})`);
  await set("from", "Yesterday");
  await until("a day by its word", `location.hash.endsWith("&from=Yesterday") && ${rows} >= 1`);
  await set("from", "");
  // Of one event, what becomes of it at each endpoint.
  await run(`document.querySelector("tbody .expand").click()`);
  await until("its event", `!!document.querySelector('.detail [data-key^="event "]')`);
  await run(`document.querySelector('.detail [data-key^="event "]').click()`);
  await until("one row for each endpoint", `/^#acct_fjord_dental[?]id=evt_[^&]+$/.test(location.hash) && ${rows} === 3 && new Set([...document.querySelectorAll('[data-label="Endpoint"]')].map((el) => el.textContent)).size === 3`);
  const event = await run(`filters.id`);
  await run(`document.querySelector('[data-key="filter id"]').click()`);
  await until("no longer that event alone", `location.hash === "#acct_fjord_dental" && ${rows} === 50`);
  // The same by its id, and a delivery by its own, also while another account is shown.
  await find(event);
  await until("its deliveries", `location.hash === "#acct_fjord_dental?id=${event}" && ${rows} === 3`);
  const delivery = await run(`document.querySelector("tbody .expand").dataset.key.slice(5)`);
  await find("acct_harbour_hair", "account acct_harbour_hair");
  await until("another account", `${text("h1")} === "Harbour Hair" && location.hash === "#acct_harbour_hair"`);
  await find(delivery);
  await until("that delivery", `${text("h1")} === "Fjord Dental Clinic" && location.hash === "#acct_fjord_dental?id=${delivery}&open=${delivery}" && ${rows} === 1 && document.querySelectorAll(".detail").length === 1 && document.querySelector("tbody .expand").dataset.key === "open ${delivery}"`);
  await find("dlv_nobody");
  await until("none", `${text("#errors .toast")}.startsWith("delivery not found")`);
  await run(`document.querySelector("#errors .toast button").click()`);
  await run(`document.querySelector('[data-key="filter id"]').click()`);
  await until("all of them", `location.hash === "#acct_fjord_dental" && ${rows} === 50`);
  await chip("failing");
  await chip("failing");
  await until("all of them", `location.hash === "#acct_fjord_dental" && ${rows} === 50`);
  await set("status", "missed");
  await until("the filter is in the address", `location.hash === "#acct_fjord_dental?status=missed" && ${rows} >= 1 && ![...document.querySelectorAll("tbody .badge")].some((el) => el.textContent === "delivered")`);
  await focusOn("its attempts", `document.querySelector("tbody .expand")`);
  await press("Enter");
  await until("what is open is in the address", `location.hash.includes("&open=dlv_") && document.querySelectorAll(".detail .exact").length === 1`);
  const linked = await run("location.href");
  await run("history.back()");
  await until("it is closed", `!document.querySelector(".detail")`);
  await run("history.back()");
  await until("no filter", `${rows} === 50 && document.querySelector('[data-key="filter status"]').value === ""`);
  await page("Page.navigate", { url: "about:blank" });
  await page("Page.navigate", { url: linked });
  await until("the same by its address", `document.querySelectorAll(".detail .exact").length === 1 && document.querySelector('[data-key="filter status"]').value === "missed"`);
  await page("Page.navigate", { url: "about:blank" });
  await page("Page.navigate", { url: linked.replace("status=missed", "type=ping") });
  await until("it is open though the filter leaves it out", `document.querySelectorAll(".detail .exact").length === 1`);
  await run(`location.hash = "#acct_fjord_dental?status=lost&from=soon"`);
  await until("a filter that is refused says why", says("from: expected a day or a time such as 2026-11-22 14:03"));
  await axe("a refused filter");
  await run(`location.hash = "#acct_unknown"`);
  await until("an unknown account is an error", `${text("h1")} === "There is no such account" && ${text("#live-text")} === "Live"`);
  await axe("an unknown account");
  await run("history.back()");
  await until("the account before", `${text("h1")} === "Fjord Dental Clinic"`);
  await run(`location.hash = "#acct_fjord_dental"`);
  await until("all of its deliveries", `${rows} === 50`);

  // Deliveries are lines of forty pixels. Accounts are searched, with the keyboard.
  const heights = await run(`[...new Set([...document.querySelectorAll(".line")].map((el) => Math.round(el.getBoundingClientRect().height)))]`);
  assert.ok(heights.every((height) => height <= 41), `lines of ${heights} pixels`);
  await run("document.activeElement?.blur()");
  await page("Input.dispatchKeyEvent", { type: "keyDown", key: "/", text: "/" });
  const offered = `[...document.querySelectorAll("#found li")]`;
  const chosen = (id) => `document.querySelector("#found [aria-selected=true]").dataset.key === "account ${id}" && document.activeElement.getAttribute("aria-activedescendant") === document.querySelector("#found [aria-selected=true]").id`;
  await until("the search, and all accounts", `document.activeElement?.id === "search" && document.activeElement.value === "" && document.activeElement.ariaExpanded === "true" && document.querySelector("#found").checkVisibility() && ${offered}.length === 5 && ${chosen("acct_fjord_dental")}`);
  await axe("all accounts");
  await press("ArrowDown");
  await until("the next", chosen("acct_harbour_hair"));
  await press("ArrowUp");
  await until("the one before", chosen("acct_fjord_dental"));
  await type("harb");
  await until("one account", `${offered}.length === 1 && ${text("#found")}.startsWith("Harbour Hair")`);
  await axe("a search");
  await type("x");
  await until("none", `${text("#found")} === "No account matches harbx"`);
  await press("Enter");
  await press("Escape");
  await until("the list has closed, and the text is gone", `search.value === "" && document.querySelector("#found").hidden && document.activeElement.ariaExpanded === "false" && ${text("h1")} === "Fjord Dental Clinic"`);
  await run(`search.blur()`);
  await until("all of them", `${offered}.length === 5 && document.querySelector("#found").hidden`);

  // Times are exact, with a zone, in one format; each button is named by what it does it to.
  const times = await run(`[...document.querySelectorAll("time .stamp")].map((el) => el.textContent)`);
  assert.ok(times.length > 20, "times");
  for (const time of times) assert.match(time, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC([+−]\d+(:\d\d)?)?$/);
  for (const name of ["deliveries", "endpoints", "alerts", "keys", "calls", "settings", "sandbox"]) {
    await go(name);
    const names = await run(`[...document.querySelectorAll("main button, main select, main input, main table")].map((el) => el.getAttribute("aria-label") || el.getAttribute("aria-labelledby") || el.closest("label")?.textContent || el.textContent)`);
    assert.deepEqual(names.filter((name, at) => !name || names.indexOf(name) !== at), [], `two of one name: ${name}`);
    passed += 1;
  }
  await go("endpoints");
  passed++;

  // One that is signed as of ten minutes ago is shown whole, copied, explained, and sent again with curl.
  const json = async (method, path, body) => (await fetch(first.dashboard + path, { method, body: body && JSON.stringify(body) })).json();
  const { id: described, secret: signing } = await json("POST", "/accounts/acct_fjord_dental/endpoints", { url: receiving + "/good", description: "It's the CRM" });
  await until("its description", `[...document.querySelectorAll(".endpoint .described")].some((el) => el.textContent === "It's the CRM")`);
  await json("POST", "/faults", { fault: "old_timestamp", next: 1, endpoint: described });
  const { deliveries: [old] } = await json("POST", `/endpoints/${described}/ping`, {});
  await until("it is sent", `fetch("/deliveries/${old}").then((answer) => answer.json()).then((d) => d.status === "delivered")`);
  const sent = got.findLast((one) => one.url === "/good");
  await run(`location.hash = "#acct_fjord_dental?open=${old}"`);
  await until("its request", `!!document.querySelector('[data-key^="request ${old}"]')`);
  await run(`document.querySelector('[data-key^="request ${old}"]').open = true`);
  await until("as it was sent", `document.querySelector('[data-key^="request ${old}"] pre').textContent === ${JSON.stringify([`POST ${receiving}/good`, ...["content-type", "user-agent", "x-service-signature", "x-service-event", "x-service-delivery"].map((name) => `${name}: ${sent.headers[name]}`)].join("\n"))}`);
  await until("the digest of its body", says(createHash("sha256").update(sent.body).digest("hex")));
  await axe("a request");
  await run(`navigator.clipboard.writeText = async (text) => { window.copied = text; }`);
  await run(`document.querySelector('[data-key^="curl ${old}"]').click()`);
  await until("the command", `window.copied?.startsWith("# SECRET=whsec_...")`);
  const again = await promisify(execFile)("bash", ["-c", await run("window.copied")], { env: { ...process.env, SECRET: signing } });
  assert.match(again.stdout, /^HTTP\/1.1 204/, again.stderr);
  const by = got.findLast((one) => one.url === "/good");
  const [, time, digest] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(by.headers["x-service-signature"]);
  assert.equal(digest, createHmac("sha256", signing).update(`${time}.${by.body}`).digest("hex"));
  assert.deepEqual([by.body, by.headers["x-service-event"], by.headers["user-agent"]], [sent.body, "ping", sent.headers["user-agent"]]);
  await run(`window.open = (address) => { window.opened = address; }`);
  await run(`document.querySelector('[data-key^="explain ${old}"]').click()`);
  const explained = await run("window.opened");
  await page("Page.navigate", { url: first.dashboard + explained });
  await until("both are there", `document.querySelector("#body")?.value === ${JSON.stringify(sent.body)} && document.querySelector("#headers").value.includes("x-service-signature: t=")`);
  await run(`{ const el = document.querySelector("#secret"); el.value = ${JSON.stringify(signing)}; el.dispatchEvent(new Event("input")); }`);
  await until("it is explained", `${text("#verdict")} === "Nothing is wrong with the signature."`);
  assert.equal(await run("location.hash"), "", "what was given does not stay in the address");
  await page("Page.navigate", { url: first.dashboard + "/#acct_fjord_dental" });
  await until("back", `${text("h1")} === "Fjord Dental Clinic"`);
  await go("endpoints");
  await until("the endpoint", `!!document.querySelector('[data-key="more ${described}"]')`);
  await menu(described);
  await opens("edit " + described, `document.querySelector("dialog input[name=description]")?.value === "It's the CRM"`);
  await run(`document.querySelector("dialog input[name=description]").value = "The other CRM"`);
  await axe("the dialog to edit an endpoint");
  await press("Enter");
  await until("its new description", `[...document.querySelectorAll(".endpoint .described")].some((el) => el.textContent === "The other CRM")`);
  assert.equal((await json("GET", `/endpoints/${described}`)).since, (await json("GET", `/endpoints/${described}`)).created_at, "no new life");
  await json("DELETE", `/endpoints/${described}`);
  await until("it is gone", `!${says("The other CRM")}`);

  if (shots) {
    await page("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: "dark" }] });
    await run(`choose("acct_fjord_dental")`);
    await until("back", `${text("h1")} === "Fjord Dental Clinic"`);
    await go("deliveries");
    await run(`[...document.querySelectorAll("tbody tr")].find((tr) => tr.textContent.includes("failed"))?.querySelector(".expand").click()`);
    await shot("dark-whole");
    await page("Emulation.setDeviceMetricsOverride", { width: 420, height: 900, deviceScaleFactor: 1, mobile: true });
    await new Promise((done) => setTimeout(done, 300));
    await shot("narrow");
  }

  // By the keyboard a delivery is not far, however many accounts and endpoints there are.
  await page("Page.navigate", { url: first.dashboard + "/#acct_fjord_dental" });
  await until("its deliveries", `${rows} === 50`);
  const stops = await run(`(() => { const all = [...document.querySelectorAll("main :is(a[href], button, input, select, summary, [tabindex])")].filter((el) => el.tabIndex >= 0 && el.checkVisibility()); return all.indexOf(document.querySelector("tbody .expand")); })()`);
  assert.ok(stops > 0 && stops <= 20, `${stops} stops before the first delivery`);

  // How each stands is told by a shape of its own, beside the word.
  const states = await run(`[...document.querySelectorAll(".line [data-label=Status] .badge")].map((el) => [el.textContent, el.querySelector("svg[aria-hidden] path").getAttribute("d")])`);
  assert.equal(states.length, 50);
  const shapes = new Map(states);
  assert.ok(shapes.size >= 2 && states.every(([word, shape]) => shapes.get(word) === shape), "one shape for each word");
  const known = await run(`Object.entries(KIND).map(([word, [, shape]]) => shape)`);
  assert.ok(known.length === 7 && new Set(known).size === 7 && [...shapes.values()].every((shape) => known.includes(shape)), "no shape for two words");

  // A line stands where another day begins; below it a time needs no day.
  await fetch(first.dashboard + "/clock", { method: "POST", body: JSON.stringify({ advance_seconds: 86_400 }) });
  await emit("tomorrow");
  const days = `[...document.querySelectorAll("tbody .day")].map((el) => el.textContent)`;
  await until("another day", `${text(".line .clip")} === "tomorrow" && ${days}.length >= 2`);
  const list = await run(`[...document.querySelectorAll("[aria-labelledby=h-deliveries] tbody tr")].map((el) => el.className === "day" ? el.textContent : [[...el.querySelector(".stamp").childNodes].filter((node) => node.className !== "skip").map((node) => node.textContent).join("").trim(), el.querySelector("time").dateTime])`);
  let day = null;
  for (const one of list) {
    if (typeof one === "string") {
      const [, name, date] = /^([A-Z][a-z]+day) (\d{4}-\d\d-\d\d) UTC(?:[+−]\d+(?::\d\d)?)?$/.exec(one) ?? [];
      assert.ok(name && (day === null || date < day), one);
      day = date;
    } else {
      const stamp = await run(`stamp(${JSON.stringify(one[1])})`);
      assert.equal(one[0], stamp.startsWith(day) ? stamp.split(" ")[1] : stamp, `below ${day}`);
    }
  }
  await axe("two days");

  // Of rows that the durable host cannot read, their ids are told; the others are shown.
  await run(`{
    const real = fetch;
    window.fetch = async (path, options) => {
      const response = await real(path, options);
      if (!String(path).endsWith("/overview") || response.status !== 200) return response;
      const value = await response.json();
      for (const rows of [value.endpoints, value.deliveries]) rows[0] = { id: rows[0].id, unreadable: true };
      return new Response(JSON.stringify(value), response);
    };
    window.restore = () => { window.fetch = real; tag = null; };
    tag = null;
  }`);
  await go("endpoints");
  await until("an endpoint that cannot be read", `/1 row cannot be read: whep_/.test(${text('[data-key="card endpoints"]')}) && !!document.querySelector('[data-key^="ping "], [data-key^="enable "]')`);
  await go("deliveries");
  await until("a delivery that cannot be read", `/1 row cannot be read: dlv_/.test(${text('[data-key="card deliveries"]')}) && document.querySelectorAll("tr.line").length >= 49 && !document.querySelector('[data-key=older]').disabled`);
  await axe("rows that cannot be read");
  await run("restore()");
  await until("they can be read", `!/cannot be read/.test(document.body.innerText)`);

  // Without the service, it says so, and nothing moves.
  await go("endpoints");
  await until("an endpoint", `!!document.querySelector('[data-key^="ping "]')`);
  await go("deliveries");
  await run(`document.querySelector("tbody .expand").click()`);
  await until("its details", `!!document.querySelector(".detail .exact")`);
  const place = () => run(`[".detail", "table"].map((name) => document.querySelector(name).getBoundingClientRect().toJSON())`);
  const stood = await place();
  service.kill("SIGTERM");
  await until("it says that it is alone, and since when", `/does not answer · as of \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d UTC/.test(${text("#live-text")})`);
  await until("what is shown looks stale", `getComputedStyle(document.body, "::after").backdropFilter === "grayscale(1)"`);
  assert.deepEqual(await place(), stood);
  await run(`document.querySelector('.detail [data-key^="close"]').click()`);
  await go("endpoints");
  // What was asked for may have been done or not. The error stays until its reader has seen it.
  await run(`document.querySelector('[data-key^="ping "]').click()`);
  const unknown = "the service does not answer: the result is not known";
  await until("what is not known", `${text("#errors[role=alert] .toast")}.startsWith(${JSON.stringify(unknown)})`);
  await axe("the page without the service");
  await new Promise((done) => setTimeout(done, 8000));
  await until("it is still there", `document.querySelectorAll("#errors .toast").length === 1`);
  await run(`document.querySelector("#errors .toast button").click()`);
  await until("it is gone", `!document.querySelector("#errors .toast")`);
  await go("settings");
  const active = `document.querySelector('[data-key="standing subscription_active"]')`;
  await run(`${active}.click()`);
  await until("it asks", asks("Set the subscription inactive?"));
  await run(`document.querySelector("dialog form").requestSubmit()`);
  await until("it is not known either", `${text("dialog .wrong")} === ${JSON.stringify(unknown)} && ${active}.checked`);
  await run(`document.querySelector("dialog").close()`);
  const own = complaints.filter((words) => !/Failed to load resource|ERR_CONNECTION/.test(words));
  assert.deepEqual(own, [], "the page complains");
  console.log(`page: ${passed + 1} passed, 0 failed`);
  clearTimeout(failed);
  end(0);
} catch (error) {
  console.error(error);
  console.error(complaints);
  await shot("failed");
  console.log(`page: ${passed} passed, 1 failed`);
  end(1);
}
