// Owns what agents said and did, as blocks: messages, thoughts, tool calls, plans, ends of turns.

import { counted, lookup, short, textOf } from "../format.js";
import {
  LONGEST_BLOCK,
  blockOf,
  blockText,
  callBlock,
  fillCall,
  idOf,
  isOpen,
  pieces,
  planText,
  refusalText,
  sizeOf,
  turnBlock,
} from "./blocks.js";
import { Past } from "./past.js";
import { Terminals } from "./terminals.js";

/** Blocks of an agent; older ones are dropped. */
const MOST_BLOCKS = 2_000;
/** Characters of an agent's blocks, with what their objects take. */
const MOST_CHARS = 1_000_000;
/** The same of all agents; the longest transcript gives way. */
const MOST_CHARS_OF_ALL = 16_000_000;
/** Agents whose transcripts are kept; the one that is silent for longest is dropped. */
const MOST_TRANSCRIPTS = 500;
/** Refused accesses of a tool call that are kept. */
const MOST_REFUSED = 20;
/** Pieces of a message that are held as such. */
const MOST_PIECES = 64;

export class Transcript {
  constructor() {
    /** @type {import("./blocks.js").Block[]} what came live, oldest first */
    this.blocks = [];
    this.next = 1;
    this.size = 0;
    /** Live blocks that were dropped. */
    this.dropped = 0;
    /** Tool calls that are still among the blocks, by session and id. */
    this.calls = new Map();
    /** What the last terminals printed, as the team sent it, and the block that shows each. */
    this.terminals = new Terminals();
    /** What the journal has from before the live blocks. */
    this.past = new Past();
    /** The event behind which the live blocks are; undefined: that of the connection. */
    this.edge = undefined;
    /** Lines were missed before the block with this number, the next that comes; 0: none were. */
    this.missedAt = 0;
    this.between = blockOf("mark", "", "", { isAgain: true });
  }

  add(block) {
    block.n = this.next++;
    this.blocks.push(block);
    this.size += block.size;
    this.trim();
    return block;
  }

  push(kind, session, text, more) {
    return this.add(blockOf(kind, session, text, more));
  }

  /** Counts a block anew after a change. */
  changed(block) {
    const size = sizeOf(block);
    this.size += size - block.size;
    block.size = size;
    block.version += 1;
    this.trim();
  }

  trim() {
    while (this.blocks.length > 1 && (this.blocks.length > MOST_BLOCKS || this.size > MOST_CHARS))
      this.dropFirst();
  }

  dropFirst() {
    this.forget(this.blocks.shift());
    this.dropped += 1;
  }

  forget(block) {
    this.size -= block.size;
    if (block.call) this.calls.delete(block.call.key);
  }

  /** Forgets the live blocks before the one with this number: the journal has them. */
  forgetBefore(n) {
    const end = this.blocks.findIndex((it) => it.n >= n);
    for (const block of this.blocks.splice(0, end < 0 ? this.blocks.length : end)) this.forget(block);
    this.dropped = 0;
    if (this.missedAt <= n) this.missedAt = 0;
  }

  /** The number of the first block that is not over: the journal does not have it as a whole. */
  openFrom() {
    const last = this.blocks.at(-1);
    return last && (SPOKEN[last.kind] || (last.call && isOpen(last.call))) ? last.n : this.next;
  }

  /** All blocks, with a mark where something is missing between the journal's and the live ones. */
  all() {
    const { past, blocks, between } = this;
    const dropped = past.dropped + this.dropped;
    const text = dropped
      ? `${counted(dropped, "block")} left this page here.`
      : past.blocks.length && past.blocks.at(-1).kind !== "turn" && SPOKEN[blocks[0]?.kind]
        ? "This page was opened here, in the middle of a turn: what follows may lack its beginning."
        : "";
    if (text !== between.text) {
      between.text = text;
      between.version += 1;
    }
    return text ? [...past.blocks, between, ...blocks] : [...past.blocks, ...blocks];
  }

  speech(kind, session, text, id) {
    const last = this.blocks.at(-1);
    const goesOn =
      last && last.kind === kind && last.session === session && (!id || !last.id || last.id === id);
    if (goesOn && last.text.length + text.length <= LONGEST_BLOCK) {
      last.text += text;
      last.pieces = ((last.pieces ?? 0) + 1) % MOST_PIECES;
      // A text that was put together is held as its pieces, until one of its characters is read.
      if (!last.pieces) last.end = last.text.charCodeAt(last.text.length - 1);
      this.changed(last);
    } else for (const piece of pieces(text)) this.push(kind, session, piece, { id });
  }

  toolCall(session, update) {
    const id = idOf(update.toolCallId);
    const key = `${session}\n${id}`;
    let block = this.calls.get(key);
    if (!block) {
      block = callBlock(session, key);
      block.call.id = id;
      this.take(block);
      this.add(block);
      this.calls.set(key, block);
    }
    fillCall(block.call, update);
    this.terminals.shownBy(session, block);
    this.changed(block);
  }

  /** What a terminal has printed until now. */
  printed(session, update) {
    const block = this.terminals.printed(session, update, () => this.onlyCommand());
    if (block) this.grown(block);
  }

  /** Notes that a block of this page or of the journal has changed. */
  grown(block) {
    (block.n > 0 ? this : this.past).changed(block);
  }

  /** The only command that runs and shows no terminal: its terminal was named before this page was opened. */
  onlyCommand() {
    const runs = ({ call }) => call?.kind === "execute" && isOpen(call) && !call.parts.length;
    const all = [...this.past.blocks, ...this.blocks].filter((it) => runs(it));
    return all.length === 1 ? all[0] : undefined;
  }

  /** An access that was blocked, where it happened; what became of it changes its block. */
  refused(line) {
    const session = idOf(line.session_id);
    const isRefused = line.status === "denied" || line.status === "expired";
    const call = line.tool_call && this.calls.get(`${session}\n${idOf(line.tool_call)}`);
    if (call) {
      if (isRefused && call.call.refused.size < MOST_REFUSED) call.call.refused.add(idOf(line.id));
      else call.call.refused.delete(idOf(line.id));
      this.changed(call);
    }
    const text = refusalText(line);
    const isIt = (it) => it.kind === "blocked" && it.id === idOf(line.id);
    const known = this.past.blocks.findLast(isIt) ?? this.blocks.findLast(isIt);
    if (!known) return this.push("blocked", session, text, { id: idOf(line.id), isBad: isRefused });
    Object.assign(known, { text, isBad: isRefused });
    this.grown(known);
  }

  /** A tool call that began before the live blocks: the journal has its beginning, and it goes on here. */
  take(block) {
    const known = this.past.openCall(block.call.id);
    if (!known) return;
    const { title, kind, places, parts } = known.call;
    Object.assign(block.call, { title, kind, places, parts });
    this.past.remove(known);
  }

  /** Puts a page of the journal before all blocks. */
  prepend(blocks) {
    const begun = new Map();
    for (const block of this.blocks) if (block.call) begun.set(block.call.id, block);
    const isNew = (block) => {
      if (block.kind === "blocked") this.replace(block);
      const live = block.call?.isOpen && begun.get(block.call.id);
      if (!live) return true;
      live.call.title ||= block.call.title;
      live.call.kind ||= block.call.kind;
      if (!live.call.places.length) live.call.places = block.call.places;
      this.changed(live);
      return false;
    };
    this.past.prepend(blocks.filter(isNew));
  }

  /** A connection begins with what waits: the journal knows where that happened. */
  replace(block) {
    const at = this.blocks.findIndex((it) => it.kind === "blocked" && it.id === block.id);
    if (at < 0) return;
    const [live] = this.blocks.splice(at, 1);
    this.forget(live);
    Object.assign(block, { text: live.text, isBad: live.isBad });
  }
}

const SPOKEN = lookup({ message: true, thought: true });

const SPEECH = lookup({
  agent_message_chunk: "message",
  agent_thought_chunk: "thought",
  user_message_chunk: "prompt",
});

export class Transcripts {
  constructor() {
    /** @type {Map<string, Transcript>} the last to speak comes last */
    this.byAgent = new Map();
    /** The event behind which all is live: undefined until it is known, null without a journal. */
    this.edge = undefined;
  }

  of(agent) {
    let transcript = this.byAgent.get(agent);
    if (!transcript) {
      this.byAgent.set(agent, (transcript = new Transcript()));
      if (this.byAgent.size > MOST_TRANSCRIPTS) this.byAgent.delete(this.byAgent.keys().next().value);
    }
    return transcript;
  }

  update(line) {
    const transcript = this.of(line.agent_id);
    const { update } = line;
    const session = idOf(line.session_id);
    const kind = SPEECH[textOf(update?.sessionUpdate)];
    if (kind) {
      const id = update.messageId ? idOf(update.messageId) : undefined;
      transcript.speech(kind, session, blockText(update.content), id);
    } else if (update?.sessionUpdate === "tool_call" || update?.sessionUpdate === "tool_call_update")
      transcript.toolCall(session, update);
    else if (update?.sessionUpdate === "_eisen/terminal") transcript.printed(session, update);
    else if (update?.sessionUpdate === "_eisen/prompt")
      transcript.push("prompt", session, short(update.text, LONGEST_BLOCK) + (update.truncated === true ? " …" : ""));
    else if (update?.sessionUpdate === "plan") this.plan(transcript, session, planText(update.entries));
    this.bound();
  }

  plan(transcript, session, text) {
    const last = transcript.blocks.at(-1);
    if (last?.kind === "plan" && last.session === session) {
      last.text = text;
      transcript.changed(last);
    } else transcript.push("plan", session, text);
  }

  turn(line) {
    const name = `${line.agent_id}/${line.session_id}`;
    this.of(line.agent_id).add(turnBlock(line.agent_id, line.session_id, name, line));
  }

  blocked(line) {
    // What nobody meant is in the log.
    if (line.sweep) return;
    this.of(line.agent_id).refused(line);
    this.bound();
  }

  report(line) {
    this.of(line.agent_id).push("report", "", short(line.text, LONGEST_BLOCK));
  }

  /** Lines were missed, or the connection was lost: all transcripts have a hole here. */
  missed(line) {
    this.edge = undefined;
    const text = line
      ? `${counted(line.missed, "line")} of the team were missed here.`
      : "The connection was lost here.";
    for (const transcript of this.byAgent.values()) {
      if (!transcript.blocks.length && !transcript.past.blocks.length) {
        transcript.edge = undefined;
        transcript.past = new Past();
        continue;
      }
      const last = transcript.blocks.at(-1);
      if (last?.text !== text) transcript.push("mark", "", text, { isAgain: true });
      transcript.missedAt = transcript.next;
    }
  }

  bound() {
    let size = 0;
    for (const transcript of this.byAgent.values()) size += transcript.size;
    while (size > MOST_CHARS_OF_ALL) {
      let longest = null;
      for (const transcript of this.byAgent.values())
        if (!longest || transcript.size > longest.size) longest = transcript;
      const before = longest.size;
      for (let n = 0; n < 50 && longest.blocks.length; n++) longest.dropFirst();
      size -= before - longest.size;
    }
  }
}
