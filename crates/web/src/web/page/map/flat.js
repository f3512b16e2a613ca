// Owns how the map is drawn on a plain canvas, where there is no WebGL2; with the same signs. As long
// as nobody moves the map, only the files that changed are painted.

import { BYTES, FLAGS } from "./paint.js";

export class FlatPainter {
  static on(canvas) {
    return new FlatPainter(canvas.getContext("2d", { alpha: false }));
  }

  constructor(context) {
    this.context = context;
    this.folders = [];
    this.pieces = null;
    this.last = "";
    this.isLost = false;
  }

  setFolders(folders) {
    this.folders = folders;
    this.last = "";
  }

  send(places, states, count, moved, changed) {
    this.places = places;
    this.states = states;
    if (!moved || moved.size || !changed) this.last = "";
    else this.pieces = changed;
  }

  draw(camera, width, height, ratio, count, theme) {
    const { context } = this;
    // A canvas of another size is another one, and empty.
    const look = [camera.x, camera.y, camera.scale, width, height, ratio, theme.css.ground].join();
    const isSame = look === this.last;
    this.last = look;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const [right, bottom] = [width / ratio, height / ratio];
    if (isSame) {
      for (const slot of this.pieces ?? []) this.file(slot, camera, right, bottom, theme);
    } else {
      context.fillStyle = theme.css.ground;
      context.fillRect(0, 0, right, bottom);
      for (const it of this.folders) this.folder(it, camera, right, bottom, theme);
      for (let slot = 0; slot < count; slot++) this.file(slot, camera, right, bottom, theme);
    }
    this.pieces = null;
  }

  folder(it, camera, right, bottom, theme) {
    const { context } = this;
    const [x, y, w, h] = onScreen(it.x, it.y, it.w, it.h, camera);
    if (x > right || y > bottom || x + w < 0 || y + h < 0 || w < 3 || h < 3) return;
    context.fillStyle = theme.css.edge;
    context.fillRect(x, y, w, h);
    context.fillStyle = theme.css.folder;
    context.fillRect(x + 1, y + 1, w - 2, h - 2);
  }

  file(slot, camera, right, bottom, theme) {
    const at = slot * 4;
    const [x, y, w, h] = onScreen(
      this.places[at],
      this.places[at + 1],
      this.places[at + 2],
      this.places[at + 3],
      camera,
    );
    if (!this.places[at + 2] || x > right || y > bottom || x + w < 0 || y + h < 0) return;
    paintFile(this.context, x, y, w, h, this.states.subarray(slot * BYTES, slot * BYTES + BYTES), theme);
  }
}

function onScreen(x, y, w, h, camera) {
  const left = Math.floor(x * camera.scale + camera.x);
  const top = Math.floor(y * camera.scale + camera.y);
  const width = Math.floor((x + w) * camera.scale + camera.x) - left;
  const height = Math.floor((y + h) * camera.scale + camera.y) - top;
  return [left, top, Math.max(1, width - (width > 3 ? 1 : 0)), Math.max(1, height - (height > 3 ? 1 : 0))];
}

/** Paints one file with its signs. */
export function paintFile(context, x, y, w, h, [heat, flags, color, mark], theme) {
  const least = Math.min(w, h);
  context.fillStyle = heatColor(heat / 255, theme);
  if (least < 7) {
    if (flags & FLAGS.blocked) context.fillStyle = theme.css.alarm;
    else if (flags & FLAGS.overlap) context.fillStyle = theme.css.ink;
    return context.fillRect(x, y, w, h);
  }
  context.fillRect(x, y, w, h);
  const thick = least > 24 ? 2 : 1;
  if (flags & FLAGS.blocked) stripes(context, x, y, w, h, theme.css.alarm);
  if (flags & FLAGS.written) {
    const size = Math.min(14, least * 0.45);
    context.fillStyle = theme.css.ink;
    polygon(context, [
      [x + w, y + h],
      [x + w - size, y + h],
      [x + w, y + h - size],
    ]);
  }
  if (flags & FLAGS.context) frame(context, x, y, w, h, 0, thick, theme.agents[color], []);
  if (flags & FLAGS.overlap) frame(context, x, y, w, h, thick + 1, thick, theme.css.ink, [3, 3]);
  if (mark && least > 11) {
    const r = Math.min(5, least * 0.28);
    paintMark(context, mark, x + thick + 2 + r, y + thick + 2 + r, r, theme.agents[color], theme.css.file);
  }
}

const ramps = new Map();

/** The colour of a heat, in 32 steps. */
function heatColor(heat, theme) {
  if (heat <= 0) return theme.css.file;
  const step = Math.round(heat * 31);
  const key = theme.css.file + step;
  if (!ramps.has(key)) {
    const { file, warm, hot } = theme.rgb;
    const share = step / 31;
    const mixed = share < 0.5 ? mix(file, warm, 0.25 + share * 1.5) : mix(warm, hot, share * 2 - 1);
    ramps.set(key, `rgb(${mixed.map((it) => Math.round(it * 255)).join()})`);
  }
  return ramps.get(key);
}

function mix(a, b, share) {
  return a.map((it, at) => it + (b[at] - it) * Math.min(1, share));
}

function stripes(context, x, y, w, h, color) {
  context.save();
  context.beginPath();
  context.rect(x, y, w, h);
  context.clip();
  context.strokeStyle = color;
  context.lineWidth = 1.6;
  context.beginPath();
  for (let at = 0; at < w + h; at += 8) {
    context.moveTo(x + at, y);
    context.lineTo(x + at - h, y + h);
  }
  context.stroke();
  context.restore();
}

function frame(context, x, y, w, h, inset, thick, color, dash) {
  context.strokeStyle = color;
  context.lineWidth = thick;
  context.setLineDash(dash);
  const by = inset + thick / 2;
  context.strokeRect(x + by, y + by, Math.max(0, w - 2 * by), Math.max(0, h - 2 * by));
  context.setLineDash([]);
}

function polygon(context, points) {
  context.beginPath();
  points.forEach(([x, y], at) => (at ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.fill();
}

/** The shapes of agents, as `marks.js` names them. */
export function paintMark(context, mark, x, y, r, color, halo) {
  const at = (points, k = 1) => points.map(([px, py]) => [x + px * r * k, y + py * r * k]);
  const star = Array.from({ length: 10 }, (_, n) => [
    Math.sin((n * Math.PI) / 5) * (n % 2 ? 0.45 : 1),
    -Math.cos((n * Math.PI) / 5) * (n % 2 ? 0.45 : 1),
  ]);
  const cross = [
    [-0.3, -0.9],
    [0.3, -0.9],
    [0.3, -0.3],
    [0.9, -0.3],
    [0.9, 0.3],
    [0.3, 0.3],
    [0.3, 0.9],
    [-0.3, 0.9],
    [-0.3, 0.3],
    [-0.9, 0.3],
    [-0.9, -0.3],
    [-0.3, -0.3],
  ];
  const shapes = [
    null,
    null,
    [
      [0, -0.9],
      [0.9, 0.7],
      [-0.9, 0.7],
    ],
    [
      [-0.72, -0.72],
      [0.72, -0.72],
      [0.72, 0.72],
      [-0.72, 0.72],
    ],
    [
      [0, -0.95],
      [0.95, 0],
      [0, 0.95],
      [-0.95, 0],
    ],
    cross,
    star,
    [
      [0, 0.9],
      [0.9, -0.7],
      [-0.9, -0.7],
    ],
  ];
  for (const [fill, k] of [
    [halo, 1.45],
    [color, 1],
  ]) {
    context.fillStyle = fill;
    if (mark === 1) {
      context.beginPath();
      context.arc(x, y, r * 0.85 * k, 0, 7);
      context.fill();
    } else polygon(context, at(shapes[mark], k));
  }
}
