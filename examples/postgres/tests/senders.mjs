// Drains a sender on the operator's page and ends it, in a headless browser over the durable host.
//
//   node examples/postgres/tests/senders.mjs target/debug/call-assistant-postgres
//
// Exit status 0: everything held.
import { spawn } from "node:child_process";
import assert from "node:assert/strict";
import { audit } from "../../testing/axe.mjs";
import { open } from "../../testing/browser.mjs";

let browser;
const flags = ["demo", "--listen", "127.0.0.1:0", "--dashboard", "127.0.0.1:0"];
const host = spawn(process.argv[2], flags, { stdio: ["ignore", "pipe", "ignore"] });
const failed = setTimeout(() => end(new Error("timed out")), 120_000);
process.on("uncaughtException", end);

function end(error) {
  clearTimeout(failed);
  browser?.close();
  // It ends its database server.
  host.kill("SIGTERM");
  if (error) console.error(error, browser?.complaints);
  console.log(`senders: ${error ? "failed" : "passed"}`);
  host.on("exit", () => process.exit(error ? 1 : 0));
}

let text = "";
for await (const chunk of host.stdout) {
  text += chunk;
  if (text.includes("\n")) break;
}
const { dashboard } = JSON.parse(text.split("\n")[0]);
const senders = async () => (await (await fetch(`${dashboard}/levers`)).json()).senders;

try {
  browser = await open({ width: 1280, height: 900 });
  const { page, run, until } = browser;
  await page("Page.navigate", { url: dashboard });
  const shown = (words) => `document.querySelector('[data-key="card senders"]')?.textContent.includes(${JSON.stringify(words)})`;
  const press = (words) => run(`[...document.querySelectorAll("button")].find((button) => button.textContent === ${JSON.stringify(words)} && !button.closest("nav")).click()`);
  await until("the sender owns all shards", shown("64 shards"));
  await audit(browser, "senders");
  if (process.env.SHOTS) await browser.shot(`${process.env.SHOTS}/senders.png`, true);
  await press("Drain");
  await until("the question", `document.querySelector("dialog[open]")?.textContent.includes("No other sender is left")`);
  await run(`document.querySelector("dialog[open] form").requestSubmit()`);
  await until("it is drained", shown("0 shards"));
  assert.deepEqual((await senders()).map(({ drained, shards }) => [drained, shards]), [[true, []]]);
  await press("End draining");
  await until("it sends again", shown("64 shards"));
  assert.equal((await senders())[0].drained, false);
  assert.deepEqual(browser.complaints, []);
  end();
} catch (error) { end(error); }
