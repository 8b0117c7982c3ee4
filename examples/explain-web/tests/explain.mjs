// Drives the page that explains signatures in a headless browser: every accident, a few vectors,
// files, the keyboard, and that nothing leaves the page.
//
//   node examples/explain-web/tests/explain.mjs [SCREENSHOT [ADDRESS]]
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { audit } from "../../testing/axe.mjs";
import { open } from "../../testing/browser.mjs";

const root = new URL("../../../", import.meta.url);
const accidents = JSON.parse(readFileSync(new URL("tests/webhook/wire/explain/accidents.json", root)));
const vectors = JSON.parse(readFileSync(new URL("tests/vectors/signatures.json", root))).cases;
const address = process.argv[3] || new URL("examples/explain-web/explain.html", root).href;
const folder = mkdtempSync(join(tmpdir(), "explain-"));
const browser = await open();
const { page, run, until } = browser;
const failed = setTimeout(() => end(new Error("timed out")), 900_000);
let passed = 0;

function end(error) {
  clearTimeout(failed);
  if (error) console.error(error, browser.complaints);
  console.log(`explain: ${passed} passed, ${error ? 1 : 0} failed`);
  browser.close();
  rmSync(folder, { recursive: true, force: true });
  process.exit(error ? 1 : 0);
}

const hex = (text) => Buffer.from(text, "hex");
const request = ({ signature, delivery, body }) => Buffer.concat([
  Buffer.from("POST / HTTP/1.1\r\nX-Service-Signature: "), hex(signature),
  Buffer.from(delivery === null ? "" : "\r\nX-Service-Delivery: "), hex(delivery ?? ""),
  Buffer.from("\r\n\r\n"), hex(body),
]);
const json = JSON.stringify;
const codes = `[...document.querySelectorAll("#causes code")].map((code) => code.textContent).join(" ")`;
const verdict = `document.querySelector("#verdict")?.textContent`;
const kind = `document.querySelector("#answer").className`;

// All the page knows of one delivery, its bytes as those of files.
const bytes = (buffer) => `Uint8Array.from(atob(${json(buffer.toString("base64"))}), (c) => c.charCodeAt(0))`;
async function explained({ head, body, secret, now, others = [], known = [] }) {
  return run(`(async () => {
    fill("headers", ${bytes(head)});
    fill("body", ${bytes(body)});
    $("secret").value = ${json(secret)};
    $("now").value = ${json(String(now))};
    $("others").value = ${json(others.join("\n"))};
    known = [${known.map((other) => bytes(other)).join(",")}];
    await explain();
    return [${kind}, ...${codes}.split(" ").filter(Boolean)].join(" ");
  })()`);
}
async function give(selector, path) {
  const { root: { nodeId: document } } = await page("DOM.getDocument");
  const { nodeId } = await page("DOM.querySelector", { nodeId: document, selector });
  await page("DOM.setFileInputFiles", { nodeId, files: [path] });
}
// What the mouse does with a file from outside the browser.
async function drop(selector, path) {
  await run(`document.querySelector(${json(selector)}).scrollIntoView({ block: "center" })`);
  const at = await run(`(() => { const { x, y, width, height } = document.querySelector(${json(selector)}).getBoundingClientRect(); return { x: x + width / 2, y: y + height / 2 }; })()`);
  const data = { items: [], files: [path], dragOperationsMask: 1 };
  for (const type of ["dragEnter", "dragOver"]) await page("Input.dispatchDragEvent", { type, ...at, data });
  await until("the zone under the file", `$("drop").classList.contains("over")`);
  await page("Input.dispatchDragEvent", { type: "drop", ...at, data });
  await until("the zone at rest", `!$("drop").classList.contains("over")`);
}

try {
  await page("Page.navigate", { url: address });
  await until("the page", `${verdict} === "Nothing to explain yet."`);
  passed += await audit(browser, "the page that explains");

  for (const accident of accidents) {
    const found = await explained({
      head: request({ ...accident, body: "" }),
      body: hex(accident.body),
      secret: hex(accident.secret).toString(),
      now: accident.now,
      known: accident.known.map(request),
    });
    let [how, ...expected] = accident.expected.split(" ");
    // A browser can expand what the library only sees to be compressed.
    if (expected[0] === "body_gzip") how = "proven";
    // What a field of text cannot hold, its line ends, is of no matter here.
    const shown = how === "guessed" ? "maybe" : expected.length ? "bad" : "good";
    assert.equal(found, [shown, ...expected].join(" "), accident.name);
    passed++;
  }
  for (const vector of vectors.filter((vector) => /^(body|window|rotation|secret):/.test(vector.name) && vector.signature.length === 1)) {
    const body = vector.body === undefined ? hex(vector.body_hex) : Buffer.from(vector.body);
    const [secret, ...others] = vector.secrets;
    const head = Buffer.from(vector.signature[0]);
    const found = await explained({ head, body, secret, others, now: vector.now });
    if (vector.now_nanos !== undefined || vector.tolerance !== undefined) continue;
    assert.equal(/^(good|bad secret_other)$/.test(found), vector.verdict === "accepted", `${vector.name}: ${found}`);
    passed++;
  }

  // From the beginning, with files: a whole request fills both fields and keeps its bytes.
  await page("Page.navigate", { url: address });
  await until("the page again", `${verdict} === "Nothing to explain yet."`);
  const crlf = vectors.find((vector) => vector.name === "body: cr lf within");
  const whole = Buffer.concat([Buffer.from(`POST / HTTP/1.1\r\nX-Service-Signature: ${crlf.signature[0]}\r\n\r\n`), hex(crlf.body_hex)]);
  writeFileSync(join(folder, "request.http"), whole);
  await give("#file", join(folder, "request.http"));
  await until("its headers", `$("headers").value.includes("X-Service-Signature")`);
  await run(`$("now").value = ${json(String(crlf.now))}; $("secret").focus()`);
  await page("Input.insertText", { text: crlf.secrets[0] });
  await until("it is right", `${kind} === "good"`);
  passed++;

  // Typing in one field leaves the other alone, and line ends stay those of the file.
  const key = async (key, code, text) => {
    for (const type of ["keyDown", "keyUp"]) await page("Input.dispatchKeyEvent", { type, key, code: key === " " ? "Space" : key, windowsVirtualKeyCode: code, text: type === "keyDown" ? text : undefined });
  };
  for (const field of ["headers", "body"]) {
    const before = await run(`[$("headers").value, $("body").value]`);
    await run(`$("${field}").focus(); $("${field}").setSelectionRange(1e6, 1e6)`);
    await key(" ", 32, " ");
    await run("explain()");
    const other = field === "headers" ? 1 : 0;
    assert.equal((await run(`[$("headers").value, $("body").value]`))[other], before[other], `typed in ${field}`);
    assert.doesNotMatch(await run(codes), /body_empty|body_line_ends/, `typed in ${field}`);
    await key("Backspace", 8);
    await run("explain()");
    assert.deepEqual(await run(`[$("headers").value, $("body").value]`), before);
    assert.equal(await run(kind), "good", `typed in ${field}, and taken back`);
  }
  passed++;
  // A capture without its body says nothing of the body that is there.
  const kept = await run(`$("body").value`);
  await run(`$("headers").focus(); $("headers").select()`);
  await page("Input.insertText", { text: `POST / HTTP/1.1\nX-Service-Signature: ${crlf.signature[0]}\n\n` });
  await run("explain()");
  assert.deepEqual([await run(`$("body").value`), await run(kind)], [kept, "good"]);
  passed++;

  // Pasted text has lost its line ends, and the page says so.
  await run(`$("body").focus(); $("body").select()`);
  await page("Input.insertText", { text: hex(crlf.body_hex).toString() });
  await until("the cause", `${codes} === "body_line_ends_to_lf"`);
  assert.match(await run(`$("kept").textContent`), /line ends of this page/);
  passed++;

  // Files dragged onto the drop zone: the verdict is that of their bytes, which no field of text can
  // hold. What such a field would make of them is not what was signed.
  for (const name of ["body: cr lf within", "body: not utf-8", "body: every byte"]) {
    const vector = vectors.find((vector) => vector.name === name);
    const path = join(folder, "body");
    await page("Page.navigate", { url: address });
    await until("the page for a drop", `${verdict} === "Nothing to explain yet."`);
    for (const [field, text] of [["headers", vector.signature[0]], ["now", String(vector.now)], ["secret", vector.secrets[0]]]) {
      await run(`document.querySelector("details").open = true; $("${field}").focus()`);
      await page("Input.insertText", { text });
    }
    const body = hex(vector.body_hex);
    const spoiled = Buffer.from(body.toString().replaceAll("\r\n", "\n"));
    for (const [bytes, good] of [[body, true], [spoiled, false], [body, true]]) {
      writeFileSync(path, bytes);
      await drop("#drop", path);
      await until(`the verdict, ${name}, ${bytes.length} bytes`, `${kind} !== "" && (${kind} === "good") === ${good} && $("kept").textContent.startsWith("${bytes.length} bytes")`);
      passed++;
    }
    // Where the field cannot hold the file, an edit there makes no verdict about what was received.
    if (name === "body: cr lf within") continue;
    await run(`$("body").focus(); $("body").setSelectionRange(0, 0)`);
    await key(" ", 32, " ");
    await until("it asks for the file again", `${verdict}.endsWith("choose the file again.") && ${codes} === ""`);
    await run(`$("body").select()`);
    await page("Input.insertText", { text: "another body" });
    await until("a verdict about another body", `${codes} !== "" && $("body").value === "another body"`);
    passed++;
  }

  // Markup is text, whatever field it is in.
  const hostile = `<img src=x onerror="document.title='owned'">`;
  for (const field of ["headers", "body", "secret", "others", "product", "now"]) {
    await run(`$("${field}").focus(); $("${field}").select()`);
    await page("Input.insertText", { text: hostile });
    await run(`explain()`);
  }
  assert.notEqual(await run("document.title"), "owned");
  passed++;

  // An old capture, by the clock of the browser.
  const event = vectors.find((vector) => vector.name === "body: an event");
  await page("Page.navigate", { url: address });
  await until("the page once more", `${verdict} === "Nothing to explain yet."`);
  for (const [field, text] of [["headers", event.signature[0]], ["body", event.body], ["secret", event.secrets[0] + ";"]]) {
    await run(`$("${field}").focus()`);
    await page("Input.insertText", { text });
  }
  await until("both causes", `${codes} === "secret_punctuation time_too_old"`);
  assert.match(await run(`$("more").textContent`), /set “Received at” to 1767225600/);
  passed += await audit(browser, "an explanation");
  if (process.argv[2]) await browser.shot(process.argv[2]);
  passed++;

  assert.deepEqual(browser.requests.filter((url) => url !== address && !url.startsWith("data:")), [], "something left the page");
  await assert.rejects(run(`fetch("https://example.com/")`));
  passed++;
  const own = browser.complaints.filter((words) => !/example\.com/.test(words));
  assert.deepEqual(own, [], "the page complains");
  end();
} catch (error) {
  end(error);
}
