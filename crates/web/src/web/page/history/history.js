// Owns the view of what was: which of its parts is shown.

import { fill, h } from "../dom.js";
import { icon } from "../icons.js";
import { Blame } from "./blame.js";
import { Cost } from "./cost.js";
import { Replay } from "./replay.js";
import { Search } from "./search.js";
import { Turns } from "./turns.js";

/** The parts, with their icons. */
const TITLES = {
  turns: ["history", "Turns"],
  search: ["search", "Search"],
  replay: ["play", "Replay"],
  blame: ["person", "Blame"],
  cost: ["plan", "Cost"],
};

export class HistoryView {
  constructor(app) {
    this.element = document.getElementById("history");
    this.parts = {
      turns: new Turns(app),
      search: new Search(app),
      replay: new Replay(app),
      blame: new Blame(app),
      cost: new Cost(app),
    };
    this.links = Object.entries(TITLES).map(([name, [image, title]]) =>
      h("a", { href: `#history/${name}`, data: { part: name } }, icon(image), title),
    );
    fill(
      this.element,
      h("nav", { class: "parts", "aria-label": "Parts of the history" }, this.links),
      Object.values(this.parts).map((part) => part.element),
    );
    this.part = null;
  }

  show([name, ...rest]) {
    const shown = Object.hasOwn(this.parts, name ?? "") ? name : "turns";
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

  /** Hears of each change at once. */
  heard(topic, line) {
    this.part?.heard?.(topic, line);
  }

  update(dirty) {
    this.part?.update?.(dirty);
  }

  key(key) {
    return this.part?.key?.(key) ?? false;
  }
}
