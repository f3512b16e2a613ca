// Owns what the last terminals of an agent printed, until the tool call that shows each has it. Knows no element.

import { fillTerminal, terminalPart } from "./blocks.js";

/** Terminals of an agent whose last output is kept, also before a tool call shows them. */
const MOST_TERMINALS = 16;

export class Terminals {
  constructor() {
    /** By session and id: the last output, and the block of the call that shows it. */
    this.byKey = new Map();
  }

  /** A tool call shows terminals, which may have printed something before. */
  shownBy(session, block) {
    for (const part of block.call.parts) {
      if (part.kind !== "terminal") continue;
      const known = this.of(session, part.id);
      known.block = block;
      if (known.last && !part.output) fillTerminal(block.call, part, known.last);
    }
  }

  /**
   * Takes what a terminal has printed until now; returns the block that shows it, if there is one.
   * @param {() => import("./blocks.js").Block | undefined} guess the call that shows a terminal which none names
   */
  printed(session, update, guess) {
    const { output, isCut, exit, id } = terminalPart(update);
    const known = this.of(session, id);
    known.last = { terminalId: id, output, truncated: isCut, exitStatus: exit };
    if (!known.block && (known.block = guess())) known.block.call.parts.push(terminalPart({ terminalId: id }));
    const part = known.block?.call.parts.find((it) => it.kind === "terminal" && it.id === id);
    if (part) fillTerminal(known.block.call, part, known.last);
    return part ? known.block : null;
  }

  of(session, id) {
    const key = `${session}\n${id}`;
    const known = this.byKey.get(key) ?? { block: null, last: null };
    this.byKey.delete(key);
    this.byKey.set(key, known);
    if (this.byKey.size > MOST_TERMINALS) this.byKey.delete(this.byKey.keys().next().value);
    return known;
  }
}
