// ---- Senders: what each owns, moving a shard to one, and taking one out of service. Only operators are told of them ----
function sendersCard(senders) {
  const heads = ["Sender", "Process", "State", "Owns", "Moved here", "Lease ends in", ACTIONS];
  return card("senders", "Senders", "A sender that lives renews its lease all the time. When a lease ends, others take its shards.", null,
    table("senders", heads, senders.map((s) => row(heads, { key: "row sender " + s.id },
      mono(s.id), s.pid ? `${s.host ?? "?"}, pid ${s.pid}` : "?", s.drained ? badge("drained", "wait") : badge("sends", "good"),
      h("span", { title: s.shards.join(", ") }, many(s.shards.length, "shard")),
      s.kept.length ? s.kept.map((n) => button(`Undo ${n}`, { key: "unmove " + n, of: `shard ${n}` }, doing("It is shared again", "POST", "shards", n, "undo"))) : "none", `${(s.lease_ms / 1000).toFixed(1)} s`,
      s.drained ? button("End draining", { key: "undrain " + s.id, of: s.id }, doing("It takes its share again", "POST", "senders", s.id, "undo"))
        : [button("Move a shard here", { key: "move " + s.id, of: s.id }, () => moveDialog(s)),
          button("Drain", { key: "drain " + s.id, of: s.id }, () => drainDialog(s, senders))]))));
}
function moveDialog(s) {
  dialog("Move a shard to this sender?", "It takes the shard within seconds, and keeps it until this is undone. If it ends or is drained, the others share the shard.", [
    quoted(s.id),
    field("Shard", "Its number, or the id of an endpoint.", written("shard", { required: true, autofocus: true })),
  ], "Move", (data) => {
    const named = data.get("shard").trim();
    return ask("POST", at("senders", s.id, "move"), /^\d+$/.test(named) ? { shard: Number(named) } : { endpoint_id: named })
      .then((moved) => toast(`Shard ${moved.shard} is moved`));
  });
}
function drainDialog(s, senders) {
  const others = senders.some((other) => other.id !== s.id && !other.drained);
  const hint = others ? "It gives its shards to the others within seconds, and takes none." : "No other sender is left: nothing is sent until one is.";
  confirmDialog("Drain this sender?", hint, s.id, "Drain", () => ask("POST", at("senders", s.id, "drain")));
}
