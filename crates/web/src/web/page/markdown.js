// Owns how Markdown of agents is shown: the nodes of a tree. Text never becomes HTML.

import { codeBlock } from "./code.js";
import { sure } from "./dialog.js";
import { h } from "./dom.js";
import { counted, line, plain } from "./format.js";
import { icon } from "./icons.js";
import { parse, partsOf, urlOf } from "./markdown-parse.js";

/** The nodes of a text; `app` asks the server for the colours of code. */
export function markdown(text, app) {
  const el = h("div", { class: "md-part" }, parse(plain(text)).map((it) => nodeOf(it, app)));
  el.normalize();
  return el;
}

/** What each element shows: the source and the node of each of its parts. */
const shown = new WeakMap();

/** Shows a text that grows: what is complete stays as it is, with the reader's selection. */
export function grow(el, text, app) {
  const before = shown.get(el) ?? [];
  const parts = partsOf(text).map((source, at) => {
    if (before[at]?.source === source) return before[at];
    const part = { source, node: markdown(source, app) };
    if (before[at]) before[at].node.replaceWith(part.node);
    else el.append(part.node);
    return part;
  });
  for (const { node } of before.slice(parts.length)) node.remove();
  shown.set(el, parts);
}

/** The node of a block. */
function nodeOf(it, app) {
  const within = (list) => list.map((child) => nodeOf(child, app));
  switch (it.kind) {
    case "heading":
      // A message is no page: its heads are small.
      return h("h3", { class: `level-${Math.min(it.level, 3)}` }, words(it.inline));
    case "code":
      return codeBlock(app, it.language, it.text);
    case "quote":
      return h("blockquote", null, within(it.blocks));
    case "rule":
      return h("hr");
    case "list":
      return h(
        it.isOrdered ? "ol" : "ul",
        { start: it.isOrdered && it.start !== 1 ? it.start : null },
        it.items.map(({ done, blocks: own }) =>
          done === null
            ? h("li", null, within(own))
            : h("li", { class: "task" }, boxOf(done), h("div", null, within(own))),
        ),
      );
    case "table":
      return tableOf(it);
    default:
      return h("p", null, words(it.inline));
  }
}

const boxOf = (done) => icon(done ? "box-checked" : "box", done ? "done" : "open");

function tableOf({ sides, head, rows, more }) {
  const row = (name, cells) => h("tr", null, cells.map((it, at) => h(name, { class: `to-${sides[at]}` }, words(it))));
  const body = rows.map((it) => row("td", it));
  return h(
    "div",
    { class: "scroll-x", tabindex: "0", role: "group", "aria-label": "Table" },
    h("table", null, h("thead", null, row("th", head)), h("tbody", null, body)),
    more > 0 && h("p", { class: "dim small" }, counted(more, "more row")),
  );
}

/** The nodes of inline parts; a link in a link is its text. */
function words(list, isLink = false) {
  return list.map((it) => {
    if (typeof it === "string") return it;
    if (it.kind === "code") return h("code", null, it.text);
    if (it.kind !== "link") return h(it.kind, null, words(it.children, isLink));
    return isLink ? words(it.children, true) : link(it.address, words(it.children, true));
  });
}

/** A link that shows its whole address before it is followed. */
export function link(address, children) {
  const { href } = urlOf(address);
  const leave = (event) => {
    event.preventDefault();
    ask(href);
  };
  // The middle button opens links without a click.
  const auxclick = (event) => event.button === 1 && leave(event);
  const props = { href, title: href, rel: "noopener noreferrer", target: "_blank" };
  return h("a", { ...props, on: { click: leave, auxclick } }, children);
}

async function ask(href) {
  const { host, username, password, protocol } = new URL(href);
  const place = h("strong", null, line(host));
  const warn = (...text) => h("p", { class: "warn" }, icon("warn"), " ", text);
  const yes = await sure(
    "This leaves the page. Open this address?",
    "Open",
    h("p", { class: "address" }, line(href)),
    h("p", { class: "host" }, "It leads to ", place, protocol === "http:" && ", not encrypted", "."),
    (username || password) && warn("Only what stands behind the @ is a place."),
    host.includes("xn--") && warn("Its name has letters that may look like others."),
  );
  if (yes) window.open(href, "_blank", "noopener,noreferrer");
}
