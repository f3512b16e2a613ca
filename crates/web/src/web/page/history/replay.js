// Owns the scrubber: the map as it was, of the whole team or of one session.

import { button, fill, h, kbd, setText } from "../dom.js";
import { failed, notice } from "../dialog.js";
import { brief, clock, counted, line } from "../format.js";
import { empty } from "../header.js";
import { icon } from "../icons.js";
import { agentName } from "../marks.js";
import { didOf, iconOf, lookOf } from "../map/paint.js";
import { Surface } from "../map/surface.js";
import { LayoutFeed } from "../map/feed.js";
import { eachEvent, sessionsOf } from "./pages.js";
import { Timeline } from "./timeline.js";

const STEPS = 1000;
const BINS = 120;
/** Accesses that are listed around the moment. */
const MOST_LISTED = 40;
const SPEEDS = [1, 10, 60, 600];
/** Of the scale: marks of pauses stand at least so far apart to have a text. */
const NEAR = 0.06;

export class Replay {
  constructor(app) {
    this.app = app;
    this.timeline = new Timeline();
    this.files = new Map();
    this.at = 0;
    this.speed = 60;
    this.frame = 0;
    this.isReading = false;
    const again = button([icon("again"), "Read again"], () => this.begin(), { class: "quiet" });
    this.surface = new Surface("Map at the chosen moment; the list beside it says what happened", {
      look: (path) => lookOf(this.files.get(path) ?? null, { now: this.at }),
      selected: () => {},
      now: () => this.at,
      hovered: (path) => setText(this.hint, path ? line(path) : this.sumUp()),
    });
    this.feed = new LayoutFeed(app, this.surface.layout, () => this.surface.want());
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
    this.play = button("", () => this.toggle(), { class: "main" });
    this.pace = h(
      "select",
      { "aria-label": "Speed", on: { change: (event) => (this.speed = Number(event.target.value)) } },
      SPEEDS.map((speed) => h("option", { value: speed, selected: speed === 60 }, `${speed}× as fast`)),
    );
    this.when = h("output", { class: "when" });
    this.hint = h("p", { class: "hint" });
    this.shape = h("div", { class: "shape" });
    this.list = h("ol", { class: "moments", "aria-label": "What happened until then, the last first" });
    this.all = h("input", { type: "checkbox", title: "And in .git", on: { change: () => this.choose() } });
    this.aside = h("span", null, "Also outside the workspace");
    this.none = h("div", { class: "none", hidden: true });
    const controls = h(
      "div",
      { class: "row wrap controls" },
      this.play,
      this.step("back", "Back", -1),
      this.step("right", "Next", 1),
      this.pace,
      this.source,
      this.when,
      h("span", { class: "grow" }),
      h("label", { class: "row small" }, this.all, this.aside),
      again,
    );
    fill(
      (this.element = h("section", { class: "part replay", "aria-label": "Replay", hidden: true })),
      controls,
      h("div", { class: "scrubber" }, this.shape, this.slider),
      h("div", { class: "map-room" }, this.surface.element),
      this.hint,
      h("div", { class: "scroll", tabindex: "0", "aria-label": "What happened", role: "region" }, this.list),
      this.none,
    );
    this.playing(false);
  }

  /** A button that leads to what happened before or after. */
  step(image, text, by) {
    return button([icon(image), text], () => this.walk(by));
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
    this.none.hidden = true;
    const timeline = new Timeline();
    const session = this.source.value;
    try {
      this.app.replayed = (it) => timeline.replayed(it);
      if (session) await this.app.call("replay_session", { session_id: session, speed: "max" }, 120_000);
      const hasMore =
        !session &&
        (await eachEvent(
          this.app,
          { types: ["file", "blocked"] },
          (event) => timeline.event(event),
          () => !timeline.isFull,
        ));
      timeline.end(this.all.checked);
      this.timeline = timeline;
      if (timeline.isFull || hasMore) notice("the journal has more than fits: the beginning is shown");
      this.drawScale();
    } catch (error) {
      failed("replay")(error);
    }
    this.app.replayed = null;
    this.isReading = false;
    setText(this.hint, this.sumUp());
  }

  /** Shows, or leaves out, what is none of the team's work. */
  choose() {
    this.stop();
    this.timeline.choose(this.all.checked);
    this.drawScale();
    setText(this.hint, this.sumUp());
  }

  /** Draws the scale with its bars, and a thin mark for each pause that is cut out. */
  drawScale() {
    const { timeline } = this;
    const percent = (share) => `${(share * 100).toFixed(2)}%`;
    let last = -1;
    const marks = timeline.gaps().map(({ begin, end, ms }) => {
      const middle = (begin + end) / 2;
      const hasText = middle - last > NEAR;
      if (hasText) last = middle;
      return h(
        "g",
        null,
        h("title", null, `${brief(ms)} in which nothing happened`),
        h("rect", { x: percent(begin), width: percent(end - begin), y: 0, height: "100%" }),
        hasText && h("text", { x: percent(middle), y: 12 }, brief(ms)),
      );
    });
    fill(
      this.shape,
      bars(timeline.histogram(BINS), "What happened to files"),
      h("svg", { class: "gaps", role: "img", "aria-label": counted(marks.length, "pause") }, marks),
    );
    const isEmpty = !timeline.accesses.length;
    const aside = timeline.asides ? " There is some outside the workspace and in .git." : "";
    this.none.hidden = !isEmpty;
    const text = `No agent has touched a file yet: there is nothing to replay.${aside}`;
    if (isEmpty) fill(this.none, empty("play", text));
    setText(this.aside, `Also outside the workspace${timeline.asides ? ` (${timeline.asides})` : ""}`);
    this.listed = undefined;
    this.moveTo(timeline.to);
  }

  sumUp() {
    const { timeline } = this;
    if (!timeline.accesses.length) return "";
    const { accesses, from, to } = timeline;
    return `${counted(accesses.length, "step")} from ${clock(from)} to ${clock(to)}; pauses are cut`;
  }

  seek() {
    this.moveTo(this.timeline.timeAt(Number(this.slider.value) / STEPS), true);
  }

  /** Goes to what happened just before, or just after. */
  walk(by) {
    const { accesses } = this.timeline;
    if (!accesses.length) return;
    this.stop();
    let n = this.timeline.countUntil(this.at) - 1 + by;
    // What happened at one moment is one step.
    while (by < 0 && n > 0 && accesses[n].at === this.at) n -= 1;
    this.moveTo(accesses[Math.max(0, Math.min(accesses.length - 1, n))].at);
  }

  moveTo(at, isSlider = false) {
    const { timeline, surface } = this;
    const before = this.files;
    this.at = at;
    this.files = timeline.filesAt(at);
    surface.touch(before.keys());
    surface.touch(this.files.keys());
    if (!isSlider) this.slider.value = String(Math.round(timeline.placeOf(at) * STEPS));
    this.slider.setAttribute("aria-valuetext", clock(at));
    setText(this.when, timeline.accesses.length ? clock(at) : "");
    const end = timeline.countUntil(at);
    if (end === this.listed && timeline === this.listedOf) return;
    [this.listed, this.listedOf] = [end, timeline];
    this.fillList();
  }

  /** Lists what happened until the moment. */
  fillList() {
    const end = this.listed ?? 0;
    const last = this.timeline.accesses.slice(Math.max(0, end - MOST_LISTED), end).reverse();
    fill(
      this.list,
      last.map((it) => {
        const href = `#history/blame/${encodeURIComponent(it.path)}`;
        return h(
          "li",
          null,
          h("time", null, clock(it.at)),
          icon(iconOf(it.action)),
          h("span", { class: "clip" }, it.agent ? agentName(it.agent) : "somebody outside the team", ` ${didOf(it.action)}`),
          h("a", { class: "path", href, title: "Who wrote its lines" }, line(it.path)),
        );
      }),
    );
  }

  toggle() {
    if (this.frame) return this.stop();
    if (!this.timeline.accesses.length) return;
    if (this.at >= this.timeline.to) this.moveTo(this.timeline.from);
    this.playing(true);
    let then = performance.now();
    const step = (now) => {
      this.frame = requestAnimationFrame(step);
      // Ten moments a second are enough to look at.
      if (now - then < 100) return;
      this.moveTo(this.timeline.later(this.at, (now - then) * this.speed));
      then = now;
      if (this.at >= this.timeline.to) this.stop();
    };
    this.frame = requestAnimationFrame(step);
  }

  stop() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.playing(false);
  }

  playing(isOn) {
    if (this.isPlaying === isOn) return;
    this.isPlaying = isOn;
    fill(this.play, icon(isOn ? "stop" : "play"), isOn ? "Pause" : "Play", kbd("Space"));
  }

  key(key) {
    if (key === " ") return (this.toggle(), true);
    if (key === "j" || key === "k") return (this.walk(key === "j" ? 1 : -1), true);
    return document.activeElement === this.surface.element && this.surface.key(key);
  }
}

/** Bars over time, from left to right. */
function bars(values, what) {
  const most = Math.max(1, ...values);
  const width = 100 / Math.max(1, values.length);
  return h(
    "svg",
    {
      class: "bars",
      viewBox: "0 0 100 30",
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": `${what} over time`,
    },
    values.map((value, at) => {
      const height = value > 0 ? Math.max(1, (value / most) * 30) : 0;
      return h("rect", { x: at * width, y: 30 - height, width: width * 0.85, height });
    }),
  );
}
