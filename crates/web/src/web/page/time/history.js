// Owns the search in the journal, and how one event is shown.

import { button, fill, h } from "../dom.js";
import { failed, show } from "../dialog.js";
import { clock, cut, line, plain, turnName } from "../format.js";
import { agentName } from "../marks.js";

const MOST_FOUND = 100;
/** Characters of an event that are shown. */
const LONGEST_EVENT = 200_000;

export class History {
  constructor(app) {
    this.app = app;
    this.query = h("input", {
      type: "search",
      placeholder: 'Words, "words together", or begin*',
      "aria-label": "Search the history",
      maxlength: 1000,
    });
    this.status = h("p", { class: "hint", role: "status" });
    this.list = h("ol", { class: "found" });
    const form = h(
      "form",
      { class: "row", on: { submit: (event) => (event.preventDefault(), this.search()) } },
      this.query,
      h("button", { class: "main" }, "Search"),
    );
    fill(
      (this.element = h("section", { class: "part", "aria-label": "History", hidden: true })),
      form,
      this.status,
      this.list,
    );
  }

  show() {
    if (!this.list.childElementCount)
      this.status.textContent = "What agents said, did and were asked, in all sessions of the journal.";
  }

  key(key) {
    if (key !== "/") return false;
    this.query.focus();
    return true;
  }

  async search() {
    const query = this.query.value.trim();
    if (!query) return;
    this.status.textContent = "Searching …";
    try {
      const { events } = await this.app.call("search_events", { query, limit: MOST_FOUND });
      this.status.textContent = events.length
        ? `${events.length}${events.length === MOST_FOUND ? " or more" : ""} found, the best first`
        : "Nothing has all of these words.";
      fill(
        this.list,
        events.map((event) => this.item(event)),
      );
    } catch (error) {
      this.status.textContent = error.message;
    }
  }

  item(event) {
    return h(
      "li",
      null,
      h(
        "div",
        { class: "row wrap" },
        h("time", { class: "dim" }, clock(event.timestamp)),
        event.agent_id && agentName(event.agent_id),
        h("span", { class: "tag" }, line(event.type)),
        Number.isFinite(event.turn) && h("span", { class: "dim" }, turnName(event.turn)),
        h("span", { class: "grow" }),
        button("Open", () => this.open(event.id)),
      ),
      h("p", { class: "snippet" }, marked(event.snippet ?? "")),
    );
  }

  open(id) {
    this.app.call("get_event", { id }).then((event) => {
      const text = event.payload?.text;
      const rest = { ...event.payload, ...(typeof text === "string" && { text: undefined }) };
      const head = [clock(event.timestamp), event.agent_id, event.type, event.id]
        .filter(Boolean)
        .map(line)
        .join(" · ");
      show(
        "Event",
        h("p", { class: "dim" }, head),
        typeof text === "string" && h("pre", null, plain(text).slice(0, LONGEST_EVENT)),
        h("pre", null, plain(JSON.stringify(rest, null, 2)).slice(0, LONGEST_EVENT)),
      );
    }, failed("event"));
  }
}

/** The words that were found stand between brackets. */
function marked(snippet) {
  return cut(plain(snippet), 1000)
    .split(/(\[[^\]]*\])/)
    .map((part) => (part.startsWith("[") && part.endsWith("]") ? h("mark", null, part.slice(1, -1)) : part));
}
