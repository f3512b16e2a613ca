// Owns the colour and the mark of each agent: a colour alone tells nobody who cannot see it.

import { h } from "./dom.js";
import { line } from "./format.js";

/** Readable on dark and on light; as `--agent-N` in the style sheet, and here for what is painted. */
const COLORS = ["#3fb6d8", "#4cb560", "#c678dd", "#6f8ff2", "#d6a12b", "#ef7f6d", "#2bb8a3", "#e56aa6"];
/** Shapes, in the order of the shader in `map/gl.js`. */
const MARKS = ["●", "▲", "■", "◆", "✚", "★", "▼"];

export const COLOR_COUNT = COLORS.length;
export const MARK_COUNT = MARKS.length;

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

export function colorOf(agent) {
  return COLORS[placeOf(agent) % COLORS.length];
}

export function markOf(agent) {
  return MARKS[placeOf(agent) % MARKS.length];
}

/** The mark and the name of an agent; its title has the whole name where there is no room for it. */
export function agentName(agent, props = {}) {
  const place = placeOf(agent) % COLORS.length;
  const name = line(agent);
  return h(
    "span",
    { class: `agent agent-${place}`, title: name, ...props },
    h("span", { class: "mark", "aria-hidden": "true" }, markOf(agent)),
    h("span", { class: "name" }, name),
  );
}
