// Owns the view of what changed: which there is to look at, on the left, and one branch or one agent's changes beside it.

import { fill, h, setText } from "../dom.js";
import { BranchList } from "./branches.js";
import { BranchPanel } from "./branch.js";
import { Changes } from "./changes.js";

export class ReviewView {
  constructor(app) {
    this.app = app;
    this.element = document.getElementById("review");
    this.list = new BranchList(app, (branches) => this.branch.listed(branches));
    this.branch = new BranchPanel(app, () => this.list.read());
    this.changes = new Changes(app);
    this.title = h("h2", { class: "clip" });
    const back = h("a", { class: "button quiet back", href: "#review", "aria-label": "Back to the list" }, "←");
    this.head = h("div", { class: "row head" }, back, this.title);
    this.panel = h("section", { class: "panel", "aria-label": "What changed" }, this.head, this.branch.element, this.changes.element);
    fill(this.element, h("div", { class: "side" }, this.list.element), this.panel);
  }

  show([name, ...rest]) {
    const isBranch = name === "branch" && rest.length > 0;
    const isChosen = isBranch || name === "changes";
    this.element.classList.toggle("has-one", isChosen);
    this.branch.element.hidden = !isBranch;
    this.changes.element.hidden = isBranch;
    setText(this.title, isBranch ? rest.join("/") : "Changes of the agents");
    this.list.select(isBranch ? rest.join("/") : "", name === "changes" ? (rest[0] ?? "") : isBranch ? null : "");
    this.list.show();
    if (isBranch) this.branch.show(rest.join("/"));
    else this.changes.show(name === "changes" ? rest : []);
  }

  update(dirty) {
    this.list.update(dirty);
    if (this.branch.element.hidden) this.changes.update(dirty);
    else this.branch.update(dirty);
  }

  scoped() {
    this.branch.scoped();
  }

  key(key) {
    if (key === "Escape" && this.element.classList.contains("has-one")) return ((location.hash = "review"), true);
    return this.branch.element.hidden ? this.changes.key(key) : this.branch.key(key);
  }
}
