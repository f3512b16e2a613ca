// Owns how one block of a transcript is drawn, and how several are as one fold.

import { terminal } from "../ansi.js";
import { codeBlock, copyButton, languageOf } from "../code.js";
import { compare } from "../diff.js";
import { diffView } from "../diff-view.js";
import { button, fill, h } from "../dom.js";
import { counted, cut, duration, line, lookup, turnName } from "../format.js";
import { KINDS, changesAt } from "../turns.js";
import { icon } from "../icons.js";
import { grow } from "../markdown.js";
import { entriesOf, isOpen, refusalOf } from "./blocks.js";
import { repeats, screenView, silence, unfenced } from "./screen.js";

/** Characters of a prompt that are shown at first, and of one line about a block. */
const FIRST_OF_PROMPT = 1_500;
const LONGEST_LINE = 160;
const LONGEST_TITLE = 300;
/** Calls that took less do not say how long. */
const WORTH_A_WORD_MS = 1_000;

/**
 * Draws a block.
 * @param {HTMLElement} el
 * @param {import("./blocks.js").Block} block
 * @param {{app?: Object, again: () => void}} asks `again` reads the transcript anew, where something is missing
 */
export function drawBlock(el, block, asks) {
  el.className = `block block-${block.kind}${block.isBad ? " bad" : ""}`;
  const draw = DRAWN[block.kind] ?? drawMark;
  draw(el, block, asks);
}

const DRAWN = lookup({
  message: (el, block, { app }) => drawMessage(el, block, app),
  report: (el, block, { app }) => drawMessage(el, block, app, head("message", "Report to the team")),
  prompt: drawPrompt,
  thought: (el, block, { app }) => drawThought(el, block, app),
  plan: drawPlan,
  call: (el, block, { app }) => drawCall(el, block.call, app),
  blocked: drawBlocked,
  turn: drawTurn,
});

const head = (name, text) => h("p", { class: "block-head" }, icon(name), text);

/** What each element shows now; a message that grows is not built anew, and a selection in it stays. */
const drawn = new WeakMap();

function drawMessage(el, block, app, ...before) {
  let body = drawn.get(el);
  if (!body) {
    drawn.set(el, (body = { md: h("div", { class: "md text" }), block }));
    const copy = copyButton(() => body.block.text, "Copy the message");
    fill(el, before, body.md, copy);
  }
  body.block = block;
  grow(body.md, block.text, app);
}

/** What a person, or another agent, asked for. */
function drawPrompt(el, block) {
  const isLong = block.text.length > FIRST_OF_PROMPT;
  const text = h("div", { class: "text" }, cut(block.text, FIRST_OF_PROMPT));
  const all = () => (fill(text, block.text), more.remove());
  const more = button("Show all of it", all, { class: "quiet" });
  const copy = copyButton(() => block.text, "Copy the prompt");
  fill(el, h("div", { class: "prompt-card" }, icon("person", "Prompt"), h("div", null, text, isLong && more)), copy);
}

/** A part that is folded: what is in it is built when it is opened. */
function fold(el, summary, build, props = {}) {
  const body = h("div", { class: "fold-body" });
  const fillIn = () => details.open && !body.childNodes.length && fill(body, build());
  const before = el.querySelector(":scope > details");
  const isFocused = before?.firstChild === document.activeElement;
  const line = h("summary", null, icon("right"), summary);
  const details = h("details", { ...props, open: before?.open, on: { toggle: fillIn } }, line, body);
  fill(el, details);
  fillIn();
  if (isFocused) line.focus({ preventScroll: true });
}

function drawThought(el, block, app) {
  const md = el.querySelector(":scope > details[open] > .fold-body > .md");
  if (md) return grow(md, block.text, app);
  const first = block.text.replaceAll("*", "").trimStart().split("\n", 1)[0];
  const title = h("span", { class: "clip" }, cut(first, LONGEST_LINE) || "Thoughts");
  fold(el, [icon("think", "Thought"), title], () => {
    const text = h("div", { class: "md text" });
    grow(text, block.text, app);
    return text;
  });
}

/** How far a plan is, in one line. */
export function planLine(block) {
  const entries = entriesOf(block);
  const done = entries.filter((it) => it.state === "done").length;
  const now = entries.find((it) => it.state === "now") ?? entries.find((it) => it.state === "open");
  const text = `${done} of ${entries.length}${now ? `: ${now.text}` : " done"}`;
  return [icon("plan", "Plan"), h("span", { class: "clip" }, text)];
}

const BOXES = lookup({ done: ["box-checked", "done"], now: ["box-half", "now"], open: ["box", "to come"] });

/** A plan as a check list. */
export function planList(block) {
  const row = ({ state, text }) => h("li", { class: `is-${state}` }, icon(...BOXES[state]), h("span", null, text));
  return h("ol", { class: "plan-list" }, entriesOf(block).map(row));
}

function drawPlan(el, block) {
  fold(el, planLine(block), () => planList(block));
}

/** The end of a turn leads to what it changed. */
function drawTurn(el, { text, place, isBad }) {
  const link = h("a", { href: changesAt(place.agent, place.session, place.turn) }, `changes of the ${turnName(place.turn)}`);
  fill(el, icon(isBad ? "cross" : "check"), h("span", { class: "text" }, text), " · ", link);
}

const REFUSALS = lookup({
  waits: ["wait", "Waits for a decision"],
  denied: ["stop", "Refused"],
  "too late": ["clock", "Nobody decided in time"],
  allowed: ["check", "Allowed"],
  answered: ["message", "Answered"],
});

/** An access that was blocked, where it happened; while it waits, the way to its card. */
function drawBlocked(el, block, { app }) {
  const { state, what } = refusalOf(block);
  const [name, title] = REFUSALS[state] ?? ["warn", state];
  const word = app && !app.may("decide") ? "Show" : "Decide";
  const open = () => (location.hash = `inbox/${encodeURIComponent(block.id)}`);
  el.classList.toggle("waits", state === "waits");
  fill(
    el,
    icon(name),
    h("span", { class: "text" }, h("strong", null, `${title}: `), h("span", { class: "path" }, what)),
    h("span", { class: "dim small" }, block.id),
    state === "waits" && button(word, open, { class: "main decide" }),
  );
}

/** What the page has to say of the transcript itself. */
function drawMark(el, block, { again }) {
  const more = block.isAgain && button("Read it from the journal", again);
  fill(el, icon("warn"), h("span", { class: "text" }, block.text), " ", more);
}

const OTHER = ["file", "other call"];

/** What a call's state is, in a word; done is nothing to tell of. */
const STATES = lookup({
  completed: ["check", "", "good"],
  failed: ["cross", "failed", "bad"],
  cancelled: ["cross", "cancelled", "bad"],
  unfinished: ["cross", "not finished", "bad"],
  in_progress: ["play", "running", "busy"],
  pending: ["wait", "waits", "busy"],
});

/** By part: its diff. */
const diffs = new WeakMap();

function diffsOf(call) {
  const own = call.parts.filter((part) => part.kind === "diff");
  for (const part of own) {
    if (!diffs.has(part)) diffs.set(part, compare(shortPath(part.path, call.title), part.before, part.after));
  }
  return own.map((part) => diffs.get(part));
}

/** A path as the call's title has it: without where the workspace is. */
function shortPath(path, title) {
  for (let at = path.indexOf("/"); at >= 0; at = path.indexOf("/", at + 1)) {
    const rest = path.slice(at + 1);
    if (rest && title.includes(rest)) return rest;
  }
  return path;
}

function sums(all) {
  if (!all.length) return null;
  const sum = (name) => all.reduce((rest, it) => rest + it[name], 0);
  const plus = h("span", { class: "plus" }, `+${sum("added")}`);
  return h("span", { class: "plus-minus" }, plus, " ", h("span", { class: "minus" }, `−${sum("removed")}`));
}

/** What a call is about; commands come in the quotes of Markdown from some agents. */
function titleOf(call) {
  const title = line(call.title || call.places[0] || call.kind || "A tool call");
  const isQuoted = title.length > 2 && title[0] === "`" && title.at(-1) === "`";
  return cut(isQuoted ? title.slice(1, -1) : title, LONGEST_TITLE);
}

/** By element: its call, and all that it looks like but for what terminals print. */
const looks = new WeakMap();

/** A tool call is folded. While a command prints, only that is drawn. */
function drawCall(el, call, app) {
  const parts = call.parts.map((it) => (it.kind === "terminal" ? [it.id, !it.output] : it.kind));
  const others = call.parts.filter((it) => it.kind !== "terminal");
  const { title, kind, status, places, code, signal, output, ms, refused } = call;
  const look = JSON.stringify([title, kind, status, places, code, signal, output.length, ms, refused.size, parts]);
  const known = looks.get(el);
  looks.set(el, { call, look, others });
  // A part that changes is another object.
  const isSame = known?.call === call && known.look === look && others.every((it, at) => it === known.others[at]);
  if (isSame && el.firstElementChild?.tagName === "DETAILS")
    return call.parts.filter((it) => it.kind === "terminal" && it.output).forEach(screenView);
  const [name, word] = KINDS[call.kind] ?? OTHER;
  const isPartly = call.refused.size > 0;
  const [sign, state, tone] = isPartly ? ["warn", "refused in part", "wait"] : (STATES[call.status] ?? STATES.pending);
  const isFailed = call.code !== null && call.code !== 0;
  const tag = isFailed && !isPartly ? `exit ${call.code}` : state;
  const took = call.ms !== null && call.ms >= WORTH_A_WORD_MS && duration(call.ms);
  const summary = [
    icon(name, word),
    h("span", { class: `title${call.kind === "execute" ? " mono" : ""}` }, titleOf(call)),
    sums(diffsOf(call)),
    tag
      ? h("span", { class: `tag tone-${state ? tone : "bad"}` }, icon(state ? sign : "cross"), tag)
      : h("span", { class: `sign tone-${tone}` }, icon(sign, "done")),
    took && h("span", { class: "dim small took" }, took),
  ];
  fold(el, summary, () => bodyOf(call, app), { class: `call tone-of-${tone}` });
}

function bodyOf(call, app) {
  const own = diffsOf(call);
  const screens = call.parts.filter((part) => part.kind === "terminal");
  const printed = screens.filter((part) => part.output);
  const texts = call.parts.filter((part) => part.kind === "text" && !repeats(part, printed));
  const parts = [printed.map(screenView), texts.map((part) => partView(part, call, app))].flat();
  const isSilent = screens.length > 0 && !parts.length && !call.output;
  const places = call.places.map((it) => shortPath(line(it), call.title)).filter((it) => !call.title.includes(it));
  const isLong = call.kind === "execute" && call.title.length > LONGEST_LINE;
  const body = [
    isLong && codeBlock(app, "sh", call.title),
    places.length > 0 && h("p", { class: "dim path" }, places.join(", ")),
    own.length > 0 && diffView(own),
    parts,
    call.output && !parts.length && terminal(call.output),
    isSilent && h("p", { class: "dim" }, silence(call, screens)),
    call.code !== null && h("p", { class: "dim" }, `Exit code ${call.code}.`),
    call.signal && h("p", { class: "dim" }, `It was ended by ${line(call.signal)}.`),
  ];
  if (body.flat().some(Boolean)) return body;
  return h("p", { class: "dim" }, isOpen(call) ? "Nothing is reported yet." : "Nothing more is reported.");
}

/** A text of a call: of a terminal, of the file that it read, or as it is. */
function partView(part, call, app) {
  const more = part.isCut && h("p", { class: "dim" }, "The rest is left out here.");
  const source = part.raw || part.text;
  const fenced = unfenced(source);
  const text = fenced?.text ?? source;
  if (part.raw || call.kind === "execute") return [terminal(text), more];
  const path = call.kind === "read" && call.places.length === 1 ? call.places[0] : "";
  if (path || fenced) return [codeBlock(app, fenced?.language || languageOf(path), text, path), more];
  return [h("pre", null, text), more];
}

/** Several calls in one line: how many of each kind. */
export function drawFold(el, blocks, asks) {
  const counts = new Map();
  for (const { call } of blocks) {
    const kind = call && (KINDS[call.kind] ? call.kind : "other");
    if (kind) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  let known = drawn.get(el);
  el.className = "block block-fold";
  if (!known) {
    const body = h("div", { class: "fold-body" });
    const summary = h("summary");
    const details = h("details", { on: { toggle: () => within(drawn.get(el)) } }, summary, body);
    drawn.set(el, (known = { details, summary, body, rows: new Map() }));
    fill(el, details);
  }
  Object.assign(known, { blocks, asks });
  const all = blocks.filter((it) => it.call).flatMap((it) => diffsOf(it.call));
  fill(known.summary, icon("right"), h("span", { class: "counts" }, [...counts].map(countView)), sums(all));
  within(known);
}

function countView([kind, count], at, all) {
  const [name, word] = KINDS[kind] ?? OTHER;
  const text = counted(count, word);
  return h("span", { class: "count" }, icon(name), at + 1 < all.length ? `${text},` : text);
}

/** Draws what is in a fold while it is open. */
function within({ details, body, blocks, rows, asks }) {
  if (!details.open) return;
  const keep = new Set(blocks.map((it) => it.n));
  for (const [n, row] of rows) if (!keep.has(n)) (row.el.remove(), rows.delete(n));
  let place = body.firstElementChild;
  for (const block of blocks) {
    let row = rows.get(block.n);
    if (!row) rows.set(block.n, (row = { el: h("div"), version: -1 }));
    if (row.el === place) place = place.nextElementSibling;
    else body.insertBefore(row.el, place);
    if (row.version !== block.version) drawBlock(row.el, block, asks);
    row.version = block.version;
  }
}

/** The element of a block within a fold, which opens for it. */
export function rowOf(el, n) {
  const known = drawn.get(el);
  if (!known?.rows) return el;
  known.details.open = true;
  within(known);
  return known.rows.get(n)?.el ?? el;
}

/** What a search looks at. */
export function searchText({ text, call }) {
  if (!call) return text;
  return [call.title, ...call.places, ...call.parts.map((it) => it.text || it.after || it.output || ""), call.output].join("\n");
}
