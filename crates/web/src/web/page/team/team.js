// Owns the view of the team: its agents, those that need a person first, and beside them one agent
// or the log.

import { failed } from "../dialog.js";
import { button, fill, h, keyed, setText } from "../dom.js";
import { bytes, clock, count, counted, cut, line, lookup } from "../format.js";
import { moved } from "../keys.js";
import { agentName, colorOf, markOf } from "../marks.js";
import { isRunning, isStalled } from "../state.js";
import { AgentPanel } from "./agent.js";
import { budgetBar, costOf, spentOf } from "./figures.js";

/** Agents that are listed. */
const MOST_SHOWN = 500;
/** Agents and log are drawn at most this often. */
const LISTS_EVERY_MS = 150;
/** What agents and log show. */
const SHOWN = new Set(["agents", "waiting", "budgets", "log", "order"]);
/** Entries of the log that are shown. */
const MOST_ENTRIES = 200;

export class TeamView {
  constructor(app) {
    this.app = app;
    this.agent = "";
    this.stale = new Set();
    this.drawnAt = 0;
    this.timer = 0;
    this.element = document.getElementById("team");
    this.sum = h("p", { class: "sum" });
    this.list = h("ul", { class: "agents", "aria-label": "Agents" });
    this.panel = new AgentPanel(app, () => (location.hash = "team"));
    this.logList = h("ol", { class: "log", tabindex: "0", "aria-label": "What happened, the last first" });
    this.logShown = MOST_ENTRIES;
    this.back = button("Earlier", () => this.earlier());
    this.all = h("input", { type: "checkbox", on: { change: () => this.drawLog() } });
    const all = h("label", { class: "check" }, this.all, "also refusals in passing");
    const head = h("div", { class: "row" }, h("h2", null, "Log"), h("span", { class: "grow" }), all);
    this.log = h("section", { class: "panel", "aria-label": "Log" }, head, this.logList, this.back);
    fill(this.element, h("div", { class: "side" }, this.sum, this.list), this.log, this.panel.element);
  }

  show([agent]) {
    this.agent = agent ?? "";
    this.element.classList.toggle("has-agent", Boolean(this.agent));
    this.panel.show(this.agent);
    this.log.hidden = Boolean(this.agent);
    this.panel.element.hidden = !this.agent;
    for (const topic of SHOWN) this.stale.add(topic);
    this.drawLists();
  }

  scoped() {
    this.panel.scoped();
  }

  update(dirty) {
    if (dirty.has("said") || dirty.has("agents")) this.panel.drawTranscript();
    for (const topic of dirty) this.stale.add(topic);
    if (this.timer || ![...this.stale].some((topic) => SHOWN.has(topic))) return;
    const wait = Math.max(0, this.drawnAt + LISTS_EVERY_MS - performance.now());
    if (!wait) return this.drawLists();
    this.timer = setTimeout(() => {
      this.timer = 0;
      if (!this.element.hidden) this.drawLists();
    }, wait);
  }

  /** Agents and log, a few times a second: more often nobody can read them. */
  drawLists() {
    const dirty = this.stale;
    this.stale = new Set();
    this.drawnAt = performance.now();
    if (["agents", "waiting", "budgets"].some((topic) => dirty.has(topic))) {
      this.drawAgents();
      this.panel.update();
    }
    if (dirty.has("order")) fill(this.logList);
    if (!this.agent && (dirty.has("log") || dirty.has("order"))) this.drawLog();
  }

  /** Hears of what an agent said, also while it is not shown. */
  heard(topic, cause) {
    if (topic === "said") this.panel.heard(cause);
  }

  drawAgents() {
    const { state } = this.app;
    const agents = state.sorted();
    setText(this.sum, sumOf(state, agents));
    keyed(
      this.list,
      agents.slice(0, MOST_SHOWN),
      (agent) => agent.agent_id,
      (agent) => this.row(agent.agent_id),
      (el, agent) => this.fillRow(el, agent),
    );
  }

  row(id) {
    return h("li", null, h("a", { href: `#team/${encodeURIComponent(id)}` }));
  }

  fillRow(el, agent) {
    const { state } = this.app;
    const id = agent.agent_id;
    const waits = state.waits(id);
    const budget = state.budgets.get(id);
    const session = fullest(agent);
    const text = JSON.stringify([
      turnOf(state, agent),
      agent.state,
      agent.reason,
      isRunning(agent),
      waits,
      budget,
      agent.memory_bytes,
      session,
      agent.zone,
      markOf(id),
      colorOf(id),
    ]);
    const link = el.firstElementChild;
    if (id === this.agent) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
    // Nothing is built anew for what looks the same.
    if (el.shownText === text) return;
    el.shownText = text;
    fill(
      link,
      h(
        "span",
        { class: "head" },
        agentName(id),
        stateOf(agent),
        waits > 0 && h("span", { class: "tag pending" }, `${waits} ${waits === 1 ? "waits" : "wait"}`),
      ),
      agent.reason && h("span", { class: "why" }, cut(line(agent.reason), 200)),
      h(
        "span",
        { class: "figures" },
        figure("turn", turnOf(state, agent)),
        figure(
          "context",
          session?.used ? `${count(session.used)}${session.size ? ` / ${count(session.size)}` : ""}` : "–",
        ),
        figure("spent", spentOf(agent)),
        figure("cost", costOf(agent)),
        figure("memory", bytes(agent.memory_bytes ?? NaN)),
        figure(
          "zone",
          line(agent.zone ?? "–"),
          agent.zone_missing?.length ? `not enforced: ${agent.zone_missing.join(", ")}` : null,
        ),
        budget && budgetBar(budget),
      ),
    );
  }

  /** Shows more of what happened before, and asks for it where it is not here. */
  async earlier() {
    const { log } = this.app.state;
    this.logShown += MOST_ENTRIES;
    if (this.logShown > log.entries.length)
      await log.earlier((method, params) => this.app.call(method, params)).catch(failed("earlier entries"));
    this.app.state.changed("log");
  }

  drawLog() {
    const { log } = this.app.state;
    this.back.hidden = !log.before && log.entries.length <= this.logShown;
    keyed(
      this.logList,
      log.shown(this.logShown, this.all.checked),
      (entry) => String(entry.n),
      (entry) =>
        h(
          "li",
          { class: `tone-${tone(entry.state)}` },
          h("time", null, clock(entry.at)),
          entry.agent ? agentName(entry.agent) : h("span", { class: "agent" }, "team"),
          h("span", { class: "text" }, entry.text),
        ),
    );
  }

  key(key) {
    if (key === "j" || key === "k") {
      const next = moved(
        this.app.state.sorted(),
        (it) => it.agent_id === this.agent,
        this.agent ? (key === "j" ? 1 : -1) : 0,
      );
      if (next) location.hash = `team/${encodeURIComponent(next.agent_id)}`;
      return true;
    }
    if (!this.agent) return false;
    if (key === "Escape") return ((location.hash = "team"), true);
    return this.panel.key(key);
  }
}

/** The number of the turn that runs, or ran last. */
function turnOf(state, agent) {
  const ended = state.turns.get(agent.agent_id);
  const touched = state.heat.turns.get(agent.agent_id);
  const running = isRunning(agent) && ended !== undefined ? ended + 1 : undefined;
  const last = Math.max(running ?? -1, ended ?? -1, touched ?? -1);
  return last < 0 ? "–" : String(last);
}

/** A figure with its name; one that is not known takes no room. */
function figure(name, value, title) {
  if (value === "–") return null;
  return h("span", { class: "figure", title }, h("span", { class: "dim" }, name), " ", value);
}

/** The session whose context is fullest. */
export function fullest(agent) {
  return (agent.sessions ?? []).reduce((best, it) => ((it.used ?? 0) > (best?.used ?? -1) ? it : best), null);
}

export function stateOf(agent) {
  const word = isRunning(agent) && agent.state === "ready" ? "working" : line(agent.state);
  return h("span", { class: `tag tone-${isStalled(agent) ? "bad" : tone(word)}` }, word);
}

const TONES = lookup({
  error: "bad",
  failed: "bad",
  lost: "bad",
  denied: "bad",
  stalled: "bad",
  ready: "good",
  done: "good",
  allowed: "good",
  answered: "good",
  end_turn: "good",
  working: "busy",
  running: "busy",
  pending: "wait",
  needs_approval: "wait",
  restarting: "wait",
  connecting: "wait",
  initializing: "wait",
});

/** The tone of a state, for its colour. */
export function tone(word) {
  return TONES[word] ?? "none";
}

function sumOf(state, agents) {
  const works = agents.filter(isRunning).length;
  const team = state.budgets.get("");
  const parts = [counted(agents.length, "agent"), `${works} working`];
  if (team?.tokens?.used)
    parts.push(
      `${count(team.tokens.used)}${team.tokens.limit ? ` of ${count(team.tokens.limit)}` : ""} tokens`,
    );
  return parts.join(" · ");
}
