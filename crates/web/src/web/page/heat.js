// Owns the heat of files: the maps of all sessions of the agents, what they say of one file, and what was decided of it.

import { lookup } from "./format.js";

/** Sessions whose maps are kept. */
const MOST_SESSIONS = 2_000;
/** Nodes of all maps together; what comes past it is left out. */
const MOST_NODES = 200_000;
/** Changed paths that are noted one by one. */
const MOST_CHANGED = 20_000;
/** The agent of the merged map in a team without a lead, and the one that stands for other processes. */
const NO_AGENT = "orchestrator";
const OUTSIDE = "outside the team";
/** Symbols of a node that are kept. */
const MOST_SYMBOLS = 64;
/** Accesses of the past that are kept, and how many of the oldest go at once. */
const MOST_PAST = 20_000;
const FORGOTTEN = 2_000;
/** Accesses of one agent to one file are noted apart from this distance on. */
const APART_MS = 3_000;
/** Agents and paths of which is kept how their accesses stand. */
const MOST_DECIDED = 10_000;
const STANDS = lookup({ pending: "waits", denied: "blocked", expired: "blocked" });

/**
 * @typedef {{agent: string, heat: number, inContext: boolean, action: string, at: number, symbols: string[], origin: string}} Touch
 * @typedef {{path: string, heat: number, action: string, at: number, touches: Touch[]}} HotFile
 */

export class Heat {
  constructor() {
    /** By agent and session: its generation, and its paths. */
    this.sessions = new Map();
    /** By path: the touches by session. */
    this.files = new Map();
    this.nodes = 0;
    /** Paths that changed since somebody last took them; null: everything did. */
    this.changed = new Set();
    /** By path: how many accesses this page has heard of. */
    this.counts = new Map();
    this.past = new Past();
    this.decided = new Decided();
    this.generation = 0;
  }

  /** Everything follows anew; sessions that do not are dropped by `settle`. */
  begin() {
    this.generation += 1;
  }

  settle() {
    for (const [key, session] of this.sessions) {
      if (session.generation !== this.generation) this.drop(key);
    }
    this.past.isSettled = true;
  }

  snapshot(line) {
    if (!line.session_id) return;
    const key = keyOf(line);
    const nodes = Object.values(line.nodes ?? {});
    const known = this.sessions.get(key);
    if (known) {
      for (const path of known.paths)
        if (!Object.hasOwn(line.nodes ?? {}, path)) this.remove(key, known, path);
    }
    this.put(key, line, nodes);
  }

  delta(line) {
    const key = keyOf(line);
    const known = this.sessions.get(key);
    if (known) for (const path of line.removed ?? []) this.remove(key, known, path);
    this.put(key, line, line.updates ?? []);
  }

  /** Takes a `blocked` line: maps tell that an access was blocked, and not what became of it. */
  blocked({ agent_id: agent, path, id, status, sweep }) {
    if (!agent || sweep || typeof path !== "string") return;
    const access = { agent, path, id, action: standsAs(status) };
    if (!this.decided.take(access)) return;
    this.past.add(access);
    this.mark(path);
  }

  /** Takes all that waits: an access that does not any more has ended while nobody heard of it. */
  waits(lines) {
    const ids = new Set();
    for (const line of lines) (this.blocked(line), ids.add(line.id));
    for (const { agent, path, id } of this.decided.waiting())
      if (!ids.has(id)) this.blocked({ agent_id: agent, path, id, status: "missed" });
  }

  put(key, line, nodes) {
    let session = this.sessions.get(key);
    if (!session) {
      if (!nodes.length) return;
      if (this.sessions.size >= MOST_SESSIONS) return;
      session = { generation: 0, paths: new Set() };
      this.sessions.set(key, session);
    }
    session.generation = this.generation;
    for (const node of nodes) {
      if (isMerged(line)) this.merged(key, session, line.agent_id, node);
      else this.touch(key, session, line.agent_id, node);
    }
    if (!session.paths.size) this.sessions.delete(key);
  }

  /** The merged map tells what no other map has: what its own agent did, and writes from outside the team. */
  merged(key, session, agent, node) {
    const others = this.files.get(node.path);
    if (others && !(others.size === 1 && others.has(key))) return this.remove(key, session, node.path);
    const isOutside = agent === NO_AGENT || node.origin === "observed";
    this.touch(key, session, isOutside ? OUTSIDE : agent, node, true);
  }

  touch(key, session, agent, node, isMerged = false) {
    const path = node.path;
    if (typeof path !== "string") return;
    if (!session.paths.has(path)) {
      if (this.nodes >= MOST_NODES) return;
      session.paths.add(path);
      this.nodes += 1;
    }
    let file = this.files.get(path);
    if (!file) this.files.set(path, (file = new Map()));
    const before = file.get(key);
    const touch = {
      agent,
      heat: node.heat,
      inContext: node.in_context,
      action: node.last_action,
      at: node.timestamp_ms,
      symbols: node.symbols ? node.symbols.slice(0, MOST_SYMBOLS) : [],
      origin: node.origin ?? "",
      noted: before?.noted ?? 0,
      isMerged,
    };
    file.set(key, touch);
    if (before?.at !== touch.at) this.counts.set(path, (this.counts.get(path) ?? 0) + 1);
    this.note(path, key, touch, before);
    this.mark(path);
  }

  /** Keeps an access, or that a file left a context, for the look back. */
  note(path, key, touch, before) {
    const isAccess = before?.at !== touch.at;
    const isOther = before?.inContext !== touch.inContext || before?.action !== touch.action;
    if (!isOther && (!isAccess || touch.at - touch.noted < APART_MS)) return;
    touch.noted = touch.at;
    // The symbols are many, and of now.
    this.past.add({ path, key, touch: { ...touch, symbols: [] } });
  }

  remove(key, session, path) {
    if (!session.paths.delete(path)) return;
    this.nodes -= 1;
    const file = this.files.get(path);
    if (file?.delete(key)) this.past.add({ path, key, touch: null });
    if (file && !file.size) {
      this.files.delete(path);
      this.counts.delete(path);
    }
    this.mark(path);
  }

  drop(key) {
    const session = this.sessions.get(key);
    for (const path of [...session.paths]) this.remove(key, session, path);
    this.sessions.delete(key);
  }

  /**
   * What all agents did with a file.
   * @returns {HotFile | null}
   */
  of(path) {
    const file = this.files.get(path);
    return file ? sumOf(path, file, this.decided) : null;
  }

  /** The `most` files that were accessed last, the latest first. */
  latest(most, isWanted = () => true) {
    let best = [];
    let least = -1;
    for (const [path, file] of this.files) {
      let at = 0;
      for (const touch of file.values()) if (touch.at > at) at = touch.at;
      if (at < least || !isWanted(path)) continue;
      best.push({ path, at });
      if (best.length >= most * 8) ((best = latestOf(best, most)), (least = best.at(-1).at));
    }
    return latestOf(best, most).map((it) => this.of(it.path));
  }

  mark(path) {
    if (this.changed && this.changed.size >= MOST_CHANGED) this.changed = null;
    this.changed?.add(path);
  }

  /** The paths that changed since the last call; null: look at all. */
  takeChanged() {
    const changed = this.changed;
    this.changed = new Set();
    return changed;
  }
}

/** What became of blocked accesses, by agent and path: which wait, and how the last other one stands. */
class Decided {
  constructor() {
    this.byKey = new Map();
  }

  /** Takes how an access stands; false: that is known. */
  take(access) {
    const { agent, path, id, action } = access;
    const key = `${agent}\n${path}`;
    const known = this.byKey.get(key) ?? { waits: new Map(), last: {} };
    const { waits, last } = known;
    if (action === "waits" ? waits.has(id) : !waits.delete(id) && last.id === id && last.action === action) return false;
    if (action === "waits") waits.set(id, access);
    else known.last = access;
    this.byKey.delete(key);
    this.byKey.set(key, known);
    if (this.byKey.size > MOST_DECIDED) this.byKey.delete(this.byKey.keys().next().value);
    return true;
  }

  of(agent, path) {
    const known = this.byKey.get(`${agent}\n${path}`);
    return known?.waits.size ? "waits" : known?.last.action;
  }

  waiting() {
    return [...this.byKey.values()].flatMap(({ waits }) => [...waits.values()]);
  }
}

/** What happened to files since the page was opened, as far as it is kept. */
class Past {
  constructor() {
    /** Of what was before, only the end is known: all that is heard until the lists are there. */
    this.from = Date.now();
    /** By time. */
    this.entries = [];
    this.isSettled = false;
    /** Grows with each entry. */
    this.version = 0;
  }

  /** Adds what this page has just heard of. All has the time of this page: that of the team is another clock. */
  add(entry) {
    entry.when = this.isSettled ? Date.now() : this.from;
    this.entries.push(entry);
    this.version += 1;
    if (this.entries.length > MOST_PAST) this.entries.splice(0, FORGOTTEN);
  }

  /**
   * The files as they were at a moment.
   * @returns {Map<string, HotFile>}
   */
  at(moment) {
    const files = new Map();
    const decided = new Decided();
    for (const entry of this.entries) {
      const { when, path, key, touch } = entry;
      if (when > moment) break;
      if (entry.action) {
        decided.take(entry);
        continue;
      }
      let file = files.get(path);
      if (!file) files.set(path, (file = new Map()));
      if (touch) file.set(key, touch);
      else file.delete(key);
    }
    const sums = new Map();
    for (const [path, file] of files) if (file.size) sums.set(path, sumOf(path, file, decided));
    for (const { path, agent, when: at } of decided.waiting())
      sums.set(path, withWaiting(sums.get(path) ?? null, path, { agents: [agent], at }));
    return sums;
  }
}

function latestOf(files, most) {
  return files.sort((a, b) => b.at - a.at || (a.path < b.path ? -1 : 1)).slice(0, most);
}

/** The state of an access on a map, by its status: it waits, was refused, or has its status. */
export function standsAs(status) {
  return STANDS[status] ?? String(status);
}

/**
 * Adds the agents that wait to those who touched a file.
 * @param {HotFile | null} file
 * @param {{agents: string[], at: number}} waiting
 * @returns {HotFile}
 */
export function withWaiting(file, path, { agents, at }) {
  const known = new Set(file?.touches.map((touch) => touch.agent));
  const touches = agents
    .filter((agent) => !known.has(agent))
    .map((agent) => ({ agent, heat: 0, inContext: false, action: "waits", at, symbols: [], origin: "" }));
  const { heat = 0, action = "waits", at: last = at } = file ?? {};
  return { path, heat, action, at: last, touches: [...(file?.touches ?? []), ...touches] };
}

/** What all touches of a file come to, with what was decided of those that were blocked. */
function sumOf(path, file, decided) {
  const sum = { path, heat: 0, action: "", at: 0, touches: [] };
  for (const it of file.values()) {
    if (it.isMerged && file.size > 1) continue;
    const action = it.action === "blocked" && decided.of(it.agent, path);
    const touch = action ? { ...it, action } : it;
    if (touch.heat > sum.heat) sum.heat = touch.heat;
    if (touch.at >= sum.at) ((sum.at = touch.at), (sum.action = touch.action));
    sum.touches.push(touch);
  }
  return sum;
}

function keyOf(line) {
  return `${line.agent_id}\n${line.session_id}`;
}

/** Whether a map merges those of the others. */
function isMerged(line) {
  return line.session_mode === "orchestrator";
}
