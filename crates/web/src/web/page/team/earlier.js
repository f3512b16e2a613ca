// Owns how the journal becomes what a transcript has from before: pages of its events, read from the
// end.

import { short } from "../format.js";
import {
  LONGEST_BLOCK,
  blockOf,
  callBlock,
  fillCall,
  idOf,
  isOpen,
  planText,
  refusalText,
  sizeOf,
  turnBlock,
} from "./blocks.js";
import { Past } from "./past.js";

/** Events of a page. */
const PAGE = 300;
/** A look further up brings so many blocks, in so many pages. */
const ENOUGH = 60;
const MOST_PAGES = 5;

const TYPES = ["message", "tool", "turn", "report", "plan", "blocked"];

/** The place behind the last event of the journal; null if the team keeps none. */
export async function edgeOf(call) {
  try {
    const { events } = await lastOf(call).catch((error) => {
      if (error.code === 403) return lastOfSome(call);
      throw error;
    });
    return events.length ? behind(events[0].id) : null;
  } catch (error) {
    if (error.code === 404) return null;
    throw error;
  }
}

function lastOf(call, agent) {
  return call("list_events", { ...(agent && { agent_id: agent }), last: true, limit: 1 });
}

/** The last event of those agents that a token is for. */
async function lastOfSome(call) {
  const agents = await call("list_agents");
  const lasts = await Promise.all(agents.map((agent) => lastOf(call, agent.agent_id)));
  const events = lasts.flatMap((it) => it.events);
  return { events: events.sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, 1) };
}

/** An id that is greater than this one, and smaller than all later ones. */
function behind(id) {
  const digits = (BigInt(`0x${id.replaceAll("-", "")}`) + 1n).toString(16).padStart(32, "0");
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/**
 * Puts the events before those that a transcript has in front of it.
 * @param {Object} app
 * @param {string} agent
 * @param {import("./transcript.js").Transcript} transcript
 */
export async function earlier(app, agent, transcript) {
  const { past } = transcript;
  if (past.state === "asked" || !past.hasMore) return;
  if (past.state === "") {
    transcript.edge ??= app.state.said.edge;
    if (transcript.edge === undefined) return;
    past.before = transcript.edge;
    if (past.before === null) return void (past.state = "none");
  }
  past.state = "asked";
  try {
    let blocks = 0;
    for (let page = 0; page < MOST_PAGES && blocks < ENOUGH && past.before !== null; page++) {
      const found = await read(app, agent, past);
      // Meanwhile it may have begun anew.
      if (transcript.past !== past) return;
      blocks += found.length;
      transcript.prepend(found);
    }
    past.state = "there";
  } catch (error) {
    past.state = "failed";
    past.why = error.message;
  }
}

/** Begins a transcript anew from the journal's end; only what is not over stays. */
export async function again(app, agent, transcript) {
  const from = transcript.openFrom();
  const edge = await edgeOf((method, params) => app.call(method, params));
  if (edge === null) throw new Error("the team keeps no journal");
  await renew(app, agent, transcript, from, edge);
}

/** Replaces the blocks before one by what the journal has before an event; they stay until it is there. */
export async function renew(app, agent, transcript, from, edge) {
  const past = new Past();
  past.before = edge;
  const blocks = await read(app, agent, past);
  past.state = "there";
  transcript.forgetBefore(from);
  Object.assign(transcript, { past, edge });
  transcript.prepend(blocks);
}

/** Reads one page further back. */
async function read(app, agent, past) {
  const { events, next } = await app.call("list_events", {
    agent_id: agent,
    types: TYPES,
    last: true,
    limit: PAGE,
    before: past.before,
  });
  past.before = next;
  return blocksOf(events, past);
}

function blocksOf(events, past) {
  const blocks = [];
  for (const { type, payload, turn, session_id: id, agent_id: agent } of events) {
    const session = idOf(id);
    const say = (kind) => blocks.push(blockOf(kind, session, short(payload?.text, LONGEST_BLOCK)));
    if (type === "message.user") say("prompt");
    else if (type === "message.assistant") say("message");
    else if (type === "message.thought") say("thought");
    else if (type === "report") say("report");
    else if (type === "turn.end" || type === "turn.failed")
      blocks.push(turnBlock(agent, session, session, { ...payload, turn }));
    else if (type === "plan") blocks.push(blockOf("plan", session, planText(payload?.entries)));
    else if (type === "blocked") refused(blocks, session, payload ?? {});
    else if (type === "tool.call" || type === "tool.result") {
      const block = callOf(past, session, turn, type, payload ?? {});
      if (block) blocks.push(block);
    }
  }
  return blocks;
}

/** An access that was blocked, where it happened first; the last that is known of it counts. */
function refused(blocks, session, payload) {
  if (payload.sweep) return;
  const id = idOf(payload.blocked_id);
  const isBad = payload.status === "denied" || payload.status === "expired";
  const block = blockOf("blocked", session, refusalText({ ...payload, id }), { id, isBad });
  const known = blocks.find((it) => it.kind === "blocked" && it.id === id);
  if (known) Object.assign(known, { text: block.text, isBad, size: block.size });
  else blocks.push(block);
}

/** The block of a tool call; none if one of the blocks has it. */
function callOf(past, session, turn, type, payload) {
  const id = idOf(payload.tool_call_id);
  const key = `${session}\n${turn}\n${id}`;
  let block = past.calls.get(key);
  const isNew = !block;
  if (!block) {
    past.calls.set(key, (block = callBlock(session, key)));
    block.call.id = id;
  }
  // The page with its end came first: that knows more.
  else if (block.n || type === "tool.call") return null;
  fillCall(block.call, payload);
  if (payload.error && !block.call.parts.some((part) => part.kind === "text"))
    fillCall(block.call, { content: [...(payload.content ?? []), { type: "text", text: payload.error }] });
  block.call.isOpen = isOpen(block.call);
  block.size = sizeOf(block);
  return isNew ? block : null;
}
