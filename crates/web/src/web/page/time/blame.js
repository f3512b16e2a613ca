// Owns who wrote each line of a file.

import { button, fill, h } from "../dom.js";
import { clock, cut, line, plain, turnName } from "../format.js";
import { agentName } from "../marks.js";

/** Lines that are elements at once; more come by a button. */
const MOST_LINES = 5_000;

export class Blame {
  constructor(app) {
    this.app = app;
    this.path = h("input", {
      type: "text",
      placeholder: "Path of a file, relative to the workspace",
      "aria-label": "Path",
      list: "paths",
      maxlength: 4096,
      spellcheck: "false",
      autocomplete: "off",
    });
    this.paths = h("datalist", { id: "paths" });
    this.status = h("p", { class: "hint", role: "status" });
    this.body = h("tbody");
    this.more = button("More lines", () => this.read(this.next), { class: "more", hidden: true });
    const form = h(
      "form",
      {
        class: "row",
        on: {
          submit: (event) => (
            event.preventDefault(),
            (location.hash = `time/blame/${encodeURIComponent(this.path.value.trim())}`)
          ),
        },
      },
      this.path,
      h("button", { class: "main" }, "Show"),
    );
    const head = h(
      "tr",
      null,
      ["Line", "By", "Turn", "When", "Text"].map((it) => h("th", { scope: "col" }, it)),
    );
    this.table = h(
      "table",
      { class: "blame", hidden: true },
      h("caption", { class: "hidden" }, "Who wrote each line"),
      h("thead", null, head),
      this.body,
    );
    fill(
      (this.element = h("section", { class: "part", "aria-label": "Blame", hidden: true })),
      form,
      this.paths,
      this.status,
      h("div", { class: "scroll-x" }, this.table),
      this.more,
    );
  }

  show([path]) {
    fill(
      this.paths,
      this.app.state.heat.hottest(50).map((it) => h("option", { value: it.path })),
    );
    if (!path) return;
    this.path.value = path;
    this.begin();
  }

  update(dirty) {
    if (dirty.has("link") && this.path.value && !this.body.childElementCount) this.begin();
  }

  begin() {
    fill(this.body);
    this.table.hidden = true;
    this.last = null;
    if (this.app.wire.isLive) this.read(1);
  }

  async read(first) {
    const path = this.path.value.trim();
    this.status.textContent = "Reading …";
    try {
      const answer = await this.app.call("blame", { path, first_line: first });
      const lines = answer.lines.slice(0, MOST_LINES);
      if (first === 1) fill(this.body);
      // Earlier lines give way: the page stays small.
      while (this.body.childElementCount + lines.length > 2 * MOST_LINES)
        this.body.firstElementChild.remove();
      this.body.append(...lines.map((it) => this.row(it)));
      this.next = lines.length < answer.lines.length ? lines.at(-1).line + 1 : answer.next_line;
      this.more.hidden = !this.next;
      this.table.hidden = false;
      this.status.textContent = answer.unread ? `${answer.unread} changes could not be read` : "";
    } catch (error) {
      this.status.textContent = error.message;
    }
  }

  row(it) {
    const key = `${it.by} ${it.agent_id} ${it.session_id} ${it.turn}`;
    const isFirst = key !== this.last;
    this.last = key;
    const who = it.agent_id ? agentName(it.agent_id) : h("span", { class: "dim" }, line(it.by));
    const why = [it.title, it.prompt]
      .filter(Boolean)
      .map((text) => cut(line(text), 300))
      .join(" — ");
    return h(
      "tr",
      { class: isFirst ? "first" : "", title: why || null },
      h("td", { class: "no" }, it.line),
      h("td", null, isFirst && who),
      h("td", null, isFirst && Number.isFinite(it.turn) ? turnName(it.turn) : ""),
      h("td", { class: "dim" }, isFirst && it.timestamp ? clock(it.timestamp) : ""),
      h("td", null, h("code", null, cut(plain(it.text), 2000))),
    );
  }
}
