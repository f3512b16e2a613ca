// Owns how the lines of a hunk stand side by side: what was removed beside what came in its place.

import { unified } from "./hunks.js";

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
