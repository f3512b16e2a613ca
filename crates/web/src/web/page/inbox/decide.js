// Owns what is sent for a decision, and what becomes of the card by the answer. The first decision wins.

import { notice } from "../dialog.js";
import { hasFile } from "./cards.js";

/** The words of a decision that was taken here. */
const WORDS = { allow: "allowed", deny: "denied", answer: "answered" };

export class Decider {
  constructor(app, cards, redraw) {
    this.app = app;
    this.cards = cards;
    this.redraw = redraw;
  }

  /** Asks what a waiting access or write would do, once. */
  async preview(card) {
    if (!hasFile(card) || card.previewState || card.status !== "waits") return;
    // Only who decides is shown what it is about.
    if (!this.app.may("decide")) return;
    card.previewState = "asked";
    try {
      const method = card.kind === "access" ? "show_blocked" : "show_conflict";
      card.preview = await this.app.call(method, { id: card.line.id }, 10_000);
      card.previewState = "there";
      // What has just come up is to be read first.
      if (card.shownAt) card.shownAt = Date.now();
    } catch (error) {
      card.previewState = error.code === 404 ? "none" : "failed";
    }
    card.version += 1;
    this.redraw();
  }

  /** Whether a person can see what it would do; if it is not known yet, it is asked for. */
  isShown(card) {
    if (!hasFile(card) || ["there", "none"].includes(card.previewState)) return true;
    if (card.previewState === "failed") card.previewState = "";
    this.preview(card);
    return false;
  }

  /** Decides one card of several: returns why it was not, if so. */
  async decideOne(card, decision, more) {
    if (card.status === "sent") return "another decision is on its way";
    if (card.status !== "waits") return "somebody else decided";
    return this.decide(card, decision, { ...more, isOneOfSeveral: true });
  }

  /** Sends a decision, with the version of what was shown. */
  async decide(card, decision, { isOneOfSeveral, ...more } = {}) {
    const params = { id: card.line.id, decision, ...more };
    if (card.preview?.version !== undefined) params.version = card.preview.version;
    return this.send(
      card,
      card.kind === "access" ? "resolve_blocked" : "resolve_conflict",
      params,
      `${WORDS[decision]}${more.scope ? ` for the ${more.scope}` : ""} by you`,
      isOneOfSeveral,
    );
  }

  async raise(card, limits) {
    const params = { ...limits, ...(card.line.agent_id && { agent_id: card.line.agent_id }) };
    await this.send(card, "raise_budget", params, "raised by you");
  }

  /** Returns why it failed, if it did; of one of several all is told in the end. */
  async send(card, method, params, outcome, isOneOfSeveral = false) {
    card.status = "sent";
    card.version += 1;
    this.redraw();
    let why = "";
    try {
      await this.app.call(method, params);
      this.cards.end(card, outcome);
      if (this.cards.selected === card.key) this.cards.selectAfter(card);
      if (!isOneOfSeveral) notice(`${card.line.id ?? "budget"}: ${outcome}`);
    } catch (error) {
      why = error.message;
      if (!isOneOfSeveral) notice(`${card.line.id ?? "budget"}: ${why}`, true);
      await this.refused(card, error);
    }
    this.redraw(!isOneOfSeveral);
    return why;
  }

  /** Somebody else decided, or what waits is not any more what was shown, or nobody knows. */
  async refused(card, error) {
    card.status = "waits";
    card.version += 1;
    if (error.code !== 409 && error.code !== 404) return;
    if (hasFile(card) && this.app.state.waiting.has(card.key)) {
      card.previewState = "";
      card.shownAt = Date.now();
      await this.preview(card);
      if (card.previewState === "there") return;
    }
    if (!this.app.state.waiting.has(card.key)) this.cards.heard(card.line);
    if (card.status !== "done") this.cards.end(card, `not decided here: ${error.message}`);
  }
}
