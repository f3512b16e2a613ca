// Owns the list of what can be reviewed: the branches of tasks, and the agents.

import { fill, h, setText } from "../dom.js";
import { cut, line, lookup } from "../format.js";
import { icon } from "../icons.js";
import { agentName } from "../marks.js";

/** Branches and agents that are listed. */
const MOST_SHOWN = 200;
/** The branches are read again at most so often while something changes. */
const EVERY_MS = 5_000;

const STATES = lookup({
  working: ["working", "busy"],
  needs_you: ["needs you", "wait"],
  ready: ["ready", "good"],
  merged: ["merged", "none"],
  stale: ["behind", "wait"],
  cleaned: ["put away", "none"],
  missing: ["missing", "bad"],
  broken: ["broken", "bad"],
});

export class BranchList {
  /** @param {(branches: Object[]) => void} heard hears what each reading of the branches has */
  constructor(app, heard) {
    this.app = app;
    this.heard = heard;
    this.branches = [];
    this.readAt = 0;
    this.timer = 0;
    this.shown = { branch: "", agent: "" };
    this.note = h("p", { class: "hint" });
    this.branchList = h("ul", { class: "choices" });
    this.agentList = h("ul", { class: "choices" });
    this.element = h(
      "div",
      null,
      h("h2", null, "Branches"),
      this.branchList,
      this.note,
      h("h2", null, "Changes by agent"),
      this.agentList,
    );
  }

  select(branch, agent) {
    this.shown = { branch, agent };
  }

  show() {
    this.draw();
    this.read();
  }

  update(dirty) {
    if (dirty.has("agents")) this.drawAgents();
    if ((dirty.has("agents") || dirty.has("link")) && !this.timer) {
      const wait = Math.max(0, this.readAt + EVERY_MS - Date.now());
      this.timer = setTimeout(() => {
        this.timer = 0;
        if (!document.hidden && this.element.offsetParent !== null) this.read();
      }, wait);
    }
  }

  async read() {
    if (!this.app.wire.isLive) return this.draw();
    this.readAt = Date.now();
    try {
      this.branches = (await this.app.lists.wantBranches()).slice(0, MOST_SHOWN);
      this.heard(this.branches);
      setText(this.note, this.branches.length ? "" : "No task has a branch of its own. `eisen-core run --branch NAME`, or [agents.worktree], gives one.");
    } catch (error) {
      setText(this.note, [401, 403].includes(error.code) ? "This browser may not see branches." : error.message);
    }
    this.draw();
  }

  draw() {
    const there = this.branches.filter((it) => it.state !== "cleaned");
    const look = JSON.stringify([there, this.shown]);
    // Nothing is built anew for what looks the same.
    if (this.listLook !== look) fill(this.branchList, there.map((it) => this.row(it)));
    this.listLook = look;
    this.drawAgents();
  }

  row(it) {
    const [word, tone] = STATES[it.state] ?? [line(it.state), "none"];
    const conflicts = it.conflicts?.length ?? 0;
    const isShown = this.shown.branch === it.branch;
    return h(
      "li",
      null,
      h(
        "a",
        { href: `#review/branch/${it.branch.split("/").map(encodeURIComponent).join("/")}`, "aria-current": isShown && "true" },
        h("span", { class: "row" }, icon("branch"), h("span", { class: "name clip" }, line(it.branch)), h("span", { class: "grow" }), h("span", { class: `tag tone-${tone}` }, word)),
        it.task && h("span", { class: "clip dim small" }, cut(line(it.task), 160)),
        h(
          "span",
          { class: "figures" },
          it.agent_id && agentName(it.agent_id),
          it.diff && [h("span", { class: "plus" }, `+${it.diff.added}`), h("span", { class: "minus" }, `−${it.diff.removed}`)],
          it.uncommitted > 0 && h("span", null, `${it.uncommitted} not committed`),
          conflicts > 0 && h("span", { class: "tone-bad" }, `conflicts with ${it.conflicts.slice(0, 2).map((other) => line(other.with)).join(", ")}${conflicts > 2 ? " …" : ""}`),
          it.checks && h("span", { class: it.checks.passed ? "tone-good" : "tone-bad" }, `${it.checks.is_current === false ? "older " : ""}checks ${it.checks.passed ? "passed" : "failed"}`),
        ),
      ),
    );
  }

  drawAgents() {
    const rows = ["", ...this.app.state.agents.keys()].slice(0, MOST_SHOWN + 1);
    const look = `${rows.join()}${JSON.stringify(this.shown)}`;
    if (this.look === look) return;
    this.look = look;
    fill(
      this.agentList,
      rows.map((agent) =>
        h(
          "li",
          null,
          h(
            "a",
            { href: agent ? `#review/changes/${encodeURIComponent(agent)}` : "#review/changes", "aria-current": this.shown.agent === agent && "true" },
            agent ? agentName(agent) : h("span", null, icon("team"), " All agents"),
          ),
        ),
      ),
    );
  }
}
