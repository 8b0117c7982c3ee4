// ---- Keys, unless somebody types or a dialog is open ----
const BY_ID = ["Find deliveries by id", () => { show("deliveries"); document.querySelector('[data-key="filter id"]')?.focus(); }];
const KEYS = {
  "/": portal ? BY_ID : ["Search accounts", () => $("search").focus()],
  f: BY_ID,
  j: ["Next delivery", () => step(1)],
  k: ["Previous delivery", () => step(-1)],
  x: ["Select the delivery, to redeliver it", () => document.activeElement?.closest("tr")?.querySelector(".choose")?.click()],
  "?": ["This list", () => dialog("Keys", "Enter opens a delivery and closes it.", [h("dl", { class: "keys" }, Object.entries(KEYS).map(([key, [what]]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)]))], "Close")],
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
