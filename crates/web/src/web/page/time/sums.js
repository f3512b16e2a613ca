// Owns what the journal's events say of spending: sums by agent, turn and task, and the spending by time.

import { cut, short } from "../format.js";
import { eachEventBack } from "./pages.js";

/** Prompts whose texts are kept, and tasks. */
const MOST_PROMPTS = 20_000;
const MOST_TASKS = 5_000;
/** Characters of a prompt that are kept. */
const LONGEST_PROMPT = 160;

/**
 * What was spent on something; `cost` by currency.
 * @typedef {{agent: string, turn: number, tokens: number, cost: Map<string, number>, isEstimate: boolean}} Sum
 * @typedef {{id: string, by: string, agent: string, state: string, turns: Set<string>}} Task
 */

export class Sums {
  constructor() {
    /** @type {Map<string, Sum>} */
    this.agents = new Map();
    /** @type {Map<string, Sum>} by session and number */
    this.turns = new Map();
    /** Each spending: when, and how much. */
    this.calls = [];
    /** The texts of prompts, by session and number of their turns. */
    this.prompts = new Map();
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
    sums.isCut = await eachEventBack(app, { types }, (event) => sums.event(event));
    sums.calls.reverse();
    return sums;
  }

  event(event) {
    const { type, payload } = event;
    const key = `${event.session_id}\n${event.turn}`;
    if (type === "usage.spent") this.spent(event, key);
    else if (type === "task") this.task(event, key);
    // The first prompt of a turn comes last.
    else if (this.prompts.size < MOST_PROMPTS || this.prompts.has(key))
      this.prompts.set(key, cut(short(payload?.text, 1_000).trim().split("\n")[0], LONGEST_PROMPT));
  }

  spent(event, key) {
    const { tokens, cost } = event.payload ?? {};
    const total = Number.isFinite(tokens?.total)
      ? tokens.total
      : (tokens?.input ?? 0) + (tokens?.output ?? 0);
    for (const [map, name] of [
      [this.agents, event.agent_id ?? ""],
      [this.turns, key],
    ]) {
      const sum = map.get(name) ?? emptySum(event.agent_id ?? "", event.turn);
      map.set(name, sum);
      sum.tokens += total;
      sum.isEstimate ||= Boolean(cost?.estimated || tokens?.estimated?.length);
      if (cost) sum.cost.set(cost.currency, (sum.cost.get(cost.currency) ?? 0) + cost.amount);
    }
    const { amount = 0, currency = "USD" } = cost ?? {};
    this.calls.push({ at: event.timestamp, tokens: total, cost: amount, currency });
  }

  task(event, key) {
    const { task: id, by, state } = event.payload ?? {};
    let task = this.tasks.get(id);
    if (!task) {
      if (this.tasks.size >= MOST_TASKS) return;
      // Its end comes first.
      this.tasks.set(id, (task = { id, by, agent: event.agent_id ?? "", state, turns: new Set() }));
    }
    if (!event.session_id) return;
    task.turns.add(key);
    this.taskOf.set(key, id);
  }

  /**
   * Each task with what its turns took, and last the turns of none.
   * @returns {{task: Task | null, sum: Sum, turns: number}[]}
   */
  byTask() {
    const rows = new Map([...this.tasks.values()].map((task) => [task.id, row(task)]));
    const none = row(null);
    for (const [key, spent] of this.turns) {
      const to = rows.get(this.taskOf.get(key)) ?? none;
      if (to === none) none.turns += 1;
      merge(to.sum, spent);
    }
    return none.turns ? [...rows.values(), none] : [...rows.values()];
  }

  /** What an agent was asked for a task. */
  titleOf(task) {
    const [first] = task.turns;
    return this.prompts.get(first) ?? "";
  }
}

function row(task) {
  return { task, sum: emptySum(task?.agent ?? ""), turns: task?.turns.size ?? 0 };
}

function emptySum(agent, turn) {
  return { agent, turn, tokens: 0, cost: new Map(), isEstimate: false };
}

function merge(sum, more) {
  sum.tokens += more.tokens;
  sum.isEstimate ||= more.isEstimate;
  for (const [currency, amount] of more.cost) sum.cost.set(currency, (sum.cost.get(currency) ?? 0) + amount);
}

/** What rows are sorted by: money, else tokens. */
export function weight(sum) {
  return [...sum.cost.values()].reduce((all, it) => all + it, 0) || sum.tokens / 1e9;
}
