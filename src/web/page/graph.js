// Owns what the page keeps of the code graph: the files, the symbols of each, and who calls whom.

/** Symbols that are kept; of further ones only the number. */
const MOST_SYMBOLS = 300_000;
/** Calls that are kept. */
const MOST_CALLS = 400_000;
/** Files that are kept. */
const MOST_FILES = 200_000;

/** @typedef {{id: string, name: string, kind: string, from: number, to: number, tokens: number}} GraphSymbol */

export class Graph {
  constructor() {
    /** By path: tokens and language. */
    this.files = new Map();
    /** By path: its symbols by id. */
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
      if (node.kind === "file") this.addFile(id, node);
      else this.addSymbol(id, node);
    }
  }

  addFile(id, node) {
    const isNew = !this.files.has(id);
    if (isNew && this.files.size >= MOST_FILES) return void (this.leftOut += 1);
    this.files.set(id, node.tokens ?? 0);
    if (isNew) this.version += 1;
  }

  addSymbol(id, node) {
    const path = pathOf(id);
    let symbols = this.symbols.get(path);
    if (!symbols) this.symbols.set(path, (symbols = new Map()));
    if (!symbols.has(id)) {
      if (this.symbolCount >= MOST_SYMBOLS) return void (this.leftOut += 1);
      this.symbolCount += 1;
    }
    const { start = 0, end = 0 } = node.lines ?? {};
    symbols.set(id, { id, name: id.slice(path.length + 2), kind: node.kind, from: start, to: end, tokens: node.tokens ?? 0 });
  }

  remove(id) {
    if (this.files.delete(id)) this.version += 1;
    const path = pathOf(id);
    const symbols = this.symbols.get(path);
    if (id === path || !symbols) return;
    if (symbols.delete(id)) this.symbolCount -= 1;
    if (!symbols.size) this.symbols.delete(path);
  }

  link({ from, to }) {
    if (this.callCount >= MOST_CALLS) return void (this.leftOut += 1);
    const callees = setIn(this.callees, from);
    if (callees.has(to)) return;
    callees.add(to);
    setIn(this.callers, to).add(from);
    this.callCount += 1;
  }

  unlink({ from, to }) {
    if (!this.callees.get(from)?.delete(to)) return;
    if (!this.callees.get(from).size) this.callees.delete(from);
    const callers = this.callers.get(to);
    callers?.delete(from);
    if (callers && !callers.size) this.callers.delete(to);
    this.callCount -= 1;
  }

  /** @returns {GraphSymbol[]} the symbols of a file, as they stand in it */
  symbolsOf(path) {
    return [...(this.symbols.get(path)?.values() ?? [])].sort((a, b) => a.from - b.from);
  }

  /**
   * The calls between a file and others, with the symbols, `most` at most.
   * @returns {{from: string, to: string, path: string, isOut: boolean}[]}
   */
  callsOf(path, most) {
    const calls = [];
    for (const id of this.symbols.get(path)?.keys() ?? []) {
      for (const to of this.callees.get(id) ?? []) calls.push({ from: id, to, path: pathOf(to), isOut: true });
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

function setIn(map, key) {
  let set = map.get(key);
  if (!set) map.set(key, (set = new Set()));
  return set;
}
