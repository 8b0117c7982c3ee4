const STATE = { full: "good", "account only": "good", "calls only": "good", none: "", test: "info", expired: "wait", revoked: "bad" };
function keysCard(a, keys) {
  const add = () => keyed("add key", button("Create key", { class: "small" }, () => keyDialog(a)));
  return card("keys", { "aria-labelledby": "h-keys" },
    h("header", {}, h("div", {}, h("h2", { id: "h-keys" }, "API keys"), h("p", {}, "A secret is shown once, when its key is created.")), keys.length ? add() : null),
    keys.length ? h("div", { class: "scroll" }, h("table", { "aria-labelledby": "h-keys" },
      h("thead", {}, h("tr", {}, h("th", {}, "Name"), h("th", {}, "Hint"), h("th", {}, "State"), h("th", {}, "Scopes"), h("th", {}, "Last used"), h("th", {}, "Expires"), h("th", {}, h("span", { class: "skip" }, "Actions")))),
      h("tbody", {}, keys.map((k) => keyed("row " + k.id, h("tr", {},
        h("td", { class: "strong" }, k.name || h("span", { class: "faint" }, "no name")),
        h("td", { class: "mono faint nowrap", "data-label": "Hint" }, k.hint), h("td", { "data-label": "State" }, badge(k.state, STATE[k.state])),
        h("td", { class: "mono", "data-label": "Scopes" }, k.scopes.join(", ") || h("span", { class: "faint" }, "none")),
        h("td", { class: "nowrap", "data-label": "Last used" }, when(k.last_used_at)), h("td", { class: "nowrap", "data-label": "Expires" }, when(k.expires_at)),
        h("td", { class: "end" }, k.revoked_at ? h("span", { class: "faint" }, "revoked ", when(k.revoked_at)) :
          keyed("revoke " + k.id, button("Revoke", { class: "small danger", "aria-label": `Revoke: ${k.name || k.hint}` }, () => revokeDialog(k)))))))))) :
      h("div", { class: "empty" }, h("b", {}, "No key yet"), "An integration needs one to read this account.", h("div", {}, add())));
}

function callsCard(a, calls) {
  return card("calls", { "aria-labelledby": "h-calls" },
    h("header", {}, h("div", {}, h("h2", { id: "h-calls" }, "Latest calls"), h("p", {}, "As GET /v1/calls lists them, newest first."))),
    calls.length ? h("div", { class: "scroll" }, h("table", { "aria-labelledby": "h-calls" },
      h("thead", {}, h("tr", {}, h("th", {}, "Caller"), h("th", {}, "Summary"), h("th", {}, "Started"), h("th", {}, "Took"))),
      h("tbody", {}, calls.map((c) => keyed("row " + c.id, h("tr", {},
        h("td", { class: "nowrap two" }, h("span", { class: "strong clip", title: c.caller.display_name || undefined }, c.caller.display_name || "Unknown caller"), h("span", { class: "faint" }, c.caller.phone_number || "no number")),
        h("td", { "data-label": "Summary" }, c.summary || h("span", { class: "faint" }, "no summary")),
        h("td", { class: "nowrap", "data-label": "Started" }, when(c.started_at)), h("td", { class: "nowrap", "data-label": "Took" }, took(c.duration_seconds)))))))) :
      h("div", { class: "empty" }, h("b", {}, "No calls yet"), portal ? "They are here and in the public API." : "Record one to see it here and in the public API."));
}
const took = (seconds) => seconds === null ? "–" : seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;

function sandboxCard(sandbox) {
  const { faults, clock } = sandbox;
  const advance = (text, seconds) => keyed("advance " + text, button(text, { class: "small", "aria-label": `${text}: advance the clock` }, () => attempt(`The clock is ${text} ahead of before`, () => ask("POST", "/clock", { advance_seconds: seconds }))));
  const ahead = Math.round(clock.ahead_seconds);
  return card("sandbox", { "aria-labelledby": "h-sandbox" },
    h("header", {}, h("div", {}, h("h2", { id: "h-sandbox" }, "Sandbox"), h("p", {}, "Faults on order, and a clock that stops at every attempt on its way.")),
      h("div", { class: "row" }, advance("+1 min", 60), advance("+1 h", 3600), advance("+8 h", 28800), advance("+1 day", 86400), keyed("order", button("Order a fault", { class: "small" }, faultDialog)))),
    h("ul", { class: "alerts", id: "faults" },
      h("li", {}, h("span", { class: "what" }, stamp(clock.now), " ", h("span", { class: "faint" }, ahead ? `${ahead.toLocaleString("en")} s ahead of this machine` : "as this machine has it"))),
      faults.map((fault) => keyed("row " + fault.id, h("li", {},
        h("span", { class: "what" }, h("span", { class: "strong mono" }, fault.fault), " ", h("span", { class: "faint" }, fault.next ? `the next ${fault.next}` : `with probability ${fault.probability}, seed ${fault.seed}`, ` · for ${fault.endpoint ?? fault.account ?? "all"} · struck ${fault.done}`)),
        keyed("fault " + fault.id, button("Remove", { class: "small", "aria-label": `Remove: ${fault.fault}` }, () => attempt("Removed", () => ask("DELETE", at("faults", fault.id))))))))));
}
