addEventListener("popstate", () => follow() ? refresh(true) : look());
follow();
(async () => { for (;;) { if (!document.hidden) await refresh(); await new Promise((done) => setTimeout(done, 1000)); } })();
