// Owns the list of what was decided lately, and of what is allowed for the team until somebody takes it back.

import { button, fill, h, timeOf } from "../dom.js";
import { failed, notice, sure } from "../dialog.js";
import { cut, line, plain } from "../format.js";
import { icon } from "../icons.js";
import { agentName } from "../marks.js";
import { byWhom } from "./cards.js";

/** Decisions that are shown. */
const MOST_SHOWN = 20;
/** Characters of what an agent was told. */
const LONGEST_MESSAGE = 400;
/** It is read again at most so often. */
const EVERY_MS = 5_000;

const SIGNS = { allowed: ["check", "good"], answered: ["message", "good"], denied: ["cross", "bad"], expired: ["clock", "bad"] };

export class Latest {
  constructor(app) {
    this.app = app;
    this.timer = 0;
    this.grants = h("ul", { class: "latest" });
    this.list = h("ul", { class: "latest" });
    this.grantsHead = h("h3", null, "Allowed for the team");
    this.head = h("h3", null, "Decided lately");
    this.element = h("section", { "aria-label": "Decided lately", hidden: true }, this.grantsHead, this.grants, this.head, this.list);
  }

  /** Something was decided. */
  heard() {
    if (this.timer) return;
    this.timer = setTimeout(() => {
      this.timer = 0;
      if (this.element.isConnected && this.element.offsetParent !== null) this.read();
    }, EVERY_MS);
  }

  async read() {
    if (!this.app.wire.isLive) return;
    const [all, grants] = await Promise.all([
      this.app.call("list_blocked").catch(() => []),
      this.app.may("control") ? this.app.call("list_grants").catch(() => []) : [],
    ]);
    const decided = all.filter((it) => SIGNS[it.status] && (it.decided_by || it.answered_by || it.status === "expired"));
    const shown = decided.slice(-MOST_SHOWN).reverse();
    fill(this.list, shown.map((it) => this.row(it)));
    fill(this.grants, grants.slice(-MOST_SHOWN).reverse().map((it) => this.grant(it)));
    this.head.hidden = !shown.length;
    this.grantsHead.hidden = !grants.length;
    this.element.hidden = !shown.length && !grants.length;
  }

  row(it) {
    const [name, tone] = SIGNS[it.status];
    return h(
      "li",
      null,
      h("span", { class: `tone-${tone}` }, icon(name, line(it.status))),
      h(
        "span",
        { class: "what" },
        agentName(it.agent_id),
        ` ${line(it.action)} `,
        h("code", { class: "path" }, line(it.path)),
        h("span", { class: "dim" }, ` ${byWhom(it)}`),
        it.message && [h("span", { class: "dim" }, ": "), cut(plain(it.message), LONGEST_MESSAGE)],
      ),
      timeOf(it.timestamp_ms, "dim small"),
    );
  }

  grant(it) {
    return h(
      "li",
      null,
      h("span", { class: "tone-good" }, icon("check")),
      h("span", { class: "what" }, agentName(it.agent_id), ` ${line(it.action)} `, h("code", { class: "path" }, line(it.match ?? it.path))),
      button("Take back …", () => this.revoke(it), { class: "quiet" }),
    );
  }

  async revoke(it) {
    const what = `${line(it.agent_id)} may ${line(it.action)} ${line(it.match ?? it.path)}`;
    if (!(await sure(`${what}, until now. Take that back? It asks again from then on.`, "Take it back"))) return;
    const done = () => notice(`${line(it.match ?? it.path)}: taken back`);
    await this.app.call("revoke_grant", { id: it.id }).then(done, failed("not taken back"));
    this.read();
  }
}
