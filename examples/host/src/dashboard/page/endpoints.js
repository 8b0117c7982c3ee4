function endpointsCard(a, endpoints) {
  // An owner is not told of plans: what a plan does not have is refused with a reason.
  const hasWebhooks = a.entitlements?.webhooks ?? true;
  const add = () => keyed("add endpoint", button("Add endpoint", { class: "small" }, () => endpointDialog(a)));
  return card("endpoints", { "aria-labelledby": "h-endpoints" },
    h("header", {}, h("div", {}, h("h2", { id: "h-endpoints" }, "Webhook endpoints"), h("p", {}, "Disabled by a 410, or by twenty failed deliveries in a row.")), endpoints.length ? add() : null),
    endpoints.length ? h("div", { class: "endpoints" }, ordered(endpoints).map(endpointRow)) :
      h("div", { class: "empty" }, h("b", {}, hasWebhooks ? "No endpoint yet" : "This plan has no webhooks"),
        hasWebhooks ? "Add the URL of a receiver to have events delivered to it." : "Webhooks come with Pro and above.",
        hasWebhooks ? h("div", {}, add()) : null));
}
// How many of the latest attempts failed, back to the last success: known before a delivery is given up.
function failing(e) {
  if (e.status !== "active") return null;
  const tries = seen.deliveries.filter((d) => d.endpoint_id === e.id).flatMap((d) => d.attempts).filter((t) => t.outcome !== "unsent");
  tries.sort((a, b) => Date.parse(b.began_at) - Date.parse(a.began_at));
  const worked = tries.findIndex(good);
  const count = worked < 0 ? tries.length : worked;
  return count ? { count, last: outcome(tries[0]) } : null;
}
// What fails comes first, and nothing moves while the pointer or the focus is there.
let order = [];
function ordered(endpoints) {
  const shown = document.querySelector(".endpoints");
  const rank = (e) => failing(e) ? 0 : e.status === "active" ? 2 : 1;
  const before = (e) => { const at = order.indexOf(e.id); return at < 0 ? Infinity : at; };
  const busy = shown?.matches(":hover") || shown?.contains(document.activeElement);
  const sorted = [...endpoints].sort((a, b) => busy ? (before(a) === before(b) ? 0 : before(a) - before(b)) : rank(a) - rank(b));
  order = sorted.map((e) => e.id);
  return sorted;
}
// What fails and what was lost, above all else.
function summary(endpoints) {
  if (!endpoints.length) return [];
  const bad = endpoints.filter(failing).length, off = endpoints.filter((e) => e.status !== "active").length;
  const lost = [...missed.values()].reduce((sum, counted) => sum + (counted.count || 0), 0);
  const parts = [bad ? `${bad} of ${endpoints.length} endpoints failing` : null, off ? `${off} disabled` : null, lost ? `${lost} missed` : null].filter(Boolean);
  return [keyed("summary", h("p", { class: "summary " + (bad ? "bad" : off || lost ? "wait" : "good") }, parts.join(" · ") || "No endpoint fails"))];
}
const clipped = (text, most) => text.length > most ? text.slice(0, most - 1) + "…" : text;
function endpointRow(e) {
  const active = e.status === "active", fails = failing(e);
  const failures = e.consecutive_failures, limit = e.failures_to_disable;
  const shown = e.reason === "failing" ? limit : failures;
  const why = { gone: "the endpoint answered 410", failing: `${limit} deliveries in a row failed`, paused: "its owner paused it" }[e.reason];
  const hour = e.last_hour?.attempts ? e.last_hour : null;
  const until = (e.previous_secrets_until || [])[0];
  const act = (key, text, props, run) => keyed(key + " " + e.id, button(text, { class: "small " + (props || ""), "aria-label": `${text}: ${e.url}` }, run));
  const run = (what, method, ...path) => () => attempt(what, () => ask(method, at("endpoints", e.id, ...path)));
  const number = (value, of) => h("div", { class: "number" }, value, h("small", { class: "faint" }, of));
  return keyed("row " + e.id, h("div", { class: "endpoint" + (fails ? " failing" : "") },
    h("div", { class: "two" },
      e.description ? h("span", { class: "described" }, e.description) : null,
      h("span", { class: "url", title: `${e.url} ${e.id}` }, e.url),
      fails ? h("span", { class: "fails" }, fails.count === 1 ? "The last attempt failed: " : `The last ${fails.count} attempts failed: `, fails.last) : null,
      active ? null : h("span", { class: "faint" }, why || "disabled", ": nothing is sent to it"),
      until ? h("span", { class: "faint" }, "the previous secret signs, too: it ends ", when(until)) : null),
    h("div", { class: "state" }, fails ? badge(e.suspect_since ? "failing, suspect" : "failing", "bad") : active ? e.suspect_since ? badge("suspect", "wait") : badge("active", "good") : badge("disabled", "bad")),
    number(hour ? `${Math.round(100 * hour.succeeded / hour.attempts)} %` : "–", hour ? `of ${hour.attempts.toLocaleString("en")} in 1 h` : "none in 1 h"),
    number(hour ? `${hour.p99_ms} ms` : "–", "p99"),
    h("div", { class: "since" }, h("small", { class: "faint" }, "since "), when(e.since)),
    h("div", { class: "row actions" },
      act("ping", "Ping", "", run("Ping accepted", "POST", "ping")),
      active ? null : act("enable", "Enable", "primary", () => attempt(null, async () => {
        const now = await ask("POST", at("endpoints", e.id, "enable"));
        const count = now.missed_count, more = now.missed_more ? "more than " : "";
        missed.delete(e.id);
        toast(count ? `Enabled. It missed ${more}${count} ${count === 1 ? "delivery" : "deliveries"}: recover or redeliver what you need.` : "Enabled.");
      })),
      keyed("more " + e.id, h("details", { class: "menu" }, h("summary", { class: "btn small plain", "aria-label": `More: ${e.url}` }, "More"), h("div", {},
        active ? act("pause", "Pause", "plain", () => pauseDialog(e)) : null,
        act("edit", "Edit", "plain", () => editDialog(e)),
        act("rotate", "Rotate secret", "plain", () => rotateDialog(e)),
        act("delete", "Delete", "plain danger", () => deleteDialog(e)))))),
    shown ? h("div", { class: "health" }, h("div", { class: "meter" + (active ? failures >= 15 ? " hot" : "" : " out"), "aria-hidden": "true" }, Array.from({ length: limit }, (_, i) => h("i", { class: i < shown ? "on" : "" }))),
      h("span", { class: "faint" }, `${shown} of ${limit} failed deliveries in a row`)) : null,
    recoveryRow(e, active)));
}
// One menu is open at a time, and none behind a dialog, from which the focus comes back to the menu.
addEventListener("click", (event) => {
  const inside = event.target.closest?.(".menu");
  const chose = inside && event.target.closest("button");
  if (chose) inside.firstChild.focus();
  for (const menu of document.querySelectorAll(".menu[open]")) if (menu !== inside || chose) menu.open = false;
}, true);
function recoveryRow(e, active) {
  const now = running(e), counted = missed.get(e.id);
  if (now) return h("div", { class: "recovery" }, h("progress", { max: String(now.counted || 1), value: String(now.redelivered), "aria-label": `Recovery of ${e.url}` }),
    h("span", {}, `${now.redelivered} of ${now.more ? "more than " : ""}${now.counted} redelivered${now.paused ? ", paused" : ""}`),
    keyed("rest " + now.id, button(now.paused ? "Continue" : "Pause", { class: "small", "aria-label": `${now.paused ? "Continue" : "Pause"}: recovery of ${e.url}` }, () => attempt(null, () => ask("POST", at("recoveries", now.id, now.paused ? "continue" : "pause"))))),
    keyed("cancel " + now.id, button("Cancel", { class: "small", "aria-label": `Cancel: recovery of ${e.url}` }, () => attempt("Cancelled", () => ask("POST", at("recoveries", now.id, "cancel"))))));
  if (!active || !counted?.count) return null;
  const count = `${counted.more ? "more than " : ""}${counted.count}`;
  return h("div", { class: "recovery" }, keyed("recover " + e.id, button(`Recover ${count}`, { class: "small primary", "aria-label": `Recover ${count}: ${e.url}` }, () => recoverDialog(e))),
    h("span", { class: "faint" }, `It missed ${types(counted)}${counted.more ? " and more" : ""}.`));
}
