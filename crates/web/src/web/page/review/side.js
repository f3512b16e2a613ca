// Owns how the lines of a hunk stand: one below the other, or what was removed beside what came in its place.

/** The lines of a hunk with their numbers before and after. */
export function unified({ header, lines }) {
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
export function sides(hunk) {
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
