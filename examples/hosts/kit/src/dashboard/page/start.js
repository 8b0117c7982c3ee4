addEventListener("popstate", () => {
  if (portal && location.hash.startsWith("#link=")) return location.reload();
  const before = tab;
  if (follow()) return refresh(true);
  if (tab !== before) draw();
  look();
});
document.querySelector(".mark").src = document.querySelector("link").href;
// The fragment of an address is the account's.
for (const skip of document.querySelectorAll("button.skip")) skip.onclick = () => $(skip.dataset.to)?.focus();
// A page that comes back from the browser's memory may have been left before the log-out.
addEventListener("pageshow", (event) => { if (event.persisted) refresh(true); });
$("logout").onclick = logOut;
document.body.append(h("datalist", { id: "types" }, TYPES.map(([value]) => h("option", { value }))));
follow();
(async () => { for (;;) { if (!document.hidden) await refresh(); await new Promise((done) => setTimeout(done, 1000)); } })();
