// Owns the head of the page: the team's name, what waits, whether what is shown is live, the tabs.

import { fill, h, kbd, setText } from "./dom.js";
import { cut, duration, line } from "./format.js";
import { help } from "./help.js";
import { icon } from "./icons.js";

const TITLE_EVERY_MS = 250;
const JOURNAL_EVERY_MS = 60_000;
/** Characters of what is said of the journal; the tooltip has all. */
const JOURNAL_LENGTH = 90;
const VIEWS = [
  ["team", "Team"],
  ["review", "Review"],
  ["map", "Map"],
  ["history", "History"],
];

export class Header {
  constructor(app) {
    this.app = app;
    const id = (name) => document.getElementById(name);
    this.team = id("team-name");
    this.link = id("link");
    this.scope = id("scope");
    this.leave = id("leave");
    this.leave.addEventListener("click", () => app.leave());
    this.journalTag = id("journal");
    this.badge = h("span", { class: "badge" });
    this.inbox = id("inbox-toggle");
    this.waits = h("span", { class: "hidden" });
    fill(this.inbox, icon("inbox"), h("span", null, "Inbox"), this.badge, this.waits, kbd("i"));
    this.inbox.addEventListener("click", () => app.inbox.toggle());
    this.inbox.setAttribute("aria-keyshortcuts", "i");
    this.bell = id("bell");
    this.bell.addEventListener("click", () => app.notify.toggle().then(() => this.bells()));
    fill(id("help"), icon("help"));
    id("help").addEventListener("click", help);
    fill(
      id("views"),
      VIEWS.map(([name, title], at) =>
        h(
          "a",
          { href: `#${name}`, data: { tab: name }, "aria-keyshortcuts": String(at + 1) },
          icon(name),
          title,
          kbd(String(at + 1)),
        ),
      ),
    );
    this.titleTimer = 0;
    this.bells();
    setInterval(() => app.wire.isLive || this.age(), 1000);
    setInterval(() => document.hidden || this.journal(), JOURNAL_EVERY_MS);
    this.age();
  }

  bells() {
    const isOn = this.app.notify.isOn;
    this.bell.setAttribute("aria-pressed", String(isOn));
    this.bell.title = isOn ? "Notices are on" : "Notices are off";
    fill(this.bell, icon(isOn ? "bell" : "bell-off"));
  }

  select(name) {
    for (const link of document.querySelectorAll("#views a")) {
      if (link.dataset.tab === name) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }

  update(dirty) {
    if (dirty.has("link")) this.age();
    const { state } = this.app;
    setText(this.team, line(state.team) || "eisen-core");
    const { owner, rights } = this.app;
    this.scope.hidden = this.leave.hidden = !this.app.wire.isLive || (!owner && this.app.may("control"));
    if (owner) setText(this.scope, line(`${owner}: ${[...rights].join(", ")}`));
    else setText(this.scope, this.app.may("decide") ? "decides only" : "reads only");
    const waits = state.countWaiting();
    setText(this.badge, waits ? String(waits) : "");
    this.inbox.classList.toggle("waits", waits > 0);
    setText(this.waits, waits ? `${waits === 1 ? "waits" : "wait"} for a decision` : "");
  }

  /** Says how old what is shown is. */
  age() {
    const { wire } = this.app;
    const link = wire.isLive ? "live" : "lost";
    // Read out once, and not each second.
    const before = document.documentElement.dataset.link;
    if (wire.heardAt && before !== link) {
      setText(
        document.getElementById("aloud"),
        wire.isLive ? "The page is live." : "The connection is lost.",
      );
    }
    document.documentElement.dataset.link = link;
    if (wire.isLive && before !== link) this.journal();
    if (wire.isLive) return setText(this.link, "live");
    const age = wire.heardAt ? `${duration(Date.now() - wire.heardAt)} old, reconnecting` : "connecting";
    setText(this.link, age);
  }

  /** Says why the journal is not written, or that it is larger than it may be. */
  async journal() {
    if (!this.app.wire.isLive) return;
    const { trouble, notice } = await this.app.call("get_journal").catch(() => ({}));
    // Its place takes the room.
    const said = line(trouble ?? notice ?? "");
    const text = said.replace(/^the journal .*? (is larger|deletes) /, "the journal $1 ");
    this.journalTag.hidden = !text;
    this.journalTag.title = said;
    setText(this.journalTag, cut(text, JOURNAL_LENGTH));
  }

  /** The title counts what waits, also while the page is not seen. */
  title() {
    if (this.titleTimer) return;
    this.titleTimer = setTimeout(() => {
      this.titleTimer = 0;
      const { state } = this.app;
      const waits = state.countWaiting();
      const title = `${waits ? `(${waits}) ` : ""}${line(state.team) || "eisen-core"}`;
      if (document.title !== title) document.title = title;
    }, TITLE_EVERY_MS);
  }
}

/** What a view or a part of it shows that has nothing to show. */
export function empty(name, ...text) {
  return h("div", { class: "empty" }, icon(name), h("p", null, text));
}
