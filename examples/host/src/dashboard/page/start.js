addEventListener("popstate", () => follow() ? refresh(true) : look());
// A page that comes back from the browser's memory may have been left before the log-out.
addEventListener("pageshow", (event) => { if (event.persisted) refresh(true); });
$("logout").onclick = logOut;
follow();
(async () => { await meet().catch(() => {}); for (;;) { if (!document.hidden) await refresh(); await new Promise((done) => setTimeout(done, 1000)); } })();
