// Owns the cards of the agents: who, what for, the step now, what it has changed, and whether it needs somebody.

import { fill, h, keyed, setText } from "../dom.js";
import { cut, line, lookup, plain } from "../format.js";
import { icon } from "../icons.js";
import { agentName, placeOf } from "../marks.js";
import { isRunning, isStalled } from "../state.js";
import { KINDS } from "../turns.js";
import { changedBy, stepOf } from "./activity.js";
import { budgetBar, costOf } from "./figures.js";
import { outcomeTag } from "./stream.js";

/** Agents that are listed. */
const MOST_SHOWN = 500;
/** Characters of a task and a step. */
const LONGEST_TASK = 240;
const LONGEST_STEP = 90;

export const TONES = lookup({
  error: "bad",
  failed: "bad",
  lost: "bad",
  denied: "bad",
  stalled: "bad",
  ready: "good",
  working: "busy",
  done: "good",
  allowed: "good",
  answered: "good",
  end_turn: "good",
  pending: "wait",
  needs_approval: "wait",
  restarting: "wait",
  connecting: "wait",
  initializing: "wait",
});

export class AgentCards {
  constructor(app) {
    this.app = app;
    this.element = h("ul", { class: "agents", "aria-label": "Agents" });
  }

  /** Draws the cards; `shown` is the agent that is looked at. */
  draw(shown) {
    keyed(
      this.element,
      this.app.state.sorted().slice(0, MOST_SHOWN),
      (agent) => agent.agent_id,
      (agent) => h("li", null, h("a", { href: `#team/${encodeURIComponent(agent.agent_id)}` })),
      (el, agent) => this.fill(el, agent, shown),
    );
  }

  fill(el, agent, shown) {
    const { state } = this.app;
    const id = agent.agent_id;
    const turn = state.activity.of(id);
    const waits = state.waits(id);
    const budget = state.budgets.get(id);
    const session = fullest(agent);
    const changed = turn && changedBy(turn);
    const link = el.firstElementChild;
    if (id === shown) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
    const look = JSON.stringify([
      turn?.key,
      turn?.task,
      turn?.endedAt,
      turn?.outcome,
      turn && !turn.endedAt && stepOf(turn),
      changed,
      agent.state,
      agent.reason,
      isRunning(agent),
      waits,
      budget,
      session,
      costOf(agent),
      state.branches.get(id),
      placeOf(id),
    ]);
    // Nothing is built anew for what looks the same.
    if (el.look === look) return;
    el.look = look;
    el.turn = turn;
    el.classList.toggle("needs-you", waits > 0);
    fill(
      link,
      h(
        "span",
        { class: "row" },
        agentName(id),
        isAtRest(agent) && turn?.endedAt ? outcomeTag(turn) : stateOf(agent),
        h("span", { class: "grow" }),
        waits > 0 && h("span", { class: "tag pending" }, icon("wait"), `${waits} ${waits === 1 ? "waits" : "wait"}`),
      ),
      agent.reason && h("span", { class: "why" }, cut(line(agent.reason), 200)),
      h("span", { class: turn?.task ? "task" : "task dim" }, turn?.task ? cut(plain(turn.task).trim(), LONGEST_TASK) : "No task yet"),
      turn && stepLine(agent, turn, waits),
      h(
        "span",
        { class: "figures" },
        changed?.files > 0 && [
          h("span", { class: "plus" }, `+${changed.added}`),
          h("span", { class: "minus" }, `−${changed.removed}`),
          h("span", null, `${changed.files} ${changed.files === 1 ? "file" : "files"}`),
        ],
        costOf(agent) !== "–" && h("span", null, costOf(agent)),
        state.branches.get(id) && h("span", { class: "branch clip" }, icon("branch"), line(state.branches.get(id))),
        budget && budgetBar(budget),
        h("span", { class: "grow" }),
        contextBar(session),
      ),
    );
  }

  /** How long steps have taken; nothing else is drawn. */
  tick(now) {
    for (const el of this.element.querySelectorAll("[data-since]"))
      setText(el, stopwatch(now - Number(el.dataset.since)));
  }
}

/** Whether an agent is ready, and nothing runs. */
function isAtRest(agent) {
  return agent.state === "ready" && !isRunning(agent) && !isStalled(agent);
}

/** The step that an agent is in. */
function stepLine(agent, turn, waits) {
  if (turn.endedAt || !isRunning(agent)) return null;
  if (waits) return h("span", { class: "step tone-wait" }, icon("wait"), h("span", { class: "clip" }, "waits for a decision"));
  const { kind, text, at } = stepOf(turn);
  return h(
    "span",
    { class: "step" },
    icon(KINDS[kind]?.[0] ?? "more"),
    h("span", { class: "clip" }, cut(line(text), LONGEST_STEP)),
    h("span", { class: "dim", data: { since: at } }, stopwatch(Date.now() - at)),
  );
}

/** 42 s as 0:42. */
function stopwatch(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  const hours = Math.floor(s / 3600);
  const rest = `${Math.floor((s % 3600) / 60)}:${String(s % 60).padStart(2, "0")}`;
  return hours ? `${hours}:${rest.padStart(5, "0")}` : rest;
}


/** How full the context is, as a thin bar. */
function contextBar(session) {
  if (!session?.used || !session.size) return null;
  const percent = Math.min(100, Math.round((100 * session.used) / session.size));
  return h("meter", {
    class: "context",
    min: 0,
    max: 100,
    high: 80,
    optimum: 0,
    value: percent,
    title: `context: ${percent} % full`,
    "aria-label": "context",
  });
}

/** The session whose context is fullest. */
export function fullest(agent) {
  return (agent.sessions ?? []).reduce((best, it) => ((it.used ?? 0) > (best?.used ?? -1) ? it : best), null);
}

export function stateOf(agent) {
  const word = isRunning(agent) && agent.state === "ready" ? "working" : line(agent.state);
  return h("span", { class: `tag tone-${isStalled(agent) ? "bad" : word === "ready" ? "none" : (TONES[word] ?? "none")}` }, word);
}
