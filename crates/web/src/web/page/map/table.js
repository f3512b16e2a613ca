// Owns the table beside the map: the hottest files, sorted as the reader wants them.

import { button, fill, h, keyed, setText } from "../dom.js";
import { ago, baseName, line, lookup } from "../format.js";
import { agentName } from "../marks.js";

/** Files of the table. */
const MOST_ROWS = 60;
/** The table is sorted anew at most this often. */
const EVERY_MS = 500;

const HEADS = [
  ["path", "File"],
  ["heat", "Heat"],
  ["agents", "Agents"],
  ["action", "Last"],
  ["at", "When"],
];
const VALUES = {
  path: (it) => it.path,
  heat: (it) => it.heat,
  agents: (it) =>
    it.touches
      .map((touch) => touch.agent)
      .sort()
      .join(),
  action: (it) => it.action,
  at: (it) => it.at,
};

/** States that the last action says already. */
const SAID = lookup({ write: "written", blocked: "blocked" });

export class HotTable {
  /** @param {{hottest: (most: number) => Object[], wordsFor: (path: string) => string[], pick: (path: string) => void, picked: () => string | null, isSeen: () => boolean}} hooks */
  constructor(hooks) {
    this.hooks = hooks;
    this.sort = { by: "heat", isUp: false };
    this.timer = 0;
    this.body = h("tbody");
    this.heads = h("tr");
    this.element = h(
      "table",
      { class: "hot" },
      h("caption", { class: "hidden" }, "The hottest files"),
      h("thead", null, this.heads),
      this.body,
    );
    this.drawHeads();
  }

  want() {
    this.timer ||= setTimeout(() => {
      this.timer = 0;
      if (this.hooks.isSeen()) this.draw();
    }, EVERY_MS);
  }

  /** Builds all rows anew: marks of agents have changed. */
  forget() {
    fill(this.body);
    this.want();
  }

  drawHeads() {
    fill(
      this.heads,
      HEADS.map(([by, text]) => this.head(by, text)),
    );
  }

  head(by, text) {
    const isSorted = this.sort.by === by;
    const arrow = isSorted ? (this.sort.isUp ? " ▲" : " ▼") : "";
    const press = () => {
      this.sort = { by, isUp: isSorted ? !this.sort.isUp : by === "path" };
      this.drawHeads();
      this.draw();
      this.heads.children[HEADS.findIndex(([it]) => it === by)].firstChild.focus();
    };
    const order = isSorted ? (this.sort.isUp ? "ascending" : "descending") : "none";
    return h("th", { scope: "col", "aria-sort": order }, button(text + arrow, press));
  }

  draw() {
    const files = this.hooks.hottest(MOST_ROWS);
    const { by, isUp } = this.sort;
    const value = VALUES[by];
    if (by !== "heat" || isUp)
      files.sort((a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0) * (isUp ? 1 : -1));
    keyed(
      this.body,
      files,
      (file) => file.path,
      (file) => this.row(file),
      (el, file) => this.fillRow(el, file),
    );
  }

  row(file) {
    const pick = button(line(baseName(file.path)), () => this.hooks.pick(file.path), {
      class: "plain path",
      title: line(file.path),
    });
    return h("tr", null, h("th", { scope: "row" }, pick), h("td"), h("td"), h("td"), h("td"));
  }

  fillRow(el, file) {
    const agents = [...new Set(file.touches.map((it) => it.agent))];
    const words = this.hooks
      .wordsFor(file.path)
      .filter((it) => it !== "several agents" && it !== SAID[file.action]);
    const [, heat, who, last, when] = el.children;
    el.setAttribute("aria-selected", String(file.path === this.hooks.picked()));
    if (!heat.firstChild) fill(heat, h("meter", { min: 0, max: 1, "aria-label": "heat" }), h("span"));
    heat.firstChild.value = file.heat;
    setText(heat.lastChild, file.heat.toFixed(2));
    if (who.dataset.look !== agents.join()) ((who.dataset.look = agents.join()), fill(who, whoOf(agents)));
    setText(last, [line(file.action), ...words].join(", "));
    setText(when, ago(file.at).replace(" ago", ""));
  }
}

/** The agents of a row: two by name, more by their marks. */
function whoOf(agents) {
  const short = agents.length > 2 ? "short" : "";
  return h(
    "span",
    { class: short, title: short && agents.map(line).join(", ") },
    agents.slice(0, 8).map((it) => [agentName(it), " "]),
  );
}
