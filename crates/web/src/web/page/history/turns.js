// Owns the last turns of all agents: who, what for, what came of it.

import { button, fill, h, keyed, setText } from "../dom.js";
import { ago, clock, counted, cut, duration, line, plain, turnName, whole } from "../format.js";
import { empty } from "../header.js";
import { icon } from "../icons.js";
import { walk } from "../keys.js";
import { agentName } from "../marks.js";
import { isRunning } from "../state.js";
import { changesAt, figureHint, figureWords, outcomeOf } from "../turns.js";
import { Files, TurnLog, taskOf } from "./pages.js";
import { dayOf } from "./sums.js";

/** Turns that are elements at once: so many more with each press of "Show earlier". */
const STEP = 60;
const MOST_SHOWN = 600;
/** Characters of a prompt and of a message, and of a reason, that are shown. */
const LONGEST_TEXT = 20_000;
const LONGEST_REASON = 60;
/** Turns are read anew at most this often: after one began or ended, and after it cost something. */
const SOON_MS = 300;
const LATER_MS = 2_000;
const TICK_MS = 1_000;
/** The words for a turn that has not ended. */
const RUNNING = outcomeOf("running")[2];

export class Turns {
  constructor(app) {
    this.app = app;
    this.log = new TurnLog();
    this.files = new Files(app, () => this.draw());
    this.shown = STEP;
    this.timer = this.due = this.ticks = 0;
    this.agent = h("select", { "aria-label": "Agent", on: { change: () => this.draw() } });
    this.words = h("input", {
      type: "search",
      placeholder: "Filter these turns by words",
      "aria-label": "Filter by words",
      maxlength: 200,
      on: { input: () => this.draw() },
    });
    this.elsewhere = h("a", { class: "button quiet", hidden: true }, icon("search"), "Search all that was said");
    this.status = h("span", { class: "dim small", role: "status" });
    this.list = h("div", { class: "turn-list" });
    this.none = h("div");
    this.more = button("Show earlier", () => this.earlier(), { class: "more", hidden: true });
    fill(
      (this.element = h("section", { class: "part", "aria-label": "Turns", hidden: true })),
      (this.filters = h("div", { class: "row wrap filters" }, this.agent, this.words, this.elsewhere, this.status)),
      this.list,
      this.none,
      h("div", { class: "row more-row" }, this.more),
    );
    /** By element: its parts that change, and its turn. */
    this.rows = new WeakMap();
    this.sight = new IntersectionObserver((entries) => this.looked(entries), { root: this.element });
  }

  show() {
    this.clock ||= setInterval(() => document.hidden || this.tick(), TICK_MS);
    this.draw();
    this.want(0);
  }

  hide() {
    clearInterval(this.clock);
    this.clock = 0;
    clearTimeout(this.timer);
    this.timer = this.due = 0;
  }

  /** A turn that ends, and one that costs something, are news. */
  heard(topic, line) {
    if (!this.clock) return;
    if (line?.type === "turn") this.want(SOON_MS);
    else if (line?.type === "usage" || topic === "lagged") this.want(LATER_MS);
  }

  update(dirty) {
    if (dirty.has("link")) this.want(0);
    if (dirty.has("agents")) {
      // No line says that a turn began.
      const runs = [...this.app.state.agents.values()].map((it) => (isRunning(it) ? it.agent_id : "")).join("\n");
      if (runs !== this.runs) this.want(SOON_MS);
      this.runs = runs;
    }
    if (dirty.has("order")) {
      this.rows = new WeakMap();
      fill(this.list);
      this.draw();
    }
  }

  tick() {
    const isOpen = [...this.files.seen.values()].some((turn) => !turn.endedBy);
    if (isOpen || ++this.ticks % 20 === 0) this.draw();
  }

  /** Reads what is new in so many milliseconds, or sooner if somebody wants that. */
  want(ms) {
    const at = Date.now() + ms;
    if (this.timer && this.due <= at) return;
    clearTimeout(this.timer);
    this.due = at;
    this.timer = setTimeout(() => this.read("newer"), ms);
  }

  async read(what) {
    if (!this.app.wire.isLive) return void (this.timer = 0);
    try {
      await this.log[what](this.app);
      this.trouble = "";
      this.isRead = true;
    } catch (error) {
      this.trouble = error.message;
    }
    this.timer = 0;
    this.draw();
  }

  async earlier() {
    this.shown = Math.min(MOST_SHOWN, this.shown + STEP);
    this.more.disabled = true;
    if (this.matching().length < this.shown && this.log.before) await this.read("earlier");
    this.more.disabled = false;
    this.draw();
  }

  /** The turns that the filters let through. */
  matching() {
    const agent = this.agent.value;
    const words = this.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const has = (turn) => {
      if (agent && turn.agent !== agent) return false;
      if (!words.length) return true;
      const text = `${turn.agent} ${turn.prompt} ${this.outcome(turn).join(" ")}`.toLowerCase();
      return words.every((word) => text.includes(word));
    };
    return this.log.sorted().filter(has);
  }

  outcome(turn) {
    return outcomeOf(this.log.stateOf(turn, this.app.state.agents), turn.reason);
  }

  draw() {
    if (!this.clock) return;
    this.agents();
    const all = this.matching();
    const items = [];
    let day = "";
    for (const turn of all.slice(0, this.shown)) {
      const name = dayOf(Number.isFinite(turn.begun) ? turn.begun : turn.ended);
      if (name !== day) items.push({ day: (day = name) });
      items.push(turn);
    }
    const now = Date.now();
    keyed(
      this.list,
      items,
      (it) => it.key ?? `day ${it.day}`,
      (it) => (it.day ? h("h2", null, it.day) : this.row(it)),
      (el, it) => it.day || this.redraw(el, it, now),
    );
    this.more.hidden = this.shown >= MOST_SHOWN || !(all.length > this.shown || this.log.before);
    this.drawNone(all.length);
    const query = this.words.value.trim();
    this.elsewhere.hidden = !query;
    this.elsewhere.href = `#history/search/${encodeURIComponent(query)}`;
    this.files.pump();
  }

  drawNone(count) {
    const isFiltered = this.agent.value || this.words.value.trim();
    const { turns, before } = this.log;
    const shown = Math.min(count, this.shown);
    const all = `${counted(turns.size, "turn")}${before ? " read so far" : ""}`;
    setText(this.status, turns.size ? `${shown < turns.size ? `${shown} of ` : ""}${all}` : "");
    const why = count ? "" : this.trouble || (isFiltered ? "filtered" : this.isRead ? "empty" : "reading");
    this.filters.hidden = !turns.size;
    if (why === this.why) return;
    this.why = why;
    if (!why || why === "reading") return fill(this.none, why && h("p", { class: "hint" }, "Reading the journal …"));
    if (why === "filtered") return fill(this.none, empty("search", "None of the turns read so far fits the filter."));
    if (why !== "empty") return fill(this.none, empty("warn", line(why)));
    fill(
      this.none,
      empty("history", "No turn has ended yet. Prompt an agent in ", h("a", { href: "#team" }, "Team"), "."),
    );
  }

  /** The agents that had turns, and those that there are. */
  agents() {
    const names = new Set(this.app.state.agents.keys());
    for (const turn of this.log.turns.values()) names.add(turn.agent);
    keyed(
      this.agent,
      ["", ...names],
      (name) => `a${name}`,
      (name) => h("option", { value: name }, name ? line(name) : "All agents"),
    );
  }

  row(turn) {
    const parts = {
      task: h("button", { type: "button", class: "task plain", "aria-expanded": "false" }),
      state: h("span", { class: "state" }),
      when: h("time"),
      took: h("span", { class: "dim took" }),
      files: h("a", { class: "files", href: changesAt(turn.agent, turn.session, turn.turn) }),
      cost: h("span", { class: "cost" }),
      body: h("div", { class: "body", hidden: true }),
    };
    const el = h(
      "div",
      { class: "turn-row" },
      h(
        "div",
        { class: "head-line", on: { click: (event) => event.target.closest("a") || this.toggle(el) } },
        icon("right"),
        agentName(turn.agent),
        parts.task,
        parts.state,
        h("span", { class: "when" }, parts.when, parts.took),
        parts.files,
        parts.cost,
      ),
      parts.body,
    );
    this.rows.set(el, { turn, parts });
    this.sight.observe(el);
    return el;
  }

  redraw(el, turn, now) {
    const row = this.rows.get(el);
    const { parts } = row;
    // The journal may have been read anew.
    row.turn = turn;
    if (this.files.seen.has(turn.key)) this.files.seen.set(turn.key, turn);
    setText(parts.task, taskOf(turn));
    parts.task.classList.toggle("dim", !turn.prompt);
    const [tone, image, words, why] = this.outcome(turn);
    const state = `${tone} ${words} ${why}`;
    if (parts.drawn !== state) {
      parts.drawn = state;
      const text = why ? `${words}: ${cut(why, LONGEST_REASON)}` : words;
      const label = h("span", { class: "clip" }, text);
      fill(parts.state, h("span", { class: `tag tone-${tone}`, title: why || null }, icon(image), label));
      if (!parts.body.hidden) this.open(el);
    }
    const at = Number.isFinite(turn.begun) ? turn.begun : turn.ended;
    setText(parts.when, ago(at, now));
    parts.when.title ||= clock(at);
    const end = turn.endedBy ? turn.ended : words === RUNNING ? now : NaN;
    const ms = end - turn.begun;
    setText(parts.took, Number.isFinite(ms) ? ` · ${ms < 1_000 ? "< 1 s" : duration(ms)}` : "");
    this.drawFiles(parts.files, this.files.of(turn));
    const took = figureWords(turn);
    setText(parts.cost, took || "–");
    parts.cost.title = took || turn.endedBy ? figureHint(turn) : "Nothing was reported yet";
  }

  drawFiles(el, known) {
    const key = known ? `${known.files} ${known.added} ${known.removed}` : "";
    if (el.dataset.drawn === key) return;
    el.dataset.drawn = key;
    const none = !known ? "…" : known.files === 0 ? "no files" : "–";
    if (!(known?.files > 0)) return fill(el, h("span", { class: "dim" }, none));
    fill(
      el,
      counted(known.files, "file"),
      h("span", { class: "plus" }, ` +${whole(known.added)}`),
      h("span", { class: "minus" }, ` −${whole(known.removed)}`),
    );
  }

  looked(entries) {
    for (const { target, isIntersecting } of entries) {
      const row = this.rows.get(target);
      if (!target.isConnected || !row) this.sight.unobserve(target);
      if (!row) continue;
      if (isIntersecting && target.isConnected) this.files.seen.set(row.turn.key, row.turn);
      else this.files.seen.delete(row.turn.key);
    }
    this.files.pump();
  }

  toggle(el) {
    const { parts } = this.rows.get(el);
    parts.body.hidden = !parts.body.hidden;
    el.classList.toggle("is-open", !parts.body.hidden);
    parts.task.setAttribute("aria-expanded", String(!parts.body.hidden));
    if (!parts.body.hidden) this.open(el);
  }

  /** Shows the whole prompt, and the last message of the agent. */
  async open(el) {
    const { parts, turn } = this.rows.get(el);
    const [, , , why] = this.outcome(turn);
    const said = h("pre", null, "Reading …");
    const prompt = h("pre", null, plain(turn.prompt) || "–");
    fill(
      parts.body,
      h("h3", null, "Prompt"),
      prompt,
      why && [h("h3", null, "Reason"), h("pre", null, plain(turn.reason))],
      h("h3", null, "Last message"),
      said,
      h(
        "div",
        { class: "row wrap" },
        h("a", { class: "button", href: parts.files.href }, icon("review"), "Changes"),
        h("a", { class: "button", href: `#team/${encodeURIComponent(turn.agent)}` }, icon("team"), "Agent"),
        h("span", { class: "dim small" }, `${turnName(turn.turn)} of its session, began ${clock(turn.begun)}`),
      ),
    );
    const asked = { session_id: turn.session, types: ["message.assistant"], last: true, limit: 1 };
    const range = { ...(turn.asked && { after: turn.asked }), ...(turn.endedBy && { before: turn.endedBy }) };
    const call = (method, params) => this.app.call(method, params).catch(() => null);
    const [whole, messages] = await Promise.all([
      turn.asked && call("get_event", { id: turn.asked }),
      call("list_events", { ...asked, ...range }),
    ]);
    const text = plain(whole?.payload?.text);
    if (text) setText(prompt, cut(text, LONGEST_TEXT));
    const last = messages?.events?.findLast((it) => it.turn === turn.turn);
    const none = messages ? "It said nothing." : "It can't be read.";
    setText(said, cut(plain(last?.payload?.text), LONGEST_TEXT) || none);
  }

  key(key) {
    if (key === "/") return (this.words.focus(), true);
    if (key !== "j" && key !== "k") return false;
    walk(this.list.querySelectorAll(".head-line > button"), key === "j" ? 1 : -1);
    return true;
  }
}
