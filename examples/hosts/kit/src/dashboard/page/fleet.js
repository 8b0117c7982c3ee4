// ---- The fleet: all accounts on one screen. Only operators see it ----
const NOTES = 20, MOST_COUNTED = 1000, LATE_MS = 10000;
let fleet = null, notes = { pages: 1, rows: [], next: null };
async function refreshFleet(now) {
  if (!now && fleet && Date.now() - fleet.at < 5000) return;
  const [read, found] = await Promise.all([ask("GET", "/fleet"), readPages(notes.pages, (before) => ask("GET", "/alerts?" + new URLSearchParams({ before, limit: NOTES })))]);
  if (selected !== null || locked) return;
  fleet = { ...read, at: Date.now() };
  skew = Date.parse(read.now) - Date.now();
  notes = { ...notes, ...found };
  draw();
}
function drawFleet() {
  if (!fleet || held) return;
  entitle("Fleet");
  const groups = [...Map.groupBy(fleet.troubled, (row) => row.account_id).values()];
  redraw("main",
    h("div.head", h("h1", "Fleet"), fleet.processes.length > 0 && button("Pause sending", { key: "pause" }, () => pauseSendingDialog())), fleetSummary(groups), leversCard(fleet.levers, "Set by operators."),
    troubledCard(groups), sendingCard(fleet), fleet.processes.length > 0 && processesCard(fleet.processes),
    alertsCard(troubles(notes.rows), notes.next && pager(button("Older alerts", { key: "older alerts" }, () => { notes.pages++; refresh(true); }))),
    accountsCard());
}
const isNoted = (group) => group.every((row) => row.acknowledged_by);
function fleetSummary(groups) {
  const needs = groups.filter((group) => !isNoted(group)).length, noted = groups.length - needs;
  const parts = [needs && `${moreThan(fleet)}${many(needs, "account needs", "accounts need")} attention`, noted && `${many(noted, "account")} acknowledged`].filter(Boolean);
  return h("p.summary", { key: "summary", class: needs ? "bad" : noted ? "wait" : "good" }, parts.join(" · ") || "No endpoint fails");
}
const TROUBLE = { gone: "answered 410, disabled", failing: "failed too often, disabled", null: "failing" };
function troubledCard(groups) {
  const heads = ["Account", "Why", "Since", "Waiting", "Missed", "Acknowledged by"];
  const sum = (group, name) => moreThan({ more: group.some((row) => row[name] > MOST_COUNTED) }) + number(group.reduce((all, row) => all + Math.min(row[name], MOST_COUNTED), 0));
  const draw = (group) => {
    const [{ account_id: id }] = group;
    const why = Object.entries(TROUBLE).map(([reason, words]) => {
      const of = group.filter((row) => String(row.reason) === reason), last = new Set(of.flatMap((row) => row.outcome && row.outcome !== "410" ? outcome({ outcome: row.outcome }) : []));
      return of.length > 0 && [h("span", `${many(of.length, "endpoint")} ${words}`, last.size > 0 && `: ${[...last].join(", ")}`), of.slice(0, 2).map(({ url }) => h("span.clip.faint", { title: url }, url))];
    });
    return row(heads, { key: "row trouble " + id },
      accountCell("trouble " + id, id, group[0], "/endpoints"),
      h("div.two", why),
      when(group.map((row) => row.since).sort()[0]), sum(group, "waiting"), sum(group, "missed"),
      isNoted(group) ? h("div.two", [...new Set(group.map((row) => row.acknowledged_by))].join(", ")) : faint("nobody"));
  };
  return groups.length > 0 && card("troubled", "Accounts that need attention", "To take over an endpoint, acknowledge its latest alert.", null, table("troubled", heads, groups.sort((a, b) => isNoted(a) - isNoted(b)).map(draw)));
}
function sendingCard({ gauges: now, hours, troubled, more }) {
  const failing = Math.max(now?.suspect, troubled.filter((row) => !row.reason).length);
  const tile = (name, value, kind) => h("div.tile", h("span.faint", name), h("b", { class: kind }, value));
  return card("sending", "Sending", null, null, !now ? empty("", "Not counted yet.") : h("div.tiles",
    tile("Pending", number(now.pending)), now.held > 0 && tile("Due, but failing or paused", number(now.held)),
    tile("Late", took(Math.round(now.late_seconds)), now.late_seconds >= LATE_MS / 1000 && "wait"),
    tile("Endpoints active", number(now.active + now.suspect)), tile("Failing", moreThan({ more }) + number(failing), failing && "bad"),
    tile("Disabled automatically", number(now.gone + now.failing), now.gone + now.failing && "bad"), dayStrip(hours)));
}
// The most that was pending in each hour of the last day; an hour in which something was late has another colour.
function dayStrip(hours) {
  const most = Math.max(...hours.map((hour) => hour.pending), 1), last = Math.floor(clock() / 3600e3);
  const place = (hour) => 23 - last + Math.floor(Date.parse(hour.at) / 3600e3);
  const bars = (kind, of) => h("path", { class: kind, d: of.map((hour) => `M${place(hour)} 24h.9v${-Math.max(.5, 24 * hour.pending / most)}h-.9z`).join("") });
  const late = hours.filter((hour) => hour.late_ms >= LATE_MS);
  const at = (hour) => minute(hour.at), busiest = hours.find((hour) => hour.pending === most);
  const title = [busiest ? `Most pending in the last day: ${number(most)} from ${at(busiest)}` : "Nothing was pending in the last day",
    late.length && `late from ${late.map(at).join(", ")}`].filter(Boolean).join("; ");
  return chart(title, ["pending, 24 h", `most ${number(busiest?.pending ?? 0)}`, "now"],
    bars("", hours.filter((hour) => !late.includes(hour))), bars("wait", late));
}
function processesCard(processes) {
  const heads = ["Process", "Version", "Runs on", "Clock", "Keys", "Shards", "State"];
  const clockOf = (ahead) => ahead === null ? faint("unknown") : Math.abs(ahead) < 1 ? "correct" : badge(`${Math.abs(ahead).toFixed(1)} s ${ahead > 0 ? "ahead" : "behind"}`, "bad");
  return card("processes", "Processes", null, null, table("processes", heads, processes.map((p) =>
    row(heads, { key: "row process " + p.id }, h("div.two", h("span.strong", p.role), mono(faint(p.id))), p.version || faint("unknown"), `${p.host ?? "?"}, pid ${p.pid}`,
      clockOf(p.clock_ahead_seconds), p.keys ? mono(p.keys) : faint("none"),
      p.lease_ms === null ? faint("none") : h("span", { title: p.shards.join(", ") }, many(p.shards.length, "shard")),
      p.reason ? h("div.two", badge("not ready", "bad"), h("span.clip", { title: p.reason }, p.reason)) : badge("ready", "good")))));
}
function accountsCard() {
  const heads = ["Account", "Plan", "The public API answers"], shown = accounts.filter((a) => !a.unreadable).slice(0, 10);
  const others = accounts.length > shown.length || moreAccounts;
  return card("accounts", "Accounts", null, others && button("Find an account", { key: "find another" }, () => search.focus()),
    shown.length ? table("accounts", heads, shown.map((a) => row(heads, { key: "row account " + a.id },
      accountCell("account " + a.id, a.id, a), a.plan, badge(...standing(a))))) :
      search.value ? empty(noAccount(), h("div", button("Clear", { key: "clear search" }, clearSearch))) : empty("There are no accounts"));
}
