// ---- Levers: what operators have set, each with its way back ----
const pace = (l) => l.per_second ? `is limited to ${many(l.per_second, "attempt")} per second` : "is paused";
function leversCard(levers, hint, a) {
  const draw = (l) => {
    const text = `${l.endpoint_id ? `Endpoint ${l.endpoint_id}` : !l.account_id ? "Everything" : a ? "This account" : `Account ${l.account_id}`} ${pace(l)}`;
    return h("li", { key: "levers " + l.id }, badge("set", "wait"), h("span.what.strong", text), faint(l.set_by ? `set by ${l.set_by} ` : "since ", when(l.set_at)),
      !portal && button("Undo", { key: "undo levers " + l.id, of: text }, doing("Undone", "POST", "levers", l.id, "undo")));
  };
  return levers.length > 0 && card("levers", "Sending is paused or limited", hint, null, h("ul.alerts", levers.map(draw)));
}
// Of an account, or of everything.
function pauseSendingDialog(a) {
  const stands = (a ? seen.levers : fleet).levers.find((l) => a ? l.account_id === a.id : !l.account_id && !l.endpoint_id);
  dialog("Pause sending?", "Events wait until the pause or limit is undone.", [quoted(a ? named(a) : "Everything: all accounts"),
    stands && h("div.warn", `${a ? "This account" : "Everything"} ${pace(stands)}, set by ${stands.set_by}. The new limit replaces it.`),
    field("Attempts per second", "Limit of each sender. 0 pauses sending.", digits("pace", "0", 5, { required: true }))],
  "Set", async (data) => {
    const per_second = Number(data.get("pace"));
    await ask("POST", "/levers", { account_id: a?.id, per_second, instead_of: stands?.id });
    toast(per_second ? "Sending is limited" : "Sending is paused");
  });
}
