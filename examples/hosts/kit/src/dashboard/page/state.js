// ---- State ----
const ANY = { status: "", endpoint: "", type: "", id: "", within: "", from: "", until: "" };
// The one that an address without a tab shows is first.
const TABS = { deliveries: "Deliveries", endpoints: "Endpoints", alerts: "Alerts", keys: "API keys", calls: "Calls", settings: "Settings", sandbox: "Sandbox" };
let tab = "deliveries", selected = null, seen = null, tag = null, filters = { ...ANY };
// What the filters find, and the pages before this one: only the latest fifty come with the rest.
let found = null, pages = [""];
// Whole deliveries, their bodies included, of those that are open.
const details = new Map(), missed = new Map();
const open = new Set();
// Deliveries that are selected, to be redelivered together.
const chosen = new Set();

async function refresh(now) {
  if (locked) return;
  try {
    if (now) { tag = null; details.forEach((d) => { d.readAt = 0; }); }
    if (now && oldKeys.of === selected) { const { pages } = oldKeys; oldKeys = { ...oldKeys, of: null }; await readOldKeys(pages); }
    if (!met) await meet();
    if (portal && !pass) await meetOwner();
    if (!accounts.length || now) {
      await readAccounts();
      if (selected === null && portal) {
        selected = own;
        history.replaceState(null, "", address());
      }
      drawFound();
    }
    if (selected === null) await refreshFleet(now);
    else { await refreshAccount(selected); await readDays(selected); }
    if (!locked) alive(true);
  } catch { if (!locked) alive(false); }
}
// How many pages a person has asked for of lists that are longer than what comes with the rest.
let morePages = {};
const moreOf = (name, text) => seen[name + "_next"] && pager(button(text, { key: "more " + name }, () => { morePages[name] = (morePages[name] ?? 0) + 1; refresh(true); }));
async function refreshAccount(asked) {
  const response = await send(at("accounts", asked, "overview"), { headers: tag && { "If-None-Match": tag } });
  if (response.status === 304) return;
  if (response.status !== 200 && response.status !== 404) throw new Error(`the service answered ${response.status}`);
  const value = await response.json();
  if (asked !== selected || locked) return;
  if (response.status === 404) { seen = null; tag = null; return drawUnknown(); }
  for (const [name, pages] of Object.entries(morePages)) {
    const { rows, next } = await readPages(pages, pageOf(asked, name), value[name + "_next"]);
    value[name].push(...rows); value[name + "_next"] = next;
  }
  if (asked !== selected || locked) return;
  for (const name of ["keys", "endpoints", "deliveries", "calls", "recoveries"]) value[name] = readable(name, value[name]);
  tag = response.headers.get("ETag"); seen = value; skew = Date.parse(value.now) - Date.now();
  await find();
  await fetchOpen();
  await fetchKept();
  if (asked === selected && !locked) { draw(); countMissed(); }
}
// Rows that the service cannot read have nothing but their ids, which their card tells.
const unread = {};
function readable(name, rows) {
  unread[name] = rows.filter((row) => row.unreadable).map((row) => row.id);
  return rows.filter((row) => !row.unreadable);
}
let answeredAt = null;
function alive(yes) {
  if (yes) answeredAt = new Date().toISOString();
  if (!yes && !$("main").hasChildNodes()) notice("Not loaded, retrying");
  document.body.classList.toggle("stale", !yes);
  $("live").classList.toggle("off", !yes);
  const text = yes ? "Live" : "The service does not answer" + (answeredAt ? ` · as of ${stamp(answeredAt)}` : "");
  if ($("live-text").textContent !== text) $("live-text").textContent = text;
}

// ---- The address: the account, its tab, what its deliveries are filtered by, and which are open ----
function address(of = tab) {
  const query = new URLSearchParams(Object.entries(filters).filter(([, value]) => value));
  pages.slice(1).forEach((after) => query.append("after", after));
  if (of === tab) open.forEach((id) => query.append("open", id));
  const asked = query.toString();
  return hash(selected) + (of === "deliveries" ? "" : "/" + of) + (asked && "?" + asked);
}
function remember() { if (address() !== location.hash) history.pushState(null, "", address()); }
function follow() {
  const [path, ...rest] = location.hash.slice(1).split("?");
  const query = new URLSearchParams(rest.join("?"));
  const [name, of] = path.split("/");
  let id = name;
  try { id = decodeURIComponent(name); } catch { }
  tab = Object.hasOwn(TABS, of) ? of : "deliveries";
  const other = (id || null) !== selected;
  if (other) { selected = id || null; forget(); clearSearch(); }
  for (const field of Object.keys(ANY)) filters[field] = query.get(field) ?? "";
  pages = ["", ...query.getAll("after")];
  open.clear();
  query.getAll("open").forEach((id) => open.add(id));
  return other;
}
function forget() { seen = null; morePages = {}; found = null; kept = null; days = null; fleet = null; notes = { pages: 1, rows: [], next: null }; details.clear(); missed.clear(); chosen.clear(); }
function choose(id) {
  if (id === selected) return;
  location.hash = hash(id);
  scrollTo(0, 0);
}
function show(name) {
  if (name === tab) return;
  history.pushState(null, "", address(name));
  follow();
  draw();
  look();
  if (seen) readDays(selected).catch(() => {});
}

// ---- Finding deliveries: the store looks at all of them ----
const searching = () => pages.length > 1 || Object.values(filters).some(Boolean);
async function findDeliveries() {
  const query = new URLSearchParams({ after: pages[pages.length - 1] });
  const { status, within, from, until, ...rest } = filters;
  for (const [name, value] of Object.entries(rest)) query.set(name, value.trim());
  query.set("status", status === "missed" ? MISSED.join(",") : status);
  if (within) query.set("from", new Date(clock() - span(within)).toISOString());
  if (from) query.set("from", moment("from", from));
  if (until) query.set("until", moment("to", until, true));
  // A filter that leaves out nearly all finds little at a time. What is further back is behind a button.
  let data = [], page = {};
  for (let step = 0; step < STEPS && (!step || page.looked_to) && data.length < 50; step++) {
    query.set("limit", 50 - data.length);
    page = await ask("GET", at("accounts", selected, "deliveries") + "?" + query);
    data = data.concat(page.data);
    query.set("after", page.next);
  }
  return { ...page, data: readable("deliveries", data), at: Date.now() };
}
// How often it is looked further back by itself.
const STEPS = 10;
const SPANS = { hour: 3600e3, day: 24 * 3600e3 };
function span(name) {
  if (!Object.hasOwn(SPANS, name)) throw refusal("within: expected hour or day", 400);
  return SPANS[name];
}
// A time of the reader's zone, or a day: all of it, where it is the last. Two days have words.
function moment(name, text, isEnd) {
  const back = ["today", "yesterday"].indexOf(text.trim().toLowerCase());
  if (back >= 0) text = stamp(clock() - back * SPANS.day).slice(0, 10);
  const [, day, time] = /^\s*([12]\d{3}-\d\d-\d\d)(?:[ T](\d\d:\d\d))?\s*$/.exec(text) ?? [];
  const at = new Date(`${day}T${time ?? "00:00"}`);
  if (isNaN(at)) throw refusal(`${name}: expected a day or a time such as 2026-11-22 14:03`, 400);
  if (isEnd && !time) at.setDate(at.getDate() + 1);
  return at.toISOString();
}
let finding = 0;
async function find() {
  const asked = ++finding;
  // A filter that is refused finds nothing, and says why.
  const refused = (error) => { if (!error.status) throw error; return { data: [], next: null, refused: error.message }; };
  const of = JSON.stringify([selected, filters, pages]);
  if (found?.of === of && found.looked_to && Date.now() - found.at < 10000) return;
  const result = searching() && tab === "deliveries" ? { ...await findDeliveries().catch(refused), of } : null;
  // What was asked for later is not replaced by what was asked for earlier.
  if (asked === finding) found = result;
}
async function look() {
  if (locked) return;
  try { await find(); await fetchOpen(); draw(); } catch (error) { fail(error); }
}
// A span and days exclude each other.
function setFilter(name, value) {
  if (name === "within") filters.from = filters.until = "";
  if (name === "from" || name === "until") filters.within = "";
  filters[name] = value;
  turn([""]);
}
function turn(to) { pages = to; open.clear(); chosen.clear(); remember(); look(); }
const MISSED = ["failed", "gone", "parked", "skipped"];

// How the events of each hour of the last day stand: counted again now and then, where somebody sees it.
let days = null;
async function readDays(of) {
  if (!seen || tab !== "endpoints" || (days && Date.now() - days.at < 30000)) return;
  const { from, data } = await ask("GET", at("accounts", of, "day"));
  if (of !== selected || locked) return;
  days = { at: Date.now(), from: Date.parse(from), of: new Map(data.map((day) => [day.endpoint_id, day])) };
  draw();
}

// How much an endpoint has missed: counted again when it may have changed, and not each second.
async function countMissed() {
  const of = selected;
  for (const e of seen.endpoints) {
    if (of !== selected || !seen) return;
    const known = missed.get(e.id);
    if (running(e) || (known && Date.now() - known.at < 10000)) continue;
    missed.set(e.id, { ...known, first: !known, at: Date.now() });
    try {
      const counted = await ask("POST", at("endpoints", e.id, "recover"), { dry_run: true });
      missed.set(e.id, { ...counted, at: Date.now() });
      if (known?.count !== counted.count || known.lost) draw();
    } catch (error) {
      // The plan has no recovery. A service that does not answer is asked again.
      missed.set(e.id, { ...known, lost: !error.isFinal, at: Date.now() });
      if (missed.get(e.id).lost) draw();
    }
  }
}
const running = (e) => seen.recoveries.find((r) => r.endpoint_id === e.id && r.status === "running");
const types = (counted) => Object.entries(counted.by_type).map(([type, count]) => `${number(count)} ${type}`).join(", ");
