// Owns the view of the team: its agents, those that need a person first, and beside them what all do, or one agent.

import { failed } from "../dialog.js";
import { age, button, fill, h, keyed, setText } from "../dom.js";
import { clock, count, counted } from "../format.js";
import { moved } from "../keys.js";
import { agentName } from "../marks.js";
import { isRunning } from "../state.js";
import { countsOf } from "../history/pages.js";
import { AgentPanel } from "./agent.js";
import { AgentCards, TONES } from "./cards.js";
import { Stream } from "./stream.js";

/** Cards, stream and log are drawn at most this often. */
const LISTS_EVERY_MS = 150;
/** What they show. */
const SHOWN = new Set(["agents", "waiting", "budgets", "graph", "log", "order", "said"]);
/** Entries of the log that are shown. */
const MOST_ENTRIES = 200;
/** Turns whose changes are asked for at a time, and how often those of one that runs are at most. */
const MOST_ASKED = 4;
const CHANGES_EVERY_MS = 10_000;

export class TeamView {
  constructor(app) {
    this.app = app;
    this.agent = "";
    this.isLog = false;
    this.stale = new Set();
    this.drawnAt = 0;
    this.timer = 0;
    this.asking = 0;
    this.element = document.getElementById("team");
    this.sum = h("p", { class: "sum" });
    this.cards = new AgentCards(app);
    this.panel = new AgentPanel(app, () => (location.hash = "team"));
    this.stream = new Stream(app);
    this.logList = h("ol", { class: "log", tabindex: "0", "aria-label": "What happened, the last first" });
    this.logShown = MOST_ENTRIES;
    this.back = button("Earlier", () => this.earlier());
    this.all = h("input", { type: "checkbox", on: { change: () => this.drawLog() } });
    const all = h("label", { class: "check" }, this.all, "also refusals in passing");
    const activity = h("a", { class: "small", href: "#team" }, "Activity");
    const head = h("div", { class: "row head" }, h("h2", null, "Log"), h("span", { class: "grow" }), all, activity);
    this.log = h("section", { class: "panel", "aria-label": "Log" }, head, this.logList, this.back);
    fill(
      this.element,
      h("div", { class: "side" }, this.sum, this.cards.element),
      this.stream.element,
      this.log,
      this.panel.element,
    );
    setInterval(() => this.tick(), 1000);
  }

  show([agent]) {
    this.isLog = agent === "log" && !this.app.state.agents.has("log");
    this.agent = this.isLog ? "" : (agent ?? "");
    this.element.classList.toggle("has-agent", Boolean(this.agent));
    this.panel.show(this.agent);
    this.log.hidden = !this.isLog;
    this.stream.element.hidden = this.isLog || Boolean(this.agent);
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
    if ([...this.stale].some((topic) => SHOWN.has(topic))) this.soon();
  }

  /** Draws the lists when it is time. */
  soon() {
    if (this.timer) return;
    const wait = Math.max(0, this.drawnAt + LISTS_EVERY_MS - performance.now());
    if (!wait) return this.drawLists();
    this.timer = setTimeout(() => {
      this.timer = 0;
      if (!this.element.hidden) this.drawLists();
    }, wait);
  }

  /** Cards and stream, a few times a second: more often nobody can read them. */
  drawLists() {
    const dirty = this.stale;
    this.stale = new Set();
    this.drawnAt = performance.now();
    if ([...dirty].some((topic) => topic !== "log")) {
      const { hasLists, activity } = this.app.state;
      // A stream that came first would say that nothing was done, and cards would push it down a phone.
      this.element.classList.toggle("is-beginning", !hasLists || !activity.isKnown);
      setText(this.sum, sumOf(this.app.state));
      this.cards.draw(this.agent);
      this.panel.update();
      const isWhole = this.stream.element.hidden || this.stream.draw();
      if (!isWhole) {
        this.stale.add("said");
        this.drawnAt = performance.now();
        this.soon();
      }
      this.askChanges();
    }
    if (dirty.has("order")) fill(this.logList);
    if (this.isLog && (dirty.has("log") || dirty.has("order"))) this.drawLog();
  }

  /** Hears of what an agent said, also while it is not shown; and of what was chosen, if only for a moment. */
  heard(topic, cause) {
    if (topic === "said") this.panel.heard(cause);
    if (cause?.type === "options") this.panel.options.key = "";
  }

  tick() {
    if (this.element.hidden || document.hidden) return;
    const now = Date.now();
    this.cards.tick(now);
    this.askChanges();
    if (!this.stream.element.hidden) age(this.stream.list, now);
  }

  /** Asks what turns have changed, those of the cards and of the stream's beginning: after calls of one that runs, and once it ended. */
  askChanges() {
    const { state, wire } = this.app;
    // Without a journal there is only what their tool calls say.
    if (!wire.isLive || !state.said.edge) return;
    const now = Date.now();
    // The patch comes with the counts: of a turn that runs they are asked for after its calls, if its card is looked at.
    const isDue = ({ agent, asked, endedAt, turn, done }) =>
      endedAt
        ? turn !== null && !asked?.isEnd
        : (!this.agent || this.agent === agent) && (asked?.done ?? 0) < done && !(now - asked?.at < CHANGES_EVERY_MS);
    const due = state.activity.list(30).filter(isDue);
    for (const turn of due.slice(0, MOST_ASKED - this.asking)) this.askChange(turn, now);
  }

  async askChange(turn, at) {
    this.asking += 1;
    const asked = { at, done: turn.done, isEnd: turn.endedAt > 0, place: turn.asked?.place };
    turn.asked = asked;
    const call = (method, params) => this.app.call(method, { agent_id: turn.agent, ...params });
    try {
      if (asked.isEnd) asked.place = { session_id: turn.session, turn: turn.turn };
      asked.place ??= await this.placeOf(turn, call);
      if (asked.place) {
        const { files, added, removed } = countsOf(await call("get_diff", asked.place));
        // What was asked later knows more. Nothing is drawn anew for the same numbers.
        if (turn.asked === asked) turn.changed = { files, added, removed };
      }
    } catch {
      // What its tool calls say stays.
    }
    this.asking -= 1;
    this.app.changed("agents");
  }

  /** The turn that runs, as the journal names it: no line says its number. */
  async placeOf(turn, call) {
    const { events } = await call("list_events", { types: ["message.user"], last: true, limit: 1 });
    const before = this.app.state.activity.turns.findLast((it) => it.agent === turn.agent && it !== turn);
    for (const { session_id, turn: number, timestamp } of events)
      if (Number.isFinite(number) && timestamp >= (before?.endedAt ?? 0)) return { session_id, turn: number };
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
          { class: `tone-${TONES[entry.state] ?? "none"}` },
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
    if (key === "Enter" && !this.agent) {
      const first = this.app.state.sorted()[0];
      if (first) location.hash = `team/${encodeURIComponent(first.agent_id)}`;
      return true;
    }
    if (!this.agent) return false;
    if (key === "Escape") return ((location.hash = "team"), true);
    return this.panel.key(key);
  }
}

function sumOf(state) {
  const agents = [...state.agents.values()];
  const works = agents.filter(isRunning).length;
  const team = state.budgets.get("");
  const parts = [counted(agents.length, "agent"), `${works} working`];
  if (team?.tokens?.used)
    parts.push(
      `${count(team.tokens.used)}${team.tokens.limit ? ` of ${count(team.tokens.limit)}` : ""} tokens`,
    );
  return parts.join(" · ");
}
