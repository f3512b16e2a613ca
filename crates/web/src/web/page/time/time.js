// Owns the view of what was: which of its parts is shown.

import { fill, h } from "../dom.js";
import { Blame } from "./blame.js";
import { Changes } from "./changes.js";
import { Cost } from "./cost.js";
import { History } from "./history.js";
import { Replay } from "./replay.js";

export class TimeView {
  constructor(app) {
    this.element = document.getElementById("time");
    this.parts = {
      replay: new Replay(app),
      history: new History(app),
      changes: new Changes(app),
      blame: new Blame(app),
      cost: new Cost(app),
    };
    const titles = { replay: "Replay", history: "History", changes: "Changes", blame: "Blame", cost: "Cost" };
    this.links = Object.entries(titles).map(([name, title]) =>
      h("a", { href: `#time/${name}`, data: { part: name } }, title),
    );
    fill(
      this.element,
      h("nav", { class: "parts", "aria-label": "Parts of Time" }, this.links),
      Object.values(this.parts).map((part) => part.element),
    );
    this.part = null;
  }

  show([name, ...rest]) {
    const shown = this.parts[name] ? name : (this.last ?? "replay");
    this.last = shown;
    for (const [it, part] of Object.entries(this.parts)) part.element.hidden = it !== shown;
    for (const link of this.links) {
      if (link.dataset.part === shown) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    if (this.part !== this.parts[shown]) this.part?.hide?.();
    this.part = this.parts[shown];
    this.part.show(rest);
  }

  hide() {
    this.part?.hide?.();
    this.part = null;
  }

  update(dirty) {
    this.part?.update?.(dirty);
  }

  key(key) {
    return this.part?.key?.(key) ?? false;
  }
}
