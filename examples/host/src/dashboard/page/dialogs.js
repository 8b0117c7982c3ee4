// ---- Dialogs ----
const FAULTS = ["internal_error", "lookup_fails", "slow", "cut", "rate_limit_exceeded", "invalid_cursor", "invalid_credentials", "insufficient_scope", "plan_upgrade_required", "subscription_inactive", "account_closed", "resource_not_found", "invalid_parameter", "method_not_allowed", "twice", "out_of_order", "wrong_signature", "old_timestamp", "unknown_type", "changed_object", "no_signature", "future_timestamp", "old_secret", "two_digests", "large_body", "non_ascii", "chunked", "header_case", "twice_at_once", "burst"];
// What a fault of a request takes: its field, its label and its default. Those of a delivery come behind "twice".
const LATE = { slow: ["milliseconds", "Milliseconds late", "3000"], rate_limit_exceeded: ["retry_after", "Seconds of Retry-After", "1"] };
const ofDelivery = (fault) => FAULTS.indexOf(fault) >= FAULTS.indexOf("twice");
function faultDialog() {
  const { account, endpoints } = seen;
  const late = h("input", { type: "text", name: "late", inputmode: "numeric", pattern: "[0-9]{1,6}", autocomplete: "off", required: true });
  const label = h("span", {});
  const lateField = h("label", { class: "field" }, label, late);
  const whom = h("select", { name: "whom" });
  const chosen = (name) => {
    const [, text, value] = LATE[name] ?? [null, "", "1"];
    lateField.hidden = !LATE[name];
    label.textContent = text; late.value = value;
    whom.replaceChildren(h("option", { value: "" }, "all accounts"), h("option", { value: "account" }, "this account"),
      ...(ofDelivery(name) ? endpoints.map((e) => h("option", { value: e.id }, e.url)) : []));
  };
  chosen(FAULTS[0]);
  dialog("Order a fault", "For the next requests to the public API, or the next deliveries.", [
    field("Fault", null, h("select", { name: "fault", autofocus: true, on: { change: (e) => chosen(e.target.value) } }, FAULTS.map((name) => h("option", { value: name }, name)))),
    field("How many", null, h("input", { type: "text", name: "next", value: "1", inputmode: "numeric", pattern: "[0-9]{1,6}", autocomplete: "off" })),
    lateField,
    field("For", null, whom),
  ], "Order", async (data) => {
    const [fault, to] = [data.get("fault"), data.get("whom")];
    const order = { fault, next: Number(data.get("next")) };
    if (LATE[fault]) order[LATE[fault][0]] = Number(data.get("late"));
    if (to === "account") order.account = account.id;
    else if (to) order.endpoint = to;
    await ask("POST", "/faults", order);
    toast("Ordered");
  });
}
function dialog(title, hint, fields, action, submit) {
  const wrong = h("div", { class: "wrong", role: "alert", hidden: true });
  const send = h("button", { class: "btn primary", type: "submit" }, action);
  const form = h("form", {}, h("div", {}, h("h2", {}, title), hint ? h("p", { class: "hint" }, hint) : null), fields, wrong,
    h("div", { class: "foot" }, submit ? button("Cancel", {}, () => el.close()) : null, send));
  const el = h("dialog", { "aria-label": title }, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!submit) return el.close();
    send.disabled = true; wrong.hidden = true;
    try { const next = await submit(new FormData(form)); el.close(); await refresh(true); if (next) next(); }
    catch (error) { wrong.textContent = error.message; wrong.hidden = false; }
    send.disabled = false;
  });
  el.addEventListener("close", () => el.remove());
  document.body.append(el);
  el.showModal();
  return el;
}
const field = (label, small, input) => h("label", { class: "field" }, label, input, small ? h("small", {}, small) : null);

function confirmDialog(title, hint, what, action, run, done) {
  dialog(title, hint, [h("div", { class: "secret" }, h("code", {}, what))], action, async () => { await run(); if (done) toast(done); });
}

// It closes once its reader has said that the secret is kept: not by Escape, a click or a reload.
function secretDialog(title, what, secret) {
  const kept = h("input", { type: "checkbox", name: "kept", required: true });
  const copy = button("Copy", { class: "small" }, async () => {
    try { await navigator.clipboard.writeText(secret); copy.textContent = "Copied"; kept.checked = true; } catch { getSelection().selectAllChildren(code); }
  });
  const code = h("code", {}, secret);
  const el = dialog(title, what, [h("div", { class: "secret" }, code, copy), h("div", { class: "warn" }, "This is the only time it is shown. Keep it where secrets are kept."),
    h("label", { class: "check" }, kept, "I have kept it")], "Close");
  el.setAttribute("closedby", "none");
  el.addEventListener("cancel", (event) => event.preventDefault());
  el.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    if (kept.checked) el.close(); else kept.reportValidity();
  });
  const leave = (event) => event.preventDefault();
  addEventListener("beforeunload", leave);
  el.addEventListener("close", () => removeEventListener("beforeunload", leave));
}
function linkDialog(a) {
  const revoke = button("Revoke all links", { class: "small danger" }, () => attempt(null, async () => {
    const { revoked } = await ask("DELETE", at("accounts", a.id, "portal"));
    toast(revoked === 1 ? "Revoked 1 link" : `Revoked ${revoked} links`);
  }));
  dialog("A link for the owner", "It opens a page with this account's endpoints, deliveries, alerts, keys and calls, for an hour.", [h("div", {}, revoke)], "Make a link", async () => {
    const made = await ask("POST", at("accounts", a.id, "portal"), {});
    return () => secretDialog("The owner's link", `For ${a.business_name || a.id}, until ${stamp(made.expires_at)}:`, location.origin + made.path);
  });
}
function keyDialog(a) {
  dialog("Create a key", a.business_name || a.id, [
    field("Name", "One key for each integration.", h("input", { type: "text", name: "name", required: true, maxlength: "100", autofocus: true, placeholder: "CRM sync", autocomplete: "off" })),
    h("fieldset", {}, h("legend", {}, "Mode"), h("label", { class: "check" }, h("input", { type: "radio", name: "mode", value: "live", checked: true }), "Live: production data"), h("label", { class: "check" }, h("input", { type: "radio", name: "mode", value: "test" }), "Test: test data")),
    h("fieldset", {}, h("legend", {}, "Scopes"), h("label", { class: "check" }, h("input", { type: "checkbox", name: "scope", value: "account:read", checked: true }), h("span", { class: "mono" }, "account:read")), h("label", { class: "check" }, h("input", { type: "checkbox", name: "scope", value: "calls:read", checked: true }), h("span", { class: "mono" }, "calls:read"))),
    field("Expires", null, h("select", { name: "expires" }, h("option", { value: "" }, "never"), h("option", { value: "1" }, "in a minute"), h("option", { value: "1440" }, "in a day"), h("option", { value: "43200" }, "in 30 days"))),
  ], "Create key", async (data) => {
    const minutes = Number(data.get("expires"));
    const made = await ask("POST", at("accounts", a.id, "keys"), { name: data.get("name"), mode: data.get("mode"), scopes: data.getAll("scope"), expires_at: minutes ? new Date(clock() + minutes * 60000).toISOString() : null });
    return () => secretDialog("Key created", made.name, made.secret);
  });
}
function revokeDialog(k) {
  confirmDialog("Revoke this key?", "Requests with it are refused at once, for good.", k.name ? `${k.name} · ${k.hint}` : k.hint, "Revoke", () => ask("POST", at("keys", k.id, "revoke")), "Revoked");
}
function endpointDialog(a) {
  dialog("Add an endpoint", "Events of this account are delivered to it, signed.", [
    field("URL", "A public HTTPS address.", h("input", { type: "url", name: "url", required: true, autofocus: true, placeholder: "https://", autocomplete: "off" })),
    describing(""),
  ], "Add endpoint", async (data) => {
    const made = await ask("POST", at("accounts", a.id, "endpoints"), { url: data.get("url"), description: data.get("description") });
    return () => secretDialog("Endpoint added", "Its signing secret, for the receiver:", made.secret);
  });
}
const describing = (text) => field("Description", "At most 200 characters, for people.", h("input", { type: "text", name: "description", maxlength: "200", value: text, autocomplete: "off" }));
// Another URL begins a new life of the endpoint: only what has changed is sent.
function editDialog(e) {
  dialog("Edit this endpoint", "With another URL what is pending goes there, and failures are counted from zero. History stays.", [
    field("URL", "A public HTTPS address.", h("input", { type: "url", name: "url", required: true, autofocus: true, value: e.url, autocomplete: "off" })),
    describing(e.description ?? ""),
  ], "Save", async (data) => {
    const edit = {};
    if (data.get("url") !== e.url) edit.url = data.get("url");
    if (data.get("description") !== (e.description ?? "")) edit.description = data.get("description");
    if (Object.keys(edit).length) await ask("PATCH", at("endpoints", e.id), edit);
    toast("Saved");
  });
}
function rotateDialog(e) {
  dialog("Rotate the signing secret", e.url, [
    field("The previous secret", "Receivers accept either signature while both sign.", h("select", { name: "overlap" },
      h("option", { value: "86400" }, "signs, too, for a day"), h("option", { value: "3600" }, "signs, too, for an hour"), h("option", { value: "604800" }, "signs, too, for a week"), h("option", { value: "0" }, "stops now: it has leaked"))),
  ], "Rotate", async (data) => {
    const made = await ask("POST", at("endpoints", e.id, "rotate"), { overlap_seconds: Number(data.get("overlap")) });
    return () => secretDialog("Secret rotated", "The new signing secret, for the receiver:", made.secret);
  });
}
function deleteDialog(e) {
  confirmDialog("Delete this endpoint?", "Nothing is sent to it any more, and what is pending is not either. Its log is kept for thirty days.", e.url, "Delete", () => ask("DELETE", at("endpoints", e.id)), "Deleted");
}
function pauseDialog(e) {
  confirmDialog("Pause this endpoint?", "Nothing is sent to it before it is enabled again. What it misses is sent only when it is recovered.", e.url, "Pause", () => ask("POST", at("endpoints", e.id, "pause")), "Paused: nothing is sent to it");
}
// The count follows what is chosen, before anything is sent.
function recoverDialog(e) {
  const types = Object.keys(missed.get(e.id).by_type);
  const told = h("p", { class: "counted", role: "status" });
  const tell = (counted) => { told.textContent = `${counted.more ? "More than " : ""}${counted.count} ${counted.count === 1 ? "delivery" : "deliveries"}`; };
  const check = (name, value) => h("label", { class: "check" }, h("input", { type: "checkbox", name, value, checked: true }), h("span", { class: "mono" }, value));
  const time = (name, label) => field(label, null, h("input", { type: "text", name, placeholder: "YYYY-MM-DD HH:MM", spellcheck: "false", autocomplete: "off" }));
  const chosen = (data) => {
    const asked = {};
    for (const [name, label] of [["from", "From"], ["until", "Until"]]) if (data.get(name).trim()) asked[name] = moment(label, data.get(name));
    for (const [field, name, all] of [["types", "type", types], ["statuses", "status", MISSED]]) {
      const some = data.getAll(name);
      if (!some.length) throw new Error(`choose a ${name}`);
      if (some.length < all.length) asked[field] = some;
    }
    return asked;
  };
  const el = dialog("Recover what it missed", "Each gets one more attempt, a few at a time. A failure does not count against the endpoint.", [
    h("div", { class: "secret" }, h("code", {}, e.url)),
    h("fieldset", {}, h("legend", {}, "Types"), types.map((type) => check("type", type))),
    h("fieldset", { class: "several" }, h("legend", {}, "Statuses"), MISSED.map((status) => check("status", status))),
    h("div", { class: "pair" }, time("from", "From"), time("until", "Until")),
    told,
  ], "Recover", async (data) => {
    const started = await ask("POST", at("endpoints", e.id, "recover"), chosen(data));
    missed.delete(e.id);
    toast(`Recovering ${started.more ? "more than " : ""}${started.counted}`);
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
// A time of the reader's zone.
function moment(name, text) {
  const [, day, time] = /^\s*([12]\d{3}-\d\d-\d\d)(?:[ T](\d\d:\d\d))?\s*$/.exec(text) ?? [];
  const at = new Date(`${day}T${time ?? "00:00"}`);
  if (isNaN(at)) throw new Error(`${name}: expected a time such as 2026-11-22 14:03`);
  return at.toISOString();
}
function callDialog(a) {
  dialog("Record a call", "As if the assistant had just answered it. call.ended goes out.", [
    field("Caller", null, h("input", { type: "text", name: "name", autofocus: true, placeholder: "Ingrid Solberg", autocomplete: "off" })),
    field("Number", null, h("input", { type: "text", name: "number", placeholder: "+4722334455", autocomplete: "off" })),
    field("Summary", "Without one, the event waits until there is one.", h("input", { type: "text", name: "summary", value: "Asked for an appointment on Friday.", autocomplete: "off" })),
    field("Seconds", null, h("input", { type: "text", name: "seconds", value: "75", inputmode: "numeric", pattern: "[0-9]{1,5}", autocomplete: "off" })),
  ], "Record call", async (data) => {
    const seconds = Number(data.get("seconds") || 0);
    const call = await ask("POST", at("accounts", a.id, "calls"), {
      caller: { contact_id: null, phone_number: data.get("number") || null, display_name: data.get("name") || null },
      summary: data.get("summary") || null, duration_seconds: seconds });
    toast(call.event_id ? `Recorded; sent to ${call.deliveries.length} ${call.deliveries.length === 1 ? "endpoint" : "endpoints"}` : `Recorded without an event: ${call.not_emitted}`);
  });
}
const EXAMPLES = {
  "appointment.created": { object: { id: "appt_1", status: "booked" } }, "appointment.updated": { object: { id: "appt_1", status: "booked" } }, "appointment.cancelled": { object: { id: "appt_1", status: "cancelled" } },
  "contact.created": { object: { id: "cont_1", display_name: "Ingrid Solberg" } }, "contact.updated": { object: { id: "cont_1", display_name: "Ingrid Solberg" } },
  "usage.threshold_reached": { included_minutes: 400, used_minutes: 300 }, "ping": { message: "Hello." },
};
function emitDialog(a) {
  const data = h("textarea", { name: "data", spellcheck: "false", required: true });
  const type = h("input", { type: "text", name: "type", required: true, list: "types", value: "appointment.created", autofocus: true, autocomplete: "off" });
  const example = () => { if (EXAMPLES[type.value]) data.value = JSON.stringify(EXAMPLES[type.value], null, 2); };
  type.addEventListener("input", example); example();
  dialog("Emit an event", "To every endpoint of the account.", [
    field("Type", "Any type: receivers keep those they do not know.", type), h("datalist", { id: "types" }, Object.keys(EXAMPLES).map((t) => h("option", { value: t }))),
    field("Data", null, data),
  ], "Emit event", async (form) => {
    let value; try { value = JSON.parse(form.get("data")); } catch { throw new Error("data is not JSON"); }
    const event = await ask("POST", at("accounts", a.id, "events"), { type: form.get("type"), data: value });
    toast(`Emitted to ${event.deliveries.length} ${event.deliveries.length === 1 ? "endpoint" : "endpoints"}`);
  });
}
