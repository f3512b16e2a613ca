// Owns which part of the map is seen, and how mouse, fingers and keys move it.

const MOST_SCALE = 400;
const STEP = 60;
/** How wide a place is that is looked at. */
const LOOKED = 260;
/** Pixels that a press may move and still be a click. */
const STILL = 5;

export class Camera {
  /** @param {HTMLElement} el @param {{moved: () => void, click: (x: number, y: number) => void, hover: (x: number, y: number) => void}} hears */
  constructor(el, hears) {
    this.el = el;
    this.hears = hears;
    this.x = 0;
    this.y = 0;
    this.scale = 1;
    this.least = 0.01;
    this.isFit = true;
    this.pointers = new Map();
    el.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    el.addEventListener("pointerdown", (event) => this.down(event));
    el.addEventListener("pointermove", (event) => this.move(event));
    for (const type of ["pointerup", "pointercancel"]) el.addEventListener(type, (event) => this.up(event));
    el.addEventListener("pointerleave", () => hears.hover(-1, -1));
  }

  /** All of a world of this size, in a room of that size. */
  fit(width, height) {
    const { clientWidth: w, clientHeight: h } = this.el;
    this.scale = Math.min(w / width, h / height) || 1;
    this.least = this.scale / 2;
    this.x = (w - width * this.scale) / 2;
    this.y = (h - height * this.scale) / 2;
    this.isFit = true;
    this.hears.moved();
  }

  /** Brings a rectangle of the world into the middle, large enough to read. */
  look(place) {
    const { clientWidth: w, clientHeight: h } = this.el;
    const wanted = Math.min(LOOKED / Math.max(place.w, 1e-6), (LOOKED * 0.8) / Math.max(place.h, 1e-6), MOST_SCALE);
    this.scale = Math.max(this.scale, wanted);
    this.x = w / 2 - (place.x + place.w / 2) * this.scale;
    this.y = h / 2 - (place.y + place.h / 2) * this.scale;
    this.isFit = false;
    this.hears.moved();
  }

  zoom(factor, px = this.el.clientWidth / 2, py = this.el.clientHeight / 2) {
    const scale = Math.max(this.least, Math.min(MOST_SCALE, this.scale * factor));
    this.x = px - ((px - this.x) / this.scale) * scale;
    this.y = py - ((py - this.y) / this.scale) * scale;
    this.scale = scale;
    this.isFit = false;
    this.hears.moved();
  }

  pan(dx, dy) {
    this.x += dx;
    this.y += dy;
    this.isFit = false;
    this.hears.moved();
  }

  /** @returns {boolean} whether the key moved it */
  key(key) {
    const moves = { ArrowLeft: [STEP, 0], ArrowRight: [-STEP, 0], ArrowUp: [0, STEP], ArrowDown: [0, -STEP] };
    if (moves[key]) this.pan(...moves[key]);
    else if (key === "+" || key === "=") this.zoom(1.4);
    else if (key === "-") this.zoom(1 / 1.4);
    else return false;
    return true;
  }

  wheel(event) {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    this.zoom(Math.exp(-event.deltaY * lines * 0.0016), ...this.at(event));
  }

  at(event) {
    const box = this.el.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  down(event) {
    this.el.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, {
      at: this.at(event),
      from: this.at(event),
      isStill: this.pointers.size === 0,
    });
  }

  move(event) {
    const now = this.at(event);
    const pointer = this.pointers.get(event.pointerId);
    if (!pointer) return this.hears.hover(...now);
    const [x, y] = pointer.at;
    if (Math.hypot(now[0] - pointer.from[0], now[1] - pointer.from[1]) > STILL) pointer.isStill = false;
    if (this.pointers.size === 2) this.pinch(event.pointerId, now);
    else if (!pointer.isStill) this.pan(now[0] - x, now[1] - y);
    pointer.at = now;
  }

  pinch(id, now) {
    const other = [...this.pointers].find(([it]) => it !== id)[1].at;
    const before = this.pointers.get(id).at;
    const distance = (a) => Math.hypot(a[0] - other[0], a[1] - other[1]);
    this.pointers.forEach((it) => (it.isStill = false));
    if (distance(before) > 1)
      this.zoom(distance(now) / distance(before), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
    this.pan((now[0] - before[0]) / 2, (now[1] - before[1]) / 2);
  }

  up(event) {
    const pointer = this.pointers.get(event.pointerId);
    this.pointers.delete(event.pointerId);
    if (pointer?.isStill && event.type === "pointerup") this.hears.click(...this.at(event));
  }
}

/** The place of a tile on the screen, in whole pixels. */
export function boxOf(tile, camera) {
  const x = Math.round(tile.x * camera.scale + camera.x);
  const y = Math.round(tile.y * camera.scale + camera.y);
  const w = Math.round((tile.x + tile.w) * camera.scale + camera.x) - x;
  const h = Math.round((tile.y + tile.h) * camera.scale + camera.y) - y;
  return { x, y, w: Math.max(1, w), h: Math.max(1, h) };
}
