// Owns the heat of files: the maps of all sessions of the agents, and what they say of one file.

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
    /** By agent: the last turn with an access. */
    this.turns = new Map();
    this.nodes = 0;
    this.leftOut = 0;
    /** Paths that changed since somebody last took them; null: everything did. */
    this.changed = new Set();
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
    this.touch(key, session, isOutside ? OUTSIDE : agent, node);
    const own = this.files.get(node.path)?.get(key);
    if (own) own.isMerged = true;
  }

  touch(key, session, agent, node) {
    const path = node.path;
    if (typeof path !== "string") return;
    if (!session.paths.has(path)) {
      if (this.nodes >= MOST_NODES) return void (this.leftOut += 1);
      session.paths.add(path);
      this.nodes += 1;
    }
    if (
      node.turn_accessed > (this.turns.get(agent) ?? -1) &&
      (this.turns.size < MOST_SESSIONS || this.turns.has(agent))
    )
      this.turns.set(agent, node.turn_accessed);
    let file = this.files.get(path);
    if (!file) this.files.set(path, (file = new Map()));
    file.set(key, {
      agent,
      heat: node.heat,
      inContext: node.in_context,
      action: node.last_action,
      at: node.timestamp_ms,
      symbols: node.symbols ? node.symbols.slice(0, MOST_SYMBOLS) : [],
      origin: node.origin ?? "",
    });
    this.mark(path);
  }

  remove(key, session, path) {
    if (!session.paths.delete(path)) return;
    this.nodes -= 1;
    const file = this.files.get(path);
    file?.delete(key);
    if (file && !file.size) this.files.delete(path);
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
    if (!file) return null;
    const sum = { path, heat: 0, action: "", at: 0, touches: [] };
    for (const touch of file.values()) {
      if (touch.isMerged && file.size > 1) continue;
      if (touch.heat > sum.heat) sum.heat = touch.heat;
      if (touch.at >= sum.at) ((sum.at = touch.at), (sum.action = touch.action));
      sum.touches.push(touch);
    }
    return sum;
  }

  /** The `most` hottest files; of equal ones the last accessed first. */
  hottest(most) {
    const order = (a, b) => b.heat - a.heat || b.at - a.at || (a.path < b.path ? -1 : 1);
    let best = [];
    let least = -1;
    for (const [path, file] of this.files) {
      let heat = 0;
      let at = 0;
      for (const touch of file.values()) {
        if (touch.heat > heat) heat = touch.heat;
        if (touch.at > at) at = touch.at;
      }
      if (heat < least) continue;
      best.push({ path, heat, at });
      // Most files are cold: few are ever sorted.
      if (best.length >= most * 8) ((best = best.sort(order).slice(0, most)), (least = best.at(-1).heat));
    }
    return best
      .sort(order)
      .slice(0, most)
      .map((it) => this.of(it.path));
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

function keyOf(line) {
  return `${line.agent_id}\n${line.session_id}`;
}

/** Whether a map merges those of the others. */
function isMerged(line) {
  return line.session_mode === "orchestrator";
}
