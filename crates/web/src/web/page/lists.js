// Owns when the lists of the port are asked for: at the begin of a connection, after a gap, and the
// agents' figures while they change and are looked at.

import { edgeOf } from "./team/earlier.js";

const AGENTS_EVERY_MS = 1_000;
/** While the page is not seen, notices need to know who works. */
const UNSEEN_EVERY_MS = 10_000;
/** Memory changes without a line. */
const FIGURES_EVERY_MS = 10_000;

export class Lists {
  constructor(wire, state) {
    this.wire = wire;
    this.state = state;
    this.wantsGraph = false;
    this.timer = 0;
    this.asked = 0;
    this.round = 0;
    this.hasJoined = false;
    setInterval(() => document.hidden || !wire.isLive || this.wantAgents(), FIGURES_EVERY_MS);
    document.addEventListener("visibilitychange", () => document.hidden || !wire.isLive || this.seenAgain());
  }

  /** A connection begins. */
  joined() {
    if (this.hasJoined) {
      this.state.said.missed();
      this.state.changed("said");
    }
    this.hasJoined = true;
    return this.begin();
  }

  /** Asks for all lists that a state begins with. */
  async begin() {
    const round = (this.round += 1);
    this.state.begin();
    const call = (method, params) => this.wire.call(method, params);
    this.edge(round, call);
    const none = (value) => () => value;
    try {
      const [agents, blocked, conflicts, budgets, overlaps] = await Promise.all([
        call("list_agents"),
        call("list_blocked", { status: "pending" }),
        call("list_conflicts", { status: "pending" }).catch(none(null)),
        call("list_budgets").catch(none([])),
        call("overlaps").catch(none(null)),
      ]);
      if (round !== this.round) return;
      this.state.settle({ agents, blocked, conflicts, budgets });
      if (overlaps) this.state.setOverlaps(overlaps.overlaps);
      this.wantBranches().catch(() => {});
    } catch {
      // The connection broke: the next one begins anew.
    } finally {
      if (round === this.round) this.state.hasLists = true;
    }
  }

  /** Asks for the journal's end: what comes from now on is behind it. */
  async edge(round, call) {
    const edge = await edgeOf(call).catch(() => undefined);
    if (round !== this.round) return;
    const isKnown = () => {
      this.state.activity.isKnown = true;
      this.state.changed("agents");
    };
    if (edge === undefined) return isKnown();
    this.state.said.edge = edge;
    this.state.changed("agents");
    this.state.activity.read(call, edge).then(isKnown, isKnown);
    if (this.state.log.before !== undefined) return;
    await this.state.log.earlier(call, edge).catch(() => undefined);
    this.state.changed("log");
  }

  /** The agents' figures changed; asks for them at most once a second, and seldom for nobody. */
  wantAgents() {
    if (this.timer) return;
    const every = document.hidden ? UNSEEN_EVERY_MS : AGENTS_EVERY_MS;
    const wait = Math.max(0, this.asked + every - Date.now());
    this.timer = setTimeout(async () => {
      this.timer = 0;
      this.asked = Date.now();
      const agents = await this.wire.call("list_agents").catch(() => null);
      if (agents) this.state.setAgents(agents);
    }, wait);
  }

  /** Asks for the branches of tasks. */
  async wantBranches() {
    const { branches } = await this.wire.call("list_branches", {}, 30_000);
    this.state.branches.clear();
    for (const it of branches) if (it.agent_id) this.state.branches.set(it.agent_id, it.branch);
    this.state.changed("agents");
    return branches;
  }

  /** Asks for the code graph, from now on. */
  wantGraph() {
    if (this.wantsGraph) return;
    this.wantsGraph = true;
    this.wire.send({ type: "subscribe", topics: ["graph"] });
  }

  seenAgain() {
    clearTimeout(this.timer);
    this.timer = 0;
    this.wantAgents();
  }

  async wantOverlaps() {
    const overlaps = await this.wire.call("overlaps").catch(() => null);
    if (overlaps) this.state.setOverlaps(overlaps.overlaps);
  }
}
