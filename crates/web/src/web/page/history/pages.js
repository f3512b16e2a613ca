// Owns how the journal is read: in pages, as turns, and the files that a turn changed.

import { cut, line, short, textOf, whole } from "../format.js";
import { isRunning } from "../state.js";

/** Events that are read at once by a view; the journal may have more. */
export const MOST_EVENTS = 50_000;
/** Events of turns that are asked for at once. */
const PAGE = 400;
/** Pages that are read to catch up; after a longer pause all begins anew. */
const MOST_PAGES = 5;
/** Turns that are kept. */
export const MOST_TURNS = 2_000;
/** Sessions whose ends are kept, and those whose prompts are. */
const MOST_SESSIONS = 2_000;
const MOST_PROMPTED = 50;
/** Characters of a prompt that are kept for each turn. */
const LONGEST_PROMPT = 2_000;
const LONGEST_TASK = 300;
/** Requests for the files of turns at once. */
const MOST_ASKED = 4;
const TURN_TYPES = ["message.user", "turn.end", "turn.failed", "usage.spent", "session.end"];

/**
 * Reads events, page by page.
 * @param {Object} app
 * @param {Object} params of `list_events`; with `last` the last come first
 * @param {(event: Object) => void} take
 * @param {() => boolean} goesOn false ends it
 * @returns {Promise<boolean>} whether there are more than were read
 */
export async function eachEvent(app, params, take, goesOn = () => true) {
  const from = params.last ? "before" : "after";
  let place;
  for (let read = 0; read < MOST_EVENTS;) {
    const { events, next } = await app.call("list_events", { ...params, limit: 1000, ...(place && { [from]: place }) });
    if (params.last) events.reverse();
    events.forEach(take);
    read += events.length;
    place = next;
    if (!next || !goesOn()) return false;
  }
  return true;
}

/**
 * The sessions of the journal, the last first.
 * @returns {Promise<{id: string, agent: string, name: string, at: number}[]>}
 */
export async function sessionsOf(app) {
  const sessions = new Map();
  await eachEvent(app, { types: ["session.start"] }, (event) => {
    if (event.session_id && !sessions.has(event.session_id)) {
      sessions.set(event.session_id, {
        id: event.session_id,
        agent: event.agent_id,
        name: event.payload?.session ?? event.session_id,
        at: event.timestamp,
      });
    }
  });
  return [...sessions.values()].reverse().slice(0, 1000);
}

/** The name of a turn within all sessions. */
export function turnKey(event) {
  return `${event.session_id}\n${event.turn}`;
}

/** What a usage event says: tokens and cost, each null where it says nothing of it. */
export function spentIn(payload) {
  const { tokens, cost } = payload ?? {};
  const parts = [tokens?.input, tokens?.output].filter(Number.isFinite);
  const sum = parts.length ? parts.reduce((all, it) => all + it, 0) : null;
  const total = Number.isFinite(tokens?.total) ? tokens.total : sum;
  const hasCost = Number.isFinite(cost?.amount);
  const isEstimate = Boolean(cost?.estimated || tokens?.estimated?.length);
  return { tokens: total, cost: hasCost ? [textOf(cost.currency), cost.amount] : null, isEstimate };
}

/**
 * A turn; `asked` and `endedBy` are the events of its prompt and its end.
 * @typedef {{key: string, agent: string, session: string, turn: number, prompt: string, bytes: number, begun: number,
 *   ended: number, asked: string, endedBy: string, stop: string, reason: string, tokens: number | null,
 *   cost: Map<string, number>, isEstimate: boolean, isLeast: boolean}} Turn
 */
export class TurnLog {
  constructor() {
    this.clear();
  }

  clear() {
    /** @type {Map<string, Turn>} */
    this.turns = new Map();
    /** By session: when it ended, and its last turn. */
    this.closed = new Map();
    this.lastOf = new Map();
    /** The last event that was read. */
    this.last = "";
    /** Where the next look back begins: an event's id; null where nothing is left. */
    this.before = "";
  }

  /** Reads what came since, or the last page. */
  async newer(app) {
    if (!this.last) return this.earlier(app);
    for (let page = 0; page < MOST_PAGES; page++) {
      const asked = { types: TURN_TYPES, limit: 1000, after: this.last };
      const { events, next } = await app.call("list_events", asked);
      this.take(events);
      if (!next) return;
    }
    this.clear();
    await this.earlier(app);
  }

  /** Reads the page before all others. */
  async earlier(app) {
    const asked = { types: TURN_TYPES, last: true, limit: PAGE, ...(this.before && { before: this.before }) };
    const { events, next } = await app.call("list_events", asked);
    const last = this.last;
    this.take(events);
    if (last) this.last = last;
    this.before = this.turns.size < MOST_TURNS ? next : null;
  }

  take(events) {
    for (const event of events) this.event(event);
    if (events.length) this.last = events.at(-1).id;
  }

  event(event) {
    const { type, session_id: session, timestamp, payload } = event;
    if (!session) return;
    if (type === "session.end") {
      if (this.closed.size < MOST_SESSIONS) this.closed.set(session, timestamp);
      return;
    }
    if (!Number.isFinite(event.turn)) return;
    const turn = this.of(event);
    if (type === "message.user") this.prompted(turn, event);
    else if (type === "usage.spent") add(turn, spentIn(payload));
    else {
      turn.ended = timestamp;
      turn.endedBy = event.id;
      turn.stop = type === "turn.failed" ? "error" : short(payload?.stop_reason, 40);
      turn.reason = short(payload?.reason, 1_000);
    }
  }

  of(event) {
    const key = turnKey(event);
    let turn = this.turns.get(key);
    if (turn) return turn;
    // What comes now is worth more than what is furthest back.
    if (this.turns.size >= MOST_TURNS + PAGE) this.turns.delete(this.sorted().at(-1).key);
    const { session_id: session, turn: number } = event;
    const none = { prompt: "", bytes: 0, begun: NaN, ended: NaN, asked: "", endedBy: "", stop: "", reason: "" };
    turn = { key, agent: event.agent_id ?? "", session, turn: number, ...none };
    this.turns.set(key, Object.assign(turn, { tokens: null, cost: new Map(), isEstimate: false, isLeast: false }));
    this.lastOf.set(session, Math.max(number, this.lastOf.get(session) ?? 0));
    if (this.lastOf.size > MOST_SESSIONS) this.lastOf.delete(this.lastOf.keys().next().value);
    return turn;
  }

  /** The first prompt of a turn is its task; pages may come in any order. */
  prompted(turn, event) {
    if (turn.asked && turn.asked <= event.id) return;
    const { payload } = event;
    turn.asked = event.id;
    turn.begun = event.timestamp;
    turn.prompt = short(payload?.text, LONGEST_PROMPT);
    turn.bytes = payload?.bytes ?? 0;
  }

  /** `running`, `interrupted`, or why it stopped. */
  stateOf(turn, agents) {
    if (turn.endedBy) return turn.stop;
    const isOver = this.closed.get(turn.session) >= turn.begun || turn.turn < this.lastOf.get(turn.session);
    return !isOver && isRunning(agents.get(turn.agent) ?? {}) ? "running" : "interrupted";
  }

  /** All turns, the last begun first. */
  sorted() {
    const at = (turn) => (Number.isFinite(turn.begun) ? turn.begun : turn.ended) || 0;
    return [...this.turns.values()].sort((a, b) => at(b) - at(a));
  }
}

/** Adds a report of usage to the figures of its turn. */
function add(turn, { tokens, cost, isEstimate }) {
  if (tokens !== null) turn.tokens = (turn.tokens ?? 0) + tokens;
  if (cost) turn.cost.set(cost[0], (turn.cost.get(cost[0]) ?? 0) + cost[1]);
  turn.isEstimate ||= isEstimate;
}

/** The files that turns changed: asked for when a turn is in sight, a few at once. */
export class Files {
  constructor(app, changed) {
    this.app = app;
    this.changed = changed;
    /** By turn: `{files, added, removed, isEnd}`, or null while it is asked for. */
    this.known = new Map();
    /** @type {Map<string, Turn>} turns in sight */
    this.seen = new Map();
    this.asked = 0;
  }

  of(turn) {
    return this.known.get(turn.key) ?? null;
  }

  /** Asks for what is in sight and not known; of a turn that ended since, once more. */
  pump() {
    for (const turn of this.seen.values()) {
      if (this.asked >= MOST_ASKED || !this.app.wire.isLive) return;
      const known = this.known.get(turn.key);
      if (known === null || (known && (known.isEnd || !turn.endedBy))) continue;
      this.ask(turn, known);
    }
  }

  async ask(turn, before) {
    this.asked += 1;
    this.known.set(turn.key, null);
    const isEnd = Boolean(turn.endedBy);
    const params = { agent_id: turn.agent, session_id: turn.session, turn: turn.turn };
    const counts = await this.app.call("get_diff", params).then(countsOf, () => before ?? { files: NaN });
    this.known.set(turn.key, { ...counts, isEnd });
    // The oldest of them is known least long.
    if (this.known.size > MOST_TURNS) this.known.delete(this.known.keys().next().value);
    this.asked -= 1;
    this.changed();
    this.pump();
  }
}

/** What a diff has, in numbers. */
export function countsOf({ files }) {
  const sum = (name) => files.reduce((all, it) => all + (it[name] ?? 0), 0);
  return { files: files.length, added: sum("added"), removed: sum("removed") };
}

/** The prompts of a session, by turn; those of the last sessions are kept. */
export class Prompts {
  constructor(app) {
    this.app = app;
    this.sessions = new Map();
  }

  async of(session, turn) {
    const known = this.sessions.get(session);
    if (known) {
      const prompts = await known;
      if (prompts.has(turn)) return prompts.get(turn);
    }
    const asked = this.read(session).catch(() => new Map());
    this.sessions.set(session, asked);
    if (this.sessions.size > MOST_PROMPTED) this.sessions.delete(this.sessions.keys().next().value);
    return (await asked).get(turn) ?? "";
  }

  async read(session) {
    const prompts = new Map();
    const asked = { session_id: session, types: ["message.user"], last: true, limit: 1000 };
    const { events } = await this.app.call("list_events", asked);
    for (const { turn, payload } of events)
      if (!prompts.has(turn)) prompts.set(turn, firstLine(short(payload?.text, LONGEST_PROMPT)));
    return prompts;
  }
}

/** The task of a turn in one line, or what stands for it. */
export function taskOf(turn) {
  if (turn.prompt) return cut(line(firstLine(turn.prompt)), LONGEST_TASK);
  if (turn.bytes) return `a prompt of ${whole(turn.bytes)} bytes`;
  return turn.asked ? "a prompt without text" : "began earlier";
}

/** The first line of a text that says something, without the mark of a heading. */
export function firstLine(text) {
  return text.trimStart().split("\n")[0].replace(/^#{1,6}\s+/, "").trimEnd();
}
