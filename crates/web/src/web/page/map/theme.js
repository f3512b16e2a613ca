// Owns the colours of what is painted, as the style sheet has them, and where names stand on it.

import { begin } from "../format.js";
import { AGENT_COLORS } from "../marks.js";

const COLORS = ["ground", "folder", "edge", "file", "ink", "dim", "alarm", "wait", "call"];
/** A name that is cut keeps so many letters, or it is left out: two letters name nothing. */
const LEAST_LETTERS = 6;
/** Where a name can be broken: behind its marks, and before a letter or a number that begins a word. */
const WORDS = /[^\s._\-/]*?(?:[\s._\-/]+|(?<=[a-z])(?=[A-Z])|$)/g;
/** Widths that are remembered. */
const MOST_WIDTHS = 4_000;

/** Colours by name as CSS text, those of agents by place, and the letters. */
export function readTheme() {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(name).trim();
  const css = {};
  for (const name of COLORS) css[name] = value(`--map-${name}`);
  const agents = Array.from({ length: AGENT_COLORS }, (_, at) => value(`--agent-${at}`));
  return { css, agents, letters: `${value("--text-1")} ${value("--sans")}` };
}

/** Calls `changed` when the system's theme does. */
export function onTheme(changed) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}

/** Names of one picture: none lies on another, nor out of the picture. */
export class Names {
  constructor(context) {
    this.context = context;
    this.widths = new Map();
    this.spots = [];
  }

  begin(theme, width, height) {
    const { context } = this;
    if (this.letters !== theme.letters) this.widths.clear();
    this.letters = theme.letters;
    this.theme = theme;
    this.width = width;
    this.height = height;
    this.spots = [];
    // A canvas of another size has forgotten it.
    this.set = "";
    context.textBaseline = "middle";
    context.textAlign = "left";
  }

  font(isStrong) {
    const font = `${isStrong ? "600 " : ""}${this.letters}`;
    if (this.set === font) return;
    this.context.font = font;
    this.set = font;
  }

  measure(text, isStrong) {
    const key = (isStrong ? "!" : " ") + text;
    let width = this.widths.get(key);
    if (width === undefined) {
      if (this.widths.size >= MOST_WIDTHS) this.widths.clear();
      this.font(isStrong);
      width = Math.ceil(this.context.measureText(text).width);
      this.widths.set(key, width);
    }
    return width;
  }

  /**
   * A text that has room, whole or cut; null if too little of it would be left.
   * @returns {{text: string, width: number} | null}
   */
  fitted(text, room, isStrong, mayCut) {
    const width = this.measure(text, isStrong);
    if (width <= room) return { text, width };
    if (!mayCut) return null;
    const letters = Math.floor((room / width) * text.length) - 1;
    if (letters < LEAST_LETTERS) return null;
    const short = `${begin(text, letters).trimEnd()}…`;
    const shortWidth = this.measure(short, isStrong);
    return shortWidth <= room ? { text: short, width: shortWidth } : null;
  }

  /**
   * A text over several lines that each have room, broken where its words are; null if there are none.
   * @returns {{text: string, width: number}[] | null}
   */
  wrapped(text, room, isStrong, most) {
    const lines = [];
    let line = "";
    for (const word of text.match(WORDS) ?? []) {
      if (this.measure(line + word, isStrong) <= room) {
        line += word;
        continue;
      }
      if (line) lines.push(line);
      if (lines.length >= most || this.measure(word, isStrong) > room) return null;
      line = word;
    }
    return [...lines, line].map((it) => ({ text: it, width: this.measure(it, isStrong) }));
  }

  /** Takes a place, if it is free and in the picture. */
  take(spot) {
    if (!this.isFree(spot)) return false;
    this.spots.push(spot);
    return true;
  }

  isFree({ x, y, w, h }) {
    if (x + w < 0 || y + h < 0 || x > this.width || y > this.height) return false;
    return !this.spots.some((it) => x < it.x + it.w && it.x < x + w && y < it.y + it.h && it.y < y + h);
  }

  /** A free place of this size at a tile: on it, below, above, or beside it; null if there is none. */
  free(box, w, h) {
    const x = Math.max(2, Math.min(box.x + box.w / 2 - w / 2, this.width - w - 2));
    const y = Math.max(2, Math.min(box.y + box.h / 2 - h / 2, this.height - h - 2));
    const [from, to] = [box.x, box.x + box.w - w];
    const [above, below] = [box.y + 4, box.y + box.h - h - 4];
    const rows = (tops, lefts) => tops.flatMap((top) => lefts.map((left) => [left, top]));
    const within = rows([y, above, below], [x, from, to]);
    const beside = rows([box.y + box.h + 1, box.y - h - 1], [x, from]);
    // A flat tile would be under its name.
    const places = box.h < h * 2 ? [...beside, ...within] : [...within, ...beside];
    places.push([box.x + box.w + 2, y], [box.x - w - 2, y]);
    for (const [left, top] of places) {
      const isIn = left >= 0 && top >= 0 && left + w <= this.width && top + h <= this.height;
      if (isIn && this.isFree({ x: left, y: top, w, h })) return { x: left, y: top, w, h };
    }
    return null;
  }

  /** What a name stands on, so that it can be read on any colour. */
  plate({ x, y, w, h }) {
    const { context } = this;
    context.globalAlpha = 0.92;
    context.fillStyle = this.theme.css.file;
    context.beginPath();
    context.roundRect(x, y, w, h, 4);
    context.fill();
    context.globalAlpha = 1;
  }

  write(text, x, y, color, isStrong) {
    this.font(isStrong);
    this.context.fillStyle = color;
    this.context.fillText(text, Math.round(x), Math.round(y) + 0.5);
  }
}
