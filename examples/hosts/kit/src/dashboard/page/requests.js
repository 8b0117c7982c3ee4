// ---- The request of an attempt, as it was sent ----
const UNSHOWN = {
  secret_lost: () => "not shown: a signing secret is no longer stored",
  changed: (r) => `not shown: the sandbox fault ${r.fault} changed the request`,
  // Whoever reads it could send the request again.
  too_recent: (r) => `shown in ${many(Math.max(1, Math.ceil((Date.parse(r.signature_from) - clock()) / 60000)), "minute")}, when receivers reject it as too old`,
};
const lines = (r) => r.headers.map(([name, value]) => `${name}: ${value ?? (r.signature === "too_recent" ? `t=${r.t}` : "")}`).join("\n");
function requestOf(d, t) {
  const whole = details.get(d.id);
  const r = whole?.attempts.find((other) => other.began_at === t.began_at && other.number === t.number)?.request;
  if (!r) return null;
  const of = `${d.type} ${d.event_id}, ${t.by_hand ? "manual" : "attempt " + t.number}, ${t.began_at}`;
  const act = (key, text, run) => button(text, { key: `${key} ${d.id} ${t.began_at}`, of }, run);
  const why = UNSHOWN[r.signature]?.(r);
  return h("details", { key: `request ${d.id} ${t.began_at}`, open: t === d.attempts[d.attempts.length - 1] }, h("summary.faint", "Request"),
    h("pre", { tabindex: "0", "aria-label": `The request: ${of}` }, `POST ${whole.url}\n`, lines(r)),
    why && h("p.faint", "The signature is ", why, "."),
    h("p.faint", `Signed with the ${r.secrets.length === 1 ? "secret" : "secrets"} `, mono(r.secrets.join(", ")), " over a body with the SHA-256 ", h("span.mono.digest", whole.body_sha256)),
    h("div.row",
      act("copy", "Copy", () => copyText(lines(r))),
      act("curl", "Copy as curl", () => copyText(curl(whole, r))),
      r.signature === "shown" && act("explain", "Explain the signature", () => window.open("/explain#" + new URLSearchParams({ headers: lines(r), body: whole.body, now: r.t }), "_blank", "noopener"))));
}
const copied = (id) => [mono(faint(id)), " ", button("Copy", { key: "copy id " + id, class: "plain", of: id }, () => copyText(id))];
async function copyText(text) {
  try { await navigator.clipboard.writeText(text); toast("Copied"); } catch { toast("The browser does not allow copying", true); }
}
// The same request, signed anew where it is run: the secret is not in it.
function curl(d, r) {
  const quote = (text) => "'" + text.replaceAll("'", "'\\''") + "'";
  const signature = "x-service-signature";
  const fields = r.headers.filter(([name]) => name !== signature).map(([name, value]) => `  -H ${quote(`${name}: ${value}`)} \\\n`);
  return `# SECRET=whsec_...
body=${quote(d.body)}
t=$(date +%s)
v1=$(printf '%s.%s' "$t" "$body" | openssl dgst -sha256 -hmac "$SECRET" -r | cut -d ' ' -f 1)
curl -i ${quote(d.url)} \\
${fields.join("")}  -H "${signature}: t=$t,v1=$v1" \\\n  --data-binary "$body"
`;
}
