// Owns the scrubber: the map as it was, of the whole team or of one session.

import { button, fill, h, setText } from "../dom.js";
import { failed, notice } from "../dialog.js";
import { clock, counted, isAside, line } from "../format.js";
import { agentName } from "../marks.js";
import { stateOf } from "../map/paint.js";
import { Surface } from "../map/surface.js";
import { LayoutFeed } from "../map/feed.js";
import { bars } from "./bars.js";
import { eachEvent, sessionsOf } from "./pages.js";
import { Timeline } from "./timeline.js";

const STEPS = 1000;
const BINS = 120;
/** Accesses that are listed around the moment. */
const MOST_LISTED = 40;
const SPEEDS = [1, 10, 60, 600];

export class Replay {
  constructor(app) {
    this.app = app;
    this.timeline = new Timeline();
    this.files = new Map();
    this.at = 0;
    this.speed = 60;
    this.frame = 0;
    this.isReading = false;
    this.surface = new Surface("Map at the chosen moment; the list beside it says what happened", {
      fill: (path, out, at) =>
        stateOf(this.files.get(path) ?? null, { blocked: false, overlap: false }, out, at),
      selected: () => {},
      hovered: (path) => setText(this.hint, path ? line(path) : this.sumUp()),
    });
    this.feed = new LayoutFeed(app, this.surface.layout, () => this.surface.laidOut());
    this.source = h(
      "select",
      { "aria-label": "What is replayed", on: { change: () => this.read() } },
      h("option", { value: "" }, "the whole team"),
    );
    this.slider = h("input", {
      type: "range",
      min: 0,
      max: STEPS,
      value: STEPS,
      "aria-label": "Moment",
      on: { input: () => this.seek() },
    });
    this.play = button("Play", () => this.toggle(), { class: "main" });
    this.pace = h(
      "select",
      { "aria-label": "Speed", on: { change: (event) => (this.speed = Number(event.target.value)) } },
      SPEEDS.map((speed) => h("option", { value: speed, selected: speed === 60 }, `${speed}×`)),
    );
    this.when = h("output", { class: "when" });
    this.hint = h("p", { class: "hint" });
    this.shape = h("div", { class: "shape", "aria-hidden": "true" });
    this.list = h("ol", { class: "log", "aria-label": "What happened until then, the last first" });
    this.all = h("input", { type: "checkbox", on: { change: () => this.fillList() } });
    this.aside = h("span");
    const controls = h(
      "div",
      { class: "row wrap controls" },
      this.source,
      this.play,
      this.pace,
      this.when,
      button("Read again", () => this.begin()),
      h("label", null, this.all, this.aside),
    );
    fill(
      (this.element = h("section", { class: "part replay", "aria-label": "Replay", hidden: true })),
      controls,
      h("div", { class: "scrubber" }, this.shape, this.slider),
      h("div", { class: "map-room" }, this.surface.element),
      this.hint,
      h("div", { class: "scroll", tabindex: "0" }, this.list),
    );
  }

  show() {
    this.app.lists.wantGraph();
    this.feed.start();
    this.surface.resize();
    if (!this.timeline.accesses.length) this.begin();
  }

  hide() {
    this.feed.stop();
    this.stop();
  }

  update(dirty) {
    if (dirty.has("graph") || dirty.has("link")) this.feed.changed(dirty.has("link"));
    if (dirty.has("link") && !this.timeline.accesses.length) this.begin();
  }

  /** Reads which sessions there are, and then what happened. */
  async begin() {
    if (!this.app.wire.isLive || this.isReading) return;
    try {
      const sessions = await sessionsOf(this.app);
      const chosen = this.source.value;
      fill(
        this.source,
        h("option", { value: "" }, "the whole team"),
        sessions.map((it) =>
          h("option", { value: it.id }, `${line(it.agent)} · ${line(it.name)} · ${clock(it.at)}`),
        ),
      );
      if (sessions.some((it) => it.id === chosen)) this.source.value = chosen;
      await this.read();
    } catch (error) {
      setText(this.hint, `The journal can't be read: ${error.message}`);
    }
  }

  async read() {
    if (this.isReading) return;
    this.stop();
    this.isReading = true;
    setText(this.hint, "Reading the journal …");
    const timeline = new Timeline();
    const session = this.source.value;
    try {
      if (session) await this.app.replays.read(session, (it) => timeline.replayed(it));
      const hasMore =
        !session &&
        (await eachEvent(
          this.app,
          { types: ["file", "blocked"] },
          (event) => timeline.event(event),
          () => !timeline.isFull,
        ));
      timeline.end();
      this.timeline = timeline;
      if (timeline.isFull || hasMore) notice("the journal has more than fits: the beginning is shown");
      fill(this.shape, bars(timeline.histogram(BINS), "accesses"));
      this.moveTo(timeline.to);
    } catch (error) {
      failed("replay")(error);
    }
    this.isReading = false;
    setText(this.hint, this.sumUp());
  }

  sumUp() {
    const { timeline } = this;
    if (!timeline.accesses.length) return "The journal has no access to files yet.";
    return `${counted(timeline.accesses.length, "access")} from ${clock(timeline.from)} to ${clock(timeline.to)}`.replace(
      "accesss",
      "accesses",
    );
  }

  seek() {
    const { timeline } = this;
    this.moveTo(timeline.from + ((timeline.to - timeline.from) * Number(this.slider.value)) / STEPS, true);
  }

  moveTo(at, isSlider = false) {
    const { timeline, surface } = this;
    const before = this.files;
    this.at = at;
    this.files = timeline.filesAt(at);
    surface.touch(before.keys());
    surface.touch(this.files.keys());
    const span = Math.max(1, timeline.to - timeline.from);
    if (!isSlider) this.slider.value = String(Math.round(((at - timeline.from) / span) * STEPS));
    this.slider.setAttribute("aria-valuetext", clock(at));
    setText(this.when, timeline.accesses.length ? clock(at) : "");
    const end = timeline.countUntil(at);
    if (end === this.listed && timeline === this.listedOf) return;
    [this.listed, this.listedOf] = [end, timeline];
    this.fillList();
  }

  /** Lists what happened until the moment; what is aside is only counted unless it is wanted. */
  fillList() {
    const { accesses } = this.timeline;
    const last = [];
    let aside = 0;
    for (let n = (this.listed ?? 0) - 1; n >= 0; n--) {
      const isHere = !isAside(accesses[n].path);
      if (!isHere) aside += 1;
      if ((isHere || this.all.checked) && last.length < MOST_LISTED) last.push(accesses[n]);
    }
    setText(this.aside, ` also outside the workspace and in .git (${aside})`);
    fill(
      this.list,
      last.map((it) =>
        h(
          "li",
          null,
          h("time", null, clock(it.at)),
          agentName(it.agent || "outside"),
          h("span", { class: "text" }, `${line(it.action)} ${line(it.path)}`),
        ),
      ),
    );
  }

  toggle() {
    if (this.frame) return this.stop();
    if (!this.timeline.accesses.length) return;
    if (this.at >= this.timeline.to) this.moveTo(this.timeline.from);
    setText(this.play, "Pause");
    let then = performance.now();
    const step = (now) => {
      this.frame = requestAnimationFrame(step);
      // Ten moments a second are enough to look at.
      if (now - then < 100) return;
      this.moveTo(Math.min(this.timeline.to, this.at + (now - then) * this.speed));
      then = now;
      if (this.at >= this.timeline.to) this.stop();
    };
    this.frame = requestAnimationFrame(step);
  }

  stop() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    setText(this.play, "Play");
  }

  key(key) {
    if (key === " ") return (this.toggle(), true);
    return document.activeElement === this.surface.element && this.surface.key(key);
  }
}
