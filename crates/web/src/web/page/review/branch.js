// Owns the review of one branch: its files and hunks, what a person says of them, checks and merge.

import { button, fill, h, setText } from "../dom.js";
import { Menu, failed, notice, sure } from "../dialog.js";
import { ago, counted, cut, line, plain } from "../format.js";
import { empty } from "../header.js";
import { icon } from "../icons.js";
import { walk } from "../keys.js";
import { link } from "../markdown.js";
import { agentName } from "../marks.js";
import { fileView } from "./hunks.js";

/** Files that are shown at first, and with each further look. */
const PAGE = 30;
/** How long a call of git, and one of checks, may take. */
const CALL_MS = 60_000;
const CHECKS_MS = 31 * 60_000;
/** The way diffs are shown, in the storage of this browser. */
const SPLIT = "eisen-split";

export class BranchPanel {
  /** @param {() => void} changed hears that the list of branches is to be read again */
  constructor(app, changed) {
    this.app = app;
    this.changed = changed;
    this.name = "";
    this.review = null;
    /** How the branch stands, as the list has it; null: not known yet. */
    this.row = null;
    this.most = PAGE;
    this.isSplit = localStorage.getItem(SPLIT) === "on";
    this.task = h("p", { class: "task" });
    this.facts = h("p", { class: "dim small facts-line" });
    this.unsent = h("p", { class: "hint", hidden: true });
    this.status = h("p", { class: "hint", role: "status" });
    this.split = button("", () => this.turn(), { "aria-pressed": "false" });
    this.send = button("", () => this.sendComments(), { hidden: true, class: "main" });
    this.check = button("Run the checks", () => this.runChecks());
    const way = (title, more) => button(title, () => this.merge(more));
    this.mergeButton = button([icon("merge"), "Merge …"], () => this.merge({}), { class: "main" });
    this.menu = new Menu("Other ways to merge", [way("Squash …", { squash: true }), way("Rebase …", { rebase: true }), button("Open a pull request …", () => this.openRequest())]);
    this.bar = h("div", { class: "row wrap review-bar" }, this.split, h("span", { class: "grow" }), this.send, this.check, this.mergeButton, this.menu.element);
    this.files = h("div", { class: "files" });
    this.more = button("", () => ((this.most += PAGE), this.draw()), { class: "more", hidden: true });
    this.element = h("div", { class: "review-branch scroll", hidden: true }, this.task, this.facts, this.bar, this.unsent, this.status, this.files, this.more);
    this.scoped();
  }

  scoped() {
    this.check.hidden = !this.app.may("control");
    this.offerMerge();
    if (this.review) this.draw();
  }

  /** Takes how the branches stand. */
  listed(branches) {
    const row = branches.find((it) => it.branch === this.name) ?? null;
    const isNews = row?.is_merged !== this.row?.is_merged;
    this.row = row;
    this.offerMerge();
    if (isNews && this.review) this.draw();
  }

  /** What is merged is not merged once more. */
  offerMerge() {
    const may = this.app.may("control") && !this.row?.is_merged;
    for (const el of [this.mergeButton, this.menu.element]) el.hidden = !may;
  }

  show(name) {
    if (name !== this.name) {
      this.name = name;
      this.review = null;
      this.row = null;
      this.offerMerge();
      this.fresh = null;
      this.most = PAGE;
      fill(this.files);
      fill(this.task);
      fill(this.facts);
    }
    this.read(true);
  }

  update(dirty) {
    if (dirty.has("link") && this.app.wire.isLive && !this.review) this.read(true);
  }

  /** Reads the review; `isLook`: a person looks, and what comes from then on is new. */
  async read(isLook = false) {
    const { name } = this;
    if (!name || !this.app.wire.isLive) return;
    if (!this.review) setText(this.status, "Reading …");
    try {
      const review = await this.app.call("get_review", { branch: name, looked: isLook && this.app.may("control") }, CALL_MS);
      if (name === this.name) this.take(review);
    } catch (error) {
      if (name === this.name) setText(this.status, error.message);
    }
  }

  take(review) {
    // What is new was new at the first look: each answer after that has been looked at.
    if (!this.fresh) this.fresh = new Set(review.files.flatMap((file) => file.hunks.filter((it) => it.is_new).map((it) => it.id)));
    for (const file of review.files) for (const hunk of file.hunks) hunk.is_new ||= this.fresh.has(hunk.id);
    this.review = review;
    setText(this.status, "");
    this.draw();
  }

  /** What a person has begun in a part, and where they are: it stays when the parts are drawn anew. */
  keepPlace() {
    const active = document.activeElement;
    const hunks = [...this.files.querySelectorAll(".hunk")];
    const focused = hunks.find((it) => it.contains(document.activeElement));
    const at = hunks.indexOf(focused);
    const asked = new Map();
    for (const it of hunks) {
      const form = it.querySelector(".asking > *");
      if (form) asked.set(it.dataset.id, form);
    }
    return () => {
      const now = [...this.files.querySelectorAll(".hunk")];
      for (const it of now) {
        const form = asked.get(it.dataset.id);
        if (form) it.querySelector(".asking").append(form);
      }
      if (at < 0) return;
      // A field that somebody types in keeps what they type.
      if (active.isConnected) return active.focus({ preventScroll: true });
      const same = now.find((it) => it.dataset.id === focused.dataset.id) ?? now[Math.min(at, now.length - 1)];
      same?.focus({ preventScroll: true });
    };
  }

  draw() {
    const { review } = this;
    const sum = (name) => review.files.reduce((all, it) => all + it[name], 0);
    const isFresh = review.files.some((file) => file.hunks.some((hunk) => hunk.is_new)) && review.round > 0;
    setText(this.task, review.task ? cut(plain(review.task).trim(), 600) : "");
    fill(
      this.facts,
      review.agent_id && [agentName(review.agent_id), " · "],
      review.into ? `against ${line(review.into)}` : "against where it began",
      ` · ${counted(review.files.length, "file")} `,
      h("span", { class: "plus" }, `+${sum("added")}`),
      " ",
      h("span", { class: "minus" }, `−${sum("removed")}`),
      review.uncommitted.length > 0 && ` · ${counted(review.uncommitted.length, "file")} not committed`,
      this.row?.is_merged && [" · ", h("span", { class: "tone-good" }, `merged into ${line(this.row.into ?? "its target")}`)],
      review.checks && [" · ", this.checked(review.checks)],
      isFresh && " · marked: new since the last look",
    );
    fill(this.split, this.isSplit ? "Unified" : "Side by side");
    this.split.setAttribute("aria-pressed", String(this.isSplit));
    const sends = review.unsent > 0 && this.app.may("control");
    this.send.hidden = !sends || !review.agent_id;
    fill(this.send, icon("send"), `Send ${counted(review.unsent, "comment")} to ${line(review.agent_id ?? "")}`);
    // A run that made the branch is over: the page begins none.
    this.unsent.hidden = !sends || Boolean(review.agent_id);
    fill(
      this.unsent,
      `${counted(review.unsent, "comment")} not sent: no agent of this team works on the branch. \`eisen-core review ${line(review.branch)} --send\` gives them to a run.`,
    );
    const hooks = {
      app: this.app,
      isSplit: this.isSplit,
      may: this.app.may("control"),
      decide: (hunk, decision) => this.decide(hunk, decision),
      comment: (hunk, text) => this.comment(hunk, text),
    };
    const shown = review.files.slice(0, this.most);
    const back = this.keepPlace();
    fill(
      this.files,
      review.rebase && h("details", { class: "warn" }, h("summary", null, "A rebase is under way: who goes on with it runs these steps"), h("pre", null, cut(plain(review.rebase), 20_000))),
      shown.length
        ? shown.map((file) => fileView(file, hooks))
        : empty("check", this.row?.is_merged ? "All that this branch had is merged." : "This branch changes nothing."),
    );
    back();
    this.more.hidden = review.files.length <= this.most;
    setText(this.more, `${counted(review.files.length - this.most, "more file")}`);
  }

  checked({ passed, at_ms: at, is_clean: isClean }) {
    return h("span", { class: passed ? "tone-good" : "tone-bad", title: new Date(at).toLocaleString() }, `checks ${passed ? "passed" : "failed"} ${ago(at)}${isClean ? "" : ", with what was not committed"}`);
  }

  turn() {
    this.isSplit = !this.isSplit;
    localStorage.setItem(SPLIT, this.isSplit ? "on" : "off");
    if (this.review) this.draw();
  }

  async act(what, method, params, timeout = CALL_MS) {
    const { name } = this;
    try {
      const review = await this.app.call(method, { branch: name, ...params }, timeout);
      if (name === this.name) this.take(review);
      return true;
    } catch (error) {
      failed(what)(error);
      return false;
    }
  }

  async decide(hunk, decision) {
    const path = this.review.files.find((file) => file.path === hunk || file.hunks.some((it) => it.id === hunk))?.path ?? hunk;
    if (decision === "revert") {
      const what = path === hunk ? `all changes of ${line(path)}` : `this part of ${line(path)}`;
      if (!(await sure(`Take back ${what} in the worktree of ${line(this.name)}?`, "Take it back"))) return;
    }
    if ((await this.act(decision, "review_hunk", { hunk, decision })) && decision === "revert")
      notice(`${line(path)}: taken back`);
  }

  comment(hunk, text) {
    return this.act("comment", "comment", { hunk, text });
  }

  async sendComments() {
    if (this.send.disabled) return;
    this.send.disabled = true;
    const isSent = await this.act("comments", "comment", { send: true });
    this.send.disabled = false;
    if (isSent) notice("the agent gets them as its next prompt");
  }

  async runChecks() {
    if (this.check.disabled) return;
    this.check.disabled = true;
    setText(this.status, "The checks run …");
    const { name } = this;
    try {
      const { passed, output } = await this.app.call("check_branch", { branch: name }, CHECKS_MS);
      if (name !== this.name) return;
      await this.read();
      fill(this.status, passed ? h("span", { class: "tone-good" }, "The checks passed.") : h("span", { class: "tone-bad" }, "A check failed:"));
      if (!passed && output) this.files.prepend(h("pre", null, cut(plain(String(output)), 20_000)));
    } catch (error) {
      if (name === this.name) setText(this.status, error.message);
    } finally {
      this.check.disabled = false;
    }
  }

  /** Merges after a look at what would come of it. */
  async merge(more) {
    const { name } = this;
    // What came since is looked at before it is asked about.
    await this.read();
    const { review } = this;
    if (!review || name !== this.name || this.mergeButton.disabled) return;
    const way = more.squash ? "Squash" : more.rebase ? "Rebase" : "Merge";
    try {
      const seen = await this.app.call("merge_branch", { branch: name, ...more, dry_run: true }, CALL_MS);
      const { into } = seen;
      if (seen.conflicts?.length)
        return notice(`${name} and ${into} conflict in ${seen.conflicts.slice(0, 5).join(", ")}: \`eisen-core merge ${name} --send\` has its agent settle that`, true);
      const commit = review.uncommitted.length > 0;
      const question = `${way} ${name} into ${into}?${commit ? ` What is not committed (${counted(review.uncommitted.length, "file")}) is committed first.` : ""} Checks that are configured run before, and ${into} does not move if one fails.`;
      if (!(await sure(question, way))) return;
      this.mergeButton.disabled = true;
      setText(this.status, "Merging …");
      // What the agent writes from now on was not looked at.
      const params = { branch: name, into, ...more, ...(commit && { commit: true }), tree: review.tree };
      await this.app.call("merge_branch", params, CHECKS_MS);
      notice(`merged ${name} into ${into}`);
      this.changed();
      await this.read();
      if (name === this.name) setText(this.status, `Merged. \`eisen-core merge --undo ${name}\` takes it back while nothing was built on it.`);
    } catch (error) {
      if (name === this.name) setText(this.status, error.message);
      failed(`merge ${name}`)(error);
    } finally {
      this.mergeButton.disabled = false;
    }
  }

  async openRequest() {
    const { name } = this;
    if (!(await sure(`Push ${line(name)} to origin and open a pull request by the team's login?`, "Open it"))) return;
    setText(this.status, "Opening it …");
    try {
      const { link: to } = await this.app.call("open_pull_request", { branch: name }, CHECKS_MS);
      fill(this.status, `${line(name)}: `, /^https?:/.test(to) ? link(to, to) : line(to));
    } catch (error) {
      setText(this.status, `${name}: ${error.message}`);
    }
  }

  key(key) {
    const all = [...this.files.querySelectorAll(".hunk")];
    const at = all.findIndex((it) => it.contains(document.activeElement));
    if ("jknN".includes(key)) return (walk(all, "jn".includes(key) ? 1 : -1), true);
    const act = { a: "accept", x: "revert", c: "comment" }[key];
    if (act) {
      if (at < 0) notice("choose a part first, by j or k");
      else all[at].querySelector(`[data-act="${act}"]`)?.click();
      return true;
    }
    if (key === "t" && !this.check.hidden) this.runChecks();
    else if (key === "s" && !this.send.hidden) this.sendComments();
    else return false;
    return true;
  }
}
