// Owns small bar charts; what they show stands in a table beside them.

import { h } from "../dom.js";

/** Bars over time, from left to right. */
export function bars(values, what) {
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

/** One bar, for its row of a table. */
export function bar(share, kind = "") {
  const width = Math.max(share > 0 ? 1 : 0, Math.min(1, share) * 100);
  return h(
    "svg",
    { class: `bar ${kind}`, viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    h("rect", { width, height: 10 }),
  );
}
