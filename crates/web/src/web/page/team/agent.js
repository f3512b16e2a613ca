// Owns the panel of one agent: what it can be told, and its transcript.

import { button, fill, h, setText } from "../dom.js";
import { failed, notice, sure } from "../dialog.js";
import { counted, cut, line } from "../format.js";
import { agentName } from "../marks.js";
import { isRunning } from "../state.js";
import { changesOf } from "./block-view.js";
import { again, earlier, renew } from "./earlier.js";
import { partsOf } from "./figures.js";
import { stateOf } from "./team.js";
import { Past } from "./past.js";
import { TranscriptView } from "./transcript-view.js";

/** Characters of a prompt. */
const LONGEST_PROMPT = 256 * 1024;

export class AgentPanel {
  constructor(app, back) {
    this.app = app;
    this.agent = "";
    this.title = h("h2", { tabindex: "-1" });
    this.actions = h("div", { class: "row wrap actions" });
    this.status = h("p", { class: "status" });
    this.text = h("textarea", {
      rows: 2,
      placeholder: "Prompt this agent …",
      "aria-label": "Prompt",
      maxlength: LONGEST_PROMPT,
      on: { keydown: (event) => this.typed(event) },
    });
    this.form = h(
      "div",
      { class: "prompt" },
      this.text,
      button("Send", () => this.send(), { title: "Ctrl+Enter" }),
    );
    this.transcript = new TranscriptView({ earlier: () => this.earlier(), again: () => this.again() });
    this.drafts = new Map();
    const head = h(
      "div",
      { class: "row wrap" },
      button("←", back, { class: "back", "aria-label": "Back to the agents" }),
      this.title,
      this.actions,
    );
    this.element = h(
      "section",
      { class: "panel agent-panel", hidden: true, "aria-label": "Agent" },
      head,
      this.status,
      this.transcript.element,
      this.form,
    );
    this.scoped();
  }

  scoped() {
    this.form.hidden = !this.app.may("prompt");
    fill(
      this.actions,
      this.app.may("prompt") &&
        button("Cancel turn", () => this.act("cancel"), { data: { act: "cancel" } }),
      this.app.may("control") && [
        button("Start", () => this.act("start_agent"), { data: { act: "start" } }),
        button("Stop", () => this.act("stop_agent"), { data: { act: "stop" } }),
        button("Restart", () => this.act("restart_agent"), { data: { act: "restart" } }),
      ],
      h("a", { class: "button", data: { act: "changes" } }, "Changes"),
      h("a", { class: "button waits-here", href: "#inbox", hidden: true, data: { act: "decide" } }),
    );
    this.update();
  }

  show(agent) {
    if (agent === this.agent) return;
    if (this.agent) {
      this.keepDraft();
      // The journal has it: it is kept for the agent that is shown.
      this.said().past = new Past();
    }
    this.agent = agent;
    if (!agent) return this.transcript.show(null);
    this.text.value = this.drafts.get(agent) ?? "";
    this.transcript.show(this.said());
    fill(this.title, agentName(agent));
    this.update();
  }

  keepDraft() {
    this.drafts.delete(this.agent);
    if (this.text.value) this.drafts.set(this.agent, this.text.value);
    // Texts that were begun for the last 50 agents.
    if (this.drafts.size > 50) this.drafts.delete(this.drafts.keys().next().value);
  }

  update() {
    const agent = this.app.state.agents.get(this.agent);
    if (!agent) {
      setText(this.status, this.agent ? "The team has no such agent now." : "");
      return;
    }
    this.begin();
    fill(this.title, agentName(this.agent), " ", stateOf(agent));
    const budget = this.app.state.budgets.get(this.agent);
    const queued = agent.sessions?.reduce((sum, it) => sum + it.queued, 0) ?? 0;
    const words = [
      agent.reason && cut(line(agent.reason), 500),
      [agent.name, agent.version].filter(Boolean).map(line).join(" "),
      agent.sessions?.length && counted(agent.sessions.length, "session"),
      queued && `${counted(queued, "prompt")} queued`,
      agent.restarts && counted(agent.restarts, "restart"),
      budget?.reason
        ? cut(line(budget.reason), 300)
        : budget &&
          partsOf(budget)
            .map((it) => `${it.name} ${it.text}`)
            .join(", "),
    ];
    setText(this.status, words.filter(Boolean).join(" · "));
    for (const el of this.actions.children) {
      const { act } = el.dataset;
      if (act === "changes") el.href = `#time/changes/${encodeURIComponent(this.agent)}`;
      if (act === "decide") this.showWaits(el);
      if (act === "cancel") el.disabled = !isRunning(agent) && !queued;
      if (act === "start") el.hidden = !["stopped", "error"].includes(agent.state);
      if (act === "stop") el.hidden = agent.state === "stopped";
    }
  }

  /** Shows what the turn changed that ended last. */
  lastTurn() {
    const turn = this.said()
      .all()
      .findLast((block) => block.place);
    if (turn) location.hash = changesOf(turn.place).slice(1);
    else notice(`${this.agent}: no turn has ended`);
  }

  /** What holds the agent up is decided in the inbox. */
  showWaits(link) {
    const waits = this.app.state.waits(this.agent);
    link.hidden = !waits;
    const text = waits === 1 ? "1 waits" : `${waits} wait`;
    setText(link, this.app.may("decide") ? `${text}: decide` : text);
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

  typed(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.send();
    }
  }

  send() {
    const text = this.text.value.trim();
    const agent = this.agent;
    if (!text) return;
    const { wire } = this.app;
    // It stays in its field until somebody can take it.
    if (!wire.isLive) return notice(`prompt ${agent}: not sent, there is no connection to the team`, true);
    const sentAt = Date.now();
    this.text.value = "";
    this.app.state.said.prompted(agent, text);
    this.app.changed("said", { agent_id: agent });
    this.transcript.follow();
    this.app.call("prompt", { agent_id: agent, text }, 0).catch((error) => {
      notice(`prompt ${agent}: ${error.message}`, true);
      // What was refused is not lost, and neither is what went into a connection that was dead by then.
      const isUnheard = error.code || wire.heardAt < sentAt;
      if (this.agent === agent && !this.text.value && isUnheard) this.text.value = text;
    });
  }

  key(key) {
    if (key === "G") return (this.transcript.follow(), true);
    if (key === "Enter") return (this.transcript.element.querySelector(".scroll").focus(), true);
    if (key === "l") return (this.lastTurn(), true);
    if (key === "p") return this.app.may("prompt") && (this.text.focus(), true);
    const method = { c: "cancel", S: "start_agent", x: "stop_agent", R: "restart_agent" }[key];
    if (!method || !this.app.may(method === "cancel" ? "prompt" : "control")) return false;
    this.act(method);
    return true;
  }
}
