// Owns how a transcript is shown: a window of its blocks, and the place where the reader is.

import { button, fill, h, setText } from "../dom.js";
import { icon } from "../icons.js";
import { drawBlock, drawFold, planLine, planList, rowOf } from "./block-view.js";
import { folded } from "./blocks.js";
import { Find, highlight } from "./find.js";

/** Blocks that are shown at first, and that come with each look further up or down. */
const PAGE = 150;
/** Blocks that are elements at once. */
const MOST_SHOWN = 600;
/** A message that grows is drawn this often, and seldom if it is long: it may take one part of the time in so many. */
const GROWN_MS = 100;
const SHARE = 15;
/** Blocks above a hit that come with it. */
const ABOVE_HIT = 20;
/** Entries of a plan that is open by itself. */
const SHORT_PLAN = 6;
/** Pixels from the end within which the reader is at the end. */
const END = 24;

/** Blocks that go on while an agent speaks. */
const GROWING = new Set(["message", "thought"]);

const newItem = (isFold) => ({ el: h("li"), isFold, blocks: [], versions: [], drawnAt: 0, took: 0 });

export class TranscriptView {
  /** @param {{app?: Object, earlier: () => Promise<void>, again: () => void}} asks for what the journal has */
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
    // What stands around it grows, too: the prompt box, its menus, the plan.
    new ResizeObserver(() => this.following && this.toEnd()).observe(this.scroll);
    this.fresh = button("", () => this.follow(), { class: "fresh", hidden: true });
    this.plan = h("div", { class: "plan", hidden: true });
    this.find = new Find(this);
    this.element = h(
      "div",
      { class: "transcript", on: { keydown: (event) => this.pressed(event) } },
      this.find.element,
      this.plan,
      h("div", { class: "window" }, this.scroll, this.fresh, this.find.opener),
    );
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
    /** By block: the item that shows it, which may be a fold of several. */
    this.shown = new Map();
    this.transcript = transcript;
    /** Where a search is. */
    this.hitEl = null;
    this.planned = null;
    fill(this.plan);
    this.find.close();
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
    this.showPlan(all);
    this.ends(transcript, begin);
    if (!all.length) this.nothing(transcript);
    if (this.following) this.toEnd();
    else this.back(place);
    this.tell(transcript);
  }

  toEnd() {
    this.scroll.scrollTop = this.scroll.scrollHeight;
  }

  /** Where the window begins. */
  begin(all) {
    const end = Math.max(0, all.length - PAGE);
    if (this.following) return end;
    const at = all.findIndex((it) => it.n >= this.first);
    return at < 0 ? end : at;
  }

  put(part) {
    const shown = new Map();
    const items = folded(part, (block) => this.isHeld(block)).map((blocks) => {
      const isFold = blocks.length > 1;
      // A fold that has grown, at its end or at its begin, is the same one.
      const known = blocks.map((block) => this.shown.get(block.n));
      const it = known.find((old) => old?.isFold === isFold && !shown.has(old)) ?? newItem(isFold);
      shown.set(it, blocks);
      return it;
    });
    const keep = new Set(items.map((it) => it.el));
    for (const el of [...this.list.children]) if (!keep.has(el)) el.remove();
    let place = this.list.firstElementChild;
    this.shown = new Map();
    for (const it of items) {
      if (it.el === place) place = place.nextElementSibling;
      else this.list.insertBefore(it.el, place);
      const blocks = shown.get(it);
      for (const block of blocks) this.shown.set(block.n, it);
      this.update(it, blocks);
    }
    this.hitEl?.classList.add("hit");
  }

  /** Draws an item, if it looks different. */
  update(it, blocks) {
    const isSame = (block, at) => block === it.blocks[at] && block.version === it.versions[at];
    if (blocks.length === it.blocks.length && blocks.every(isSame)) return;
    const now = performance.now();
    const isGrown = blocks[0] === it.blocks[0] && GROWING.has(blocks[0].kind);
    if (isGrown && now - it.drawnAt < Math.max(GROWN_MS, it.took * SHARE)) return this.later();
    if (it.isFold) drawFold(it.el, blocks, this.asks);
    else drawBlock(it.el, blocks[0], this.asks);
    it.el.dataset.n = blocks[0].n;
    const versions = blocks.map((block) => block.version);
    Object.assign(it, { blocks, versions, drawnAt: now, took: performance.now() - now });
  }

  later() {
    this.timer ||= setTimeout(() => {
      this.timer = 0;
      if (this.transcript) this.redraw(this.transcript);
    }, GROWN_MS);
  }

  /** Whether the reader has a block open, or the focus in it: it is not folded away. */
  isHeld({ n }) {
    const it = this.shown.get(n);
    if (!it || it.isFold) return false;
    return Boolean(it.el.querySelector("details[open]")) || it.el.contains(document.activeElement);
  }

  /** The newest plan of the turn that runs stays in sight. */
  showPlan(all) {
    let at = all.length - 1;
    while (at >= 0 && all[at].kind !== "turn" && all[at].kind !== "plan") at -= 1;
    const block = all[at]?.kind === "plan" ? all[at] : null;
    this.plan.hidden = !block;
    if (!block || (this.planned?.block === block && this.planned.version === block.version)) return;
    this.planned = { block, version: block.version };
    const list = planList(block);
    const isShort = list.children.length <= SHORT_PLAN && innerWidth > 760;
    const open = this.plan.firstElementChild?.open ?? isShort;
    fill(this.plan, h("details", { open }, h("summary", null, icon("right"), planLine(block)), list));
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
    return el ? { el, n: Number(el.dataset.n), top: el.getBoundingClientRect().top } : null;
  }

  /** Scrolls to where the reader was. */
  back(place) {
    // It may be in a fold by now.
    const el = place?.el.isConnected ? place.el : this.shown.get(place?.n)?.el;
    if (el) this.scroll.scrollTop += el.getBoundingClientRect().top - place.top;
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

  /** Shows a block that a search found, with the words in it. */
  reach(n, words) {
    const all = this.transcript.all();
    const at = all.findIndex((it) => it.n === n);
    if (at < 0) return;
    this.following = false;
    if (!this.shown.has(n)) this.first = all[Math.max(0, at - ABOVE_HIT)].n;
    this.redraw(this.transcript);
    const el = rowOf(this.shown.get(n).el, n);
    const details = el.querySelector(":scope > details");
    const isSeen = details?.firstChild.textContent.toLowerCase().includes(words);
    if (details && !isSeen) details.open = true;
    this.leave();
    this.hitEl = el;
    el.classList.add("hit");
    el.scrollIntoView({ block: "center" });
    // What a fold has is built when it has opened.
    requestAnimationFrame(() => highlight(el, words));
  }

  leave() {
    this.hitEl?.classList.remove("hit");
    this.hitEl = null;
    highlight(null, "");
  }

  pressed(event) {
    const { key, target } = event;
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || target.matches("input")) return;
    if (this.key(key)) event.preventDefault();
  }

  /** `/` searches here, `n` and `N` go from hit to hit. */
  key(key) {
    if (key === "/") return (this.find.open(), true);
    if (this.find.element.hidden || (key !== "n" && key !== "N")) return false;
    this.find.step(key === "n" ? 1 : -1);
    return true;
  }
}
