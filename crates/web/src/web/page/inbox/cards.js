// Owns the cards of what waits for a person: which there are, how each stands, and which is selected.
// Knows no element.

import { ofAgent } from "../state.js";
import { line as oneLine } from "../format.js";

/** A card takes no key before a person can have read it. */
export const UNREAD_MS = 500;
/** A card that is decided stays as long after it was seen. */
const READ_MS = 5_000;
/** Cards that are decided and not yet seen. */
const MOST_DONE = 50;

/**
 * @typedef {Object} Card
 * @property {string} key
 * @property {"access" | "conflict" | "budget"} kind
 * @property {Object} line as on the wire
 * @property {"waits" | "sent" | "done"} status
 * @property {string} outcome what became of it, in words
 * @property {number} shownAt since when it is seen; 0: it is not
 * @property {number} doneSeen since when it is seen as decided; 0: it is not
 * @property {Object | null} preview the answer of `show_blocked` or `show_conflict`
 * @property {string} previewState "", "asked", "there", "failed", and "none" where the team does not tell
 */

export class Cards {
  constructor() {
    /** @type {Map<string, Card>} in the order in which they came */
    this.byKey = new Map();
    this.selected = "";
    /** When cards last moved under the pointer. */
    this.movedAt = 0;
    this.version = 0;
  }

  /** Brings the cards to what waits now; returns those that are new. */
  sync(state) {
    const waits = new Map();
    for (const [id, line] of state.waiting) waits.set(id, [line.kind ? "conflict" : "access", line]);
    for (const line of state.exceeded()) waits.set(`budget ${line.agent_id ?? ""}`, ["budget", line]);
    const fresh = [];
    for (const [key, [kind, line]] of waits) {
      const known = this.byKey.get(key);
      if (known && known.status !== "done") known.line = line;
      else fresh.push(this.add(key, kind, line));
    }
    for (const card of this.byKey.values()) {
      if (card.status === "waits" && !waits.has(card.key))
        this.end(card, card.kind === "budget" ? "the budget is open again" : "decided elsewhere");
    }
    this.bound();
    if (!this.byKey.has(this.selected)) this.take(this.firstWaiting());
    return fresh;
  }

  add(key, kind, line) {
    const card = {
      key,
      kind,
      line,
      status: "waits",
      outcome: "",
      shownAt: 0,
      doneSeen: 0,
      preview: null,
      previewState: "",
      version: 0,
    };
    this.byKey.delete(key);
    this.byKey.set(key, card);
    return card;
  }

  /** Hears a line of something that was decided. */
  heard(line) {
    const card = this.byKey.get(line.id);
    if (!card || line.status === "pending") return;
    card.line = { ...card.line, ...line };
    if (card.status === "waits") this.end(card, `${line.status} ${byWhom(line)}`.trim());
  }

  end(card, outcome) {
    card.status = "done";
    card.outcome = outcome;
    card.version += 1;
  }

  /** Drops what was decided and read; true if something was. */
  sweep(now) {
    let isGone = false;
    for (const card of this.byKey.values()) {
      if (card.status !== "done" || !card.doneSeen || now - card.doneSeen < READ_MS) continue;
      if (card.key === this.selected) this.selectAfter(card);
      this.byKey.delete(card.key);
      isGone = true;
    }
    if (isGone) this.movedAt = now;
    return isGone;
  }

  bound() {
    const done = [...this.byKey.values()].filter((card) => card.status === "done");
    for (const card of done.slice(0, Math.max(0, done.length - MOST_DONE))) this.byKey.delete(card.key);
  }

  list() {
    return [...this.byKey.values()];
  }

  firstWaiting() {
    return this.list().find((card) => card.status === "waits");
  }

  /** Selects the next that waits, behind this card or before it. */
  selectAfter(card) {
    const list = this.list();
    const at = list.indexOf(card);
    const next =
      list.slice(at + 1).find((it) => it.status === "waits") ??
      list.slice(0, at).findLast((it) => it.status === "waits");
    if (next) this.take(next);
  }

  /** Selects a card that nobody chose: it came under the key by itself, and is to be read first. */
  take(card) {
    this.selected = card?.key ?? "";
    if (card?.shownAt) card.shownAt = Date.now();
  }

  /** Why this card takes no decision now; empty if it does. */
  refusal(card, now) {
    if (card.status === "done") return `this was ${card.outcome}`;
    if (card.status === "sent") return "the decision is on its way";
    if (!card.shownAt || now - card.shownAt < UNREAD_MS) {
      // A key that is held decides nothing.
      if (card.shownAt) card.shownAt = now;
      return "this has just come up: read it first";
    }
    if (card.previewState === "asked") return "what it would do is still being read";
    return "";
  }
}

/** Whether a card is about a file, which is shown with it. */
export function hasFile(card) {
  return card.kind !== "budget";
}

/** Who decided, in words. */
export function byWhom(line) {
  if (line.answered_by) return `by ${oneLine(line.answered_by)}`;
  const by = line.decided_by;
  if (!by) return "";
  if (by === "person") return "by a person";
  if (by === "rule") return "by a rule";
  if (by === "web") return "by a person on the web";
  return `by ${oneLine(String(by).replace(/^(agent|token):/, ""))}`;
}

/** What a card is about, in one line. */
export function subject(card) {
  const { line } = card;
  if (card.kind === "budget")
    return line.agent_id
      ? `The budget of ${oneLine(line.agent_id)} is used up`
      : "The team's budget is used up";
  if (card.kind === "conflict") return `${oneLine(ofAgent(line))} waits to write ${oneLine(line.path)}`;
  return `${oneLine(line.agent_id)} wants to ${line.action} ${oneLine(line.path)}`;
}
