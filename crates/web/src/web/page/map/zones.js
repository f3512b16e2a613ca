// Owns the areas of zones on the map: folders of which an agent's patterns allow all.

import { line } from "../format.js";
import { paintOf } from "../marks.js";
import { boxOf } from "./camera.js";
import { paintMark } from "./flat.js";

/** Areas that are drawn. */
const MOST_AREAS = 300;
/** Pixels of an owner's name at most, and the height of its plate. */
const LONGEST = 160;
const HIGH = 18;

/**
 * The areas of the agents' zones. A team says its agents' patterns in `allowed`; without them there
 * is nothing to show.
 * @param {Iterable<{agent_id: string, allowed?: string[]}>} agents
 * @param {import("./layout.js").Layout} layout
 */
export function zonesOf(agents, layout) {
  const areas = [];
  const used = new Map();
  for (const { agent_id: agent, allowed } of agents) {
    for (const pattern of Array.isArray(allowed) ? allowed : []) {
      const tile = areaOf(pattern, layout);
      if (!tile || areas.length >= MOST_AREAS) continue;
      // Zones of one folder stand inside each other.
      const inset = (used.get(tile.path) ?? 0) * 4;
      used.set(tile.path, (used.get(tile.path) ?? 0) + 1);
      areas.push({ tile, agent, inset, ...paintOf(agent) });
    }
  }
  return areas;
}

/** The tile of a pattern such as `src/ui/**`; null for one that is no area. */
function areaOf(pattern, layout) {
  const folder = pattern.replace(/\/?\*\*(\/\*)?$/, "").replace(/\/$/, "");
  if (/[*?[\]{}!]/.test(folder)) return null;
  return layout.folders.get(folder) ?? layout.of(folder);
}

/** Draws the rims of the areas, with the names of their owners in the lower right corner. */
export function drawZones(context, names, { zones, camera, theme }) {
  for (const { tile, inset, color, mark, agent } of zones) {
    const box = boxOf(tile, camera);
    const by = 2 + inset;
    context.strokeStyle = theme.agents[color];
    context.lineWidth = 2;
    context.setLineDash([2, 4]);
    if (box.w > 2 * by && box.h > 2 * by) context.strokeRect(box.x + by, box.y + by, box.w - 2 * by, box.h - 2 * by);
    context.setLineDash([]);
    const text = names.fitted(line(agent), Math.min(box.w / 2, LONGEST), false, false);
    if (!text || box.h < HIGH * 2) continue;
    const w = text.width + 22;
    const spot = { x: box.x + box.w - w - 4, y: box.y + box.h - HIGH - 2, w, h: HIGH };
    // Owners of one folder stand side by side.
    while (spot.x > box.x && !names.isFree(spot)) spot.x -= HIGH;
    if (spot.x < box.x || !names.take(spot)) continue;
    names.plate(spot);
    paintMark(context, mark, spot.x + 9, spot.y + 9, 5, theme.agents[color]);
    names.write(text.text, spot.x + 18, spot.y + 9, theme.agents[color], false);
  }
}
