// Owns replays of one session: their lines are kept apart from those of the team.

export class Replays {
  constructor(wire) {
    this.wire = wire;
    this.take = null;
  }

  /** Hears the lines of a replay. */
  line(line) {
    this.take?.(line);
  }

  /** Reads a session of the journal as fast as it comes; one at a time. */
  async read(session, take) {
    if (this.take) throw new Error("another replay is being read");
    this.take = take;
    try {
      return await this.wire.call("replay_session", { session_id: session, speed: "max" }, 120_000);
    } finally {
      this.take = null;
    }
  }
}
