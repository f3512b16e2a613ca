// Owns how a file of a review looks: its hunks in one column or side by side, what is behind each, and what can be said.

import { button, fill, h } from "../dom.js";
import { ago, cut, line, plain, turnName } from "../format.js";
import { colouredLines } from "../code.js";
import { icon } from "../icons.js";
import { agentName } from "../marks.js";
import { sides, unified } from "./side.js";

/** Lines of a hunk that are shown at first, and with each further look. */
const PAGE = 300;
/** Characters of a line. */
const LONGEST_LINE = 2_000;
/** Files with more lines are folded at first. */
const LONG_FILE = 600;
/** Characters of a comment. */
const LONGEST_COMMENT = 8_000;

const SIGNS = { added: "new", removed: "removed", changed: "" };

/** A file with its hunks. */
export function fileView(file, hooks) {
  const lines = file.hunks.reduce((all, hunk) => all + hunk.lines.length, 0);
  const isAccepted = file.hunks.length > 0 && file.hunks.every((hunk) => hunk.is_accepted);
  const isNew = file.hunks.some((hunk) => hunk.is_new);
  const isOpen = lines <= LONG_FILE && !isAccepted;
  const toggle = h(
    "button",
    { type: "button", class: "plain fold row", "aria-expanded": String(isOpen), on: { click: () => turn() } },
    icon("right"),
    h("span", { class: "path" }, line(file.path)),
    h("span", { class: "plus" }, `+${file.added}`),
    h("span", { class: "minus" }, `−${file.removed}`),
    SIGNS[file.status] && h("span", { class: "tag" }, SIGNS[file.status]),
    isNew && h("span", { class: "tag tone-busy" }, "since the last look"),
    isAccepted && h("span", { class: "tag tone-good" }, icon("check"), "accepted"),
  );
  const body = h("div", { hidden: !isOpen });
  const build = () => {
    if (body.hidden || body.childNodes.length) return;
    fill(body, file.hunks.length ? file.hunks.map((hunk) => hunkView(file, hunk, hooks)) : h("p", { class: "hint" }, "It has no lines that could be shown."));
  };
  const turn = () => {
    body.hidden = !body.hidden;
    toggle.setAttribute("aria-expanded", String(!body.hidden));
    build();
  };
  build();
  return h(
    "section",
    { class: "file-diff", "aria-label": line(file.path) },
    h(
      "div",
      { class: "file-head row" },
      toggle,
      h("span", { class: "grow" }),
      hooks.may && !isAccepted && act("check", "Accept the file", () => hooks.decide(file.path, "accept")),
      hooks.may && act("undo", "Take the file back …", () => hooks.decide(file.path, "revert")),
    ),
    body,
  );
}

function act(name, title, press, data) {
  return fill(button("", press, { class: "quiet icon-only", title, "aria-label": title, data }), icon(name));
}

function hunkView(file, hunk, hooks) {
  const body = h("div", { class: hooks.isSplit ? "lines split" : "lines" });
  let shown = 0;
  const rows = hooks.isSplit ? sides(hunk) : unified(hunk);
  const more = button("", () => grow(), { class: "more" });
  const grow = () => {
    const part = rows.slice(shown, shown + PAGE).map((row) => (hooks.isSplit ? splitRow(row) : unifiedRow(row)));
    body.append(...part);
    colourSides(hooks.app, file.path, part);
    shown += PAGE;
    more.hidden = shown >= rows.length;
    more.textContent = `${rows.length - shown} more lines`;
  };
  grow();
  const asking = h("div", { class: "asking" });
  return h(
    "div",
    { data: { id: hunk.id }, class: `hunk${hunk.is_accepted ? " is-accepted" : ""}${hunk.is_new ? " is-new" : ""}`, tabindex: "0", role: "group", "aria-label": `${line(file.path)} ${line(hunk.header)}` },
    h(
      "div",
      { class: "hunk-head row" },
      h("span", { class: "clip" }, line(hunk.header)),
      hunk.is_accepted && h("span", { class: "tag tone-good" }, "accepted"),
      h("span", { class: "grow" }),
      hooks.may && [
        act("comment", "Comment (c)", () => ask(asking, (text) => hooks.comment(hunk.id, text)), { act: "comment" }),
        !hunk.is_accepted && act("check", "Accept (a)", () => hooks.decide(hunk.id, "accept"), { act: "accept" }),
        act("undo", "Take back … (x)", () => hooks.decide(hunk.id, "revert"), { act: "revert" }),
      ],
    ),
    hunk.by.slice(0, 4).map(writer),
    body,
    more,
    hunk.comments.map((comment) =>
      h(
        "p",
        { class: "said-of" },
        icon("comment"),
        h("span", { class: "grow" }, cut(plain(comment.text), LONGEST_COMMENT)),
        h("span", { class: "dim small" }, comment.is_sent ? "sent" : "not sent yet", " · ", ago(comment.said_at_ms)),
      ),
    ),
    asking,
  );
}

/** Who wrote lines of it, and why. */
function writer(it) {
  return h(
    "p",
    { class: "writer small" },
    agentName(it.agent),
    Number.isFinite(it.turn) && h("span", { class: "dim" }, turnName(it.turn)),
    it.prompt && h("span", { class: "clip" }, cut(line(it.prompt), 200)),
    it.call && h("span", { class: "dim clip" }, cut(line(it.call), 100)),
  );
}

/** Asks for a comment below a hunk. */
function ask(box, send) {
  if (box.childElementCount) return box.querySelector("textarea").focus();
  const text = h("textarea", { rows: 2, maxlength: LONGEST_COMMENT, "aria-label": "Comment", placeholder: "What the agent should know or do here …" });
  const close = () => {
    const hunk = form.closest(".hunk");
    form.remove();
    hunk?.focus({ preventScroll: true });
  };
  const go = async () => {
    if (!text.value.trim()) return text.focus();
    if (await send(text.value.trim())) close();
  };
  text.addEventListener("keydown", (event) => {
    if (event.key === "Escape") (close(), event.preventDefault(), event.stopPropagation());
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) go();
  });
  const yes = button("Keep the comment", go, { class: "main", title: "Ctrl+Enter" });
  const form = h("div", { class: "ask" }, text, h("div", { class: "row end" }, button("Back", close), yes));
  fill(box, form);
  text.focus();
}

/** Colours both sides of a diff, each as a text of its own. */
function colourSides(app, path, rows) {
  const lines = (marks) =>
    rows.flatMap((row) =>
      [...row.querySelectorAll("code")]
        .filter((code) => marks.includes(code.parentElement.mark))
        .map((code) => ({ code, text: code.textContent })),
    );
  colouredLines(app, path, lines(["+", " "]));
  colouredLines(app, path, lines(["-"]));
}

const KINDS = { "+": "plus", "-": "minus", " ": "same" };

function lineView(mark, number, text) {
  const el = h(
    "div",
    { class: `line ${KINDS[mark] ?? "none"}` },
    h("span", { class: "no", "aria-hidden": "true" }, number || ""),
    h("span", { class: "sign" }, mark),
    h("code", null, cut(plain(text), LONGEST_LINE)),
  );
  el.mark = mark;
  return el;
}

function unifiedRow({ mark, text, before, after }) {
  return h("div", null, lineView(mark, after || before, text));
}

function splitRow({ left, right }) {
  const half = (it) => (it ? lineView(it.mark, it.before || it.after, it.text) : lineView("", 0, ""));
  return h("div", { class: "pair" }, half(left), half(right));
}
