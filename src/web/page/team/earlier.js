// Owns what an agent said before this page was opened: reads it from the journal.

import { plain } from "../format.js";
import { partOf } from "./transcript.js";

/** Events that are kept, the last ones. */
const MOST_EVENTS = 600;
/** Pages of 1,000 events that are read. */
const MOST_PAGES = 20;

const TYPES = ["message", "tool", "turn", "report"];

/** Puts the last events of an agent before what its transcript has. */
export async function earlier(app, agent, transcript) {
  let after;
  let events = [];
  for (let page = 0; page < MOST_PAGES; page++) {
    const answer = await app.call("list_events", {
      agent_id: agent,
      types: TYPES,
      limit: 1000,
      ...(after && { after }),
    });
    events = events.concat(answer.events).slice(-MOST_EVENTS);
    after = answer.next;
    if (!after) break;
  }
  const isLive = liveTest(transcript);
  const end = events.findIndex(isLive);
  const known = end < 0 ? events : events.slice(0, end);
  transcript.prepend(blocksOf(known));
}

/** Tells the first event that the transcript has already, since it came live. */
function liveTest(transcript) {
  const calls = new Set([...transcript.calls.keys()].map((key) => key.slice(key.indexOf("\n") + 1)));
  const first = transcript.blocks.find((it) => it.kind === "message" || it.kind === "thought");
  const begun = transcript.blocks[0]?.at ?? Infinity;
  return (event) => {
    if (event.timestamp < begun - 120_000) return false;
    if (event.payload?.tool_call_id && calls.has(event.payload.tool_call_id)) return true;
    return Boolean(first?.text.trim()) && plain(event.payload?.text ?? "").endsWith(first.text);
  };
}

function blocksOf(events) {
  const blocks = [];
  const calls = new Map();
  const push = (kind, text, more) =>
    blocks.push({ kind, session: "", text, size: text.length + 100, version: 0, ...more });
  for (const { type, payload, turn, session_id: session, agent_id: agent } of events) {
    const text = plain(payload?.text ?? "").slice(0, 32_000);
    if (type === "message.user") push("prompt", text);
    else if (type === "message.assistant") push("message", text);
    else if (type === "message.thought") push("thought", text);
    else if (type === "report") push("report", text);
    else if (type === "turn.end" || type === "turn.failed") {
      const why = payload.reason ? `: ${plain(payload.reason).slice(0, 2000)}` : "";
      push("turn", `turn ${turn} ended: ${plain(payload.stop_reason)}${why}`, {
        isBad: type === "turn.failed",
        place: { agent, session, turn },
      });
    } else if (type === "tool.call" || type === "tool.result") {
      const key = `${session}\n${payload.tool_call_id}`;
      let block = calls.get(key);
      if (!block) {
        push("call", "", {
          call: { key: `journal ${key}`, title: "", kind: "", status: "", parts: [], places: [] },
        });
        calls.set(key, (block = blocks.at(-1)));
      }
      fillCall(block, payload);
    }
  }
  return blocks;
}

function fillCall(block, payload) {
  const { call } = block;
  call.title = plain(payload.title ?? call.title).slice(0, 500);
  call.kind = plain(payload.kind ?? call.kind).slice(0, 40);
  call.status = plain(payload.status ?? (call.status || "pending")).slice(0, 40);
  if (Array.isArray(payload.locations))
    call.places = payload.locations.slice(0, 50).map((it) => plain(it?.path ?? it).slice(0, 1024));
  if (Array.isArray(payload.content)) call.parts = payload.content.slice(0, 50).map(partOf).filter(Boolean);
  if (payload.error) call.parts.push({ kind: "text", text: plain(payload.error).slice(0, 8000), size: 100 });
  block.size = 200 + call.parts.reduce((sum, part) => sum + part.size, 0);
}
