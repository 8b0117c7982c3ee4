// ---- State ----
const ANY = { status: "", endpoint: "", type: "", id: "", from: "", until: "" };
let accounts = [], selected = null, seen = null, tag = null, filters = { ...ANY };
// What the filters find, and the pages before this one: only the latest fifty come with the rest.
let found = null, pages = [""];
const bodies = new Map(), missed = new Map();
const open = new Set();

async function refresh(now) {
  try {
    if (now) tag = null;
    if (!accounts.length || now) { accounts = (await ask("GET", "/accounts")).data; if (!selected && accounts.length) selected = fromHash() || accounts[0].id; drawAccounts(); }
    if (selected) {
      const asked = selected;
      const response = await fetch(at("accounts", asked, "overview"), { cache: "no-store", headers: tag ? { "If-None-Match": tag } : {} });
      if (response.status === 200) {
        const value = await response.json();
        if (asked === selected) {
          tag = response.headers.get("ETag"); seen = value; skew = Date.parse(value.now) - Date.now();
          await find();
          if (asked === selected) { draw(); countMissed(); }
        }
      } else if (response.status !== 304) throw new Error("not there");
    } else drawNone();
    alive(true);
  } catch { alive(false); }
}
function alive(yes) {
  $("live").classList.toggle("off", !yes);
  const text = yes ? "Live" : "The service does not answer";
  if ($("live-text").textContent !== text) $("live-text").textContent = text;
}
function fromHash() { const hash = location.hash.slice(1); return accounts.find((a) => encodeURIComponent(a.id) === hash || a.id === hash)?.id ?? null; }
function choose(id) {
  if (id === selected) return;
  selected = id; seen = null; filters = { ...ANY }; found = null; pages = [""]; open.clear(); missed.clear();
  history.replaceState(null, "", "#" + encodeURIComponent(id));
  scrollTo(0, 0);
  refresh(true);
}

// ---- Finding deliveries: the store looks at all of them ----
const searching = () => pages.length > 1 || Object.values(filters).some(Boolean);
async function search() {
  const query = new URLSearchParams({ limit: "50", after: pages[pages.length - 1] });
  const { status, from, until, ...rest } = filters;
  for (const [name, value] of Object.entries(rest)) query.set(name, value.trim());
  query.set("status", status === "missed" ? MISSED.join(",") : status);
  // A day is the reader's, both ends included.
  if (from) query.set("from", new Date(from + "T00:00").toISOString());
  if (until) { const end = new Date(until + "T00:00"); end.setDate(end.getDate() + 1); query.set("until", end.toISOString()); }
  return ask("GET", at("accounts", selected, "deliveries") + "?" + query);
}
let finding = 0;
async function find() {
  const asked = ++finding;
  const result = searching() ? await search() : null;
  // What was asked for later is not replaced by what was asked for earlier.
  if (asked === finding) found = result;
}
async function look() {
  try { await find(); draw(); } catch (error) { toast(error.message, true); }
}
function setFilter(name, value) { filters[name] = value; pages = [""]; look(); }
const MISSED = ["failed", "gone", "parked", "skipped"];

// How much an active endpoint has missed: counted again when it may have changed, and not each second.
async function countMissed() {
  for (const e of seen.endpoints) {
    const known = missed.get(e.id);
    if (e.status !== "active" || running(e) || (known && Date.now() - known.at < 10000)) continue;
    missed.set(e.id, { ...known, at: Date.now() });
    try {
      const counted = await ask("POST", at("endpoints", e.id, "recover"), { dry_run: true });
      const changed = known?.count !== counted.count;
      missed.set(e.id, { ...counted, at: Date.now() });
      if (changed) draw();
    } catch { /* this host has no recovery, or the plan has none */ }
  }
}
const running = (e) => (seen.recoveries || []).find((r) => r.endpoint_id === e.id && r.status === "running");
const types = (counted) => Object.entries(counted.by_type).map(([type, count]) => `${count} ${type}`).join(", ");
