// Owns what agents changed: the diff by agent and turn, and taking it back, with its preview first.

import { button, fill, h, keyed } from "../dom.js";
import { failed, notice } from "../dialog.js";
import { counted, line, plain, turnName } from "../format.js";
import { parsePatch } from "../diff.js";
import { diffView } from "../diff-view.js";
import { countsOf } from "../history/pages.js";
import { walk } from "../keys.js";

/** Turns that can be chosen, the last ones. */
const MOST_TURNS = 500;

export class Changes {
  constructor(app) {
    this.app = app;
    // The list beside it chooses.
    this.agent = h("select", { "aria-label": "Agent", hidden: true, on: { change: () => this.picked() } });
    this.turn = h("select", { "aria-label": "Turn", on: { change: () => this.load() } });
    this.undoButton = button("Undo …", () => this.preview("undo"));
    this.redoButton = button("Redo the last undo …", () => this.preview("redo"));
    this.status = h("p", { class: "hint", role: "status" });
    this.way = h("div", { class: "undo", hidden: true });
    this.diff = h("div");
    const controls = h(
      "div",
      { class: "row wrap controls" },
      this.agent,
      this.turn,
      button("Read again", () => this.load()),
      h("span", { class: "grow" }),
      this.undoButton,
      this.redoButton,
    );
    fill(
      (this.element = h("section", { class: "part", "aria-label": "Changes", hidden: true })),
      controls,
      this.status,
      this.way,
      this.diff,
    );
  }

  /** Shows all changes, those of an agent, or of one turn. */
  show([agent, session, turn]) {
    this.wanted = agent ?? this.agent.value;
    this.wantedTurn = turn === undefined ? "" : `${session}\n${turn}`;
    if (!this.agents()) this.choose();
  }

  /** Somebody picked an agent: what a link asked for is over. */
  picked() {
    this.wanted = "";
    this.wantedTurn = "";
    this.choose();
  }

  update(dirty) {
    if (dirty.has("agents")) this.agents();
    if (dirty.has("link") && this.app.wire.isLive && !this.diff.childElementCount) this.choose();
  }

  /** Lists the agents; true if one of them was asked for, and is shown now. */
  agents() {
    const may = this.app.may("control");
    this.undoButton.hidden = this.redoButton.hidden = !may;
    const names = ["", ...this.app.state.agents.keys()];
    keyed(
      this.agent,
      names,
      (name) => `a${name}`,
      (name) => h("option", { value: name }, name ? line(name) : "all agents"),
    );
    if (!this.wanted || !names.includes(this.wanted)) return false;
    this.agent.value = this.wanted;
    this.wanted = "";
    this.choose();
    return true;
  }

  get params() {
    const params = this.agent.value ? { agent_id: this.agent.value } : {};
    const [session, turn] = this.turn.value.split("\n");
    return this.turn.value ? { ...params, session_id: session, turn: Number(turn) } : params;
  }

  /** Reads which turns there are, and then their diff. */
  async choose() {
    const agent = this.agent.value;
    const wanted = this.wantedTurn;
    fill(
      this.turn,
      h("option", { value: "" }, "all turns"),
      wanted && agent && h("option", { value: wanted, selected: true }, turnName(Number(wanted.split("\n")[1]))),
    );
    this.turn.disabled = !agent;
    if (!this.app.wire.isLive) return;
    // An agent that a link asked for may not be known yet.
    if (!this.wanted) this.wantedTurn = "";
    this.load();
    if (!agent) return;
    const turns = new Map();
    const asked = { agent_id: agent, types: ["message.user"], last: true, limit: 2 * MOST_TURNS };
    const { events } = await this.app.call("list_events", asked).catch((error) => {
      failed("turns")(error);
      return { events: [] };
    });
    for (const event of events)
      if (Number.isFinite(event.turn)) turns.set(`${event.session_id}\n${event.turn}`, event);
    if (this.agent.value !== agent) return;
    const items = [...turns].slice(-MOST_TURNS).reverse();
    for (const [key, event] of items) {
      // The one that a link asked for is there already.
      const option = [...this.turn.options].find(({ value }) => value === key) ?? h("option", { value: key });
      option.textContent = `${turnName(event.turn)}: ${line(plain(event.payload?.text ?? "").split("\n")[0]).slice(0, 70)}`;
      this.turn.append(option);
    }
  }

  async load() {
    this.way.hidden = true;
    this.status.textContent = "Reading …";
    fill(this.diff);
    const round = (this.round = (this.round ?? 0) + 1);
    try {
      const answer = await this.app.call("get_diff", this.params);
      if (round !== this.round) return;
      const { files, isCut } = parsePatch(answer.diff ?? "");
      const { added, removed } = countsOf(answer);
      const outside = (answer.left_out ?? []).filter((it) => it.path.startsWith("/")).length;
      const leftOut = (answer.left_out?.length ?? 0) - outside + (answer.more_left_out ?? 0);
      const notes = [
        answer.files.length
          ? `${counted(answer.files.length, "file")}, +${added} −${removed}`
          : "Nothing was changed.",
        outside && `${counted(outside, "path")} outside the workspace`,
        leftOut && `${counted(leftOut, "change")} can't be shown as a diff`,
        answer.ignored && `${counted(answer.ignored, "file")} that git ignores`,
        answer.undone && `${counted(answer.undone, "change")} were undone`,
        answer.diff_bytes && "some of it is not text",
      ];
      this.status.textContent = notes.filter(Boolean).join(" · ");
      fill(this.diff, diffView(files, isCut, this.app));
    } catch (error) {
      if (round === this.round) this.status.textContent = error.message;
    }
  }

  key(key) {
    if (key === "j" || key === "k") return (walk(this.element.querySelectorAll(".hunk"), key === "j" ? 1 : -1), true);
    if (key !== "u" || this.undoButton.hidden) return false;
    this.preview("undo");
    return true;
  }

  undoParams(method) {
    if (method === "redo") return this.agent.value ? { agent_id: this.agent.value } : {};
    return this.params;
  }

  /** Shows what an undo would do; only then it can be done. */
  async preview(method, force = false) {
    if (method === "undo" && !this.agent.value) return notice("choose an agent first", true);
    const params = this.undoParams(method);
    try {
      const answer = await this.app.call(method, { ...params, dry_run: true, ...(force && { force }) });
      this.showPreview(method, params, answer, force);
    } catch (error) {
      failed(method)(error);
    }
  }

  showPreview(method, params, answer, force) {
    const { files, isCut } = parsePatch(answer.diff ?? "");
    const isNothing = !answer.paths?.length && !answer.obstacles?.length;
    const what = `${method === "undo" ? "Undo" : "Redo"} of ${line(answer.agent_id ?? params.agent_id ?? "the team")}${params.turn === undefined ? "" : `, ${turnName(params.turn)}`}`;
    const mayGo = !answer.refused && !isNothing && (force || !answer.obstacles?.length);
    const go = button(
      `${method === "undo" ? "Undo" : "Redo"} ${counted(answer.paths?.length ?? 0, "file")}`,
      () => this.doIt(method, params, force, go),
      { class: "danger" },
    );
    const back = button("Back", () => (this.way.hidden = true));
    fill(
      this.way,
      h("h2", null, `${what}: this is what it would change`),
      isNothing && h("p", null, "There is nothing to take back."),
      answer.refused && this.refused(answer, params),
      answer.obstacles?.length > 0 &&
        h(
          "div",
          { class: "warn" },
          h(
            "p",
            null,
            force
              ? "In these files, what others wrote since is lost where it can be forced:"
              : "These files are in the way, and nothing is touched without force:",
          ),
          h(
            "ul",
            null,
            answer.obstacles
              .slice(0, 100)
              .map((it) => h("li", null, h("code", null, line(it.path)), ` ${line(it.kind)}`)),
          ),
        ),
      answer.staying?.length > 0 &&
        h("p", { class: "dim" }, `These folders stay: ${answer.staying.slice(0, 20).map(line).join(", ")}`),
      (answer.of_git > 0 || answer.outside > 0) &&
        h(
          "p",
          { class: "dim" },
          `${answer.of_git} changes in .git and ${answer.outside} outside the workspace stay.`,
        ),
      files.length > 0 && diffView(files, isCut),
      h(
        "div",
        { class: "row end" },
        back,
        answer.obstacles?.length > 0 &&
          !force &&
          button("Look at it with force", () => this.preview(method, true)),
        mayGo && go,
      ),
    );
    this.way.hidden = false;
    back.focus();
    this.way.scrollIntoView({ block: "nearest" });
  }

  /** Why it would be refused; what runs can be ended where the agent is. */
  refused(answer, params) {
    const agent = answer.agent_id ?? params.agent_id;
    const href = agent && `#team/${encodeURIComponent(agent)}`;
    return h(
      "p",
      { class: "warn" },
      plain(answer.refused),
      href && [" ", h("a", { href }, `Show ${line(agent)}`)],
    );
  }

  async doIt(method, params, force, go) {
    go.disabled = true;
    try {
      const answer = await this.app.call(method, { ...params, ...(force && { force }) }, 120_000);
      notice(`${method}: ${counted(answer.paths?.length ?? 0, "file")} changed`);
      this.load();
    } catch (error) {
      failed(method)(error);
      go.disabled = false;
    }
  }
}
