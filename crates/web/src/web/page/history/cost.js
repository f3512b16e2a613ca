// Owns how is shown what the team cost: in all, by day, week, agent, task and model; and what is not known of it.

import { button, fill, h } from "../dom.js";
import { count, counted, cut, line, money, turnName } from "../format.js";
import { empty } from "../header.js";
import { icon } from "../icons.js";
import { agentName } from "../marks.js";
import { changesAt } from "../turns.js";
import { Sums, dayOf, dayStart, isUnknown, weekOf, weight } from "./sums.js";

/** Rows of a table, and of the turns that cost most. */
const MOST_ROWS = 100;
const MOST_DAYS = 31;
const MOST_DEAR = 10;
/** Turns of a task that are links. */
const MOST_LINKS = 10;
/** Characters of a name that agents choose. */
const LONGEST_NAME = 80;
/** The journal is read anew at most this often, while something is spent. */
const AGAIN_MS = 5_000;
/** Turns from which on those that cost most are named. */
const SOME_TURNS = 4;

export class Cost {
  constructor(app) {
    this.app = app;
    this.timer = 0;
    this.status = h("p", { class: "hint", role: "status" });
    this.body = h("div", { class: "costs" });
    const again = button([icon("again"), "Read again"], () => this.read(), { class: "quiet" });
    fill(
      (this.element = h("section", { class: "part", "aria-label": "Cost", hidden: true })),
      this.body,
      h("div", { class: "row wrap costs-foot" }, this.status, again),
    );
  }

  show() {
    this.isShown = true;
    this.read();
  }

  hide() {
    this.isShown = false;
    clearTimeout(this.timer);
    this.timer = 0;
  }

  /** What is spent while this is looked at counts. */
  heard(topic, line) {
    if (!this.isShown || this.timer || (line?.type !== "usage" && line?.type !== "turn")) return;
    this.timer = setTimeout(() => {
      this.timer = 0;
      this.read();
    }, AGAIN_MS);
  }

  update(dirty) {
    if (dirty.has("link") && !this.sums) this.read();
    if (dirty.has("order") && this.sums) this.draw(this.sums);
  }

  async read() {
    if (!this.app.wire.isLive || this.isReading) return;
    this.isReading = true;
    if (!this.sums) this.status.textContent = "Reading the journal …";
    try {
      this.sums = await Sums.read(this.app);
      this.draw(this.sums);
      const cutOff = this.sums.isCut ? " Older events did not fit." : "";
      this.status.textContent = this.isEmpty ? "" : `All runs of the team that the journal has.${cutOff}`;
    } catch (error) {
      this.status.textContent = error.message;
    }
    this.isReading = false;
  }

  draw(sums) {
    const all = sums.since(-Infinity);
    this.isEmpty = !all.turns && isUnknown(all) && !sums.tasks.size;
    if (this.isEmpty) {
      const team = h("a", { href: "#team" }, "Team");
      return fill(this.body, empty("plan", "Nothing was spent yet. Prompt an agent in ", team, "."));
    }
    const days = sums.byDay();
    const weeks = sums.byWeek();
    const dear = top([...sums.turns.values()].filter((it) => !isUnknown(it)), (it) => it).slice(0, MOST_DEAR);
    fill(
      this.body,
      totals(sums, all),
      days.length > 1 && section("By day", ["Day"], days.slice(0, MOST_DAYS).map(([day, sum]) => [[dayOf(day)], sum])),
      weeks.length > 1 &&
        section("By week", ["Week"], weeks.slice(0, MOST_DAYS).map(([day, sum]) => [[weekOf(day)], sum])),
      section(
        "By agent",
        ["Agent"],
        top(sums.byAgent(), ([, sum]) => sum).map(([agent, sum]) => [[agent ? agentName(agent) : "the team"], sum]),
      ),
      section("By task", ["Task", "Turns"], taskRows(sums)),
      section(
        "By model",
        ["Model"],
        top([...sums.models], ([, sum]) => sum).map(([model, sum]) => [[modelCell(model)], sum]),
      ),
      dear.length >= SOME_TURNS &&
        section("The turns that cost most", ["Turn"], dear.map((sum) => [[turnCell(sum)], sum])),
    );
  }
}

/** What was spent today, in seven days, and in all, in large figures. */
function totals(sums, all) {
  const now = Date.now();
  const items = [
    ["Today", sums.since(dayStart(now))],
    ["Last 7 days", sums.since(dayStart(now, 6))],
    ["All that the journal has", all],
  ];
  return h(
    "dl",
    { class: "totals" },
    items.map(([name, sum]) =>
      h(
        "div",
        { class: "card" },
        h("dt", null, name),
        h("dd", null, costCell(sum)),
        h("dd", { class: "dim" }, [tokensText(sum), sum.turns && counted(sum.turns, "turn")].filter(Boolean).join(", ")),
        sum.noCost > 0 && h("dd", { class: "dim" }, `${counted(sum.noCost, "turn")} of unknown cost`),
      ),
    ),
  );
}

function tokensText(sum) {
  if (sum.tokens === null) return sum.turns ? "tokens unknown" : "";
  return `${sum.isEstimate ? "~" : ""}${count(sum.tokens)} tokens`;
}

/** Each task, and the turns that belong to none. */
function taskRows(sums) {
  const all = sums.byTask();
  const none = all.filter(({ task }) => !task);
  const tasks = top(
    all.filter(({ task }) => task),
    ({ sum }) => sum,
  );
  return [...tasks, ...none].map(({ task, sum }) => [
    [task ? taskCell(sums, task) : h("span", null, "no task: what was prompted"), turnsCell(task, sum.turns)],
    sum,
  ]);
}

function taskCell(sums, task) {
  return h(
    "span",
    { title: line(task.id) },
    agentName(task.agent),
    " ",
    line(sums.titleOf(task)) || h("span", { class: "dim" }, line(task.id)),
    h("span", { class: "dim" }, ` ${line(task.state)}, given by ${giver(task.by)}`),
  );
}

/** The port names a person and a program like the orchestrator. */
function giver(by) {
  return by === "orchestrator" ? "the orchestrator or a person" : line(by);
}

/** A task's turns, which lead to what they changed. */
function turnsCell(task, turns) {
  if (!task) return String(turns);
  return [...task.turns].slice(0, MOST_LINKS).map((key) => changesLink(task.agent, key));
}

function changesLink(agent, key) {
  const [session, turn] = key.split("\n");
  return h("a", { href: changesAt(agent, session, turn), title: "What it changed" }, turnName(Number(turn)));
}

function turnCell(sum) {
  return h("span", null, agentName(sum.agent), " ", changesLink(sum.agent, sum.key), " ", line(sum.prompt));
}

function modelCell(model) {
  return model ? cut(line(model), LONGEST_NAME) : h("span", { class: "dim" }, "unknown");
}

/** The rows that took most. */
function top(all, sumOf) {
  return all.sort((a, b) => weight(sumOf(b)) - weight(sumOf(a))).slice(0, MOST_ROWS);
}

/** `items` have the first cells of a row, and what it stands for took. */
function section(title, names, items) {
  if (!items.length) return null;
  const all = Math.max(1e-12, items.reduce((sum, [, it]) => sum + weight(it), 0));
  const hasTokens = items.some(([, it]) => it.tokens !== null);
  const rows = items.map(([first, sum]) =>
    h(
      "tr",
      null,
      first.map((cell, at) => h("td", { class: at ? "number" : null }, cell)),
      hasTokens && h("td", { class: "number" }, tokensCell(sum)),
      h("td", { class: "number" }, costCell(sum)),
      h("td", { class: "bar-cell" }, bar(weight(sum) / all)),
      h("td", { class: "number share" }, weight(sum) ? `${Math.round((weight(sum) / all) * 100)} %` : ""),
    ),
  );
  const titles = [...names, hasTokens && "Tokens", "Cost"].filter(Boolean);
  const heads = titles.map((it, at) => h("th", { scope: "col", class: at ? "number" : null }, it));
  return [
    h("h2", null, title),
    h(
      "table",
      { class: "sums" },
      h("caption", { class: "hidden" }, title),
      h("thead", null, h("tr", null, heads, h("th", { scope: "col", colspan: 2 }, "Share"))),
      h("tbody", null, rows),
    ),
  ];
}

function tokensCell(sum) {
  if (sum.tokens === null) return unknown(sum);
  return atLeast(`${sum.isEstimate ? "~" : ""}${count(sum.tokens)}`, sum.noTokens, "tokens");
}

/** What it cost; with a plus where some turns did not say. */
function costCell(sum) {
  if (!sum.cost.size) return unknown(sum);
  const text = [...sum.cost].map(([currency, amount]) => money(amount, currency)).join(" + ");
  return atLeast(text, sum.noCost, "a cost");
}

/** A plus behind what is not all. */
function atLeast(text, missing, what) {
  if (!missing) return text;
  const title = `${missing === 1 ? "One turn has" : `${missing} turns have`} not reported ${what}`;
  return h("span", { title }, `${text} +`);
}

function unknown(sum) {
  const why = "The agent does not report it, or its turn has not ended";
  return sum.turns ? h("span", { class: "dim unknown", title: why }, "unknown") : h("span", { class: "dim" }, "–");
}

/** One bar, for its row of a table. */
function bar(share) {
  const width = Math.max(share > 0 ? 1 : 0, Math.min(1, share) * 100);
  return h(
    "svg",
    { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    h("rect", { width, height: 10 }),
  );
}
