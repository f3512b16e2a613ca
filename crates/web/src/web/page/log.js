// Owns the log: one entry for each event that people want to know of.

import { counted, cut, isAside, line as oneLine, lookup, turnName } from "./format.js";

/** Entries that are kept; the oldest is dropped first. */
const MOST_ENTRIES = 1_000;
/** Characters of an entry. */
const LONGEST = 512;
/** Events of the journal that are asked for at once. */
const PAGE = 200;
/** Milliseconds between the times that a line and the journal give one event. */
const NEAR_MS = 1_000;
const TYPES = ["agent.state", "blocked", "turn"];

/**
 * @typedef {{n: number, at: number, agent: string, state: string, text: string, sweep: string | null,
 *   noise: number}} LogEntry
 */

export class Log {
  constructor() {
    /** @type {LogEntry[]} oldest first */
    this.entries = [];
    this.next = 0;
    /** Where the next look back begins: an event's id; null where nothing is left. */
    this.before = undefined;
  }

  /** Puts a page of what happened before in front; `edge`: where the lines of this connection begin. */
  async earlier(call, edge) {
    if (this.before === undefined) this.before = edge;
    const { before } = this;
    if (!before || this.entries.length >= MOST_ENTRIES) return;
    this.before = null;
    try {
      const { events, next } = await call("list_events", { types: TYPES, last: true, limit: PAGE, before });
      this.before = next;
      let n = this.entries[0]?.n ?? this.next;
      const room = Math.max(0, MOST_ENTRIES - this.entries.length);
      const known = new Set(this.entries.map((it) => it.sweep));
      // A later count of a sweep has all of it.
      const isLast = (it) => it && (!it.sweep || (!known.has(it.sweep) && known.add(it.sweep)));
      // A connection begins with how things stand: some of it is the journal's last.
      const isHere = (it) =>
        this.entries.some(
          (have) => have.agent === it.agent && have.text === it.text && Math.abs(have.at - it.at) < NEAR_MS,
        );
      const entries = events.map(entryOfEvent).reverse().filter((it) => isLast(it) && !isHere(it)).reverse();
      entries.splice(0, entries.length - room);
      for (const entry of [...entries].reverse()) entry.n = n -= 1;
      this.entries = [...entries, ...this.entries];
    } catch (error) {
      this.before = before;
      throw error;
    }
  }

  /**
   * The last entries, the last first. Unless `all` are wanted, the noise of an agent is one with its number.
   * @returns {LogEntry[]}
   */
  shown(most, all) {
    const sums = new Map();
    const entries = this.entries.slice(-most).reverse();
    if (all) return entries;
    for (const { agent, noise } of entries) if (noise) sums.set(agent, (sums.get(agent) ?? 0) + noise);
    return entries.flatMap((it) => {
      if (!it.noise) return [it];
      const sum = sums.get(it.agent);
      if (!sums.delete(it.agent)) return [];
      const text = `${counted(sum, "refusal")} in passing: harmless, outside the workspace or in .git`;
      return [{ ...it, n: `${it.n} ${sum}`, state: "harmless", text }];
    });
  }

  /** Adds an entry for a line, if it is an event. */
  line(line) {
    const first = line.agents?.[0];
    const agent = line.agent_id ?? first?.agent_id ?? first ?? "";
    const entry = entryOf(line, this.next, agent, line.timestamp_ms ?? Date.now());
    if (!entry) return false;
    // What counts up is one entry.
    if (line.sweep) this.entries = this.entries.filter((it) => it.sweep !== line.id);
    // A team says some things twice around the time of the connect.
    if (
      this.entries.slice(-20).some((it) => it.text === entry.text && it.agent === agent && it.at === entry.at)
    )
      return false;
    this.next += 1;
    this.entries.push(entry);
    if (this.entries.length > MOST_ENTRIES) this.entries.shift();
    return true;
  }
}

function entryOf(line, n, agent, at) {
  const [state, text] = WORDS[line.type]?.(line) ?? [];
  if (text === undefined) return null;
  const sweep = line.sweep ? line.id : null;
  return { n, at, agent, state, text: cut(oneLine(text), LONGEST), sweep, noise: noiseOf(line) };
}

/** The entry of an event of the journal, as that of its line. */
function entryOfEvent({ type, payload, turn, agent_id: agent, session_id: session, timestamp: at }) {
  const kind = { "agent.state": "agent", blocked: "blocked", "turn.end": "turn", "turn.failed": "turn" }[type];
  const line = { ...payload, id: payload?.blocked_id, turn, session_id: session ?? "", type: kind };
  return entryOf(line, 0, agent ?? "", at);
}

/** How many refusals that views fold a line stands for: harmless, or in passing outside of turns, and aside. */
function noiseOf({ sweep, harmless, session_id: session, path }) {
  return sweep && (harmless || (!session && isAside(path))) ? sweep : 0;
}

const because = (line) => (line.reason ? `: ${line.reason}` : "");

const WORDS = lookup({
  agent: (line) => [line.state, line.state + because(line)],
  blocked: (line) => {
    const times = line.sweep ? ` (${counted(line.sweep, "time")})` : "";
    const by = line.decided_by ? ` by ${line.decided_by}` : "";
    const status = line.harmless ? "harmless" : line.status;
    return [status, `${line.id} ${status}${by}: ${line.action} ${line.path}${times}`];
  },
  budget: (line) =>
    line.state === "open"
      ? null
      : [line.state === "exceeded" ? "error" : "pending", line.reason ?? `the budget is ${line.state}`],
  conflict: (line) => {
    const by = line.decided_by ? ` ${line.status} by ${line.decided_by}` : "";
    return [line.status, `conflict ${line.id}${by}: ${line.message}`];
  },
  loop: (line) => [
    "pending",
    `a loop: ${line.times} times the same ${line.kind}: ${(line.calls ?? []).join(", ")}`,
  ],
  overlap: (line) => ["pending", `overlaps with ${line.agents[1]?.agent_id} in ${line.symbol}`],
  report: (line) => ["", `reports: ${line.text}`],
  task: (line) => [line.state, `task ${line.id} of ${line.by}: ${line.state}${because(line)}`],
  turn: (line) => [line.stop_reason, `${turnName(line.turn)} ended: ${line.stop_reason}${because(line)}`],
  lagged: (line) => [
    "pending",
    `${counted(line.missed, "line")} of the team were missed: this page was too slow`,
  ],
});
