// ---- Drawing ----
// A row that moved away between press and release would lose the click.
let held = false;
addEventListener("pointerdown", (event) => { held = event.button === 0; }, true);
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => { held = false; setTimeout(draw); }, true);

function standing(a) {
  if (a.closing) return ["403 account_closed", "bad"];
  if (!a.subscription_active) return ["402 subscription_inactive", "bad"];
  if (!a.entitlements.public_api) return ["403 plan_upgrade_required", "wait"];
  return ["200", "good"];
}
const notice = (title, ...text) => patchChildren($("main"), [h("div.card.empty", { key: title, role: "alert" }, h("h1", title), text)]);
function drawUnknown() {
  entitle("No such account");
  notice("There is no such account", mono(selected));
}

function draw() {
  if (selected === null) return drawFleet();
  if (!seen || held) return;
  const { account: a, keys, endpoints, deliveries, calls, plans, sandbox, levers } = seen;
  const index = accounts.findIndex((other) => other.id === a.id);
  if (index >= 0 && JSON.stringify(accounts[index]) !== JSON.stringify(a)) { accounts[index] = a; drawFound(); }
  entitle(a.business_name || a.id);
  const rows = troubles(seen.alerts);
  tellResults([...deliveries, ...(found?.data ?? []), ...details.values()]);
  const panels = {
    deliveries: () => deliveriesCard(a, deliveries, endpoints), endpoints: () => endpointsCard(a, placed(endpoints)), alerts: () => alertsCard(rows, moreOf("alerts", "Older alerts")),
    keys: () => keysCard(a, keys, seen.keys_more), calls: () => callsCard(calls), settings: plans && (() => standingCard(a, plans)), sandbox: sandbox && (() => sandboxCard(a, sandbox)),
  };
  if (!panels[tab]) tab = "deliveries";
  const counts = { endpoints: endpoints.length, alerts: rows.filter(isOpen).length, keys: keys.length };
  redraw("panel",
    head(a), summary(endpoints), leversCard(levers.levers.filter((l) => l.endpoint_id ? endpoints.some((e) => e.id === l.endpoint_id) : !l.account_id || l.account_id === a.id), portal ? "A limit of the service. No event is lost." : "Set by operators.", a),
    tabBar(Object.keys(TABS).filter((name) => panels[name]), counts),
    h("div", { key: "panel " + tab, id: "panel", role: "tabpanel", "aria-labelledby": "tab-" + tab, tabindex: "0" }, panels[tab]()));
}
// Who goes by the keyboard goes on from `home` when what had the focus is gone.
function redraw(home, ...parts) {
  const focused = document.activeElement;
  patchChildren($("main"), parts.filter(Boolean));
  if (focused && !focused.isConnected) $(home).focus({ preventScroll: true });
}
// Each tab has an address. The arrow keys go from one to the next, the tab key into what it shows.
function tabBar(names, counts) {
  const keys = { ArrowLeft: -1, ArrowRight: 1, Home: -names.indexOf(tab), End: names.length - 1 - names.indexOf(tab) };
  const onkeydown = (event) => {
    if (!Object.hasOwn(keys, event.key) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    show(names[(names.indexOf(tab) + keys[event.key] + names.length) % names.length]);
    $("tab-" + tab).focus();
  };
  const click = (name) => (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    show(name);
  };
  return h("div.tabs", { key: "tabs", role: "tablist", "aria-label": "Sections of this account", onkeydown }, names.map((name) =>
    h("a", { key: "tab " + name, id: "tab-" + name, role: "tab", href: address(name), "aria-selected": String(name === tab), "aria-controls": name === tab && "panel", tabindex: name === tab ? "0" : "-1", onclick: click(name) },
      TABS[name], counts[name] > 0 && [" ", badge(counts[name] + (seen[name + "_more"] ? "+" : ""), name === "alerts" ? "bad" : "")])));
}

const named = (a) => a.business_name ? `${a.business_name} · ${a.id}` : a.id;
function head(a) {
  return h("div.head",
    h("div", !portal && h("a", { key: "to fleet", href: "#" }, "All accounts"), h("h1", titleOf(a)), h("div.row.faint", mono(a.id), h("span", a.timezone))),
    !portal && h("div.row",
      seen.levers.senders.length > 0 && button("Pause sending", { key: "pause" }, () => pauseSendingDialog(a)),
      button("Owner's link", { key: "portal" }, () => linkDialog(a)),
      button("Emit event", { key: "emit" }, () => emitDialog(a))));
}
// What changes the answers that a customer gets is asked first.
function standingCard(a, plans) {
  const change = (field, value) => ask("PATCH", at("accounts", a.id), { [field]: value });
  const [verdict, kind] = standing(a);
  const toggle = (name, field, stops, title, hint) => h("label.row", h("input", { key: "standing " + field, type: "checkbox", role: "switch", checked: a[field], onclick: (e) => {
    e.preventDefault();
    if (a[field] === stops) attempt(null, () => change(field, !stops));
    else confirmDialog(title, hint, named(a), "Confirm", () => change(field, stops));
  } }), name);
  const onchange = (e) => {
    const plan = e.target.value;
    e.target.value = a.plan;
    confirmDialog(`Change the plan to ${plan}?`, "Features outside the plan are refused at once.", named(a), "Change plan", () => change("plan", plan));
  };
  return h("section.card.standing", { key: "card standing", "aria-label": "Settings" },
    h("label.row", "Plan", select({ key: "standing plan", onchange }, plans.map((p) => [p]), a.plan)),
    toggle("Subscription active", "subscription_active", false, "Set the subscription inactive?", "The public API answers 402 at once."),
    toggle("Scheduled for deletion", "closing", true, "Schedule this account for deletion?", "The public API answers 403 at once."),
    h("div.row.verdict", "The public API answers", badge(verdict, kind)));
}
