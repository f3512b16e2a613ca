// Owns what an agent took and may take, in short.

import { h } from "../dom.js";
import { count, counted, money } from "../format.js";

/** Tokens that the sessions of an agent took. */
export function spentOf(agent) {
  let sum = null;
  let isEstimate = false;
  for (const { spent } of agent.sessions ?? []) {
    if (!Number.isFinite(spent?.total)) continue;
    sum = (sum ?? 0) + spent.total;
    isEstimate ||= Boolean(spent.estimated?.length);
  }
  return sum === null ? "–" : `${isEstimate ? "~" : ""}${count(sum)}`;
}

/** Calls of models that run, and what they can take at most. */
export function inFlight(calls) {
  if (!calls?.calls) return "";
  const open = calls.unbounded ? `, ${calls.unbounded} without a bound` : "";
  return `${counted(calls.calls, "call")}, at most ${count(calls.most_tokens)} tokens${open}`;
}

/** What the sessions of an agent cost, by currency. */
export function costOf(agent) {
  const sums = new Map();
  for (const { spent, cost } of agent.sessions ?? []) {
    const parts = spent?.cost?.length ? spent.cost : cost ? [cost] : [];
    for (const { amount, currency } of parts) sums.set(currency, (sums.get(currency) ?? 0) + amount);
  }
  return sums.size ? [...sums].map(([currency, amount]) => money(amount, currency)).join(" + ") : "–";
}

/** The parts of a budget with a limit, in words and as a share. */
export function partsOf(budget) {
  const parts = [];
  const add = (name, it, show) => {
    if (it?.limit === null || it?.limit === undefined) return;
    parts.push({
      name,
      share: it.limit > 0 ? (it.used ?? 0) / it.limit : 1,
      text: `${show(it.used ?? NaN)} of ${show(it.limit)}`,
    });
  };
  add("tokens", budget.tokens, count);
  add("cost", budget.cost, (amount) => money(amount, budget.cost.currency));
  add("turns", budget.turns, count);
  add("minutes", budget.minutes, (it) => (Number.isFinite(it) ? it.toFixed(1) : "–"));
  return parts;
}

/** The part of a budget that is fullest. */
export function budgetBar(budget) {
  const most = partsOf(budget).sort((a, b) => b.share - a.share)[0];
  if (!most) return null;
  const percent = Math.round(Math.min(1, most.share) * 100);
  return h(
    "span",
    { class: `figure budget budget-${budget.state}`, title: `${most.name}: ${most.text}` },
    h("span", { class: "dim" }, "budget"),
    " ",
    h("meter", {
      min: 0,
      max: 100,
      high: 80,
      optimum: 0,
      value: percent,
      "aria-label": `budget, ${most.name}`,
    }),
    ` ${percent} % of ${most.name}`,
  );
}
