// ---- One search: accounts by the beginning of an id or by words of a name, deliveries by their ids, events' or endpoints' ----
const search = $("search");
let accounts = [], accountPages = 1, moreAccounts = null, isFinding = false, active = 0, typed;
async function readAccounts() {
  if (portal) { accounts = [await ask("GET", at("accounts", own))]; return; }
  const typed = () => isId() ? "" : search.value.trim(), begins = typed();
  const { rows, next } = await readPages(accountPages, (after) => ask("GET", "/accounts?" + new URLSearchParams({ search: begins, after, limit: 50 })));
  // What was typed later is not replaced by what was found earlier.
  if (begins !== typed()) return;
  accounts = rows; moreAccounts = next;
  if (!begins) $("count").textContent = next ? `${rows.length}+ accounts` : many(rows.length, "account");
}
const isId = () => /^(evt|dlv|whep)_\S+$/.test(search.value.trim());
function clearSearch() {
  if (!search.value) return;
  search.value = "";
  readAccounts().then(() => { drawFound(); draw(); }, fail);
}
const noAccount = () => `No account matches ${search.value.trim()}`;
// What the list offers: a key, what it says, and what is done.
function offers() {
  const id = search.value.trim();
  return [...(isId() ? [["id", ["Deliveries of ", mono(id)], () => goTo(id)]] : []),
    ...(portal ? [] : accounts.map((a) => {
      const mark = a.unreadable ? badge("cannot be read", "bad") : standing(a)[1] !== "good" && badge(...standing(a));
      return ["account " + a.id, [h("span", titleOf(a)), mono(a.id), mark, a.id === selected && badge("shown", "info")], () => choose(a.id)];
    })),
    ...(moreAccounts && !portal ? [["more", ["More accounts"], () => { accountPages++; return readAccounts(); }]] : [])];
}
function drawFound() {
  const list = offers();
  active = Math.max(0, Math.min(active, list.length - 1));
  $("find").hidden = locked;
  $("found").hidden = !isFinding;
  search.ariaExpanded = String(isFinding);
  if (isFinding && list.length) search.setAttribute("aria-activedescendant", "found-" + active);
  else search.removeAttribute("aria-activedescendant");
  const none = portal ? "Type the full id of an event or a delivery." : noAccount();
  patchChildren($("found"), list.length ? list.map(([key, says, run], n) =>
    h("li", { key, id: "found-" + n, role: "option", "aria-selected": String(n === active), onclick: () => take(n) }, says)) : [h("li.faint", { role: "option", "aria-disabled": "true" }, none)]);
  if (isFinding) $("found-" + active)?.scrollIntoView({ block: "nearest" });
}
function findIn(yes) {
  isFinding = yes;
  active = Math.max(0, offers().findIndex(([key]) => key === "account " + selected));
  drawFound();
}
async function take(n) {
  const [key, , run] = offers()[n] ?? [];
  if (!run) return;
  try {
    if (key !== "more") { search.value = ""; search.blur(); }
    await run();
    if (key !== "more") await readAccounts();
    drawFound();
  } catch (error) { fail(error); }
}
// A delivery and an endpoint tell their account; an event is looked for in the account that is shown.
async function goTo(id) {
  const kind = { d: "deliveries", w: "endpoints" }[id[0]], of = kind ? (await ask("GET", at(kind, id))).account_id : selected;
  if (!of) throw new Error("open the event’s account first");
  location.hash = hash(of) + "?" + new URLSearchParams(id[0] === "w" ? { endpoint: id } : kind ? { id, open: id } : { id });
}
search.onfocus = search.onclick = () => findIn(true);
search.onblur = () => findIn(false);
$("found").onmousedown = (event) => event.preventDefault();
search.oninput = () => {
  active = 0;
  isFinding = true;
  drawFound();
  clearTimeout(typed);
  typed = setTimeout(async () => {
    accountPages = 1;
    try { await readAccounts(); active = 0; drawFound(); } catch (error) { fail(error); }
  }, 150);
};
search.onkeydown = (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (by && !isFinding) findIn(true);
  else if (by) { active += by; drawFound(); }
  else if (event.key === "Enter") take(active);
  else if (event.key === "Escape" && isFinding) { findIn(false); clearSearch(); }
  else return;
  event.preventDefault();
};
