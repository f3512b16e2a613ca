// Owns the table beside the map, which says the same in words: the files that agents touched or that wait, and the folders
// that can be opened.

import { button, fill, h, keyed, setText } from "../dom.js";
import { ago, baseName, clock, counted, cut, line, lookup } from "../format.js";
import { icon } from "../icons.js";
import { walk } from "../keys.js";
import { agentName } from "../marks.js";

/** Files of the table, and folders. */
const MOST_ROWS = 60;
const MOST_FOLDERS = 60;
/** Agents of a row, and letters of a path. */
const MOST_AGENTS = 8;
const LONGEST = 300;
/** The table is sorted anew at most this often. */
const EVERY_MS = 500;

const HEADS = [
  ["path", "File"],
  ["agents", "Agents"],
  ["what", "What"],
  ["at", "When"],
];
const VALUES = {
  path: (it) => it.path,
  agents: (it) => it.agents.join(),
  what: (it) => it.signs.join(),
  at: (it) => it.at,
};

/** Signs of a row: the icon, and its words. */
const SIGNS = lookup({
  overlap: ["warn", "two agents on one symbol"],
  waits: ["wait", "waits for a decision"],
  blocked: ["cross", "was refused"],
  allowed: ["check", "was allowed"],
  edit: ["edit", "edited"],
  read: ["read", "read"],
  search: ["search", "searched"],
  given: ["message", "named in a prompt"],
  context: ["think", "in an agent's context"],
});

/**
 * @typedef {{path: string, agents: string[], signs: string[], at: number}} Row
 */
export class HotTable {
  /**
   * @param {{rows: (most: number) => Row[], pick: (path: string) => void, picked: () => string | null,
   *   folders: () => {path: string, files: number, isOpen: boolean}[], toggle: (path: string) => void,
   *   isSeen: () => boolean, now: () => number}} hooks
   */
  constructor(hooks) {
    this.hooks = hooks;
    this.sort = { by: "at", isUp: false };
    this.timer = 0;
    this.body = h("tbody");
    this.folders = h("tbody", { class: "folders" });
    this.heads = h("tr");
    this.none = h("p", { class: "hint", hidden: true }, "No agent has touched a file yet.");
    this.element = h(
      "div",
      { class: "hot" },
      h(
        "table",
        { on: { keydown: (event) => this.key(event) } },
        h("caption", { class: "hidden" }, "The files that agents touched, the latest first, and the folders that can be opened"),
        h("thead", null, this.heads),
        this.body,
        this.folders,
      ),
      this.none,
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
    const rows = this.hooks.rows(MOST_ROWS);
    const { by, isUp } = this.sort;
    const value = VALUES[by];
    const isBefore = (a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0);
    rows.sort((a, b) => isBefore(a, b) * (isUp ? 1 : -1) || (a.path < b.path ? -1 : 1));
    this.none.hidden = rows.length > 0;
    keyed(
      this.body,
      rows,
      (row) => row.path,
      (row) => this.row(row),
      (el, row) => this.fillRow(el, row),
    );
    keyed(
      this.folders,
      this.hooks.folders().slice(0, MOST_FOLDERS),
      (folder) => folder.path,
      (folder) => this.folderRow(folder),
      (el, { files, isOpen }) => {
        el.querySelector("button").setAttribute("aria-expanded", String(isOpen));
        setText(el.lastChild, `${counted(files, "file")}${isOpen ? "" : ", folded"}`);
      },
    );
  }

  folderRow({ path }) {
    const press = button("", () => this.hooks.toggle(path), { class: "plain path fold", data: { folder: path } });
    fill(press, icon("right"), path ? `${cut(line(path), LONGEST)}/` : "The workspace");
    return h("tr", null, h("th", { scope: "row" }, press), h("td", { colspan: 3 }));
  }

  /** Up and down go from row to row; on a folder right opens it, and left folds it. */
  key(event) {
    const { key, target } = event;
    const by = { ArrowDown: 1, ArrowUp: -1 }[key];
    const isOpen = target.getAttribute("aria-expanded");
    const isToggle = isOpen !== null && isOpen === { ArrowRight: "false", ArrowLeft: "true" }[key];
    if (by) walk(this.element.querySelectorAll("tbody button"), by);
    else if (isToggle) target.click();
    else return;
    event.preventDefault();
  }

  row({ path }) {
    const shown = cut(line(path), LONGEST);
    const name = baseName(shown);
    const pick = button("", () => this.hooks.pick(path), { class: "plain path" });
    fill(pick, h("span", { class: "dim" }, shown.slice(0, shown.length - name.length)), h("wbr"), name);
    return h("tr", null, h("th", { scope: "row" }, pick), h("td"), h("td"), h("td", null, h("time")));
  }

  fillRow(el, { path, agents, signs, at }) {
    const [, who, what, when] = el.children;
    el.setAttribute("aria-selected", String(path === this.hooks.picked()));
    if (who.dataset.look !== agents.join("\n")) ((who.dataset.look = agents.join("\n")), fill(who, whoOf(agents)));
    if (what.dataset.look !== signs.join()) ((what.dataset.look = signs.join()), fill(what, signs.map(signOf)));
    setText(when.firstChild, ago(at, this.hooks.now()).replace(" ago", ""));
    if (when.dataset.at === String(at)) return;
    when.dataset.at = String(at);
    when.firstChild.title = clock(at);
  }
}

function signOf(sign) {
  const [name, words] = SIGNS[sign];
  return h("span", { class: `sign ${sign}`, title: words }, icon(name, words));
}

/** The agents of a row: one by name, more by their marks. */
function whoOf(agents) {
  const short = agents.length > 1 ? "short" : "";
  const title = agents.slice(0, MOST_AGENTS).map(line).join(", ");
  return h(
    "span",
    { class: short, title },
    agents.slice(0, MOST_AGENTS).map((it) => [agentName(it), " "]),
  );
}
