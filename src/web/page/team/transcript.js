// Owns what agents said and did, as blocks: messages, thoughts, tool calls, plans, ends of turns.

import { counted, lookup, objects, plain } from "../format.js";

/** Blocks of an agent; older ones are dropped. */
const MOST_BLOCKS = 2_000;
/** Characters of an agent's blocks. */
const MOST_CHARS = 1_000_000;
/** Characters of all agents' blocks; the longest transcript gives way. */
const MOST_CHARS_OF_ALL = 16_000_000;
/** Agents whose transcripts are kept; the one that is silent for longest is dropped. */
const MOST_TRANSCRIPTS = 500;
/** Characters of one block; a longer message goes on in another. */
const LONGEST_BLOCK = 32_000;
/** Characters of one part of a tool call: the rest is left out. */
const LONGEST_PART = 60_000;
/** Characters of one chunk of a message. */
const LONGEST_CHUNK = 500_000;
/** Parts of a tool call. */
const MOST_PARTS = 50;

/**
 * A block of a transcript; `version` grows with each change.
 * @typedef {{n: number, kind: string, session: string, text: string, size: number, version: number, call?: Object}} Block
 */

export class Transcript {
  constructor() {
    /** @type {Block[]} */
    this.blocks = [];
    this.next = 1;
    this.size = 0;
    this.dropped = 0;
    /** Tool calls that are still among the blocks, by session and id. */
    this.calls = new Map();
    this.firstSession = "";
    /** Whether the journal was asked for what came before: "", "asked", "there", "failed". */
    this.earlier = "";
  }

  push(kind, session, text, more = {}) {
    const block = {
      n: this.next++,
      kind,
      session,
      text,
      size: text.length + 100,
      version: 0,
      at: Date.now(),
      ...more,
    };
    this.blocks.push(block);
    this.size += block.size;
    this.trim();
    return block;
  }

  grow(block, by) {
    block.size += by;
    this.size += by;
    block.version += 1;
  }

  trim() {
    while (this.blocks.length > 1 && (this.blocks.length > MOST_BLOCKS || this.size > MOST_CHARS))
      this.dropFirst();
  }

  dropFirst() {
    const block = this.blocks.shift();
    this.size -= block.size;
    this.dropped += 1;
    if (block.call) this.calls.delete(block.call.key);
  }

  /** Puts blocks of the journal before all others, as far as there is room. */
  prepend(blocks) {
    const room = Math.max(0, MOST_BLOCKS - this.blocks.length);
    let first = (this.blocks[0]?.n ?? this.next) - 1;
    for (const block of blocks.slice(-room || blocks.length).reverse()) {
      if (this.size + block.size > MOST_CHARS || this.blocks.length >= MOST_BLOCKS) break;
      this.blocks.unshift({ ...block, n: first-- });
      this.size += block.size;
    }
  }

  speech(kind, session, text, id) {
    const last = this.blocks.at(-1);
    const goesOn =
      last && last.kind === kind && last.session === session && (!id || !last.id || last.id === id);
    if (goesOn && last.text.length + text.length <= LONGEST_BLOCK) {
      last.text += text;
      this.grow(last, text.length);
      this.trim();
    } else if (text) {
      for (let at = 0; at < text.length; at += LONGEST_BLOCK)
        this.push(kind, session, text.slice(at, at + LONGEST_BLOCK), { id });
    }
  }

  toolCall(session, update) {
    const key = `${session}\n${update.toolCallId}`;
    let block = this.calls.get(key);
    if (!block) {
      block = this.push("call", session, "", {
        call: { key, title: "", kind: "", status: "pending", parts: [], places: [] },
      });
      this.calls.set(key, block);
    }
    const call = block.call;
    if (update.title) call.title = plain(update.title).slice(0, 500);
    if (update.kind) call.kind = plain(update.kind).slice(0, 40);
    if (update.status) call.status = plain(update.status).slice(0, 40);
    if (update.locations)
      call.places = objects(update.locations, MOST_PARTS).map((it) => plain(it.path).slice(0, 1024));
    if (update.content) call.parts = objects(update.content, MOST_PARTS).map(partOf).filter(Boolean);
    const size = 200 + call.parts.reduce((sum, part) => sum + part.size, 0);
    this.grow(block, size - block.size);
    this.trim();
  }
}

/** A part of a tool call: a text, or a diff. */
export function partOf(part) {
  if (part?.type === "diff") {
    const before = begin(part.oldText);
    const after = begin(part.newText);
    const isCut = (part.oldText?.length ?? 0) > LONGEST_PART || (part.newText?.length ?? 0) > LONGEST_PART;
    return {
      kind: "diff",
      path: plain(part.path).slice(0, 1024),
      before,
      after,
      isCut,
      isNew: part.oldText === null || part.oldText === undefined,
      size: before.length + after.length,
    };
  }
  if (part?.type === "terminal")
    return { kind: "text", text: `terminal ${plain(part.terminalId)}`, size: 60 };
  const text = blockText(part?.content ?? part);
  return text
    ? {
        kind: "text",
        text: text.slice(0, LONGEST_PART),
        isCut: text.length > LONGEST_PART,
        size: Math.min(text.length, LONGEST_PART),
      }
    : null;
}

/** The first characters of a text that may be of any length, or no text. */
function begin(text) {
  return plain(String(text ?? "").slice(0, LONGEST_PART));
}

/** The text of a content block of ACP. */
export function blockText(content) {
  switch (content?.type) {
    case "text":
      return plain(String(content.text ?? "").slice(0, LONGEST_CHUNK));
    case "resource_link":
      return `[${plain(content.uri)}]`;
    case "resource":
      return plain(content.resource?.text ?? `[${content.resource?.uri}]`);
    case "image":
    case "audio":
      return `[${content.type}]`;
    default:
      return "";
  }
}

const SPEECH = lookup({
  agent_message_chunk: "message",
  agent_thought_chunk: "thought",
  user_message_chunk: "prompt",
});

export class Transcripts {
  constructor() {
    /** @type {Map<string, Transcript>} the last to speak comes last */
    this.byAgent = new Map();
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
    const { update, session_id: session } = line;
    const kind = SPEECH[update?.sessionUpdate];
    transcript.firstSession ||= session;
    if (kind) transcript.speech(kind, session, blockText(update.content), update.messageId);
    else if (update?.sessionUpdate === "tool_call" || update?.sessionUpdate === "tool_call_update")
      transcript.toolCall(session, update);
    else if (update?.sessionUpdate === "plan") this.plan(transcript, session, update);
    this.bound();
  }

  plan(transcript, session, update) {
    const entries = objects(update.entries, 100);
    const text = entries
      .map((it) => `${PLAN_MARKS[it.status] ?? "○"} ${plain(it.content).slice(0, 400)}`)
      .join("\n");
    const last = transcript.blocks.findLast((it) => it.kind === "plan" || it.kind === "turn");
    if (last?.kind === "plan" && last.session === session && transcript.blocks.at(-1) === last) {
      transcript.grow(last, text.length - last.text.length);
      last.text = text;
    } else transcript.push("plan", session, text);
  }

  turn(line) {
    const why = line.reason ? `: ${plain(line.reason).slice(0, 2000)}` : "";
    const isBad = line.stop_reason === "error" || line.stop_reason === "refusal";
    const place = { agent: line.agent_id, session: `${line.agent_id}/${line.session_id}`, turn: line.turn };
    this.of(line.agent_id).push(
      "turn",
      line.session_id,
      `turn ${line.turn} ended: ${plain(line.stop_reason)}${why}`,
      { isBad, place },
    );
  }

  report(line) {
    this.of(line.agent_id).push("report", "", plain(line.text).slice(0, LONGEST_BLOCK));
  }

  /** What this page sent. */
  prompted(agent, text) {
    this.of(agent).push("prompt", "", plain(text).slice(0, LONGEST_BLOCK));
  }

  missed(line) {
    const text = line
      ? `${counted(line.missed, "line")} of the team were missed here`
      : "the connection was lost here; what was said meanwhile is in the journal";
    for (const transcript of this.byAgent.values()) {
      if (transcript.blocks.length && transcript.blocks.at(-1).text !== text)
        transcript.push("mark", "", text);
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
      for (let n = 0; n < 50 && longest.blocks.length > 1; n++) longest.dropFirst();
      if (longest.size === before) break;
      size -= before - longest.size;
    }
  }
}

const PLAN_MARKS = lookup({ completed: "●", in_progress: "◐", pending: "○" });
