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
function drawAccounts() {
  $("search").hidden = portal || locked;
  const more = moreAccounts && keyed("more accounts", h("li", {}, h("button", { type: "button", on: { click: () => { accountPages++; refresh(true); } } }, "More accounts")));
  patchChildren($("accounts"), accounts.map((a) => {
    const mark = a.closing ? badge("closing", "bad") : a.subscription_active === false ? badge("inactive", "bad") : a.entitlements?.public_api === false ? badge("no API", "wait") : null;
    return keyed("row " + a.id, h("li", {}, keyed("account " + a.id, h("button", { type: "button", "aria-current": a.id === selected ? "true" : undefined, on: { click: () => choose(a.id) } },
      h("span", { class: "name" }, a.business_name || "No business name"),
      h("span", { class: "sub" }, h("span", { class: "mono" }, a.id), mark)))));
  }).concat(more || []).concat(accounts.length || !$("search").value ? [] : [keyed("no account", h("li", { class: "faint" }, "No id or name begins so."))]));
}
function drawNone() { patchChildren($("main"), [h("div", { class: "card empty" }, h("h1", {}, "There are no accounts"), "Start the service with --data, or without it for a demonstration.")]); }

function drawUnknown() {
  document.title = "No such account · Call Assistant";
  patchChildren($("main"), [keyed("unknown", h("div", { class: "card empty", role: "alert" }, h("h1", {}, "There is no such account"), h("span", { class: "mono" }, selected), h("p", {}, "The address names an account that this service does not have.")))]);
}

function draw() {
  if (!seen || held) return;
  const { account: a, keys, endpoints, deliveries, calls, plans, sandbox } = seen;
  const index = accounts.findIndex((other) => other.id === a.id);
  if (index >= 0 && JSON.stringify(accounts[index]) !== JSON.stringify(a)) { accounts[index] = a; drawAccounts(); }
  document.title = `${a.business_name || a.id} · Call Assistant`;
  const [top, rest] = placed(endpoints), rows = troubles(seen.alerts || []);
  const panels = {
    deliveries: () => deliveriesCard(deliveries, endpoints), endpoints: () => endpointsCard(a, rest, top.length), alerts: () => alertsCard(rows),
    keys: () => keysCard(a, keys), calls: () => callsCard(a, calls), settings: plans && (() => standingCard(a, plans)), sandbox: sandbox && (() => sandboxCard(sandbox)),
    senders: seen.levers?.senders.length && (() => sendersCard(seen.levers.senders)),
  };
  if (!panels[tab]) tab = "deliveries";
  const counts = { endpoints: endpoints.length, alerts: rows.filter(isOpen).length, keys: keys.length };
  patchChildren($("main"), [
    head(a), ...summary(endpoints), ...leversCard(seen.levers, a, endpoints), ...failingCard(top), tabBar(Object.keys(TABS).filter((name) => panels[name]), counts),
    keyed("panel " + tab, h("div", { id: "panel", role: "tabpanel", "aria-labelledby": "tab-" + tab, tabindex: "0" }, panels[tab]()))]);
}
// Each tab has an address. The arrow keys go from one to the next, the tab key into what it shows.
function tabBar(names, counts) {
  const keys = { ArrowLeft: -1, ArrowRight: 1, Home: -names.indexOf(tab), End: names.length - 1 - names.indexOf(tab) };
  const move = (event) => {
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
  return keyed("tabs", h("div", { class: "tabs", role: "tablist", "aria-label": "What is shown of this account", on: { keydown: move } }, names.map((name) =>
    keyed("tab " + name, h("a", { id: "tab-" + name, role: "tab", href: address(name), "aria-selected": String(name === tab), "aria-controls": name === tab ? "panel" : undefined, tabindex: name === tab ? "0" : "-1", on: { click: click(name) } },
      TABS[name], counts[name] ? [" ", h("span", { class: "badge" + (name === "alerts" ? " bad" : "") }, counts[name])] : null)))));
}

function head(a) {
  return h("div", { class: "head" },
    h("div", {}, h("h1", {}, a.business_name || "No business name"),
      h("div", { class: "meta" }, h("span", { class: "mono" }, a.id), h("span", {}, a.timezone), localTime(a.timezone))),
    portal ? null : h("div", { class: "row" },
      seen.levers?.senders.length ? keyed("pause", button("Pause sending", {}, () => pauseSendingDialog(a))) : null,
      keyed("portal", button("Owner's link", {}, () => linkDialog(a))),
      keyed("emit", button("Emit event", {}, () => emitDialog(a))),
      keyed("record", button("Record a call", { class: "primary" }, () => callDialog(a)))));
}
function localTime(zone) {
  try { return h("span", {}, "local time ", new Intl.DateTimeFormat("en-GB", { timeZone: zone, hour: "2-digit", minute: "2-digit" }).format(clock())); } catch { return null; }
}
// What changes the answers that a customer gets is asked first.
function standingCard(a, plans) {
  const change = (field, value) => ask("PATCH", at("accounts", a.id), { [field]: value });
  const who = a.business_name ? `${a.business_name} · ${a.id}` : a.id;
  const [verdict, kind] = standing(a);
  const toggle = (name, field, stops, title, hint) => h("label", {}, keyed("standing " + field, h("input", { type: "checkbox", role: "switch", class: "switch", checked: a[field], on: { click: (e) => {
    e.preventDefault();
    if (a[field] === stops) attempt(null, () => change(field, !stops));
    else confirmDialog(title, hint, who, name, () => change(field, stops));
  } } })), name);
  const choosePlan = (e) => {
    const plan = e.target.value;
    e.target.value = a.plan;
    confirmDialog(`Change the plan to ${plan}?`, "What the plan does not include is refused at once.", who, "Change plan", () => change("plan", plan));
  };
  return card("standing", { "aria-label": "Standing" }, h("div", { class: "standing" },
    h("label", {}, "Plan", keyed("standing plan", h("select", { on: { change: choosePlan } },
      plans.map((p) => h("option", { value: p, selected: p === a.plan }, p))))),
    toggle("Subscription active", "subscription_active", false, "Set the subscription inactive?", "The public API answers 402 at once."),
    toggle("Scheduled for deletion", "closing", true, "Schedule this account for deletion?", "The public API answers 403 at once."),
    h("div", { class: "verdict" }, "The public API answers", badge(verdict, kind))));
}
