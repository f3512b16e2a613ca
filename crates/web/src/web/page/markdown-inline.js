// Owns the parser of what stands within a block of Markdown: emphases, code, links.

/** Characters of an address. */
const LONGEST_ADDRESS = 2_048;
/** How deep lists, quotes and emphases lie in each other. */
const DEEPEST = 12;

const isSpace = (c) => c === undefined || c === " " || c === "\n" || c === "\t";
const isMark = (c) => c !== undefined && /[!-/:-@[-`{-~\u2010-\u2027]/.test(c);

/** The parts of a text within a block. */
export function inline(text, budget) {
  /** What is done; a mark that may begin something is an object until its end is found. */
  const out = [];
  /** Marks that may begin something; the oldest is let go of, so that the depth has a bound. */
  const open = [];
  const ticks = ticksOf(text);
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
  while (at < text.length && budget.left > 0) {
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
