// Owns one picture of the map: folders, files, zones, calls, and names, of which none lies on another.

import { ago, baseName, counted, cut, line } from "../format.js";
import { boxOf } from "./camera.js";
import { paintBadges, paintFile, paintMark } from "./flat.js";
import { HEAD, parentOf } from "./layout.js";
import { didOf } from "./paint.js";
import { Names } from "./theme.js";
import { drawZones } from "./zones.js";

/** Files and folders that are named at once. */
const MOST_NAMES = 300;
/** Agents that are marked at one folder, and at one file. */
const MOST_MARKS = 6;
const MOST_ROWS = 3;
/** Files whose symbols are shown at once, from this scale on. */
const MOST_OPEN = 30;
const OPEN_SCALE = 1.6;
const ROW = 15;
/** Height of a name's plate, and lines of a name. */
const LINE = 18;
const MOST_LINES = 3;
/** Letters of a name. */
const LONGEST = 80;
/** An agent is shown by its name where it was last, for as long. */
const PIN_MS = 900_000;
/** A name that does not fit is written beside its tile if it is wanted; if it is far wider, only if it is much so. */
const FRESH = 0.3;
const MUCH = 1.5;
const WIDER = 1.6;
const ORDER = { selected: 64, hovered: 32, overlap: 16, waits: 8, pin: 4 };

export class Overlay {
  constructor(canvas) {
    this.context = canvas.getContext("2d", { alpha: false });
    this.names = new Names(this.context);
  }

  /** Draws all of it. */
  draw(scene) {
    const { context } = this;
    const { ratio, width, height, theme, layout } = scene;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = theme.css.ground;
    context.fillRect(0, 0, width, height);
    this.names.begin(theme, width, height);
    const all = layout.tiles.map((tile) => ({ tile, box: boxOf(tile, scene.camera) }));
    const seen = all.filter((it) => isIn(it.box, scene));
    const files = [];
    for (const it of seen) {
      if (it.tile.kind !== "file") this.folder(it, theme);
      else files.push(this.file(it, scene));
    }
    const present = presentIn(files);
    pins(files, scene.now);
    drawZones(context, this.names, scene);
    for (const it of seen) if (it.tile.hasHead) this.head(it, present, scene);
    this.calls(scene);
    this.chosen(files, scene);
    this.label(files, seen, scene);
  }

  folder({ tile, box }, { css }) {
    const { context } = this;
    context.fillStyle = css.folder;
    context.fillRect(box.x, box.y, box.w, box.h);
    if (box.w < 4 || box.h < 4) return;
    context.strokeStyle = css.edge;
    context.lineWidth = tile.depth > 1 ? 1 : 1.5;
    context.strokeRect(box.x + 0.5, box.y + 0.5, box.w - 1, box.h - 1);
  }

  file({ tile, box }, { theme, lookOf }) {
    const look = lookOf(tile.path);
    paintFile(this.context, box, look, theme, tile.isNew);
    return { tile, box, look, pins: [] };
  }

  /** The head of a folder: its name, and the marks of those who are in it. */
  head({ tile, box }, present, { theme, layout }) {
    const { context, names } = this;
    const high = Math.min(HEAD, box.h);
    const x = Math.max(box.x, 0) + 6;
    const right = Math.min(box.x + box.w, names.width) - 4;
    const who = [...(present.get(tile.path) ?? [])].slice(0, MOST_MARKS);
    const name = `${layout.opened.has(tile.path) ? "▾ " : ""}${line(tile.name)}/`;
    const room = right - x;
    // Of a chain of folders the last one says most.
    const wide =
      names.fitted(name, room - who.length * 14 - 4, true, true) ??
      [name, `…/${baseName(line(tile.name))}/`].map((it) => names.fitted(it, room, true, true)).find(Boolean);
    let end = x;
    if (wide) {
      names.write(wide.text, x, box.y + high / 2, theme.css.dim, true);
      names.take({ x, y: box.y, w: Math.min(right - x, wide.width + 8 + who.length * 14), h: high });
      end = x + wide.width + 8;
    }
    for (const [at, it] of who.entries()) {
      const left = end + at * 14;
      if (left + 12 > right) break;
      paintMark(context, it.mark, left + 5, box.y + high / 2, 5, theme.agents[it.color]);
    }
  }

  /** Names, the most wanted first; each in its tile, or beside it where it is free. */
  label(files, seen, scene) {
    const { names } = this;
    let count = 0;
    let open = 0;
    for (const it of files) this.badges(it, scene.theme);
    const sorted = files.map((it) => [wantOf(it, scene), it]).sort((a, b) => b[0] - a[0]);
    for (const [want, it] of sorted) {
      if (count++ > MOST_NAMES) break;
      const below = this.name(it, want, scene);
      const isOpen = below && scene.camera.scale >= OPEN_SCALE && it.box.w > 130 && open < MOST_OPEN;
      if (isOpen) open += Number(this.symbols(it, below, scene));
    }
    for (const { tile, box } of seen) {
      if (tile.kind !== "folded" || count++ > MOST_NAMES) continue;
      const texts = foldedNames(tile);
      const text = texts.map((it) => names.fitted(it, box.w - 10, false, false)).find(Boolean);
      if (!text || box.h < 16) continue;
      const y = box.y + box.h / 2;
      const spot = { x: box.x + (box.w - text.width) / 2, y: y - 8, w: text.width, h: 16 };
      if (names.take(spot)) names.write(text.text, spot.x, y, scene.theme.css.dim, false);
    }
  }

  badges(it, theme) {
    const { box } = it;
    it.badges = paintBadges(this.context, box, it.look, theme);
    if (it.badges) this.names.take({ x: box.x + box.w - it.badges - 3, y: box.y + 2, w: it.badges + 2, h: 19 });
  }

  /** The name of a file with the marks of its agents; returns where free room begins below it. */
  name(it, want, scene) {
    const { names } = this;
    const { box, look, badges } = it;
    const isStrong = it.pins.length > 0;
    const marks = look.who.slice(0, MOST_ROWS);
    let left = marks.length * 13 + (marks.length ? 3 : 0);
    const full = cut(line(baseName(it.tile.path)) || line(it.tile.path), LONGEST);
    const room = box.w - 12 - left;
    let y = box.y + 5;
    const isIn = box.h >= 24;
    // Beside the signs if there is room, else below them; in one line, else in several.
    let lines = one(isIn && names.fitted(full, room - badges, isStrong, false));
    if (isIn && !lines) {
      if (badges) y += 20;
      const most = Math.min(MOST_LINES, Math.floor((box.y + box.h - y - 6) / ROW));
      lines = most > 0 ? names.wrapped(full, room, isStrong, most) : null;
      // In a narrow tile the marks stand above the name.
      const below = lines || most < 2 || !left ? null : names.wrapped(full, box.w - 12, isStrong, most - 1);
      if (below) [lines, left] = [[{ text: "", width: left }, ...below], 0];
    }
    let spot = lines && spotOf(lines, box.x + 5, y, left);
    // What matters is named beside its tile, where that is free.
    if (!lines && want > FRESH) {
      lines = one(names.fitted(full, 300, isStrong, true));
      const wide = lines ? lines[0].width + left + 6 : 0;
      spot = wide && (want > MUCH || wide < box.w * WIDER) ? names.free(box, wide, LINE) : null;
      if (!spot) lines = null;
    }
    if (!lines && isIn) {
      lines = one(names.fitted(full, room, isStrong, true));
      spot = lines && spotOf(lines, box.x + 5, y, left);
    }
    if (!lines || !spot || !names.take(spot)) return 0;
    names.plate(spot);
    marks.forEach((who, at) =>
      paintMark(this.context, who.mark, spot.x + 9 + at * 13, spot.y + 9, 5, scene.theme.agents[who.color]),
    );
    for (const [at, text] of lines.entries())
      names.write(text.text, spot.x + 3 + left, spot.y + 9 + at * ROW, scene.theme.css.ink, isStrong);
    const isInside = spot.x >= box.x && spot.y >= box.y && spot.x + spot.w <= box.x + box.w;
    return isInside ? this.rows(it, spot.y + spot.h + 3, scene) : 0;
  }

  /** Who did what there, where the tile has room for it. */
  rows({ box, look, pins }, from, { theme, now }) {
    const { names, context } = this;
    let y = from;
    for (const who of look.who.slice(0, MOST_ROWS)) {
      if (y + 18 > box.y + box.h - 3) break;
      const did = `${line(who.agent)} ${didOf(who.action)}`;
      const what = now ? [`${did}, ${ago(who.at, now)}`, did] : [did];
      if (pins.includes(who.agent)) what.push(line(who.agent));
      const text = what.map((it) => names.fitted(it, box.w - 34, true, false)).find(Boolean);
      if (!text) break;
      const spot = { x: box.x + 5, y, w: text.width + 22, h: 18 };
      if (!names.take(spot)) break;
      names.plate(spot);
      paintMark(context, who.mark, spot.x + 9, y + 9, 5, theme.agents[who.color]);
      names.write(text.text, spot.x + 18, y + 9, theme.agents[who.color], true);
      y += 21;
    }
    return y;
  }

  symbols({ tile, box }, from, { theme, symbolsOf, lit }) {
    const { names } = this;
    const rows = Math.floor((box.y + box.h - from - 6) / ROW);
    if (rows < 1) return false;
    const symbols = symbolsOf(tile.path);
    if (!symbols.length) return false;
    const known = lit(tile.path);
    const shown = symbols.slice(0, symbols.length > rows ? rows - 1 : rows);
    const texts = shown.map((it) => [line(it.name), known.has(it.id)]);
    if (symbols.length > shown.length) texts.push([`and ${symbols.length - shown.length} more`, false]);
    const fitted = texts.map(([text, isLit]) => [names.fitted(text, box.w - 24, isLit, true), isLit]);
    const wide = Math.max(...fitted.map(([it]) => it?.width ?? 0));
    const spot = { x: box.x + 5, y: from, w: wide + 8, h: texts.length * ROW + 4 };
    if (!wide || !names.take(spot)) return false;
    names.plate(spot);
    fitted.forEach(([it, isLit], at) => {
      const color = isLit ? theme.css.ink : theme.css.dim;
      if (it) names.write(it.text, spot.x + 4, from + 2 + at * ROW + ROW / 2, color, isLit);
    });
    return true;
  }

  /** Frames around what is selected, and what the pointer is on. */
  chosen(files, { selected, hovered, folder, theme, camera }) {
    const { context } = this;
    const one = files.find((it) => it.tile.path === selected);
    const framed = (tile) => tile && { box: boxOf(tile, camera) };
    const { dim, call } = theme.css;
    for (const [it, color, thick] of [[framed(hovered), dim, 1.5], [framed(folder), call, 3], [one, call, 3]]) {
      if (!it) continue;
      context.strokeStyle = color;
      context.lineWidth = thick;
      context.strokeRect(it.box.x - 2, it.box.y - 2, it.box.w + 4, it.box.h + 4);
    }
  }

  calls({ layout, theme, camera, selected, calls }) {
    const from = selected && layout.of(selected);
    if (!from) return;
    const { context } = this;
    const begin = middle(boxOf(from, camera));
    context.strokeStyle = context.fillStyle = theme.css.call;
    context.lineWidth = 1.5;
    for (const call of calls) {
      const it = layout.of(call.path);
      if (!it || it === from) continue;
      const end = middle(boxOf(it, camera));
      const bend = [
        (begin[0] + end[0]) / 2 + (end[1] - begin[1]) * 0.15,
        (begin[1] + end[1]) / 2 - (end[0] - begin[0]) * 0.15,
      ];
      context.setLineDash(call.isOut ? [] : [4, 3]);
      context.beginPath();
      context.moveTo(...begin);
      context.quadraticCurveTo(...bend, ...end);
      context.stroke();
      context.setLineDash([]);
      arrow(context, bend, call.isOut ? end : begin);
    }
  }
}

function arrow(context, from, to) {
  const angle = Math.atan2(to[1] - from[1], to[0] - from[0]);
  context.beginPath();
  context.moveTo(...to);
  for (const turn of [2.7, -2.7])
    context.lineTo(to[0] + 8 * Math.cos(angle + turn), to[1] + 8 * Math.sin(angle + turn));
  context.fill();
}

/** By folder: the agents that were lately in it, at any depth. */
function presentIn(files) {
  const present = new Map();
  for (const { tile, look } of files) {
    const who = look.who.filter((it) => it.strength > 0);
    if (!who.length) continue;
    for (let at = parentOf(tile.path); at; at = parentOf(at)) {
      if (!present.has(at)) present.set(at, new Map());
      for (const it of who) present.get(at).set(it.agent, it);
    }
  }
  return new Map([...present].map(([path, who]) => [path, who.values()]));
}

/** Where each agent was last. */
function pins(files, now) {
  const last = new Map();
  for (const it of files) {
    for (const who of it.look.who) {
      const isLater = who.action !== "waits" && who.at > (last.get(who.agent)?.at ?? now - PIN_MS);
      if (isLater) last.set(who.agent, { at: who.at, file: it });
    }
  }
  for (const [agent, { file }] of last) file.pins.push(agent);
}

/** How much a name is wanted. */
function wantOf({ tile, look, pins }, { selected, hovered }) {
  let want = Math.max(0, ...look.who.map((it) => it.strength * 0.9 + (it.inContext ? 0.1 : 0.01)));
  if (tile.path === selected) want += ORDER.selected;
  if (tile === hovered) want += ORDER.hovered;
  if (look.overlap) want += ORDER.overlap;
  if (look.waits) want += ORDER.waits;
  if (pins.length) want += ORDER.pin;
  return want;
}

function foldedNames({ name, files, folders }) {
  const many = counted(files, "file");
  if (name) return [`▸ ${line(name)}/ ${many}`, `${line(name)}/ ${files}`, `${line(name)}/`];
  const more = folders ? `${many} in ${counted(folders, "folder")}` : counted(files, "more file");
  return [`▸ ${more}`, `▸ ${many}`, `+${files}`];
}

function one(text) {
  return text ? [text] : null;
}

function spotOf(lines, x, y, left) {
  const wide = Math.max(...lines.map((it) => it.width));
  return { x, y, w: wide + left + 6, h: LINE + (lines.length - 1) * ROW };
}

function isIn({ x, y, w, h }, { width, height }) {
  return x < width && y < height && x + w > 0 && y + h > 0;
}

function middle(box) {
  return [box.x + box.w / 2, box.y + box.h / 2];
}
