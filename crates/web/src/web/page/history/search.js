// Owns the search in the journal: what was found, by turn, and how one event is shown.

import { button, fill, h, timeOf } from "../dom.js";
import { failed, show } from "../dialog.js";
import { clock, counted, cut, line, lookup, plain, turnName } from "../format.js";
import { empty } from "../header.js";
import { icon } from "../icons.js";
import { walk } from "../keys.js";
import { agentName } from "../marks.js";
import { changesAt } from "../turns.js";
import { Prompts, turnKey } from "./pages.js";

const MOST_FOUND = 100;
/** Hits of one turn that are elements before somebody asks for all. */
const MOST_OF_TURN = 4;
/** Characters of an event, of a snippet, and of a task that are shown. */
const LONGEST_EVENT = 200_000;
const LONGEST_SNIPPET = 1_000;
const LONGEST_TASK = 200;
/** Searches that are kept, as long as the page is. */
const MOST_RECENT = 8;
const EXAMPLES = [
  ["test failed", "has both words, in any order"],
  ['"run the tests"', "has these words together"],
  ["refactor*", "begins so: refactored, refactoring"],
];

/** What somebody did, by the type of its event: an icon and words. */
const KINDS = lookup({
  "message.user": ["message", "was asked"],
  "message.assistant": ["message", "said"],
  "message.thought": ["think", "thought"],
  "session.start": ["play", "began a session"],
  "session.end": ["stop", "ended a session"],
  "session.fork": ["branch", "forked a session"],
  "session.rewind": ["undo", "was set back"],
  plan: ["plan", "planned"],
  usage: ["clock", "told how full it is"],
  "usage.spent": ["clock", "told what it took"],
  "model.call": ["clock", "called a model"],
  compact: ["merge", "shortened what it knows"],
  "turn.end": ["check", "ended a turn"],
  "turn.failed": ["cross", "failed"],
  permission: ["person", "asked for permission"],
  blocked: ["warn", "was held back"],
  grant: ["check", "was allowed"],
  "grant.revoke": ["cross", "lost a permission"],
  conflict: ["warn", "wrote over another's work"],
  "file.write": ["edit", "edited a file"],
  "file.create": ["file", "made a file"],
  "file.delete": ["delete", "deleted a file"],
  "file.rename": ["file", "renamed a file"],
  "file.read": ["read", "read a file"],
  "path.use": ["file", "used a path"],
  loop: ["again", "did the same again"],
  budget: ["warn", "neared its budget"],
  "agent.state": ["team", "changed its state"],
  report: ["message", "reported"],
  task: ["plan", "was given a task"],
  "subagent.spawn": ["team", "started a helper"],
  "subagent.complete": ["team", "heard from its helper"],
  "config.change": ["edit", "was configured"],
  "token.create": ["person", "got a token"],
  "token.revoke": ["person", "lost a token"],
  "token.use": ["person", "used a token"],
  undo: ["undo", "was undone"],
  redo: ["again", "was redone"],
  gap: ["warn", "was not recorded"],
  prune: ["delete", "old history went"],
  purge: ["delete", "was purged"],
});
const TOOLS = lookup({
  read: ["read", "read"],
  edit: ["edit", "edited a file"],
  delete: ["delete", "deleted"],
  move: ["file", "moved a file"],
  search: ["search", "searched"],
  execute: ["terminal", "ran a command"],
  think: ["think", "thought"],
  fetch: ["link", "looked on the web"],
});
const DECIDED = lookup({
  pending: ["wait", "had to wait"],
  denied: ["cross", "was refused"],
  allowed: ["check", "was allowed"],
  expired: ["cross", "got no answer"],
  answered: ["check", "got an answer"],
  observed: ["warn", "went outside its zone"],
});

/** What an event is in people's words: an icon, and what its agent did. */
export function kindOf({ type, payload }) {
  const has = (table, key) => (typeof key === "string" ? table[key] : undefined);
  if (type === "tool.call" || type === "tool.result") {
    const [image, words] = has(TOOLS, payload?.kind) ?? ["terminal", "used a tool"];
    return payload?.status === "failed" ? ["cross", `${words}, which failed`] : [image, words];
  }
  if (type === "blocked") return has(DECIDED, payload?.status) ?? KINDS.blocked;
  return has(KINDS, type) ?? ["more", "did something else"];
}

export class Search {
  constructor(app) {
    this.app = app;
    this.prompts = new Prompts(app);
    /** The last searches, the last first. */
    this.recent = [];
    this.asked = "";
    this.events = [];
    this.round = 0;
    this.query = h("input", {
      type: "search",
      placeholder: "Words that agents said, did or were asked",
      "aria-label": "Search the history",
      maxlength: 1000,
    });
    this.order = h(
      "select",
      { "aria-label": "Order", on: { change: () => this.draw() } },
      h("option", { value: "best" }, "Best first"),
      h("option", { value: "last" }, "Newest first"),
    );
    this.status = h("p", { class: "hint", role: "status" });
    this.list = h("ol", { class: "found" });
    this.start = h("div", { class: "starts" });
    const form = h(
      "form",
      { class: "row", role: "search", on: { submit: (event) => (event.preventDefault(), go(this.query.value)) } },
      this.query,
      h("button", { class: "main" }, icon("search"), "Search"),
      this.order,
    );
    fill(
      (this.element = h("section", { class: "part", "aria-label": "Search", hidden: true })),
      form,
      this.status,
      this.list,
      this.start,
    );
  }

  show([words = ""]) {
    const query = words.trim();
    this.query.value = query;
    if (!query) return this.drawStart();
    if (query !== this.asked || !this.events.length) this.search(query);
    else this.draw();
  }

  update(dirty) {
    const query = this.query.value.trim();
    if (dirty.has("link") && query && query === this.waits) this.search(query);
    if (dirty.has("order") && this.events.length) this.draw();
  }

  key(key) {
    if (key === "/") return (this.query.focus(), true);
    if (key !== "j" && key !== "k") return false;
    walk(this.list.querySelectorAll(".hit"), key === "j" ? 1 : -1);
    return true;
  }

  /** What there is before a search: the last ones, and how to search. */
  drawStart() {
    this.round += 1;
    this.asked = "";
    this.events = [];
    this.status.textContent = "";
    this.order.hidden = true;
    fill(this.list);
    const choice = (text) => button(line(text), () => go(text));
    fill(
      this.start,
      this.recent.length > 0 && [
        h("h2", null, "Last searches"),
        h("div", { class: "choices" }, this.recent.map(choice)),
      ],
      h("h2", null, "How to search"),
      h("p", { class: "dim" }, "All that agents said, thought, did and were asked is looked through, in all sessions."),
      h("dl", null, EXAMPLES.map(([text, what]) => [h("dt", null, choice(text)), h("dd", { class: "dim" }, what)])),
    );
  }

  async search(query) {
    const round = (this.round += 1);
    this.waits = query;
    if (!this.app.wire.isLive) return;
    fill(this.start);
    this.status.textContent = "Searching …";
    try {
      const { events } = await this.app.call("search_events", { query, limit: MOST_FOUND });
      if (round !== this.round) return;
      this.waits = "";
      this.recent = [query, ...this.recent.filter((it) => it !== query)].slice(0, MOST_RECENT);
      this.asked = query;
      this.events = events;
      this.draw();
    } catch (error) {
      if (round !== this.round) return;
      fill(this.list);
      this.status.textContent = error.message;
    }
  }

  draw() {
    const { events } = this;
    fill(this.start);
    this.order.hidden = !events.length;
    if (!events.length) {
      this.status.textContent = "";
      const none = "Nothing has all of these words. Try fewer, or the begin of one with a * behind it.";
      return fill(this.list, h("li", null, empty("search", none)));
    }
    const turns = new Map();
    for (const event of events) {
      const key = event.session_id && Number.isFinite(event.turn) ? turnKey(event) : event.id;
      if (turns.has(key)) turns.get(key).push(event);
      else turns.set(key, [event]);
    }
    const groups = [...turns.values()];
    const last = (group) => Math.max(...group.map((it) => it.timestamp));
    if (this.order.value === "last") groups.sort((a, b) => last(b) - last(a));
    const more = events.length === MOST_FOUND ? "the best " : "";
    this.status.textContent = `${more}${counted(events.length, "hit")} in ${counted(groups.length, "place")}`;
    fill(
      this.list,
      groups.map((group) => this.group(group)),
    );
  }

  /** The hits of one turn. */
  group(events) {
    const [{ agent_id: agent, session_id: session, turn }] = events;
    const isTurn = session && Number.isFinite(turn);
    const at = Math.max(...events.map((it) => it.timestamp));
    const task = h("span", { class: "task clip" });
    if (isTurn) this.prompts.of(session, turn).then((text) => fill(task, cut(line(text), LONGEST_TASK)));
    // A tool call and its result are one.
    const calls = new Set();
    const isNew = ({ type, payload }) => {
      const id = type.startsWith("tool.") && payload?.tool_call_id;
      return !id || (!calls.has(id) && calls.add(id));
    };
    const hits = events.filter(isNew).map((event) => this.hit(event));
    const rest = hits.slice(MOST_OF_TURN);
    const more = button(`${counted(rest.length, "more hit")}`, () => more.replaceWith(...rest), { class: "quiet" });
    return h(
      "li",
      { class: "card" },
      h(
        "div",
        { class: "row" },
        agent ? agentName(agent) : h("strong", null, "the team"),
        task,
        h("span", { class: "grow" }),
        timeOf(at, "dim small"),
        isTurn && h("a", { class: "button", href: changesAt(agent ?? "", session, turn) }, icon("review"), "Changes"),
      ),
      hits.slice(0, MOST_OF_TURN),
      rest.length > 0 && more,
    );
  }

  hit(event) {
    const [image, words] = kindOf(event);
    return h(
      "button",
      { type: "button", class: "hit", title: "Show all of it", on: { click: () => this.open(event.id) } },
      h("span", { class: "kind" }, icon(image), words),
      h("span", { class: "snippet" }, marked(event.snippet ?? "")),
      h("time", { class: "dim small", title: clock(event.timestamp) }, clock(event.timestamp).slice(-8, -3)),
    );
  }

  open(id) {
    this.app.call("get_event", { id }).then((event) => {
      const { payload, session_id: session, turn, agent_id: agent } = event;
      const text = payload?.text;
      const isText = typeof text === "string";
      const rest = { ...payload, ...(isText && { text: undefined }) };
      const isTurn = session && Number.isFinite(turn);
      const [, words] = kindOf(event);
      const json = h("pre", null, plain(JSON.stringify(rest, null, 2)).slice(0, LONGEST_EVENT));
      show(
        `${agent ? line(agent) : "The team"} ${words}`,
        h("p", { class: "dim" }, `${clock(event.timestamp)}${isTurn ? `, in its ${turnName(turn)}` : ""}`),
        isText && h("pre", null, plain(text).slice(0, LONGEST_EVENT)),
        isTurn &&
          h(
            "p",
            { class: "row event-links" },
            h(
              "a",
              { class: "button", href: changesAt(agent ?? "", session, turn), on: { click: ({ target }) => target.closest("dialog").close() } },
              icon("review"),
              "Changes of this turn",
            ),
          ),
        h("details", { open: !isText }, h("summary", null, "As the journal has it"), json),
      );
    }, failed("The event can't be read"));
  }
}

function go(text) {
  location.hash = `history/search/${encodeURIComponent(text.trim())}`;
}

/** The words that were found stand between brackets. */
function marked(snippet) {
  return cut(plain(snippet), LONGEST_SNIPPET)
    .split(/(\[[^\]]*\])/)
    .map((part) => (part.startsWith("[") && part.endsWith("]") ? h("mark", null, part.slice(1, -1)) : part));
}
