// Owns how a file of a review looks: its hunks in one column or side by side, what is behind each, and what can be said.

import { button, fill, h } from "../dom.js";
import { ago, cut, line, plain, turnName } from "../format.js";
import { colourRows, lineView } from "../diff-view.js";
import { icon, iconButton } from "../icons.js";
import { agentName } from "../marks.js";

/** Lines of a hunk that are shown at first, and with each further look. */
const PAGE = 300;
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
      hooks.may && !isAccepted && iconButton("check", "Accept the file", () => hooks.decide(file.path, "accept")),
      hooks.may && iconButton("undo", "Take the file back …", () => hooks.decide(file.path, "revert")),
    ),
    body,
  );
}

function hunkView(file, hunk, hooks) {
  const body = h("div", { class: hooks.isSplit ? "lines split" : "lines" });
  let shown = 0;
  const rows = hooks.isSplit ? sides(hunk) : unified(hunk);
  const more = button("", () => grow(), { class: "more" });
  const grow = () => {
    const part = rows.slice(shown, shown + PAGE).map((row) => (hooks.isSplit ? splitRow(row) : unifiedRow(row)));
    body.append(...part);
    colourRows(hooks.app, file.path, part);
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
        iconButton("comment", "Comment (c)", () => ask(asking, (text) => hooks.comment(hunk.id, text)), { data: { act: "comment" } }),
        !hunk.is_accepted && iconButton("check", "Accept (a)", () => hooks.decide(hunk.id, "accept"), { data: { act: "accept" } }),
        iconButton("undo", "Take back … (x)", () => hooks.decide(hunk.id, "revert"), { data: { act: "revert" } }),
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

function unifiedRow({ mark, text, before, after }) {
  return h("div", null, lineView(mark, after || before, text));
}

function splitRow({ left, right }) {
  const half = (it) => (it ? lineView(it.mark, it.before || it.after, it.text) : lineView("", 0, ""));
  return h("div", { class: "pair" }, half(left), half(right));
}

/** The lines of a hunk with their numbers before and after. */
function unified({ header, lines }) {
  const begin = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(header) ?? [0, 1, 1];
  let [before, after] = [Number(begin[1]), Number(begin[2])];
  return lines.map((text) => {
    const mark = text[0] === "+" || text[0] === "-" ? text[0] : " ";
    const row = { mark, text: text.slice(1), before: mark === "+" ? 0 : before, after: mark === "-" ? 0 : after };
    if (text[0] === "\\") return { mark: " ", text, before: 0, after: 0 };
    if (mark !== "+") before += 1;
    if (mark !== "-") after += 1;
    return row;
  });
}

/** Pairs of lines, each side null where it has none. */
function sides(hunk) {
  const pairs = [];
  let removed = [];
  let added = [];
  const flush = () => {
    for (let at = 0; at < Math.max(removed.length, added.length); at++)
      pairs.push({ left: removed[at] ?? null, right: added[at] ?? null });
    removed = [];
    added = [];
  };
  for (const row of unified(hunk)) {
    if (row.mark === "-") {
      if (added.length) flush();
      removed.push(row);
    } else if (row.mark === "+") added.push(row);
    else {
      flush();
      pairs.push({ left: { ...row, after: 0 }, right: { ...row, before: 0 } });
    }
  }
  flush();
  return pairs;
}
