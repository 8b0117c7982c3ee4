// Everything shown is made of text nodes: nothing that came from a caller is ever read as HTML.
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

function h(tag, props, ...children) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [event, handler] of Object.entries(value)) el["on" + event] = handler;
    else if (name === "class") el.className = value;
    else el.setAttribute(name, value === true ? "" : value);
  }
  el.append(...children.flat(Infinity).filter((c) => c !== undefined && c !== null && c !== false).map((c) => c instanceof Node ? c : String(c)));
  return el;
}
function chevron() {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 12 12"); svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", "M4 2l4 4-4 4"); path.setAttribute("fill", "none");
  path.setAttribute("stroke", "currentColor"); path.setAttribute("stroke-width", "1.75");
  path.setAttribute("stroke-linecap", "round"); path.setAttribute("stroke-linejoin", "round");
  svg.append(path);
  return svg;
}
const badge = (text, kind) => h("span", { class: "badge " + (kind || "") }, text);
const button = (text, props, handler) => h("button", { type: "button", ...props, class: "btn " + (props?.class || ""), on: { click: handler } }, text);
function keyed(key, el) { el.dataset.key = key; return el; }
const card = (key, props, ...children) => keyed("card " + key, h("section", { class: "card", ...props }, ...children));

// ---- What is shown becomes what should be: what has not changed is not touched ----
const HANDLERS = ["onclick", "onchange", "oninput", "onkeydown"];
const keyOf = (node) => node.dataset?.key;
const alike = (old, next) => old.nodeName === next.nodeName && keyOf(old) === keyOf(next);

function patch(old, next) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== next.data) old.data = next.data;
    return;
  }
  for (const name of HANDLERS) if (old[name] !== next[name]) old[name] = next[name];
  for (const name of old.getAttributeNames()) if (!next.hasAttribute(name)) change(old, name, null);
  for (const name of next.getAttributeNames()) change(old, name, next.getAttribute(name));
  patchChildren(old, [...next.childNodes]);
}
function change(el, name, value) {
  // Whether details are open, and what is being typed, is the reader's.
  if (el.getAttribute(name) === value || (name === "open" && el.localName === "details")) return;
  const typing = name === "value" && el === document.activeElement && el.value !== el.defaultValue;
  value === null ? el.removeAttribute(name) : el.setAttribute(name, value);
  if (name === "value" && !typing) el.value = value ?? "";
  if (name === "checked" || name === "selected") el[name] = value !== null;
}
function patchChildren(old, wanted) {
  const keys = new Set(wanted.map(keyOf));
  for (const node of [...old.childNodes]) if (keyOf(node) && !keys.has(keyOf(node))) node.remove();
  const known = new Map([...old.childNodes].filter(keyOf).map((node) => [keyOf(node), node]));
  let at = old.firstChild;
  for (const next of wanted) {
    let have = known.get(keyOf(next));
    if (!keyOf(next)) for (have = at; have && !alike(have, next); ) have = keyOf(have) ? null : have.nextSibling;
    if (!have || !alike(have, next)) { old.insertBefore(next, at); continue; }
    // Those without a key keep their order: what stands before the one that stays is gone.
    if (!keyOf(next)) while (at !== have) { const gone = at; at = at.nextSibling; gone.remove(); }
    if (have === at) at = at.nextSibling; else old.moveBefore ? old.moveBefore(have, at) : old.insertBefore(have, at);
    patch(have, next);
  }
  while (at) { const gone = at; at = at.nextSibling; gone.remove(); }
}
