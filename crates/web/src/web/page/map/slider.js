// Owns the look back: a slider over what happened since the page was opened, with the pauses cut out.

import { button, h, setText } from "../dom.js";
import { ago, clock } from "../format.js";
import { paintOf } from "../marks.js";
import { readTheme } from "./theme.js";

const STEPS = 1000;
/** A pause takes at most so much of the slider. */
const PAUSE_MS = 8_000;
/** The strip is drawn anew at most this often. */
const EVERY_MS = 1_000;
const HIGH = 18;

export class Slider {
  /**
   * @param {import("../heat.js").Heat} heat
   * @param {() => void} moved hears that another moment is shown
   */
  constructor(heat, moved) {
    this.heat = heat;
    this.moved = moved;
    /** The moment that is shown; null: now. */
    this.moment = null;
    this.version = -1;
    this.drawnAt = 0;
    this.axis = [];
    this.strip = h("canvas", { class: "strip", "aria-hidden": "true" });
    this.range = h("input", {
      type: "range",
      min: 0,
      max: STEPS,
      value: STEPS,
      "aria-label": "Moment that the map shows",
      "aria-valuetext": "now",
      on: { input: () => this.seek() },
    });
    this.when = h("output", { class: "when" });
    this.live = button("Live", () => this.toLive(), { "aria-pressed": "true", title: "Show the map as it is now" });
    this.element = h(
      "div",
      { class: "look-back" },
      this.live,
      h("div", { class: "track" }, this.strip, this.range),
      this.when,
      h("a", { href: "#history/replay", title: "All that the journal has" }, "Replay"),
    );
    this.say();
  }

  /** New accesses have come. */
  update() {
    const { past } = this.heat;
    if (past.version === this.version || performance.now() - this.drawnAt < EVERY_MS) return;
    this.draw();
  }

  draw() {
    const { past } = this.heat;
    this.version = past.version;
    this.drawnAt = performance.now();
    this.axis = axisOf(past.entries);
    this.range.disabled = !(this.axis.at(-1)?.to > 0);
    this.range.title = `Since ${clock(past.from)}, when this page was opened`;
    this.paint();
    // The thumb stays at its moment while more comes behind it.
    if (this.moment !== null) this.range.value = String(this.stepOf(this.moment));
  }

  paint() {
    const wide = this.strip.clientWidth;
    if (!wide) return;
    const ratio = Math.min(2, devicePixelRatio || 1);
    this.strip.width = wide * ratio;
    this.strip.height = HIGH * ratio;
    const context = this.strip.getContext("2d");
    const theme = readTheme();
    context.scale(ratio, ratio);
    const end = this.axis.at(-1)?.to ?? 1;
    let last = "";
    for (const { entry, to, isCut } of this.axis) {
      const x = Math.round((to / end) * (wide - 2));
      if (isCut) {
        context.fillStyle = theme.css.edge;
        context.fillRect(x - 4, 0, 1, HIGH);
        context.fillRect(x - 2, 0, 1, HIGH);
      }
      const color = paintOf(entry.touch?.agent ?? "").color;
      if (!entry.touch || last === `${x} ${color}`) continue;
      last = `${x} ${color}`;
      const isEdit = entry.touch.action === "write";
      context.fillStyle = theme.agents[color];
      context.fillRect(x, isEdit ? 0 : HIGH / 2, 2, isEdit ? HIGH : HIGH / 2);
    }
  }

  seek() {
    const step = Number(this.range.value);
    if (step >= STEPS || this.range.disabled) return this.toLive();
    const wanted = (step / STEPS) * this.axis.at(-1).to;
    const at = this.axis.findLastIndex((it) => it.to <= wanted);
    const { entry, to } = this.axis[Math.max(0, at)];
    this.moment = entry.when + Math.max(0, wanted - to);
    this.say();
    this.moved();
  }

  stepOf(moment) {
    const at = Math.max(0, this.axis.findLastIndex((it) => it.entry.when <= moment));
    const it = this.axis[at];
    const next = this.axis[at + 1]?.to ?? it.to;
    const to = Math.min(it.to + Math.max(0, moment - it.entry.when), next);
    return Math.round((to / Math.max(1, this.axis.at(-1).to)) * STEPS);
  }

  toLive() {
    const was = this.moment;
    this.moment = null;
    this.range.value = String(STEPS);
    this.say();
    if (was !== null) this.moved();
  }

  say() {
    const isLive = this.moment === null;
    this.live.setAttribute("aria-pressed", String(isLive));
    const text = isLive ? "now" : `${clock(this.moment)}, ${ago(this.moment)}`;
    setText(this.when, text);
    this.range.setAttribute("aria-valuetext", text);
  }
}

/**
 * Where each entry is on the slider, in milliseconds without pauses; of entries in one place the last is enough.
 * @returns {{entry: Object, to: number, isCut: boolean}[]}
 */
function axisOf(entries) {
  const axis = [];
  let to = 0;
  let last = entries[0]?.when ?? 0;
  for (const entry of entries) {
    const gap = entry.when - last;
    to += Math.min(gap, PAUSE_MS);
    axis.push({ entry, to, isCut: gap > PAUSE_MS });
    last = entry.when;
  }
  return axis;
}
