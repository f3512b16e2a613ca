// Owns who wrote each line of a file, and how a file is picked.

import { button, fill, h, setText, timeOf } from "../dom.js";
import { cut, isAside, line, plain, turnName } from "../format.js";
import { empty } from "../header.js";
import { icon } from "../icons.js";
import { agentName } from "../marks.js";
import { changesAt } from "../turns.js";

/** Lines that are elements at once; more come by a button. */
const MOST_LINES = 5_000;
/** Files that can be chosen of at once. */
const MOST_OPTIONS = 50;
/** Files that are shown as changed last, of so many events. */
const MOST_RECENT = 40;
const MOST_EVENTS = 500;
/** Characters of a line, and of a prompt. */
const LONGEST_LINE = 2_000;
const LONGEST_PROMPT = 1_000;
const CHANGES = ["file.write", "file.create", "file.rename"];
/** Whose a line is that no agent wrote. */
const OTHERS = {
  before: "was there before",
  outside: "outside the team",
  unknown: "unknown",
  undo: "an undo",
  redo: "a redo",
};

export class Blame {
  constructor(app) {
    this.app = app;
    this.recent = [];
    this.shown = "";
    this.path = h("input", {
      type: "text",
      role: "combobox",
      placeholder: "A file, or a part of its path",
      "aria-label": "File",
      "aria-expanded": "false",
      "aria-controls": "blame-files",
      "aria-autocomplete": "list",
      maxlength: 4096,
      spellcheck: "false",
      autocomplete: "off",
      on: {
        input: () => this.offer(),
        focus: () => this.offer(),
        blur: () => this.close(),
        keydown: (event) => this.typed(event),
      },
    });
    const list = { class: "options", id: "blame-files", role: "listbox", "aria-label": "Files", hidden: true };
    this.options = h("ul", list);
    this.status = h("p", { class: "hint", role: "status" });
    this.start = h("div", { class: "recent" });
    this.of = h("div", { class: "blame-of", "aria-live": "polite", hidden: true });
    this.body = h("tbody", { on: { click: (event) => this.clicked(event) } });
    this.more = button("More lines", () => this.read(this.next), { class: "more", hidden: true });
    const form = h(
      "form",
      { class: "row", on: { submit: (event) => (event.preventDefault(), this.go(this.path.value.trim())) } },
      h("div", { class: "picker" }, this.path, this.options),
      h("button", { class: "main" }, "Show"),
    );
    const heads = ["By", "Turn", "When", "Line", "Text"].map((it) => h("th", { scope: "col" }, it));
    this.table = h(
      "table",
      { class: "blame", hidden: true },
      h("caption", { class: "hidden" }, "Who wrote each line"),
      h("thead", { class: "hidden" }, h("tr", null, heads)),
      this.body,
    );
    fill(
      (this.element = h("section", { class: "part", "aria-label": "Blame", hidden: true })),
      form,
      this.status,
      this.start,
      this.of,
      h("div", { class: "scroll-x" }, this.table),
      h("div", { class: "row more-row" }, this.more),
    );
  }

  show(rest) {
    this.app.lists.wantGraph();
    const path = rest.join("/");
    this.path.value = path;
    this.start.hidden = Boolean(path);
    this.recentRead = this.readRecent();
    if (path !== this.shown || !path) this.clear();
    this.shown = path;
    if (path) this.recentRead.then(() => path === this.shown && this.begin());
  }

  update(dirty) {
    if (!dirty.has("link")) return;
    if (!this.recent.length) this.readRecent();
    if (this.shown && !this.body.childElementCount) this.begin();
  }

  key(key) {
    if (key !== "/") return false;
    this.path.select();
    this.path.focus();
    return true;
  }

  go(path) {
    this.close();
    if (path) location.hash = `history/blame/${encodeURIComponent(path)}`;
  }

  /** Reads which files of the workspace were changed last. */
  async readRecent() {
    if (!this.app.wire.isLive) return;
    const asked = { types: CHANGES, last: true, limit: MOST_EVENTS };
    const answer = await this.app.call("list_events", asked).catch((error) => ({ error }));
    const files = new Map();
    for (const { payload, agent_id: agent, timestamp: at } of [...(answer.events ?? [])].reverse()) {
      const { path, tree } = payload ?? {};
      // A worktree has files of its own.
      const full = typeof tree === "string" ? `${tree}/${path}` : path;
      if (typeof path !== "string" || isAside(path) || files.has(full) || files.size >= MOST_RECENT) continue;
      files.set(full, { path, full, agent, at });
    }
    this.recent = [...files.values()];
    if (answer.error) return fill(this.start, empty("warn", line(answer.error.message)));
    if (!this.recent.length) return fill(this.start, empty("file", "No file has been changed yet. Name one above."));
    const rows = this.recent.map(({ path, full, agent, at }) =>
      h(
        "tr",
        null,
        h("td", null, h("a", { class: "path", href: `#history/blame/${encodeURIComponent(full)}` }, line(path))),
        h(
          "td",
          null,
          agent ? agentName(agent) : h("span", { class: "dim" }, "outside the team"),
          full !== path && h("span", { class: "dim" }, " in its worktree"),
        ),
        h("td", { class: "number dim" }, timeOf(at)),
      ),
    );
    fill(
      this.start,
      h("h2", null, "Changed last"),
      h("table", null, h("caption", { class: "hidden" }, "Files that were changed last"), h("tbody", null, rows)),
    );
  }

  /** The files that have all words of what is typed, those that changed last first. */
  matching() {
    const words = this.path.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = new Set();
    const { graph, heat } = this.app.state;
    const has = (path) => words.every((word) => path.toLowerCase().includes(word));
    for (const { path, full } of this.recent) if (has(path)) found.add(full);
    for (const source of [heat.files.keys(), graph.files]) {
      for (const path of source) {
        if (found.size >= MOST_OPTIONS) return [...found];
        if (!isAside(path) && has(path)) found.add(path);
      }
    }
    return [...found];
  }

  offer() {
    const files = this.matching();
    this.chosen = -1;
    this.options.hidden = !files.length || (files.length === 1 && files[0] === this.path.value);
    this.path.setAttribute("aria-expanded", String(!this.options.hidden));
    this.path.removeAttribute("aria-activedescendant");
    fill(
      this.options,
      files.map((path, at) =>
        h(
          "li",
          {
            id: `blame-file-${at}`,
            class: "path",
            role: "option",
            "aria-selected": "false",
            // Before the field loses the focus.
            on: { pointerdown: (event) => event.preventDefault(), click: () => this.go(path) },
          },
          line(path),
        ),
      ),
    );
    this.files = files;
  }

  close() {
    this.options.hidden = true;
    this.path.setAttribute("aria-expanded", "false");
  }

  typed(event) {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape" && !this.options.hidden) {
      event.stopPropagation();
      return this.close();
    }
    if (event.key === "Enter" && !this.options.hidden && this.chosen >= 0) {
      event.preventDefault();
      return this.go(this.files[this.chosen]);
    }
    if (!by) return;
    event.preventDefault();
    if (this.options.hidden) this.offer();
    const items = [...this.options.children];
    this.chosen = Math.max(-1, Math.min(items.length - 1, this.chosen + by));
    items.forEach((it, at) => it.setAttribute("aria-selected", String(at === this.chosen)));
    items[this.chosen]?.scrollIntoView({ block: "nearest" });
    if (this.chosen >= 0) this.path.setAttribute("aria-activedescendant", items[this.chosen].id);
  }

  clear() {
    fill(this.body);
    this.blocks = [];
    this.status.textContent = "";
    this.table.hidden = this.of.hidden = this.more.hidden = true;
  }

  begin() {
    this.clear();
    if (this.app.wire.isLive) this.read(1);
  }

  async read(first) {
    const path = this.shown;
    this.status.textContent = "Reading …";
    try {
      const answer = await this.app.call("blame", { path, first_line: first });
      if (path !== this.shown) return;
      const lines = answer.lines.slice(0, MOST_LINES);
      if (first === 1) this.clear();
      // Earlier lines give way: the page stays small.
      while (this.body.childElementCount + lines.length > 2 * MOST_LINES)
        this.body.firstElementChild.remove();
      this.body.append(...lines.map((it) => this.row(it)));
      this.next = lines.length < answer.lines.length ? lines.at(-1).line + 1 : answer.next_line;
      this.more.hidden = !this.next;
      this.table.hidden = false;
      setText(this.status, answer.unread ? `${answer.unread} changes could not be read` : "");
      if (first === 1) this.choose(0);
    } catch (error) {
      if (path !== this.shown) return;
      // It may be in a worktree only.
      const other = this.recent.find((it) => it.path === path && it.full !== path);
      if (other && error.code === 404) return location.replace(`#history/blame/${encodeURIComponent(other.full)}`);
      setText(this.status, error.message);
      this.start.hidden = first > 1;
    }
  }

  row(it) {
    const key = `${it.by} ${it.agent_id} ${it.session_id} ${it.turn}`;
    const isFirst = key !== this.blocks.at(-1)?.key;
    if (isFirst) {
      const { by, agent_id: agent, session_id: session, turn, timestamp: at, title, prompt } = it;
      this.blocks.push({ key, by, agent, session, turn, at, title, prompt });
    }
    const block = this.blocks.length - 1;
    const at = isFirst && it.timestamp;
    const who = isFirst && button("", () => this.choose(block), { class: "plain" });
    if (who) fill(who, this.who(it));
    return h(
      "tr",
      { class: isFirst ? "first" : "", title: cut(line(it.prompt ?? ""), 300) || null, data: { block } },
      h("td", { class: "who" }, who),
      h("td", { class: "who dim" }, isFirst && Number.isFinite(it.turn) ? turnName(it.turn) : ""),
      h("td", { class: "who dim" }, at && timeOf(at)),
      h("td", { class: "no" }, it.line),
      h("td", null, h("code", null, cut(plain(it.text), LONGEST_LINE))),
    );
  }

  who({ agent_id: agent, by }) {
    if (agent) return agentName(agent);
    return h("span", { class: "dim" }, Object.hasOwn(OTHERS, by) ? OTHERS[by] : line(by));
  }

  clicked(event) {
    const block = event.target.closest("tr")?.dataset.block;
    if (block) this.choose(Number(block));
  }

  /** Says above the lines who wrote a block of them, when, and why. */
  choose(at) {
    const block = this.blocks[at];
    if (!block) return;
    for (const row of this.body.children) row.classList.toggle("chosen", Number(row.dataset.block) === at);
    const { agent, session, turn, by } = block;
    const isTurn = agent && session && Number.isFinite(turn);
    const why = cut(line(block.prompt ?? ""), LONGEST_PROMPT) || line(block.title ?? "");
    fill(
      this.of,
      this.who({ agent_id: agent, by }),
      isTurn && h("span", { class: "dim" }, turnName(turn)),
      block.at && timeOf(block.at, "dim"),
      h("span", { class: "asked" }, why || h("span", { class: "dim" }, agent ? "without a prompt" : "")),
      isTurn && h("a", { class: "button", href: changesAt(agent, session, turn) }, icon("review"), "Changes"),
    );
    this.of.hidden = false;
  }
}
