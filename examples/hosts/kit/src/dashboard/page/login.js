// ---- Logging in: nothing that was shown stays, and the address says where to go on ----
let locked = false;
// The owner's page: its account, and what it sends with each request. An operator's has neither.
const portal = location.pathname === "/portal";
let pass = null, own = null;
function lock() {
  locked = true; accounts = []; tag = null;
  forget();
  search.value = "";
  drawFound();
  entitle("Log in");
  document.body.classList.remove("stale");
  $("logout").hidden = true;
  $("live").classList.add("off");
  $("live-text").textContent = "Logged out";
  pass = null;
  if (portal) return notice("You are not logged in", "The link has expired or was revoked, or you have logged out. Ask for a new link.");
  const token = h("input", { type: "password", name: "token", required: true, autocomplete: "current-password" });
  const form = formOf("form.card.login", [h("h1", "Log in"),
    h("input", { type: "text", name: "username", value: "operator", autocomplete: "username", hidden: true }),
    field("The operator's token", "You stay logged in for an hour.", token)], null, "Log in", async () => {
    await ask("POST", "/login", { token: token.value }).catch((error) => { token.select(); throw error; });
    locked = false;
    $("main").replaceChildren();
    await meet();
    await refresh(true);
  });
  $("main").replaceChildren(form);
  if (!document.querySelector("dialog[open]")) token.focus();
}
async function logOut() {
  try { await ask("DELETE", portal ? "/portal-login" : "/login"); } catch (error) { return fail(error); }
  lock();
  if (!portal) location.replace("/");
}
let met = portal;
async function meet() {
  const { required } = await ask("GET", "/login");
  met = true;
  $("kind").textContent = required ? "operator" : "local service";
  $("logout").hidden = locked || !required;
}
// The link's secret goes from the address at once.
let link = portal ? new URLSearchParams(location.hash.slice(1)).get("link") : null;
async function meetOwner() {
  if (link) history.replaceState(null, "", location.pathname);
  $("kind").textContent = "owner";
  $("count").textContent = "";
  search.placeholder = "Find evt_… or dlv_…";
  $("home").removeAttribute("href");
  document.querySelector(".top > a[href]").target = "_blank";
  const login = link ? await ask("POST", "/portal-login", { link }) : await ask("GET", "/portal-login");
  if (link) history.replaceState(null, "", hash(login.account_id));
  link = null; pass = login.token; own = login.account_id;
  $("logout").hidden = false;
  follow();
}
