// ---- Senders: where each runs, and what it owns. Only operators are told of them ----
function sendersCard(senders) {
  const heads = ["Sender", "Process", "Owns", "Lease ends in"];
  return card("senders", "Senders", "A sender that lives renews its lease all the time. When a lease ends, others take its shards.", null,
    table("senders", heads, senders.map((s) => row(heads, { key: "row sender " + s.id },
      mono(s.id), s.pid ? `${s.host ?? "?"}, pid ${s.pid}` : "?",
      h("span", { title: s.shards.join(", ") }, many(s.shards.length, "shard")), `${(s.lease_ms / 1000).toFixed(1)} s`))));
}
