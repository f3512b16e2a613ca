// Owns the state of the team: folds the lines of the port, as `crates/wire/src/view.rs` does for `top`. Knows no
// socket and no element.

import { Graph } from "./graph.js";
import { lookup, objects, short } from "./format.js";
import { Heat } from "./heat.js";
import { Log } from "./log.js";
import { Activity } from "./team/activity.js";
import { Transcripts } from "./team/transcript.js";

/** Agents that are kept. */
const MOST_AGENTS = 2_000;
/** Accesses and conflicts that wait; the port bounds them too. */
const MOST_WAITING = 10_000;
/** Overlaps that are kept, by symbol and agents. */
const MOST_OVERLAPS = 1_000;
/** Commands of an agent that are kept. */
const MOST_COMMANDS = 100;
/** Ids of what was decided while a list is on its way. */
const MOST_DECIDED = 10_000;

export class State {
  /** @param {(topic: string, line?: Object) => void} changed hears of each change at once */
  constructor(changed) {
    this.changed = changed;
    /** By id, in the order of the configuration. */
    this.agents = new Map();
    /** Accesses and conflicts that wait, by id, oldest first; `line` as on the wire. */
    this.waiting = new Map();
    /** How many of them by agent; null: to be counted anew. */
    this.waitCounts = null;
    /** By agent; the empty name is the team's. */
    this.budgets = new Map();
    this.overlaps = new Map();
    this.heat = new Heat();
    this.graph = new Graph();
    this.log = new Log();
    this.said = new Transcripts();
    this.activity = new Activity();
    /** The branches of agents that have one of their own, by agent. */
    this.branches = new Map();
    /** The commands that agents offer, by agent. */
    this.commands = new Map();
    this.team = "";
    /** Whether the lists that a connection begins with have come, or will not. */
    this.hasLists = false;
    /** Ids of what ended while lists are on their way. */
    this.ended = null;
  }

  /** A new connection, or a gap: all follows anew. What is shown stays until it is replaced. */
  begin() {
    this.heat.begin();
    this.ended = new Set();
  }

  /** Takes the lists that a connection begins with. */
  settle({ agents, blocked, conflicts, budgets }) {
    this.setAgents(agents);
    const later = this.waiting;
    this.waiting = new Map();
    for (const line of [...blocked, ...(conflicts?.conflicts ?? [])]) {
      if (!this.ended?.has(line.id)) this.wait(line);
    }
    // What came since the lists were asked for.
    for (const [id, line] of later) if (line.isFresh && !this.waiting.has(id)) this.waiting.set(id, line);
    for (const line of this.waiting.values()) line.isFresh = false;
    this.heat.waits(this.waiting.values());
    this.ended = null;
    this.waitCounts = null;
    this.budgets = new Map(budgets.map((line) => [line.agent_id ?? "", line]));
    this.heat.settle();
    for (const topic of ["waiting", "budgets", "heat"]) this.changed(topic);
  }

  /** Takes the answer of `list_agents`. */
  setAgents(list) {
    this.agents = new Map(list.slice(0, MOST_AGENTS).map((agent) => [agent.agent_id, agent]));
    this.changed("agents");
  }

  /** Takes the answer of `overlaps`. */
  setOverlaps(list) {
    this.overlaps.clear();
    for (const line of list) this.overlap(line);
    this.changed("overlaps");
  }

  /** Takes a line of the port. */
  line(line) {
    if (line.replay) return;
    if (this.log.line(line)) this.changed("log");
    if (FOLDED[line.type]) this.fold(...FOLDED[line.type], line);
    else this[LINES[line.type]]?.(line);
  }

  agent(line) {
    const known = this.agents.get(line.agent_id);
    if (!known && this.agents.size >= MOST_AGENTS) return;
    this.agents.set(line.agent_id, { sessions: [], ...known, ...line });
    this.changed("agents", line);
  }

  blocked(line) {
    if (line.status === "pending") this.wait(line);
    else this.end(line);
    this.changed("waiting", line);
    if (line.type !== "blocked") return;
    this.heat.blocked(line);
    this.activity.blocked(line);
    this.fold("said", "blocked", line);
  }

  wait(line) {
    if (line.status !== "pending") return;
    if (this.waiting.size >= MOST_WAITING && !this.waiting.has(line.id)) return;
    line.isFresh = this.ended !== null;
    this.waiting.set(line.id, line);
    this.waitCounts = null;
  }

  end(line) {
    this.waiting.delete(line.id);
    this.waitCounts = null;
    if (this.ended && this.ended.size < MOST_DECIDED) this.ended.add(line.id);
  }

  budget(line) {
    this.budgets.set(line.agent_id ?? "", line);
    this.changed("budgets", line);
  }

  update(line) {
    this.activity.update(line);
    if (line.update?.sessionUpdate === "available_commands_update") this.offers(line.agent_id, line.update.availableCommands);
    this.fold("said", "update", line);
  }

  /** Keeps the commands that an agent offers: as it announces them, or as the team has them. */
  offers(agent, list) {
    if (!Array.isArray(list) || (!this.commands.has(agent) && this.commands.size >= MOST_AGENTS)) return;
    const all = objects(list, MOST_COMMANDS);
    const commands = all.map((it) => ({ name: short(it.name, 60).replace(/^\/+/, ""), what: short(it.description, 200) }));
    this.commands.set(agent, commands);
    this.changed("agents");
  }

  turn(line) {
    this.activity.ended(line);
    this.said.turn(line);
    this.changed("said", line);
    this.changed("agents", line);
  }

  usage(line) {
    const session = this.session(line);
    const { used, size, cost, spent } = line;
    if (session && line.session_mode !== "orchestrator") Object.assign(session, { used, size, cost, spent });
    this.changed("agents", line);
  }

  session({ agent_id: agent, session_id: id }) {
    return this.agents.get(agent)?.sessions?.find((it) => it.session_id === id);
  }

  /** Keeps what is chosen in a session. */
  options(line) {
    const session = this.session(line);
    if (session) session.chosen = line.chosen;
    this.changed("agents", line);
  }

  overlap(line) {
    const key = `${line.symbol}\n${line.agents
      .map((it) => it.agent_id)
      .sort()
      .join("\n")}`;
    this.overlaps.delete(key);
    this.overlaps.set(key, line);
    if (this.overlaps.size > MOST_OVERLAPS) this.overlaps.delete(this.overlaps.keys().next().value);
    this.changed("overlaps", line);
  }

  snapshot(line) {
    if (!this.team && line.session_id?.startsWith("team-")) this.team = line.session_id.slice(5);
    this.heat.snapshot(line);
    this.changed("heat");
  }

  fold(part, method, line) {
    this[part][method](line);
    this.changed(part, line);
  }

  lagged(line) {
    this.said.missed(line);
    this.changed("said");
    this.changed("lagged", line);
  }

  /** How many accesses of an agent wait. */
  waits(agent) {
    if (!this.waitCounts) {
      this.waitCounts = new Map();
      for (const line of this.waiting.values()) {
        this.waitCounts.set(ofAgent(line), (this.waitCounts.get(ofAgent(line)) ?? 0) + 1);
      }
    }
    return this.waitCounts.get(agent) ?? 0;
  }

  isOver(agent) {
    return this.budgets.get(agent)?.state === "exceeded";
  }

  /** How much an agent needs a person: 0 most. */
  need(agent) {
    if (this.waits(agent.agent_id)) return 0;
    if (agent.state === "error" || this.isOver(agent.agent_id) || isStalled(agent)) return 1;
    return 2;
  }

  /** The agents, those that need a person first, else as they are configured. */
  sorted() {
    const agents = [...this.agents.values()].map((agent) => [this.need(agent), agent]);
    return agents.sort((a, b) => a[0] - b[0]).map(([, agent]) => agent);
  }

  /** What waits and is not a pending line: budgets that are used up. */
  exceeded() {
    return [...this.budgets.values()].filter((line) => line.state === "exceeded");
  }

  /** How much waits for a person. */
  countWaiting() {
    return this.waiting.size + this.exceeded().length;
  }
}

const LINES = lookup({
  agent: "agent",
  blocked: "blocked",
  conflict: "blocked",
  budget: "budget",
  turn: "turn",
  usage: "usage",
  overlap: "overlap",
  snapshot: "snapshot",
  session_update: "update",
  lagged: "lagged",
  options: "options",
});

/** The part that takes a line, which is the topic, too, and its method. */
const FOLDED = lookup({
  delta: ["heat", "delta"],
  graph: ["graph", "whole"],
  graph_delta: ["graph", "delta"],
  report: ["said", "report"],
});

/** The agent that a line is of: a conflict names its writer first. */
export function ofAgent(line) {
  return line.agent_id ?? line.agents?.[0] ?? "";
}

/** An agent that is ready has a reason while it stalls, or its last turn failed. */
export function isStalled(agent) {
  return agent.state === "ready" && Boolean(agent.reason);
}

export function isRunning(agent) {
  return Boolean(agent.sessions?.some((session) => session.running));
}
