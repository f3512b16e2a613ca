// Owns the list of keys.

import { h } from "./dom.js";
import { show } from "./dialog.js";

const KEYS = [
  [
    "Everywhere",
    [
      ["1 2 3 4", "Team, Map, Inbox, Time"],
      ["j k", "next, previous"],
      ["Esc", "leave a field, or the selection"],
      ["?", "this list"],
    ],
  ],
  [
    "Team",
    [
      ["Enter", "open the transcript"],
      ["p", "prompt"],
      ["c", "cancel the turn"],
      ["S x R", "start, stop, restart"],
      ["G", "follow the end again"],
      ["l", "what the last turn changed"],
    ],
  ],
  [
    "Inbox",
    [
      ["a", "allow, for this tool call"],
      ["s", "allow until the session ends"],
      ["m", "allow a pattern, for the session or for the team"],
      ["d D", "deny; with a message"],
      ["r", "answer in place of the file, or raise the budget"],
    ],
  ],
  [
    "Map",
    [
      ["← ↑ ↓ →", "move"],
      ["+ −", "zoom"],
      ["0", "all"],
      ["Esc", "unselect"],
    ],
  ],
  ["Time, Changes", [["u", "what an undo would do, before it is done"]]],
  ["Diffs", [["n N", "next, previous hunk, where the focus is in a diff"]]],
];

export function help() {
  const groups = KEYS.map(([title, keys]) =>
    h(
      "section",
      null,
      h("h3", null, title),
      h(
        "dl",
        null,
        keys.map(([key, what]) => [h("dt", null, h("kbd", null, key)), h("dd", null, what)]),
      ),
    ),
  );
  show(
    "Keys",
    h("div", { class: "keys" }, groups),
    h("p", { class: "dim" }, "A card that has just come up takes no key for half a second."),
  );
}
