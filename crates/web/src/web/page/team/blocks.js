// Owns what the blocks of a transcript are made of, and how much each of them takes.

import { begin, lookup, objects, short, textOf, turnName } from "../format.js";

/** What a block takes besides its texts, counted as characters; so do a part, a place and a key. */
const OF_BLOCK = 300;
const OF_PIECE = 100;
/** Characters of one block; a longer message goes on in another. */
export const LONGEST_BLOCK = 32_000;
/** Characters of one part of a tool call: the rest is left out. */
const LONGEST_PART = 60_000;
/** Characters of all parts of a tool call. */
const LONGEST_CALL = 200_000;
/** Characters of one chunk of a message. */
const LONGEST_CHUNK = 500_000;
/** Parts of a tool call, and places. */
const MOST_PARTS = 50;
/** Characters of ids, names and paths. */
const LONGEST_ID = 200;
const LONGEST_WORD = 40;
const LONGEST_TITLE = 500;
const LONGEST_PATH = 1_024;
const LONGEST_REASON = 2_000;

/**
 * A block of a transcript. `n` rises from block to block, `version` with each change.
 * @typedef {{n: number, kind: string, session: string, text: string, size: number, version: number, call?: Object}} Block
 */

/** @returns {Block} */
export function blockOf(kind, session, text, more = {}) {
  const block = { n: 0, kind, session: idOf(session), text, size: 0, version: 0, ...more };
  block.size = sizeOf(block);
  return block;
}

/** What a block takes: all that it keeps. */
export function sizeOf({ text, session, id, place, call }) {
  let size = OF_BLOCK + text.length + session.length + (id?.length ?? 0);
  if (place) size += OF_PIECE + place.agent.length + place.session.length;
  if (!call) return size;
  // The key is kept once more by those who look for it.
  size += OF_BLOCK + 2 * call.key.length + call.title.length + call.kind.length + call.status.length;
  for (const path of call.places) size += OF_PIECE + path.length;
  for (const part of call.parts) size += part.size;
  return size;
}

export function idOf(id) {
  return begin(textOf(id), LONGEST_ID);
}

/** The block of a tool call of which nothing is known yet. */
export function callBlock(session, key) {
  return blockOf("call", session, "", {
    call: {
      key,
      title: "",
      kind: "",
      status: "pending",
      parts: [],
      places: [],
      refused: new Set(),
    },
  });
}

/** Takes what an update says of a tool call. */
export function fillCall(call, { title, kind, status, locations, content }) {
  if (title) call.title = short(title, LONGEST_TITLE);
  if (kind) call.kind = short(kind, LONGEST_WORD);
  if (status) call.status = short(status, LONGEST_WORD);
  if (Array.isArray(locations))
    call.places = locations.slice(0, MOST_PARTS).map((it) => short(it?.path ?? it, LONGEST_PATH));
  if (Array.isArray(content)) call.parts = partsOf(content);
}

/** Whether more is to come of a tool call. */
export function isOpen(call) {
  return OPEN[call.status] ?? false;
}

const OPEN = lookup({ pending: true, in_progress: true });

export function turnBlock(agent, session, name, { turn, stop_reason: stop, reason }, isBad) {
  const why = reason ? `: ${short(reason, LONGEST_REASON)}` : "";
  const place = { agent: idOf(agent), session: idOf(name), turn };
  const text = `${turnName(turn)} ended: ${short(stop, LONGEST_WORD)}${why}`;
  return blockOf("turn", session, text, { isBad, place });
}

/** What was blocked, and what can be done. */
export function refusalText({ id, status, action, path, ended }) {
  const state = status === "expired" ? "too late" : status === "pending" ? "waits" : status;
  const why = ended ? `, ${short(ended, LONGEST_REASON)}` : "";
  const way = { denied: "allow lets the next try pass", expired: "allow with --tell", pending: "see Inbox" };
  const out = lookup(way)[status];
  const what = `${short(action, LONGEST_WORD)} ${short(path, LONGEST_PATH)}`;
  return `${idOf(id)} ${short(state, LONGEST_WORD)}: ${what}${why}${out ? ` (${out})` : ""}`;
}

/** The parts of a tool call: texts and diffs. */
function partsOf(content) {
  let room = LONGEST_CALL;
  const parts = [];
  for (const it of objects(content, MOST_PARTS)) {
    const part = partOf(it, Math.min(LONGEST_PART, room));
    if (!part) continue;
    room = Math.max(0, room - part.size);
    parts.push(part);
  }
  return parts;
}

function partOf(part, most) {
  if (part.type === "diff") {
    const path = short(part.path, LONGEST_PATH);
    const [before, after] = [short(part.oldText, most), short(part.newText, most)];
    const isCut = (part.oldText?.length ?? 0) > most || (part.newText?.length ?? 0) > most;
    const isNew = part.oldText === null || part.oldText === undefined;
    const size = OF_PIECE + path.length + before.length + after.length;
    return { kind: "diff", path, before, after, isCut, isNew, size };
  }
  const whole =
    part.type === "terminal"
      ? `terminal ${short(part.terminalId, LONGEST_ID)}`
      : blockText(part.content ?? part);
  if (!whole) return null;
  const text = begin(whole, most);
  return { kind: "text", text, isCut: whole.length > most, size: OF_PIECE + text.length };
}

/** The text of a content block of ACP. */
export function blockText(content) {
  switch (content?.type) {
    case "text":
      return short(content.text, LONGEST_CHUNK);
    case "resource_link":
      return `[${short(content.uri, LONGEST_PATH)}]`;
    case "resource":
      return content.resource?.text
        ? short(content.resource.text, LONGEST_CHUNK)
        : `[${short(content.resource?.uri, LONGEST_PATH)}]`;
    case "image":
    case "audio":
      return `[${content.type}]`;
    default:
      return "";
  }
}

const PLAN_MARKS = lookup({ completed: "●", in_progress: "◐", pending: "○" });

export function planText(entries) {
  return objects(entries, 100)
    .map((it) => `${PLAN_MARKS[textOf(it.status)] ?? "○"} ${short(it.content, 400)}`)
    .join("\n");
}

/** A long text as pieces of the length of a block. */
export function* pieces(text) {
  for (let at = 0; at < text.length; at += LONGEST_BLOCK) yield begin(text.slice(at), LONGEST_BLOCK);
}
