// ---- Keys, unless somebody types or a dialog is open ----
const KEYS = {
  "/": [portal ? "Search deliveries and events" : "Search accounts, deliveries and events", () => search.focus()],
  j: ["Next delivery", () => step(1)],
  k: ["Previous delivery", () => step(-1)],
  x: ["Select the delivery, to redeliver it", () => document.activeElement?.closest("tr")?.querySelector(".choose")?.click()],
  "?": ["Show this list", () => dialog("Keyboard shortcuts", "Enter opens and closes a delivery.", [facts(Object.entries(KEYS).map(([key, [what]]) => [h("kbd", key), what]))], "Close")],
};
function step(by) {
  show("deliveries");
  const rows = [...document.querySelectorAll('[data-key="card deliveries"] .expand')];
  const now = rows.indexOf(document.activeElement?.closest("tr")?.querySelector(".expand"));
  const next = rows[now < 0 ? 0 : now + by];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}
addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input:not([type=checkbox]), select, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat && event.key === "?" || locked || typing || document.querySelector("dialog[open]")) return;
  if (!Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key][1]();
});
