// Owns how is shown what the team cost: by agent, by task, by turn, and by time.

import { button, fill, h } from "../dom.js";
import { clock, count, line, money, turnName } from "../format.js";
import { agentName } from "../marks.js";
import { bar, bars } from "./bars.js";
import { Sums, weight } from "./sums.js";

/** Rows of a table. */
const MOST_ROWS = 100;
const BINS = 60;

export class Cost {
  constructor(app) {
    this.app = app;
    this.status = h("p", { class: "hint", role: "status" });
    this.body = h("div", { class: "costs" });
    fill(
      (this.element = h("section", { class: "part", "aria-label": "Cost", hidden: true })),
      h(
        "div",
        { class: "row" },
        this.status,
        h("span", { class: "grow" }),
        button("Read again", () => this.read()),
      ),
      this.body,
    );
  }

  show() {
    this.read();
  }

  update(dirty) {
    if (dirty.has("link") && !this.body.childElementCount) this.read();
  }

  async read() {
    if (!this.app.wire.isLive) return;
    this.status.textContent = "Reading the journal …";
    try {
      const sums = await Sums.read(this.app);
      this.draw(sums);
      const text = sums.calls.length
        ? "All that the journal has, over all runs of the team"
        : "The journal has no spending yet: agents that report nothing cost nothing here";
      this.status.textContent = `${text}${sums.isCut ? "; older events did not fit" : ""}.`;
    } catch (error) {
      this.status.textContent = error.message;
    }
  }

  draw(sums) {
    if (!sums.calls.length && !sums.tasks.size) return fill(this.body);
    const agents = rows([...sums.agents], ([, sum]) => sum);
    const turns = rows([...sums.turns], ([, sum]) => sum);
    fill(
      this.body,
      h("h2", null, "By agent"),
      sumTable(
        "By agent",
        ["Agent"],
        agents.map(([agent, sum]) => [[agent ? agentName(agent) : "the team"], sum]),
      ),
      h("h2", null, "By task"),
      byTask(sums),
      h("h2", null, "By turn"),
      sumTable(
        "By turn, with what was asked",
        ["Turn"],
        turns.map(([key, sum]) => [[turnCell(sums, key, sum)], sum]),
      ),
      sums.calls.length > 0 && byTime(sums.calls),
    );
  }
}

/** Each task, and the turns that belong to none. */
function byTask(sums) {
  const all = sums.byTask();
  if (!sums.tasks.size)
    return h("p", { class: "dim" }, "No agent was given a task: all turns answer prompts.");
  const none = all.filter(({ task }) => !task);
  const tasks = rows(
    all.filter(({ task }) => task),
    ({ sum }) => sum,
  );
  const cells = [...tasks, ...none].map(({ task, sum, turns }) => [
    [task ? taskCell(sums, task) : h("span", null, "no task: what was prompted"), turnsCell(task, turns)],
    sum,
  ]);
  return sumTable("By task", ["Task", "Turns"], cells);
}

function taskCell(sums, task) {
  return h(
    "span",
    { title: task.id },
    agentName(task.agent),
    " ",
    line(sums.titleOf(task)) || h("span", { class: "dim" }, task.id),
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
  return [...task.turns].slice(0, 10).map((key) => changesLink(task.agent, key));
}

function changesLink(agent, key) {
  const [session, turn] = key.split("\n");
  const href = `#time/changes/${[agent, session, turn].map(encodeURIComponent).join("/")}`;
  return h("a", { href, title: "What it changed" }, turnName(Number(turn)));
}

function turnCell(sums, key, sum) {
  return h(
    "span",
    null,
    agentName(sum.agent),
    " ",
    changesLink(sum.agent, key),
    " ",
    h("span", { class: "dim" }, line(sums.prompts.get(key) ?? "")),
  );
}

function byTime(calls) {
  const from = calls[0].at;
  const span = Math.max(1, calls.at(-1).at - from);
  const bins = Array.from({ length: BINS }, () => ({ tokens: 0, cost: 0 }));
  for (const call of calls) {
    const at = Math.floor(((call.at - from) / span) * BINS);
    const bin = bins[Math.max(0, Math.min(BINS - 1, at))];
    bin.tokens += call.tokens;
    bin.cost += call.cost;
  }
  const hasCost = bins.some((bin) => bin.cost > 0);
  const values = bins.map((bin) => (hasCost ? bin.cost : bin.tokens));
  const times = bins
    .map((bin, at) => ({ bin, at: from + (span * at) / BINS }))
    .filter(({ bin }) => bin.tokens || bin.cost)
    .map(({ bin, at }) => {
      const cost = new Map(hasCost ? [[calls[0].currency, bin.cost]] : []);
      return [[clock(at)], { tokens: bin.tokens, cost }];
    });
  return [
    h("h2", null, hasCost ? "By time: money" : "By time: tokens"),
    h("div", { class: "shape" }, bars(values, hasCost ? "cost" : "tokens")),
    h(
      "div",
      { class: "row dim" },
      h("span", null, clock(from)),
      h("span", { class: "grow" }),
      h("span", null, clock(from + span)),
    ),
    h("details", null, h("summary", null, "As a table"), sumTable("By time", ["From"], times)),
  ];
}

/** The rows that took most. */
function rows(all, sumOf) {
  return all.sort((a, b) => weight(sumOf(b)) - weight(sumOf(a))).slice(0, MOST_ROWS);
}

/** `items` have the first cells of a row, and what it stands for took. */
function sumTable(caption, names, items) {
  const most = Math.max(1e-12, ...items.map(([, sum]) => weight(sum)));
  const cells = items.map(([first, sum]) => {
    const costs = [...sum.cost].map(([currency, amount]) => money(amount, currency)).join(" + ") || "–";
    return h(
      "tr",
      null,
      first.map((cell, at) => h("td", { class: at ? "number" : null }, cell)),
      h("td", { class: "number" }, `${sum.isEstimate ? "~" : ""}${count(sum.tokens)}`),
      h("td", { class: "number" }, costs),
      h("td", { class: "bar-cell" }, bar(weight(sum) / most)),
    );
  });
  const heads = [...names, "Tokens", "Cost"].map((it, at) =>
    h("th", { scope: "col", class: at ? "number" : null }, it),
  );
  return h(
    "table",
    { class: "sums" },
    h("caption", { class: "hidden" }, caption),
    h("thead", null, h("tr", null, heads, h("td"))),
    h("tbody", null, cells),
  );
}
