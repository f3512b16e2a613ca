// Owns notices of the browser: each cause once, without contents, only while the page is not seen.

import { line } from "./format.js";
import { isRunning, isStalled, ofAgent } from "./state.js";
import { notice } from "./dialog.js";

/** What waits is told after this time, if it still waits: a rule may decide it meanwhile. */
const HOLD_MS = 10_000;
/** The team is done if no turn runs for this time. */
const DONE_MS = 10_000;
/** Causes that were told; the oldest is forgotten first. */
const MOST_TOLD = 2_000;
const WISH = "eisen-notify";

export class Notify {
  constructor(state) {
    this.state = state;
    this.told = new Set();
    this.holds = new Map();
    this.worked = false;
    this.doneTimer = 0;
  }

  get isOn() {
    return (
      "Notification" in globalThis &&
      Notification.permission === "granted" &&
      localStorage.getItem(WISH) === "on"
    );
  }

  /** Turns notices on or off; asks the browser where it must. */
  async toggle() {
    if (!("Notification" in globalThis)) return notice("this browser has no notifications", true);
    if (this.isOn) return localStorage.setItem(WISH, "off");
    if ((await Notification.requestPermission()) !== "granted")
      return notice("the browser does not allow notifications of this page", true);
    localStorage.setItem(WISH, "on");
  }

  /** Hears of each change of the state. */
  changed(topic, cause) {
    if (topic === "waiting" && cause) this.waiting(cause);
    else if (topic === "agents" && cause?.type === "agent") this.agent(cause);
    else if (topic === "budgets" && cause?.state === "exceeded") {
      const whose = cause.agent_id ? `of ${line(cause.agent_id)}` : "of the team";
      this.tell(
        `budget ${cause.agent_id} ${JSON.stringify(limits(cause))}`,
        `The budget ${whose} is used up`,
      );
    }
    if (topic === "agents") this.lookForDone();
  }

  waiting(cause) {
    clearTimeout(this.holds.get(cause.id));
    this.holds.delete(cause.id);
    if (cause.status !== "pending" || this.told.has(cause.id)) return;
    if (this.holds.size >= MOST_TOLD) return;
    const tell = () => {
      this.holds.delete(cause.id);
      if (this.state.waiting.has(cause.id))
        this.tell(cause.id, `${line(ofAgent(cause))} waits for a decision`, `inbox/${encodeURIComponent(cause.id)}`);
    };
    this.holds.set(cause.id, setTimeout(tell, HOLD_MS));
  }

  agent(cause) {
    const name = line(cause.agent_id);
    const key = `${cause.agent_id} ${cause.timestamp_ms}`;
    if (cause.state === "error") this.tell(`error ${key}`, `${name} ended with an error`);
    else if (isStalled(cause)) this.tell(`stall ${key}`, `${name} stalls, or its turn failed`);
  }

  lookForDone() {
    const runs = [...this.state.agents.values()].some(isRunning);
    if (runs || this.state.waiting.size) {
      this.worked ||= runs;
      clearTimeout(this.doneTimer);
      this.doneTimer = 0;
    } else if (this.worked && !this.doneTimer) {
      this.doneTimer = setTimeout(() => {
        this.worked = false;
        this.doneTimer = 0;
        this.tell(`done ${Date.now()}`, "The team is done: no agent works any more");
      }, DONE_MS);
    }
  }

  /** Tells a cause once; a click on the notice leads to `address`. */
  tell(cause, text, address = "team") {
    if (this.told.has(cause)) return;
    this.told.add(cause);
    if (this.told.size > MOST_TOLD) this.told.delete(this.told.keys().next().value);
    if (!document.hidden || !this.isOn) return;
    try {
      const shown = new Notification(line(this.state.team || "eisen-core"), { body: text, tag: cause });
      shown.onclick = () => {
        focus();
        location.hash = address;
        shown.close();
      };
    } catch {
      // Some phones have notifications for installed pages only.
    }
  }
}

function limits(budget) {
  return [budget.tokens?.limit, budget.cost?.limit, budget.turns?.limit, budget.minutes?.limit];
}
