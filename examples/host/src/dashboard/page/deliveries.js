const KIND = { delivered: "good", failed: "bad", gone: "bad", waiting: "wait", sending: "info", parked: "", skipped: "" };
// While somebody reads the list its rows stay where they are: what is new waits until it is asked for.
let kept = null;
const NEWS = "new deliveries";
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
// Rows that are still shown though others have taken their place: as they are now.
async function fetchKept() {
  for (const d of (kept?.gone ?? []).filter((d) => d.pending || MISSED.includes(d.status)).slice(0, 10)) {
    const now = await ask("GET", at("deliveries", d.id));
    kept.rows = kept.rows.map((row) => row.id === now.id ? now : row);
  }
}
function deliveriesCard(deliveries, endpoints) {
  const options = (values, chosen) => values.map(([value, text]) => h("option", { value, selected: value === chosen }, text));
  const filter = (name, label, values) => keyed("filter " + name, h("select", { "aria-label": label, on: { change: (e) => setFilter(name, e.target.value) } }, options(values, filters[name])));
  const written = (name, label, type) => keyed("filter " + name, h("input", { type: "text", "aria-label": label, title: label, placeholder: type === "day" ? label.replace("day", "YYYY-MM-DD") : label, value: filters[name], spellcheck: "false", autocomplete: "off", list: name === "type" ? "filter-types" : undefined, on: { change: (e) => { if (e.target.value !== filters[name]) setFilter(name, e.target.value); } } }));
  const chip = (name, value, text) => keyed(`chip ${value}`, button(text, { class: "small chip", "aria-pressed": String(filters[name] === value) }, () => setFilter(name, filters[name] === value ? "" : value)));
  const { rows: listed, news } = settle(found ? found.data : deliveries);
  // What an address opens is shown whether it is listed or not.
  const linked = [...open].map((id) => details.get(id)).filter((d) => d && !listed.some((other) => other.id === d.id));
  const shown = [...linked, ...listed];
  const first = pages.length === 1, next = found ? found.next : deliveries.length === 50 ? deliveries[49].id : null;
  return card("deliveries", { "aria-labelledby": "h-deliveries" },
    h("header", {}, h("div", {}, h("h2", { id: "h-deliveries" }, "Deliveries"), h("p", {}, "Newest first. Six attempts each, kept for thirty days.")),
      news ? keyed(NEWS, button(`${news} new, show`, { class: "primary news" }, () => { kept = null; draw(); })) : null,
      deliveries.length ? h("div", { class: "row" }, chip("within", "hour", "Last hour"), chip("within", "day", "Last day"), chip("status", "failing", "Failing")) : null,
      deliveries.length ? h("div", { class: "row filters", role: "search" },
        filter("status", "Status", [["", "Any status"], ["failing", "all that is failing"], ["missed", "all that was missed"], ...Object.keys(KIND).map((s) => [s, s])]),
        filter("endpoint", "Endpoint", [["", "Any endpoint"], ...endpoints.map((e) => [e.id, clipped(e.url, 40)])]),
        written("type", "Type", "text"), h("datalist", { id: "filter-types" }, ["call.ended", ...Object.keys(EXAMPLES)].map((t) => h("option", { value: t }))),
        written("id", "Event id", "text"), written("from", "From day", "day"), written("until", "To day", "day"),
        searching() ? keyed("filter none", button("Clear", { class: "small plain" }, () => { filters = { ...ANY }; turn([""]); })) : null) : null),
    chosen.size ? keyed("chosen", h("div", { class: "pager" }, h("span", {}, `${chosen.size} selected`),
      keyed("redeliver chosen", button("Redeliver them", { class: "small primary" }, redeliverChosen)),
      keyed("choose none", button("Select none", { class: "small" }, () => { chosen.clear(); draw(); })))) : null,
    shown.length ? h("div", { class: "scroll" }, h("table", { "aria-labelledby": "h-deliveries" },
      h("thead", {}, h("tr", {}, h("th", {}, "Event"), h("th", {}, "Status"), h("th", {}, "Endpoint"), h("th", {}, "Outcome"), h("th", {}, "Next or last"), h("th", {}, h("span", { class: "skip" }, "Actions")))),
      h("tbody", {}, shown.map(deliveryRow)))) :
      h("div", { class: "empty" }, h("b", {}, deliveries.length ? "None like that" : "Nothing has been sent yet"), found?.refused ? found.refused : deliveries.length ? "No delivery of the last thirty days fits the filters." : portal ? "Ping an endpoint, and watch it here." : "Record a call, or ping an endpoint, and watch it here."),
    first && !next ? null : h("div", { class: "pager" }, h("span", { class: "faint" }, `Page ${pages.length}`),
      keyed("newer", button("Newer", { class: "small", disabled: first }, () => turn(pages.slice(0, -1)))),
      keyed("older", button("Older", { class: "small", disabled: !next }, async () => {
        // The latest fifty come without the place of the next ones.
        if (!found) found = await search();
        if (found.next) turn([...pages, found.next]);
      }))), ...shown.filter((d) => open.has(d.id)).map(drawer));
}
// What is open lies beside the list, and moves none of it. Its address opens it again.
function drawer(d) {
  const close = button("Close", { class: "small", "aria-label": `Close: ${d.type} ${d.event_id} to ${d.url}` }, () => { open.delete(d.id); remember(); draw(); });
  return keyed("detail " + d.id, h("section", { class: "detail", "aria-label": `${d.type} ${d.event_id} to ${d.url}` },
    h("header", { class: "row" }, h("h3", {}, d.type, " ", badge(d.status, KIND[d.status])), keyed("close " + d.id, close)),
    h("dl", { class: "keys" }, h("dt", {}, "Event"), h("dd", {}, h("span", { class: "mono" }, d.event_id), " ", keyed("event " + d.id, button("To all endpoints", { class: "small plain", "aria-label": `To all endpoints: ${d.event_id}` }, () => { filters = { ...ANY }; setFilter("id", d.event_id); }))), h("dt", {}, "Delivery"), h("dd", { class: "mono" }, d.id), h("dt", {}, "Endpoint"), h("dd", {}, d.url), h("dt", {}, "Created"), h("dd", {}, when(d.event_created_at))),
    h("h3", {}, "Attempts"), tries(d), h("h3", {}, "Body"), bodyOf(d)));
}
function deliveryRow(d) {
  const isOpen = open.has(d.id);
  const toggle = () => { open.clear(); if (!isOpen) open.add(d.id); remember(); draw(); if (!isOpen) look(); };
  const last = d.attempts[d.attempts.length - 1];
  const again = (key, text, done, path) => keyed(key + " " + d.id, button(text, { class: "small", "aria-label": `${text}: ${d.type} ${d.event_id} to ${d.url}` }, () => attempt(done, () => ask("POST", at("deliveries", d.id, path)))));
  const said = last ? outcome(last) : d.status === "skipped" ? "endpoint was disabled" : "";
  return keyed("row " + d.id, h("tr", { class: "line" + (isOpen ? " open" : "") },
    h("td", { class: "nowrap" }, h("div", { class: "row" },
      keyed("open " + d.id, h("button", { type: "button", class: "expand", "aria-expanded": String(isOpen), "aria-label": `Attempts of ${d.type} ${d.event_id} to ${d.url}`, on: { click: toggle } }, chevron())),
      MISSED.includes(d.status) ? keyed("choose " + d.id, h("input", { type: "checkbox", class: "choose", checked: chosen.has(d.id), "aria-label": `Select: ${d.type} ${d.event_id} to ${d.url}`, on: { change: (e) => { e.target.checked ? chosen.add(d.id) : chosen.delete(d.id); draw(); } } })) : null,
      h("span", { class: "clip", title: d.event_id }, d.type))),
    h("td", { "data-label": "Status" }, badge(d.status, KIND[d.status])),
    h("td", { "data-label": "Endpoint" }, h("div", { class: "clip", title: d.url }, d.url.replace(/^https?:\/\//, ""))),
    h("td", { class: "nowrap", "data-label": "Outcome" }, h("div", { class: "row" }, pips(d), said)),
    h("td", { class: "nowrap", "data-label": "Next or last" }, d.status === "waiting" && d.next_at ? h("span", {}, heldBehind(d) ? "held behind a suspect endpoint, due " : "next ", when(d.next_at)) : when(d.ended_at || d.event_created_at)),
    h("td", { class: "end" }, MISSED.includes(d.status) ? again("again", "Redeliver", "Redelivery accepted", "redeliver") : d.status === "waiting" ? again("now", "Send now", "It is sent now", "send") : null)));
}
// One after the other: what is refused stays selected, and the first reason is said.
async function redeliverChosen() {
  let refused = null, done = 0;
  for (const id of [...chosen]) {
    try { await ask("POST", at("deliveries", id, "redeliver")); chosen.delete(id); done++; }
    catch (error) { refused ??= error.message; }
  }
  if (done) toast(done === 1 ? "1 redelivery accepted" : `${done} redeliveries accepted`);
  if (refused) toast(`${chosen.size} refused: ${refused}`, true);
  await refresh(true);
}
// What is open is fetched with its body, and again while it is not among those that are listed.
async function fetchOpen() {
  const listed = new Map((found ? found.data : seen?.deliveries ?? []).map((d) => [d.id, d]));
  const isShown = (t) => t.request?.signature !== "too_recent" || Date.parse(t.request.signature_from) > clock();
  for (const id of open) {
    const known = details.get(id), now = listed.get(id);
    const same = now ? now.attempts.length === known?.attempts.length : !known?.pending;
    if (known && same && known.attempts.every(isShown)) continue;
    try {
      const whole = await ask("GET", at("deliveries", id));
      if (whole.account_id !== selected) throw new Error("there is no such delivery in this account");
      details.set(id, whole);
    } catch (error) { open.delete(id); toast(`${id}: ${error.message}`, true); }
  }
}
// The exact text, character by character, is what a receiver computes the digest of; indented it is for people.
let pretty = false;
function bodyOf(d) {
  if (!details.has(d.id)) return h("p", { class: "faint" }, "Loading");
  const text = details.get(d.id).body;
  if (text === undefined) return h("p", { class: "faint" }, "It is no longer kept.");
  const choose = (name, is) => keyed(`${name} ${d.id}`, button(name, { class: "small", "aria-pressed": String(pretty === is), "aria-label": `${name}: body of ${d.event_id}` }, () => { pretty = is; draw(); }));
  return h("div", {}, h("div", { class: "row" }, choose("Exact", false), choose("Pretty", true), keyed("copy body " + d.id, button("Copy", { class: "small", "aria-label": `Copy: body of ${d.event_id}` }, () => copyText(text)))),
    h("pre", { class: pretty ? "pretty" : "exact", tabindex: "0", "aria-label": `Body of ${d.event_id}` }, pretty ? indented(text).map((line) => h("span", {}, line + "\n")) : text),
    h("p", { class: "faint" }, `${new TextEncoder().encode(text).length} bytes`, pretty ? ", here with other white space than what is signed" : ""));
}
function indented(text) {
  try { return JSON.stringify(JSON.parse(text), null, 2).split("\n"); } catch { return [text]; }
}
const heldBehind = (d) => Date.parse(d.next_at) < clock() - 2000 && seen.endpoints.some((e) => e.id === d.endpoint_id && e.suspect_since);
const good = (t) => /^2\d\d$/.test(t.outcome);
const WORDS = { timeout: "timed out", refused: "connection refused", reset: "connection broke", dns: "name not found", tls: "TLS failed", forbidden: "address not allowed", unsent: "not sent" };
const REASONS = {
  certificate_expired: "certificate expired", certificate_not_yet_valid: "certificate not valid yet", certificate_wrong_host: "certificate of another host",
  certificate_unknown_issuer: "unknown issuer of the certificate", certificate_invalid: "certificate not valid", not_tls: "does not speak TLS", handshake_refused: "TLS handshake refused",
  not_http: "answer is not HTTP", head_too_large: "head of the answer too large", closed_early: "closed before it answered", connection_reset: "connection reset", unreachable: "no route to it",
  no_connection: "timed out connecting", no_handshake: "timed out in the TLS handshake", no_response: "timed out without an answer", stopping: "the service stopped", out_of_resources: "out of sockets or memory",
};
const outcome = (t) => t.reason ? REASONS[t.reason] || t.reason : WORDS[t.outcome] || "HTTP " + t.outcome;
function pips(d) {
  const made = d.attempts.filter((t) => !t.by_hand && t.outcome !== "unsent");
  const byHand = d.attempts.filter((t) => t.by_hand);
  if (made.length === 1 && good(made[0]) && !byHand.length) return h("span", { class: "tick", role: "img", "aria-label": "delivered at the first attempt" }, "✓");
  if (!d.attempts.length && !d.pending) return null;
  const list = Array.from({ length: 6 }, (_, i) => h("i", { class: made[i] ? good(made[i]) ? "good" : "bad" : i === made.length && d.pending && !d.by_hand ? "now" : "" }));
  const text = `${made.length} of 6` + (byHand.length ? `, ${byHand.length} by hand` : "");
  return h("span", { class: "pips", role: "img", title: text, "aria-label": text }, list, byHand.length ? h("span", { class: "faint" }, ` +${byHand.length}`) : null);
}
// Attempts with one answer are one line, which opens.
function tries(d) {
  const same = (t) => JSON.stringify([t.outcome, t.reason, t.response?.text, t.by_hand]);
  const groups = [];
  for (const t of d.attempts) {
    const group = groups[groups.length - 1];
    group && same(group[0]) === same(t) ? group.push(t) : groups.push([t]);
  }
  const answer = (t) => t.response && t.response.text ? h("div", { class: "answer mono" }, t.response.text + (t.response.cut ? " …" : "")) : null;
  const one = (t, said) => h("li", { class: "try" + (good(t) ? " good" : "") }, h("span", { class: "n" }, t.by_hand ? "↻" : t.number),
    h("div", {}, h("p", {}, h("span", { class: "strong" }, outcome(t)), t.reason ? h("span", { class: "mono faint" }, t.outcome) : null, h("span", { class: "faint" }, t.took_ms, " ms"), when(t.began_at), t.by_hand ? badge("by hand") : null, t.late ? badge("late") : null),
      requestOf(d, t),
      t.headers && t.headers.text ? h("details", {}, h("summary", { class: "faint" }, "Header fields of the answer"), h("div", { class: "answer mono faint" }, t.headers.text + (t.headers.cut ? "…" : ""))) : null, said));
  const many = (group) => keyed(`equal ${d.id} ${group[0].began_at}`, h("li", { class: "equal" },
    h("details", {}, h("summary", {}, h("span", { class: "strong" }, `${outcome(group[0])} ×${group.length}`), " ", h("span", { class: "faint" }, "from "), when(group[0].began_at), h("span", { class: "faint" }, " to "), when(group[group.length - 1].began_at)),
      h("ol", {}, group.map((t) => one(t, null)))), answer(group[0])));
  const list = groups.map((group) => group.length === 1 ? one(group[0], answer(group[0])) : many(group));
  if (d.status === "waiting" && d.next_at) list.push(h("li", { class: "try next" }, h("span", { class: "n" }, d.by_hand ? "↻" : d.attempts_made + 1), h("div", {}, h("p", {}, "next attempt ", when(d.next_at)))));
  if (d.status === "sending") list.push(h("li", { class: "try next" }, h("span", { class: "n" }, "…"), h("div", {}, "being sent")));
  if (!list.length) list.push(h("li", { class: "faint" }, d.status === "skipped" ? "None: the endpoint was disabled when the event happened." : "None yet."));
  return h("ol", { class: "tries" }, list);
}
