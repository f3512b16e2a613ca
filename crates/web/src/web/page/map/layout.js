// Owns where each file stands on the map: as the supervisor keeps it, else in a simple grid.

/** Files on the map. */
const MOST_FILES = 200_000;
/** Folders that are drawn. */
const MOST_FOLDERS = 40_000;

/** @typedef {{path: string, x: number, y: number, w: number, h: number}} Place */

export class Layout {
  constructor() {
    this.clear();
    /** Whether the team keeps a layout: unknown, or not. */
    this.isKept = true;
    /** Width by height of the room that the map has. */
    this.aspect = 1.5;
  }

  clear() {
    this.seq = null;
    this.width = 1;
    this.height = 1;
    this.stretch = 1;
    /** Files that have no place of their own. */
    this.unplaced = 0;
    /** By slot: the path of a file, or null where none is any more. */
    this.paths = [];
    this.slots = new Map();
    this.free = [];
    this.rects = new Float32Array(1024 * 4);
    /** @type {Map<string, Place>} parents before children */
    this.folders = new Map();
    /** Slots whose place changed since they were last drawn; null: all. */
    this.moved = null;
    this.version = (this.version ?? 0) + 1;
  }

  get count() {
    return this.paths.length;
  }

  /** Takes an answer of `get_layout`: all of it, or what changed since the last one. */
  take(answer) {
    if (answer.whole ?? true) this.clear();
    if (answer.whole ?? true) this.stretch = stretchOf(answer, this.aspect);
    for (const path of answer.removed ?? []) this.remove(path);
    this.putFolders(answer.folders ?? []);
    for (const place of answer.files ?? []) this.put(place);
    this.seq = answer.seq;
    this.width = Math.max(1, answer.width * this.stretch);
    this.height = Math.max(1, answer.height);
    this.version += 1;
  }

  putFolders(folders) {
    if (!folders.length) return;
    for (const it of folders) {
      this.folders.set(it.path, { ...it, x: it.x * this.stretch, w: it.w * this.stretch });
    }
    const sorted = [...this.folders.values()].sort((a, b) => depth(a.path) - depth(b.path));
    this.folders = new Map(sorted.slice(0, MOST_FOLDERS).map((it) => [it.path, it]));
    this.unplaced = sorted.reduce((sum, it) => sum + (it.more ?? 0), 0);
  }

  put(place) {
    let slot = this.slots.get(place.path);
    if (slot === undefined) {
      slot = this.free.pop() ?? this.paths.length;
      if (slot >= MOST_FILES) return;
      this.paths[slot] = place.path;
      this.slots.set(place.path, slot);
      if ((slot + 1) * 4 > this.rects.length) this.growTo(slot + 1);
    }
    this.rects.set([place.x * this.stretch, place.y, place.w * this.stretch, place.h], slot * 4);
    this.moved?.add(slot);
  }

  growTo(slots) {
    const more = new Float32Array(Math.max(slots * 4, this.rects.length * 2));
    more.set(this.rects);
    this.rects = more;
    this.moved = null;
  }

  remove(path) {
    this.folders.delete(path);
    const slot = this.slots.get(path);
    if (slot === undefined) return;
    this.slots.delete(path);
    this.paths[slot] = null;
    this.free.push(slot);
    this.rects.fill(0, slot * 4, slot * 4 + 4);
    this.moved?.add(slot);
  }

  takeMoved() {
    const { moved } = this;
    this.moved = new Set();
    return moved;
  }

  /** The place of a file, or null. */
  of(path) {
    const slot = this.slots.get(path);
    if (slot === undefined) return null;
    const [x, y, w, h] = this.rects.subarray(slot * 4, slot * 4 + 4);
    return { path, x, y, w, h };
  }

  /** The slot of the file at a point, or -1. */
  at(x, y) {
    const { rects } = this;
    for (let slot = 0, at = 0; slot < this.paths.length; slot++, at += 4) {
      if (
        x >= rects[at] &&
        y >= rects[at + 1] &&
        x < rects[at] + rects[at + 2] &&
        y < rects[at + 1] + rects[at + 3]
      )
        return slot;
    }
    return -1;
  }
}

/** Files in a grid by their paths, for a team that keeps no layout: they move as others come. */
export function gridOf(paths) {
  const sorted = [...paths].sort();
  const columns = Math.max(1, Math.ceil(Math.sqrt(sorted.length * 1.6)));
  const rows = Math.max(1, Math.ceil(sorted.length / columns));
  const files = sorted.map((path, at) => ({
    path,
    x: (at % columns) * 160,
    y: Math.floor(at / columns) * 100,
    w: 150,
    h: 92,
  }));
  return { seq: 0, whole: true, isGrid: true, width: columns * 160, height: rows * 100, folders: [], files };
}

/** How much wider than it is a layout is drawn, to fill its room. */
function stretchOf({ width, height, isGrid }, aspect) {
  return isGrid ? 1 : Math.max(0.5, Math.min(2.5, (aspect * height) / width));
}

function depth(path) {
  let count = path ? 1 : 0;
  for (let at = path.indexOf("/"); at >= 0; at = path.indexOf("/", at + 1)) count += 1;
  return count;
}
