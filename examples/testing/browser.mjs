// A headless browser, driven by its own protocol over a pipe: nothing is installed beside Node and
// Chromium.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export async function open({ width = 1100, height = 1200 } = {}) {
  const profile = mkdtempSync(join(tmpdir(), "page-"));
  const browser = spawn(process.env.CHROMIUM || "chromium", ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", `--user-data-dir=${profile}`, `--window-size=${width},${height}`, "about:blank"], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
  const [to, from] = [browser.stdio[3], browser.stdio[4]];
  const waiting = new Map();
  const complaints = [];
  const requests = [];
  let count = 0;
  let unread = "";
  from.setEncoding("utf8").on("data", (chunk) => {
    const messages = (unread + chunk).split("\0");
    unread = messages.pop();
    messages.forEach((message) => heard(JSON.parse(message)));
  });
  function heard({ id, error, result, method, params }) {
    if (id) {
      const { resolve, reject } = waiting.get(id);
      waiting.delete(id);
      error ? reject(new Error(error.message)) : resolve(result);
    } else if (method === "Runtime.exceptionThrown") {
      complaints.push(params.exceptionDetails.exception?.description || params.exceptionDetails.text);
    } else if (method === "Log.entryAdded" && params.entry.level === "error") {
      complaints.push(params.entry.text);
    } else if (method === "Network.requestWillBeSent") {
      requests.push(params.request.url);
    }
  }
  function send(method, params = {}, sessionId) {
    const id = ++count;
    to.write(JSON.stringify({ id, method, params, sessionId }) + "\0");
    return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
  }
  const { targetId } = await send("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
  const page = (method, params) => send(method, params, sessionId);
  for (const domain of ["Page", "Runtime", "Log", "Network", "DOM"]) await page(domain + ".enable");

  async function run(expression) {
    const { result, exceptionDetails } = await page("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description || exceptionDetails.text);
    return result.value;
  }
  async function until(what, expression) {
    for (const began = Date.now(); Date.now() - began < 60_000;) {
      // A page that is being left answers nothing; the next one does.
      const left = (error) => { if (!/navigated or closed|context was destroyed|find context/.test(error.message)) throw error; };
      if (await run(expression).catch(left)) return;
      await new Promise((done) => setTimeout(done, 50));
    }
    throw new Error(`not seen: ${what}`);
  }
  async function shot(path, beyond = false) {
    const { data } = await page("Page.captureScreenshot", { format: "png", captureBeyondViewport: beyond });
    writeFileSync(path, Buffer.from(data, "base64"));
  }
  function close() {
    browser.kill("SIGKILL");
    try { rmSync(profile, { recursive: true, force: true, maxRetries: 5 }); } catch {}
  }
  return { all: send, page, run, until, shot, close, complaints, requests };
}
