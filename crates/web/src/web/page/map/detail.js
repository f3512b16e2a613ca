// Owns what is known of the selected file: who was there, its symbols, and its calls.

import { button, fill, h } from "../dom.js";
import { ago, cut, line } from "../format.js";
import { pathOf } from "../graph.js";
import { agentName } from "../marks.js";

/** Entries of a list. */
const MOST_LISTED = 40;
/** Agents that were there. */
const MOST_TOUCHES = 20;

/**
 * @param {Element} el
 * @param {{path: string, file: import("../heat.js").HotFile | null, words: string[], symbols: Object[], calls: Object[]}} known
 * @param {(path: string | null) => void} pick
 */
export function drawDetail(el, { path, file, words, symbols, calls }, pick) {
  const lit = litSymbols(file);
  const call = (id) =>
    h(
      "li",
      null,
      button(line(id), () => pick(pathOf(id)), { class: "plain" }),
    );
  fill(
    el,
    h(
      "div",
      { class: "row" },
      h("h2", { class: "path" }, line(path)),
      h("span", { class: "grow" }),
      button("×", () => pick(null), { "aria-label": "Unselect" }),
    ),
    words.length > 0 &&
      h(
        "p",
        null,
        words.map((word) => [h("span", { class: "tag" }, word), " "]),
      ),
    file && h("ul", { class: "touches" }, file.touches.slice(0, MOST_TOUCHES).map(touch)),
    group(
      "Symbols",
      symbols.map((it) => symbol(it, lit)),
    ),
    group(
      "Calls",
      calls.filter((it) => it.isOut && it.path !== path).map((it) => call(it.to)),
    ),
    group(
      "Called by",
      calls.filter((it) => !it.isOut).map((it) => call(it.from)),
    ),
    h(
      "p",
      null,
      h("a", { class: "button", href: `#time/blame/${encodeURIComponent(path)}` }, "Who wrote it"),
    ),
  );
}

function touch(it) {
  const more = [`heat ${it.heat.toFixed(2)}`, it.inContext && "in context", it.origin && line(it.origin)]
    .filter(Boolean)
    .join(", ");
  return h("li", null, agentName(it.agent), ` ${line(it.action)} ${ago(it.at)}, ${more}`);
}

function symbol(it, lit) {
  const mark = lit.has(it.id) ? "▸ " : "";
  return h(
    "li",
    null,
    mark,
    h("code", null, cut(line(it.name), 80)),
    h("span", { class: "dim" }, ` ${line(it.kind)}, line ${it.from}`),
  );
}

function group(title, items) {
  if (!items.length) return null;
  return h(
    "details",
    { open: items.length <= 8 },
    h("summary", null, `${title} (${items.length})`),
    h("ul", null, items.slice(0, MOST_LISTED)),
  );
}

/** The symbols of a file that agents have in their context. */
export function litSymbols(file) {
  return new Set(file?.touches.flatMap((it) => it.symbols) ?? []);
}
