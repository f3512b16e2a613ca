// Owns what the page keeps of the code graph: the files, the symbols of each, and who calls whom.

/** Symbols that are kept; of further ones only the number. */
const MOST_SYMBOLS = 300_000;
/** Calls that are kept. */
const MOST_CALLS = 400_000;
/** Files that are kept. */
const MOST_FILES = 200_000;

/** @typedef {{id: string, name: string, kind: string, from: number}} GraphSymbol */

export class Graph {
  constructor() {
    /** The paths of files. */
    this.files = new Set();
    /** By path: its symbols. */
    this.symbols = new Map();
    /** By caller: what it calls. By called: who calls it. */
    this.callees = new Map();
    this.callers = new Map();
    this.symbolCount = 0;
    this.callCount = 0;
    this.leftOut = 0;
    this.isKnown = false;
    /** Grows with each file that comes or goes. */
    this.version = 0;
  }

  whole(line) {
    Object.assign(this, new Graph(), { version: this.version + 1, isKnown: true });
    this.add(line.nodes);
    for (const call of line.calls ?? []) this.link(call);
  }

  delta(line) {
    for (const id of line.removed?.nodes ?? []) this.remove(id);
    for (const call of line.removed?.calls ?? []) this.unlink(call);
    this.add(line.added?.nodes);
    this.add(line.changed?.nodes);
    for (const call of line.added?.calls ?? []) this.link(call);
  }

  add(nodes) {
    for (const id in nodes ?? {}) {
      const node = nodes[id];
      if (node.kind === "folder") continue;
      if (node.kind === "file") this.addFile(id);
      else this.addSymbol(id, node);
    }
  }

  addFile(id) {
    const isNew = !this.files.has(id);
    if (isNew && this.files.size >= MOST_FILES) return void (this.leftOut += 1);
    this.files.add(id);
    if (isNew) this.version += 1;
  }

  addSymbol(id, node) {
    const path = pathOf(id);
    let symbols = this.symbols.get(path);
    if (!symbols) this.symbols.set(path, (symbols = []));
    const symbol = { id, kind: node.kind, from: node.lines?.start ?? 0 };
    const at = symbols.findIndex((it) => it.id === id);
    if (at >= 0) symbols[at] = symbol;
    else if (this.symbolCount >= MOST_SYMBOLS) this.leftOut += 1;
    else {
      this.symbolCount += 1;
      symbols.push(symbol);
    }
  }

  remove(id) {
    if (this.files.delete(id)) this.version += 1;
    const path = pathOf(id);
    const symbols = this.symbols.get(path);
    if (id === path || !symbols) return;
    const at = symbols.findIndex((it) => it.id === id);
    if (at < 0) return;
    symbols.splice(at, 1);
    this.symbolCount -= 1;
    if (!symbols.length) this.symbols.delete(path);
  }

  link({ from, to }) {
    if (this.callCount >= MOST_CALLS) return void (this.leftOut += 1);
    if (this.callees.get(from)?.includes(to)) return;
    push(this.callees, from, to);
    push(this.callers, to, from);
    this.callCount += 1;
  }

  unlink({ from, to }) {
    if (!pull(this.callees, from, to)) return;
    pull(this.callers, to, from);
    this.callCount -= 1;
  }

  /** @returns {GraphSymbol[]} the symbols of a file, as they stand in it */
  symbolsOf(path) {
    const symbols = [...(this.symbols.get(path) ?? [])].sort((a, b) => a.from - b.from);
    return symbols.map((it) => ({ ...it, name: it.id.slice(path.length + 2) }));
  }

  /**
   * The calls between a file and others, with the symbols, `most` at most.
   * @returns {{from: string, to: string, path: string, isOut: boolean}[]}
   */
  callsOf(path, most) {
    const calls = [];
    for (const { id } of this.symbols.get(path) ?? []) {
      for (const to of this.callees.get(id) ?? [])
        calls.push({ from: id, to, path: pathOf(to), isOut: true });
      for (const from of this.callers.get(id) ?? []) {
        if (pathOf(from) !== path) calls.push({ from, to: id, path: pathOf(from), isOut: false });
      }
      if (calls.length >= most) break;
    }
    return calls.slice(0, most);
  }
}

/** The file of a symbol's id. */
export function pathOf(id) {
  const at = id.indexOf("::");
  return at < 0 ? id : id.slice(0, at);
}

function push(map, key, value) {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}

function pull(map, key, value) {
  const list = map.get(key);
  const at = list ? list.indexOf(value) : -1;
  if (at < 0) return false;
  list.splice(at, 1);
  if (!list.length) map.delete(key);
  return true;
}
