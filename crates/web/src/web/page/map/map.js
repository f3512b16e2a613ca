// Owns the view of the map: the surface, the table of the hottest files beside it, and what is known
// of the selected file.

import { button, fill, h, setText } from "../dom.js";
import { line, whole } from "../format.js";
import { drawDetail, litSymbols } from "./detail.js";
import { LayoutFeed } from "./feed.js";
import { legend } from "./legend.js";
import { stateOf, wordsOf } from "./paint.js";
import { Surface } from "./surface.js";
import { HotTable } from "./table.js";
import { zonesOf } from "./zones.js";

/** Calls of a file that are drawn. */
const MOST_CALLS = 200;
/** No line says that an overlap ended. */
const OVERLAPS_EVERY_MS = 15_000;

export class MapView {
  constructor(app) {
    this.app = app;
    this.element = document.getElementById("map");
    this.surface = new Surface("Map of the files; the table beside it says the same", {
      fill: (path, out, at) => this.paint(path, out, at),
      selected: (path) => this.selected(path),
      hovered: (path) => setText(this.hint, path ? this.describe(path) : this.sumUp()),
      symbolsOf: (path) => app.state.graph.symbolsOf(path),
      lit: (path) => litSymbols(app.state.heat.of(path)),
      callsOf: (path) => app.state.graph.callsOf(path, MOST_CALLS),
    });
    this.feed = new LayoutFeed(app, this.surface.layout, () => this.laidOut());
    this.hint = h("p", { class: "hint" });
    this.table = new HotTable({
      hottest: (most) => app.state.heat.hottest(most),
      wordsFor: (path) => this.wordsFor(path),
      pick: (path) => this.surface.select(path, true),
      picked: () => this.surface.selectedPath,
      isSeen: () => !this.element.hidden && !document.hidden,
    });
    this.detail = h("section", { class: "detail", "aria-label": "Selected file", hidden: true });
    const tools = h(
      "div",
      { class: "tools" },
      button("+", () => this.surface.camera.zoom(1.4), { "aria-label": "Zoom in" }),
      button("−", () => this.surface.camera.zoom(1 / 1.4), { "aria-label": "Zoom out" }),
      button("All", () => this.surface.key("0")),
    );
    const left = h(
      "div",
      { class: "map-left" },
      h("div", { class: "map-room" }, this.surface.element, tools),
      this.hint,
      legend(this.surface),
    );
    fill(
      this.element,
      left,
      h("div", { class: "map-side" }, this.detail, h("div", { class: "scroll-x" }, this.table.element)),
    );
    this.extra = { blocked: new Set(), overlap: new Set() };
  }

  show() {
    this.app.lists.wantGraph();
    this.feed.start();
    this.overlapTimer ||= setInterval(
      () => document.hidden || !this.app.wire.isLive || this.app.lists.wantOverlaps(),
      OVERLAPS_EVERY_MS,
    );
    this.surface.resize();
    this.app.state.heat.changed = null;
    this.update(new Set(["heat", "waiting", "overlaps", "agents"]));
  }

  hide() {
    this.feed.stop();
    clearInterval(this.overlapTimer);
    this.overlapTimer = 0;
  }

  laidOut() {
    this.zones();
    this.surface.laidOut();
    this.sum();
  }

  update(dirty) {
    const { state } = this.app;
    if (dirty.has("graph") || dirty.has("link")) this.feed.changed(dirty.has("link"));
    if (dirty.has("graph") && this.surface.selectedPath) this.surface.select(this.surface.selectedPath);
    if (dirty.has("graph")) this.surface.moved();
    if (dirty.has("agents")) this.zones();
    if (dirty.has("order")) (this.surface.repaint(), this.table.forget());
    if (dirty.has("waiting") || dirty.has("overlaps")) this.extras();
    if (dirty.has("heat")) {
      const changed = state.heat.takeChanged();
      if (changed) this.surface.touch(changed);
      else this.surface.repaint();
      this.feed.heated();
      if (this.surface.openFiles) this.surface.needsNames = true;
    }
    this.surface.render();
    if (["heat", "waiting", "overlaps"].some((topic) => dirty.has(topic))) (this.table.want(), this.sum());
  }

  zones() {
    const zones = zonesOf(this.app.state.agents.values(), this.surface.layout);
    const look = JSON.stringify(zones);
    if (look === this.zoneLook) return;
    this.zoneLook = look;
    this.surface.zones = zones;
    this.surface.moved();
  }

  /** What waits and overlaps is on the map, too. */
  extras() {
    const before = this.extra;
    const blocked = new Set();
    for (const it of this.app.state.waiting.values()) blocked.add(it.path);
    const overlap = new Set();
    for (const it of this.app.state.overlaps.values()) overlap.add(it.path);
    this.extra = { blocked, overlap };
    for (const set of [before.blocked, before.overlap, blocked, overlap]) this.surface.touch(set);
  }

  paint(path, out, at) {
    const { blocked, overlap } = this.extra;
    stateOf(
      this.app.state.heat.of(path),
      { blocked: blocked.has(path), overlap: overlap.has(path) },
      out,
      at,
    );
  }

  wordsFor(path) {
    const out = new Uint8Array(4);
    this.paint(path, out, 0);
    return wordsOf(out[1]);
  }

  describe(path) {
    const file = this.app.state.heat.of(path);
    const agents = [...new Set(file?.touches.map((it) => it.agent) ?? [])].join(", ");
    return [line(path), file && `heat ${file.heat.toFixed(2)}`, line(agents), ...this.wordsFor(path)]
      .filter(Boolean)
      .join(" · ");
  }

  sum() {
    if (this.surface.hovered < 0) setText(this.hint, this.sumUp());
  }

  sumUp() {
    const { graph, heat } = this.app.state;
    const { layout } = this.surface;
    const parts = [`${whole(layout.slots.size)} files`, `${whole(heat.files.size)} hot`];
    if (graph.isKnown) parts.push(`${whole(graph.symbolCount)} symbols`);
    if (layout.unplaced) parts.push(`${whole(layout.unplaced)} have no place of their own`);
    if (graph.leftOut) parts.push(`${whole(graph.leftOut)} symbols and calls are left out here`);
    if (!layout.isKept) parts.push("in a grid: no layout was given");
    if (this.surface.isFlat) parts.push("drawn without WebGL2");
    return parts.join(" · ");
  }

  selected(path) {
    this.detail.hidden = !path;
    this.table.want();
    if (!path) return;
    const { graph, heat } = this.app.state;
    const known = {
      path,
      file: heat.of(path),
      words: this.wordsFor(path),
      symbols: graph.symbolsOf(path),
      calls: graph.callsOf(path, MOST_CALLS),
    };
    drawDetail(this.detail, known, (other) => this.surface.select(other, true));
  }

  key(key) {
    // Arrows scroll what else has the focus.
    const isElsewhere = ![document.body, this.element, this.surface.element].includes(document.activeElement);
    if (key.startsWith("Arrow") && isElsewhere) return false;
    return this.surface.key(key);
  }
}
