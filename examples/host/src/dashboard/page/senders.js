// ---- Senders: what each owns, and taking one out of service. Only operators are told of them ----
function sendersCard(senders) {
  const count = (n) => `${n} ${n === 1 ? "shard" : "shards"}`;
  const rows = senders.map((s) => keyed(`row sender ${s.id}`, h("tr", {},
    h("td", {}, h("span", { class: "mono" }, s.id)),
    h("td", {}, s.drained ? badge("drained", "wait") : badge("sends", "good")),
    h("td", {}, h("span", { title: s.shards.join(", ") }, count(s.shards.length))),
    h("td", {}, `${(s.lease_ms / 1000).toFixed(1)} s`),
    h("td", { class: "end" }, s.drained
      ? keyed(`undrain ${s.id}`, button("End draining", { class: "small", "aria-label": `End draining ${s.id}` }, () => attempt("It takes its share again", () => ask("POST", at("senders", s.id, "undo"), {}))))
      : keyed(`drain ${s.id}`, button("Drain", { class: "small", "aria-label": `Drain ${s.id}` }, () => drainDialog(s, senders)))))));
  return card("senders", { "aria-labelledby": "h-senders" },
    h("header", {}, h("div", {}, h("h2", { id: "h-senders" }, "Senders"), h("p", {}, "A sender that lives renews its lease all the time. When a lease ends, others take its shards."))),
    h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ["Sender", "State", "Owns", "Lease ends in", "Action"].map((text) => h("th", { scope: "col" }, text)))), h("tbody", {}, rows))));
}
function drainDialog(s, senders) {
  const others = senders.some((other) => other.id !== s.id && !other.drained);
  const hint = others ? "It gives its shards to the others within seconds, and takes none." : "No other sender is left: nothing is sent until one is.";
  confirmDialog("Drain this sender?", hint, s.id, "Drain", () => ask("POST", at("senders", s.id, "drain"), {}));
}
