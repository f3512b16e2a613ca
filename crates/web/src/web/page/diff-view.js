// Owns how diffs are shown: coloured, by hunks, a few at a time.

import { colouredLines } from "./code.js";
import { button, h } from "./dom.js";
import { counted, cut, line, lookup, plain } from "./format.js";
import { walk } from "./keys.js";

/** Hunks that are shown at first, and lines of them. */
const FIRST_HUNKS = 4;
const FIRST_LINES = 200;
/** Lines of one hunk that are shown at once. */
const PAGE_LINES = 400;
/** Characters of a line. */
const LONGEST_LINE = 2_000;
/** Files that are listed. */
const MOST_FILES = 2_000;

/**
 * The files of a diff, each with its hunks; further hunks come by a button.
 * @param {import("./diff.js").FileDiff[]} files
 */
export function diffView(files, isCut = false, app = null) {
  const pages = { left: FIRST_LINES, app };
  const el = h("div", { class: "diff", on: { keydown: step } });
  for (const file of files.slice(0, MOST_FILES)) el.append(fileView(file, pages));
  if (files.length > MOST_FILES)
    el.append(h("p", { class: "dim" }, `${counted(files.length - MOST_FILES, "more file")}`));
  if (isCut)
    el.append(
      h("p", { class: "dim" }, "The rest of the diff is left out here: `eisen-core diff` has all of it."),
    );
  return el;
}

function fileView(file, pages) {
  const path = line(file.path);
  const head = h(
    "summary",
    null,
    h("span", { class: "path" }, path),
    h("span", { class: "plus" }, `+${file.added}`),
    h("span", { class: "minus" }, `−${file.removed}`),
    file.note && h("span", { class: "tag" }, NOTES[file.note.replace(/ \d+$/, "")] ?? line(file.note)),
  );
  const el = h("details", { class: "file-diff", open: true }, head);
  const total = file.hunks.length;
  let at = 0;
  const more = button("", () => (next(1), el.querySelectorAll(".hunk")[at - 1]?.focus()), { class: "more" });
  const next = (hunks) => {
    for (; at < total && hunks > 0; hunks--, at++)
      el.insertBefore(hunkView(file, at, path, pages.app), more);
    more.textContent = `Next hunk (${at + 1} of ${total})`;
    more.hidden = at >= total;
  };
  el.append(more);
  let first = 0;
  while (first < Math.min(total, FIRST_HUNKS) && pages.left > 0)
    pages.left -= file.hunks[first++].lines.length;
  next(first);
  return el;
}

function hunkView(file, at, path, app) {
  const hunk = file.hunks[at];
  const total = file.hunks.length;
  const body = h("div", { class: "lines" });
  let shown = 0;
  const more = button("", () => grow());
  const grow = () => {
    const part = hunk.lines.slice(shown, shown + PAGE_LINES);
    const rows = part.map((it) => lineView(it.mark, it.after || it.before, it.text));
    body.append(...rows);
    colourRows(app, file.path, rows);
    shown += PAGE_LINES;
    more.textContent = `${counted(Math.max(0, hunk.lines.length - shown), "more line")} of this hunk`;
    more.hidden = shown >= hunk.lines.length;
  };
  grow();
  return h(
    "div",
    { class: "hunk", tabindex: "0", role: "group", "aria-label": `Hunk ${at + 1} of ${total} of ${path}` },
    h("div", { class: "hunk-head" }, line(hunk.head)),
    body,
    more,
  );
}

const NOTES = lookup({ "new file mode": "new", "deleted file mode": "removed" });
const KINDS = { "+": "plus", "-": "minus", " ": "same" };

export function lineView(mark, number, text) {
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

/** Colours the lines in rows: those of the new text, and those of the old. */
export function colourRows(app, path, rows) {
  const all = rows.flatMap((row) => [...row.querySelectorAll("code")]);
  for (const marks of ["+ ", "-"]) {
    const side = all.filter((code) => marks.includes(code.parentElement.mark || "none"));
    colouredLines(app, path, side.map((code) => ({ code, text: code.textContent })));
  }
}

/** `n` and `N` go from hunk to hunk. */
function step(event) {
  if (event.key !== "n" && event.key !== "N") return;
  walk(event.currentTarget.querySelectorAll(".hunk"), event.key === "n" ? 1 : -1);
  event.preventDefault();
}
