// ---- The server ----
const PATIENCE = 10000;
// Who is asked too often, or is not ready, may answer later.
const refusal = (message, status) => Object.assign(new Error(message), { status, isFinal: status < 500 && status !== 429 });
async function send(path, { headers, ...rest }) {
  const response = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE), headers: { "X-Dashboard-Page": "1", ...(pass && { "X-Portal-Token": pass }), ...headers }, ...rest });
  if (response.status === 401 && !locked) lock();
  return response;
}
async function ask(method, path, body) {
  const response = await send(path, {
    method,
    headers: body && { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  }).catch(() => { throw new Error(method === "GET" ? "the service does not answer" : "the service does not answer: the result is not known"); });
  const value = await response.json().catch(() => null);
  if (!response.ok) throw refusal(value?.error?.message || `the service answered ${response.status}`, response.status);
  return value;
}
// As many pages as a person has asked for.
async function readPages(most, read, next = "") {
  const rows = [];
  for (let page = 0; page < most && next !== null; page++) {
    const found = await read(next);
    rows.push(...found.data);
    next = found.next;
  }
  return { rows, next };
}
const pageOf = (account, list) => (after) => ask("GET", at("accounts", account, list) + "?" + new URLSearchParams({ limit: 200, after }));
const at = (...parts) => "/" + parts.map(encodeURIComponent).join("/");

async function attempt(what, run) {
  try {
    const value = await run();
    if (what) toast(what);
    await refresh(true);
    return value;
  } catch (error) { fail(error); }
}
const doing = (what, method, ...path) => () => attempt(what, () => ask(method, at(...path)));
const fail = (error) => toast(error.message, true);
// What is done goes by itself. An error is said at once, and stays until its reader has seen it.
function toast(text, bad) {
  const el = h("div.toast", { class: bad ? "bad" : "" }, text, bad && button("Dismiss", { of: text }, () => el.remove()));
  const list = $(bad ? "errors" : "toasts");
  list.append(el);
  while (list.children.length > 3) list.firstChild.remove();
  if (!bad) setTimeout(() => el.remove(), 3500);
}
