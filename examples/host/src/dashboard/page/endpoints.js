function failingCard(endpoints) {
  return endpoints.length ? [card("failing", { "aria-label": "Failing endpoints" }, h("div", { class: "endpoints" }, endpoints.map(endpointRow)))] : [];
}
// Those that do not fail: the others are above.
function endpointsCard(a, endpoints, failing) {
  // An owner is not told of plans: what a plan does not have is refused with a reason.
  const hasWebhooks = a.entitlements?.webhooks ?? true;
  const add = () => keyed("add endpoint", button("Add endpoint", { class: "small" }, () => endpointDialog(a)));
  return card("endpoints", { "aria-labelledby": "h-endpoints" },
    h("header", {}, h("div", {}, h("h2", { id: "h-endpoints" }, "Webhook endpoints"), h("p", {}, "Disabled by a 410, or by twenty failed deliveries in a row.")), endpoints.length || failing ? add() : null),
    endpoints.length ? h("div", { class: "endpoints" }, endpoints.map(endpointRow)) :
      failing ? h("div", { class: "empty" }, "All of them are failing: they are above.") : h("div", { class: "empty" }, h("b", {}, hasWebhooks ? "No endpoint yet" : "This plan has no webhooks"),
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
// What fails is above the tabs, and of the rest what is disabled is first. None moves while the pointer or the focus
// is there.
let above = new Set(), order = [];
function placed(endpoints) {
  if (!document.querySelector(".endpoints:is(:hover, :focus-within)")) {
    above = new Set(endpoints.filter(failing).map((e) => e.id));
    order = [...endpoints].sort((a, b) => (a.status === "active") - (b.status === "active")).map((e) => e.id);
  }
  const place = (e) => order.includes(e.id) ? order.indexOf(e.id) : order.length;
  const sorted = [...endpoints].sort((a, b) => place(a) - place(b));
  return [sorted.filter((e) => above.has(e.id)), sorted.filter((e) => !above.has(e.id))];
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
      fails ? h("span", { class: "fails" }, fails.count === 1 ? "Last attempt failed: " : `Last ${fails.count} attempts failed: `, fails.last) : null,
      active ? null : h("span", { class: "faint" }, why || "disabled", ": nothing is sent to it"),
      active && failures ? h("span", { class: "faint" }, `${failures} of ${limit} failed deliveries in a row`) : null,
      until ? h("span", { class: "faint" }, "the previous secret signs, too: it ends ", when(until)) : null),
    h("div", { class: "state" }, fails ? badge(e.suspect_since ? "failing, suspect" : "failing", "bad") : active ? e.suspect_since ? badge("suspect", "wait") : badge("active", "good") : badge("disabled", "bad"),
      h("small", { class: "faint" }, "since ", h("time", { datetime: e.since }, stamp(e.since).slice(0, 10)))),
    number(hour ? `${Math.round(100 * hour.succeeded / hour.attempts)} %` : "–", hour ? `of ${hour.more ? "the latest " : ""}${hour.attempts.toLocaleString("en")}${hour.more ? "" : " in 1 h"}` : "none in 1 h"),
    number(hour ? `${hour.p99_ms} ms` : "–", "p99"),
    strip(e),
    h("div", { class: "row actions" },
      active ? act("ping", "Ping", "", run("Ping accepted", "POST", "ping")) : act("enable", "Enable", "primary", () => attempt(null, async () => {
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
    recoveryRow(e, active)));
}
// One bar for each hour, as high as its share of the busiest; what is not delivered is below.
function strip(e) {
  const day = days?.of.get(e.id);
  if (!day) return h("div", { class: "strip" });
  const sum = (name) => day.hours.reduce((all, hour) => all + hour[name], 0);
  const bad = (hour) => hour.failing + hour.missed, all = (hour) => bad(hour) + hour.delivered + hour.waiting;
  const most = Math.max(...day.hours.map(all), 1), worst = day.hours.reduce((a, b) => bad(b) > bad(a) ? b : a);
  const hour = (n) => stamp(days.from + n * 3600e3).slice(11, 16), number = (n) => n.toLocaleString("en");
  const told = ["delivered", "failing", "missed", "waiting"].filter(sum).map((name) => `${number(sum(name))} ${name}`).join(", ") || "nothing";
  const since = day.since ? `the latest ${number(day.counted)} events, since ${stamp(day.since)}` : "events of the last 24 hours";
  const peak = bad(worst) ? `; most that were not delivered: ${number(bad(worst))} of ${number(all(worst))} from ${hour(day.hours.indexOf(worst))}` : "";
  // What was not counted is not what was quiet.
  const known = (n) => !day.since || days.from + (n + 1) * 3600e3 > Date.parse(day.since);
  const part = (n, name) => n ? h("i", { class: `${name} p${Math.max(5, 5 * Math.round(20 * n / most))}` }) : null;
  return h("div", { class: "strip", role: "img", "aria-label": `${told} of ${since}${peak}`, title: `${told} of ${since}${peak}` },
    day.hours.map((one, n) => h("span", { class: known(n) ? undefined : "uncounted" }, part(one.waiting, "waiting"), part(one.delivered, "good"), part(bad(one), "bad"))),
    h("small", { class: "faint" }, hour(0), h("span", {}, day.since ? `latest ${number(day.counted)}` : "24 h"), "now"));
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
