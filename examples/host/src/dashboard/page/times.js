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
// One format everywhere, with the reader's zone: 2026-11-22 14:03:22 UTC+1.
function stamp(time) {
  const at = new Date(time), two = (n) => String(n).padStart(2, "0");
  const east = -at.getTimezoneOffset(), size = Math.abs(east);
  const zone = "UTC" + (east ? (east > 0 ? "+" : "−") + Math.floor(size / 60) + (size % 60 ? ":" + two(size % 60) : "") : "");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())} ${zone}`;
}
function when(time, none) {
  if (!time) return h("span", { class: "faint" }, none || "never");
  return h("time", { datetime: time }, h("span", { "data-ago": time }, ago(time)), " ", h("span", { class: "stamp" }, stamp(time)));
}
setInterval(() => {
  if (held) return;
  for (const el of document.querySelectorAll("[data-ago]")) { const text = ago(el.dataset.ago); if (el.textContent !== text) el.textContent = text; }
}, 1000);
