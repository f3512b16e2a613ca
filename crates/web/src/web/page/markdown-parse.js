// Owns the parser of Markdown: from a text to a tree, in linear time.

import { inline } from "./markdown-inline.js";

/** Characters of one text. */
const LONGEST_TEXT = 64 * 1024;
/** How deep lists, quotes and emphases lie in each other. */
const DEEPEST = 12;
/** Parts of one text; what follows is plain. */
const MOST_PARTS = 2_000;
/** Pieces of a text that grows. */
const MOST_PIECES = 400;
const MOST_COLUMNS = 30;
const MOST_ROWS = 300;

/**
 * The tree of a text. Inline parts are strings, or objects with a `kind` too.
 * @param {string} text
 * @returns {Array<{kind: string}>}
 */
export function parse(text) {
  return blocks(text.slice(0, LONGEST_TEXT).split("\n"), 0, { left: MOST_PARTS });
}

function blocks(lines, depth, budget) {
  const out = [];
  for (let at = 0; at < lines.length; ) {
    if (!lines[at].trim()) at += 1;
    else if (depth >= DEEPEST || budget.left <= 0) {
      out.push({ kind: "paragraph", inline: [lines.slice(at).join("\n")] });
      break;
    } else {
      budget.left -= 1;
      at = block(lines, at, depth, budget, out);
    }
  }
  return out;
}

/** Takes one block; returns the line behind it. */
function block(lines, at, depth, budget, out) {
  const text = lines[at];
  const fence = fenceOf(text);
  if (fence) return code(lines, at, fence, out);
  if (isRule(text)) return (out.push({ kind: "rule" }), at + 1);
  const level = levelOf(text);
  if (level) {
    let end = text.length;
    while (" #".includes(text[end - 1])) end -= 1;
    const words = text.slice(text.indexOf("#") + level, end).trim();
    return (out.push({ kind: "heading", level, inline: inline(words, budget) }), at + 1);
  }
  if (text[indentOf(text)] === ">") {
    const own = [];
    for (; at < lines.length && lines[at][indentOf(lines[at])] === ">"; at++) {
      const rest = lines[at].slice(indentOf(lines[at]) + 1);
      own.push(rest[0] === " " ? rest.slice(1) : rest);
    }
    return (out.push({ kind: "quote", blocks: blocks(own, depth + 1, budget) }), at);
  }
  if (markerOf(text)) return list(lines, at, depth, budget, out);
  if (isTable(lines, at)) return table(lines, at, budget, out);
  let end = at + 1;
  while (end < lines.length && lines[end].trim() && !begins(lines, end)) end += 1;
  out.push({ kind: "paragraph", inline: inline(lines.slice(at, end).join("\n").trimEnd(), budget) });
  return end;
}

/** Whether a line begins a block that ends a paragraph. */
function begins(lines, at) {
  const text = lines[at];
  if (fenceOf(text) || isRule(text) || levelOf(text) || text[indentOf(text)] === ">") return true;
  // A year at the begin of a line is no item.
  return (markerOf(text)?.number ?? 2) < 2 || isTable(lines, at);
}

function indentOf(text) {
  let at = 0;
  while (text[at] === " " || text[at] === "\t") at += 1;
  return at;
}

function fenceOf(text) {
  const indent = indentOf(text);
  const mark = text[indent];
  if (mark !== "`" && mark !== "~") return null;
  let end = indent;
  while (text[end] === mark) end += 1;
  const info = text.slice(end).trim();
  if (end - indent < 3 || info.includes("`")) return null;
  return { mark, indent, length: end - indent, info };
}

function closes(fence, text) {
  const it = fenceOf(text);
  return it && !it.info && it.mark === fence.mark && it.length >= fence.length;
}

function code(lines, at, fence, out) {
  const own = [];
  for (at += 1; at < lines.length && !closes(fence, lines[at]); at++)
    own.push(lines[at].slice(Math.min(fence.indent, indentOf(lines[at]))));
  out.push({ kind: "code", language: fence.info.split(" ", 1)[0], text: own.join("\n") });
  return at + 1;
}

function isRule(text) {
  const mark = text[indentOf(text)];
  if (mark !== "-" && mark !== "*" && mark !== "_") return false;
  let found = 0;
  for (const c of text) {
    if (c === mark) found += 1;
    else if (c !== " " && c !== "\t") return false;
  }
  return found >= 3;
}

function levelOf(text) {
  const begin = indentOf(text);
  let end = begin;
  while (text[end] === "#") end += 1;
  const level = end - begin;
  return level > 0 && level <= 6 && (text[end] === " " || end === text.length) ? level : 0;
}

/** The marker of a list's item: what it is made of, and where the content begins. */
function markerOf(text) {
  const indent = indentOf(text);
  let at = indent;
  while (at - indent < 9 && text[at] >= "0" && text[at] <= "9") at += 1;
  const number = at > indent ? Number(text.slice(indent, at)) : -1;
  const mark = text[at] ?? "";
  if (!(number < 0 ? "-*+" : ".)").includes(mark || "?")) return null;
  at += 1;
  if (at < text.length && text[at] !== " " && text[at] !== "\t") return null;
  const space = indentOf(text.slice(at, at + 6));
  return { indent, number, mark, content: at + (space > 4 ? 1 : Math.max(1, space)) };
}

function list(lines, at, depth, budget, out) {
  const first = markerOf(lines[at]);
  const node = { kind: "list", isOrdered: first.number >= 0, start: first.number, items: [] };
  for (let marker; at < lines.length && budget.left > 0; ) {
    marker = markerOf(lines[at]);
    if (marker?.mark !== first.mark || (node.items.length && isRule(lines[at]))) break;
    const own = [lines[at].slice(marker.content)];
    let isBlank = false;
    for (at += 1; at < lines.length; at++) {
      const indent = indentOf(lines[at]);
      const isOver = indent === lines[at].length;
      const isWithin = indent >= marker.content || (indent > marker.indent && markerOf(lines[at]));
      if (!isOver && !isWithin && (isBlank || markerOf(lines[at]) || begins(lines, at))) break;
      own.push(isOver ? "" : lines[at].slice(Math.min(indent, marker.content)));
      isBlank = isOver;
    }
    const box = own[0][0] === "[" && own[0][2] === "]" && own[0][3] === " " && own[0][1].toLowerCase();
    const isTask = box === " " || box === "x";
    if (isTask) own[0] = own[0].slice(4);
    budget.left -= 1;
    node.items.push({ done: isTask ? box === "x" : null, blocks: blocks(own, depth + 1, budget) });
  }
  out.push(node);
  return at;
}

/** The cells of a row; a bar behind a backslash is text. */
function cellsOf(text) {
  const cells = [];
  let cell = "";
  for (let at = 0; at < text.length; at++) {
    if (text[at] === "\\" && text[at + 1] === "|") ((cell += "|"), (at += 1));
    else if (text[at] === "|") (cells.push(cell.trim()), (cell = ""));
    else cell += text[at];
  }
  cells.push(cell.trim());
  if (!cells[0]) cells.shift();
  if (cells.length && !cells.at(-1)) cells.pop();
  return cells;
}

/** Whether a text is a cell of the line below a table's head: dashes, with colons for the side. */
function isDashes(cell) {
  const begin = cell[0] === ":" ? 1 : 0;
  const end = cell.length - (cell.length > 1 && cell.at(-1) === ":" ? 1 : 0);
  for (let at = begin; at < end; at++) if (cell[at] !== "-") return false;
  return end > begin;
}

function isTable(lines, at) {
  const below = lines[at + 1];
  if (!below?.includes("-") || !lines[at].includes("|") || !below.includes("|")) return false;
  const cells = cellsOf(below);
  const isFit = cells.length <= MOST_COLUMNS && cells.every(isDashes);
  return isFit && cellsOf(lines[at]).length === cells.length;
}

function table(lines, at, budget, out) {
  const sides = cellsOf(lines[at + 1]).map((it) =>
    it.at(-1) !== ":" ? "left" : it[0] === ":" ? "middle" : "right",
  );
  const row = (text) => {
    budget.left -= sides.length;
    const cells = cellsOf(text);
    return sides.map((_, n) => inline(cells[n] ?? "", budget));
  };
  const node = { kind: "table", sides, head: row(lines[at]), rows: [], more: 0 };
  for (at += 2; at < lines.length && lines[at].trim() && lines[at].includes("|"); at++) {
    if (node.rows.length < MOST_ROWS && budget.left > 0) node.rows.push(row(lines[at]));
    else node.more += 1;
  }
  out.push(node);
  return at;
}

/** Parts that are complete each by itself: they end at blank lines, outside of code and lists. */
export function partsOf(text) {
  const parts = [];
  let fence = null;
  let isBlank = false;
  let [from, at] = [0, 0];
  for (const it of text.split("\n")) {
    const isBegin = isBlank && !fence && parts.length < MOST_PIECES;
    if (isBegin && it.trim() && !indentOf(it) && !markerOf(it)) {
      parts.push(text.slice(from, at));
      from = at;
    }
    if (fence) fence = closes(fence, it) ? null : fence;
    else fence = fenceOf(it);
    isBlank = !it.trim();
    at += it.length + 1;
  }
  return [...parts, text.slice(from)];
}
