// Plain nodes, drawn twice: as text for tests and fallbacks, as a patch of a live element.
//
// A node is what `h` returns, or a string. Siblings are told apart by `key`; a node whose `memo`
// is unchanged is not looked into. Neither is written to the page.

const SVG = "http://www.w3.org/2000/svg";
const VOID = new Set(["br", "col", "hr", "img", "input"]);
const drawn = new WeakMap(); // element or text on the page -> { name, node } that it shows

/** Describe an element. Children that are null, undefined or false are left out. */
export function h(tag, attrs, ...children) {
  const nodes = children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false);
  return { tag, attrs: attrs ?? {}, children: nodes.map((c) => (typeof c === "object" ? c : String(c))) };
}

/** Make text harmless between tags and inside a quoted attribute. */
export function escapeHtml(text) {
  return text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
}

/** Write nodes as an HTML string. */
export function toHtml(...nodes) {
  return nodes.flat().map((node) => {
    if (typeof node === "string") return escapeHtml(node);
    const attrs = written(node).map(([name, value]) => ` ${name}="${escapeHtml(value)}"`).join("");
    const open = `<${node.tag}${attrs}>`;
    return VOID.has(node.tag) ? open : `${open}${toHtml(...node.children)}</${node.tag}>`;
  }).join("");
}

/** Make the children of `parent` show `nodes`, touching only what differs. */
export function patch(parent, nodes) {
  const names = nodes.map(nameOf);
  const wanted = new Set(names);
  const old = new Map();
  // What goes, goes first: then what stays is already in order, is not moved, and keeps its focus.
  for (const child of [...parent.childNodes]) {
    const name = drawn.get(child)?.name;
    if (wanted.has(name) && !old.has(name)) old.set(name, child);
    else child.remove();
  }
  let cursor = parent.firstChild;
  nodes.forEach((node, i) => {
    const child = old.get(names[i]) ?? create(parent, node);
    if (child === cursor) cursor = cursor.nextSibling;
    else parent.insertBefore(child, cursor);
    update(child, node, drawn.get(child)?.node);
    drawn.set(child, { name: names[i], node });
  });
}

function nameOf(node, index) {
  return typeof node === "string" ? `#${index}` : `${node.tag} ${node.attrs.key ?? index}`;
}

function create(parent, node) {
  const page = parent.ownerDocument;
  if (typeof node === "string") return page.createTextNode(node);
  const inSvg = node.tag === "svg" || parent.namespaceURI === SVG;
  return inSvg ? page.createElementNS(SVG, node.tag) : page.createElement(node.tag);
}

function update(child, node, before) {
  if (typeof node === "string") {
    if (before !== node) child.data = node;
    return;
  }
  if (before && node.attrs.memo !== undefined && node.attrs.memo === before.attrs.memo) return;
  const now = new Map(written(node));
  const then = new Map(before ? written(before) : []);
  for (const [name, value] of now) if (then.get(name) !== value) child.setAttribute(name, value);
  for (const name of then.keys()) if (!now.has(name)) child.removeAttribute(name);
  patch(child, node.children);
}

/** The attributes that reach the page: `true` is written as "", `false` and null not at all. */
function written(node) {
  return Object.entries(node.attrs)
    .filter(([name, value]) => name !== "key" && name !== "memo" && value !== false && value !== null && value !== undefined)
    .map(([name, value]) => [name, value === true ? "" : String(value)]);
}

/** Draw a view's state into `root` once a frame at most; `view` is what it keeps between frames. */
export function mountDrawn(root, bus, view, draw) {
  const window = root.ownerDocument.defaultView;
  let state = null;
  let frame = 0;

  function paint() {
    frame = 0;
    patch(root, draw(state, view));
  }

  function redraw() {
    if (!frame) frame = window.requestAnimationFrame(paint);
  }

  const unwatch = bus.watch("stale", (value) => {
    view.stale = value;
    redraw();
  });
  paint();
  return {
    take(next) {
      state = next;
      redraw();
    },
    unmount() {
      unwatch();
      window.cancelAnimationFrame(frame);
    },
  };
}
