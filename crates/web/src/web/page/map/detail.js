// Owns how a file is found by its name, and what is known of the selected one: who was there, its symbols, its calls.

import { button, fill, h, timeOf } from "../dom.js";
import { baseName, cut, line } from "../format.js";
import { pathOf } from "../graph.js";
import { icon, iconButton } from "../icons.js";
import { agentName } from "../marks.js";
import { didOf } from "./paint.js";

/** Entries of a list. */
const MOST_LISTED = 40;
/** Agents that were there. */
const MOST_TOUCHES = 20;
const LONGEST = 400;
/** Files that are offered for a name, from so many letters on. */
const MOST_OFFERED = 20;
const LEAST_LETTERS = 2;
const LONGEST_NAME = 80;

/**
 * A field that finds a file by a part of its path: also one that no agent touched, without a pointer.
 * @param {() => Iterable<string>} paths
 * @param {(path: string) => void} pick
 */
export function finder(paths, pick) {
  const list = h("datalist", { id: "map-files" });
  const found = () => {
    const wanted = field.value.trim().toLowerCase();
    const hits = [];
    if (wanted.length < LEAST_LETTERS) return hits;
    for (const path of paths()) {
      if (path === field.value) return [path];
      if (hits.length < MOST_OFFERED && path.toLowerCase().includes(wanted)) hits.push(path);
    }
    return hits;
  };
  const offer = () => {
    const hits = found();
    fill(
      list,
      hits.map((path) => h("option", { value: path })),
    );
    // A choice of the list is one, without Enter.
    if (hits[0] === field.value) pick(hits[0]);
  };
  const enter = (event) => {
    const [first] = event.key === "Enter" ? found() : [];
    if (first) pick(first);
  };
  const field = h("input", {
    type: "search",
    class: "map-find",
    list: "map-files",
    placeholder: "Find a file",
    "aria-label": "Find a file on the map",
    on: { input: offer, keydown: enter },
  });
  return [field, list];
}

/**
 * @param {Element} el
 * @param {{path: string, file: import("../heat.js").HotFile | null, waits: string[], overlap: string[], now: number,
 *   symbols: Object[], calls: Object[]}} known
 * @param {(path: string | null) => void} pick
 */
export function drawDetail(el, { path, file, waits, overlap, now, symbols, calls }, pick) {
  const lit = litSymbols(file);
  const shown = cut(line(path), LONGEST);
  const name = baseName(shown);
  const call = (id) => h("li", null, button(cut(line(id), LONGEST), () => pick(pathOf(id)), { class: "plain path" }));
  fill(
    el,
    h(
      "div",
      { class: "row" },
      h("h2", { class: "path" }, h("span", { class: "dim" }, shown.slice(0, shown.length - name.length)), name),
      h("span", { class: "grow" }),
      iconButton("cross", "Unselect", () => pick(null)),
    ),
    waits.length > 0 && h("p", { class: "tone-wait" }, icon("wait"), " ", names(waits), " waits for a decision here."),
    overlap.length > 0 &&
      h("p", { class: "tone-bad" }, icon("warn"), " ", names(overlap), " work on the same symbol."),
    file
      ? h(
          "ul",
          { class: "touches" },
          file.touches.slice(0, MOST_TOUCHES).map((it) => touch(it, now)),
        )
      : waits.length === 0 && h("p", { class: "dim" }, "No agent was here lately."),
    group(
      "Symbols",
      symbols.map((it) => symbol(it, lit)),
    ),
    group(
      "Calls",
      calls.filter((it) => it.isOut && it.path !== path).map((it) => call(it.to)),
    ),
    group(
      "Called by",
      calls.filter((it) => !it.isOut).map((it) => call(it.from)),
    ),
    h(
      "p",
      null,
      h(
        "a",
        { class: "button", href: `#history/blame/${encodeURIComponent(path)}` },
        icon("history"),
        "Who wrote it",
      ),
    ),
  );
}

function names(agents) {
  return agents.slice(0, MOST_TOUCHES).map((it, at) => [at > 0 && " and ", agentName(it)]);
}

function touch(it, now) {
  const isEdit = it.action === "write" || Boolean(it.origin);
  return h(
    "li",
    { class: "row wrap" },
    agentName(it.agent),
    h("span", null, `${didOf(it.action)} `, timeOf(it.at, null, now)),
    it.inContext && h("span", { class: "tag" }, "in its context"),
    isEdit && h("a", { href: `#review/changes/${encodeURIComponent(it.agent)}` }, "its changes"),
  );
}

function symbol(it, lit) {
  const isLit = lit.has(it.id);
  return h(
    "li",
    { title: isLit ? "in an agent's context" : null },
    isLit && icon("think", "in an agent's context"),
    isLit && " ",
    h("code", null, cut(line(it.name), LONGEST_NAME)),
    h("span", { class: "dim" }, ` ${line(it.kind)}, line ${it.from}`),
  );
}

function group(title, items) {
  if (!items.length) return null;
  const more = items.length - MOST_LISTED;
  return h(
    "details",
    { open: items.length <= 8 },
    h("summary", null, `${title} (${items.length})`),
    h("ul", null, items.slice(0, MOST_LISTED), more > 0 && h("li", { class: "dim" }, `and ${more} more`)),
  );
}

/** The symbols of a file that agents have in their context. */
export function litSymbols(file) {
  return new Set(file?.touches.flatMap((it) => it.symbols) ?? []);
}
