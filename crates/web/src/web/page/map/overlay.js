// Owns what is written over the map: names of folders and files, symbols of large files, zones, and
// the calls of the selected file.

import { baseName, cut, line, lookup } from "../format.js";

/** Names that are written at once. */
const MOST_NAMES = 350;
const MOST_FOLDERS = 150;
/** Files whose symbols are shown at once, and rows of each. */
const MOST_OPEN = 40;
const FONT = "11px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";
const ROW = 14;
const LETTER = 6.7;

export class Overlay {
  constructor(canvas) {
    this.context = canvas.getContext("2d");
  }

  /**
   * Draws all of it; returns how many files are shown with their symbols.
   * @param {{layout: Object, camera: Object, width: number, height: number, ratio: number, theme: Object, selected: number, hovered: number, calls: Object[], zones: Object[], symbolsOf: (path: string) => Object[], lit: (path: string) => Set<string>}} scene
   */
  draw(scene) {
    const { context } = this;
    const { ratio, width, height } = scene;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = FONT;
    context.textBaseline = "top";
    this.zones(scene);
    const open = this.names(scene);
    this.folders(scene);
    this.calls(scene);
    for (const [slot, color, thick] of [
      [scene.hovered, scene.theme.css.dim, 1],
      [scene.selected, scene.theme.css.ink, 2],
    ]) {
      if (slot < 0) continue;
      const box = this.box(scene, slot);
      context.strokeStyle = color;
      context.lineWidth = thick;
      context.strokeRect(box.x - 1, box.y - 1, box.w + 1, box.h + 1);
    }
    return open;
  }

  box({ layout, camera }, slot) {
    const { rects } = layout;
    const at = slot * 4;
    return place(rects[at], rects[at + 1], rects[at + 2], rects[at + 3], camera);
  }

  names(scene) {
    const { layout, camera, width, height, theme } = scene;
    const { rects, paths } = layout;
    const [wide, high] = [46 / camera.scale, 15 / camera.scale];
    const [left, top] = [-camera.x / camera.scale, -camera.y / camera.scale];
    const [right, bottom] = [left + width / camera.scale, top + height / camera.scale];
    let names = 0;
    let open = 0;
    for (let slot = 0, at = 0; slot < paths.length && names < MOST_NAMES; slot++, at += 4) {
      if (rects[at + 2] < wide || rects[at + 3] < high) continue;
      if (
        rects[at] > right ||
        rects[at + 1] > bottom ||
        rects[at] + rects[at + 2] < left ||
        rects[at + 1] + rects[at + 3] < top
      )
        continue;
      const box = this.box(scene, slot);
      names += 1;
      const isOpen = box.w > 130 && box.h > 64 && open < MOST_OPEN;
      this.name(line(baseName(paths[slot])), box, theme, isOpen);
      if (isOpen) ((open += 1), this.symbols(scene, paths[slot], box));
    }
    return open;
  }

  name(text, box, theme, isOpen) {
    const room = Math.floor((box.w - 24) / LETTER);
    if (room < 3) return;
    const y = isOpen || box.h < 40 ? box.y + 3 : box.y + box.h / 2 - 6;
    this.text(cut(text, room), box.x + 19, y, theme.css.ink, theme.css.ground);
  }

  /** Text with a rim, so that it can be read on any heat. */
  text(text, x, y, color, rim) {
    const { context } = this;
    context.lineJoin = "round";
    context.lineWidth = 3;
    context.strokeStyle = rim;
    context.strokeText(text, x, y);
    context.fillStyle = color;
    context.fillText(text, x, y);
  }

  symbols({ theme, symbolsOf, lit }, path, box) {
    const symbols = symbolsOf(path);
    const rows = Math.min(symbols.length, Math.floor((box.h - 24) / ROW));
    const known = rows ? lit(path) : null;
    const letters = Math.floor((box.w - 20) / LETTER);
    for (let at = 0; at < rows; at++) {
      const symbol = symbols[at];
      const isLit = known.has(symbol.id);
      const rest = symbols.length - rows;
      const text =
        at === rows - 1 && rest > 0
          ? `… ${rest + 1} more`
          : `${isLit ? "▸ " : "  "}${KINDS[symbol.kind] ?? " "} ${line(symbol.name)}`;
      this.text(
        cut(text, letters),
        box.x + 8,
        box.y + 20 + at * ROW,
        isLit ? theme.css.ink : theme.css.dim,
        theme.css.ground,
      );
    }
  }

  /** Borders of folders, and their names in the lower left corner, where files have no sign. */
  folders(scene) {
    const { layout, camera, width, height, theme } = scene;
    const { context } = this;
    const ends = new Map();
    let count = 0;
    for (const it of layout.folders.values()) {
      const box = place(it.x, it.y, it.w, it.h, camera);
      const isOut = box.x > width || box.y > height || box.x + box.w < 0 || box.y + box.h < 0;
      if (isOut || box.w < 40 || box.h < 36 || it.path === "") continue;
      if (++count > MOST_FOLDERS) break;
      context.strokeStyle = theme.css.ground;
      context.lineWidth = it.path.includes("/") ? 1.5 : 3;
      context.strokeRect(box.x, box.y, box.w, box.h);
      this.folderName(`${line(baseName(it.path))}/`, box, scene, ends);
    }
  }

  /** Folders that end in one corner stand side by side there: `ends` has where each row ends. */
  folderName(name, box, { width, height, theme }, ends) {
    const { context } = this;
    const left = Math.max(box.x, 0) + 2;
    const y = Math.min(box.y + box.h, height) - 14;
    const key = `${Math.round(left / 12)} ${Math.round(y / 12)}`;
    const x = ends.get(key) ?? left;
    const room = Math.floor((Math.min(box.x + box.w, width) - x - 8) / LETTER);
    // Half a name names nothing.
    if (room < Math.min(name.length, 10) || y < box.y) return;
    const text = cut(name, room);
    ends.set(key, x + text.length * LETTER + 8);
    context.globalAlpha = 0.85;
    context.fillStyle = theme.css.folder;
    context.fillRect(x, y, text.length * LETTER + 6, 13);
    context.globalAlpha = 1;
    context.fillStyle = theme.css.dim;
    context.fillText(text, x + 3, y + 1);
  }

  zones({ zones, camera }) {
    const { context } = this;
    for (const zone of zones) {
      const box = place(zone.x, zone.y, zone.w, zone.h, camera);
      context.globalAlpha = 0.05;
      context.fillStyle = zone.color;
      context.fillRect(box.x, box.y, box.w, box.h);
      context.globalAlpha = 0.9;
      context.strokeStyle = zone.color;
      context.lineWidth = 1.5;
      context.setLineDash([6, 4]);
      context.strokeRect(
        box.x + 1 + zone.inset,
        box.y + 1 + zone.inset,
        box.w - 2 - 2 * zone.inset,
        box.h - 2 - 2 * zone.inset,
      );
      context.setLineDash([]);
      if (box.w > 60)
        this.text(
          `${zone.mark} ${line(zone.agent)}`,
          box.x + box.w - 12 - (zone.agent.length + 2) * LETTER,
          box.y + 3 + zone.inset * 5,
          zone.color,
          "#00000000",
        );
      context.globalAlpha = 1;
    }
  }

  calls(scene) {
    const { context } = this;
    const { layout, theme, camera, selected } = scene;
    if (selected < 0) return;
    const from = middle(this.box(scene, selected));
    context.strokeStyle = theme.css.call;
    context.fillStyle = theme.css.call;
    context.lineWidth = 1.3;
    for (const call of scene.calls) {
      const it = layout.of(call.path);
      if (!it) continue;
      const to = middle(place(it.x, it.y, it.w, it.h, camera));
      const bend = [
        (from[0] + to[0]) / 2 + (to[1] - from[1]) * 0.15,
        (from[1] + to[1]) / 2 - (to[0] - from[0]) * 0.15,
      ];
      context.setLineDash(call.isOut ? [] : [4, 3]);
      context.beginPath();
      context.moveTo(...from);
      context.quadraticCurveTo(...bend, ...to);
      context.stroke();
      context.setLineDash([]);
      this.arrow(bend, call.isOut ? to : from);
    }
  }

  arrow(from, to) {
    const { context } = this;
    const angle = Math.atan2(to[1] - from[1], to[0] - from[0]);
    context.beginPath();
    context.moveTo(...to);
    for (const turn of [2.7, -2.7])
      context.lineTo(to[0] + 8 * Math.cos(angle + turn), to[1] + 8 * Math.sin(angle + turn));
    context.fill();
  }
}

const KINDS = lookup({ class: "C", method: "m", function: "f" });

function place(x, y, w, h, camera) {
  return {
    x: x * camera.scale + camera.x,
    y: y * camera.scale + camera.y,
    w: w * camera.scale,
    h: h * camera.scale,
  };
}

function middle(box) {
  return [box.x + box.w / 2, box.y + box.h / 2];
}
