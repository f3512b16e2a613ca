// Owns how one tile is painted: a fill that fades with time, outlines of what is in a context, and signs.

/** Width of the stripes of two agents, of their file's frame, and of the badges. */
const STRIPE = 9;
const FRAME = 4;
const BADGE = 8;
/** How strong two agents of one file are seen at least. */
const LEAST_BOTH = 0.35;
const LEAST_OVERLAP = 0.8;
/** Below this size a tile has its colour, and no sign. */
const TINY = 9;

/** @typedef {{x: number, y: number, w: number, h: number}} Box */

/**
 * Paints one file.
 * @param {CanvasRenderingContext2D} context
 * @param {Box} box
 * @param {import("./paint.js").Look} look
 */
export function paintFile(context, box, look, theme, isNew = false) {
  const { x, y, w, h } = box;
  const { css } = theme;
  const least = Math.min(w, h);
  context.fillStyle = css.file;
  context.fillRect(x, y, w, h);
  if (least < TINY) return tiny(context, box, look, theme);
  fillOf(context, box, look, theme);
  if (look.waits) hatch(context, box, css.wait);
  const first = look.who[0];
  const editor = look.who.find((it) => it.isEdit) ?? first;
  if (look.edited && editor) corner(context, box, theme.agents[editor.color], css.file);
  const thick = least > 26 ? 3 : 2;
  const inContext = look.who.filter((it) => it.inContext);
  if (isNew && !look.waits) frame(context, box, 0, 2, first ? theme.agents[first.color] : css.dim, [4, 3]);
  else if (!look.waits && !inContext.length) frame(context, box, 0, 1, css.edge, []);
  if (!isNew && !look.overlap)
    inContext.slice(0, 2).forEach((it, at) => frame(context, box, at * (thick + 1), thick, theme.agents[it.color], []));
  if (first && !look.waits && !look.who.some((it) => it.strength > 0 || it.inContext)) {
    context.fillStyle = theme.agents[first.color];
    context.fillRect(x, y, 3, h);
  }
  if (look.waits) frame(context, box, 0, 3, css.wait, [7, 4]);
  if (!look.overlap) return;
  frame(context, box, -1, FRAME, css.alarm, []);
  frame(context, box, FRAME - 1, 2, css.file, []);
}

/** Signs that stand over the fill, in the upper right corner; returns the width they take. */
export function paintBadges(context, box, look, theme) {
  const signs = [look.overlap && "!", look.waits && "wait", look.blocked && "no"].filter(Boolean);
  const most = Math.floor((box.w - 6) / (BADGE * 2 + 2));
  if (box.h < BADGE * 2 + 2) return 0;
  const shown = signs.slice(0, Math.max(0, most));
  shown.forEach((sign, at) => {
    const x = box.x + box.w - BADGE - 3 - at * (BADGE * 2 + 2);
    badge(context, sign, x, box.y + BADGE + 3, theme);
  });
  return shown.length * (BADGE * 2 + 2);
}

function badge(context, sign, x, y, { css }) {
  context.fillStyle = css.file;
  disc(context, x, y, BADGE + 1.5);
  context.fillStyle = sign === "wait" ? css.wait : css.alarm;
  disc(context, x, y, BADGE);
  context.strokeStyle = context.fillStyle = css.file;
  context.lineWidth = 2;
  context.lineCap = "round";
  const lines = {
    "!": [[0, -4, 0, 1], [0, 4, 0, 4]],
    wait: [[0, -4, 0, 0], [0, 0, 3, 2]],
    no: [[-3, -3, 3, 3], [3, -3, -3, 3]],
  }[sign];
  context.beginPath();
  for (const [ax, ay, bx, by] of lines) {
    context.moveTo(x + ax, y + ay);
    context.lineTo(x + bx, y + by + 0.01);
  }
  context.stroke();
  context.lineCap = "butt";
}

function disc(context, x, y, r) {
  context.beginPath();
  context.arc(x, y, r, 0, 7);
  context.fill();
}

/** A tile too small for signs has the colour of what matters most. */
function tiny(context, { x, y, w, h }, look, { css, agents }) {
  const [first] = look.who;
  if (!look.overlap && !look.waits && !first) context.fillStyle = css.edge;
  else if (look.overlap) context.fillStyle = css.alarm;
  else if (look.waits) context.fillStyle = css.wait;
  else {
    context.fillStyle = agents[first.color];
    context.globalAlpha = 0.25 + 0.75 * first.strength;
  }
  context.fillRect(x, y, w, h);
  context.globalAlpha = 1;
}

/** The fill: of one agent as strong as it is lately, of two in stripes. */
function fillOf(context, box, look, theme) {
  const { x, y, w, h } = box;
  const [one, two] = look.who.filter((it) => it.strength > 0 || it.inContext);
  if (!one) return;
  if (!look.isBoth) {
    context.globalAlpha = shade(one.strength);
    context.fillStyle = theme.agents[one.color];
    context.fillRect(x, y, w, h);
    context.globalAlpha = 1;
    return;
  }
  if (!look.overlap) {
    // Both were there, which is no matter yet: the other is a thin stripe on the one.
    fillOf(context, box, { ...look, who: [one], isBoth: false }, theme);
    context.globalAlpha = Math.max(LEAST_BOTH, shade(two.strength));
    stripes(context, box, theme.agents[two.color], STRIPE, STRIPE * 2, STRIPE / 3);
    return void (context.globalAlpha = 1);
  }
  for (const [it, from] of [[one, 0], [two, STRIPE]]) {
    context.globalAlpha = Math.max(LEAST_OVERLAP, shade(it.strength));
    stripes(context, box, theme.agents[it.color], from, STRIPE * 2, STRIPE);
  }
  context.globalAlpha = 1;
}

function shade(strength) {
  return strength > 0 ? 0.06 + 0.84 * strength : 0;
}

function hatch(context, box, color) {
  context.globalAlpha = 0.3;
  stripes(context, box, color, 0, 10, 2);
  context.globalAlpha = 1;
}

/** Slanted stripes from `from` on, each `step` from the last one, and as wide as `wide`. */
function stripes(context, { x, y, w, h }, color, from, step, wide) {
  context.save();
  context.beginPath();
  context.rect(x, y, w, h);
  context.clip();
  context.fillStyle = color;
  context.beginPath();
  // Slanted, they are wider along the edge.
  const long = Math.SQRT2;
  for (let at = from * long - step * long; at < w + h; at += step * long) {
    context.moveTo(x + at, y);
    context.lineTo(x + at + wide * long, y);
    context.lineTo(x + at + wide * long - h, y + h);
    context.lineTo(x + at - h, y + h);
  }
  context.fill();
  context.restore();
}

function corner(context, { x, y, w, h }, color, rim) {
  const size = Math.min(16, Math.min(w, h) * 0.4);
  for (const [by, fill] of [[2, rim], [0, color]]) {
    context.fillStyle = fill;
    polygon(context, [[x + w, y + h], [x + w - size - by, y + h], [x + w, y + h - size - by]]);
  }
}

function frame(context, { x, y, w, h }, inset, thick, color, dash) {
  context.strokeStyle = color;
  context.lineWidth = thick;
  context.setLineDash(dash);
  const by = inset + thick / 2;
  if (w > 2 * by && h > 2 * by) context.strokeRect(x + by, y + by, w - 2 * by, h - 2 * by);
  context.setLineDash([]);
}

function polygon(context, points) {
  context.beginPath();
  points.forEach(([x, y], at) => (at ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.fill();
}

const STAR = Array.from({ length: 10 }, (_, n) => [
  Math.sin((n * Math.PI) / 5) * (n % 2 ? 0.45 : 1),
  -Math.cos((n * Math.PI) / 5) * (n % 2 ? 0.45 : 1),
]);
const CROSS = [
  [-0.3, -0.9], [0.3, -0.9], [0.3, -0.3], [0.9, -0.3], [0.9, 0.3], [0.3, 0.3],
  [0.3, 0.9], [-0.3, 0.9], [-0.3, 0.3], [-0.9, 0.3], [-0.9, -0.3], [-0.3, -0.3],
];
/** By mark, from 2: the first is a disc. */
const SHAPES = [
  null,
  null,
  [[0, -0.9], [0.9, 0.7], [-0.9, 0.7]],
  [[-0.72, -0.72], [0.72, -0.72], [0.72, 0.72], [-0.72, 0.72]],
  [[0, -0.95], [0.95, 0], [0, 0.95], [-0.95, 0]],
  CROSS,
  STAR,
  [[0, 0.9], [0.9, -0.7], [-0.9, -0.7]],
];

/** The shapes of agents, as `marks.js` names them. */
export function paintMark(context, mark, x, y, r, color) {
  context.fillStyle = color;
  if (mark === 1) disc(context, x, y, r * 0.85);
  else polygon(context, SHAPES[mark].map(([px, py]) => [x + px * r, y + py * r]));
}
