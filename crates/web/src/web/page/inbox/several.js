// Owns the decision of several cards at once: which are chosen, by a tick or a pattern, and the bar that decides them.
// Each is decided by a request of its own.

import { notice } from "../dialog.js";
import { button, fill, h, keyButton, setText } from "../dom.js";
import { counted, line } from "../format.js";
import { iconButton } from "../icons.js";
import { ofAgent } from "../state.js";
import { UNREAD_MS, hasFile, subject } from "./cards.js";

/** Cards that are chosen at once: those that are shown. */
const MOST_CHOSEN = 60;
/** Characters of a pattern, and wildcards in it. */
const LONGEST_PATTERN = 200;
const MOST_WILD = 8;

export class Several {
  /** @param {{app: Object, cards: Object, decider: Object, changed: () => void, left: () => void}} uses */
  constructor(uses) {
    Object.assign(this, uses);
    this.isOpen = false;
    /** Keys of cards. */
    this.chosen = new Set();
    /** When the chosen ones last changed: what was not read is not decided. */
    this.changedAt = 0;
    this.toggle = button("Several …", () => (this.isOpen ? this.close() : this.open()), { class: "quiet", hidden: true, "aria-keyshortcuts": "v", "aria-expanded": "false" });
    this.field = h("input", {
      type: "search",
      maxlength: LONGEST_PATTERN,
      placeholder: "docs/** or an agent",
      "aria-label": "Choose by a pattern of paths, or by an agent",
      on: { input: () => this.pick(this.field.value), keydown: (event) => this.typed(event) },
    });
    this.sum = h("strong", { role: "status" });
    this.list = h("ul", { class: "chosen", tabindex: "0", "aria-label": "What is chosen" });
    this.acts = [
      keyButton("d", "Deny", () => this.decide("deny"), { class: "danger" }),
      keyButton("s", "This session", () => this.decide("allow", "session")),
      keyButton("a", "Allow", () => this.decide("allow"), { class: "main" }),
    ];
    const close = iconButton("cross", "Choose no several", () => this.close());
    this.parts = [
      h("div", { class: "row" }, this.field, this.sum, h("span", { class: "grow" }), close),
      this.list,
      h("div", { class: "actions row wrap" }, this.acts),
    ];
    this.element = h("section", { class: "several", "aria-label": "Several at once", hidden: true });
  }

  /** The cards that can be chosen now. */
  all() {
    return this.cards.list().filter((card) => card.status === "waits" && hasFile(card)).slice(0, MOST_CHOSEN);
  }

  picked() {
    return this.all().filter((card) => this.chosen.has(card.key));
  }

  open() {
    if (!this.app.may("decide")) return notice("this browser may not decide that", true);
    this.isOpen = true;
    this.changed();
    this.field.focus({ preventScroll: true });
  }

  close() {
    this.isOpen = false;
    this.chosen.clear();
    this.field.value = "";
    this.changed();
    this.left();
  }

  /** Chooses what fits, and nothing else. */
  pick(pattern) {
    const fits = matcher(pattern.trim());
    this.chosen = new Set(this.all().filter(fits).map((card) => card.key));
    this.noteChange();
  }

  tick(card, isChosen = !this.chosen.has(card.key)) {
    if (isChosen && this.all().includes(card)) this.chosen.add(card.key);
    else this.chosen.delete(card.key);
    this.isOpen = true;
    this.noteChange();
  }

  noteChange() {
    this.changedAt = Date.now();
    for (const card of this.picked()) this.decider.preview(card);
    this.changed();
  }

  /** What was decided meanwhile is not chosen any more. */
  draw() {
    const all = this.all();
    const may = this.app.may("decide");
    this.toggle.hidden = !may || (all.length < 2 && !this.isOpen);
    this.toggle.setAttribute("aria-expanded", String(this.isOpen));
    const isThere = this.isOpen && may;
    if (this.element.hidden === isThere) fill(this.element, isThere && this.parts);
    this.element.hidden = !isThere;
    const keys = new Set(all.map((card) => card.key));
    for (const key of this.chosen) if (!keys.has(key)) this.chosen.delete(key);
    const picked = this.picked();
    setText(this.sum, `${picked.length} of ${all.length}`);
    const look = picked.map((card) => `${card.key} ${subject(card)}`).join("\n");
    if (look !== this.look) fill(this.list, picked.map(rowOf));
    this.look = look;
    this.list.hidden = !picked.length;
    for (const el of this.acts) el.disabled = !picked.length;
    // An access alone is allowed for the session.
    this.acts[1].hidden = picked.some((card) => card.kind !== "access");
  }

  typed(event) {
    if (event.key === "Escape") (this.close(), event.preventDefault());
    if (event.key === "Enter" && this.picked().length) (this.acts.at(-1).focus(), event.preventDefault());
  }

  /** A key of the inbox, while several are chosen: true if it was for them. */
  key(key) {
    if (key === "v") return (this.isOpen ? this.close() : this.open(), true);
    if (!this.isOpen) return false;
    if (key === "Escape") return (this.close(), true);
    if (!this.chosen.size || !"asd".includes(key)) return false;
    if (key !== "s" || !this.acts[1].hidden) this.decide(key === "d" ? "deny" : "allow", key === "s" ? "session" : "");
    return true;
  }

  /** Decides each of them, and says what became of those that were not. */
  async decide(decision, scope = "") {
    const picked = this.picked();
    if (!picked.length || this.isBusy) return;
    if (Date.now() - this.changedAt < UNREAD_MS) return notice("what is chosen has just changed: look again", true);
    this.isBusy = true;
    const failed = [];
    try {
      for (const card of picked) {
        const why = this.refusal(card, decision) || (await this.decider.decideOne(card, decision, scope ? { scope } : {}));
        card.trouble = why;
        card.version += 1;
        if (why) failed.push(card);
      }
    } finally {
      this.isBusy = false;
    }
    const done = picked.length - failed.length;
    const word = decision === "deny" ? "denied" : scope ? "allowed for the session" : "allowed";
    const rest = failed.length ? `; ${counted(failed.length, "card")} not: ${failed.map((card) => line(card.line.id)).join(", ")}` : "";
    notice(`${done} ${word} by you${rest}`, failed.length > 0);
    this.chosen = new Set(failed.filter((card) => card.status === "waits").map((card) => card.key));
    if (this.chosen.size) this.noteChange();
    else this.close();
  }

  /** Why a card is not decided with the others. */
  refusal(card, decision) {
    if (card.status !== "waits") return "";
    if (decision === "deny") return "";
    if (card.line.denied_by) return "this is denied: it is allowed alone, in spite of that";
    return this.decider.isShown(card) ? "" : "what it would do is not shown yet: look at it first";
  }
}

function rowOf(card) {
  const { line: it } = card;
  return h("li", null, `${line(ofAgent(it))} ${card.kind === "conflict" ? "write" : line(it.action)} `, h("code", { class: "path" }, line(it.path)));
}

/** Whether a card fits a pattern: of its path, with `*`, `**` and `?` as in zones; else a part of it, or its agent. */
function matcher(pattern) {
  if (!pattern) return () => false;
  const wild = pattern.match(/\*+|\?/g)?.length ?? 0;
  if (!wild) return ({ line: it }) => ofAgent(it) === pattern || String(it.path).includes(pattern);
  if (wild > MOST_WILD) return () => false;
  const source = pattern.replace(/\*\*\/?|\*|\?|[^*?]+/g, (part) => {
    if (part === "**/") return "(?:.*/)?";
    if (part === "**") return ".*";
    if (part === "*") return "[^/]*";
    if (part === "?") return "[^/]";
    return part.replace(/[.+^${}()|[\]\\]/g, "\\$&");
  });
  const whole = new RegExp(`^${source}$`, "u");
  return ({ line: it }) => whole.test(String(it.path));
}
