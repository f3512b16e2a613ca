// Owns diffs: patches and pairs of texts become hunks of lines.

/** Lines of one patch; the rest is left out. */
const MOST_LINES = 50_000;
/** Cells of the table that compares two texts; larger changes are shown as a whole. */
const MOST_CELLS = 1_000_000;
/** Lines around a change. */
const AROUND = 3;

/**
 * @typedef {{mark: " " | "+" | "-", text: string, before: number, after: number}} DiffLine
 * @typedef {{head: string, lines: DiffLine[]}} Hunk
 * @typedef {{path: string, note: string, hunks: Hunk[], added: number, removed: number}} FileDiff
 */

/**
 * The files of a patch as git writes it.
 * @returns {{files: FileDiff[], isCut: boolean}}
 */
export function parsePatch(patch) {
  const files = [];
  let file = null;
  let hunk = null;
  let [before, after, left, right] = [0, 0, 0, 0];
  const lines = patch.split("\n");
  const isCut = lines.length > MOST_LINES;
  for (const text of isCut ? lines.slice(0, MOST_LINES) : lines) {
    if (hunk && (left > 0 || right > 0) && /^[ +-]/.test(text)) {
      const mark = text[0];
      hunk.lines.push({
        mark,
        text: text.slice(1),
        before: mark === "+" ? 0 : before,
        after: mark === "-" ? 0 : after,
      });
      if (mark !== "+") ((before += 1), (left -= 1));
      if (mark !== "-") ((after += 1), (right -= 1));
      if (mark === "+") file.added += 1;
      if (mark === "-") file.removed += 1;
      continue;
    }
    const range = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(text);
    if (range && file) {
      [before, left] = [Number(range[1]), Number(range[2] ?? 1)];
      [after, right] = [Number(range[3]), Number(range[4] ?? 1)];
      file.hunks.push((hunk = { head: text, lines: [] }));
    } else if (text.startsWith("diff --git ")) {
      files.push((file = { path: nameIn(text), note: "", hunks: [], added: 0, removed: 0 }));
      hunk = null;
    } else if (text.startsWith("--- ") && !(file && !file.hunks.length)) {
      // A patch without git's heads.
      files.push(
        (file = { path: unquoted(text.slice(4)).replace(/^a\//, ""), note: "", hunks: [], added: 0, removed: 0 }),
      );
      hunk = null;
    } else if (file) note(file, text);
  }
  return { files, isCut };
}

/** The name behind the second prefix of a head. */
function nameIn(text) {
  const quoted = / ("b\/(?:[^"\\]|\\.)*")$/.exec(text);
  if (quoted) return unquoted(quoted[1]).slice(2);
  const at = text.lastIndexOf(" b/");
  return at < 0 ? text.slice(11) : text.slice(at + 3);
}

/** A name as it is: git puts odd ones in quotes, with the bytes of a character in octal, and a tab behind one with a space. */
function unquoted(text) {
  const name = text.replace(/\t$/, "");
  if (!/^".*"$/.test(name)) return name;
  const byteOf = ([all, escaped]) => {
    const at = "abtnvfr".indexOf(escaped);
    return !escaped ? all.charCodeAt(0) : /\d/.test(escaped) ? parseInt(escaped, 8) : at < 0 ? escaped.charCodeAt(0) : at + 7;
  };
  return new TextDecoder().decode(Uint8Array.from(name.slice(1, -1).matchAll(/\\(\d{3}|.)|./g), byteOf));
}

function note(file, text) {
  if (text.startsWith("+++ ") && text !== "+++ /dev/null") file.path = unquoted(text.slice(4)).replace(/^b\//, "");
  else if (/^(new file|deleted file|rename|old mode|new mode|Binary|GIT binary|similarity)/.test(text)) {
    file.note += `${file.note ? ", " : ""}${text}`;
  }
}

/**
 * The change from one text to another.
 * @returns {FileDiff}
 */
export function compare(path, oldText, newText) {
  const [a, b] = [linesOf(oldText), linesOf(newText)];
  let first = 0;
  while (first < a.length && first < b.length && a[first] === b[first]) first += 1;
  let last = 0;
  while (
    last < a.length - first &&
    last < b.length - first &&
    a[a.length - 1 - last] === b[b.length - 1 - last]
  )
    last += 1;
  const lines = a.slice(0, first).map((text, at) => ({ mark: " ", text, before: at + 1, after: at + 1 }));
  for (const it of middle(a.slice(first, a.length - last), b.slice(first, b.length - last))) {
    lines.push({
      mark: it.mark,
      text: it.text,
      before: it.mark === "+" ? 0 : first + it.a + 1,
      after: it.mark === "-" ? 0 : first + it.b + 1,
    });
  }
  for (let at = last; at > 0; at--) {
    lines.push({ mark: " ", text: a[a.length - at], before: a.length - at + 1, after: b.length - at + 1 });
  }
  const count = (mark) => lines.reduce((sum, it) => sum + (it.mark === mark ? 1 : 0), 0);
  return { path, note: "", hunks: hunksOf(lines), added: count("+"), removed: count("-") };
}

function linesOf(text) {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** The lines between the common begin and end, by the longest common sequence. */
function middle(a, b) {
  const out = [];
  if (a.length * b.length > MOST_CELLS) {
    a.forEach((text, at) => out.push({ mark: "-", text, a: at, b: 0 }));
    b.forEach((text, at) => out.push({ mark: "+", text, a: 0, b: at }));
    return out;
  }
  const width = b.length + 1;
  const common = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i * width + j] =
        a[i] === b[j]
          ? common[(i + 1) * width + j + 1] + 1
          : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
    }
  }
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) out.push({ mark: " ", text: a[i], a: i++, b: j++ });
    else if (j >= b.length || (i < a.length && common[(i + 1) * width + j] >= common[i * width + j + 1]))
      out.push({ mark: "-", text: a[i], a: i++, b: j });
    else out.push({ mark: "+", text: b[j], a: i, b: j++ });
  }
  return out;
}

function hunksOf(lines) {
  const hunks = [];
  let from = -1;
  let quiet = 0;
  const end = (to) => {
    const part = lines.slice(Math.max(0, from), to);
    const at = part.find((it) => it.before) ?? { before: 0 };
    const now = part.find((it) => it.after) ?? { after: 0 };
    hunks.push({ head: `@@ -${at.before} +${now.after} @@`, lines: part });
    from = -1;
  };
  lines.forEach((it, at) => {
    if (it.mark !== " ") {
      if (from < 0) from = Math.max(0, at - AROUND);
      quiet = 0;
    } else if (from >= 0 && ++quiet > AROUND * 2) {
      end(at - AROUND);
    }
  });
  if (from >= 0) end(Math.max(0, lines.length - Math.max(0, quiet - AROUND)));
  return hunks;
}
