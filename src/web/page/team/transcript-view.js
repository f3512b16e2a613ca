// Owns how a transcript is shown: the last blocks, earlier ones where the reader asks for them, and
// the place where the reader is.

import { button, fill, h } from "../dom.js";
import { counted, line, lookup } from "../format.js";
import { compare } from "../diff.js";
import { diffView } from "../diff-view.js";

/** Blocks that are shown at first, and that come with each look further up. */
const PAGE = 150;
/** Blocks that are elements at once. */
const MOST_SHOWN = 1_200;
/** Pixels from the end within which the reader is at the end. */
const END = 24;

export class TranscriptView {
  constructor() {
    this.list = h("ol", { class: "blocks" });
    this.top = button("Show what came before", () => this.up(), { class: "more", hidden: true });
    this.note = h("p", { class: "dim dropped", hidden: true });
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
    this.from = Infinity;
    this.shown = new Map();
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
    const { blocks } = transcript;
    if (this.following) this.from = blocks.length > PAGE ? blocks[blocks.length - PAGE].n : -Infinity;
    else if (this.shown.size > MOST_SHOWN) return this.tell(transcript);
    const part = blocks.filter((it) => it.n >= this.from);
    this.put(part);
    this.top.hidden = part.length === blocks.length;
    this.note.hidden = !transcript.dropped;
    if (transcript.dropped)
      this.note.textContent = `${counted(transcript.dropped, "earlier block")} left this page; the journal has them (Time, History).`;
    if (!blocks.length && !this.list.childElementCount)
      fill(
        this.list,
        h(
          "li",
          { class: "empty" },
          transcript.earlier === "asked" ? "Reading the journal …" : "Nothing was said yet.",
        ),
      );
    if (this.following) this.scroll.scrollTop = this.scroll.scrollHeight;
    this.tell(transcript);
  }

  put(part) {
    const keep = new Set(part.map((it) => it.n));
    for (const [n, it] of this.shown) if (!keep.has(n)) (it.el.remove(), this.shown.delete(n));
    if (!this.shown.size) fill(this.list);
    let place = this.list.firstElementChild;
    for (const block of part) {
      let it = this.shown.get(block.n);
      if (!it) this.shown.set(block.n, (it = { el: h("li"), version: -1 }));
      if (it.el === place) place = place.nextElementSibling;
      else this.list.insertBefore(it.el, place);
      if (it.version !== block.version) {
        drawBlock(it.el, block);
        it.version = block.version;
      }
    }
  }

  /** Says how much is new below. */
  tell(transcript) {
    const last = transcript.blocks.at(-1)?.n ?? 0;
    if (this.following) this.seen = last;
    const fresh = last - this.seen;
    this.fresh.hidden = this.following || fresh <= 0;
    this.fresh.textContent = `↓ ${fresh} new`;
  }

  scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroll;
    const wasFollowing = this.following;
    this.following = scrollHeight - scrollTop - clientHeight < END;
    if (!this.transcript) return;
    if (this.following && !wasFollowing) this.redraw(this.transcript);
    this.tell(this.transcript);
  }

  follow() {
    this.following = true;
    if (this.transcript) this.redraw(this.transcript);
    this.scroll.scrollTop = this.scroll.scrollHeight;
  }

  up() {
    const { blocks } = this.transcript;
    const at = blocks.findIndex((it) => it.n >= this.from);
    this.following = false;
    const height = this.scroll.scrollHeight - this.scroll.scrollTop;
    this.from = blocks[Math.max(0, at - PAGE)].n;
    this.redraw(this.transcript);
    this.scroll.scrollTop = this.scroll.scrollHeight - height;
  }
}

function drawBlock(el, block) {
  el.className = `block block-${block.kind}${block.isBad ? " bad" : ""}`;
  if (block.kind === "call") return drawCall(el, block.call);
  if (block.kind === "thought") return drawThought(el, block);
  if (block.place) return drawTurn(el, block);
  const node = el.firstChild?.firstChild;
  // A message that grows is not built anew: a selection in it stays.
  if (node instanceof Text && block.text.startsWith(node.data))
    node.appendData(block.text.slice(node.data.length));
  else fill(el, h("div", { class: "text" }, block.text));
}

/** The end of a turn leads to what it changed. */
function drawTurn(el, { text, place }) {
  const href = `#time/changes/${[place.agent, place.session, place.turn].map(encodeURIComponent).join("/")}`;
  fill(el, h("span", { class: "text" }, text), " · ", h("a", { href }, `changes of turn ${place.turn}`));
}

function drawThought(el, block) {
  const first = block.text.trimStart().split("\n", 1)[0].slice(0, 160);
  const open = el.querySelector("details")?.open ?? false;
  fill(
    el,
    h(
      "details",
      { open },
      h("summary", null, "thought: ", h("span", { class: "dim" }, first)),
      h("div", { class: "text" }, block.text),
    ),
  );
}

const CALL_MARKS = lookup({
  completed: "✓",
  failed: "✗",
  cancelled: "✗",
  in_progress: "…",
  pending: "…",
  unfinished: "✗",
});

/** A tool call is folded; what is in it is built when it is opened. */
function drawCall(el, call) {
  const open = el.querySelector("details")?.open ?? false;
  const diffs = call.parts
    .filter((part) => part.kind === "diff")
    .map((part) => compare(part.path, part.before, part.after));
  const sum = (name) => diffs.reduce((all, it) => all + it[name], 0);
  const head = h(
    "summary",
    null,
    h(
      "span",
      {
        class: `sign tone-${call.status === "completed" ? "good" : call.status === "failed" ? "bad" : "busy"}`,
        role: "img",
        "aria-label": call.status || "pending",
      },
      CALL_MARKS[call.status] ?? "…",
    ),
    call.kind && h("span", { class: "kind" }, call.kind),
    h("span", { class: "title" }, line(call.title || call.places[0] || "a tool call")),
    diffs.length > 0 && [
      h("span", { class: "plus" }, `+${sum("added")}`),
      h("span", { class: "minus" }, `−${sum("removed")}`),
    ],
  );
  const body = h("div", { class: "call-body" });
  const build = () => {
    if (!details.open || body.childNodes.length) return;
    fill(
      body,
      call.places.length > 0 && h("p", { class: "dim places" }, call.places.map(line).join(", ")),
      diffs.length > 0 && diffView(diffs),
      call.parts
        .filter((part) => part.kind === "text")
        .map((part) => h("pre", null, part.text, part.isCut && "\n… cut here")),
    );
    if (!body.childNodes.length) fill(body, h("p", { class: "dim" }, "nothing more is reported"));
  };
  const details = h("details", { open, on: { toggle: build } }, head, body);
  fill(el, details);
  build();
}
