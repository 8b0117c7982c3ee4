function endpointsCard(a, endpoints) {
  // An owner is not told of plans: what a plan does not have is refused with a reason.
  const add = button("Add endpoint", { key: "add endpoint" }, () => endpointDialog(a));
  return card("endpoints", "Webhook endpoints", "An endpoint is disabled by a 410, or by twenty failed deliveries in a row.", endpoints.length > 0 && add,
    endpoints.length ? h("div.endpoints", endpoints.map(endpointRow)) : noEndpoint(a), moreOf("endpoints", "More endpoints"));
}
// Where an account has none, whoever looks for deliveries finds the way to the first.
const noEndpoint = (a) => a.entitlements?.webhooks ?? true ?
  empty("Add your first endpoint", "Signed events are sent to the receiver's URL.", h("div", button("Add endpoint", { key: "add endpoint", class: "primary" }, () => endpointDialog(a)))) :
  empty("This plan has no webhooks", "Webhooks come with Pro and above.");
// How many of the latest attempts failed, back to the last success: known before a delivery is given up. The fleet has
// the same endpoints.
function failing(e) {
  if (!e.failing_since) return null;
  const tries = seen.deliveries.filter((d) => d.endpoint_id === e.id).flatMap((d) => d.attempts).filter((t) => t.outcome !== "unsent");
  tries.sort((a, b) => Date.parse(b.began_at) - Date.parse(a.began_at));
  const worked = tries.findIndex(good);
  const count = worked < 0 ? tries.length : worked;
  return { count, last: count && outcome(tries[0]) };
}
// Failing endpoints come first, then disabled ones. None moves while the pointer or the focus is there.
let order = [];
function placed(endpoints) {
  const rank = (e) => failing(e) ? 0 : e.status === "active" ? 2 : 1;
  if (!document.querySelector(".endpoints:is(:hover, :focus-within)")) order = [...endpoints].sort((a, b) => rank(a) - rank(b)).map((e) => e.id);
  const places = new Map(order.map((id, n) => [id, n]));
  const place = (e) => places.get(e.id) ?? order.length;
  return [...endpoints].sort((a, b) => place(a) - place(b));
}
// One line above the tabs, which leads to the endpoints. It is green only once all that was missed is counted.
function summary(endpoints) {
  if (!endpoints.length) return null;
  const bad = endpoints.filter(failing).length, off = endpoints.filter((e) => e.status !== "active").length;
  const counted = endpoints.map((e) => running(e) ? {} : missed.get(e.id));
  const lost = counted.reduce((sum, one) => sum + (one?.count ?? 0), 0), more = counted.some((one) => one?.more);
  const known = counted.every((one) => one && !one.first), sent = seen.deliveries.length > 0;
  const parts = [bad && `${bad} of ${endpoints.length} endpoints failing`, off && `${off} disabled`, lost && `${moreThan({ more })}${number(lost)} missed`,
    counted.some((one) => one?.lost) && "missed: not loaded, retrying"].filter(Boolean);
  return h("p.summary", { key: "summary", class: bad ? "bad" : parts.length ? "wait" : known && sent ? "good" : "" },
    parts.length ? h("a", { key: "summary endpoints", href: address("endpoints") }, parts.join(" · ")) : !known ? "Counting missed deliveries" : sent ? "No endpoint fails" : "Nothing has been sent yet");
}
const clipped = (text, most) => text.length > most ? text.slice(0, most - 1) + "…" : text;
function endpointRow(e) {
  const active = e.status === "active", fails = failing(e);
  const failures = e.consecutive_failures, limit = e.failures_to_disable;
  const why = { gone: "the endpoint answered 410", failing: `${limit} deliveries in a row failed`, paused: "paused by its owner or an operator" }[e.reason];
  const hour = e.last_hour?.attempts ? e.last_hour : null;
  const until = e.previous_secrets_until?.[0];
  const act = (name, text, kind, run) => button(text, { key: `${name} ${e.id}`, class: kind, of: e.url }, run);
  const figure = (value, of) => h("div.number", value, h("small.faint", of));
  const counted = hour && number(hour.attempts);
  return h("div.endpoint", { key: "row " + e.id, class: fails ? "failing" : "" },
    h("div.two",
      e.description && h("span.described", e.description),
      h("span.url", { title: e.url }, e.url), h("span.row", copied(e.id)),
      fails?.count > 0 && h("span.fails", fails.count === 1 ? "Last attempt failed: " : `Last ${fails.count} attempts failed: `, fails.last),
      !active && faint(why || "disabled", ": nothing is sent"),
      active && failures > 0 && faint(`${failures} of ${limit} failed deliveries in a row`),
      until && faint("the previous secret also signs until ", when(until))),
    h("div.state", fails ? badge("failing", "bad") : active ? badge("active", "good") : badge("disabled", "bad"),
      h("small.faint", "since ", h("time", { datetime: e.since }, stamp(e.since).slice(0, 10)))),
    figure(hour ? `${Math.floor(100 * hour.succeeded / hour.attempts)} %` : "–", !hour ? "no attempts in 1 h" : hour.more ? "of the latest " + counted : `of ${counted} in 1 h`),
    figure(Number.isInteger(hour?.p99_ms) ? millis(hour.p99_ms) : "–", "p99"),
    strip(e),
    h("div.row.actions",
      active ? act("ping", "Ping", "", doing("Ping accepted", "POST", "endpoints", e.id, "ping")) : act("enable", "Enable", "primary", () => attempt(null, async () => {
        const { missed_count: count, missed_more: more } = await ask("POST", at("endpoints", e.id, "enable"));
        missed.delete(e.id);
        toast(count ? `Enabled. Missed: ${moreThan({ more })}${many(count, "delivery", "deliveries")}.` : "Enabled.");
      })),
      h("details.menu", { key: "more " + e.id }, h("summary.btn.plain", { "aria-label": `More: ${e.url}` }, "More"), h("div",
        active && act("test", "Test event", "plain", () => testDialog(e)),
        active && act("pause", "Pause", "plain", () => pauseDialog(e)),
        act("edit", "Edit", "plain", () => editDialog(e)),
        act("rotate", "Rotate secret", "plain", () => rotateDialog(e)),
        act("delete", "Delete", "plain danger", () => deleteDialog(e))))),
    recoveryRow(e, active));
}
// One bar for each hour, as high as its share of the busiest; what is not delivered is below.
function strip(e) {
  const day = days?.of.get(e.id);
  if (!day) return h("div.strip");
  const sum = (name) => day.hours.reduce((all, hour) => all + hour[name], 0);
  const bad = (hour) => hour.failing + hour.missed, all = (hour) => bad(hour) + hour.delivered + hour.waiting;
  const most = Math.max(...day.hours.map(all), 1), worst = day.hours.reduce((a, b) => bad(b) > bad(a) ? b : a);
  const hour = (n) => minute(days.from + n * 3600e3);
  const told = ["delivered", "failing", "missed", "waiting"].filter(sum).map((name) => `${number(sum(name))} ${name}`).join(", ") || "none";
  const since = day.since ? `The latest ${number(day.counted)} events, since ${stamp(day.since)}` : "Events of the last 24 hours";
  const peak = bad(worst) ? `; worst hour: ${number(bad(worst))} of ${number(all(worst))} not delivered, from ${hour(day.hours.indexOf(worst))}` : "";
  const title = `${since}: ${told}${peak}`;
  // A part of the bars of all hours: how many, above how many. What is there is seen, however little it is.
  const bars = (kind, of, below) => h("path", { class: kind, d: day.hours.map((one, n) => of(one) ? `M${n} ${24 - 24 * below(one) / most}h.9v${-Math.max(1.5, 24 * of(one) / most)}h-.9z` : "").join("") });
  // What was not counted is not what was quiet: it has no floor.
  const counted = day.hours.map((_, n) => !day.since || days.from + (n + 1) * 3600e3 > Date.parse(day.since) ? `M${n} 24h.9v1h-.9z` : "");
  return chart(title, [hour(0), day.since && `latest ${number(day.counted)}`, "now"], h("path", { d: counted.join("") }),
    bars("bad", bad, () => 0), bars("good", (one) => one.delivered, bad), bars("wait", (one) => one.waiting, (one) => bad(one) + one.delivered));
}
// The bars of 24 hours, and what stands below them.
const chart = (title, below, ...bars) => h("div.strip", { role: "img", "aria-label": title, title },
  h("svg", { viewBox: "0 0 24 25", preserveAspectRatio: "none", "aria-hidden": "true" }, bars), h("small.faint", below.map((text) => text && h("span", text))));
// One menu is open at a time, and none behind a dialog, from which the focus comes back to the menu.
addEventListener("click", (event) => {
  const inside = event.target.closest?.(".menu");
  const chose = inside && event.target.closest("button");
  if (chose) inside.firstChild.focus();
  for (const menu of document.querySelectorAll(".menu[open]")) if (menu !== inside || chose) menu.open = false;
}, true);
function recoveryRow(e, active) {
  const now = running(e), counted = missed.get(e.id);
  const act = (name, text, done) => button(text, { key: `${name} ${now.id}`, of: "recovery of " + e.url }, doing(done, "POST", "recoveries", now.id, text.toLowerCase()));
  if (now) return h("div.row.recovery", h("progress", { max: String(now.counted || 1), value: String(now.redelivered), "aria-label": `Recovery of ${e.url}` }),
    h("span", `${number(now.redelivered)} of ${moreThan(now)}${number(now.counted)} redelivered${now.paused ? ", paused" : ""}`),
    act("rest", now.paused ? "Continue" : "Pause"), act("cancel", "Cancel", "Cancelled"));
  return active && counted?.count > 0 && h("div.row.recovery", button(`Recover ${moreThan(counted)}${number(counted.count)}`, { key: "recover " + e.id, class: "primary", of: e.url }, () => recoverDialog(e)),
    faint(`Missed: ${types(counted)}${counted.more ? " and more" : ""}`));
}
