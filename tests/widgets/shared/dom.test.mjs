import assert from "node:assert/strict";
import { test } from "node:test";

import { h, patch, toHtml } from "../../../widgets/shared/dom.js";
import { Page } from "../page.mjs";

const list = (...names) => [h("ul", {}, names.map((name) => h("li", { key: name }, name)))];

function drawn(nodes) {
  const page = new Page();
  const root = page.createElement("main");
  patch(root, nodes);
  return { page, root };
}

test("text and attributes are escaped", () => {
  const node = h("p", { title: '"><script>' }, "<b>&");
  assert.equal(toHtml(node), '<p title="&#34;&#62;&#60;script&#62;">&#60;b&#62;&#38;</p>');
});

test("absent attributes and children are left out, keys and memos are not written", () => {
  const node = h("p", { key: 1, memo: "m", hidden: true, id: null, lang: false, role: undefined }, null, false, 0, [["a"]]);
  assert.equal(toHtml(node), '<p hidden="">0a</p>');
});

test("void elements have no end tag", () => {
  assert.equal(toHtml(h("input", { type: "search" })), '<input type="search">');
});

test("a patch shows what the string shows", () => {
  const nodes = [h("p", { class: "a" }, "one ", h("b", {}, "two")), ...list("x", "y")];
  assert.equal(drawn(nodes).root.innerHTML, toHtml(...nodes));
});

test("a patch with the same nodes writes nothing", () => {
  const { page, root } = drawn(list("a", "b"));
  page.writes = 0;
  patch(root, list("a", "b"));
  assert.equal(page.writes, 0);
});

test("only the text that changed is written", () => {
  const { page, root } = drawn([h("p", { id: "a" }, "1"), h("p", { id: "b" }, "2")]);
  page.writes = 0;
  patch(root, [h("p", { id: "a" }, "1"), h("p", { id: "b" }, "3")]);
  assert.equal(page.writes, 1);
  assert.equal(root.innerHTML, '<p id="a">1</p><p id="b">3</p>');
});

test("an attribute that is gone is removed", () => {
  const { root } = drawn([h("p", { id: "a", hidden: true })]);
  patch(root, [h("p", { id: "a" })]);
  assert.equal(root.innerHTML, '<p id="a"></p>');
});

test("elements that stay are neither made anew nor moved when others come and go", () => {
  const { page, root } = drawn(list("a", "b", "c", "d"));
  const [ul] = root.childNodes;
  const [, b, , d] = ul.childNodes;
  page.writes = 0;
  patch(root, list("b", "new", "d", "e"));
  assert.equal(root.innerHTML, toHtml(...list("b", "new", "d", "e")));
  assert.equal(ul.childNodes[0], b);
  assert.equal(ul.childNodes[2], d);
  assert.equal(page.writes, 2 + 2 * 3); // two removed; two inserted, each with its text
});

test("any order becomes any other", () => {
  const orders = ["abcde", "edcba", "caebd", "b", "", "axbyc"];
  const { root } = drawn(list());
  for (const order of orders) {
    patch(root, list(...order));
    assert.equal(root.innerHTML, toHtml(...list(...order)));
  }
});

test("another tag under the same key is another element", () => {
  const { root } = drawn([h("p", { key: "k" }, "text")]);
  patch(root, [h("b", { key: "k" }, "text")]);
  assert.equal(root.innerHTML, "<b>text</b>");
});

test("a node with the same memo is not looked into", () => {
  const { root } = drawn([h("p", { memo: "same" }, "before")]);
  patch(root, [h("p", { memo: "same" }, "after")]);
  assert.equal(root.innerHTML, "<p>before</p>");
  patch(root, [h("p", { memo: "other" }, "after")]);
  assert.equal(root.innerHTML, "<p>after</p>");
});

test("what is inside an svg is made as svg", () => {
  const { root } = drawn([h("svg", {}, h("g", {}, h("path", {}))), h("p")]);
  const [svg, p] = root.childNodes;
  const path = svg.childNodes[0].childNodes[0];
  assert.equal(path.namespaceURI, "http://www.w3.org/2000/svg");
  assert.equal(p.namespaceURI, "html");
});
