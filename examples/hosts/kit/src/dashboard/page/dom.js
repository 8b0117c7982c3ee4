// Everything shown is made of text nodes: nothing that came from a caller is ever read as HTML.
const $ = (id) => document.getElementById(id);

// h("td.end", { key: "row 1", onclick: run }, "text", [nodes], null): classes, properties, and what is inside.
function h(name, ...inside) {
  const [tag, ...classes] = name.split(".");
  const el = ["svg", "path"].includes(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  const { key, class: more, ...props } = inside[0]?.constructor === Object ? inside.shift() : {};
  if (more) classes.push(more);
  if (classes.length) el.setAttribute("class", classes.join(" "));
  if (key) el.dataset.key = key;
  for (const [name, value] of Object.entries(props)) {
    if (typeof value === "function") el[name] = value;
    else if ((value ?? false) !== false) el.setAttribute(name, value === true ? "" : value);
  }
  el.append(...inside.flat(Infinity).filter((one) => (one ?? false) !== false));
  return el;
}
const icon = (d) => h("svg", { viewBox: "0 0 12 12", "aria-hidden": "true" }, h("path", { d }));
const faint = (...inside) => h("span.faint", inside);
const mono = (...inside) => h("span.mono", inside);
const badge = (text, kind) => h("span.badge", { class: kind }, text);
// Its name says what it is done to, too.
const button = (text, { of, ...props }, run) => h("button.btn", { type: "button", "aria-label": of && `${text}: ${of}`, ...props, onclick: run }, text);
const select = (props, values, chosen) => h("select", props, values.map(([value, text]) => h("option", { value, selected: value === chosen }, text ?? value)));
const pager = (...inside) => h("div.row.pager", inside);
const empty = (title, ...text) => h("div.empty", title && h("b", title), text);
const facts = (pairs) => h("dl.keys", pairs.map(([name, value]) => [h("dt", name), h("dd", value)]));
const number = (n) => n.toLocaleString("en");
const many = (n, one, more = one + "s") => `${number(n)} ${n === 1 ? one : more}`;
const moreThan = ({ more }) => more ? "more than " : "";
function card(name, title, hint, actions, ...inside) {
  const id = "h-" + name;
  return h("section.card", { key: "card " + name, "aria-labelledby": id }, h("header", h("div", h("h2", { id }, title), hint && h("p", hint)), actions),
    unread[name]?.length > 0 && h("p.faint", { role: "alert" }, `${many(unread[name].length, "row")} cannot be read: ${unread[name].join(", ")}`), inside);
}
const entitle = (name) => { document.title = name + " · Call Assistant"; };
const hash = (id) => "#" + encodeURIComponent(id);
const titleOf = (a) => a.business_name || "No business name";
const accountCell = (key, id, a, tab = "") => h("div.two", h("a.strong.clip", { key, href: hash(id) + tab, title: titleOf(a) }, titleOf(a)), mono(faint(id)));
// A row is a card on a phone, where each cell has the label of its column.
const ACTIONS = "Actions";
const table = (name, heads, rows) => h("div.scroll", h("table", { "aria-labelledby": "h-" + name },
  h("thead", h("tr", heads.map((head) => h("th", { scope: "col" }, head === ACTIONS ? h("span.skip", head) : head)))), h("tbody", rows)));
const row = (heads, props, ...cells) => h("tr", props, cells.map((cell, n) => heads[n] === ACTIONS ? h("td.end", cell) : h("td", { "data-label": n > 0 && heads[n] }, cell)));

// ---- What is shown becomes what should be: what has not changed is not touched ----
const HANDLERS = ["onclick", "onchange", "onkeydown"];
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
  const skip = () => { const gone = at; at = at.nextSibling; gone.remove(); };
  for (const next of wanted) {
    let have = known.get(keyOf(next));
    if (!keyOf(next)) for (have = at; have && !alike(have, next); ) have = keyOf(have) ? null : have.nextSibling;
    if (!have || !alike(have, next)) { old.insertBefore(next, at); continue; }
    // Those without a key keep their order: what stands before the one that stays is gone.
    if (!keyOf(next)) while (at !== have) skip();
    if (have === at) at = at.nextSibling; else old.moveBefore ? old.moveBefore(have, at) : old.insertBefore(have, at);
    patch(have, next);
  }
  while (at) skip();
}
