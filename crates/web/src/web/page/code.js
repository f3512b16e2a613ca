// Owns how code is shown: its language, a way to copy it, and the colours that the server's grammars give it.

import { notice } from "./dialog.js";
import { fill, h } from "./dom.js";
import { line, lookup, plain } from "./format.js";
import { iconButton } from "./icons.js";

/** Characters that the server is asked to colour. */
const LONGEST_COLOURED = 64 * 1024;
/** Characters that are shown. */
const LONGEST_CODE = 200_000;
const LONGEST_NAME = 40;
/** Tokens of one text that become elements. */
const MOST_TOKENS = 6_000;
/** Answers that are kept, and what they may take in characters. */
const MOST_KEPT = 200;
const MOST_KEPT_SIZE = 2_000_000;
const OF_TOKEN = 24;
/** Questions at once, and those that wait. */
const MOST_ASKED = 4;
const MOST_WAITING = 200;
/** Code that still grows is not asked for: it must have been there for so long. */
const QUIET_MS = 350;
/** A reader's selection is waited for. */
const SELECTED_MS = 1_500;

const KINDS = new Set(["keyword", "string", "comment", "number", "name", "type"]);

/**
 * Code with its colours. Without an app, or if the team knows no grammar for it, it is plain.
 * @param {Object} [app]
 * @param {string} language as it stands behind the fence
 * @param {string} text
 * @param {string} [path] in place of the language
 */
export function codeBlock(app, language, text, path) {
  const shown = plain(text.slice(0, LONGEST_CODE));
  const code = h("code", null, shown);
  const name = line(language).slice(0, LONGEST_NAME);
  const source = path ? { path } : { language: name };
  if (app && (path || name) && shown && shown.length <= LONGEST_COLOURED) watch(code, { app, source, text: shown });
  const pre = h("pre", { class: "code", tabindex: "0", role: "group", "aria-label": name ? `Code: ${name}` : "Code" });
  const head = h("div", { class: "code-head" }, h("span", null, name || "code"), copyButton(() => shown));
  return h("div", { class: "code-box" }, head, fill(pre, code, text.length > LONGEST_CODE && "\n… cut here"));
}

/** A button that copies a text. */
export function copyButton(textOf, label = "Copy") {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(textOf());
      notice("Copied.");
    } catch {
      notice("This browser does not let the page copy. Select the text, and copy it by hand.", true);
    }
  };
  return iconButton("copy", label, copy, { class: "quiet icon-only copy" });
}

/** What is to be coloured as soon as it is seen. */
const unseen = new WeakMap();
let observer = null;

function watch(code, what) {
  const known = kept.get(keyOf(what));
  if (known) return draw(code, what, known);
  observer ??= new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) if (isIntersecting) seen(target);
  });
  unseen.set(code, what);
  observer.observe(code);
}

function seen(code) {
  observer.unobserve(code);
  const what = unseen.get(code);
  unseen.delete(code);
  if (what) setTimeout(() => code.isConnected && ask(code, what), QUIET_MS);
}

/** @type {Map<string, Array>} the tokens by the question, the last that was asked for comes last */
const kept = new Map();
let size = 0;
let asked = 0;
const waiting = [];

function keyOf({ source, text }) {
  return `${source.path ?? ""}\n${source.language ?? ""}\n${text}`;
}

async function ask(code, what) {
  if (asked >= MOST_ASKED) {
    waiting.push([code, what]);
    if (waiting.length > MOST_WAITING) waiting.shift();
    return;
  }
  asked += 1;
  try {
    const tokens = kept.get(keyOf(what)) ?? (await tokensOf(what));
    draw(code, what, tokens);
  } catch {
    // It stays plain.
  } finally {
    asked -= 1;
    let next;
    while ((next = waiting.shift()) && !next[0].isConnected);
    if (next) ask(...next);
  }
}

async function tokensOf(what) {
  const answer = await what.app.call("highlight", { ...what.source, text: what.text });
  const given = Array.isArray(answer?.tokens) ? answer.tokens.slice(0, MOST_TOKENS) : [];
  const tokens = given.filter(Array.isArray);
  keep(keyOf(what), tokens);
  return tokens;
}

function keep(key, tokens) {
  if (kept.has(key)) return;
  kept.set(key, tokens);
  size += key.length + tokens.length * OF_TOKEN;
  for (const [oldest, its] of kept) {
    if (kept.size <= MOST_KEPT && size <= MOST_KEPT_SIZE) break;
    kept.delete(oldest);
    size -= oldest.length + its.length * OF_TOKEN;
  }
}

function draw(code, what, tokens) {
  if (what.lines) colourLines(what.lines, tokens);
  else colour(code, what.text, tokens);
}

/**
 * Colours lines that stand in elements of their own, such as one side of a diff.
 * @param {Object} app
 * @param {string} path
 * @param {{code: Element, text: string}[]} lines in the order of the file; `text` is what the element shows
 */
export function colouredLines(app, path, lines) {
  const text = lines.map((it) => it.text).join("\n");
  if (!app || !lines.length || text.length > LONGEST_COLOURED) return;
  watch(lines[0].code, { app, source: { path }, text, lines });
}

function colourLines(lines, tokens) {
  let begin = 0;
  let first = 0;
  for (const { code, text } of lines) {
    const end = begin + text.length;
    while (first < tokens.length && tokens[first][1] <= begin) first += 1;
    const own = [];
    for (let at = first; at < tokens.length && tokens[at][0] < end; at++) {
      const [from, to, kind] = tokens[at];
      own.push([Math.max(from, begin) - begin, Math.min(to, end) - begin, kind]);
    }
    if (own.length) colour(code, text, own);
    begin = end + 1;
  }
}

/** Puts the tokens in place of the text; offsets count UTF-16 code units. */
function colour(code, text, tokens) {
  if (isSelected(code)) return void setTimeout(() => code.isConnected && colour(code, text, tokens), SELECTED_MS);
  const parts = [];
  let at = 0;
  for (const token of tokens) {
    const [begin, end, kind] = Array.isArray(token) ? token : [];
    if (!Number.isInteger(begin) || !Number.isInteger(end) || begin < at || end <= begin || end > text.length) continue;
    if (!KINDS.has(kind)) continue;
    parts.push(text.slice(at, begin), h("span", { class: `tok-${kind}` }, text.slice(begin, end)));
    at = end;
  }
  fill(code, parts, text.slice(at));
}

function isSelected(el) {
  const selection = getSelection();
  return Boolean(selection && !selection.isCollapsed && selection.containsNode(el, true));
}

const ENDINGS = lookup({ txt: "", log: "", out: "" });

/** The language that a path's ending stands for, for those who read it. */
export function languageOf(path) {
  const name = path.slice(path.lastIndexOf("/") + 1);
  const dot = name.lastIndexOf(".");
  const ending = dot < 0 ? "" : name.slice(dot + 1).toLowerCase();
  return ENDINGS[ending] ?? ending;
}
