// ---- Levers: what operators have set, each with its way back ----
function leversCard(set, a, endpoints) {
  if (!set) return [];
  const own = (id) => endpoints.some((e) => e.id === id);
  const pace = (l) => l.per_second ? `sends ${l.per_second} attempts a second at most` : "is paused";
  const rows = set.levers.filter((l) => l.endpoint_id ? own(l.endpoint_id) : !l.account_id || l.account_id === a.id).map((l) =>
    [`lever ${l.id}`, `${l.endpoint_id ? `Endpoint ${l.endpoint_id}` : l.account_id ? "This account" : "Everything"} ${pace(l)}`, at("levers", l.id, "undo"), [`set by ${l.set_by} `, when(l.set_at)]])
    .concat(set.senders.filter((s) => s.drained).map((s) => [`sender ${s.id}`, `Sender ${s.id} is drained: it owns ${s.shards.length} shards`, at("senders", s.id, "undo"), []]));
  if (!rows.length) return [];
  return [card("levers", { "aria-labelledby": "h-levers" },
    h("header", {}, h("div", {}, h("h2", { id: "h-levers" }, "Sending is held back"), h("p", {}, "Operators have set this."))),
    h("ul", { class: "alerts" }, rows.map(([key, text, path, by]) => keyed(key, h("li", {},
      badge("set", "wait"), h("span", { class: "what strong" }, text), h("span", { class: "faint" }, ...by),
      keyed(`undo ${key}`, button("Undo", { class: "small", "aria-label": `Undo: ${text}` }, () => attempt("Undone", () => ask("POST", path, {})))))))))];
}
function pauseSendingDialog(a) {
  confirmDialog("Pause sending?", "Its events wait until this is undone.", a.business_name ? `${a.business_name} · ${a.id}` : a.id, "Pause sending", () => ask("POST", "/levers", { account_id: a.id, per_second: 0 }));
}
