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
const millis = (n) => n < 10000 ? `${n} ms` : `${(n / 1000).toFixed(1)} s`;
// One format everywhere, with the reader's zone: 2026-11-22 14:03:22 UTC+1.
function stamp(time) {
  const at = new Date(time), two = (n) => String(n).padStart(2, "0");
  const east = -at.getTimezoneOffset(), size = Math.abs(east);
  const zone = "UTC" + (east ? (east > 0 ? "+" : "−") + Math.floor(size / 60) + (size % 60 ? ":" + two(size % 60) : "") : "");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())} ${zone}`;
}
const minute = (time) => stamp(time).slice(11, 16);
// Below the line of its own day a time is seen without the day and the zone.
function when(time, line) {
  if (!time) return faint("never");
  const [day, at, zone] = stamp(time).split(" ");
  return h("time", { datetime: time }, h("span", { "data-ago": time }, ago(time)), " ",
    h("span.stamp", day === line ? [h("span.skip", day), " ", at, " ", h("span.skip", zone)] : `${day} ${at} ${zone}`));
}
// A line before the first row of each day, in a list of the newest first.
function byDay(rows, timeOf, draw, line) {
  let shown;
  return rows.flatMap((row) => {
    const [day, , zone] = stamp(timeOf(row)).split(" ");
    const lines = day < (shown ?? "9") ? [line({ class: "day", key: "day " + day }, `${new Date(timeOf(row)).toLocaleDateString("en-GB", { weekday: "long" })} ${day} ${zone}`)] : [];
    if (lines.length) shown = day;
    return [...lines, draw(row, shown)];
  });
}
const dayRow = (heads) => (props, text) => h("tr", props, h("th", { colspan: heads.length, scope: "rowgroup" }, text));
setInterval(() => {
  if (held) return;
  for (const el of document.querySelectorAll("[data-ago]")) { const text = ago(el.dataset.ago); if (el.textContent !== text) el.textContent = text; }
}, 1000);
