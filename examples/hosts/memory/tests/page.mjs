// What the dashboard's page shows is what is so: when something was sent again or forgotten, when an endpoint is gone,
// and when an answer does not come.
//
//   node examples/hosts/memory/tests/page.mjs target/debug/examples/service
//
// Exit status 0: everything held.
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { once } from "node:events";
import assert from "node:assert/strict";
import { open } from "../../../testing/browser.mjs";

let service, browser, passed = 0;
function end(error) {
  clearTimeout(failed);
  service?.kill("SIGKILL");
  browser?.close();
  if (error) console.error(error, browser?.complaints);
  console.log(`what is shown: ${passed} passed, ${error ? 1 : 0} failed`);
  process.exit(error ? 1 : 0);
}
process.on("uncaughtException", end);
const failed = setTimeout(() => end(new Error("timed out")), 600_000);

let status = 503; // what the first endpoint answers
const receiver = createServer((request, response) => {
  request.resume().on("end", () => { response.statusCode = request.url === "/first" ? status : 204; response.end(); });
}).listen(0, "127.0.0.1");

try {
  await once(receiver, "listening");
  const receiving = `http://127.0.0.1:${receiver.address().port}`;
  service = spawn(process.argv[2], ["--listen", "127.0.0.1:0", "--dashboard", "127.0.0.1:0", "--allow-loopback-endpoints", "--time-scale", "0.00001"], { stdio: ["ignore", "pipe", "ignore"] });
  let line = "";
  for await (const chunk of service.stdout) if ((line += chunk).includes("\n")) break;
  const { dashboard } = JSON.parse(line.split("\n")[0]);
  const json = async (method, path, body) => (await fetch(dashboard + path, { method, body: body && JSON.stringify(body) })).json();
  const account = "/accounts/acct_fjord_dental";
  const add = async (path) => (await json("POST", account + "/endpoints", { url: receiving + path })).id;
  const ping = async (id) => (await json("POST", `/endpoints/${id}/ping`, {})).deliveries[0];
  const first = await add("/first"), second = await add("/second");
  const lost = await ping(first);

  browser = await open({ width: 1280, height: 900 });
  const { page, run } = browser;
  const until = async (what, expression) => { await browser.until(what, expression); passed++; };
  const text = (selector) => `(document.querySelector(${JSON.stringify(selector)})?.textContent || "")`;
  const live = `${text("#live-text")} === "Live"`;
  while ((await json("GET", "/deliveries/" + lost)).status !== "failed") await new Promise((done) => setTimeout(done, 50));

  // Whether there is somebody to log out is asked until it is known.
  await page("Network.setBlockedURLs", { urls: ["*/login"] });
  const shown = `${dashboard}/#acct_fjord_dental?type=none&open=${lost}`;
  await page("Page.navigate", { url: shown });
  await until("it does not know", `${text("#live-text")}.startsWith("The service does not answer")`);
  await page("Network.setBlockedURLs", { urls: [] });
  await until("it knows", `${live} && ${text("#kind")} === "local service"`);

  // What an address opens is as it is now, though the list leaves it out.
  const row = `document.querySelector('[data-key="row ${lost}"]')`;
  await until("the one that the address opens", `${row}?.textContent.includes("failed") && document.querySelectorAll(".detail .exact").length === 1`);
  status = 204;
  await run(`{ const say = toast; window.told = []; toast = (text, bad) => { told.push(text); say(text, bad); }; }`);
  await run(`document.querySelector('[data-key="again ${lost}"]').click()`);
  await until("it is delivered", `${row}.textContent.includes("delivered") && document.querySelectorAll(".detail .tries [data-key^='request ']").length === 7`);
  await until("its result is told, and is first", `told.join() === "Redelivery accepted,ping: HTTP 204" && ${text(".tries > .try")}.startsWith("↻HTTP 204")`);

  // Its reader's drawer stays while the store does not answer.
  await run(`{
    window.real = fetch;
    window.answers = (path, status) => { window.fetch = async (asked, options) => String(asked).startsWith(path) ? new Response(JSON.stringify({ error: { message: "not now" } }), { status }) : real(asked, options); };
    answers("/deliveries/", 503);
  }`);
  await run(`refresh(true)`);
  assert.deepEqual(await run(`[".detail", "#errors .toast"].map((of) => document.querySelectorAll(of).length)`), [1, 0], "the drawer alone");
  await run(`window.fetch = real`);

  // What had the focus is gone: the next key goes on from its row, or else from the list.
  await page("Page.navigate", { url: "about:blank" });
  await page("Page.navigate", { url: `${dashboard}/#acct_fjord_dental?type=ping&open=${lost}` });
  await until("the drawer", `document.querySelectorAll(".detail .exact").length === 1 && !!${row}`);
  await run(`{ const el = document.querySelector('[data-key="close ${lost}"]'); el.focus(); el.click(); }`);
  await until("the focus is in its row", `!document.querySelector(".detail") && document.activeElement.dataset.key === "open ${lost}"`);
  await run(`{ const el = document.querySelector('[data-key="filter none"]'); el.focus(); el.click(); }`);
  await until("the focus is on the list", `!document.querySelector('[data-key="filter none"]') && document.activeElement.id === "panel"`);

  // A row that was forgotten leaves the list that its reader holds still.
  status = 503;
  const forgotten = await ping(first);
  await page("Page.navigate", { url: "about:blank" });
  await page("Page.navigate", { url: dashboard + "/#acct_fjord_dental" });
  const forgottenRow = `document.querySelector('[data-key="row ${forgotten}"]')`;
  await until("the one that failed", `${forgottenRow}?.textContent.includes("failed")`);
  await run(`${forgottenRow}.querySelector(".choose").click()`);
  for (let n = 0; n < 51; n++) await ping(second);
  await until("there are others", `${text('[data-key="new deliveries"]')}.startsWith("Show 50 new")`);
  assert.ok(await run(`!!${forgottenRow}`), "it is still shown");
  await run(`{
    window.real = fetch;
    window.fetch = async (asked, options) => String(asked).startsWith("/deliveries/${forgotten}") ? new Response(JSON.stringify({ error: { message: "delivery not found" } }), { status: 404 }) : real(asked, options);
  }`);
  await ping(second);
  await until("it is gone, and nothing is wrong", `!${forgottenRow} && ${live} && !document.querySelector('[data-key="chosen"]')`);
  await run(`window.fetch = real`);

  // Older ones that cannot be had are an error that is told.
  await run(`{ window.real = fetch; window.fetch = async (asked, options) => String(asked).includes("/deliveries?") ? Promise.reject(new TypeError("no")) : real(asked, options); }`);
  await run(`document.querySelector('[data-key="older"]').click()`);
  await until("an error", `${text("#errors .toast")}.startsWith("the service does not answer")`);
  await run(`{ window.fetch = real; document.querySelector("#errors .toast button").click(); }`);

  // What an endpoint has missed is said as long as there is the endpoint.
  await until("what was missed", `/ · 1 missed$|^1 missed$/.test(${text(".summary")})`);
  await json("DELETE", "/endpoints/" + first);
  await until("the endpoint is gone", `!seen.endpoints.some((e) => e.id === "${first}")`);
  assert.equal(await run(text(".summary")), "No endpoint fails");
  // Nothing is offered that is certain to be refused: the reason is in its place.
  await run(`setFilter("id", "${forgotten}")`);
  const barred = (why) => `${forgottenRow}?.querySelector(".end").textContent === ${JSON.stringify(why)} && !${forgottenRow}.querySelector(".choose")`;
  await until("of a deleted endpoint", barred("the endpoint was deleted"));
  await run(`${forgottenRow}.querySelector(".expand").click()`);
  await until("in the drawer, too", `!document.querySelector(".detail .primary") && /Cannot be redelivered: the endpoint was deleted[.]/.test(${text(".detail")})`);
  await run(`filters.id = ""; turn([""])`);

  // What could not be loaded says so in its place, and nothing is green before something was sent.
  const other = (await json("POST", "/accounts/acct_harbour_hair/endpoints", { url: receiving + "/first" })).id;
  await run(`{ window.real = fetch; window.fetch = async (asked, options) => String(asked).endsWith("/recover") ? new Response("{}", { status: 503 }) : real(asked, options); location.hash = "#acct_harbour_hair"; }`);
  await until("what was missed is not known", `${text(".summary.wait")} === "missed: not loaded, retrying"`);
  await run(`{ window.fetch = real; missed.clear(); refresh(true); }`);
  await until("nothing was sent", `${text(".summary")} === "Nothing has been sent yet" && !document.querySelector(".summary.good")`);
  // A delivery that was cancelled is none of a disabled endpoint's, and one of a disabled endpoint can be missed.
  const stopped = (d, e) => run(`stopped({ status: "parked", endpoint_id: "${other}", ended_at: ${JSON.stringify(d)}, ...${JSON.stringify(e ?? {})} })`);
  assert.equal(await stopped("2999-01-01T00:00:00Z", { event_created_at: "2999-01-01T00:00:00Z" }), "cancelled");
  assert.equal(await stopped("2999-01-01T00:00:00Z", { event_created_at: "2000-01-01T00:00:00Z" }), "cancelled, or endpoint was disabled");
  assert.equal(await stopped("2000-01-01T00:00:00Z"), "cancelled, or endpoint was disabled");
  assert.equal(await stopped("2999-01-01T00:00:00Z", { endpoint_id: "whep_gone" }), "endpoint was deleted");
  await json("POST", `/endpoints/${other}/pause`, {});
  await json("POST", "/accounts/acct_harbour_hair/events", { type: "note", data: {} });
  await run(`missed.clear()`);
  await until("what a disabled one has missed", `${text(".summary")} === "1 disabled · 1 missed"`);
  assert.equal(await stopped("2999-01-01T00:00:00Z"), "endpoint was disabled");
  await until("no button", `/the endpoint is disabled$/.test(document.querySelector(".line .end")?.textContent)`);
  // The id is there to copy.
  await run(`show("endpoints")`);
  await until("its id", `${text(".endpoint")}.includes("${other}") && !!document.querySelector('[data-key="copy id ${other}"]')`);
  await run(`location.hash = "#acct_fjord_dental"`);
  await until("back", `${text("h1")} === "Fjord Dental Clinic"`);
  passed += 6;

  // A list that is longer than what comes with the rest goes on behind a button.
  for (let n = 0; n < 25; n++) await json("POST", account + "/calls", {});
  await run(`show("calls")`);
  const calls = `document.querySelectorAll('[data-key="card calls"] [data-key^="row "]').length`;
  await until("the newest calls", `${calls} === 10`);
  await run(`document.querySelector('[data-key="more calls"]').click()`);
  await until("older calls", `${calls} >= 25`);
  await run(`show("deliveries")`);

  // A share of failures is never nothing, and of two levers the slower one holds.
  const share = await run(`endpointRow({ ...seen.endpoints[0], last_hour: { attempts: 1000, succeeded: 999, more: false, p99_ms: 5 } }).textContent`);
  assert.match(share, /99 %of 1,000 in 1 h/);
  const why = await run(`(() => {
    const { levers } = seen.levers, lever = (id, account_id, per_second) => ({ id, account_id, endpoint_id: null, per_second });
    seen.levers.levers = [lever("lvr_1", selected, 5), lever("lvr_2", null, 0)];
    try { return delayOf({ status: "waiting", next_at: "2020-01-01T00:00:00Z", account_id: selected, endpoint_id: "whep_1" }).why; } finally { seen.levers.levers = levers; }
  })()`);
  assert.equal(why, "sending is paused");
  passed += 2;

  // A secret that is shown once is shown at once, whatever else does not answer.
  await run(`show("keys")`);
  await run(`document.querySelector('[data-key="add key"]').click()`);
  await run(`{
    document.querySelector("dialog input[name=name]").value = "CRM sync";
    window.real = fetch;
    window.fetch = (asked, options) => String(asked).endsWith("/overview") ? new Promise(() => {}) : real(asked, options);
    document.querySelector("dialog form").requestSubmit();
  }`);
  const made = async () => (await json("GET", account + "/keys")).data.some((key) => key.name === "CRM sync");
  while (!await made()) await new Promise((done) => setTimeout(done, 50));
  await until("the secret", `${text("dialog[open] code")}.startsWith("service_live_")`);
  assert.ok(await run(`document.querySelector("dialog[open] code").checkVisibility()`));

  const own = browser.complaints.filter((words) => !/Failed to load resource/.test(words));
  assert.deepEqual(own, [], "the page complains");
  end();
} catch (error) {
  end(error);
}
