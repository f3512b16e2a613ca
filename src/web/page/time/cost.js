// Owns what the team cost: by agent, by what was asked, and by time.

import { button, fill, h } from "../dom.js";
import { clock, count, cut, line, money, plain } from "../format.js";
import { agentName } from "../marks.js";
import { bar, bars } from "./bars.js";
import { eachEvent } from "./pages.js";

/** Rows of a table. */
const MOST_ROWS = 100;
/** Prompts whose texts are kept. */
const MOST_PROMPTS = 20_000;
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
    const sums = { agents: new Map(), turns: new Map(), calls: [] };
    const prompts = new Map();
    try {
      const hasMore = await eachEvent(this.app, { types: ["usage.spent", "message.user"] }, (event) => {
        const key = `${event.session_id}\n${event.turn}`;
        if (event.type === "usage.spent") return spent(sums, event, key);
        if (!prompts.has(key) && prompts.size < MOST_PROMPTS)
          prompts.set(key, cut(plain(event.payload?.text ?? ""), 160));
      });
      this.draw(sums, prompts);
      this.status.textContent = `${sums.calls.length ? "All that the journal has, over all runs of the team" : "The journal has no spending yet: agents that report nothing cost nothing here"}${hasMore ? "; the last events did not fit" : ""}.`;
    } catch (error) {
      this.status.textContent = error.message;
    }
  }

  draw(sums, prompts) {
    if (!sums.calls.length) return fill(this.body);
    const from = sums.calls[0].at;
    const span = Math.max(1, sums.calls.at(-1).at - from);
    const bins = Array.from({ length: BINS }, () => ({ tokens: 0, cost: 0 }));
    for (const call of sums.calls) {
      const bin = bins[Math.min(BINS - 1, Math.floor(((call.at - from) / span) * BINS))];
      bin.tokens += call.tokens;
      bin.cost += call.cost;
    }
    const hasCost = bins.some((bin) => bin.cost > 0);
    const times = bins
      .map((bin, at) => ({ bin, at: from + (span * at) / BINS }))
      .filter(({ bin }) => bin.tokens || bin.cost);
    fill(
      this.body,
      h("h2", null, "By agent"),
      sumTable(
        "By agent",
        "Agent",
        rows(sums.agents).map(([agent, sum]) => [agent ? agentName(agent) : "the team", sum]),
      ),
      h("h2", null, "By task"),
      sumTable(
        "By task: each turn by what was asked",
        "Asked",
        rows(sums.turns).map(([key, sum]) => [
          h(
            "span",
            null,
            agentName(sum.agent),
            ` turn ${sum.turn} `,
            h("span", { class: "dim" }, line((prompts.get(key) ?? "").split("\n")[0])),
          ),
          sum,
        ]),
      ),
      h("h2", null, hasCost ? "By time: money" : "By time: tokens"),
      h(
        "div",
        { class: "shape" },
        bars(
          bins.map((bin) => (hasCost ? bin.cost : bin.tokens)),
          hasCost ? "cost" : "tokens",
        ),
      ),
      h(
        "div",
        { class: "row dim" },
        h("span", null, clock(from)),
        h("span", { class: "grow" }),
        h("span", null, clock(from + span)),
      ),
      h(
        "details",
        null,
        h("summary", null, "As a table"),
        sumTable(
          "By time",
          "From",
          times.map(({ bin, at }) => [
            clock(at),
            { tokens: bin.tokens, cost: new Map(hasCost ? [[sums.calls[0].currency, bin.cost]] : []) },
          ]),
        ),
      ),
    );
  }
}

function spent(sums, event, key) {
  const { tokens, cost } = event.payload ?? {};
  const total = Number.isFinite(tokens?.total) ? tokens.total : (tokens?.input ?? 0) + (tokens?.output ?? 0);
  add(sums.agents, event.agent_id ?? "", event, total, cost, tokens);
  add(sums.turns, key, event, total, cost, tokens);
  sums.calls.push({
    at: event.timestamp,
    tokens: total,
    cost: cost?.amount ?? 0,
    currency: cost?.currency ?? "USD",
  });
}

function add(map, key, event, total, cost, tokens) {
  let sum = map.get(key);
  if (!sum)
    map.set(
      key,
      (sum = {
        agent: event.agent_id ?? "",
        turn: event.turn,
        tokens: 0,
        cost: new Map(),
        isEstimate: false,
      }),
    );
  sum.tokens += total;
  sum.isEstimate ||= Boolean(cost?.estimated || tokens?.estimated?.length);
  if (cost) sum.cost.set(cost.currency, (sum.cost.get(cost.currency) ?? 0) + cost.amount);
}

function weight(sum) {
  return [...sum.cost.values()].reduce((all, it) => all + it, 0) || sum.tokens / 1e9;
}

function rows(map) {
  return [...map].sort((a, b) => weight(b[1]) - weight(a[1])).slice(0, MOST_ROWS);
}

function sumTable(caption, head, items) {
  const most = Math.max(1e-12, ...items.map(([, sum]) => weight(sum)));
  const cells = items.map(([name, sum]) => {
    const costs = [...sum.cost].map(([currency, amount]) => money(amount, currency)).join(" + ") || "–";
    return h(
      "tr",
      null,
      h("td", null, name),
      h("td", { class: "number" }, `${sum.isEstimate ? "~" : ""}${count(sum.tokens)}`),
      h("td", { class: "number" }, costs),
      h("td", { class: "bar-cell" }, bar(weight(sum) / most)),
    );
  });
  const heads = [head, "Tokens", "Cost"].map((it) => h("th", { scope: "col" }, it));
  return h(
    "table",
    { class: "sums" },
    h("caption", { class: "hidden" }, caption),
    h("thead", null, h("tr", null, heads, h("td"))),
    h("tbody", null, cells),
  );
}
