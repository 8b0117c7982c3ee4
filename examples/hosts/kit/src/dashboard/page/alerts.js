// ---- Alerts: what belongs to one trouble of an endpoint is one row, which changes ----
const SEVERITY = { info: "good", warning: "wait", critical: "bad" };
// Newest first, as they come. A trouble begins after a recovery, and is as its latest alert says.
function troubles(alerts) {
  const rows = [], current = new Map();
  for (const alert of alerts) {
    const row = current.get(alert.endpoint_id);
    if (row && alert.kind !== "recovered") row.before.push(alert);
    else { const next = { alert, before: [] }; rows.push(next); current.set(alert.endpoint_id, next); }
  }
  return rows;
}
// An owner and operators take note each for themselves.
const noted = (alert) => portal ? alert.owner_acknowledged_at : alert.acknowledged;
// One that is over, or that was taken note of, waits for nobody.
const isOpen = ({ alert }) => alert.severity !== "info" && !noted(alert);
function alertsCard(rows, more) {
  return card("alerts", "Alerts", null, null,
    rows.length ? h("ul.alerts", byDay(rows, ({ alert }) => alert.at, alertRow, (props, text) => h("li", props, text))) :
      empty("No alert", "If an endpoint fails for long or is disabled, an alert appears here."), more);
}
function alertRow({ alert, before }, line) {
  // The first alert of a trouble names its row, so that a later one changes it.
  const key = (before[before.length - 1] || alert).id;
  const notes = [alert.acknowledged, alert.owner_acknowledged_at && { by: "owner", at: alert.owner_acknowledged_at }].filter(Boolean);
  return h("li", { key: "alert " + key },
    badge(alert.severity, SEVERITY[alert.severity]),
    h("span.what", selected === null && [h("a", { key: "of " + key, href: hash(alert.account_id) }, alert.account_id), " "], h("span.strong", alert.message), " ",
      h("a", { key: "about " + key, href: alert.link.slice(1), title: alert.url }, clipped(alert.url, 60)),
      before.length > 0 && h("details", h("summary", many(before.length, "earlier alert")), h("ul", before.map((old) => h("li", old.message, " ", when(old.at)))))),
    faint(when(alert.at, line), notes.map(({ by, at }) => h("div", `acknowledged by ${by} `, when(at)))),
    !noted(alert) && button("Acknowledge", { key: "acknowledge " + key, of: `${alert.message}: ${alert.url}` },
      portal ? doing("Acknowledged", "POST", "alerts", alert.id, "acknowledge") : () => acknowledgeDialog(alert)));
}
let operator = "";
function acknowledgeDialog(alert) {
  dialog("Acknowledge this alert", alert.message, [
    quoted(`${alert.account_id} · ${alert.url}`),
    field("Your name", "Shown beside the alert.", written("by", { required: true, maxlength: "100", autofocus: true, value: operator, autocomplete: "nickname" })),
  ], "Acknowledge", async (data) => {
    operator = data.get("by");
    await ask("POST", at("alerts", alert.id, "acknowledge"), { by: operator });
    toast("Acknowledged");
  });
}
