addEventListener("hashchange", () => { const id = fromHash(); if (id) choose(id); });
(async () => { for (;;) { if (!document.hidden) await refresh(); await new Promise((done) => setTimeout(done, 1000)); } })();
