// Owns the map as something to look at: its canvas, when it is drawn anew, and the selection.

import { h } from "../dom.js";
import { moved } from "../keys.js";
import { Camera } from "./camera.js";
import { Layout } from "./layout.js";
import { Overlay } from "./overlay.js";
import { onTheme, readTheme } from "./theme.js";

/** Pixels for each of the page's; more costs time, and shows nothing. */
const MOST_RATIO = 2;
/** Ten pictures a second show what agents do; a hand that moves the map sees each. */
const EVERY_MS = 100;
/** Places change at most this often. */
const ARRANGE_EVERY_MS = 700;

export class Surface {
  /**
   * @param {string} label
   * @param {{look: (path: string) => Object, selected: (path: string | null) => void,
   *   hovered?: (path: string | null, tile: Object | null) => void, symbolsOf?: Function, lit?: Function,
   *   callsOf?: (path: string) => Object[], arranged?: () => void, stepped?: () => void}} hooks `stepped`: keys went to
   *   another folder, or opened or folded one
   */
  constructor(label, hooks) {
    this.hooks = hooks;
    this.layout = new Layout();
    this.selectedPath = null;
    this.hovered = null;
    /** The path of the folder that keys are on; null: on none. */
    this.folder = null;
    this.calls = [];
    this.zones = [];
    this.frame = 0;
    this.timer = 0;
    /** The file that is to be brought into sight, and what was seen then. */
    this.lookAt = null;
    this.looking = "";
    this.drawnAt = 0;
    this.arrangedAt = 0;
    this.isStale = true;
    this.canvas = h("canvas");
    this.element = h(
      "div",
      { class: "surface", tabindex: "0", role: "application", "aria-label": label },
      this.canvas,
    );
    this.overlay = new Overlay(this.canvas);
    this.camera = new Camera(this.element, {
      moved: () => this.moved(),
      click: (x, y) => this.click(x, y),
      hover: (x, y) => this.hover(x, y),
    });
    new ResizeObserver(() => this.resize()).observe(this.element);
    onTheme(() => ((this.theme = null), this.moved()));
  }

  resize() {
    const { clientWidth, clientHeight } = this.element;
    if (!clientWidth || !clientHeight) return;
    this.width = clientWidth;
    this.height = clientHeight;
    this.ratio = Math.min(MOST_RATIO, devicePixelRatio || 1);
    const [width, height] = [Math.round(clientWidth * this.ratio), Math.round(clientHeight * this.ratio)];
    // To set a size clears a canvas, even if it is the same.
    if (this.canvas.width !== width) this.canvas.width = width;
    if (this.canvas.height !== height) this.canvas.height = height;
    this.layout.resize(clientWidth, clientHeight);
    this.arrangedAt = 0;
    this.isStale = true;
    this.draw();
  }

  /** These files have changed, and have tiles of their own. */
  touch(paths) {
    for (const path of paths) this.layout.touch(path, this.hooks.timesOf?.(path));
    this.want();
  }

  /** The reader moved the map, or chose something: it is drawn in the next frame. */
  moved() {
    this.isStale = true;
    this.frame ||= requestAnimationFrame(() => this.draw());
  }

  /** Something is to be drawn anew, soon. */
  want() {
    this.isStale = true;
    if (this.frame || this.timer) return;
    const wait = this.drawnAt + EVERY_MS - performance.now();
    if (wait <= 0) return this.moved();
    this.timer = setTimeout(() => ((this.timer = 0), this.moved()), wait);
  }

  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    if (!this.isStale || !this.width || !this.element.clientWidth) return;
    const begun = performance.now();
    this.isStale = false;
    this.drawnAt = begun;
    this.theme ??= readTheme();
    this.arrange(begun);
    this.overlay.draw(this.scene());
  }

  arrange(now) {
    const { layout } = this;
    if (!layout.isStale) return;
    if (now - this.arrangedAt < ARRANGE_EVERY_MS && layout.version) return this.later();
    this.arrangedAt = now;
    layout.arrange();
    this.hovered = null;
    // What was brought into sight stays there, until the reader moves the map.
    const isLooking = this.looking === this.view();
    if (isLooking) this.lookAt ??= this.selectedPath;
    if (isLooking || this.camera.isFit) this.camera.fit(layout.width, layout.height);
    if (this.lookAt) this.look();
    this.hooks.arranged?.();
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.isStale = false;
  }

  /** New places come a little later. */
  later() {
    this.arrangeTimer ||= setTimeout(() => ((this.arrangeTimer = 0), this.want()), EVERY_MS);
  }

  scene() {
    const { layout, camera, width, height, ratio, theme, hovered, calls, zones, hooks } = this;
    return {
      layout,
      camera,
      width,
      height,
      ratio,
      theme,
      hovered,
      folder: this.chosen()?.tile,
      calls,
      zones,
      selected: this.selectedPath,
      now: hooks.now?.() ?? 0,
      lookOf: hooks.look,
      symbolsOf: hooks.symbolsOf ?? (() => []),
      lit: hooks.lit ?? (() => new Set()),
    };
  }

  click(x, y) {
    this.element.focus({ preventScroll: true });
    this.folder = null;
    const tile = this.tileAt(x, y);
    if (!tile) return this.select(null);
    if (tile.kind === "file") return this.select(tile.path);
    this.toggle(tile.path);
  }

  /** Opens a folder, or folds it again. */
  toggle(path) {
    this.layout.toggle(path);
    this.arrangedAt = 0;
    this.moved();
  }

  /** The folder that keys are on, or null. */
  chosen() {
    return this.folder === null ? null : (this.layout.foldable().find((it) => it.path === this.folder) ?? null);
  }

  /** Goes to the next folder that can be opened or folded, or to the one before. */
  step(by) {
    const all = this.layout.foldable();
    this.folder = moved(all, (it) => it.path === this.folder, by)?.path ?? null;
    const tile = this.chosen()?.tile;
    if (tile) this.bring(tile);
    this.moved();
    this.hooks.stepped?.();
  }

  /** A key for the folder that keys are on: true if it was for it. */
  folderKey(key) {
    const folder = this.chosen();
    const toggles = { Enter: true, ArrowRight: !folder?.isOpen, ArrowLeft: folder?.isOpen };
    if (!folder || !Object.hasOwn(toggles, key)) return false;
    if (toggles[key]) this.toggle(folder.path);
    this.hooks.stepped?.();
    return true;
  }

  hover(x, y) {
    const tile = x < 0 ? null : this.tileAt(x, y);
    if (tile === this.hovered) return;
    this.hovered = tile;
    this.element.classList.toggle("points", Boolean(tile));
    this.moved();
    this.hooks.hovered?.(tile?.kind === "file" ? tile.path : null, tile);
  }

  tileAt(x, y) {
    const { camera } = this;
    return this.layout.at((x - camera.x) / camera.scale, (y - camera.y) / camera.scale);
  }

  /** Selects a file, or none; it gets a tile if it has none. */
  select(path, look = false) {
    this.selectedPath = path;
    this.calls = path === null ? [] : (this.hooks.callsOf?.(path) ?? []);
    if (path) this.layout.pin(path);
    if (this.layout.isStale) this.arrangedAt = 0;
    this.lookAt = look ? path : null;
    if (this.lookAt && !this.layout.isStale) this.look();
    this.moved();
    this.hooks.selected(path);
  }

  /** Brings the selected file into sight, if it is not, or too small. */
  look() {
    const tile = this.layout.of(this.lookAt);
    // Its folder may not be known yet.
    if (!tile) return;
    this.lookAt = null;
    this.bring(tile);
    this.looking = this.view();
  }

  /** Brings a tile into sight, if it is not, or too small. */
  bring(tile) {
    const { x, y, scale } = this.camera;
    const [left, top, wide, high] = [tile.x * scale + x, tile.y * scale + y, tile.w * scale, tile.h * scale];
    const isSeen = left >= 0 && top >= 0 && left + wide <= this.width && top + high <= this.height;
    if (!isSeen || wide < 60 || high < 30) this.camera.look(tile);
  }

  /** The part of the map that is seen, to be compared. */
  view() {
    const { x, y, scale } = this.camera;
    return `${x} ${y} ${scale}`;
  }

  key(key) {
    if (key === "0") this.camera.fit(this.layout.width, this.layout.height);
    else if (key === "j" || key === "k") this.step(key === "j" ? 1 : -1);
    else if (this.folderKey(key)) return true;
    else if (key === "Escape" && this.folder !== null) ((this.folder = null), this.moved(), this.hooks.stepped?.());
    else if (key === "Escape" && this.selectedPath) this.select(null);
    else return this.camera.key(key);
    return true;
  }
}
