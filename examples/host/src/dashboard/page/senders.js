// ---- Senders: what each owns, and taking one out of service. Only operators are told of them ----
function sendersCard(senders) {
  const heads = ["Sender", "Process", "State", "Owns", "Lease ends in", ACTIONS];
  return card("senders", "Senders", "A sender that lives renews its lease all the time. When a lease ends, others take its shards.", null,
    table("senders", heads, senders.map((s) => row(heads, { key: "row sender " + s.id },
      mono(s.id), s.pid ? `${s.host ?? "?"}, pid ${s.pid}` : "?", s.drained ? badge("drained", "wait") : badge("sends", "good"),
      h("span", { title: s.shards.join(", ") }, many(s.shards.length, "shard")), `${(s.lease_ms / 1000).toFixed(1)} s`,
      s.drained ? button("End draining", { key: "undrain " + s.id, of: s.id }, doing("It takes its share again", "POST", "senders", s.id, "undo"))
        : button("Drain", { key: "drain " + s.id, of: s.id }, () => drainDialog(s, senders))))));
}
function drainDialog(s, senders) {
  const others = senders.some((other) => other.id !== s.id && !other.drained);
  const hint = others ? "It gives its shards to the others within seconds, and takes none." : "No other sender is left: nothing is sent until one is.";
  confirmDialog("Drain this sender?", hint, s.id, "Drain", () => ask("POST", at("senders", s.id, "drain")));
}
