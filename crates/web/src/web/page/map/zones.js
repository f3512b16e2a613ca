// Owns the areas of zones on the map: folders of which an agent's patterns allow all.

import { colorOf, markOf } from "../marks.js";

/** Areas that are drawn. */
const MOST_AREAS = 300;

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
      const place = areaOf(pattern, layout);
      if (!place || areas.length >= MOST_AREAS) continue;
      // Zones of one folder stand inside each other.
      const inset = (used.get(place.path) ?? 0) * 3;
      used.set(place.path, (used.get(place.path) ?? 0) + 1);
      areas.push({ ...place, agent, inset, color: colorOf(agent), mark: markOf(agent) });
    }
  }
  return areas;
}

/** The folder or file of a pattern such as `src/ui/**`; null for one that is no area. */
function areaOf(pattern, layout) {
  const folder = pattern.replace(/\/?\*\*(\/\*)?$/, "").replace(/\/$/, "");
  if (/[*?[\]{}!]/.test(folder)) return null;
  if (folder === "") return { path: "", x: 0, y: 0, w: layout.width, h: layout.height };
  return layout.folders.get(folder) ?? layout.of(folder);
}
