// Owns what was said before the lines of this connection, as far as the journal was read: a window
// that grows upwards, and is let go of at its end.

import { sizeOf } from "./blocks.js";

/** Blocks that are kept. */
const MOST_BLOCKS = 1_000;
/** Characters of them. */
const MOST_CHARS = 1_000_000;

export class Past {
  constructor() {
    /** @type {import("./blocks.js").Block[]} oldest first; their numbers are below 0 */
    this.blocks = [];
    this.size = 0;
    /** Blocks that were let go of at the end, between these and the live ones. */
    this.dropped = 0;
    /** Where the next look further up begins: an event's id; null at the journal's beginning. */
    this.before = "";
    /** "", "asked", "there", "none": there is no journal; "failed". */
    this.state = "";
    /** Why it failed. */
    this.why = "";
    /** Tool calls among the blocks whose end is not known, or whose begin is not; by session, turn and id. */
    this.calls = new Map();
  }

  /** Whether the journal has more than is here. */
  get hasMore() {
    return this.state !== "none" && this.before !== null;
  }

  /** Puts a page before all others. */
  prepend(blocks) {
    let n = (this.blocks[0]?.n ?? 0) - 1;
    for (const block of [...blocks].reverse()) {
      block.n = n--;
      this.size += block.size;
    }
    this.blocks = [...blocks, ...this.blocks];
    while (this.blocks.length > 1 && (this.blocks.length > MOST_BLOCKS || this.size > MOST_CHARS)) {
      const block = this.blocks.pop();
      this.size -= block.size;
      this.dropped += 1;
      if (block.call) this.calls.delete(block.call.key);
    }
  }

  /** The tool call with this id that has no end; the last one. */
  openCall(id) {
    return this.blocks.findLast((it) => it.call?.isOpen && it.call.id === id);
  }

  /** Counts a block anew after a change. */
  changed(block) {
    const size = sizeOf(block);
    this.size += size - block.size;
    block.size = size;
    block.version += 1;
  }

  remove(block) {
    const at = this.blocks.indexOf(block);
    if (at < 0) return;
    this.blocks.splice(at, 1);
    this.size -= block.size;
    this.calls.delete(block.call?.key);
  }
}
