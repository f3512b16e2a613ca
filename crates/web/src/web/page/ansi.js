// Owns what terminals say: colours and overwritten lines become elements; all other sequences are left out.

import { h } from "./dom.js";
import { plain } from "./format.js";

const LONGEST_TEXT = 64 * 1024;
const MOST_LINES = 2_000;
/** Elements of one text; what follows has no colours. */
const MOST_RUNS = 3_000;
/** Characters of a sequence. */
const LONGEST_SEQUENCE = 64;
/** Columns that a line has before it is overwritten. */
const WIDEST = 4_000;

/** Bits of a style; the colours are in those above, 1 more than their number. */
const [BOLD, DIM, ITALIC, UNDER, INVERSE, STRUCK] = [1, 2, 4, 8, 16, 32];
const FRONT = 6;
const BACK = 11;
const COLOUR = 31;
const CLASSES = [
  [BOLD, "bold"],
  [DIM, "faint"],
  [ITALIC, "italic"],
  [UNDER, "under"],
  [INVERSE, "inverse"],
  [STRUCK, "struck"],
];

/** Whether a text has what only a terminal shows. */
export function isTerminal(text) {
  return text.includes("\u001b[") || /\r(?!\n|$)/.test(text);
}

/** What a terminal shows of a text. */
export function terminal(text) {
  const lines = linesOf(text.slice(0, LONGEST_TEXT));
  const children = [];
  let runs = 0;
  for (const [at, line] of lines.entries()) {
    if (at) children.push("\n");
    for (const { text: part, style } of line) {
      runs += style ? 1 : 0;
      const name = style && runs <= MOST_RUNS ? classOf(style) : "";
      children.push(name ? h("span", { class: name }, plain(part)) : plain(part));
    }
  }
  const isCut = lines.isCut || text.length > LONGEST_TEXT;
  const el = h(
    "pre",
    { class: "terminal", tabindex: "0", role: "group", "aria-label": "Output of a terminal" },
    children,
    isCut && "\n… cut here",
  );
  el.normalize();
  return el;
}

function classOf(style) {
  const names = CLASSES.filter(([bit]) => style & bit).map(([, name]) => name);
  const front = (style >> FRONT) & COLOUR;
  const back = (style >> BACK) & COLOUR;
  if (front) names.push(`ink-${front - 1}`);
  if (back) names.push(`back-${back - 1}`);
  return names.join(" ");
}

/**
 * The lines of a text, each as runs of one style.
 * @returns {Array<Array<{text: string, style: number}>>}
 */
export function linesOf(text) {
  const lines = [];
  let line = [];
  let [style, column, at] = [0, 0, 0];
  const end = () => {
    lines.push(runsOf(line));
    line = [];
    column = 0;
  };
  while (at < text.length && lines.length < MOST_LINES) {
    const c = text[at];
    if (c === "\n") end();
    else if (c === "\r") column = 0;
    else if (c === "\b") column = Math.max(0, column - 1);
    else if (c === "\u001b") {
      const sequence = sequenceOf(text, at);
      if (sequence.end === "m") style = styled(style, sequence.body);
      // Deletes from here to the end of the line, or all of it.
      else if (sequence.end === "K") line.length = sequence.body === "2" ? 0 : Math.min(line.length, column);
      at += sequence.length;
      continue;
    } else if (column < WIDEST) {
      const whole = String.fromCodePoint(text.codePointAt(at));
      while (line.length < column) line.push({ c: " ", style: 0 });
      line[column++] = { c: whole, style };
      at += whole.length - 1;
    }
    at += 1;
  }
  const isCut = at < text.length;
  if (!isCut && line.length) end();
  return Object.assign(lines, { isCut });
}

function runsOf(line) {
  const runs = [];
  for (const { c, style } of line) {
    if (runs.length && runs.at(-1).style === style) runs.at(-1).text += c;
    else runs.push({ text: c, style });
  }
  return runs;
}

/** The sequence that begins here: `end` is its last character if it has parameters. */
function sequenceOf(text, at) {
  const kind = text[at + 1];
  if (kind === "[") {
    let end = at + 2;
    while (end < text.length && end - at < LONGEST_SEQUENCE && text[end] >= " " && text[end] <= "?") end += 1;
    const isWhole = text[end] >= "@" && text[end] <= "~";
    return { body: text.slice(at + 2, end), end: isWhole ? text[end] : "", length: end - at + (isWhole ? 1 : 0) };
  }
  // A title, or a link: up to a bell, or to the sequence that ends it; an end that is missing takes nothing with it.
  if (kind === "]") {
    for (let end = at + 2; end < text.length && end - at < 2_048 && text[end] !== "\n"; end++) {
      if (text[end] === "\u0007") return { body: "", end: "", length: end - at + 1 };
      if (text[end] === "\u001b") return { body: "", end: "", length: end - at + (text[end + 1] === "\\" ? 2 : 0) };
    }
  }
  return { body: "", end: "", length: kind === undefined || kind === "\n" ? 1 : 2 };
}

/** The style behind a sequence of numbers. */
function styled(style, body) {
  const codes = body.split(/[;:]/, 32).map((it) => (it === "" ? 0 : Number(it)));
  const set = (place, colour) => (style = (style & ~(COLOUR << place)) | ((colour + 1) << place));
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at];
    if (code === 0) style = 0;
    else if (code === 22) style &= ~(BOLD | DIM);
    else if (code >= 1 && code <= 4) style |= [BOLD, DIM, ITALIC, UNDER][code - 1];
    else if (code === 7) style |= INVERSE;
    else if (code === 9) style |= STRUCK;
    else if (code === 23) style &= ~ITALIC;
    else if (code === 24) style &= ~UNDER;
    else if (code === 27) style &= ~INVERSE;
    else if (code === 29) style &= ~STRUCK;
    else if (code >= 30 && code <= 37) set(FRONT, code - 30);
    else if (code === 39) set(FRONT, -1);
    else if (code >= 40 && code <= 47) set(BACK, code - 40);
    else if (code === 49) set(BACK, -1);
    else if (code >= 90 && code <= 97) set(FRONT, code - 82);
    else if (code >= 100 && code <= 107) set(BACK, code - 92);
    else if (code === 38 || code === 48) {
      const place = code === 38 ? FRONT : BACK;
      if (codes[at + 1] === 5) (set(place, ofPalette(codes[at + 2])), (at += 2));
      else if (codes[at + 1] === 2) (set(place, nearest(...codes.slice(at + 2, at + 5))), (at += 4));
    }
  }
  return style;
}

/** One of 256 colours as one of 16. */
function ofPalette(number) {
  if (!(number >= 0 && number <= 255)) return -1;
  if (number < 16) return number;
  if (number >= 232) return grey((number - 232) * 10 + 8);
  const of = (n) => [0, 95, 135, 175, 215, 255][n % 6];
  const cube = number - 16;
  return nearest(of(Math.floor(cube / 36)), of(Math.floor(cube / 6)), of(cube));
}

const grey = (light) => (light < 50 ? 0 : light < 140 ? 8 : light < 220 ? 7 : 15);

/** The one of 16 colours that is like this one: its hue, and whether it is bright. */
function nearest(red = 0, green = 0, blue = 0) {
  const most = Math.max(red, green, blue);
  if (!(most >= 0) || most - Math.min(red, green, blue) < 40) return grey(most || 0);
  const middle = (most + Math.min(red, green, blue)) / 2;
  const hue = (red > middle ? 1 : 0) + (green > middle ? 2 : 0) + (blue > middle ? 4 : 0);
  return hue + (most > 215 ? 8 : 0);
}
