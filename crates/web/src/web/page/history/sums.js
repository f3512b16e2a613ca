// Owns what the journal's events say of spending: sums by day, agent, task, model and turn, and what is unknown.

import { cut, short } from "../format.js";
import { eachEvent, firstLine, spentIn, turnKey } from "./pages.js";

/** Turns that are kept, and tasks. */
const MOST_TURNS = 20_000;
const MOST_TASKS = 5_000;
/** Sums of days, weeks, models and the like. */
const MOST_SUMS = 2_000;
/** Currencies of a sum. */
const MOST_CURRENCIES = 8;
/** Characters of a prompt that are kept. */
const LONGEST_PROMPT = 160;
const DAY_MS = 86_400_000;
const DAY = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short", year: "numeric" });

/**
 * What was spent on something; `cost` by currency. `tokens` is null, and `cost` empty, where nobody said it.
 * `turns` are the turns of it, `noTokens` and `noCost` those of them that did not report that.
 * @typedef {{tokens: number | null, cost: Map<string, number>, isEstimate: boolean, turns: number, noTokens: number,
 *   noCost: number}} Sum
 * @typedef {Sum & {key: string, agent: string, turn: number, at: number, prompt: string}} TurnSum
 * @typedef {{id: string, by: string, agent: string, state: string, turns: Set<string>}} Task
 */

export class Sums {
  constructor() {
    /** @type {Map<string, TurnSum>} by session and number */
    this.turns = new Map();
    /** What was spent outside of turns that are kept, by agent. */
    this.rest = [];
    /** @type {Map<string, Sum>} */
    this.models = new Map();
    /** @type {Map<number, Sum>} by the beginning of the day, the last one first */
    this.days = new Map();
    /** @type {Map<string, Task>} the last one first */
    this.tasks = new Map();
    /** The task of a turn. */
    this.taskOf = new Map();
    /** Whether older events were left out. */
    this.isCut = false;
  }

  /** Reads them from the journal, the last ones first. */
  static async read(app) {
    const sums = new Sums();
    const types = ["usage.spent", "message.user", "task"];
    sums.isCut = await eachEvent(app, { types, last: true }, (event) => sums.event(event));
    for (const turn of sums.turns.values()) sums.counted(turn);
    return sums;
  }

  event(event) {
    const { type } = event;
    if (type === "usage.spent") this.spent(event);
    else if (type === "task") this.task(event);
    else if (event.session_id) this.prompted(event);
  }

  /** The first prompt of a turn comes last. */
  prompted(event) {
    const turn = this.of(event);
    if (!turn) return;
    turn.at = event.timestamp;
    turn.prompt = cut(firstLine(short(event.payload?.text, 1_000)), LONGEST_PROMPT);
  }

  of(event) {
    const key = turnKey(event);
    let turn = this.turns.get(key);
    if (turn || this.turns.size >= MOST_TURNS) return turn;
    const { agent_id: agent, timestamp: at } = event;
    turn = { ...emptySum(), key, agent: agent ?? "", turn: event.turn, at, prompt: "", models: new Set() };
    this.turns.set(key, turn);
    return turn;
  }

  spent(event) {
    const spent = spentIn(event.payload);
    const model = short(event.payload?.model, 200);
    add(sumIn(this.models, model), spent);
    add(sumIn(this.days, dayStart(event.timestamp)), spent);
    const turn = this.of(event);
    if (turn) {
      add(turn, spent);
      turn.models.add(model);
    } else {
      add(this.restOf(event.agent_id ?? ""), spent);
    }
  }

  restOf(agent) {
    let rest = this.rest.find((it) => it.agent === agent);
    if (!rest) this.rest.push((rest = { ...emptySum(), agent }));
    return rest;
  }

  /** All of a turn is read: counts it where it belongs. */
  counted(turn) {
    turn.turns = 1;
    turn.noTokens = turn.tokens === null ? 1 : 0;
    // What called no model cost nothing.
    turn.noCost = turn.cost.size || turn.tokens === 0 ? 0 : 1;
    addTurns(sumIn(this.days, dayStart(turn.at)), turn);
    for (const model of turn.models.size ? turn.models : [""]) addTurns(sumIn(this.models, model), turn);
    turn.models = null;
  }

  task(event) {
    const { task: id, by, state } = event.payload ?? {};
    let task = this.tasks.get(id);
    if (!task) {
      if (this.tasks.size >= MOST_TASKS) return;
      // Its end comes first.
      this.tasks.set(id, (task = { id, by, agent: event.agent_id ?? "", state, turns: new Set() }));
    }
    if (!event.session_id) return;
    const key = turnKey(event);
    task.turns.add(key);
    this.taskOf.set(key, id);
  }

  /** The sum of all that was spent since a moment. */
  since(at) {
    const sum = emptySum();
    for (const [day, it] of this.days) if (day >= at) merge(sum, it);
    return sum;
  }

  /** @returns {[string, Sum][]} */
  byAgent() {
    const agents = new Map();
    for (const it of [...this.turns.values(), ...this.rest]) merge(sumIn(agents, it.agent), it);
    return [...agents];
  }

  /** @returns {[number, Sum][]} by the first day of each week, the last one first */
  byWeek() {
    const weeks = new Map();
    for (const [day, it] of this.byDay()) {
      const date = new Date(day);
      date.setDate(date.getDate() - ((date.getDay() + 6) % 7));
      merge(sumIn(weeks, date.getTime()), it);
    }
    return [...weeks];
  }

  /** @returns {[number, Sum][]} the last one first */
  byDay() {
    return [...this.days].sort(([a], [b]) => b - a);
  }

  /**
   * Each task with what its turns took, and last the turns of none.
   * @returns {{task: Task | null, sum: Sum}[]}
   */
  byTask() {
    const rows = new Map([...this.tasks.values()].map((task) => [task.id, { task, sum: emptySum() }]));
    const none = { task: null, sum: emptySum() };
    for (const [key, spent] of this.turns) merge((rows.get(this.taskOf.get(key)) ?? none).sum, spent);
    // What was spent outside of turns is no task's either.
    for (const spent of this.rest) merge(none.sum, spent);
    return none.sum.turns || !isUnknown(none.sum) ? [...rows.values(), none] : [...rows.values()];
  }

  /** What an agent was asked for a task. */
  titleOf(task) {
    const [first] = task.turns;
    return this.turns.get(first)?.prompt ?? "";
  }
}

/** The first moment of the day, `back` days ago. */
export function dayStart(at, back = 0) {
  const date = new Date(at);
  date.setHours(0, 0, 0, 0);
  date.setDate(date.getDate() - back);
  return date.getTime();
}

export function isUnknown(sum) {
  return sum.tokens === null && !sum.cost.size;
}

export function emptySum() {
  return { tokens: null, cost: new Map(), isEstimate: false, turns: 0, noTokens: 0, noCost: 0 };
}

function sumIn(map, key) {
  let sum = map.get(key);
  // What is too much is one sum.
  if (!sum && map.size >= MOST_SUMS) key = map.keys().next().value;
  sum ??= map.get(key);
  if (!sum) map.set(key, (sum = emptySum()));
  return sum;
}

function add(sum, { tokens, cost, isEstimate }) {
  if (tokens !== null) sum.tokens = (sum.tokens ?? 0) + tokens;
  if (cost && (sum.cost.has(cost[0]) || sum.cost.size < MOST_CURRENCIES))
    sum.cost.set(cost[0], (sum.cost.get(cost[0]) ?? 0) + cost[1]);
  sum.isEstimate ||= isEstimate;
}

function merge(sum, more) {
  add(sum, { tokens: more.tokens, cost: null, isEstimate: more.isEstimate });
  for (const cost of more.cost) add(sum, { tokens: null, cost, isEstimate: false });
  addTurns(sum, more);
}

function addTurns(sum, more) {
  for (const name of ["turns", "noTokens", "noCost"]) sum[name] += more[name];
}

/** The day of a moment, in words. */
export function dayOf(at) {
  const day = dayStart(at);
  if (day === dayStart(Date.now())) return "Today";
  if (day === dayStart(Date.now(), 1)) return "Yesterday";
  return Number.isFinite(at) ? DAY.format(at) : "At a time that is not known";
}

/** The week that begins on a day, in words. */
export function weekOf(day) {
  const weeks = Math.round((dayStart(Date.now()) - day) / DAY_MS);
  if (weeks < 7) return "This week";
  return weeks < 14 ? "Last week" : `From ${DAY.format(day)}`;
}

/** What rows are sorted by: money, else tokens. */
export function weight(sum) {
  return [...sum.cost.values()].reduce((all, it) => all + it, 0) || (sum.tokens ?? 0) / 1e9;
}
