// ---- Dialogs ----
// What a fault of a request takes: its field, its label and its default.
const LATE = { slow: ["milliseconds", "Delay in milliseconds", "3000"], rate_limit_exceeded: ["retry_after", "Retry-After in seconds", "1"] };
async function faultDialog() {
  const { account, endpoints } = seen;
  const { requests, deliveries } = (await ask("GET", "/faults")).known;
  const late = digits("late", "", 6, { required: true });
  const label = h("span");
  const lateField = h("label.field", label, late);
  const whom = h("select", { name: "whom" });
  const chosen = (name) => {
    const [, text, value] = LATE[name] ?? [null, "", "1"];
    lateField.hidden = !LATE[name];
    label.textContent = text; late.value = value;
    whom.replaceChildren(h("option", { value: "" }, "all accounts"), h("option", { value: "account" }, "this account"),
      ...(deliveries.includes(name) ? endpoints.map((e) => h("option", { value: e.id }, e.url)) : []));
  };
  chosen(requests[0]);
  dialog("Inject a fault", "Applies to the next API requests or deliveries.", [
    field("Fault", null, select({ name: "fault", autofocus: true, onchange: (e) => chosen(e.target.value) }, [...requests, ...deliveries].map((name) => [name]))),
    field("How many", null, digits("next", "1", 6)),
    lateField,
    field("Applies to", null, whom),
  ], "Inject", async (data) => {
    const [fault, to] = [data.get("fault"), data.get("whom")];
    const order = { fault, next: Number(data.get("next")) };
    if (LATE[fault]) order[LATE[fault][0]] = Number(data.get("late"));
    if (to === "account") order.account = account.id;
    else if (to) order.endpoint = to;
    await ask("POST", "/faults", order);
    toast("Fault added");
  });
}
// A form that is sent once at a time, and says why it was refused.
function formOf(name, inside, cancel, action, run) {
  const wrong = h("div.wrong", { role: "alert", hidden: true });
  const send = h("button.btn.primary", { type: "submit" }, action);
  const form = h(name, inside, wrong, h("div.row.foot", cancel, send));
  form.onsubmit = async (event) => {
    event.preventDefault();
    send.disabled = true; wrong.hidden = true;
    try { await run(); } catch (error) { wrong.textContent = error.message; wrong.hidden = false; }
    send.disabled = false;
  };
  return form;
}
function dialog(title, hint, fields, action, submit) {
  const form = formOf("form", [h("div", h("h2", title), h("p.hint", hint)), fields], submit && button("Cancel", {}, () => el.close()), action, async () => {
    if (!submit) return el.close();
    const next = await submit(new FormData(form));
    el.close();
    // What is shown once waits for nothing.
    if (next) next();
    await refresh(true);
  });
  const el = h("dialog", { "aria-label": title }, form);
  el.addEventListener("close", () => el.remove());
  document.body.append(el);
  el.showModal();
  return el;
}
const field = (label, small, input) => h("label.field", label, input, small && h("small.faint", small));
const written = (name, props) => h("input", { type: "text", name, autocomplete: "off", ...props });
const digits = (name, value, most, props) => written(name, { value, inputmode: "numeric", pattern: `[0-9]{1,${most}}`, onfocus: (e) => e.target.select(), ...props });
const check = (type, name, value, label, checked) => h("label.row.check", h("input", { type, name, value, checked }), label);
const group = (legend, ...checks) => h("fieldset", h("legend", legend), checks);
const quoted = (what, ...more) => h("div.row.secret", h("code", what), more);

function confirmDialog(title, hint, what, action, run, done) {
  dialog(title, hint, [quoted(what)], action, async () => { await run(); if (done) toast(done); });
}

// It closes once its reader has said that the secret is kept: not by Escape, a click or a reload.
function secretDialog(title, what, secret, next) {
  const kept = h("input", { type: "checkbox", name: "kept", required: true });
  const copy = button("Copy", {}, async () => {
    try { await navigator.clipboard.writeText(secret); copy.textContent = "Copied"; kept.checked = true; } catch { getSelection().selectAllChildren(copy.previousSibling); }
  });
  const el = dialog(title, what, [quoted(secret, copy), h("div.warn", "The secret is shown only now. Store it with your other secrets."),
    h("label.row.check", kept, "I have stored the secret")], next ? "Next" : "Close");
  const stay = (event) => event.preventDefault();
  el.setAttribute("closedby", "none");
  el.addEventListener("cancel", stay);
  el.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    if (kept.checked) el.close(); else kept.reportValidity();
  });
  addEventListener("beforeunload", stay);
  el.addEventListener("close", () => { removeEventListener("beforeunload", stay); if (next) next(); });
}
function linkDialog(a) {
  const revoke = button("Revoke all links", { class: "danger" }, () => attempt(null, async () => {
    const { revoked } = await ask("DELETE", at("accounts", a.id, "portal"));
    toast(`Revoked ${many(revoked, "link")}`);
  }));
  dialog("A link for the owner", "The link opens only this account, for an hour.", [h("div", revoke)], "Create link", async () => {
    const made = await ask("POST", at("accounts", a.id, "portal"), {});
    const url = location.origin + made.path;
    return () => dialog("The owner's link", `Send the link to ${a.business_name || a.id}. It is shown once, and expires at ${stamp(made.expires_at)}.`, [quoted(url, button("Copy", {}, () => copyText(url)))], "Close");
  });
}
function keyDialog(a) {
  dialog("Create a key", named(a), [
    field("Name", "One key for each integration.", written("name", { required: true, maxlength: "100", autofocus: true, placeholder: "CRM sync" })),
    group("Mode", check("radio", "mode", "live", "Live: production data", true), check("radio", "mode", "test", "Test: test data")),
    group("Scopes", ["account:read", "calls:read"].map((scope) => check("checkbox", "scope", scope, mono(scope), true))),
    field("Expires", null, select({ name: "expires" }, [["", "never"], ["1", "in a minute"], ["1440", "in a day"], ["43200", "in 30 days"]])),
  ], "Create key", async (data) => {
    const minutes = Number(data.get("expires"));
    const made = await ask("POST", at("accounts", a.id, "keys"), { name: data.get("name"), mode: data.get("mode"), scopes: data.getAll("scope"), expires_at: minutes ? new Date(clock() + minutes * 60000).toISOString() : null });
    return () => secretDialog("Key created", made.name, made.secret);
  });
}
function revokeDialog(k) {
  confirmDialog("Revoke this key?", "Requests with this key are refused at once, permanently.", [k.name, k.hint].filter(Boolean).join(" · "), "Revoke", () => ask("POST", at("keys", k.id, "revoke")), "Revoked");
}
function endpointDialog(a) {
  dialog("Add an endpoint", "Signed events of this account are sent to the endpoint.", about({}), "Add endpoint", async (data) => {
    const made = await ask("POST", at("accounts", a.id, "endpoints"), { url: data.get("url"), description: data.get("description") });
    const first = seen.endpoints.length === 0;
    return () => secretDialog("Endpoint added", "The signing secret, for the receiver:", made.secret, first && (() => pingDialog({ id: made.id, url: data.get("url") })));
  });
}
// The first endpoint is tried at once: the ping is seen arriving in the list.
function pingDialog(e) {
  confirmDialog("Send a ping?", "A ping is a test event. The deliveries show the result.", e.url, "Send a ping", async () => { await ask("POST", at("endpoints", e.id, "ping")); show("deliveries"); }, "Ping accepted");
}
const TYPES = Object.keys(EXAMPLES).map((type) => [type]);
// The sample of a type, to this endpoint alone.
function testDialog(e) {
  dialog("Send a test event?", "The sample is sent only to this endpoint, and is not marked as a test.", [quoted(e.url),
    field("Type", null, select({ name: "type", autofocus: true }, TYPES)),
  ], "Send", async (data) => { await ask("POST", at("endpoints", e.id, "ping"), { type: data.get("type") }); show("deliveries"); toast("Test event accepted"); });
}
const about = ({ url, description }) => [
  field("URL", "A public HTTPS address.", written("url", { type: "url", required: true, autofocus: true, placeholder: "https://", value: url })),
  field("Description", "At most 200 characters.", written("description", { maxlength: "200", value: description }))];
// Another URL begins a new life of the endpoint: only what has changed is sent.
function editDialog(e) {
  dialog("Edit this endpoint", "A new URL gets the pending deliveries, and its failures are counted from zero. The log is kept.", about(e), "Save", async (data) => {
    const edit = {};
    if (data.get("url") !== e.url) edit.url = data.get("url");
    if (data.get("description") !== (e.description ?? "")) edit.description = data.get("description");
    if (Object.keys(edit).length) await ask("PATCH", at("endpoints", e.id), edit);
    toast("Saved");
  });
}
function rotateDialog(e) {
  dialog("Rotate the signing secret", e.url, [
    field("The previous secret", "While both secrets sign, receivers accept either signature.", select({ name: "overlap" },
      [["86400", "signs for a day"], ["3600", "signs for an hour"], ["604800", "signs for a week"], ["0", "stops now, after a leak"]])),
  ], "Rotate", async (data) => {
    const made = await ask("POST", at("endpoints", e.id, "rotate"), { overlap_seconds: Number(data.get("overlap")) });
    return () => secretDialog("Secret rotated", "The new signing secret, for the receiver:", made.secret);
  });
}
function deleteDialog(e) {
  confirmDialog("Delete this endpoint?", "The endpoint gets no more events. Pending deliveries are parked, not sent. The log is kept for thirty days.", e.url, "Delete", () => ask("DELETE", at("endpoints", e.id)), "Deleted");
}
function pauseDialog(e) {
  confirmDialog("Pause this endpoint?", "Nothing is sent until the endpoint is enabled again. Missed deliveries are sent only by a recovery.", e.url, "Pause", () => ask("POST", at("endpoints", e.id, "pause")), "Endpoint paused");
}
// The count follows what is chosen, before anything is sent.
function recoverDialog(e) {
  const types = Object.keys(missed.get(e.id).by_type);
  const told = h("p.counted.strong", { role: "status" });
  const tell = (counted) => { told.textContent = moreThan(counted) + many(counted.count, "delivery", "deliveries"); };
  const checks = (name, values) => values.map((value) => check("checkbox", name, value, [mono(value), name === "status" && faint(KIND[value][2])], true));
  const time = (name, label) => field(label, null, written(name, { placeholder: "YYYY-MM-DD HH:MM", spellcheck: "false" }));
  const chosen = (data) => {
    const asked = {};
    for (const [name, label] of [["from", "From"], ["until", "Until"]]) if (data.get(name).trim()) asked[name] = moment(label, data.get(name), name === "until");
    for (const [field, name, all] of [["types", "type", types], ["statuses", "status", MISSED]]) {
      const some = data.getAll(name);
      if (!some.length) throw new Error(`choose a ${name}`);
      if (some.length < all.length) asked[field] = some;
    }
    return asked;
  };
  const el = dialog("Recover missed deliveries", "Each delivery gets one more attempt, a few at a time. A failure does not count against the endpoint.", [
    quoted(e.url),
    group("Types", checks("type", types)), group("Statuses", checks("status", MISSED)),
    h("div.pair", time("from", "From"), time("until", "Until")),
    told,
  ], "Recover", async (data) => {
    const started = await ask("POST", at("endpoints", e.id, "recover"), chosen(data));
    missed.delete(e.id);
    toast(`Recovery of ${moreThan(started)}${many(started.counted, "delivery", "deliveries")} started`);
  });
  let asked = 0;
  const count = async () => {
    const mine = ++asked;
    await new Promise((done) => setTimeout(done, 200));
    if (mine !== asked) return;
    try {
      const counted = await ask("POST", at("endpoints", e.id, "recover"), { ...chosen(new FormData(el.querySelector("form"))), dry_run: true });
      if (mine === asked) tell(counted);
    } catch (error) { if (mine === asked) told.textContent = error.message; }
  };
  el.addEventListener("input", count);
  tell(missed.get(e.id));
}
function callDialog(a) {
  dialog("Record a call", "Records a made-up call, and emits call.ended.", [
    field("Caller", null, written("name", { autofocus: true, placeholder: "Ingrid Solberg" })),
    field("Number", null, written("number", { placeholder: "+4722334455" })),
    field("Summary", "Without a summary, call.ended is not emitted.", written("summary", { value: "Asked for an appointment on Friday." })),
    field("Duration in seconds", null, digits("seconds", "75", 5)),
  ], "Record call", async (data) => {
    const seconds = Number(data.get("seconds") || 0);
    const call = await ask("POST", at("accounts", a.id, "calls"), {
      caller: { contact_id: null, phone_number: data.get("number") || null, display_name: data.get("name") || null },
      summary: data.get("summary") || null, duration_seconds: seconds });
    toast(call.event_id ? `Recorded; sent to ${many(call.deliveries.length, "endpoint")}` : `Recorded without an event: ${call.not_emitted}`);
  });
}
function emitDialog(a) {
  const data = h("textarea", { name: "data", spellcheck: "false", required: true });
  const type = written("type", { required: true, list: "types", value: "appointment.created", autofocus: true });
  const example = () => { if (EXAMPLES[type.value]) data.value = JSON.stringify(EXAMPLES[type.value], null, 2); };
  type.addEventListener("input", example); example();
  dialog("Emit an event", "Sent to every endpoint of the account.", [
    field("Type", "Any type is allowed.", type),
    field("Data", null, data),
  ], "Emit event", async (form) => {
    let value; try { value = JSON.parse(form.get("data")); } catch { throw new Error("data is not JSON"); }
    const event = await ask("POST", at("accounts", a.id, "events"), { type: form.get("type"), data: value });
    toast(`Emitted to ${many(event.deliveries.length, "endpoint")}`);
  });
}
