// Owns the search within a transcript: over the blocks that are here.

import { h, setText } from "../dom.js";
import { icon, iconButton } from "../icons.js";
import { searchText } from "./block-view.js";

/** A search begins so long after a letter. */
const TYPED_MS = 150;
/** Characters of what is searched for. */
const LONGEST_SEARCH = 200;
/** Places in a hit that are marked, about. */
const MOST_MARKED = 200;

/** The search within the blocks that are here. */
export class Find {
  constructor(view) {
    this.view = view;
    this.words = "";
    this.n = null;
    this.timer = 0;
    this.field = h("input", {
      type: "search",
      placeholder: "Find in this transcript",
      "aria-label": "Find in this transcript",
      maxlength: LONGEST_SEARCH,
      on: { input: () => this.typed() },
    });
    this.count = h("span", { class: "dim small", role: "status" });
    this.element = h(
      "div",
      { class: "find", role: "search", hidden: true, on: { keydown: (event) => this.pressed(event) } },
      icon("search"),
      this.field,
      this.count,
      iconButton("up", "Previous (N)", () => this.step(-1)),
      iconButton("down", "Next (n)", () => this.step(1)),
      iconButton("cross", "Close", () => this.close()),
      h("a", { class: "small", href: "#history/search" }, "Search the whole journal in History"),
    );
    const opener = { class: "icon-only opener", "aria-keyshortcuts": "/" };
    this.opener = iconButton("search", "Find in this transcript", () => this.open(), opener);
  }

  open() {
    this.element.hidden = false;
    this.opener.hidden = true;
    this.field.focus();
    this.field.select();
  }

  close() {
    const hadFocus = this.element.contains(document.activeElement);
    clearTimeout(this.timer);
    this.element.hidden = true;
    this.opener.hidden = false;
    this.field.value = this.words = "";
    this.n = null;
    setText(this.count, "");
    this.view.leave();
    if (hadFocus) this.view.scroll.focus({ preventScroll: true });
  }

  pressed(event) {
    if (event.isComposing) return;
    if (event.key === "Escape") this.close();
    else if (event.key === "Enter" && event.target === this.field) this.step(event.shiftKey ? -1 : 1);
    else return;
    event.preventDefault();
  }

  typed() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.step(0), TYPED_MS);
  }

  /** Goes to the next hit, or the one before; 0: the first one from where the reader is. */
  step(by) {
    clearTimeout(this.timer);
    const { view } = this;
    const words = this.field.value.trim().toLowerCase();
    const all = words && view.transcript ? view.transcript.all() : [];
    const hits = all.filter((it) => searchText(it).toLowerCase().includes(words)).map((it) => it.n);
    const isOther = words !== this.words;
    this.words = words;
    if (!hits.length) {
      setText(this.count, words ? "Not found here" : "");
      return view.leave();
    }
    let at = hits.indexOf(this.n);
    if (at < 0 || isOther) {
      const from = at < 0 ? (view.place()?.n ?? 0) : this.n;
      at = hits.findIndex((n) => n >= from);
      if (at < 0) at = hits.length - 1;
    } else at = (at + by + hits.length) % hits.length;
    this.n = hits[at];
    setText(this.count, `${at + 1} of ${hits.length}`);
    view.reach(this.n, words);
  }
}

/** Marks the words in an element, where the browser can do so without other elements. */
export function highlight(el, words) {
  if (!globalThis.Highlight || !CSS.highlights) return;
  const ranges = [];
  const walker = el && words ? document.createTreeWalker(el, NodeFilter.SHOW_TEXT) : null;
  for (let node; ranges.length < MOST_MARKED && (node = walker?.nextNode()); ) {
    const text = node.data.toLowerCase();
    if (text.length !== node.length) continue;
    for (let at = text.indexOf(words); at >= 0; at = text.indexOf(words, at + words.length)) {
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, at + words.length);
      ranges.push(range);
    }
  }
  CSS.highlights.set("found", new Highlight(...ranges));
}
