// ---- The server ----
async function ask(method, path, body) {
  const response = await fetch(path, {
    method, cache: "no-store",
    headers: body === undefined ? {} : { "Content-Type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const value = await response.json().catch(() => null);
  if (!response.ok) throw new Error(value?.error?.message || `the service answered ${response.status}`);
  return value;
}
const at = (...parts) => "/" + parts.map(encodeURIComponent).join("/");

async function attempt(what, run) {
  try {
    const value = await run();
    if (what) toast(what);
    await refresh(true);
    return value;
  } catch (error) { toast(error.message, true); }
}
function toast(text, bad) {
  const el = h("div", { class: "toast" + (bad ? " bad" : "") }, text);
  $("toasts").append(el);
  while ($("toasts").children.length > 3) $("toasts").firstChild.remove();
  setTimeout(() => el.remove(), bad ? 7000 : 3500);
}
