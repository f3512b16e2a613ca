// Owns the panel of one agent: what it can be told, and its transcript.

import { button, fill, h, setText } from "../dom.js";
import { Menu, failed, notice, sure } from "../dialog.js";
import { bytes, counted, cut, line } from "../format.js";
import { icon, iconButton } from "../icons.js";
import { agentName } from "../marks.js";
import { isRunning } from "../state.js";
import { changesAt } from "../turns.js";
import { stateOf } from "./cards.js";
import { Composer } from "./composer.js";
import { again, earlier, renew } from "./earlier.js";
import { inFlight, partsOf, spentOf } from "./figures.js";
import { Options, sessionOf } from "./options.js";
import { Past } from "./past.js";
import { Queue } from "./queue.js";
import { TranscriptView } from "./transcript-view.js";

/** Options whose value is among the details. */
const MOST_CHOSEN = 6;

export class AgentPanel {
  constructor(app, back) {
    this.app = app;
    this.agent = "";
    this.title = h("h2", { tabindex: "-1", class: "row" });
    this.cancel = button("Cancel turn", () => this.act("cancel"));
    this.waits = h("a", { class: "button waits-here", href: "#inbox", hidden: true });
    this.changes = h("a", { class: "button" }, icon("review"), "Changes");
    const act = (name, text, method) => button([icon(name), text], () => this.act(method));
    this.start = act("play", "Start", "start_agent");
    this.stop = act("stop", "Stop …", "stop_agent");
    this.restart = act("again", "Restart …", "restart_agent");
    this.details = h("dl", { class: "facts" });
    this.menu = new Menu("More of this agent", [this.start, this.stop, this.restart], this.details);
    this.status = h("p", { class: "status" });
    /** Prompts of this page that were not answered yet. */
    this.sent = new Set();
    this.options = new Options(app);
    this.composer = new Composer(app, (...prompt) => this.send(...prompt), this.options.element);
    this.queue = new Queue(app, {
      edited: (agent, before, text) => this.edited(agent, before, text),
      lost: (agent, text) => this.composer.putBack(agent, text, []),
    });
    this.transcript = new TranscriptView({ app, earlier: () => this.earlier(), again: () => this.again() });
    const backButton = iconButton("back", "Back to the agents", back, { class: "back quiet icon-only" });
    this.element = h(
      "section",
      { class: "panel agent-panel", hidden: true, "aria-label": "Agent" },
      h("div", { class: "row head" }, backButton, this.title, this.waits, this.cancel, this.changes, this.menu.element),
      this.status,
      this.transcript.element,
      this.queue.element,
      this.composer.element,
    );
    this.scoped();
  }

  scoped() {
    this.composer.element.hidden = !this.app.may("prompt");
    this.cancel.hidden = !this.app.may("prompt");
    this.update();
  }

  show(agent) {
    if (agent === this.agent) return;
    // The journal has it: it is kept for the agent that is shown.
    if (this.agent) this.said().past = new Past();
    this.agent = agent;
    this.queue.show(agent);
    this.composer.show(agent);
    this.options.show(agent);
    this.menu.close();
    if (!agent) return this.transcript.show(null);
    this.transcript.show(this.said());
    fill(this.title, agentName(agent));
    this.update();
  }

  update() {
    const agent = this.app.state.agents.get(this.agent);
    if (!agent) {
      setText(this.status, this.agent ? "The team has no such agent now." : "");
      this.status.hidden = !this.agent;
      return;
    }
    this.begin();
    this.composer.update();
    if (this.app.wire.isLive) {
      this.queue.update(agent);
      if (this.app.may("prompt")) this.options.update(agent);
    }
    const queued = agent.sessions?.reduce((sum, it) => sum + it.queued, 0) ?? 0;
    const look = JSON.stringify([agent, queued, this.app.state.budgets.get(this.agent), this.app.state.waits(this.agent), [...this.app.rights]]);
    if (this.look === look) return;
    this.look = look;
    fill(this.title, agentName(this.agent), stateOf(agent));
    const budget = this.app.state.budgets.get(this.agent);
    const words = [
      agent.reason && cut(line(agent.reason), 500),
      queued && `${counted(queued, "prompt")} queued`,
      budget?.reason && cut(line(budget.reason), 300),
    ].filter(Boolean);
    setText(this.status, words.join(" · "));
    this.status.hidden = !words.length;
    this.changes.href = `#review/changes/${encodeURIComponent(this.agent)}`;
    const waits = this.app.state.waits(this.agent);
    this.waits.hidden = !waits;
    setText(this.waits, waits === 1 ? "1 waits" : `${waits} wait`);
    this.cancel.setAttribute("aria-disabled", String(!isRunning(agent) && !queued));
    const may = this.app.may("control");
    this.start.hidden = !may || !["stopped", "error"].includes(agent.state);
    this.stop.hidden = !may || agent.state === "stopped";
    this.restart.hidden = !may;
    this.drawDetails(agent, budget);
  }

  drawDetails(agent, budget) {
    const facts = [];
    const add = (name, value) => value && facts.push(h("dt", null, name), h("dd", null, value));
    add("program", [agent.name, agent.version].filter(Boolean).map(line).join(" "));
    for (const [option, value] of Object.entries(sessionOf(agent)?.chosen ?? {}).slice(0, MOST_CHOSEN))
      add(cut(line(option), 40), cut(line(value), 80));
    add("sessions", agent.sessions?.length ? String(agent.sessions.length) : "");
    add("restarts", agent.restarts ? String(agent.restarts) : "");
    add("tokens", spentOf(agent));
    for (const part of budget ? partsOf(budget) : []) add(part.name, part.text);
    add("memory", agent.memory_bytes ? bytes(agent.memory_bytes) : "");
    add("zone", agent.zone && (agent.zone === "kernel" ? "held by the kernel" : "held by the protocol alone"));
    add("not held", agent.zone_missing?.length ? agent.zone_missing.map(line).join(", ") : "");
    add("provider", agent.provider ? cut(line(agent.provider), 80) : "");
    add("calls that run", inFlight(agent.calls_in_flight));
    add("process", agent.pid ? String(agent.pid) : "");
    fill(this.details, facts);
  }

  /** Shows what the turn changed that ended last. */
  lastTurn() {
    const turn = this.said()
      .all()
      .findLast((block) => block.place);
    if (turn) location.hash = changesAt(turn.place.agent, turn.place.session, turn.place.turn).slice(1);
    else notice(`${this.agent}: no turn has ended`);
  }

  /** The transcript of the agent that is shown. */
  said() {
    return this.app.state.said.of(this.agent);
  }

  drawTranscript() {
    if (this.agent) this.transcript.draw(this.said());
  }

  heard(cause) {
    if (!cause || cause.agent_id === this.agent) this.transcript.isDirty = true;
  }

  /** Fills the transcript from the journal, once for each connection. */
  begin() {
    const transcript = this.said();
    const { edge } = this.app.state.said;
    if (!this.app.wire.isLive || edge === undefined) return;
    // A reader who looks further up keeps what is there, with a mark where the hole is.
    if (transcript.missedAt && edge !== null && this.transcript.following) this.renew(transcript, edge);
    else if (transcript.past.state === "") this.earlier();
  }

  /** Replaces a transcript with a hole by what the journal has. */
  renew(transcript, edge) {
    const agent = this.agent;
    const from = transcript.missedAt;
    transcript.missedAt = 0;
    renew(this.app, agent, transcript, from, edge).then(
      () => agent === this.agent && this.transcript.redraw(transcript),
      () => {},
    );
  }

  async earlier() {
    const agent = this.agent;
    const transcript = this.said();
    const reading = earlier(this.app, agent, transcript);
    this.transcript.redraw(transcript);
    await reading;
    if (agent === this.agent) this.transcript.redraw(transcript);
  }

  /** Reads the transcript anew, to its end. */
  async again() {
    const agent = this.agent;
    const transcript = this.said();
    await again(this.app, agent, transcript).catch(failed("journal"));
    if (agent === this.agent) this.transcript.follow();
  }

  async act(method) {
    const agent = this.agent;
    const word = method.replace("_agent", "");
    if (
      !(await sure(
        `${word[0].toUpperCase()}${word.slice(1)} ${agent}${word === "cancel" ? "'s turn, and its queued prompts" : ""}?`,
        word === "cancel" ? "Cancel the turn" : word,
      ))
    )
      return;
    this.app
      .call(method, { agent_id: agent })
      .then(() => notice(`${agent}: ${word} was done`), failed(`${word} ${agent}`));
  }

  send(blocks, text, pictures) {
    const agent = this.agent;
    const { wire } = this.app;
    const sentAt = Date.now();
    const sent = { agent, text };
    this.sent.add(sent);
    this.transcript.follow();
    // It stands in the transcript once its turn begins. Until then it may have to wait, and is in the list.
    this.app.lists.wantAgents();
    this.app
      .call("prompt", { agent_id: agent, blocks }, 0)
      .catch((error) => {
        notice(`prompt ${agent}: ${error.message}`, true);
        // What was refused is not lost, and neither is what went into a connection that was dead by then.
        if (error.code || wire.heardAt < sentAt) this.composer.putBack(agent, sent.text, pictures);
      })
      .finally(() => this.sent.delete(sent));
  }

  /** A prompt that waits has another text now: that is put back if it is not taken. */
  edited(agent, before, text) {
    const sent = [...this.sent].find((it) => it.agent === agent && it.text === before);
    if (sent) sent.text = text;
  }

  key(key) {
    if (this.transcript.key(key)) return true;
    if (key === "G") return (this.transcript.follow(), true);
    if (key === "Enter") return (this.transcript.element.querySelector(".scroll").focus(), true);
    if (key === "l") return (this.lastTurn(), true);
    if (key === "p") return this.app.may("prompt") && (this.composer.focus(), true);
    const method = { c: "cancel", S: "start_agent", x: "stop_agent", R: "restart_agent" }[key];
    if (!method || !this.app.may(method === "cancel" ? "prompt" : "control")) return false;
    this.act(method);
    return true;
  }
}
