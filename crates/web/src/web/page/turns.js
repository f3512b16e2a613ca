// Owns the words for turns: what came of one, what it took, and where the page shows what it changed.

import { count, line, lookup, money, objects, short, textOf } from "./format.js";

/** Characters of the name of a currency, and of a stop reason that nobody knows here. */
const LONGEST_WORD = 40;

/** Kinds of tool calls: the icon, and the word. */
export const KINDS = lookup({
  read: ["read", "read"],
  edit: ["edit", "edit"],
  write: ["edit", "edit"],
  delete: ["delete", "deletion"],
  move: ["file", "move"],
  search: ["search", "search"],
  execute: ["terminal", "command"],
  fetch: ["link", "fetch"],
  think: ["think", "thought"],
  message: ["message", "message"],
});

/** What came of a turn: its tone, icon and words. They are those of `top`, too. */
const OUTCOMES = lookup({
  end_turn: ["good", "check", "done"],
  cancelled: ["none", "stop", "cancelled"],
  error: ["bad", "cross", "failed"],
  refusal: ["bad", "cross", "refused"],
  max_tokens: ["bad", "warn", "stopped: out of tokens"],
  max_turn_requests: ["bad", "warn", "stopped: too many requests"],
  running: ["busy", "play", "working"],
  interrupted: ["none", "stop", "interrupted"],
});

/**
 * What came of a turn, by its stop reason, or `running` or `interrupted`: tone, icon, words, and why.
 * @returns {[string, string, string, string]}
 */
export function outcomeOf(state, reason = "") {
  const name = short(state, LONGEST_WORD);
  const [tone, image, words] = OUTCOMES[name] ?? ["none", "stop", line(name).replaceAll("_", " ") || "ended"];
  // Its text reports an error, though it ended like any other.
  if (reason && tone === "good") return ["wait", "warn", words, line(reason)];
  return [tone, image, words, line(reason)];
}

/** The address of what a turn changed; of an agent's changes, where its number is not known. */
export function changesAt(agent, session, turn) {
  const isKnown = turn !== null && turn !== undefined;
  return `#review/changes/${(isKnown ? [agent, session, turn] : [agent]).map(encodeURIComponent).join("/")}`;
}

/**
 * What a turn took, as far as it is known.
 * @typedef {{tokens: number | null, cost: Map<string, number>, isEstimate: boolean, isLeast: boolean}} Figures
 */

/** The figures of `spent`, as a `turn` line or the end of a turn in the journal has it. @returns {Figures} */
export function figuresOf(spent) {
  const names = (list) => (Array.isArray(list) ? list : []);
  const says = (list) => names(list).some((it) => it === "total" || it === "cost");
  const cost = new Map();
  for (const { currency, amount } of objects(spent?.cost, 8))
    if (Number.isFinite(amount)) cost.set(short(currency, LONGEST_WORD), amount);
  const tokens = Number.isFinite(spent?.total) ? spent.total : null;
  return { tokens, cost, isEstimate: says(spent?.estimated), isLeast: says(spent?.incomplete) };
}

/** Figures in words, such as `1.2K tokens · $0.04`: nothing of what is not known. */
export function figureWords({ tokens, cost, isEstimate, isLeast }) {
  const mark = isEstimate ? "~" : isLeast ? "≥ " : "";
  const parts = tokens === null ? [] : [`${mark}${count(tokens)} tokens`];
  if (cost.size) parts.push([...cost].map(([currency, amount]) => money(amount, textOf(currency))).join(" + "));
  return parts.join(" · ");
}

/** What figures lack, for the title of their words. */
export function figureHint({ tokens, cost, isEstimate, isLeast }) {
  if (tokens === null && !cost.size) return "Its agent does not report what it takes";
  const hints = [
    isEstimate && "a part is estimated",
    isLeast && "not all of it was reported",
    tokens === null && "the number of tokens is not known",
    !cost.size && "the money is not known",
  ];
  const text = hints.filter(Boolean).join(", ");
  return text && text[0].toUpperCase() + text.slice(1);
}
