// Owns what happened to files over time, how hot each was at a moment, and how time becomes a scale without its gaps.

import { isAside, lookup } from "../format.js";
import { standsAs } from "../heat.js";

/** Accesses that are kept, and how many of them aside of the team's work. */
const MOST = 60_000;
const MOST_ASIDE = 20_000;
/** A file cools to half of its heat in this time. */
const HALF_MS = 60_000;
const COLD = 0.02;
/** A pause of this length is cut out of the scale. */
const GAP_MS = 60_000;
/** Cuts of the scale; the shortest pauses beyond that stay. */
const MOST_GAPS = 200;
/** The part of the scale that a cut takes, and that all of them take at most. */
const GAP_SHARE = 0.012;
const ALL_GAPS_SHARE = 0.3;
/** What happened at one moment has this part of the time around it. */
const LEAST_SHARE = 0.02;

const ACTIONS = lookup({
  "file.write": "write",
  "file.create": "write",
  "file.delete": "write",
  "file.rename": "write",
  "file.read": "read",
});

/** @typedef {{at: number, agent: string, path: string, action: string}} Access */

export class Timeline {
  constructor() {
    /** @type {Access[]} by time */
    this.all = [];
    /** @type {Access[]} those of them that are shown */
    this.accesses = [];
    this.asides = 0;
    /** By blocked access: how it stands. */
    this.blocks = new Map();
    this.isFull = false;
    this.isSorted = true;
    /** The parts of the time in which something happened: from, to, and where on the scale of 0 to 1. */
    this.parts = [];
  }

  get from() {
    return this.accesses[0]?.at ?? 0;
  }

  get to() {
    return this.accesses.at(-1)?.at ?? 0;
  }

  add(at, agent, path, action) {
    if (!path || !Number.isFinite(at)) return;
    const aside = isAside(path);
    if (aside && this.asides >= MOST_ASIDE) return;
    if (this.all.length - this.asides >= MOST && !aside) return void (this.isFull = true);
    if (at < (this.all.at(-1)?.at ?? 0)) this.isSorted = false;
    this.all.push({ at, agent, path, action });
    this.asides += aside ? 1 : 0;
  }

  /** Takes an event of the journal. */
  event(event) {
    const { type, payload, timestamp: at, agent_id: agent } = event;
    if (type === "blocked") return this.blocked(at, agent ?? "", payload?.blocked_id, payload ?? {});
    const action = ACTIONS[type];
    if (action) this.add(at, agent ?? "", payload?.path, action);
  }

  /** Takes what is said of a blocked access: it waits, or what was decided. Each new count of several says the same. */
  blocked(at, agent, id, { path, status }) {
    const key = `${agent} ${id} ${path}`;
    const action = standsAs(status);
    if (this.blocks.get(key) === action) return;
    if (this.blocks.size < MOST || this.blocks.has(key)) this.blocks.set(key, action);
    this.add(at, agent, path, action);
  }

  /** Takes a line of `replay_session`: nodes say when they were accessed, and lines of their own what was blocked. */
  replayed(line) {
    if (line.type === "blocked") return this.blocked(line.timestamp_ms, line.agent_id, line.id, line);
    const nodes =
      line.type === "snapshot" ? Object.values(line.nodes ?? {}) : line.type === "delta" ? line.updates : [];
    for (const node of nodes) {
      const key = `${node.path} ${node.timestamp_ms}`;
      if (node.last_action === "blocked" || this.lastKey?.get(node.path) === key) continue;
      (this.lastKey ??= new Map()).set(node.path, key);
      this.add(node.timestamp_ms, line.agent_id, node.path, node.last_action);
    }
  }

  /** All is there; with `hasAside` also what is none of the team's work is shown. */
  end(hasAside) {
    if (!this.isSorted) this.all.sort((a, b) => a.at - b.at);
    this.isSorted = true;
    this.lastKey = null;
    this.choose(hasAside);
  }

  /** Chooses what is shown, and cuts its scale. */
  choose(hasAside) {
    this.accesses = hasAside ? this.all : this.all.filter((it) => !isAside(it.path));
    const pauses = [];
    for (let n = 1; n < this.accesses.length; n++) {
      const ms = this.accesses[n].at - this.accesses[n - 1].at;
      if (ms > GAP_MS) pauses.push({ n, ms });
    }
    const cuts = pauses
      .sort((a, b) => b.ms - a.ms)
      .slice(0, MOST_GAPS)
      .sort((a, b) => a.n - b.n);
    this.parts = [];
    let from = this.from;
    for (const { n } of cuts) {
      this.parts.push({ from, to: this.accesses[n - 1].at });
      from = this.accesses[n].at;
    }
    if (this.accesses.length) this.parts.push({ from, to: this.to });
    const gap = Math.min(GAP_SHARE, ALL_GAPS_SHARE / Math.max(1, cuts.length));
    const sum = this.parts.reduce((all, it) => all + it.to - it.from, 0);
    const length = (it) => Math.max(1, sum * LEAST_SHARE, it.to - it.from);
    const all = this.parts.reduce((lengths, it) => lengths + length(it), 0);
    let place = 0;
    for (const part of this.parts) {
      part.begin = place;
      part.end = place + (length(part) / all) * (1 - gap * cuts.length);
      place = part.end + gap;
    }
  }

  /** Pauses that the scale leaves out: where it has them, and how long they were. */
  gaps() {
    return this.parts.slice(1).map((next, at) => {
      const last = this.parts[at];
      return { begin: last.end, end: next.begin, ms: next.from - last.to };
    });
  }

  /** Where a moment is on the scale of 0 to 1. */
  placeOf(at) {
    const part = this.parts.findLast((it) => it.from <= at) ?? this.parts[0];
    if (!part) return 0;
    const share = part.to > part.from ? Math.min(1, Math.max(0, at - part.from) / (part.to - part.from)) : 1;
    return part.begin + share * (part.end - part.begin);
  }

  /** The moment at a place of the scale; within a pause its end. */
  timeAt(place) {
    const part = this.parts.find((it) => place <= it.end) ?? this.parts.at(-1);
    if (!part) return 0;
    const share = Math.max(0, place - part.begin) / Math.max(1e-9, part.end - part.begin);
    return part.from + Math.min(1, share) * (part.to - part.from);
  }

  /** The moment so many milliseconds later, without the pauses. */
  later(at, ms) {
    const next = at + ms;
    const part = this.parts.findLast((it) => it.from <= at);
    if (!part || next <= part.to) return Math.min(next, this.to);
    const behind = this.parts[this.parts.indexOf(part) + 1];
    return behind ? behind.from : this.to;
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
      if (!file) files.set(access.path, (file = { ...access, heat, touches: [] }));
      if (file.touches.some((it) => it.agent === access.agent)) continue;
      file.touches.push({ ...access, heat, inContext: false, symbols: [], origin: "" });
    }
    return files;
  }

  /** How many accesses fall into each of `count` equal parts of the scale. */
  histogram(count) {
    const bins = new Array(count).fill(0);
    for (const { at } of this.accesses) bins[Math.min(count - 1, Math.floor(this.placeOf(at) * count))] += 1;
    return bins;
  }
}
