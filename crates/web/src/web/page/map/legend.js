// Owns what the signs of the map mean, painted as the map paints them.

import { fill, h } from "../dom.js";
import { agentName } from "../marks.js";
import { paintBadges, paintFile } from "./flat.js";
import { strengthOf } from "./paint.js";
import { onTheme, readTheme } from "./theme.js";

/** Agents that are named. */
const MOST_AGENTS = 12;
const [WIDE, HIGH] = [40, 20];
const SCALE = 2;
const MINUTE = 60_000;

const one = (age, more = {}) => ({ color: 0, mark: 1, strength: strengthOf(age), inContext: false, ...more });
const NONE = { who: [], waits: false, overlap: false, blocked: false, edited: false, isBoth: false };
const both = [one(0), one(0, { color: 5 })];
/** Signs with their look; those without a text belong to the one before. */
const SIGNS = [
  ["now", { who: [one(0)] }],
  ["", { who: [one(1.5 * MINUTE)] }],
  ["10 min ago", { who: [one(10 * MINUTE)] }],
  ["in its context", { who: [one(16 * MINUTE, { inContext: true })] }],
  ["edited", { who: [one(1.5 * MINUTE)], edited: true }],
  ["waits for you", { waits: true }],
  ["new", { who: [one(16 * MINUTE)] }, true],
  ["two agents", { who: both, isBoth: true }],
  ["two on one symbol", { who: both, isBoth: true, overlap: true }],
];

export class Legend {
  constructor() {
    this.agents = h("ul", { class: "legend", tabindex: "0", "aria-label": "Agents" });
    this.signs = SIGNS.map(([text, look, isNew]) => ({
      text,
      look: { ...NONE, ...look },
      isNew,
      canvas: h("canvas", { width: WIDE * SCALE, height: HIGH * SCALE, "aria-hidden": "true" }),
    }));
    this.element = h(
      "div",
      { class: "legends" },
      this.agents,
      h(
        "ul",
        { class: "legend signs", tabindex: "0", "aria-label": "Signs of the map" },
        this.signs.map((it) => h("li", null, it.canvas, it.text)),
      ),
    );
    onTheme(() => this.draw());
    requestAnimationFrame(() => this.draw());
  }

  draw() {
    const theme = readTheme();
    for (const { canvas, look, isNew } of this.signs) {
      const context = canvas.getContext("2d");
      context.setTransform(SCALE, 0, 0, SCALE, 0, 0);
      context.clearRect(0, 0, WIDE, HIGH);
      const box = { x: 1, y: 1, w: WIDE - 2, h: HIGH - 2 };
      paintFile(context, box, look, theme, isNew);
      paintBadges(context, box, look, theme);
    }
  }

  /** The agents, as the map marks them. */
  name(agents) {
    const shown = agents.slice(0, MOST_AGENTS);
    const look = `${shown.join("\n")}\n${agents.length}`;
    if (look === this.look) return;
    this.look = look;
    const more = agents.length - shown.length;
    fill(
      this.agents,
      shown.map((it) => h("li", null, agentName(it))),
      more > 0 && h("li", null, `and ${more} more`),
    );
  }

  forget() {
    this.look = null;
  }
}
