// Owns when the map hears of the files of the workspace: as it is opened, and as files come and go.

/** Files are taken anew at most this often; in a large workspace less often, by what it takes. */
const EVERY_MS = 1_000;
const SHARE = 40;

export class LayoutFeed {
  /**
   * @param {import("./layout.js").Layout} layout
   * @param {() => void} done hears that files came or went
   */
  constructor(app, layout, done) {
    this.app = app;
    this.layout = layout;
    this.done = done;
    this.timer = 0;
    this.taken = 0;
    this.pause = EVERY_MS;
    this.graphVersion = -1;
    this.heatFiles = -1;
    this.isOfGraph = false;
  }

  start() {
    this.changed(true);
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = 0;
  }

  /** The graph changed, or all may have. */
  changed(isAll) {
    if (!isAll && this.app.state.graph.version === this.graphVersion) return;
    // The first graph is wanted at once.
    const isFirst = !this.isOfGraph && this.app.state.graph.files.size > 0;
    if (isFirst) this.stop();
    const wait = isFirst ? 0 : Math.max(0, this.taken + this.pause - Date.now());
    this.timer ||= setTimeout(() => this.take(), wait);
  }

  /** The map of a team without a graph has the files that were touched. */
  heated() {
    const { graph, heat } = this.app.state;
    if (!graph.files.size && this.heatFiles !== heat.files.size) this.changed(true);
  }

  take() {
    this.timer = 0;
    const { graph, heat } = this.app.state;
    const isSame = graph.version === this.graphVersion && (graph.files.size || heat.files.size === this.heatFiles);
    if (isSame) return;
    const begun = performance.now();
    this.graphVersion = graph.version;
    this.heatFiles = heat.files.size;
    this.isOfGraph = graph.files.size > 0;
    this.layout.symbolsOf = (path) => graph.symbols.get(path)?.length ?? 0;
    this.layout.setFiles(graph.files.size ? graph.files : heat.files.keys());
    this.done();
    this.taken = Date.now();
    this.pause = Math.max(EVERY_MS, (performance.now() - begun) * SHARE);
  }
}
