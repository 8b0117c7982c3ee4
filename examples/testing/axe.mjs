// axe-core over what a browser shows: no violation at all, in light and dark, on a screen and on a phone.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

let source = null;
try {
  source = readFileSync(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
} catch {
  console.log("skipped: axe, because axe-core is not installed: npm ci --prefix examples/testing --ignore-scripts");
}

// Returns how many of the four ways to show it were checked: none without axe-core.
export async function audit({ page, run }, what) {
  if (source === null) return 0;
  let checked = 0;
  for (const width of [1280, 390]) {
    await page("Emulation.setDeviceMetricsOverride", { width, height: 800, deviceScaleFactor: 1, mobile: width < 500 });
    for (const scheme of ["light", "dark"]) {
      await page("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }, { name: "prefers-reduced-motion", value: "reduce" }] });
      // Colours that are on their way are none that anybody reads.
      await run(`Promise.all(document.getAnimations().map((animation) => animation.finished.catch(() => {})))`);
      await run(source + ";0");
      const found = await run(`axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations.map(({ id, impact, nodes }) => [id, impact, ...nodes.map(({ html, failureSummary }) => html.slice(0, 300) + " " + failureSummary)]))`);
      assert.deepEqual(found, [], `axe: ${what}, ${scheme}, ${width} px`);
      checked++;
    }
  }
  await page("Emulation.clearDeviceMetricsOverride");
  await page("Emulation.setEmulatedMedia", { features: [] });
  return checked;
}
