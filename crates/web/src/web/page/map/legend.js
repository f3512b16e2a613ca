// Owns what the signs of the map mean, painted as the map paints them.

import { h } from "../dom.js";
import { paintFile } from "./flat.js";
import { FLAGS } from "./paint.js";
import { onTheme, readTheme } from "./theme.js";

const SIGNS = [
  ["hot", [230, 0, 0, 0]],
  ["in context", [90, FLAGS.context, 0, 1]],
  ["written", [90, FLAGS.written, 0, 1]],
  ["blocked", [0, FLAGS.blocked, 0, 0]],
  ["overlapping", [90, FLAGS.overlap, 0, 0]],
];

export function legend() {
  const items = SIGNS.map(([text, state]) => ({
    state,
    canvas: h("canvas", { width: 56, height: 40, "aria-hidden": "true" }),
    text,
  }));
  const draw = () => {
    const theme = readTheme();
    for (const { canvas, state } of items) {
      const context = canvas.getContext("2d");
      context.setTransform(2, 0, 0, 2, 0, 0);
      paintFile(context, 0, 0, 28, 20, state, theme);
    }
  };
  onTheme(draw);
  requestAnimationFrame(draw);
  return h(
    "ul",
    { class: "legend", "aria-label": "Signs of the map" },
    items.map((it) => h("li", null, it.canvas, it.text)),
  );
}
