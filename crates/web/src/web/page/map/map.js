// Owns the view of the map: the surface, the look back under it, the table beside it, and what is known of the
// selected file.

import { age, button, fill, h, setText } from "../dom.js";
import { ago, counted, isAside, line, whole } from "../format.js";
import { empty } from "../header.js";
import { withWaiting } from "../heat.js";
import { drawDetail, finder, litSymbols } from "./detail.js";
import { LayoutFeed } from "./feed.js";
import { Legend } from "./legend.js";
import { didOf, lookOf } from "./paint.js";
import { Slider } from "./slider.js";
import { Surface } from "./surface.js";
import { HotTable } from "./table.js";
import { zonesOf } from "./zones.js";

/** Calls of a file that are drawn. */
const MOST_CALLS = 200;
/** Files that are on the map at first. */
const MOST_FIRST = 400;
/** No line says that an overlap ended. */
const OVERLAPS_EVERY_MS = 15_000;
/** What happened fades. */
const FADE_EVERY_MS = 1_000;
/** Agents that are named in one line. */
const MOST_NAMED = 3;
/** Paths that wait, or overlap, and are looked at. */
const MOST_EXTRAS = 500;

export class MapView {
  constructor(app) {
    this.app = app;
    this.element = document.getElementById("map");
    this.extra = { waits: new Map(), overlap: new Map() };
    this.hasZones = false;
    const { graph, heat } = app.state;
    this.surface = new Surface("Map of the files; the table beside it says the same", {
      look: (path) => this.look(path),
      timesOf: (path) => heat.counts.get(path),
      now: () => this.now(),
      selected: (path) => this.selected(path),
      hovered: (path, tile) => this.tell(tile ? this.describe(path, tile) : this.sumUp()),
      symbolsOf: (path) => graph.symbolsOf(path),
      lit: (path) => litSymbols(heat.of(path)),
      callsOf: (path) => graph.callsOf(path, MOST_CALLS),
      arranged: () => this.arranged(),
      stepped: () => this.stepped(),
    });
    this.feed = new LayoutFeed(app, this.surface.layout, () => this.laidOut());
    this.hint = h("p", { class: "hint" });
    this.slider = new Slider(heat, () => this.moved());
    this.legend = new Legend();
    this.table = new HotTable({
      rows: (most) => this.rows(most),
      pick: (path) => this.surface.select(path, true),
      picked: () => this.surface.selectedPath,
      folders: () => this.surface.layout.foldable(),
      toggle: (path) => this.surface.toggle(path),
      isSeen: () => !this.element.hidden && !document.hidden,
      now: () => this.now(),
    });
    this.none = empty("map", "No agent has touched a file yet.");
    this.none.hidden = true;
    this.detail = h("section", { class: "detail", "aria-label": "Selected file", hidden: true });
    fill(
      this.element,
      h(
        "div",
        { class: "map-left" },
        h("div", { class: "map-head" }, this.hint, this.tools()),
        h("div", { class: "map-room" }, this.surface.element, this.none),
        this.slider.element,
        this.legend.element,
      ),
      h("div", { class: "map-side" }, this.detail, this.table.element),
    );
  }

  tools() {
    const { surface } = this;
    const zoom = (text, name, factor) =>
      button(text, () => surface.camera.zoom(factor), { class: "icon-only", "aria-label": name, title: name });
    this.zonesToggle = button("Zones", () => this.toggleZones(), {
      "aria-pressed": "false",
      title: "Show whose folders are whose",
    });
    return h(
      "div",
      { class: "row tools" },
      finder(
        () => surface.layout.known,
        (path) => surface.select(path, true),
      ),
      this.zonesToggle,
      zoom("+", "Zoom in", 1.4),
      zoom("−", "Zoom out", 1 / 1.4),
      button("All", () => surface.key("0"), { title: "Show all of the map", "aria-keyshortcuts": "0" }),
    );
  }

  show(rest = []) {
    this.app.lists.wantGraph();
    this.feed.start();
    this.overlapTimer ||= setInterval(
      () => document.hidden || !this.app.wire.isLive || this.app.lists.wantOverlaps(),
      OVERLAPS_EVERY_MS,
    );
    this.fadeTimer ||= setInterval(() => document.hidden || this.fade(), FADE_EVERY_MS);
    this.surface.resize();
    this.app.state.heat.changed = null;
    const path = rest.join("/");
    if (path && path !== this.surface.selectedPath) this.surface.select(path, true);
    this.update(new Set(["heat", "waiting", "overlaps", "agents"]));
  }

  hide() {
    this.feed.stop();
    clearInterval(this.overlapTimer);
    clearInterval(this.fadeTimer);
    this.overlapTimer = this.fadeTimer = 0;
  }

  laidOut() {
    this.surface.want();
    this.sum();
  }

  arranged() {
    this.none.hidden = this.surface.layout.tiles.length > 0;
    this.zones();
    this.table.want();
  }

  /** Says which folder the keys are on. */
  stepped() {
    this.tell(this.sumUp());
    if (this.surface.folder !== null) setText(document.getElementById("aloud"), this.hint.textContent);
  }

  update(dirty) {
    const { state } = this.app;
    if (dirty.has("graph") || dirty.has("link")) this.feed.changed(dirty.has("link"));
    if (dirty.has("graph")) (this.know(), this.surface.want());
    if (dirty.has("agents") || dirty.has("order")) this.legend.name([...state.agents.keys()]);
    if (dirty.has("agents")) this.zones();
    if (dirty.has("order")) (this.legend.forget(), this.table.forget(), this.surface.want());
    if (dirty.has("waiting") || dirty.has("overlaps")) this.extras();
    if (dirty.has("heat")) this.heated();
    if (!["heat", "waiting", "overlaps"].some((topic) => dirty.has(topic))) return;
    this.table.want();
    this.sum();
    this.know();
  }

  heated() {
    const { heat } = this.app.state;
    const changed = heat.takeChanged();
    const paths = changed
      ? [...changed].filter((path) => heat.files.has(path))
      : heat.latest(MOST_FIRST, (path) => !isAside(path)).map((it) => it.path).reverse();
    this.surface.touch(paths);
    this.feed.heated();
    this.slider.update();
  }

  /** Time goes on, and colours fade. */
  fade() {
    this.slider.update();
    if (this.slider.moment !== null) return;
    this.surface.want();
    this.table.want();
    if (this.surface.hovered === null) this.sum();
    age(this.detail, this.now());
  }

  /** Another moment is shown. */
  moved() {
    const { moment } = this.slider;
    this.past = moment === null ? null : this.app.state.heat.past.at(moment);
    this.surface.moved();
    this.table.want();
    this.sum();
    this.know();
  }

  now() {
    return this.slider.moment ?? Date.now();
  }

  fileOf(path) {
    return this.past ? (this.past.get(path) ?? null) : this.app.state.heat.of(path);
  }

  look(path) {
    const file = this.fileOf(path);
    const now = this.now();
    if (this.past) return lookOf(file, { now });
    const { waits, overlap } = this.extra;
    const waiting = waits.get(path);
    const shown = waiting ? withWaiting(file, path, waiting) : file;
    return lookOf(shown, { waits: Boolean(waiting), overlap: overlap.has(path), now });
  }

  toggleZones() {
    this.hasZones = !this.hasZones;
    this.zonesToggle.setAttribute("aria-pressed", String(this.hasZones));
    this.zones();
    this.surface.moved();
  }

  zones() {
    this.surface.zones = this.hasZones ? zonesOf(this.app.state.agents.values(), this.surface.layout) : [];
    if (this.hasZones) this.surface.want();
  }

  /** What waits and overlaps is on the map, too. */
  extras() {
    this.extra = extrasOf(this.app.state);
    this.surface.layout.setGhosts(new Set([...this.extra.waits.keys(), ...this.extra.overlap.keys()]));
    this.surface.want();
  }

  /** @returns {import("./table.js").Row[]} */
  rows(most) {
    const isWanted = (path) => !isAside(path);
    const files = this.past
      ? [...this.past.values()].filter((it) => isWanted(it.path)).sort((a, b) => b.at - a.at).slice(0, most)
      : this.app.state.heat.latest(most, isWanted);
    const rows = new Map(files.map((file) => [file.path, file]));
    if (!this.past) {
      for (const path of [...this.extra.waits.keys(), ...this.extra.overlap.keys()])
        if (!rows.has(path) && rows.size < most * 2) rows.set(path, this.fileOf(path));
    }
    return [...rows].map(([path, file]) => this.row(path, file));
  }

  row(path, file) {
    const look = this.look(path);
    const has = (...actions) => file?.touches.some((it) => actions.includes(it.action));
    const signs = [
      look.overlap && "overlap",
      look.waits && "waits",
      look.blocked && "blocked",
      look.edited && "edit",
      has("read") && "read",
      has("search") && "search",
      has("allowed", "answered") && "allowed",
      has("user_provided", "user_referenced") && "given",
      look.who.some((it) => it.inContext) && "context",
    ].filter(Boolean);
    const waiting = this.past ? null : this.extra.waits.get(path);
    const agents = new Set([...look.who.map((it) => it.agent), ...(waiting?.agents ?? [])]);
    return { path, agents: [...agents], signs, at: Math.max(file?.at ?? 0, waiting?.at ?? 0) };
  }

  describe(path, tile) {
    if (path === null) {
      const isOpen = this.surface.layout.opened.has(tile.path);
      const folded = tile.kind === "folded" && `: ${counted(tile.files, "file")} that nobody touched; a click or Enter opens it`;
      return `${folderName(tile.path)}${isOpen ? ": a click or Enter folds it" : folded || ""}`;
    }
    const who = this.look(path).who.map((it) => `${line(it.agent)} ${didOf(it.action)} ${ago(it.at, this.now())}`);
    return [line(path), ...who].join(" · ");
  }

  sum() {
    if (this.surface.hovered === null) this.tell(this.sumUp());
  }

  tell(text) {
    if (this.hint.textContent === text) return;
    setText(this.hint, text);
    this.hint.title = text;
  }

  /** In a line: how much there is, and who is busy where now. */
  sumUp() {
    const folder = this.surface.chosen();
    if (folder) return this.describe(null, folder.tile ?? folder);
    const { graph, heat } = this.app.state;
    const { layout } = this.surface;
    const parts = [counted(graph.files.size || layout.known.size, "file")];
    const touched = this.past?.size ?? heat.files.size;
    parts.push(touched ? `${whole(touched)} touched` : "no agent has touched one yet");
    const { waits, overlap } = this.extra;
    if (overlap.size && !this.past) {
      const agents = [...new Set([...overlap.values()].flatMap((it) => it.agents))];
      const isFew = agents.length <= MOST_NAMED;
      const named = isFew ? agents.map(line).join(" and ") : "several agents";
      parts.push(`${named} on one symbol${overlap.size > 1 ? ` in ${counted(overlap.size, "file")}` : ""}`);
    }
    if (waits.size && !this.past) parts.push(`${whole(waits.size)} ${waits.size === 1 ? "waits" : "wait"}`);
    if (graph.leftOut) parts.push(`${whole(graph.leftOut)} symbols and calls are left out here`);
    return parts.join(" · ");
  }

  selected(path) {
    if (!this.element.hidden) {
      const address = path ? `map/${encodeURIComponent(path)}` : "map";
      history.replaceState(null, "", `#${address}`);
      this.app.address = address;
    }
    this.table.want();
    this.knownLook = "";
    this.know();
  }

  /** Shows what is known of the selected file, if there is one and it is not what is shown already. */
  know() {
    const path = this.surface.selectedPath;
    this.detail.hidden = !path;
    if (!path) return;
    const { graph } = this.app.state;
    const file = this.fileOf(path);
    const known = {
      path,
      file,
      waits: this.past ? [] : (this.extra.waits.get(path)?.agents ?? []),
      overlap: this.past ? [] : (this.extra.overlap.get(path)?.agents ?? []),
      now: this.now(),
      symbols: graph.symbolsOf(path),
      calls: graph.callsOf(path, MOST_CALLS),
    };
    const look = JSON.stringify({ ...known, now: 0 });
    if (look === this.knownLook) return;
    this.knownLook = look;
    drawDetail(this.detail, known, (other) => this.surface.select(other, true));
  }

  key(key) {
    // Arrows scroll what else has the focus.
    const isElsewhere = ![document.body, this.element, this.surface.element].includes(document.activeElement);
    if (key.startsWith("Arrow") && isElsewhere) return false;
    return this.surface.key(key);
  }
}

/** The name of a folder, as the map and the table say it. */
function folderName(path) {
  return path ? `${line(path)}/` : "The workspace";
}

/** What waits, and where two agents work on one symbol: by path, the agents, and when that was. */
function extrasOf({ waiting, overlaps }) {
  const byPath = (lines) => {
    const map = new Map();
    for (const { path, agents, agent_id, timestamp_ms: at = 0 } of lines.values()) {
      const known = map.get(path);
      if (!path || path === "." || (!known && map.size >= MOST_EXTRAS)) continue;
      const names = (agents ?? [agent_id]).map((it) => it.agent_id ?? it);
      map.set(path, { agents: [...new Set([...(known?.agents ?? []), ...names])], at: Math.max(known?.at ?? 0, at) });
    }
    return map;
  };
  return { waits: byPath(waiting), overlap: byPath(overlaps) };
}
