// Owns the page as a whole: access, the views and which one is shown, and when they draw.

import { notice } from "./dialog.js";
import { fill, h } from "./dom.js";
import { keepFocus } from "./focus.js";
import { line as oneLine, lookup } from "./format.js";
import { Header } from "./header.js";
import { HistoryView } from "./history/history.js";
import { InboxPanel } from "./inbox/inbox.js";
import { listen } from "./keys.js";
import { Lists } from "./lists.js";
import { MapView } from "./map/map.js";
import { setOrder } from "./marks.js";
import { Notify } from "./notify.js";
import { ReviewView } from "./review/review.js";
import { State, isRunning } from "./state.js";
import { TeamView } from "./team/team.js";
import { help } from "./help.js";
import { Wire } from "./wire.js";

const TOKEN = "eisen-token";
const NO_ACCESS =
  "This browser has no access. Run `eisen-core web` on the machine of the team and open the link it prints.";
/** What a scope opens, in the rights of a token with a scope; none of these contains another. */
const OPENED = lookup({ read: [], decide: ["decide"], control: ["prompt", "decide", "control"] });
const TABS = ["team", "review", "map", "history"];
/** Addresses of before, and where they lead. */
const MOVED = lookup({ "time/changes": "review/changes", time: "history" });

/** Letters that go on while they are held. */
const HELD = new Set(["j", "k", "+", "-"]);

/** What every view gets. */
export class App {
  constructor() {
    /** @type {Set<string>} what this browser may do, beside reading */
    this.rights = new Set();
    /** Whose token with a scope it stands for; empty: a person's, with the control token. */
    this.owner = "";
    this.dirty = new Set();
    this.frame = 0;
    this.views = null;
    this.state = new State((topic, line) => this.changed(topic, line));
    this.notify = new Notify(this.state);
    this.wire = new Wire(() => localStorage.getItem(TOKEN), {
      joined: (answer) => this.joined(answer),
      line: (line) => (line.replay ? this.replayed?.(line) : this.state.line(line)),
      changed: () => this.changed("link"),
      refused: (shown) => {
        // Another tab may have a newer one.
        if (localStorage.getItem(TOKEN) === shown) localStorage.removeItem(TOKEN);
        noAccess(this.owner);
      },
    });
    /** Hears the lines of the replay that is being read; one at a time. */
    this.replayed = null;
    this.lists = new Lists(this.wire, this.state);
    this.header = new Header(this);
    this.views = {
      team: new TeamView(this),
      review: new ReviewView(this),
      map: new MapView(this),
      history: new HistoryView(this),
    };
    this.inbox = new InboxPanel(this);
    this.shown = null;
    addEventListener("hashchange", () => this.route());
    listen((key, event) => this.key(key, event));
    keepFocus();
    this.route();
    this.wire.connect();
  }

  /** Whether this browser may do what takes these rights: `prompt`, `decide`, `control`. */
  may(...rights) {
    return rights.every((right) => this.rights.has(right));
  }

  call(method, params, timeout) {
    return this.wire.call(method, params, timeout);
  }

  joined(answer) {
    const before = [...this.rights].join();
    this.owner = answer.owner ? String(answer.owner) : "";
    this.rights = new Set(Array.isArray(answer.may) ? answer.may : OPENED[answer.scope]);
    if (answer.team) this.state.team = String(answer.team);
    if (before !== [...this.rights].join()) for (const view of this.all()) view.scoped?.();
    this.wire.send({ type: "subscribe", topics: ["session_update", "task", "report", "overlap"] });
    if (this.lists.wantsGraph) this.wire.send({ type: "subscribe", topics: ["graph"] });
    this.lists.joined();
  }

  /** Ends the access of this browser: a phone that is given away loses it by one tap. */
  async leave() {
    const token = localStorage.getItem(TOKEN);
    const left = await fetch("leave", { method: "POST", headers: { "x-eisen-token": token } }).catch(() => null);
    if (!left?.ok && left?.status !== 401) return notice("the access was not ended: try again", true);
    localStorage.removeItem(TOKEN);
    noAccess("");
  }

  /** Hears of each change at once, also while the page is not seen. */
  changed(topic, line) {
    if (topic === "lagged") this.lists.begin();
    if (topic === "agents" && line && line.type !== "usage") this.lists.wantAgents();
    // No line says that a turn began.
    if (line?.type === "session_update" && !isRunning(this.state.agents.get(line.agent_id) ?? {}))
      this.lists.wantAgents();
    if (topic === "agents" && setOrder(this.state.agents.keys())) this.dirty.add("order");
    this.notify.changed(topic, line);
    this.header.title();
    if (this.shown) for (const view of this.all()) view.heard?.(topic, line);
    this.dirty.add(topic);
    this.draw();
  }

  /** Draws once in the next frame; what is not seen is drawn when it is. */
  draw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      const dirty = this.dirty;
      this.dirty = new Set();
      // What can't be drawn of one must not keep the others from it.
      for (const part of [this.header, this.inbox, this.shown]) {
        try {
          part?.update(dirty);
        } catch (error) {
          console.error(error);
        }
      }
    });
  }

  /** All that draws something, beside the head. */
  all() {
    return [...Object.values(this.views), this.inbox];
  }

  route() {
    const address = moved(location.hash.slice(1));
    const [tab, ...rest] = address.split("/").map(decode);
    // A link to a card opens the inbox beside what is shown.
    if (tab === "inbox") {
      if (!this.shown) this.select("team", []);
      history.replaceState(null, "", `#${this.address ?? "team"}`);
      return this.inbox.open(rest[0]);
    }
    this.address = address;
    this.select(TABS.includes(tab) ? tab : "team", rest);
  }

  select(name, rest) {
    const view = this.views[name];
    for (const [other, it] of Object.entries(this.views)) it.element.hidden = other !== name;
    if (this.shown !== view) {
      this.shown?.hide?.();
      this.shown = view;
      this.header.select(name);
    }
    this.inbox.viewChanged();
    view.show?.(rest);
    this.draw();
  }

  key(key, event) {
    // A letter that is held moves, and decides nothing.
    if (event.repeat && key.length === 1 && !HELD.has(key)) return key !== " ";
    if (key >= "1" && key <= "4") return this.go(TABS[Number(key) - 1]);
    if (key === "?") {
      help();
      return true;
    }
    if (key === "i") return this.inbox.toggle();
    const isInInbox = this.inbox.hasFocus();
    if (isInInbox && this.inbox.key(key)) return true;
    if (this.shown.key?.(key, event)) return true;
    // Letters of a review stand for parts of it: none of them decides about an access.
    return !isInInbox && this.shown !== this.views.review && this.inbox.key(key);
  }

  /** Shows a view, and takes the focus there. */
  go(tab) {
    location.hash = tab;
    this.route();
    const view = this.views[tab];
    if (view.focus) view.focus();
    else view.element.focus({ preventScroll: true });
    return true;
  }
}

/** An address of before leads on. */
function moved(address) {
  const old = Object.keys(MOVED).find((it) => address === it || address.startsWith(`${it}/`));
  return old ? MOVED[old] + address.slice(old.length) : address;
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}

/** Says that there is no access, or that of the owner of a token no longer. */
function noAccess(owner) {
  const why = owner
    ? `The access with a token of ${oneLine(owner)} has ended: it was revoked, or has expired. A token that is good gets a new link by \`eisen-core web\`.`
    : NO_ACCESS;
  fill(document.body, h("main", { class: "no-access" }, h("p", { role: "alert" }, why)));
}

if (localStorage.getItem(TOKEN)) new App();
else noAccess();
