// Owns when the layout is asked for: as the map is opened, and as files come and go.

import { gridOf } from "./layout.js";

/** The layout is asked for at most this often. */
const EVERY_MS = 1_000;
/** A team without a code graph does not tell that files came or went. */
const LOOK_EVERY_MS = 5_000;

export class LayoutFeed {
  constructor(app, layout, done) {
    this.app = app;
    this.layout = layout;
    this.done = done;
    this.timer = 0;
    this.clock = 0;
    this.asked = 0;
    this.graphVersion = -1;
    this.heatFiles = 0;
  }

  start() {
    this.changed(true);
    this.clock ||= setInterval(
      () => document.hidden || !this.app.wire.isLive || this.changed(true),
      LOOK_EVERY_MS,
    );
  }

  stop() {
    clearInterval(this.clock);
    this.clock = 0;
  }

  /** The graph changed, or all may have. */
  changed(isAll) {
    const { version } = this.app.state.graph;
    if (!isAll && version === this.graphVersion) return;
    if (this.timer) return;
    const wait = Math.max(0, this.asked + EVERY_MS - Date.now());
    this.timer = setTimeout(() => this.ask(), wait);
  }

  /** The grid of a team without a graph has the files that are hot. */
  heated() {
    if (this.layout.isKept || this.app.state.graph.files.size) return;
    if (this.heatFiles !== this.app.state.heat.files.size) this.changed(true);
  }

  async ask() {
    this.asked = Date.now();
    if (!this.app.wire.isLive) return void (this.timer = 0);
    const { layout } = this;
    if (layout.isKept) await this.kept();
    if (!layout.isKept) this.grid();
    this.timer = 0;
  }

  async kept() {
    const { layout } = this;
    try {
      const answer = await this.app.call("get_layout", layout.seq === null ? {} : { since: layout.seq });
      this.graphVersion = this.app.state.graph.version;
      const isSame =
        answer.whole === false && !answer.files.length && !answer.folders.length && !answer.removed.length;
      if (isSame) return void (layout.seq = answer.seq);
      layout.take(answer);
      this.done();
    } catch (error) {
      // A token for some agents gets no layout, which has the files of all.
      if ([403, 404].includes(error.code)) layout.isKept = false;
    }
  }

  grid() {
    const { graph, heat } = this.app.state;
    const paths = graph.files.size ? graph.files.keys() : heat.files.keys();
    const isSame =
      graph.version === this.graphVersion && (graph.files.size || heat.files.size === this.heatFiles);
    if (isSame) return;
    this.graphVersion = graph.version;
    this.heatFiles = heat.files.size;
    this.layout.take(gridOf(paths));
    this.done();
  }
}
