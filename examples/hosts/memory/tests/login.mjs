// Logs in to the dashboard with an operator's token, and out, in a headless browser.
//
//   node examples/hosts/memory/tests/login.mjs target/debug/examples/service
//
// Exit status 0: everything held.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import assert from "node:assert/strict";
import { audit } from "../../../testing/axe.mjs";
import { open } from "../../../testing/browser.mjs";

const TOKEN = "the-operators-own-token";
const folder = mkdtempSync(join(tmpdir(), "login-"));
writeFileSync(join(folder, "token"), TOKEN + "\n");
let service, browser;
let passed = 0;
process.on("uncaughtException", end);
const failed = setTimeout(() => end(new Error("timed out")), 300_000);

function end(error) {
  clearTimeout(failed);
  service?.kill("SIGKILL");
  browser?.close();
  rmSync(folder, { recursive: true, force: true });
  if (error) console.error(error, browser?.complaints);
  console.log(`log-in: ${passed} passed, ${error ? 1 : 0} failed`);
  process.exit(error ? 1 : 0);
}

async function start() {
  service = spawn(process.argv[2], ["--listen", "127.0.0.1:0", "--dashboard", "127.0.0.1:0", "--operator-token-file", join(folder, "token")], { stdio: ["ignore", "pipe", "ignore"] });
  let text = "";
  for await (const chunk of service.stdout) {
    text += chunk;
    if (text.includes("\n")) return JSON.parse(text.split("\n")[0]);
  }
  throw new Error("the service ended without a word");
}

try {
  const { dashboard } = await start();
  browser = await open({ width: 1280, height: 800 });
  const { page, run } = browser;
  const until = async (what, expression) => { await browser.until(what, expression); passed++; };
  const text = (selector) => `(document.querySelector(${JSON.stringify(selector)})?.textContent || "")`;
  const says = (words) => `(() => { const el = document.querySelector(".login .wrong"); return !!el?.checkVisibility() && ${words}.test(el.textContent); })()`;
  const form = `document.activeElement?.name === "token" && document.querySelector("#find").hidden && !/acct_/.test(document.querySelector("#found").textContent) && ${text("#live-text")} === "Logged out"`;
  const shows = (name) => `${text("h1")} === ${JSON.stringify(name)} && ${text("#live-text")} === "Live"`;
  async function logIn(token) {
    await run(`document.querySelector("input[name=token]").value = ""; document.querySelector("input[name=token]").focus()`);
    await page("Input.insertText", { text: token });
    for (const type of ["keyDown", "keyUp"]) await page("Input.dispatchKeyEvent", { type, key: "Enter", code: "Enter", windowsVirtualKeyCode: 13, text: type === "keyDown" ? "\r" : undefined });
  }

  // The page opens, and asks for the token: nothing of an account is in it.
  await page("Page.navigate", { url: dashboard + "/#acct_harbour_hair" });
  await until("the form", form);
  await logIn("not-the-operators-token");
  await until("why not", says(/^the operator's token is wrong: /));
  passed += await audit(browser, "log-in");
  await logIn(TOKEN);
  await until("the account that the address names", shows("Harbour Hair"));
  await until("it is an operator's", `${text("#kind")} === "operator" && document.querySelector("#logout").checkVisibility()`);
  assert.equal(await run("document.cookie"), "", "scripts see no cookie");
  assert.equal(JSON.stringify(await page("Network.getCookies")).includes(TOKEN), false, "the cookie has the token");

  // It goes on without another question, also after a reload and on the page that explains.
  await page("Page.reload");
  await until("the same after a reload", shows("Harbour Hair"));
  await page("Page.navigate", { url: dashboard + "/explain" });
  await until("the page that explains", `${text("#verdict")} === "Nothing to explain yet."`);
  await run("setTimeout(() => history.back())");
  await until("back", shows("Harbour Hair"));
  await run(`choose("acct_fjord_dental")`);
  await until("another account", shows("Fjord Dental Clinic"));

  // Log-out is real: neither Back nor a copy of the cookie shows anything.
  const { cookies } = await page("Network.getCookies");
  const copy = cookies.map(({ name, value }) => `${name}=${value}`).join("; ");
  const status = () => fetch(dashboard + "/accounts", { headers: { Cookie: copy } }).then((answer) => answer.status);
  assert.equal(await status(), 200);
  await run(`setTimeout(() => document.querySelector("#logout").click())`);
  await until("logged out", `${form} && location.pathname + location.hash === "/"`);
  assert.equal(await status(), 401, "a copy of the cookie");
  assert.deepEqual((await page("Network.getCookies")).cookies, []);
  for (const name of ["first", "second", "third"]) {
    await run("setTimeout(() => history.back())");
    await new Promise((done) => setTimeout(done, 500));
    await until("a page", `document.readyState === "complete"`);
    assert.doesNotMatch(await run("document.body.innerText"), /Fjord|Harbour|acct_/, `Back after log-out, the ${name} time`);
  }

  // A login that ends while the page is open: the form, and after it where the reader was.
  await page("Page.navigate", { url: dashboard + "/#acct_fjord_dental" });
  await until("the form again", form);
  await logIn(TOKEN);
  await until("the account", shows("Fjord Dental Clinic"));
  await run(`show("keys"); document.querySelector('[data-key="add key"]').click()`);
  await page("Network.clearBrowserCookies");
  await until("the form behind the dialog", `!!document.querySelector(".login") && document.querySelector("dialog[open]")?.checkVisibility()`);
  await run(`document.querySelector("dialog").close()`);
  await logIn(TOKEN);
  await until("where the reader was", shows("Fjord Dental Clinic"));

  // Too many tries: it says how long to wait. A right token is accepted, and who is logged in goes on.
  const kept = (await page("Network.getCookies")).cookies.map(({ name, value }) => `${name}=${value}`).join("; ");
  await page("Network.clearBrowserCookies");
  await until("the form once more", form);
  for (let n = 0; n < 10; n++) {
    await logIn("not-the-operators-token");
    await until("an answer", `!document.querySelector(".login button").disabled && ${says(/token is wrong|too many/)}`);
  }
  await logIn("not-the-operators-token");
  await until("how long to wait", says(/^too many wrong tokens or links; try again in \d+ s$/));
  await logIn(TOKEN);
  await until("who has the right token", shows("Fjord Dental Clinic"));
  assert.equal((await fetch(dashboard + "/accounts", { headers: { Cookie: kept } })).status, 200);

  const own = browser.complaints.filter((words) => !/Failed to load resource/.test(words));
  assert.deepEqual(own, [], "the page complains");
  assert.deepEqual(browser.requests.filter((url) => !url.startsWith(dashboard) && !url.startsWith("data:") && url !== "about:blank"), [], "a third party");
  end();
} catch (error) {
  end(error);
}
