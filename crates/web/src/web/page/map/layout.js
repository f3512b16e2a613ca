// Owns where everything stands on the map: files that agents touched, or that wait, have tiles of their own; what
// nobody touched is folded. Places change only as a file is touched first, a folder is opened, or the room changes.

import { isAside } from "../format.js";

/** Touched files that have tiles; the latest are kept. */
const MOST_TOUCHED = 400;
/** Files of an opened folder that have tiles. */
const MOST_OPENED = 300;
/** Tiles at all. */
const MOST_TILES = 2_500;
/** Files of the workspace that are looked at. */
const MOST_FILES = 200_000;
/** A small workspace shows the other files of a touched folder. */
const SMALL = 200;
const MOST_OTHERS = 12;
/** Untouched folders that stand side by side before they are folded into one. */
const MOST_FOLDED = [16, 6];
/** A folder with much in it leaves room for the others. */
const DAMPED = 0.9;
const LEAST_WEIGHT = 8;
/** Pixels of a folder's head, of its rim, and the least size that has a head. */
export const HEAD = 20;
const RIM = 4;
const LEAST = 46;
const GAP = 3;
/** The folder of what is not in the workspace. */
export const OUTSIDE = "/";

/**
 * @typedef {{kind: "file" | "folder" | "folded", path: string, name: string, weight: number, x: number, y: number,
 *   w: number, h: number, depth: number, files?: number, folders?: number, hasHead?: boolean, isNew?: boolean}} Tile
 */

export class Layout {
  constructor() {
    this.width = 900;
    this.height = 600;
    /** By folder: its files, its folders, and how many files are in it at any depth. */
    this.tree = new Map([["", { files: [], folders: [], count: 0 }]]);
    this.known = new Set();
    /** Paths that were touched, the latest last, with how often. */
    this.touched = new Map();
    /** Paths that are shown since they wait, or are selected. */
    this.ghosts = new Set();
    this.pinned = "";
    this.opened = new Set();
    /** @type {Tile[]} parents before children */
    this.tiles = [];
    /** By path: tiles of files, and of folders. */
    this.files = new Map();
    this.folders = new Map();
    this.isStale = true;
    this.version = 0;
    this.symbolsOf = () => 0;
  }

  /** Takes all files of the workspace. */
  setFiles(paths) {
    this.tree = new Map([["", { files: [], folders: [], count: 0 }]]);
    this.known = new Set();
    for (const path of paths) {
      if (this.known.size >= MOST_FILES) break;
      if (isAside(path)) continue;
      this.known.add(path);
      const folder = this.ensure(parentOf(path));
      folder.files.push(path);
    }
    this.count("");
    this.isStale = true;
  }

  /** Counts the files of a folder at any depth. */
  count(path) {
    const it = this.tree.get(path);
    it.count = it.files.length;
    for (const sub of it.folders) it.count += this.count(sub);
    return it.count;
  }

  ensure(path) {
    const known = this.tree.get(path);
    if (known) return known;
    const it = { files: [], folders: [], count: 0 };
    this.tree.set(path, it);
    this.ensure(parentOf(path)).folders.push(path);
    return it;
  }

  /** A file was touched: it has a tile from now on. */
  touch(path, times = 1) {
    if (isAside(path)) return;
    if (!this.touched.has(path)) this.isStale = true;
    else this.touched.delete(path);
    this.touched.set(path, times);
    if (this.touched.size > MOST_TOUCHED) this.touched.delete(this.touched.keys().next().value);
  }

  /** What waits or is new has a tile as long as it does. */
  setGhosts(paths) {
    const same = paths.size === this.ghosts.size && [...paths].every((it) => this.ghosts.has(it));
    if (same) return;
    this.ghosts = paths;
    this.isStale = true;
  }

  /** A selected file is shown wherever it is. */
  pin(path) {
    if (!path || path === this.pinned || this.files.has(path)) return;
    this.pinned = path;
    this.isStale = true;
  }

  /** Opens a folder, or folds it again. */
  toggle(path) {
    if (!this.opened.delete(path)) this.opened.add(path);
    this.isStale = true;
  }

  /** Has the room changed? */
  resize(width, height) {
    if (width === this.width && height === this.height) return;
    this.width = width;
    this.height = height;
    this.isStale = true;
  }

  /** Puts all in its place, if something has changed. */
  arrange() {
    if (!this.isStale) return false;
    this.isStale = false;
    this.version += 1;
    this.kept = new Map();
    this.busy = new Set([""]);
    const pinned = this.known.has(this.pinned) ? this.pinned : "";
    const shown = [...this.touched.keys(), ...this.ghosts, pinned].filter(Boolean);
    for (const path of new Set(shown)) this.keep(path);
    for (const path of this.opened) if (this.tree.has(path)) this.expand(path);
    this.room = MOST_TILES;
    const root = this.folder("", 0);
    this.tiles = [];
    this.files = new Map();
    this.folders = new Map();
    this.place(root, { x: 0, y: 0, w: this.width, h: this.height });
    return true;
  }

  keep(path) {
    // A folder that waits is shown as one.
    if (this.tree.has(path)) return this.expand(path);
    const folder = parentOf(path);
    this.ensure(folder);
    if (!this.kept.has(folder)) this.kept.set(folder, new Set());
    this.kept.get(folder).add(path);
    this.expand(folder);
  }

  expand(folder) {
    for (let at = folder; !this.busy.has(at); at = parentOf(at)) this.busy.add(at);
  }

  /** A folder with what is in it, weighed. */
  folder(path, depth) {
    const it = this.tree.get(path);
    const kept = this.kept.get(path) ?? new Set();
    const children = [...kept].map((file) => this.file(file, depth + 1, true));
    const isOpen = this.opened.has(path);
    const untouched = [];
    for (const sub of it.folders) {
      if (this.busy.has(sub)) children.push(this.folder(sub, depth + 1));
      else if (this.tree.get(sub).count) untouched.push(sub);
    }
    const rest = it.files.filter((file) => !kept.has(file));
    const most = isOpen ? MOST_OPENED : this.known.size <= SMALL ? MOST_OTHERS : 0;
    const others = rest.length <= most || isOpen ? rest.slice(0, Math.min(most, this.room)) : [];
    this.room -= others.length + children.length;
    for (const file of others) children.push(this.file(file, depth + 1, false));
    const isFew = isOpen || untouched.length <= MOST_FOLDED[Math.min(depth, 1)];
    const apart = isFew ? untouched.slice(0, Math.max(0, this.room)) : [];
    this.room -= apart.length;
    for (const sub of apart) children.push(folded(sub, nameOf(sub), depth + 1, this.tree.get(sub).count, 0));
    const left = untouched.slice(apart.length);
    const files = rest.length - others.length + left.reduce((sum, sub) => sum + this.tree.get(sub).count, 0);
    if (files) children.push(folded(path, "", depth + 1, files, left.length));
    return this.merged({ kind: "folder", path, name: nameOf(path), depth, children, weight: 0 });
  }

  /** Folders with one folder in them, and nothing else, stand as one. */
  merged(it) {
    const [only] = it.children;
    if (it.path && it.children.length === 1 && only.kind === "folder")
      return { ...only, name: `${it.name}/${only.name}`, depth: it.depth };
    const sum = it.children.reduce((all, child) => all + child.weight, 0);
    it.weight = Math.max(LEAST_WEIGHT, sum ** DAMPED);
    it.children.sort((a, b) => b.weight - a.weight || (a.path < b.path ? -1 : 1));
    return it;
  }

  file(path, depth, isKept) {
    const symbols = Math.min(24, this.symbolsOf(path));
    // By levels: a file that is touched once more stays where it is.
    const often = Math.floor(Math.log2(1 + Math.min(63, this.touched.get(path) ?? 0)));
    const weight = isKept ? 12 + often * 4 + symbols * 0.5 : 3 + symbols * 0.15;
    return { kind: "file", path, name: nameOf(path), depth, weight, isNew: !this.known.has(path) };
  }

  place(tile, { x, y, w, h }) {
    Object.assign(tile, { x, y, w, h });
    if (tile.path !== "" || tile.kind !== "folder") this.tiles.push(tile);
    if (tile.kind === "file") return void this.files.set(tile.path, tile);
    if (tile.kind === "folded" && !tile.name) return;
    this.folders.set(tile.path, tile);
    if (tile.kind === "folded") return;
    const isRoot = tile.path === "";
    tile.hasHead = !isRoot && w >= LEAST && h >= LEAST;
    const rim = isRoot ? 0 : Math.min(RIM, w / 8, h / 8);
    const head = tile.hasHead ? HEAD : rim;
    squarify(tile.children, { x: x + rim, y: y + head, w: w - 2 * rim, h: h - head - rim }, (child, box) =>
      this.place(child, box),
    );
  }

  /**
   * The folders that can be opened, or folded again, as they stand on the map; the workspace itself has no name.
   * @returns {{path: string, tile: Tile | null, files: number, isOpen: boolean}[]}
   */
  foldable() {
    const all = new Map();
    const add = (path, tile, files) =>
      all.has(path) || all.set(path, { path, tile, files, isOpen: this.opened.has(path) });
    if (this.opened.has("")) add("", null, this.tree.get("").count);
    for (const it of this.tiles) {
      if (it.kind === "folded") add(it.path, it, it.files);
      else if (it.kind === "folder" && this.opened.has(it.path)) add(it.path, it, this.tree.get(it.path).count);
    }
    return [...all.values()];
  }

  /** The tile of a file, or null. */
  of(path) {
    return this.files.get(path) ?? null;
  }

  /** The innermost tile at a point, or null. */
  at(x, y) {
    for (let at = this.tiles.length - 1; at >= 0; at--) {
      const it = this.tiles[at];
      if (x >= it.x && y >= it.y && x < it.x + it.w && y < it.y + it.h) return it;
    }
    return null;
  }
}

function folded(path, name, depth, files, folders) {
  // A thousand files nobody looks at are hardly more than a hundred.
  const weight = (name ? 2.5 : 2) + Math.log2(1 + files) * 0.9;
  return { kind: "folded", path, name, depth, weight, files, folders };
}

/** Fills a rectangle with tiles by weight, as square as they can be, in their order. */
function squarify(tiles, room, put) {
  let { x, y, w, h } = room;
  let left = tiles.reduce((sum, it) => sum + it.weight, 0);
  for (let at = 0; at < tiles.length; ) {
    const side = Math.max(1, Math.min(w, h));
    const scale = (w * h) / left;
    let end = at;
    let row = 0;
    let worst = Infinity;
    for (; end < tiles.length; end++) {
      const sum = row + tiles[end].weight;
      const thick = (sum * scale) / side;
      // The first of a row is its largest, and this one the smallest.
      const next = Math.max(
        ratio((tiles[at].weight * scale) / thick, thick),
        ratio((tiles[end].weight * scale) / thick, thick),
      );
      if (end > at && next > worst) break;
      [worst, row] = [next, sum];
    }
    const isColumn = w >= h;
    const thick = (row / left) * (isColumn ? w : h);
    let along = isColumn ? y : x;
    for (; at < end; at++) {
      const long = (tiles[at].weight / row) * (isColumn ? h : w);
      const box = isColumn ? { x, y: along, w: thick, h: long } : { x: along, y, w: long, h: thick };
      put(tiles[at], inset(box));
      along += long;
    }
    if (isColumn) ((x += thick), (w -= thick));
    else ((y += thick), (h -= thick));
    left -= row;
  }
}

function ratio(a, b) {
  return a > b ? a / b : b / a;
}

function inset({ x, y, w, h }) {
  const by = Math.min(GAP / 2, w / 6, h / 6);
  return { x: x + by, y: y + by, w: Math.max(0.5, w - 2 * by), h: Math.max(0.5, h - 2 * by) };
}

/** The folder of a path; what is outside has one for all of it. */
export function parentOf(path) {
  if (path.startsWith("/")) return path === OUTSIDE ? "" : OUTSIDE;
  const at = path.lastIndexOf("/");
  return at < 0 ? "" : path.slice(0, at);
}

function nameOf(path) {
  if (path === OUTSIDE) return "outside the workspace";
  return path.startsWith("/") ? path : path.slice(path.lastIndexOf("/") + 1);
}
