// Owns how a transcript is shown: a window of its blocks, and the place where the reader is.

import { button, fill, h, setText } from "../dom.js";
import { drawBlock } from "./block-view.js";

/** Blocks that are shown at first, and that come with each look further up or down. */
const PAGE = 150;
/** Blocks that are elements at once. */
const MOST_SHOWN = 600;
/** Pixels from the end within which the reader is at the end. */
const END = 24;

export class TranscriptView {
  /** @param {{earlier: () => Promise<void>, again: () => void}} asks for what the journal has */
  constructor(asks) {
    this.asks = asks;
    this.list = h("ol", { class: "blocks" });
    this.top = button("Show what came before", () => this.up(), { class: "more", hidden: true });
    this.note = h("p", { class: "dim dropped", role: "status", hidden: true });
    this.bottom = button("Show what came after", () => this.down(), { class: "more", hidden: true });
    this.scroll = h(
      "div",
      {
        class: "scroll",
        tabindex: "0",
        role: "log",
        "aria-live": "off",
        "aria-label": "Transcript",
        on: { scroll: () => this.scrolled() },
      },
      this.note,
      this.top,
      this.list,
      this.bottom,
    );
    this.fresh = button("", () => this.follow(), { class: "fresh", hidden: true });
    this.element = h("div", { class: "transcript" }, this.scroll, this.fresh);
    this.show(null);
  }

  /** Shows another transcript, from its end. */
  show(transcript) {
    this.isDirty = true;
    this.following = true;
    /** The number of the last block that the reader saw. */
    this.seen = 0;
    /** The number of the first block that is shown. */
    this.first = -Infinity;
    this.shown = new Map();
    this.transcript = transcript;
    fill(this.list);
    if (transcript) this.draw(transcript);
  }

  redraw(transcript) {
    this.isDirty = true;
    this.draw(transcript);
  }

  draw(transcript) {
    if (!this.isDirty || !transcript) return;
    this.isDirty = false;
    this.transcript = transcript;
    const all = transcript.all();
    const begin = this.begin(all);
    const part = all.slice(begin, begin + MOST_SHOWN);
    this.first = part[0]?.n ?? -Infinity;
    this.isCut = begin + part.length < all.length;
    const place = this.following ? null : this.place();
    this.put(part);
    this.ends(transcript, begin);
    if (!all.length) this.nothing(transcript);
    if (this.following) this.scroll.scrollTop = this.scroll.scrollHeight;
    else this.back(place);
    this.tell(transcript);
  }

  /** Where the window begins. */
  begin(all) {
    const end = Math.max(0, all.length - PAGE);
    if (this.following) return end;
    const at = all.findIndex((it) => it.n >= this.first);
    return at < 0 ? end : at;
  }

  put(part) {
    const keep = new Set(part.map((it) => it.n));
    for (const [n, it] of this.shown) if (!keep.has(n)) (it.el.remove(), this.shown.delete(n));
    if (!this.shown.size) fill(this.list);
    let place = this.list.firstElementChild;
    for (const block of part) {
      let it = this.shown.get(block.n);
      if (!it) this.shown.set(block.n, (it = { el: h("li"), block: null, version: -1 }));
      if (it.el === place) place = place.nextElementSibling;
      else this.list.insertBefore(it.el, place);
      if (it.version !== block.version || it.block !== block) {
        drawBlock(it.el, block, this.asks.again);
        Object.assign(it, { block, version: block.version });
      }
    }
  }

  /** What is at the ends of the window: more, or the word that there is no more. */
  ends({ past }, begin) {
    const isAsked = past.state === "asked";
    this.top.hidden = !begin && !(past.hasMore && past.before);
    // A button that is disabled would lose the focus.
    this.top.setAttribute("aria-disabled", String(isAsked));
    setText(this.top, isAsked && !begin ? "Reading the journal …" : "Show what came before");
    const note =
      past.state === "failed"
        ? `The journal was not read: ${past.why}`
        : begin
          ? ""
          : past.state === "none"
            ? "The team keeps no journal: what was said before this page was opened is not here."
            : past.state === "there" && past.before === null
              ? "The journal begins here."
              : "";
    this.note.hidden = !note;
    setText(this.note, note);
    this.bottom.hidden = !this.isCut;
  }

  nothing({ past }) {
    const text = past.state === "asked" ? "Reading the journal …" : "Nothing was said yet.";
    if (this.list.textContent !== text) fill(this.list, h("li", { class: "empty" }, text));
  }

  /** The first block that is seen, and where it is. */
  place() {
    const top = this.scroll.getBoundingClientRect().top;
    const all = this.list.children;
    let [low, high] = [0, all.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (all[middle].getBoundingClientRect().bottom > top) high = middle;
      else low = middle + 1;
    }
    const el = all[low];
    return el ? { el, top: el.getBoundingClientRect().top } : null;
  }

  /** Scrolls to where the reader was. */
  back(place) {
    if (!place?.el.isConnected) return;
    this.scroll.scrollTop += place.el.getBoundingClientRect().top - place.top;
  }

  /** Says how much is new below. */
  tell(transcript) {
    const last = transcript.blocks.at(-1)?.n ?? 0;
    if (this.following) this.seen = last;
    const fresh = last - this.seen;
    this.fresh.hidden = this.following || (fresh <= 0 && !this.isCut);
    setText(this.fresh, fresh > 0 ? `↓ ${fresh} new` : "↓ to the end");
  }

  scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroll;
    const wasFollowing = this.following;
    this.following = !this.isCut && scrollHeight - scrollTop - clientHeight < END;
    if (!this.transcript) return;
    if (this.following && !wasFollowing) this.redraw(this.transcript);
    this.tell(this.transcript);
  }

  follow() {
    this.following = true;
    if (this.transcript) this.redraw(this.transcript);
    this.scroll.scrollTop = this.scroll.scrollHeight;
  }

  async up() {
    const { transcript } = this;
    this.following = false;
    if (transcript.all()[0]?.n === this.first || this.first === -Infinity) {
      if (transcript.past.state === "asked") return;
      await this.asks.earlier();
      // Meanwhile another one may be shown, or the reader went to its end.
      if (transcript !== this.transcript || this.following) return;
    }
    this.move(-PAGE);
  }

  down() {
    this.move(PAGE);
  }

  move(by) {
    const all = this.transcript.all();
    const at = all.findIndex((it) => it.n >= this.first);
    this.first = all[Math.max(0, Math.min(all.length - 1, at + by))]?.n ?? -Infinity;
    this.redraw(this.transcript);
  }
}
