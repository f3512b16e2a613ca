// Owns how the output of a terminal that a tool call shows is drawn.

import { terminal } from "../ansi.js";
import { button, fill, h, setText } from "../dom.js";
import { counted } from "../format.js";
import { isOpen } from "./blocks.js";

/** The lines of an output that are shown at first: its last ones. */
const FIRST_LINES = 24;

/** Why nothing stands for a terminal. */
export function silence(call, screens) {
  if (screens.some((part) => part.exit)) return "It printed nothing.";
  return isOpen(call) ? "It has printed nothing yet." : "What it printed stayed in the agent's terminal.";
}

/** Whether a text says once more what a terminal printed: some agents send both. */
export function repeats({ text, raw }, printed) {
  const letters = (it) => it.replace(/\u001b\[[0-9;?]*[A-Za-z]|\ufffd|\s/g, "");
  const said = letters(unfenced(raw || text)?.text ?? (raw || text));
  return printed.some((part) => letters(part.output).includes(said));
}

/** By part: the elements that show it. They stay while it prints, and so do the reader's place and the pointer. */
const boxes = new WeakMap();

/** What a terminal printed: the end of it, and all of it when asked for. */
export function screenView(part) {
  let known = boxes.get(part);
  if (!known) {
    const more = button("", () => ((part.isWhole = true), drawScreen(part, known)), { class: "quiet" });
    const note = h("p", { class: "dim" }, "Its beginning is left out: this is the end of what it printed.");
    // Its end is in sight, however long it is.
    const scroll = h("div", { class: "screen-scroll" });
    known = { more, note, scroll, shown: "", box: h("div", { class: "screen" }, more, note, scroll) };
    boxes.set(part, known);
  }
  drawScreen(part, known);
  return known.box;
}

function drawScreen(part, known) {
  const lines = part.output.replace(/\s+$/, "").split("\n");
  const hidden = part.isWhole ? 0 : Math.max(0, lines.length - FIRST_LINES);
  const text = lines.slice(hidden).join("\n");
  known.more.hidden = !hidden;
  setText(known.more, `Show ${counted(hidden, "earlier line")}`);
  known.note.hidden = !part.isCut || hidden > 0;
  if (text !== known.shown) fill(known.scroll, terminal(text));
  known.shown = text;
}

/** The text within a fence, if that is all there is. */
export function unfenced(text) {
  const head = text.indexOf("\n");
  const all = text.trimEnd();
  if (!text.startsWith("```") || head < 0 || !all.endsWith("\n```")) return null;
  return { language: text.slice(3, head).trim(), text: all.slice(head + 1, -4) };
}
