// Owns what the blocks of a transcript are made of, and how much each of them takes.

import { isTerminal } from "../ansi.js";
import { begin, lookup, objects, short, textOf, turnName } from "../format.js";
import { figureWords, figuresOf, outcomeOf } from "../turns.js";

/** What a block takes besides its texts, counted as characters; so do a part, a place and a key. */
const OF_BLOCK = 300;
const OF_PIECE = 100;
/** Characters of one block; a longer message goes on in another. */
export const LONGEST_BLOCK = 32_000;
/** Characters of the output of a terminal: the port sends its end. */
const LONGEST_OUTPUT = 20_000;
/** Characters of one part of a tool call: the rest is left out. */
const LONGEST_PART = 60_000;
/** Characters of all parts of a tool call. */
const LONGEST_CALL = 200_000;
/** Characters of one chunk of a message. */
const LONGEST_CHUNK = 500_000;
/** Parts of a tool call, and places. */
const MOST_PARTS = 50;
/** Characters of ids, names and paths. */
const LONGEST_ID = 1_024;
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
  size += call.output.length;
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
      /** How it ended, and what it said beside its parts. */
      code: null,
      signal: "",
      output: "",
      /** When it began, as far as this page was there, and how long it took. */
      begunAt: 0,
      ms: null,
      refused: new Set(),
    },
  });
}

/** Takes what an update says of a tool call, or an event of the journal. */
export function fillCall(call, update) {
  const { title, kind, status, locations, content } = update;
  if (title) call.title = short(title, LONGEST_TITLE);
  if (kind) call.kind = short(kind, LONGEST_WORD);
  if (status) call.status = short(status, LONGEST_WORD);
  if (Array.isArray(locations))
    call.places = locations.slice(0, MOST_PARTS).map((it) => short(it?.path ?? it, LONGEST_PATH));
  if (Array.isArray(content)) call.parts = partsOf(content).map((part) => kept(part, call.parts));
  for (const part of call.parts) if (part.exit) ended(call, part.exit);
  fillOutput(call, update.rawOutput ?? update.output);
  if (isOpen(call)) call.begunAt ||= Date.now();
  if (Number.isFinite(update.duration_ms)) call.ms = update.duration_ms;
  else if (!isOpen(call) && call.begunAt) call.ms ??= Date.now() - call.begunAt;
}

/** What a terminal printed stays, where a later update names it only. */
function kept(part, before) {
  if (part.kind !== "terminal" || part.output) return part;
  return before.find((it) => it.kind === "terminal" && it.id === part.id) ?? part;
}

/** How the program of a terminal ended. */
function exitOf({ exitCode, signal }) {
  return { exitCode: Number.isInteger(exitCode) ? exitCode : null, signal: short(signal, LONGEST_WORD) };
}

/** How a terminal's program ended is how the call did, unless the agent says it. */
function ended(call, { exitCode, signal }) {
  call.code ??= exitCode;
  call.signal = signal;
}

/** Takes what a terminal printed, and how it ended: the team sends it all each time. */
export function fillTerminal(call, part, update) {
  Object.assign(part, terminalPart(update));
  if (part.exit) ended(call, part.exit);
}

/** What a terminal printed, as far as the port or the journal has it. */
export function terminalPart({ terminalId, output, truncated, exitStatus }) {
  const all = textOf(output);
  const end = all.length > LONGEST_OUTPUT ? all.slice(-LONGEST_OUTPUT) : all;
  const shown = rawText(end, LONGEST_OUTPUT);
  const exit = exitStatus && typeof exitStatus === "object" ? exitOf(exitStatus) : null;
  const isCut = Boolean(truncated) || end.length < all.length;
  return { kind: "terminal", id: idOf(terminalId), output: shown, isCut, exit, size: OF_PIECE + shown.length };
}

/** Where agents that show their commands' output put it, beside the parts. */
const OUTPUTS = ["formatted_output", "aggregated_output", "output", "stdout"];

function fillOutput(call, output) {
  if (typeof output === "string") call.output = rawText(output, LONGEST_PART);
  if (!output || typeof output !== "object") return;
  const code = output.exitCode ?? output.exit_code;
  if (Number.isInteger(code)) call.code = code;
  const name = OUTPUTS.find((it) => typeof output[it] === "string" && output[it]);
  if (name) call.output = rawText(output[name], LONGEST_PART);
}

/** Text of a terminal as it came, without the controls that no terminal output needs here. */
function rawText(text, most) {
  return begin(text, most).replace(/[\u0000-\u0007\u000b\u000c\u000e-\u001a\u001c-\u001f\u007f-\u009f]/g, "");
}

/** Whether more is to come of a tool call. */
export function isOpen(call) {
  return OPEN[textOf(call.status)] ?? false;
}

const OPEN = lookup({ pending: true, in_progress: true });

/** The end of a turn, by its line or its event. */
export function turnBlock(agent, session, name, { turn, stop_reason: stop, reason, spent }) {
  const [tone, , words] = outcomeOf(stop);
  const why = reason ? `: ${short(reason, LONGEST_REASON)}` : "";
  const title = turnName(turn);
  const text = `${title[0].toUpperCase()}${title.slice(1)} ${words}${why}`;
  const place = { agent: idOf(agent), session: idOf(name), turn };
  const parts = [text, figureWords(figuresOf(spent))].filter(Boolean);
  return blockOf("turn", session, parts.join(" · "), { isBad: tone === "bad", place });
}

const REFUSALS = lookup({ pending: "waits", expired: "too late" });

/** What was blocked: `refusalOf` takes it apart. */
export function refusalText({ id, status, action, path, ended }) {
  const why = ended ? `, ${short(ended, LONGEST_REASON)}` : "";
  const what = `${short(action, LONGEST_WORD)} ${short(path, LONGEST_PATH)}`;
  return `${idOf(id)} ${REFUSALS[status] ?? short(status, LONGEST_WORD)}: ${what}${why}`;
}

/** The state of what was blocked, and what it was. */
export function refusalOf({ id, text }) {
  const rest = text.slice(id.length + 1);
  const at = rest.indexOf(":");
  return { state: rest.slice(0, at), what: rest.slice(at + 2) };
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
    const size = OF_PIECE + path.length + before.length + after.length;
    return { kind: "diff", path, before, after, size };
  }
  if (part.type === "terminal") return terminalPart(part);
  const content = part.content ?? part;
  const all = blockText(content);
  if (!all) return null;
  const text = begin(all, most);
  const said = content.type === "text" ? textOf(content.text) : "";
  const raw = isTerminal(said) ? rawText(said, most) : "";
  return { kind: "text", text, raw, isCut: all.length > most, size: OF_PIECE + text.length + raw.length };
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
    .map((it) => `${PLAN_MARKS[textOf(it.status)] ?? "○"} ${short(it.content, 400).replaceAll("\n", " ")}`)
    .join("\n");
}

/** The entries of a plan: what each says, and whether it is done, now, or to come. */
export function entriesOf({ text }) {
  const state = lookup({ "●": "done", "◐": "now" });
  const entries = text.split("\n").filter(Boolean);
  return entries.map((it) => ({ state: state[it[0]] ?? "open", text: it.slice(2) }));
}

/** Calls that are done, and went well, may be folded, with what was thought and planned between them. */
const isQuiet = ({ call }) => call?.status === "completed" && !call.refused.size && !call.code;

/**
 * The blocks as they are shown: alone, or several as one fold.
 * @param {Block[]} blocks
 * @param {(block: Block) => boolean} isHeld whether the reader has it open, so that it stays
 * @returns {Block[][]}
 */
export function folded(blocks, isHeld) {
  const items = [];
  let run = [];
  const end = () => {
    const last = run.findLastIndex((it) => it.call) + 1;
    const isFold = run.filter((it) => it.call).length > 1;
    if (isFold) items.push(run.slice(0, last));
    for (const block of isFold ? run.slice(last) : run) items.push([block]);
    run = [];
  };
  for (const block of blocks) {
    const isBetween = run.length > 0 && (block.kind === "thought" || block.kind === "plan");
    if ((isQuiet(block) || isBetween) && !isHeld(block)) run.push(block);
    else (end(), items.push([block]));
  }
  end();
  return items;
}

/** A long text as pieces of the length of a block. */
export function* pieces(text) {
  for (let at = 0; at < text.length; at += LONGEST_BLOCK) yield begin(text.slice(at), LONGEST_BLOCK);
}
