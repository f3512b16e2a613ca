// Owns how one card looks.

import { fill, h, keyButton, timeOf } from "../dom.js";
import { clock, left, line, lookup, plain } from "../format.js";
import { parsePatch } from "../diff.js";
import { diffView } from "../diff-view.js";
import { icon } from "../icons.js";
import { agentName } from "../marks.js";
import { ofAgent } from "../state.js";
import { partsOf } from "../team/figures.js";
import { KINDS } from "../turns.js";
import { byWhom, hasFile, subject } from "./cards.js";

/** Characters of content that are shown. */
const LONGEST_CONTENT = 70_000;
/** Content of fewer characters is open at first. */
const SHORT = 4_000;

/** The name of the orchestrator's place where no agent has it. */
const NOBODY = "orchestrator";

const VIA = lookup({
  fs: "the agent",
  terminal: "a command",
  permission: "the agent, which asks first",
  kernel: "a program that it runs",
  tool: "a tool call that is over",
  request: "the agent, which asks before it begins",
});

/** Whether content can stand in place of the file. */
export function canAnswer(card) {
  return card.kind === "access" && card.line.action === "read" && ["fs", "request"].includes(card.line.via);
}

/**
 * @param {{press: (card: Object, key: string) => void, may: (...rights: string[]) => boolean,
 *   tick: ((card: Object, isChosen: boolean) => void) | false}} hooks `tick` chooses it, to be decided with others
 */
export function drawCard(el, card, hooks) {
  el.className = `card card-${card.kind} is-${card.status}`;
  el.setAttribute("aria-label", subject(card) + (card.status === "done" ? `: ${card.outcome}` : ""));
  fill(
    el,
    tickOf(card, hooks),
    headOf(card),
    saidOf(card),
    factsOf(card),
    previewOf(card),
    card.status !== "done" && card.trouble && h("p", { class: "tone-bad", role: "status" }, `Not decided: ${line(card.trouble)}`),
    card.status === "done" ? outcomeOf(card) : actionsOf(card, hooks),
    h("div", { class: "asking" }),
  );
}

/** Chooses the card, where several are decided at once. */
function tickOf(card, { tick }) {
  if (!tick || card.status !== "waits" || !hasFile(card)) return null;
  const box = h("input", { type: "checkbox", class: "tick", on: { change: () => tick(card, box.checked) } });
  return h("label", { class: "tick-row small dim" }, box, "Decide it with the others");
}

function headOf(card) {
  const { line: it } = card;
  const age = timeOf(it.timestamp_ms, "dim");
  if (card.kind === "budget")
    return h("h2", null, it.agent_id ? agentName(it.agent_id) : "The team", " is over its budget ", age);
  const verb = card.kind === "conflict" ? "waits to write" : `wants to ${line(it.action)}`;
  return h(
    "h2",
    null,
    agentName(ofAgent(it)),
    ` ${verb} `,
    h("code", { class: "path" }, line(it.path)),
    " ",
    h("span", { class: "dim" }, line(it.id)),
    " ",
    age,
    card.status !== "done" && it.until_ms && [" ", h("time", { class: "warn", data: { until: it.until_ms } }, left(it.until_ms))],
  );
}

/** Why: what the agent said last, and the tool call behind it. */
function saidOf(card) {
  const { said, tool_call: call } = card.preview ?? {};
  const title = call && line(call.title ?? call.kind ?? "");
  return [
    said && h("p", { class: "said", tabindex: "0", title: "the last that it said" }, plain(said)),
    call &&
      h(
        "p",
        { class: "call small" },
        icon(KINDS[call.kind]?.[0] ?? "edit"),
        h("span", null, title, " ", call.input && h("code", null, line(call.input))),
      ),
  ];
}

function factsOf(card) {
  const { line: it } = card;
  const facts = [];
  const add = (name, ...value) => facts.push(h("dt", null, name), h("dd", null, value));
  const all = () => (facts.length ? h("dl", { class: "facts" }, facts) : null);
  if (card.kind === "budget") {
    for (const part of partsOf(it)) add(part.name, part.text);
    if (it.reason) add("why", line(it.reason));
    return all();
  }
  if (it.reason) add("reason", plain(it.reason));
  if (card.kind === "conflict") {
    add("conflict", line(it.message));
    if (it.agents?.length > 1)
      add(
        "with",
        it.agents.slice(1).map((agent) => [agentName(agent), " "]),
      );
    const lock = card.preview?.lock;
    if (lock) add("locked by", agentName(lock.agent_id), ` since ${clock(lock.since_ms)}`);
    return all();
  }
  if (it.owners?.length)
    add(
      it.owners.length > 1 ? "owners" : "owner",
      it.owners.map((agent) => [agentName(agent), " "]),
    );
  const rule = it.rule ?? card.preview?.rule;
  if (rule)
    add(
      "rule",
      `[[routing]] ${line(typeof rule === "object" ? JSON.stringify(rule) : rule)}${it.decide ? `: decide = "${line(it.decide)}"` : ""}`,
    );
  const { program } = card.preview ?? {};
  if (program) add("program", h("code", null, line(program.command)));
  else if (!card.preview?.tool_call) add("by", VIA[it.via] ?? line(it.via));
  // Without an agent in its place it is the person who reads this.
  if (it.orchestrator && it.orchestrator.agent_id !== NOBODY) add("orchestrator", agentName(it.orchestrator.agent_id));
  if (it.denied_by) add("denied by", h("code", null, line(it.denied_by)));
  return all();
}

function previewOf(card) {
  if (!hasFile(card) || card.status === "done") return null;
  if (card.previewState === "asked") return h("p", { class: "dim" }, "Reading what it would do …");
  const it = card.preview;
  if (!it) return null;
  const cutNote =
    it.truncated && h("p", { class: "warn" }, "This is only the beginning: the rest is not shown.");
  const callNote = it.by_tool_call && h("p", { class: "dim" }, "As its tool call says:");
  if (it.diff) {
    const { files, isCut } = parsePatch(plain(it.diff));
    const hasHunks = files.some((file) => file.hunks.length);
    const body = hasHunks ? diffView(files, isCut) : h("pre", null, plain(it.diff).slice(0, LONGEST_CONTENT));
    return h("div", { class: "preview", tabindex: "0" }, callNote, body, cutNote);
  }
  if (typeof it.content === "string" && it.content) return contentOf(card, it, cutNote);
  const unknown = card.line.action === "write" ? " Its content is not known before the write." : "";
  return h("p", { class: "dim" }, whyNothing(it) + unknown);
}

function contentOf(card, { content }, cutNote) {
  const label =
    (card.line.action ?? "write") === "write"
      ? "The file as it is; its content is not known before the write"
      : "What it would read";
  const text = h("pre", { tabindex: "0" }, plain(content).slice(0, LONGEST_CONTENT));
  return h(
    "details",
    { class: "preview", open: content.length < SHORT },
    h("summary", null, label),
    text,
    cutNote,
  );
}

/** Why nothing can be shown of an access. */
function whyNothing({ not_shown: reason, exists, binary, content }) {
  if (reason) return `The file is not shown: ${plain(reason)}`;
  if (exists === false) return "There is no such file.";
  if (binary) return "The file is no text.";
  return content === "" ? "The file is empty." : "Of this access only the path is known.";
}

function outcomeOf(card) {
  return h(
    "p",
    { class: "outcome" },
    `${card.outcome[0]?.toUpperCase() ?? ""}${card.outcome.slice(1)}`,
    card.outcome.includes(" by ") ? "" : ` ${byWhom(card.line)}`,
  );
}

function actionsOf(card, { press, may }) {
  const buttons = [];
  const disabled = card.status === "sent";
  const add = (key, text, name) =>
    buttons.push(keyButton(key, text, () => press(card, key), { class: name, disabled, tabindex: 0 }));
  if (card.kind === "budget") {
    if (may("control")) add("r", "Raise the budget …");
  } else if (may("decide")) {
    // Deny stands first: the way back is nearer than the way on.
    add("d", "Deny", "danger");
    add("D", "Deny, since …");
    if (canAnswer(card)) add("r", "Answer …");
    if (card.line.denied_by) {
      if (may("control")) add("e", "Allow in spite of that …", "danger");
    } else {
      if (card.kind === "access" && (card.line.match || may("control"))) add("m", "Always …");
      if (card.kind === "access") add("s", "This session");
      add("a", "Allow", "main");
    }
  }
  if (disabled) buttons.push(h("span", { class: "dim" }, "on its way …"));
  return buttons.length ? h("div", { class: "actions row wrap" }, buttons) : null;
}
