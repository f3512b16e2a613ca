// Owns what is shown of a file on the map, in four bytes: heat, flags, colour and mark of its agent.

import { COLOR_COUNT, MARK_COUNT, placeOf } from "../marks.js";

export const FLAGS = { context: 1, written: 2, blocked: 4, overlap: 8, several: 16 };

/** Bytes of a file's state. */
export const BYTES = 4;

/**
 * Writes the state of a file into `out`, at `at`.
 * @param {import("../heat.js").HotFile | null} file
 * @param {{blocked: boolean, overlap: boolean}} extra
 */
export function stateOf(file, extra, out, at) {
  let flags = (extra.blocked ? FLAGS.blocked : 0) | (extra.overlap ? FLAGS.overlap : 0);
  let main = null;
  for (const touch of file?.touches ?? []) {
    if (touch.inContext) flags |= FLAGS.context;
    if (touch.origin || touch.action === "write") flags |= FLAGS.written;
    if (touch.action === "blocked") flags |= FLAGS.blocked;
    if (main && touch.agent !== main.agent) flags |= FLAGS.several;
    if (!main || rank(touch) > rank(main)) main = touch;
  }
  const place = main ? placeOf(main.agent) : 0;
  out[at] = file ? Math.max(1, Math.round(Math.min(1, file.heat) * 255)) : 0;
  out[at + 1] = flags;
  out[at + 2] = place % COLOR_COUNT;
  out[at + 3] = main ? 1 + (place % MARK_COUNT) : 0;
}

/** Who is shown where several agents were: who has it in its context, then who was hotter. */
function rank(touch) {
  return (touch.inContext ? 2 : 0) + touch.heat + touch.at / 1e16;
}

/** The states of a file in words. */
export function wordsOf(flags) {
  return Object.keys(FLAGS)
    .filter((name) => flags & FLAGS[name])
    .map((name) => WORDS[name]);
}

const WORDS = {
  context: "in context",
  written: "written",
  blocked: "blocked",
  overlap: "overlapping",
  several: "several agents",
};
