const STATE = { full: "good", "account only": "good", "calls only": "good", test: "info", expired: "wait", revoked: "bad" };
function keysCard(a, keys, more) {
  const add = button("Create key", { key: "add key" }, () => keyDialog(a));
  const heads = ["Name", "Hint", "State", "Scopes", "Last used", "Expires", ACTIONS];
  const keyRow = (k) => row(heads, { key: "row " + k.id }, k.name ? h("span.strong", k.name) : faint("no name"), mono(faint(k.hint)), badge(k.state, STATE[k.state]),
    k.scopes.length ? mono(k.scopes.join(", ")) : faint("none"), when(k.last_used_at), when(k.expires_at),
    k.revoked_at ? faint("revoked ", when(k.revoked_at)) : button("Revoke", { key: "revoke " + k.id, class: "danger", of: k.name || k.hint }, () => revokeDialog(k)));
  const rows = keys.map(keyRow);
  const listed = new Set(keys.map((k) => k.id)), old = oldKeys.of === a.id ? oldKeys.rows.filter((k) => !listed.has(k.id)) : [];
  const older = more && [table("old keys", heads, old.map(keyRow)), pager(faint(old.length ? `${many(old.length, "older key")}, oldest first` : `The newest ${keys.length} keys`),
    (oldKeys.of !== a.id || oldKeys.next) && button("Older keys", { key: "older keys" }, () => readOldKeys(1).catch(fail)))];
  return card("keys", "API keys", "A secret is shown once, when its key is created.", rows.length > 0 && add,
    rows.length ? table("keys", heads, rows) : empty("No key yet", "An integration needs a key to read this account.", h("div", add)), older);
}
// Keys that are older than those that come with the rest: so many pages more, from the oldest on.
let oldKeys = { of: null, rows: [], next: "", pages: 0 };
async function readOldKeys(pages) {
  const of = selected, old = oldKeys.of === of ? oldKeys : { rows: [], next: "", pages: 0 };
  const { rows, next } = await readPages(pages, pageOf(of, "keys"), old.next);
  oldKeys = { of, rows: [...old.rows, ...readable("keys", rows)], next, pages: old.pages + pages };
  draw();
}

function callsCard(calls) {
  const heads = ["Caller", "Summary", "Started", "Took"];
  const draw = (c, line) => row(heads, { key: "row " + c.id },
    h("div.two", h("span.strong.clip", { title: c.caller.display_name }, c.caller.display_name || "Unknown caller"), faint(c.caller.phone_number || "no number")),
    c.summary || faint("no summary"), when(c.started_at, line), took(c.duration_seconds));
  return card("calls", "Latest calls", "The list of GET /v1/calls, newest first.", null,
    calls.length ? table("calls", heads, byDay(calls, (c) => c.started_at, draw, dayRow(heads))) :
      empty("No calls yet", "Calls appear here and in the public API."), moreOf("calls", "Older calls"));
}
const took = (seconds) => seconds === null ? "–" : seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;

function sandboxCard(a, { faults, clock }) {
  const advance = (text, seconds) => button(text, { key: "advance " + text, "aria-label": `${text}: advance the clock` }, () => attempt(`Clock advanced by ${text.slice(1)}`, () => ask("POST", "/clock", { advance_seconds: seconds })));
  const ahead = Math.round(clock.ahead_seconds);
  return card("sandbox", "Sandbox", "Inject faults, and advance the clock.",
    h("div.row", button("Record a call", { key: "record" }, () => callDialog(a)), advance("+1 min", 60), advance("+1 h", 3600), advance("+8 h", 28800), advance("+1 day", 86400), button("Inject a fault", { key: "order" }, () => attempt(null, faultDialog))),
    h("ul.alerts", { id: "faults" },
      h("li", h("span.what", stamp(clock.now), " ", faint(ahead ? `${number(ahead)} s ahead of this machine` : "the time of this machine"))),
      faults.map((fault) => h("li", { key: "row " + fault.id },
        h("span.what", h("span.strong.mono", fault.fault), " ", faint(fault.next ? `next ${fault.next}` : `with probability ${fault.probability}, seed ${fault.seed}`, ` · for ${fault.endpoint ?? fault.account ?? "all accounts"} · occurred: ${fault.done}`)),
        button("Remove", { key: "fault " + fault.id, of: fault.fault }, doing("Removed", "DELETE", "faults", fault.id))))));
}
