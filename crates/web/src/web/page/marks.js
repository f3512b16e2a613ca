// Owns the colour and the mark of each agent: a colour alone tells nobody who cannot see it.

import { h } from "./dom.js";
import { line } from "./format.js";

/** Colours of agents: `--agent-N` of the style sheet. */
export const AGENT_COLORS = 8;
/** Shapes, in the order of those in `map/flat.js`. */
const MARKS = "●▲■◆✚★▼";

/** Places of agents in the configuration, from 0; told by `setOrder`. */
let places = new Map();

/** Takes the agents in their order; true if marks have changed by it. */
export function setOrder(agents) {
  const before = [...places.keys()].join("\n");
  places = new Map([...agents].map((id, at) => [id, at]));
  return before !== [...places.keys()].join("\n");
}

/** The place of an agent; agents that are gone stand behind all others, by their name. */
export function placeOf(agent) {
  const place = places.get(agent);
  if (place !== undefined) return place;
  let sum = 7;
  for (let at = 0; at < agent.length; at++) sum = (sum * 31 + agent.charCodeAt(at)) >>> 0;
  return sum % 56;
}

function markOf(agent) {
  return MARKS[placeOf(agent) % MARKS.length];
}

/** The numbers of an agent's colour and mark, for what is painted. */
export function paintOf(agent) {
  const place = placeOf(agent);
  return { color: place % AGENT_COLORS, mark: 1 + (place % MARKS.length) };
}

/** The mark and the name of an agent; its title has the whole name where there is no room for it. */
export function agentName(agent, props = {}) {
  const name = line(agent);
  return h(
    "span",
    { class: `agent agent-${placeOf(agent) % AGENT_COLORS}`, title: name, ...props },
    h("span", { class: "mark", "aria-hidden": "true" }, markOf(agent)),
    h("span", { class: "name" }, name),
  );
}
