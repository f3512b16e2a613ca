// Owns the colours of what is painted, as the style sheet has them.

const NAMES = ["ground", "folder", "edge", "file", "warm", "hot", "ink", "dim", "alarm", "call"];

/** Colours by name, as CSS text, and as numbers from 0 to 1 for the shader. */
export function readTheme() {
  const style = getComputedStyle(document.documentElement);
  const css = {};
  const rgb = {};
  for (const name of NAMES) {
    css[name] = style.getPropertyValue(`--map-${name}`).trim() || "#888888";
    rgb[name] = parse(css[name]);
  }
  const agents = [];
  for (let at = 0; at < 8; at++) agents.push(style.getPropertyValue(`--agent-${at}`).trim() || "#888888");
  return { css, rgb, agents, agentsRgb: agents.map(parse) };
}

function parse(color) {
  const digits = /^#([0-9a-f]{6})$/i.exec(color)?.[1] ?? "888888";
  return [0, 2, 4].map((at) => parseInt(digits.slice(at, at + 2), 16) / 255);
}

/** Calls `changed` when the system's theme does. */
export function onTheme(changed) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}
