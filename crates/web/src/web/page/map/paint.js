// Owns how a file looks on the map: who was there and how lately, and what else is to be seen of it.

import { lookup } from "../format.js";
import { paintOf } from "../marks.js";

/** Agents of one file that are looked at. */
const MOST_WHO = 4;
/** A touch has half of its strength after a minute and a half, and none after a quarter of an hour. */
const SOON_MS = 11_250;
const GONE_MS = 900_000;

/**
 * @typedef {{agent: string, color: number, mark: number, strength: number, inContext: boolean, isEdit: boolean,
 *   action: string, at: number}} Who
 * @typedef {{who: Who[], waits: boolean, overlap: boolean, blocked: boolean, edited: boolean, isBoth: boolean}} Look
 */

/** How strong a touch is that is so old: 1 now, 0 long ago, less at first and less slowly then. */
export function strengthOf(age) {
  if (!(age > 0)) return 1;
  return Math.max(0, 1 - Math.log1p(age / SOON_MS) / Math.log1p(GONE_MS / SOON_MS));
}

/**
 * The look of a file.
 * @param {import("../heat.js").HotFile | null} file
 * @param {{waits?: boolean, overlap?: boolean, now?: number}} extra without `now`, the heat says how strong it is
 * @returns {Look}
 */
export function lookOf(file, { waits = false, overlap = false, now }) {
  const who = new Map();
  let edited = false;
  let blocked = false;
  waits ||= Boolean(file?.touches.some((touch) => touch.action === "waits"));
  for (const touch of file?.touches ?? []) {
    const isEdit = Boolean(touch.origin) || touch.action === "write";
    edited ||= isEdit;
    blocked ||= touch.action === "blocked";
    const known = who.get(touch.agent);
    if (known && known.at >= touch.at) {
      known.inContext ||= touch.inContext;
      known.isEdit ||= isEdit;
      continue;
    }
    const isWaiting = touch.action === "waits";
    who.set(touch.agent, {
      agent: touch.agent,
      ...paintOf(touch.agent),
      // What waits did not happen yet.
      strength: isWaiting ? 0 : now === undefined ? Math.min(1, touch.heat) : strengthOf(now - touch.at),
      inContext: touch.inContext || Boolean(known?.inContext),
      isEdit: isEdit || Boolean(known?.isEdit),
      action: touch.action,
      at: touch.at,
    });
  }
  const sorted = [...who.values()].sort((a, b) => b.at - a.at).slice(0, MOST_WHO);
  const isBoth = sorted.filter((it) => it.strength > 0 || it.inContext).length > 1;
  return { who: sorted, waits, overlap, blocked: blocked && !waits, edited, isBoth };
}

/** What an agent did, in a word that follows its name. */
export function didOf(action) {
  return (DID[action] ?? OTHER)[1];
}

/** The icon of what an agent did. */
export function iconOf(action) {
  return (DID[action] ?? OTHER)[0];
}

const OTHER = ["file", "touched"];
const DID = lookup({
  read: ["read", "read"],
  write: ["edit", "edited"],
  search: ["search", "searched"],
  waits: ["wait", "waits"],
  blocked: ["cross", "was refused"],
  allowed: ["check", "was allowed"],
  answered: ["message", "was answered"],
  observed: ["warn", "was not stopped"],
  user_provided: ["message", "was given"],
  user_referenced: ["message", "was told of"],
});
