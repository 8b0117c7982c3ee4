// ---- The request of an attempt, as it was sent ----
const UNSHOWN = {
  secret_lost: () => "not shown: a secret that signed is no longer kept",
  changed: (r) => `not shown: the sandbox fault ${r.fault} changed the request`,
  // Whoever reads it could send the request again.
  too_recent: (r) => `shown in ${minutes(Date.parse(r.signature_from) - clock())}, when no receiver accepts it`,
};
function minutes(ms) {
  const left = Math.max(1, Math.ceil(ms / 60000));
  return left === 1 ? "1 minute" : `${left} minutes`;
}
const lines = (r) => r.headers.map(([name, value]) => `${name}: ${value ?? (r.signature === "too_recent" ? `t=${r.t}` : "")}`).join("\n");
function requestOf(d, t) {
  const whole = details.get(d.id);
  const r = whole?.attempts.find((other) => other.began_at === t.began_at && other.number === t.number)?.request;
  if (!r) return null;
  const name = `${d.type} ${d.event_id}, ${t.by_hand ? "by hand" : "attempt " + t.number}, ${t.began_at}`;
  const act = (key, text, run) => keyed(`${key} ${d.id} ${t.began_at}`, button(text, { class: "small", "aria-label": `${text}: ${name}` }, run));
  const why = UNSHOWN[r.signature]?.(r);
  return keyed(`request ${d.id} ${t.began_at}`, h("details", {}, h("summary", { class: "faint" }, "Request"),
    h("pre", { class: "fields", tabindex: "0", "aria-label": `Header fields of the request: ${name}` }, lines(r)),
    why ? h("p", { class: "faint" }, "The signature is ", why, ".") : null,
    h("p", { class: "faint" }, `Signed with ${r.secrets.length === 1 ? "the secret" : "the secrets"} `, h("span", { class: "mono" }, r.secrets.join(", ")), " over a body with the SHA-256 ", h("span", { class: "mono digest" }, whole.body_sha256)),
    h("div", { class: "row" },
      act("copy", "Copy", () => copyText(lines(r))),
      act("curl", "Copy as curl", () => copyText(curl(whole, r))),
      r.signature === "shown" ? act("explain", "Explain this", () => window.open("/explain#" + new URLSearchParams({ headers: lines(r), body: whole.body, now: r.t }), "_blank", "noopener")) : null)));
}
async function copyText(text) {
  try { await navigator.clipboard.writeText(text); toast("Copied"); } catch { toast("The browser does not let this page copy", true); }
}
// The same request, signed anew where it is run: the secret is not in it.
function curl(d, r) {
  const quoted = (text) => "'" + text.replaceAll("'", "'\\''") + "'";
  const signature = "x-service-signature";
  const fields = r.headers.filter(([name]) => name !== signature).map(([name, value]) => `  -H ${quoted(`${name}: ${value}`)} \\\n`);
  return `# SECRET=whsec_...
body=${quoted(d.body)}
t=$(date +%s)
v1=$(printf '%s.%s' "$t" "$body" | openssl dgst -sha256 -hmac "$SECRET" -r | cut -d ' ' -f 1)
curl -i ${quoted(d.url)} \\
${fields.join("")}  -H "${signature}: t=$t,v1=$v1" \\\n  --data-binary "$body"
`;
}
