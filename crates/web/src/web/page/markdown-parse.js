// Owns the parser of Markdown: from a text to a tree, in linear time.

/** Characters of one text, and of an address. */
const LONGEST_TEXT = 64 * 1024;
const LONGEST_ADDRESS = 2_048;
/** How deep lists, quotes and emphases lie in each other. */
const DEEPEST = 12;
/** Parts of one text; what follows is plain. */
const MOST_PARTS = 2_000;
/** Of these, those within one paragraph, heading or cell: a page draws them all again while it grows. */
const MOST_WITHIN = 300;
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

const isSpace = (c) => c === undefined || c === " " || c === "\n" || c === "\t";
const isMark = (c) => c !== undefined && /[!-/:-@[-`{-~\u2010-\u2027]/.test(c);

/** The parts of a text within a block. */
function inline(text, budget) {
  /** What is done; a mark that may begin something is an object until its end is found. */
  const out = [];
  /** Marks that may begin something; the oldest is let go of, so that the depth has a bound. */
  const open = [];
  const ticks = ticksOf(text);
  const least = Math.max(0, budget.left - MOST_WITHIN);
  let [from, at] = [0, 0];
  const flush = () => {
    if (from < at) out.push(text.slice(from, at));
    from = at;
  };
  const put = (node, to) => {
    flush();
    out.push(node);
    budget.left -= 1;
    at = from = to;
    return node;
  };
  const begin = (mark, length, to) => {
    const node = put({ mark, text: text.slice(at, to) }, to);
    open.push({ mark, length, node, place: out.length - 1, source: to });
    if (open.length > DEEPEST) open.shift();
  };
  const wrap = (top, kind) => ({ kind, children: settled(out.splice(top.place + 1)) });
  while (at < text.length && budget.left > least) {
    const c = text[at];
    if (c === "\\" && isMark(text[at + 1])) {
      flush();
      budget.left -= 1;
      from = at + 1;
      at += 2;
    } else if (c === "`") {
      // Behind a backslash a run is none.
      const { length, end } = ticks.get(at) ?? { length: 1, end: -1 };
      if (end < 0) at += length;
      else put({ kind: "code", text: trimmed(text.slice(at + length, end)) }, end + length);
    } else if (c === "*" || c === "_" || c === "~") {
      let end = at;
      while (text[end] === c) end += 1;
      emphasis(c, end);
    } else if (c === "[") begin("[", 1, at + 1);
    else if (c === "!" && text[at + 1] === "[") begin("!", 2, at + 2);
    else if (c === "]") bracket();
    else if (c === "h" && isAddress(text, at)) address();
    else at += 1;
  }
  at = text.length;
  flush();
  return settled(out);

  function emphasis(mark, end) {
    const [before, after] = [text[at - 1], text[end]];
    let left = end - at;
    if (left > 3 || (mark === "~" && left !== 2)) return void (at = end);
    // As CommonMark has it: which side a run belongs to.
    const isLeft = !isSpace(after) && (!isMark(after) || isSpace(before) || isMark(before));
    const isRight = !isSpace(before) && (!isMark(before) || isSpace(after) || isMark(after));
    const isWord = mark === "_" && isLeft && isRight;
    if (isRight && (!isWord || isMark(after))) {
      flush();
      for (let n; left > 0 && (n = open.findLastIndex((it) => it.mark === mark)) >= 0; ) {
        const top = open[n];
        const used = Math.min(left, top.length, 2);
        open.length = n + (top.length > used ? 1 : 0);
        out.push(wrap(top, mark === "~" ? "del" : used === 2 ? "strong" : "em"));
        top.length -= used;
        top.node.text = top.node.text.slice(used);
        left -= used;
        from = at += used;
      }
    }
    if (left > 0 && isLeft && (!isWord || isMark(before))) begin(mark, left, end);
    else at = end;
  }

  function bracket() {
    const n = open.findLastIndex((it) => it.mark === "[" || it.mark === "!");
    const top = open[n];
    const target = top && text[at + 1] === "(" ? targetOf(text, at + 2) : null;
    if (top) open.splice(n, target ? open.length : 1);
    if (!target) return void (at += 1);
    const words = text.slice(top.source, at);
    flush();
    if (top.mark === "!") {
      out.length = top.place;
      put(`image: ${words} (${target.address})`, target.end);
    } else {
      const node = wrap(top, "link");
      out.length = top.place;
      if (isWeb(target.address)) return void put({ ...node, address: target.address }, target.end);
      // No address of the web: it stays in sight as text.
      for (const child of node.children) out.push(child);
      put(words === target.address ? "" : ` (${target.address})`, target.end);
    }
  }

  /** A bare address, without the punctuation behind it. */
  function address() {
    let end = at;
    while (end < text.length && !isSpace(text[end]) && !'<>"`|]'.includes(text[end])) end += 1;
    const isAngled = text[at - 1] === "<" && text[end] === ">";
    const pairs = { opened: 0, closed: 0 };
    for (let n = at; n < end; n++) ((pairs.opened += text[n] === "("), (pairs.closed += text[n] === ")"));
    const isTail = (c) => ".,;:!?'*_~".includes(c) || (c === ")" && pairs.closed > pairs.opened);
    let last = end;
    while (!isAngled && last > at && isTail(text[last - 1])) pairs.closed -= text[--last] === ")";
    const found = text.slice(at, last);
    if (!isWeb(found) || /[\p{L}\p{N}]/u.test(text[at - 1] ?? "")) return void (at = end);
    if (isAngled) at -= 1;
    put({ kind: "link", address: found, children: [found] }, isAngled ? end + 1 : last);
  }
}

/** Marks that began nothing are text. */
function settled(list) {
  return list.map((it) => (it.mark ? it.text : it)).filter((it) => it !== "");
}

/** Runs of backticks, by their place: how long each is, and where the next one is of the same length. */
function ticksOf(text) {
  const runs = new Map();
  const next = new Map();
  for (let at = text.length; (at = at > 0 ? text.lastIndexOf("`", at - 1) : -1) >= 0; ) {
    const end = at + 1;
    while (text[at - 1] === "`") at -= 1;
    runs.set(at, { length: end - at, end: next.get(end - at) ?? -1 });
    next.set(end - at, at);
  }
  return runs;
}

const trimmed = (text) => (text.length > 2 && text[0] === " " && text.at(-1) === " " ? text.slice(1, -1) : text);

/** The address behind `](`, with its end; a title is left out. */
function targetOf(text, begin) {
  let [end, deep] = [begin, 0];
  for (; end < text.length && !isSpace(text[end]) && end - begin <= LONGEST_ADDRESS; end++) {
    if (text[end] === "(" && ++deep > 3) return null;
    if (text[end] === ")" && --deep < 0) break;
  }
  let address = text.slice(begin, end);
  if (address[0] === "<" && address.at(-1) === ">") address = address.slice(1, -1);
  if (text[end] === " " && text[end + 1] === '"') end = text.indexOf('"', end + 2) + 1 || text.length;
  return text[end] === ")" && address ? { address, end: end + 1 } : null;
}

const isAddress = (text, at) => text.startsWith("http://", at) || text.startsWith("https://", at);

function isWeb(address) {
  return address.length <= LONGEST_ADDRESS && /^https?:\/\/[^\s/]/i.test(address) && Boolean(urlOf(address));
}

export function urlOf(address) {
  try {
    return new URL(address);
  } catch {
    return null;
  }
}
