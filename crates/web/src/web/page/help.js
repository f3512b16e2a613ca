// Owns the list of keys.

import { h } from "./dom.js";
import { show } from "./dialog.js";

const KEYS = [
  [
    "Everywhere",
    [
      ["1 2 3 4", "Team, Review, Map, History"],
      ["i", "the inbox: open it, go there, close it"],
      ["j k", "next, previous"],
      ["Esc", "leave a field, or the selection"],
      ["?", "this list"],
    ],
  ],
  [
    "Team",
    [
      ["Enter", "open the first agent; its transcript"],
      ["p", "prompt"],
      ["c", "cancel the turn"],
      ["S x R", "start, stop, restart"],
      ["G", "follow the end again"],
      ["l", "what the last turn changed"],
      ["/ n N", "find in the transcript; next, previous"],
    ],
  ],
  [
    "Inbox",
    [
      ["a", "allow, for this tool call"],
      ["s", "allow until the session ends"],
      ["m", "allow a pattern, for the session or for the team"],
      ["d D", "deny; with a message"],
      ["e", "allow once what is denied"],
      ["v t", "several at once: by a pattern; the selected card"],
      ["r", "answer in place of the file, or raise the budget"],
    ],
  ],
  [
    "Map",
    [
      ["← ↑ ↓ →", "move"],
      ["+ −", "zoom"],
      ["0", "all"],
      ["j k", "next, previous folder"],
      ["Enter → ←", "open the folder, fold it; a click does, too"],
      ["Esc", "leave the folder; unselect"],
    ],
  ],
  [
    "Review",
    [
      ["j k", "next, previous part"],
      ["a x", "accept it, take it back"],
      ["c s", "comment; send the comments"],
      ["t", "run the checks"],
      ["u", "what an undo of an agent's changes would do, before it is done"],
    ],
  ],
  ["History", [["/", "the field"], ["j k", "next, previous"], ["space", "play, in Replay"]]],
  ["Diffs", [["n N", "next, previous hunk"]]],
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
