// Owns the map as something to look at: two canvases, what of them is to be drawn anew, and the
// selection. It draws only when something changed.

import { h } from "../dom.js";
import { Camera } from "./camera.js";
import { FlatPainter } from "./flat.js";
import { GlPainter } from "./gl.js";
import { Layout } from "./layout.js";
import { Overlay } from "./overlay.js";
import { BYTES } from "./paint.js";
import { onTheme, readTheme } from "./theme.js";

/** Pixels for each of the page's; more costs time, and shows nothing. */
const MOST_RATIO = 2;

export class Surface {
  /**
   * @param {string} label
   * @param {{fill: (path: string, out: Uint8Array, at: number) => void, selected: (path: string | null) => void, hovered?: (path: string | null) => void, symbolsOf?: Function, lit?: Function, callsOf?: (path: string) => Object[]}} hooks
   */
  constructor(label, hooks) {
    this.hooks = hooks;
    this.layout = new Layout();
    this.states = new Uint8Array(1024 * BYTES);
    this.changed = null;
    this.selected = -1;
    this.hovered = -1;
    this.calls = [];
    this.zones = [];
    this.isStale = true;
    this.needsNames = true;
    /** Files that are shown with their symbols. */
    this.openFiles = 0;
    this.frame = 0;
    /** Milliseconds that the last frames took, for those who measure. */
    this.times = [];
    this.base = h("canvas", { class: "base" });
    this.over = h("canvas", { class: "over" });
    this.element = h(
      "div",
      { class: "surface", tabindex: "0", role: "application", "aria-label": label },
      this.base,
      this.over,
    );
    this.overlay = new Overlay(this.over);
    this.camera = new Camera(this.element, {
      moved: () => this.moved(),
      click: (x, y) => this.click(x, y),
      hover: (x, y) => this.hover(x, y),
    });
    this.begin();
    new ResizeObserver(() => this.resize()).observe(this.element);
    onTheme(() => this.retheme());
  }

  /** Chooses how to draw; a graphics card that is lost ends in the plain canvas. */
  begin() {
    // `?map=flat` and `?map=gl` choose, for those who compare.
    const wish = new URLSearchParams(location.search).get("map");
    this.painter = (wish !== "flat" && GlPainter.on(this.base, wish === "gl")) || null;
    if (!this.painter) this.flat();
    this.base.addEventListener("webglcontextlost", () => this.flat());
    this.theme = null;
  }

  flat() {
    const canvas = h("canvas", { class: "base" });
    this.base.replaceWith(canvas);
    this.base = canvas;
    this.painter = FlatPainter.on(canvas);
    this.sentLayout = -1;
    if (this.width) this.resize();
  }

  get isFlat() {
    return this.painter instanceof FlatPainter;
  }

  retheme() {
    this.theme = null;
    this.moved();
  }

  resize() {
    const { clientWidth, clientHeight } = this.element;
    if (!clientWidth || !clientHeight) return;
    this.layout.aspect = clientWidth / clientHeight;
    this.width = clientWidth;
    this.height = clientHeight;
    this.ratio = Math.min(MOST_RATIO, devicePixelRatio || 1);
    const [width, height] = [Math.round(clientWidth * this.ratio), Math.round(clientHeight * this.ratio)];
    for (const canvas of [this.base, this.over]) {
      // To set a size clears a canvas, even if it is the same.
      if (canvas.width === width && canvas.height === height) continue;
      canvas.width = width;
      canvas.height = height;
    }
    if (this.camera.isFit) this.camera.fit(this.layout.width, this.layout.height);
    this.moved();
    this.render();
  }

  /** The layout has changed: files may have come, gone or moved. */
  laidOut() {
    if (this.camera.isFit) this.camera.fit(this.layout.width, this.layout.height);
    this.repaint();
    if (this.selected >= 0 && this.layout.paths[this.selected] !== this.selectedPath)
      this.select(this.selectedPath);
  }

  /** Every file is to be looked at again. */
  repaint() {
    this.changed = null;
    this.needsNames = true;
    this.want();
  }

  /** These files have changed. */
  touch(paths) {
    for (const path of paths) {
      const slot = this.layout.slots.get(path);
      if (slot === undefined || !this.changed) continue;
      this.changed.add(slot);
      this.isStale = true;
    }
    if (this.isStale) this.want();
  }

  moved() {
    this.needsNames = true;
    this.isStale = true;
    this.want();
  }

  want() {
    this.isStale = true;
    if (!this.frame) this.frame = requestAnimationFrame(() => this.render());
  }

  /** Draws, if something changed. */
  render() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    if (!this.isStale || !this.width || !this.element.clientWidth) return;
    const begun = performance.now();
    this.isStale = false;
    this.theme ??= readTheme();
    const { layout, painter } = this;
    this.fill();
    if (this.sentLayout !== layout.version) {
      painter.setFolders([...layout.folders.values()]);
      this.sentLayout = layout.version;
    }
    painter.send(layout.rects, this.states, layout.count, layout.takeMoved(), this.changed);
    painter.draw(this.camera, this.base.width, this.base.height, this.ratio, layout.count, this.theme);
    this.changed = new Set();
    if (this.needsNames) this.names();
    this.times.push(performance.now() - begun);
    if (this.times.length > 240) this.times.shift();
  }

  fill() {
    const { layout, hooks } = this;
    const length = layout.rects.length / 4;
    if (this.states.length < length * BYTES) {
      this.states = new Uint8Array(length * BYTES);
      this.changed = null;
    }
    if (this.changed)
      for (const slot of this.changed) hooks.fill(layout.paths[slot] ?? "", this.states, slot * BYTES);
    else
      for (let slot = 0; slot < layout.count; slot++)
        hooks.fill(layout.paths[slot] ?? "", this.states, slot * BYTES);
  }

  names() {
    this.needsNames = false;
    const { hooks } = this;
    const none = () => [];
    this.openFiles = this.overlay.draw({
      ...this.scene(),
      symbolsOf: hooks.symbolsOf ?? none,
      lit: hooks.lit ?? (() => new Set()),
    });
  }

  scene() {
    const { layout, camera, width, height, ratio, theme, selected, hovered, calls, zones } = this;
    return { layout, camera, width, height, ratio, theme, selected, hovered, calls, zones };
  }

  click(x, y) {
    this.element.focus({ preventScroll: true });
    const slot = this.slotAt(x, y);
    this.select(slot < 0 ? null : this.layout.paths[slot]);
  }

  hover(x, y) {
    const slot = x < 0 ? -1 : this.slotAt(x, y);
    if (slot === this.hovered) return;
    this.hovered = slot;
    this.moved();
    this.hooks.hovered?.(slot < 0 ? null : this.layout.paths[slot]);
  }

  slotAt(x, y) {
    const { camera } = this;
    return this.layout.at((x - camera.x) / camera.scale, (y - camera.y) / camera.scale);
  }

  /** Selects a file, or none. */
  select(path, look = false) {
    const slot = path === null ? -1 : (this.layout.slots.get(path) ?? -1);
    this.selected = slot;
    this.selectedPath = slot < 0 ? null : path;
    this.calls = slot < 0 ? [] : (this.hooks.callsOf?.(path) ?? []);
    if (look && slot >= 0) this.camera.look(this.layout.of(path));
    this.moved();
    this.hooks.selected(path);
  }

  key(key) {
    if (key === "0") this.camera.fit(this.layout.width, this.layout.height);
    else if (key === "Escape" && this.selectedPath) this.select(null);
    else return this.camera.key(key);
    return true;
  }
}
