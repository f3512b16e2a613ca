// Owns what happened to files over time, and how hot each was at a moment.

import { lookup } from "../format.js";

/** Accesses that are kept. */
const MOST = 60_000;
/** A file cools to half of its heat in this time. */
const HALF_MS = 60_000;
const COLD = 0.02;

const ACTIONS = lookup({
  "file.write": "write",
  "file.create": "write",
  "file.delete": "write",
  "file.rename": "write",
  "file.read": "read",
  blocked: "blocked",
});

/** @typedef {{at: number, agent: string, path: string, action: string}} Access */

export class Timeline {
  constructor() {
    /** @type {Access[]} by time */
    this.accesses = [];
    this.isFull = false;
    /** Events that are marked beside the scrubber: ends of turns, blocked accesses. */
    this.isSorted = true;
  }

  get from() {
    return this.accesses[0]?.at ?? 0;
  }

  get to() {
    return this.accesses.at(-1)?.at ?? 0;
  }

  add(at, agent, path, action) {
    if (!path || !Number.isFinite(at)) return;
    if (this.accesses.length >= MOST) return void (this.isFull = true);
    if (at < this.to) this.isSorted = false;
    this.accesses.push({ at, agent, path, action });
  }

  /** Takes an event of the journal. */
  event(event) {
    const action = ACTIONS[event.type];
    if (action) this.add(event.timestamp, event.agent_id ?? "", event.payload?.path, action);
  }

  /** Takes a line of `replay_session`: nodes say when they were accessed. */
  replayed(line) {
    const nodes =
      line.type === "snapshot" ? Object.values(line.nodes ?? {}) : line.type === "delta" ? line.updates : [];
    for (const node of nodes) {
      const key = `${node.path} ${node.timestamp_ms}`;
      if (this.lastKey?.get(node.path) === key) continue;
      (this.lastKey ??= new Map()).set(node.path, key);
      this.add(node.timestamp_ms, line.agent_id, node.path, node.last_action);
    }
  }

  end() {
    if (!this.isSorted) this.accesses.sort((a, b) => a.at - b.at);
    this.isSorted = true;
    this.lastKey = null;
  }

  /** How many accesses there were until `at`. */
  countUntil(at) {
    let [low, high] = [0, this.accesses.length];
    while (low < high) {
      const mid = (low + high) >> 1;
      if (this.accesses[mid].at <= at) low = mid + 1;
      else high = mid;
    }
    return low;
  }

  /**
   * The files that are hot at a moment.
   * @returns {Map<string, import("../heat.js").HotFile>}
   */
  filesAt(at) {
    const files = new Map();
    const reach = HALF_MS * Math.log2(1 / COLD);
    for (let n = this.countUntil(at) - 1; n >= 0; n--) {
      const access = this.accesses[n];
      if (at - access.at > reach) break;
      let file = files.get(access.path);
      const heat = 0.5 ** ((at - access.at) / HALF_MS);
      if (!file)
        files.set(
          access.path,
          (file = { path: access.path, heat, action: access.action, at: access.at, touches: [] }),
        );
      if (file.touches.some((it) => it.agent === access.agent)) continue;
      file.touches.push({
        agent: access.agent,
        heat,
        inContext: false,
        action: access.action,
        at: access.at,
        symbols: [],
        origin: "",
      });
    }
    return files;
  }

  /** How many accesses fall into each of `count` equal parts of the time. */
  histogram(count) {
    const bins = new Array(count).fill(0);
    const span = Math.max(1, this.to - this.from);
    for (const { at } of this.accesses)
      bins[Math.min(count - 1, Math.floor(((at - this.from) / span) * count))] += 1;
    return bins;
  }
}
