// As much of a page as `patch` touches, and a count of what it did there.

export class Page {
  writes = 0;

  createElement(tag) { return new Element(this, tag, "html"); }
  createElementNS(namespace, tag) { return new Element(this, tag, namespace); }
  createTextNode() { return new Text(this); }
}

class Child {
  parent = null;

  constructor(page) { this.ownerDocument = page; }

  get nextSibling() {
    const siblings = this.parent.childNodes;
    return siblings[siblings.indexOf(this) + 1] ?? null;
  }

  remove() {
    if (!this.parent) return;
    this.ownerDocument.writes += 1;
    this.parent.childNodes = this.parent.childNodes.filter((child) => child !== this);
    this.parent = null;
  }
}

class Text extends Child {
  #data = "";

  get data() { return this.#data; }
  set data(text) {
    this.ownerDocument.writes += 1;
    this.#data = text;
  }

  get outerHTML() { return this.#data; }
}

class Element extends Child {
  childNodes = [];
  attributes = new Map();

  constructor(page, tag, namespace) {
    super(page);
    this.tag = tag;
    this.namespaceURI = namespace;
  }

  get firstChild() { return this.childNodes[0] ?? null; }

  setAttribute(name, value) {
    this.ownerDocument.writes += 1;
    this.attributes.set(name, value);
  }

  removeAttribute(name) {
    this.ownerDocument.writes += 1;
    this.attributes.delete(name);
  }

  insertBefore(child, cursor) {
    if (child.parent) child.remove();
    this.ownerDocument.writes += 1;
    const at = cursor ? this.childNodes.indexOf(cursor) : this.childNodes.length;
    this.childNodes.splice(at, 0, child);
    child.parent = this;
  }

  get innerHTML() { return this.childNodes.map((child) => child.outerHTML).join(""); }

  get outerHTML() {
    const attributes = [...this.attributes].map(([name, value]) => ` ${name}="${value}"`).join("");
    return `<${this.tag}${attributes}>${this.innerHTML}</${this.tag}>`;
  }
}
