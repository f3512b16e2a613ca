// Owns how one block of a transcript is drawn.

import { button, fill, h } from "../dom.js";
import { line, lookup, turnName } from "../format.js";
import { compare } from "../diff.js";
import { diffView } from "../diff-view.js";

/** Draws a block; `again` reads the transcript anew, for blocks that say that something is missing. */
export function drawBlock(el, block, again) {
  el.className = `block block-${block.kind}${block.isBad ? " bad" : ""}`;
  if (block.kind === "call") return drawCall(el, block.call);
  if (block.kind === "thought") return drawThought(el, block);
  if (block.place) return drawTurn(el, block);
  if (block.isAgain)
    return fill(el, h("span", { class: "text" }, block.text), " ", button("Read it from the journal", again));
  const node = el.firstChild?.firstChild;
  // A message that grows is not built anew: a selection in it stays.
  if (node instanceof Text && block.text.startsWith(node.data))
    node.appendData(block.text.slice(node.data.length));
  else fill(el, h("div", { class: "text" }, block.text));
}

/** The end of a turn leads to what it changed. */
function drawTurn(el, { text, place }) {
  const link = h("a", { href: changesOf(place) }, `changes of the ${turnName(place.turn)}`);
  fill(el, h("span", { class: "text" }, text), " · ", link);
}

/** Where the changes of a turn are shown. */
export function changesOf({ agent, session, turn }) {
  return `#time/changes/${[agent, session, turn].map(encodeURIComponent).join("/")}`;
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
  const isPartly = call.status === "completed" && call.refused?.size > 0;
  const tone = call.status === "completed" ? "good" : call.status === "failed" ? "bad" : "busy";
  const head = h(
    "summary",
    null,
    h(
      "span",
      {
        class: `sign tone-${isPartly ? "busy" : tone}`,
        role: "img",
        "aria-label": isPartly ? "completed, a part was refused" : call.status || "pending",
      },
      isPartly ? "!" : (CALL_MARKS[call.status] ?? "…"),
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
