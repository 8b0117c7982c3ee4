// How a delivery stands: its colour, a shape that tells it without colours, and its meaning.
const KIND = {
  delivered: ["good", "M2 6.5 5 9.5 10 3"], failed: ["bad", "M3 3 9 9M9 3 3 9", "all attempts failed"], gone: ["bad", "M2.5 6h7", "HTTP 410"], waiting: ["wait", "M6 1.5a4.5 4.5 0 1 0 .01 0M6 3.5V6l2 1"],
  sending: ["info", "M2 6h8M7 3l3 3-3 3"], parked: ["", "M4 2.5v7M8 2.5v7", "not sent"], skipped: ["", "M3 2.5 6.5 6 3 9.5M9 2.5v7", "endpoint was disabled"],
};
const state = ({ status }, [kind, shape, title] = KIND[status]) => h("span.badge", { class: kind, title }, icon(shape), status);
const titled = (d) => `${d.type} ${d.event_id} to ${d.url}`;
// While somebody reads the list its rows stay where they are: what is new waits until it is asked for.
let kept = null;
function reading() {
  const rows = document.querySelector('[data-key="card deliveries"] tbody');
  const marked = getSelection();
  return !!rows && (open.size > 0 || chosen.size > 0 || rows.getBoundingClientRect().top < 0 || rows.matches(":hover") || rows.contains(document.activeElement)
    || (!marked.isCollapsed && rows.contains(marked.anchorNode)));
}
function settle(latest) {
  const of = found?.of ?? selected;
  if (kept?.of !== of || !reading()) kept = { of, rows: latest };
  const fresh = new Map(latest.map((d) => [d.id, d]));
  const known = new Set(kept.rows.map((d) => d.id));
  const first = latest.findIndex((d) => known.has(d.id));
  kept.rows = kept.rows.map((d) => fresh.get(d.id) ?? d);
  kept.gone = kept.rows.filter((d) => !fresh.has(d.id));
  return { rows: kept.rows, news: kept.rows === latest ? 0 : first < 0 ? latest.length : first };
}
// Rows that are still shown though others have taken their place: as they are now. One that is forgotten is shown no
// longer, and one that cannot be read now stays as it was.
async function fetchKept() {
  const list = kept;
  for (const d of (list?.gone ?? []).filter((d) => d.pending || MISSED.includes(d.status)).slice(0, 10)) {
    const failed = (error) => { if (!error.status) throw error; return error.isFinal ? null : d; };
    const now = await ask("GET", at("deliveries", d.id)).catch(failed);
    list.rows = list.rows.map((row) => row.id === d.id ? now : row).filter(Boolean);
    if (now) continue;
    list.gone = list.gone.filter((row) => row.id !== d.id);
    chosen.delete(d.id);
  }
}
function deliveriesCard(a, deliveries, endpoints) {
  const filter = (name, label, values) => select({ key: "filter " + name, "aria-label": label, onchange: (e) => setFilter(name, e.target.value) }, values, filters[name]);
  const typed = (name, label, hint = label) => written(null, { key: "filter " + name, "aria-label": label, title: label, placeholder: hint, value: filters[name], spellcheck: "false", list: name === "type" && "types", onchange: (e) => { if (e.target.value !== filters[name]) setFilter(name, e.target.value); } });
  const chip = (name, value, text) => button(text, { key: "chip " + value, "aria-pressed": String(filters[name] === value) }, () => setFilter(name, filters[name] === value ? "" : value));
  const { rows: listed, news } = settle(found ? found.data : deliveries);
  // What an address opens is shown whether it is listed or not.
  const linked = [...open].map((id) => details.get(id)).filter((d) => d && !listed.some((other) => other.id === d.id));
  const shown = [...linked, ...listed];
  const first = pages.length === 1, next = found ? found.next : deliveries.length + unread.deliveries.length >= 50;
  const heads = ["Event", "Status", "Endpoint", "Outcome", "Next or last", ACTIONS];
  const drawRow = (d, line) => deliveryRow(heads, d, line);
  return card("deliveries", "Deliveries", "Newest first. Kept for thirty days.", [
    news > 0 && button(`Show ${news} new`, { key: "new deliveries", class: "primary news" }, () => { kept = null; draw(); }),
    deliveries.length > 0 && [h("div.row", chip("within", "hour", "Last hour"), chip("within", "day", "Last day"), chip("status", "failing", "Failing")),
      h("div.row.filters", { role: "group", "aria-label": "Filters" },
        filter("status", "Status", [["", "Any status"], ["failing", "all failing"], ["missed", "all missed"], ...Object.keys(KIND).map((s) => [s])]),
        filter("endpoint", "Endpoint", [["", "Any endpoint"], ...endpoints.map((e) => [e.id, clipped(e.url, 40)])]),
        typed("type", "Type"),
        typed("from", "From YYYY-MM-DD HH:MM", "From YYYY-MM-DD"), typed("until", "To YYYY-MM-DD HH:MM", "To YYYY-MM-DD"),
        filters.id && button(`${filters.id} ×`, { key: "filter id", class: "mono", "aria-label": "Remove filter " + filters.id }, () => setFilter("id", "")),
        searching() && button("Clear", { key: "filter none", class: "plain" }, () => { filters = { ...ANY }; turn([""]); }))]],
    chosen.size > 0 && h("div.row.pager", { key: "chosen" }, h("span", `${chosen.size} selected`),
      button("Redeliver selected", { key: "redeliver chosen", class: "primary" }, redeliverChosen),
      button("Clear selection", { key: "choose none" }, () => { chosen.clear(); draw(); })),
    shown.length ? table("deliveries", heads, [...linked.map((d) => drawRow(d)), ...byDay(listed, (d) => d.event_created_at, drawRow, dayRow(heads))]) :
      found?.refused ? empty("Deliveries not loaded", found.refused) :
        found?.looked_to ? empty("No match so far", "Older deliveries are not searched yet.") :
          deliveries.length ? empty("No match", "No delivery of the last thirty days matches the filters.") :
            endpoints.length ? empty("Nothing has been sent yet", "Ping an endpoint. The ping appears here.") : noEndpoint(a),
    (!first || next) && pager(faint(`Page ${pages.length}`), found?.looked_to && h("span", "Searched back to ", when(found.looked_to)),
      button("Newer", { key: "newer", disabled: first }, () => turn(pages.slice(0, -1))),
      button("Older", { key: "older", disabled: !next }, async () => {
        // The latest fifty come without the place of the next ones.
        try { const { next } = found ?? await findDeliveries(); if (next) turn([...pages, next]); else toast("There are no older deliveries"); }
        catch (error) { fail(error); }
      })), shown.filter((d) => open.has(d.id)).map(drawer));
}
// What is open lies beside the list, and moves none of it. Its address opens it again.
function drawer(d) {
  return h("section.detail", { key: "detail " + d.id, "aria-label": titled(d) },
    h("header.row", h("h3", d.type, " ", state(d)), action(d, "drawer "), button("Close", { key: "close " + d.id, of: titled(d) }, () => { open.delete(d.id); remember(); draw(); document.querySelector(`[data-key="open ${d.id}"]`)?.focus(); })),
    facts([["Event", [copied(d.event_id), " ", button("All deliveries", { key: "event " + d.id, class: "plain", of: d.event_id }, () => { filters = { ...ANY }; setFilter("id", d.event_id); })]],
      ["Delivery", copied(d.id)], ["Endpoint", d.url], ["Created", when(d.event_created_at)]]),
    h("h3", "Attempts"), tries(d), h("h3", "Body"), bodyOf(d));
}
function deliveryRow(heads, d, line) {
  const isOpen = open.has(d.id), missed = MISSED.includes(d.status), delay = delayOf(d);
  const toggle = () => { open.clear(); if (!isOpen) open.add(d.id); remember(); draw(); if (!isOpen) look(); };
  const last = d.attempts[d.attempts.length - 1];
  // What is in the row does what it does, and who marks a text reads it.
  const onclick = (e) => e.target.closest("button, input") || !getSelection().isCollapsed || toggle();
  return row(heads, { key: "row " + d.id, class: "line" + (isOpen ? " open" : ""), onclick },
    h("div.row",
      h("button.expand", { key: "open " + d.id, type: "button", "aria-expanded": String(isOpen), "aria-label": "Attempts of " + titled(d), onclick: toggle }, icon("M4 2l4 4-4 4")),
      missed && !barred(d) && h("input.choose", { key: "choose " + d.id, type: "checkbox", checked: chosen.has(d.id), "aria-label": "Select: " + titled(d), onchange: (e) => { e.target.checked ? chosen.add(d.id) : chosen.delete(d.id); draw(); } }),
      h("span.clip", { title: d.event_id }, d.type)),
    state(d),
    h("div.clip", { title: d.url }, d.url.replace(/^https?:\/\//, "")),
    h("div.row", pips(d), delay ? delay.why : stopped(d) ? h("span", last && outcome(last) + "; ", stopped(d)) : last && outcome(last)),
    d.status !== "waiting" || !d.next_at ? when(d.ended_at || d.event_created_at, line) : delay ? h("div.two", h("span", "due ", when(d.next_at, line)), faint(delay.until)) : h("span", "next ", when(d.next_at, line)),
    action(d, ""));
}
const endpointOf = (d) => seen.endpoints.find((e) => e.id === d.endpoint_id);
const isDeleted = (d) => !endpointOf(d) && !seen.endpoints_next;
// Why it was parked or skipped. An endpoint that is active since before the event has not stopped it.
function stopped(d) {
  const e = endpointOf(d);
  if (d.status === "skipped") return "endpoint was disabled";
  if (d.status !== "parked") return null;
  if (isDeleted(d)) return "endpoint was deleted";
  const active = e?.status === "active";
  return Date.parse(e?.since) <= Date.parse(active ? d.event_created_at : d.ended_at) ? active ? "cancelled" : "endpoint was disabled" : "cancelled, or endpoint was disabled";
}
// Why it cannot be redelivered.
const barred = (d) => d.outlook?.not_redeliverable && (isDeleted(d) ? "the endpoint was deleted" : d.outlook.not_redeliverable);
// What can be done with a delivery, in its row and in its drawer.
function action(d, where) {
  const act = (key, text, done, path) => button(text, { key: `${where}${key} ${d.id}`, of: (where && "opened, ") + titled(d), class: where && "primary" }, () => attempt(done, () => ask("POST", at("deliveries", d.id, path)).then(() => watched.set(d.id, d.attempts.length))));
  return MISSED.includes(d.status) ? barred(d) ? faint(barred(d)) : act("again", "Redeliver", "Redelivery accepted", "redeliver") : d.status === "waiting" && endpointOf(d)?.status === "active" && act("now", "Send now", "The delivery is due now", "send");
}
// Why a delivery that is due is not sent, and until when: what an operator has set, or its endpoint.
function delayOf(d) {
  if (d.status !== "waiting" || !(Date.parse(d.next_at) < clock() - 2000)) return null;
  const levers = seen.levers.levers.filter((l) => (l.endpoint_id ?? d.endpoint_id) === d.endpoint_id && (l.account_id ?? d.account_id) === d.account_id);
  const [lever] = levers.sort((a, b) => a.per_second - b.per_second);
  if (lever) return lever.per_second ? { why: "delayed: sending is limited", until: "sent in turn" } : { why: "sending is paused", until: "sent after the pause" };
  const e = endpointOf(d);
  return e?.suspect_since && { why: "delayed: the endpoint is failing", since: e.suspect_since, until: "sent when another attempt ends" };
}
// One after the other: what is refused stays selected, and the first reason is said.
async function redeliverChosen() {
  let refused = null, done = 0;
  for (const id of [...chosen]) {
    try { await ask("POST", at("deliveries", id, "redeliver")); chosen.delete(id); done++; }
    catch (error) { refused ??= error.message; }
  }
  if (done) toast(`${many(done, "redelivery", "redeliveries")} accepted`);
  if (refused) toast(`${chosen.size} refused: ${refused}`, true);
  await refresh(true);
}
// What is open is fetched with its body; again now and then, and after each action, while it is not among those that are
// listed.
async function fetchOpen() {
  const listed = new Map((found ? found.data : seen?.deliveries ?? []).map((d) => [d.id, d]));
  const isShown = (t) => t.request?.signature !== "too_recent" || Date.parse(t.request.signature_from) > clock();
  for (const id of open) {
    const known = details.get(id), now = listed.get(id);
    const same = now ? now.attempts.length === known?.attempts.length : !known?.pending && Date.now() - known?.readAt < 10000;
    if (known && same && known.attempts.every(isShown)) continue;
    try {
      const of = selected, whole = await ask("GET", at("deliveries", id));
      if (of !== selected) return;
      if (whole.account_id !== selected) throw refusal("there is no such delivery in this account", 404);
      details.set(id, { ...whole, readAt: Date.now() });
    } catch (error) {
      // What is being read, or was just opened, stays while the service is busy, and is asked for again.
      tag = null;
      if (!error.status) throw error;
      if (!error.isFinal) continue;
      open.delete(id);
      toast(`${id}: ${error.message}`, true);
    }
  }
}
// The exact text, character by character, is what a receiver computes the digest of; indented it is for people.
let pretty = false;
function bodyOf(d) {
  if (!details.has(d.id)) return h("p.faint", "Loading");
  const text = details.get(d.id).body, of = `body of ${d.event_id}`;
  if (text === undefined) return h("p.faint", "The body is no longer stored.");
  const choose = (name, is) => button(name, { key: `${name} ${d.id}`, "aria-pressed": String(pretty === is), of }, () => { pretty = is; draw(); });
  return h("div", h("div.row", choose("Exact", false), choose("Pretty", true), button("Copy", { key: "copy body " + d.id, of }, () => copyText(text))),
    h("pre", { class: pretty ? "pretty" : "exact", tabindex: "0", "aria-label": `Body of ${d.event_id}` }, pretty ? JSON.stringify(JSON.parse(text), null, 2) : text),
    h("p.faint", `${new TextEncoder().encode(text).length} bytes`));
}
const good = (t) => /^2\d\d$/.test(t.outcome);
const WORDS = {
  timeout: "timed out", refused: "connection refused", reset: "connection broken", dns: "name not found", tls: "TLS failed", forbidden: "address not allowed", unsent: "not sent",
  certificate_expired: "certificate expired", certificate_not_yet_valid: "certificate not valid yet", certificate_wrong_host: "certificate for another host",
  certificate_unknown_issuer: "certificate self-signed, or from an unknown issuer", certificate_invalid: "certificate not valid", not_tls: "port does not use TLS", handshake_refused: "TLS handshake refused",
  not_http: "response is not HTTP", head_too_large: "response headers too large", closed_early: "connection closed before a response", connection_reset: "connection reset", unreachable: "no route to the host",
  no_connection: "timed out while connecting", no_handshake: "timed out in the TLS handshake", no_response: "timed out without a response", stopping: "the service stopped", out_of_resources: "out of sockets or memory",
};
const outcome = (t) => WORDS[t.reason ?? t.outcome] ?? t.reason ?? "HTTP " + t.outcome;
function pips(d) {
  const made = d.attempts.filter((t) => !t.by_hand && t.outcome !== "unsent");
  const byHand = d.attempts.filter((t) => t.by_hand);
  if (made.length === 1 && good(made[0]) && !byHand.length) return null;
  if (!d.attempts.length && !d.pending) return null;
  const list = Array.from({ length: 6 }, (_, i) => h("i", { class: made[i] ? good(made[i]) ? "good" : "bad" : i === made.length && d.pending && !d.by_hand ? "now" : "" }));
  const text = `${made.length} of 6 attempts` + (byHand.length ? `, ${byHand.length} manual` : "");
  return h("span.pips", { role: "img", title: text, "aria-label": text }, list, byHand.length > 0 && faint(` +${byHand.length}`));
}
// The result of what somebody has sent by hand is told once it is there.
const watched = new Map();
function tellResults(rows) {
  for (const d of rows) if (d.attempts.length > watched.get(d.id)) {
    toast(`${d.type}: ${outcome(d.attempts[watched.get(d.id)])}`);
    watched.delete(d.id);
  }
}
// The next attempt, and each one with its answer, newest first. The latest one has its request unfolded.
function tries(d) {
  const one = (t) => h("li.try", { key: `try ${d.id} ${t.began_at}`, class: good(t) ? "good" : "bad" }, h("span.n", t.by_hand ? "↻" : t.number),
    h("div", h("p", h("span.strong", outcome(t)), t.reason && h("span.mono.faint", t.outcome), faint(millis(t.took_ms)), when(t.began_at), t.by_hand && badge("manual"), t.late && badge("late")),
      requestOf(d, t),
      t.headers?.text && h("details", h("summary.faint", "Response headers"), h("div.answer.mono.faint", t.headers.text + (t.headers.cut ? "…" : ""))),
      t.response?.text && h("div.answer.mono", t.response.text + (t.response.cut ? " …" : ""))));
  const next = (n, ...text) => h("li.try.info", h("span.n", n), h("div", text));
  const list = [];
  const delay = delayOf(d), to = d.outlook, number = to.by_hand ? "↻" : to.number;
  if (to.is === "waiting") list.push(next(number, delay ? [delay.why, delay.since && [" since ", when(delay.since)], "; ", delay.until, "; due "] : "next attempt ", when(d.next_at)));
  if (to.is === "parks") list.push(next("…", `will be parked, not sent: the endpoint ${to.reason ? `is disabled (${to.reason})` : "was disabled meanwhile"}`));
  if (!list.length && !d.attempts.length) list.push(h("li.faint", d.status === "skipped" ? "None: the endpoint was disabled at the time of the event." : "None yet."));
  if (to.is === "ended" && MISSED.includes(d.status)) list.push(h("li.faint", to.redeliverable_until ? ["Can be redelivered until ", when(to.redeliverable_until)] : `Cannot be redelivered: ${barred(d)}.`));
  return h("ol.tries", list, d.attempts.map(one).reverse());
}
