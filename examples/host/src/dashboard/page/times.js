// ---- Times ----
let skew = 0;
const clock = () => Date.now() + skew;
function ago(time) {
  const seconds = Math.round((clock() - Date.parse(time)) / 1000);
  const size = Math.abs(seconds);
  const say = (n, unit) => seconds >= 0 ? `${n} ${unit} ago` : `in ${n} ${unit}`;
  if (size < 2) return seconds >= 0 ? "just now" : "now";
  if (size < 60) return say(size, "s");
  if (size < 3600) return say(Math.round(size / 60), "min");
  if (size < 86400) return say(Math.round(size / 3600), "h");
  return say(Math.round(size / 86400), size < 129600 ? "day" : "days");
}
function when(time, none) {
  if (!time) return h("span", { class: "faint" }, none || "never");
  const el = h("time", { datetime: time, title: new Date(time).toLocaleString() }, ago(time));
  el.dataset.ago = time;
  return el;
}
setInterval(() => { for (const el of document.querySelectorAll("[data-ago]")) { const text = ago(el.dataset.ago); if (el.textContent !== text) el.textContent = text; } }, 1000);
