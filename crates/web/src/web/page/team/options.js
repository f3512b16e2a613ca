// Owns the menus by which mode, model and what else an agent offers are chosen, in the session that prompts go to; with them
// come the agent's commands.

import { failed, notice } from "../dialog.js";
import { fill, h, keyed } from "../dom.js";
import { cut, line } from "../format.js";

/** Menus of an agent, and values of each; the port bounds them too. */
const MOST_MENUS = 6;
const MOST_VALUES = 1_000;
/** Characters of a name. */
const LONGEST_NAME = 60;
/** What comes first. */
const ORDER = ["mode", "model", "thought_level"];

export class Options {
  constructor(app) {
    this.app = app;
    this.element = h("div", { class: "row wrap options", hidden: true });
    this.show("");
  }

  show(agent) {
    this.agent = agent;
    this.key = "";
    this.set([]);
  }

  /** Takes the agent as `list_agents` has it; asks for the menus where something is new there. */
  update(agent) {
    const session = sessionOf(agent);
    const key = session && agent.state === "ready" ? JSON.stringify([session.session_id, session.chosen]) : "";
    if (key === this.key) return;
    this.key = key;
    if (!key) return this.set([]);
    this.ask(() => this.app.call("list_session_options", { agent_id: this.agent })).catch(() => {
      // The next answer of `list_agents` asks again.
      if (this.key === key) this.key = "";
    });
  }

  /** Shows what a call answers, unless another agent is shown by then. */
  async ask(call) {
    const { agent } = this;
    const answer = await call();
    this.app.state.offers(agent, answer.commands);
    if (agent === this.agent) this.set(answer.options ?? []);
  }

  set(options) {
    const rank = (it) => (ORDER.includes(it.category) ? ORDER.indexOf(it.category) : ORDER.length);
    this.options = [...options].sort((a, b) => rank(a) - rank(b)).slice(0, MOST_MENUS);
    this.element.hidden = !this.options.length;
    keyed(
      this.element,
      this.options,
      (it) => it.id,
      () => h("label", null, h("span", { class: "dim small" }), h("select")),
      (el, it) => this.fill(el, it),
    );
  }

  fill(el, it) {
    const [name, select] = el.children;
    const look = JSON.stringify(it);
    if (el.look === look) return;
    el.look = look;
    const shown = cut(line(it.name), LONGEST_NAME);
    fill(name, shown);
    select.setAttribute("aria-label", shown);
    const values = it.values.slice(0, MOST_VALUES);
    const isKnown = values.some((value) => value.value === it.current);
    const other = it.current ? cut(line(it.current), LONGEST_NAME) : "–";
    fill(
      select,
      !isKnown && h("option", { value: "", disabled: true, selected: true }, other),
      values.map((value) =>
        h(
          "option",
          { value: value.value, selected: value.value === it.current, title: value.description && line(value.description) },
          cut(line(value.name), LONGEST_NAME),
        ),
      ),
    );
    const now = values.find((value) => value.value === it.current);
    select.title = now?.description ? line(now.description) : `${shown} of the session that prompts go to`;
    select.onchange = () => this.choose(it, select);
  }

  choose(it, select) {
    const { agent } = this;
    const label = select.selectedOptions[0]?.textContent ?? "";
    const params = { agent_id: agent, option: it.id, value: select.value };
    select.disabled = true;
    // An agent may take its time.
    this.ask(() => this.app.call("set_session_option", params, 0))
      .then(() => notice(`${agent}: ${line(it.name)} is ${label}`))
      .catch((error) => {
        // Shows again what is chosen.
        select.parentElement.look = "";
        this.set(this.options);
        failed(`${agent}: ${line(it.name)}`)(error);
      })
      .finally(() => (select.disabled = false));
  }
}

/** The session that prompts go to. */
export function sessionOf(agent) {
  return agent.sessions?.find((it) => it.default && it.open);
}
