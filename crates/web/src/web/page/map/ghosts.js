// Owns what is on the map beside files that are there: accesses that wait, and files that are new.

/** Paths that wait, or overlap, and are looked at. */
const MOST = 500;

/**
 * What waits, by path, and the paths on which two agents work on one symbol.
 * @param {import("../state.js").State} state
 * @returns {{waits: Map<string, {agents: string[], at: number}>, overlap: Map<string, {agents: string[], at: number}>}}
 */
export function extrasOf(state) {
  const waits = new Map();
  for (const line of state.waiting.values()) {
    const agents = line.agents ?? [line.agent_id];
    put(waits, line.path, agents, line.timestamp_ms);
  }
  const overlap = new Map();
  for (const line of state.overlaps.values()) {
    put(overlap, line.path, line.agents.map(nameOf), line.timestamp_ms);
  }
  return { waits, overlap };
}

/** Lines and lists name an agent each in their way. */
function nameOf(it) {
  return it?.agent_id ?? it?.agent ?? it;
}

function put(map, path, agents, at) {
  if (typeof path !== "string" || !path || path === ".") return;
  const known = map.get(path);
  if (!known && map.size >= MOST) return;
  const all = new Set([...(known?.agents ?? []), ...agents.filter((it) => typeof it === "string")]);
  map.set(path, { agents: [...all], at: Math.max(known?.at ?? 0, at ?? 0) });
}
