// ---- Levers: what operators have set, each with its way back ----
function leversCard(set, a, endpoints) {
  const own = (id) => endpoints.some((e) => e.id === id);
  const pace = (l) => l.per_second ? `sends ${l.per_second} attempts a second at most` : "is paused";
  const rows = set.levers.filter((l) => l.endpoint_id ? own(l.endpoint_id) : !l.account_id || l.account_id === a.id).map((l) =>
    [`lever ${l.id}`, `${l.endpoint_id ? `Endpoint ${l.endpoint_id}` : l.account_id ? "This account" : "Everything"} ${pace(l)}`, at("levers", l.id, "undo"), [l.set_by ? `set by ${l.set_by} ` : "since ", when(l.set_at)]])
    .concat(set.senders.filter((s) => s.drained).map((s) => [`sender ${s.id}`, `Sender ${s.id} is drained: it owns ${s.shards.length} shards`, at("senders", s.id, "undo"), []]));
  if (!rows.length) return [];
  return [card("levers", { "aria-labelledby": "h-levers" },
    h("header", {}, h("div", {}, h("h2", { id: "h-levers" }, "Sending is held back"), h("p", {}, portal ? "The service has set this. Events wait, and none is lost." : "Operators have set this."))),
    h("ul", { class: "alerts" }, rows.map(([key, text, path, by]) => keyed(key, h("li", {},
      badge("set", "wait"), h("span", { class: "what strong" }, text), h("span", { class: "faint" }, ...by),
      portal ? null : keyed(`undo ${key}`, button("Undo", { class: "small", "aria-label": `Undo: ${text}` }, () => attempt("Undone", () => ask("POST", path, {})))))))))];
}
function pauseSendingDialog(a) {
  dialog("Pause sending?", "Its events wait until this is undone.", [h("div", { class: "secret" }, h("code", {}, a.business_name ? `${a.business_name} · ${a.id}` : a.id)),
    field("Attempts a second", "Of each sender. 0 pauses.", h("input", { type: "text", name: "pace", value: "0", inputmode: "numeric", pattern: "[0-9]{1,5}", required: true, autocomplete: "off" }))],
  "Hold back", (data) => ask("POST", "/levers", { account_id: a.id, per_second: Number(data.get("pace")) }).then(() => null));
}
