// Owns what the team does, turn by turn: for each turn of an agent its task, its step, its last message, what it did
// and what was refused. Knows no element.

import { compare } from "../diff.js";
import { lookup, objects, short, textOf } from "../format.js";
import { figuresOf } from "../turns.js";
import { idOf, isOpen } from "./blocks.js";

/** Turns that are kept, of all agents. */
const MOST_TURNS = 200;
/** Characters of a task and of a message. */
const LONGEST_TASK = 2_000;
const LONGEST_MESSAGE = 6_000;
const LONGEST_TITLE = 300;
/** Tool calls of a turn that run at once, and files of it. */
const MOST_OPEN = 50;
const MOST_FILES = 200;
/** Accesses of a turn that are shown. */
const MOST_REFUSED = 10;
/** Pairs of lines of a diff that are compared; of a longer one only the numbers of lines are. */
const MOST_PAIRS = 40_000;
/** Events of the journal that a page begins with. */
const PAGE = 400;
const TYPES = ["message.user", "message.assistant", "tool.result", "turn", "blocked", "session.end"];

/** The end of a turn that nobody reported. */
const CUT_OFF = { turn: null, stop_reason: "interrupted" };

/**
 * A turn of an agent. `turn` is its number, null while it is not known; `version` rises with each change.
 * @typedef {Object} Turn
 */

export class Activity {
  constructor() {
    /** @type {Turn[]} in the order in which they began */
    this.turns = [];
    /** The last turn of each agent. */
    this.last = new Map();
    this.n = 0;
    this.isRead = false;
    /** Whether what the journal has is here, or is not to be had. */
    this.isKnown = false;
  }

  /** The turns, the last first; of one agent where it is named. */
  list(most, agent = "") {
    const all = agent ? this.turns.filter((it) => it.agent === agent) : this.turns;
    return all.slice(-most).reverse();
  }

  /** The turn of an agent that runs, or ran last. */
  of(agent) {
    return this.last.get(agent);
  }

  /** Asks for the last events before this connection, once. */
  async read(call, edge) {
    if (this.isRead || !edge) return;
    this.isRead = true;
    try {
      const { events } = await call("list_events", { types: TYPES, last: true, limit: PAGE, before: edge });
      const past = new Activity();
      for (const event of events) past.event(event);
      this.putBefore(past);
    } catch (error) {
      this.isRead = false;
      throw error;
    }
  }

  /** Puts what the journal has before what came live. */
  putBefore(past) {
    for (const [agent, turn] of past.last) {
      // The journal has other names of sessions than what comes live.
      if (!turn.endedAt) turn.session = "";
      const first = this.turns.find((it) => it.agent === agent);
      // What goes on began before this page was opened.
      if (first && !turn.endedAt && (first.turn === null || first.turn === turn.turn)) {
        past.turns.splice(past.turns.indexOf(turn), 1);
        this.join(first, turn);
      }
      if (!first) this.last.set(agent, turn);
    }
    this.turns = [...past.turns, ...this.turns].sort((a, b) => a.beganAt - b.beganAt);
    this.turns.forEach((turn) => (turn.key = this.n++));
    this.bound();
  }

  join(turn, before) {
    turn.turn = before.turn;
    turn.beganAt = before.beganAt;
    turn.task ||= before.task;
    turn.message ||= before.message;
    for (const [kind, sum] of before.calls) turn.calls.set(kind, (turn.calls.get(kind) ?? 0) + sum);
    turn.version += 1;
  }

  begin(agent, session, at) {
    const before = this.last.get(agent);
    // Another one began: this was cut off, and nobody said so.
    if (before && !before.endedAt && session && before.session === session) this.end(before, CUT_OFF, at);
    const turn = {
      key: this.n++,
      agent,
      session,
      turn: null,
      beganAt: at,
      endedAt: 0,
      outcome: "",
      why: "",
      /** What it took, once it has ended as its agent says. */
      took: null,
      task: "",
      message: "",
      isSpeaking: false,
      /** How many finished calls there are of each kind. */
      calls: new Map(),
      failed: 0,
      /** How many calls are over. */
      done: 0,
      /** The calls that run: title, kind, since when. */
      open: new Map(),
      /** Since when it thinks or speaks; else 0. */
      stepAt: at,
      step: "",
      plan: null,
      refused: new Map(),
      /** By path: lines added and removed, as its tool calls say. */
      files: new Map(),
      /** What was really changed, as the journal has it: `{files, added, removed}`; null while that is not known. */
      changed: null,
      /** When that was asked for last; null: never. */
      asked: null,
      version: 0,
    };
    this.turns.push(turn);
    this.last.set(agent, turn);
    this.bound();
    return turn;
  }

  bound() {
    while (this.turns.length > MOST_TURNS) {
      const turn = this.turns.shift();
      if (this.last.get(turn.agent) === turn) this.last.delete(turn.agent);
    }
  }

  /** The turn that goes on. */
  running(agent, session, at) {
    const last = this.last.get(agent);
    const isIt = last && !last.endedAt && (!last.session || !session || last.session === idOf(session));
    return isIt ? last : this.begin(agent, idOf(session), at);
  }

  /** Takes a `session_update`. */
  update(line) {
    const { update } = line;
    const kind = textOf(update?.sessionUpdate);
    const take = UPDATES[kind];
    if (!take) return;
    const now = Date.now();
    const turn = this.running(line.agent_id, line.session_id, now);
    turn.session ||= idOf(line.session_id);
    take(turn, update, now);
    turn.version += 1;
  }

  /** Takes a `turn` line: it has ended. */
  ended(line) {
    const turn = this.running(line.agent_id, line.session_id, Date.now());
    turn.session = idOf(line.session_id);
    this.end(turn, line, line.timestamp_ms ?? Date.now());
  }

  end(turn, { turn: number, stop_reason: stop, reason, spent }, at) {
    turn.turn = number ?? turn.turn;
    turn.endedAt = at;
    turn.outcome = short(stop, 40);
    turn.why = short(reason, 400);
    turn.took = stop === CUT_OFF.stop_reason ? null : figuresOf(spent);
    turn.open.clear();
    turn.isSpeaking = false;
    turn.version += 1;
  }

  /** Takes a `blocked` line. */
  blocked(line) {
    if (line.sweep || line.harmless) return;
    const turn = this.last.get(line.agent_id);
    if (!turn) return;
    const id = idOf(line.id);
    if (!turn.refused.has(id) && turn.refused.size >= MOST_REFUSED) return;
    turn.refused.set(id, {
      id,
      status: short(line.status, 40),
      action: short(line.action, 40),
      path: short(line.path, LONGEST_TITLE),
    });
    turn.version += 1;
  }

  /** Takes an event of the journal, oldest first. */
  event({ type, payload, turn: number, session_id: session, agent_id: agent, timestamp: at }) {
    const fields = payload ?? {};
    if (!agent) return;
    if (type === "message.user") {
      const known = this.last.get(agent);
      const turn = known && known.turn === number && known.session === idOf(session) ? known : this.begin(agent, idOf(session), at);
      turn.turn = number;
      turn.task ||= short(fields.text, LONGEST_TASK);
      return;
    }
    const turn = this.last.get(agent);
    if (!turn) return;
    if (type === "message.assistant") turn.message = short(fields.text, LONGEST_MESSAGE);
    else if (type === "tool.result") finished(turn, { ...fields, toolCallId: fields.tool_call_id });
    else if (type === "turn.end" || type === "turn.failed") this.end(turn, { ...fields, turn: number }, at);
    else if (type === "session.end" && !turn.endedAt) this.end(turn, { ...CUT_OFF, turn: turn.turn }, at);
    else if (type === "blocked") this.blocked({ ...fields, id: fields.blocked_id, agent_id: agent });
  }
}

const UPDATES = lookup({
  agent_message_chunk: (turn, { content }, now) => {
    if (!turn.isSpeaking) ((turn.message = ""), (turn.stepAt = now));
    turn.isSpeaking = true;
    turn.step = "writes";
    const room = LONGEST_MESSAGE - turn.message.length;
    if (room > 0 && content?.type === "text") turn.message += short(content.text, room);
  },
  agent_thought_chunk: (turn, _, now) => {
    if (turn.step !== "thinks") turn.stepAt = now;
    turn.isSpeaking = false;
    turn.step = "thinks";
  },
  user_message_chunk: (turn, { content }) => {
    if (!turn.task && content?.type === "text") turn.task = short(content.text, LONGEST_TASK);
  },
  plan: (turn, { entries }) => {
    turn.plan = objects(entries, 100).map((it) => ({
      text: short(it.content, 200),
      status: short(it.status, 40),
    }));
  },
  "_eisen/prompt": (turn, { text }) => {
    turn.task ||= short(text, LONGEST_TASK);
  },
  tool_call: called,
  tool_call_update: called,
});

/** A tool call begins, goes on or ends. */
function called(turn, update, now) {
  const id = idOf(update.toolCallId);
  let call = turn.open.get(id);
  if (!call && turn.open.size < MOST_OPEN) turn.open.set(id, (call = { title: "", kind: "", at: now }));
  if (!call) return;
  if (update.title) call.title = short(update.title, LONGEST_TITLE);
  if (update.kind) call.kind = short(update.kind, 40);
  turn.isSpeaking = false;
  turn.step = "";
  if (update.status && !isOpen(update)) {
    turn.open.delete(id);
    turn.stepAt = now;
    finished(turn, { ...update, kind: call.kind });
  }
}

function finished(turn, { kind, status, content }) {
  const name = short(kind, 40) || "other";
  turn.done += 1;
  if (textOf(status) === "failed") turn.failed += 1;
  else {
    if (turn.calls.has(name) || turn.calls.size < 20) turn.calls.set(name, (turn.calls.get(name) ?? 0) + 1);
    count(turn, content);
  }
  turn.version += 1;
}

/** Counts the lines of a call's diffs. */
function count(turn, content) {
  for (const part of objects(content, 20)) {
    if (part.type !== "diff") continue;
    const path = short(part.path, LONGEST_TITLE);
    if (!turn.files.has(path) && turn.files.size >= MOST_FILES) continue;
    const [before, after] = [textOf(part.oldText), textOf(part.newText)];
    const lines = [linesIn(before), linesIn(after)];
    const isLong = lines[0] * lines[1] > MOST_PAIRS;
    const more = lines[1] - lines[0];
    const { added, removed } = isLong
      ? { added: Math.max(0, more), removed: Math.max(0, -more) }
      : compare(path, before, after);
    turn.files.set(path, { added, removed });
  }
}

function linesIn(text) {
  let lines = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines += 1;
  return lines;
}

/** What a turn changed: as the journal has it, else as its tool calls say. */
export function changedBy(turn) {
  if (turn.changed) return turn.changed;
  let [added, removed] = [0, 0];
  for (const it of turn.files.values()) ((added += it.added), (removed += it.removed));
  return { files: turn.files.size, added, removed };
}

/** What a running turn does now, and since when: `{kind, text, at}`. */
export function stepOf(turn) {
  const call = [...turn.open.values()].at(-1);
  if (call) return { kind: call.kind || "other", text: call.title || "a tool call", at: call.at };
  return { kind: turn.step === "writes" ? "message" : "think", text: turn.step || "thinks", at: turn.stepAt };
}
