// Owns the stream of what the team does: one entry for each turn, the last first.

import { append, button, h, keyed, timeOf } from "../dom.js";
import { counted, cut, duration, line, lookup, plain } from "../format.js";
import { empty } from "../header.js";
import { icon } from "../icons.js";
import { grow } from "../markdown.js";
import { agentName } from "../marks.js";
import { KINDS, changesAt, figureHint, figureWords, outcomeOf } from "../turns.js";
import { changedBy, stepOf } from "./activity.js";

/** Turns that are shown at first, and that come with each further look. */
const PAGE = 30;
/** Characters of a task and a message that are shown. */
const LONGEST_TASK = 400;
const LONGEST_MESSAGE = 1_500;
/** Milliseconds of a draw in which messages grow. */
const GROW_MS = 6;

/** What became of an access. */
const STATUS = lookup({ observed: "not stopped", expired: "too late" });

/** What became of a turn, as a badge. */
export function outcomeTag(turn) {
  const [tone, , words] = outcomeOf(turn.endedAt ? turn.outcome : "running");
  return h("span", { class: `tag tone-${tone}` }, words);
}

/** What a turn took, or that this is not known. */
function tookOf({ took, endedAt }) {
  if (!endedAt || !took) return null;
  return h("span", { class: "dim small took", title: figureHint(took) || null }, figureWords(took) || "cost unknown");
}

export class Stream {
  constructor(app) {
    this.app = app;
    this.most = PAGE;
    this.list = h("ol", { class: "turns" });
    this.none = empty("message", "Nothing was done yet. Choose an agent, and tell it what to do.");
    this.more = button("Show earlier turns", () => ((this.most += PAGE), this.draw()), { class: "more", hidden: true });
    const scroll = h("div", { class: "scroll", tabindex: "0", "aria-label": "What the team does, the last first" }, this.none, this.list, this.more);
    const log = h("a", { class: "small", href: "#team/log" }, "Log");
    const head = h("div", { class: "row head" }, h("h2", null, "Activity"), h("span", { class: "grow" }), log);
    this.element = h("section", { class: "panel stream", "aria-label": "Activity" }, head, scroll);
  }

  /** Draws the turns; false if some messages are left for the next time. */
  draw() {
    const { activity } = this.app.state;
    const turns = activity.list(this.most);
    this.none.hidden = turns.length > 0;
    this.more.hidden = activity.turns.length <= this.most;
    keyed(
      this.list,
      turns,
      (turn) => String(turn.key),
      () => h("li", { class: "turn" }),
      (el, turn) => this.fill(el, turn),
    );
    const grown = [...this.list.children].filter((el) => el.shown !== el.message);
    const end = performance.now() + GROW_MS;
    // Those drawn longest ago are first.
    for (const el of grown.sort((a, b) => a.drawnAt - b.drawnAt)) {
      if (performance.now() > end) return false;
      this.drawMessage(el);
    }
    return true;
  }

  fill(el, turn) {
    const changed = changedBy(turn);
    const step = turn.endedAt ? null : stepOf(turn);
    const look = JSON.stringify([
      turn.task,
      turn.endedAt,
      turn.outcome,
      turn.why,
      turn.failed,
      [...turn.calls],
      [...turn.refused.values()],
      changed,
      step && [step.kind, step.text],
      [...this.app.rights],
    ]);
    el.message = turn.message;
    if (!el.said) {
      el.append((el.said = h("div", { class: "said md" })));
      this.drawMessage(el);
    }
    // The message grows by itself: what is pressed beside it stays.
    if (el.look === look) return;
    el.look = look;
    el.classList.toggle("is-running", !turn.endedAt);
    // A message that is moved would lose the reader's selection.
    for (const it of [...el.children]) if (it !== el.said) it.remove();
    el.said.before(
      h(
        "div",
        { class: "row" },
        h("a", { class: "who", href: `#team/${encodeURIComponent(turn.agent)}` }, agentName(turn.agent)),
        outcomeTag(turn),
        h("span", { class: "grow" }),
        tookOf(turn),
        turn.endedAt > 0 && h("span", { class: "dim small" }, duration(turn.endedAt - turn.beganAt)),
        timeOf(turn.beganAt, "dim small"),
      ),
      h("p", { class: "task", hidden: !turn.task }, cut(plain(turn.task).trim(), LONGEST_TASK)),
    );
    const why = turn.why && turn.outcome !== "end_turn" && h("p", { class: "tone-bad small" }, plain(turn.why));
    append(el, [sumOf(turn, changed), why, [...turn.refused.values()].map((it) => this.refused(it))]);
  }

  drawMessage(el) {
    el.shown = el.message;
    el.drawnAt = performance.now();
    el.said.hidden = !el.message;
    grow(el.said, cut(el.message, LONGEST_MESSAGE), this.app);
  }

  refused({ id, status, action, path }) {
    const waits = status === "pending";
    const isOpen = waits || status === "allowed" || status === "answered";
    return h(
      "p",
      { class: `refused ${waits ? "tone-wait" : isOpen ? "tone-good" : "tone-bad"}` },
      icon(waits ? "wait" : isOpen ? "check" : "cross"),
      h("span", { class: "grow" }, waits ? "wants to " : `${STATUS[status] ?? line(status)}: `, `${line(action)} `, h("code", { class: "path" }, line(path))),
      waits && h("a", { class: "button", href: `#inbox/${encodeURIComponent(id)}` }, this.app.may("decide") ? "Decide" : "Look"),
    );
  }
}

/** Tool calls by their kinds, and what was changed. */
function sumOf(turn, changed) {
  const sums = new Map();
  for (const [kind, sum] of turn.calls) {
    const [name, word] = KINDS[kind] ?? ["more", "other call"];
    const known = sums.get(word) ?? { name, sum: 0 };
    known.sum += sum;
    sums.set(word, known);
  }
  const waits = [...turn.refused.values()].some((it) => it.status === "pending");
  const step = turn.endedAt || waits ? null : stepOf(turn);
  const parts = [...sums].map(([word, { name, sum }]) =>
    h("span", { class: "call" }, icon(name), counted(sum, word)),
  );
  if (turn.failed) parts.push(h("span", { class: "call tone-bad" }, icon("cross"), `${turn.failed} failed`));
  if (changed.files)
    parts.push(
      h(
        "a",
        { class: "call", href: changesAt(turn.agent, turn.session, turn.turn) },
        `${counted(changed.files, "file")} `,
        h("span", { class: "plus" }, `+${changed.added}`),
        " ",
        h("span", { class: "minus" }, `−${changed.removed}`),
      ),
    );
  if (step && step.text !== "writes")
    parts.push(h("span", { class: "call tone-busy" }, icon(KINDS[step.kind]?.[0] ?? "more"), cut(line(step.text), 80)));
  return parts.length ? h("p", { class: "sums-line" }, parts) : null;
}
