// Owns the list of the prompts that wait for their turn: each can be changed, and taken back.

import { failed, notice } from "../dialog.js";
import { button, fill, h, keyed, setText } from "../dom.js";
import { ago, clock, counted, cut, line, plain } from "../format.js";
import { icon, iconButton } from "../icons.js";

/** Prompts that are listed. */
const MOST_SHOWN = 20;
/** Characters of a prompt that are shown in its line. */
const LONGEST_SHOWN = 300;
/** Characters of a text that is put in place of another; the port takes a mebibyte of UTF-8. */
const LONGEST_TEXT = 256 * 1024;

export class Queue {
  /**
   * @param {{edited: (agent: string, before: string, text: string) => void, lost: (agent: string, text: string) => void}} heard
   * `edited`: a text took the place of another; `lost`: a change came too late
   */
  constructor(app, heard) {
    this.app = app;
    this.heard = heard;
    this.list = h("ul", { "aria-label": "Prompts that wait" });
    this.more = h("p", { class: "dim small", hidden: true });
    this.element = h("div", { class: "queue", hidden: true }, this.list, this.more);
    this.show("");
  }

  show(agent) {
    if (this.editing) this.giveUp();
    this.agent = agent;
    this.seen = null;
    this.prompts = [];
    this.left = 0;
    this.editing = null;
    this.draw();
  }

  /** Takes the agent as `list_agents` has it: each answer of it is looked at once. */
  update(agent) {
    if (agent === this.seen) return;
    this.seen = agent;
    const queued = agent.sessions?.some((it) => it.queued);
    if (queued || this.prompts.length) this.ask();
  }

  async ask() {
    this.asksAgain = true;
    if (this.isAsking) return;
    this.isAsking = true;
    while (this.asksAgain) {
      this.asksAgain = false;
      const { agent } = this;
      const answer = await this.app.call("list_prompts", { agent_id: agent }).catch(() => null);
      if (!answer || agent !== this.agent) continue;
      this.prompts = answer.prompts.slice(0, MOST_SHOWN);
      this.left = answer.prompts.length - this.prompts.length + (answer.more ?? 0);
      this.draw();
    }
    this.isAsking = false;
  }

  draw() {
    if (this.editing && !this.prompts.some((it) => it.id === this.editing.id)) this.giveUp();
    this.element.hidden = !this.prompts.length;
    keyed(
      this.list,
      this.prompts,
      (it) => it.id,
      () => h("li"),
      (el, it) => this.fill(el, it),
    );
    this.more.hidden = !this.left;
    setText(this.more, `${counted(this.left, "more prompt")} behind these`);
  }

  fill(el, it) {
    const isEdited = this.editing?.id === it.id;
    const may = this.app.may("prompt");
    const look = JSON.stringify([it.text, it.attachments, it.by, may, isEdited]);
    const time = el.querySelector("time");
    if (time) setText(time, ago(it.since_ms));
    if (el.look === look) return;
    el.look = look;
    if (isEdited) return fill(el, this.form());
    const text = cut(plain(it.text), LONGEST_SHOWN);
    fill(
      el,
      icon("wait"),
      h("span", { class: "text", title: `${whoOf(it.by)}, ${clock(it.since_ms)}: ${text}` }, text || "no text"),
      it.attachments > 0 && h("span", { class: "tag" }, icon("image"), String(it.attachments)),
      h("span", { class: "dim small from" }, whoOf(it.by), " · ", h("time", { title: clock(it.since_ms) }, ago(it.since_ms))),
      may && iconButton("edit", "Change this prompt", () => this.edit(it)),
      may && iconButton("cross", "Take this prompt back", () => this.withdraw(it)),
    );
  }

  /** The form in which the text of a prompt is changed. */
  form() {
    const { area } = this.editing;
    return h(
      "form",
      {
        on: {
          submit: (event) => (event.preventDefault(), this.save()),
          keydown: (event) => {
            if (event.key === "Escape") (event.stopPropagation(), this.close());
            else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) (event.preventDefault(), this.save());
          },
        },
      },
      area,
      h("div", { class: "row" }, h("button", { class: "main" }, "Save"), button("Back", () => this.close())),
    );
  }

  async edit(it) {
    let { text } = it;
    if (it.cut) {
      const params = { agent_id: this.agent, id: it.id };
      const whole = await this.app.call("list_prompts", params).catch(failed("the whole prompt"));
      text = whole?.prompts[0]?.text;
      if (text === undefined) return this.ask();
    }
    if (this.editing) this.giveUp();
    const area = h("textarea", { rows: 2, "aria-label": "Text of the prompt", maxlength: LONGEST_TEXT });
    area.value = text;
    this.editing = { id: it.id, before: text, area };
    this.draw();
    area.focus();
  }

  close() {
    const { id } = this.editing ?? {};
    this.editing = null;
    this.draw();
    this.list.querySelector(`[data-key="${CSS.escape(id ?? "")}"] button`)?.focus();
  }

  async save() {
    const { agent, editing } = this;
    const text = editing.area.value.trim();
    if (!text || text === editing.before) return this.close();
    editing.area.disabled = true;
    try {
      const edited = await this.app.call("edit_prompt", { agent_id: agent, id: editing.id, text });
      this.heard.edited(agent, editing.before, text);
      this.prompts = this.prompts.map((it) => (it.id === edited.id ? edited : it));
      if (this.editing === editing) this.close();
    } catch (error) {
      notice(`${agent}: the prompt was not changed: ${error.message}`, true);
      editing.area.disabled = false;
      // It stays open as long as its prompt waits.
      if (this.editing === editing) this.ask();
      else this.heard.lost(agent, text);
    }
  }

  /** The prompt does not wait any more: what was typed is not lost. */
  giveUp() {
    const { before, area } = this.editing;
    this.editing = null;
    const text = area.value.trim();
    // One that is on its way says itself whether it was taken.
    if (!area.disabled && text && text !== before) this.heard.lost(this.agent, text);
  }

  withdraw(it) {
    const { agent } = this;
    this.app
      .call("withdraw_prompt", { agent_id: agent, id: it.id })
      .then(() => notice(`${agent}: the prompt was taken back`), failed(`take back a prompt of ${agent}`))
      .finally(() => this.ask());
  }
}

/** Who sent a prompt, in words. */
function whoOf(by) {
  if (!by) return "the team";
  if (by === "web") return "this page or another";
  if (by === "person") return "a person";
  return line(String(by).replace(/^(token|agent):/, "")).slice(0, 60);
}
