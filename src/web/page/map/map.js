// Owns the view of the map: the surface, the table of the hottest files beside it, and what is known
// of the selected file.

import { button, fill, h, keyed, setText } from "../dom.js";
import { ago, baseName, cut, line, whole } from "../format.js";
import { agentName } from "../marks.js";
import { pathOf } from "../graph.js";
import { LayoutFeed } from "./feed.js";
import { legend } from "./legend.js";
import { stateOf, wordsOf } from "./paint.js";
import { Surface } from "./surface.js";
import { zonesOf } from "./zones.js";

/** Files of the table. */
const MOST_ROWS = 60;
/** Calls of a file that are drawn, and that are listed. */
const MOST_CALLS = 200;
const MOST_LISTED = 40;
/** No line says that an overlap ended. */
const OVERLAPS_EVERY_MS = 15_000;
/** The table is sorted anew at most this often. */
const TABLE_EVERY_MS = 500;

export class MapView {
  constructor(app) {
    this.app = app;
    this.element = document.getElementById("map");
    this.sort = { by: "heat", isUp: false };
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
    this.body = h("tbody");
    this.heads = h("tr");
    this.table = h("table", { class: "hot" }, h("caption", { class: "hidden" }, "The hottest files"), h("thead", null, this.heads), this.body);
    this.detail = h("section", { class: "detail", "aria-label": "Selected file", hidden: true });
    const tools = h("div", { class: "tools" }, button("+", () => this.surface.camera.zoom(1.4), { "aria-label": "Zoom in" }), button("−", () => this.surface.camera.zoom(1 / 1.4), { "aria-label": "Zoom out" }), button("All", () => this.surface.key("0")));
    const left = h("div", { class: "map-left" }, h("div", { class: "map-room" }, this.surface.element, tools), this.hint, legend(this.surface));
    fill(this.element, left, h("div", { class: "map-side" }, this.detail, h("div", { class: "scroll-x" }, this.table)));
    this.drawHeads();
    this.extra = { blocked: new Set(), overlap: new Set() };
    this.tableTimer = 0;
  }

  show() {
    this.app.lists.wantGraph();
    this.feed.start();
    this.overlapTimer ||= setInterval(() => document.hidden || !this.app.wire.isLive || this.app.lists.wantOverlaps(), OVERLAPS_EVERY_MS);
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
    setText(this.hint, this.sumUp());
  }

  update(dirty) {
    const { state } = this.app;
    if (dirty.has("graph") || dirty.has("link")) this.feed.changed(dirty.has("link"));
    if (dirty.has("graph") && this.surface.selectedPath) this.surface.select(this.surface.selectedPath);
    if (dirty.has("graph")) this.surface.moved();
    if (dirty.has("agents")) this.zones();
    if (dirty.has("order")) this.surface.repaint(), fill(this.body), this.wantTable();
    if (dirty.has("waiting") || dirty.has("overlaps")) this.extras();
    if (dirty.has("heat")) {
      const changed = state.heat.takeChanged();
      if (changed) this.surface.touch(changed);
      else this.surface.repaint();
      this.feed.heated();
      if (this.surface.openFiles) this.surface.needsNames = true;
    }
    this.surface.render();
    if (["heat", "waiting", "overlaps"].some((topic) => dirty.has(topic))) this.wantTable();
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
    stateOf(this.app.state.heat.of(path), { blocked: blocked.has(path), overlap: overlap.has(path) }, out, at);
  }

  wordsFor(path) {
    const out = new Uint8Array(4);
    this.paint(path, out, 0);
    return wordsOf(out[1]);
  }

  describe(path) {
    const file = this.app.state.heat.of(path);
    const agents = [...new Set(file?.touches.map((it) => it.agent) ?? [])].join(", ");
    return [line(path), file && `heat ${file.heat.toFixed(2)}`, line(agents), ...this.wordsFor(path)].filter(Boolean).join(" · ");
  }

  sumUp() {
    const { graph, heat } = this.app.state;
    const { layout } = this.surface;
    const parts = [`${whole(layout.slots.size)} files`, `${whole(heat.files.size)} hot`];
    if (graph.isKnown) parts.push(`${whole(graph.symbolCount)} symbols`);
    if (graph.leftOut) parts.push(`${whole(graph.leftOut)} symbols and calls are left out here`);
    if (!layout.isKept) parts.push("in a grid: this team keeps no layout");
    if (this.surface.isFlat) parts.push("drawn without WebGL2");
    return parts.join(" · ");
  }

  wantTable() {
    this.tableTimer ||= setTimeout(() => {
      this.tableTimer = 0;
      if (!this.element.hidden && !document.hidden) this.drawTable();
    }, TABLE_EVERY_MS);
  }

  drawHeads() {
    const heads = [["path", "File"], ["heat", "Heat"], ["agents", "Agents"], ["action", "Last"], ["at", "When"]];
    fill(
      this.heads,
      heads.map(([by, text]) => {
        const isSorted = this.sort.by === by;
        const press = () => ((this.sort = { by, isUp: isSorted ? !this.sort.isUp : by === "path" }), this.drawHeads(), this.drawTable());
        return h("th", { scope: "col", "aria-sort": isSorted ? (this.sort.isUp ? "ascending" : "descending") : "none" }, button(`${text}${isSorted ? (this.sort.isUp ? " ▲" : " ▼") : ""}`, press));
      }),
    );
  }

  drawTable() {
    const files = this.app.state.heat.hottest(MOST_ROWS);
    const value = { path: (it) => it.path, heat: (it) => it.heat, agents: (it) => it.touches.map((touch) => touch.agent).sort().join(), action: (it) => it.action, at: (it) => it.at }[this.sort.by];
    if (this.sort.by !== "heat" || this.sort.isUp) files.sort((a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0) * (this.sort.isUp ? 1 : -1));
    keyed(this.body, files, (file) => file.path, (file) => this.row(file), (el, file) => this.fillRow(el, file));
    setText(this.hint, this.sumUp());
  }

  row(file) {
    const pick = button(line(baseName(file.path)), () => this.surface.select(file.path, true), { class: "plain path", title: line(file.path) });
    return h("tr", null, h("th", { scope: "row" }, pick), h("td"), h("td"), h("td"), h("td"));
  }

  fillRow(el, file) {
    const agents = [...new Set(file.touches.map((it) => it.agent))];
    const words = this.wordsFor(file.path).filter((it) => it !== "several agents" && !(it === "written" && file.action === "write"));
    const [, heat, who, last, when] = el.children;
    el.setAttribute("aria-selected", String(file.path === this.surface.selectedPath));
    if (!heat.firstChild) fill(heat, h("meter", { min: 0, max: 1, "aria-label": "heat" }), h("span"));
    heat.firstChild.value = file.heat;
    setText(heat.lastChild, file.heat.toFixed(2));
    if (who.dataset.look !== agents.join()) (who.dataset.look = agents.join()), fill(who, whoOf(agents));
    setText(last, [line(file.action), ...words].join(", "));
    setText(when, ago(file.at).replace(" ago", ""));
  }

  selected(path) {
    this.detail.hidden = !path;
    if (!path) return;
    const { state } = this.app;
    const file = state.heat.of(path);
    const calls = state.graph.callsOf(path, MOST_CALLS);
    const symbols = state.graph.symbolsOf(path);
    const lit = litSymbols(file);
    const call = (it, id) => h("li", null, button(line(id), () => this.surface.select(pathOf(id), true), { class: "plain" }));
    const group = (title, items) => items.length > 0 && h("details", { open: items.length <= 8 }, h("summary", null, `${title} (${items.length})`), h("ul", null, items.slice(0, MOST_LISTED)));
    fill(
      this.detail,
      h("div", { class: "row" }, h("h2", { class: "path" }, line(path)), h("span", { class: "grow" }), button("×", () => this.surface.select(null), { "aria-label": "Unselect" })),
      h("p", null, this.wordsFor(path).map((word) => [h("span", { class: "tag" }, word), " "])),
      file && h("ul", { class: "touches" }, file.touches.slice(0, 20).map((it) => h("li", null, agentName(it.agent), ` ${line(it.action)} ${ago(it.at)}, heat ${it.heat.toFixed(2)}${it.inContext ? ", in context" : ""}${it.origin ? `, ${line(it.origin)}` : ""}`))),
      group("Symbols", symbols.map((it) => h("li", null, lit.has(it.id) ? "▸ " : "", h("code", null, cut(line(it.name), 80)), h("span", { class: "dim" }, ` ${it.kind}, line ${it.from}`)))),
      group("Calls", calls.filter((it) => it.isOut && it.path !== path).map((it) => call(it, it.to))),
      group("Called by", calls.filter((it) => !it.isOut).map((it) => call(it, it.from))),
      h("p", null, h("a", { class: "button", href: `#time/blame/${encodeURIComponent(path)}` }, "Who wrote it")),
    );
  }

  key(key) {
    return this.surface.key(key);
  }
}

/** The agents of a row: two by name, more by their marks. */
function whoOf(agents) {
  const short = agents.length > 2 ? "short" : "";
  return h("span", { class: short, title: short && agents.map(line).join(", ") }, agents.slice(0, 8).map((it) => [agentName(it), " "]));
}

/** The symbols of a file that agents have in their context. */
function litSymbols(file) {
  return new Set(file?.touches.flatMap((it) => it.symbols) ?? []);
}
