// Owns how the journal is read in pages.

/** Events that are read at once by a view; the journal may have more. */
export const MOST_EVENTS = 50_000;

/**
 * All events of a kind, in pages.
 * @param {Object} app
 * @param {Object} params of `list_events`
 * @param {(event: Object) => void} take
 * @param {() => boolean} goesOn false ends it
 * @returns {Promise<boolean>} whether there are more than were read
 */
export async function eachEvent(app, params, take, goesOn = () => true) {
  let after;
  for (let read = 0; read < MOST_EVENTS;) {
    const { events, next } = await app.call("list_events", {
      ...params,
      limit: 1000,
      ...(after && { after }),
    });
    events.forEach(take);
    read += events.length;
    after = next;
    if (!next || !goesOn()) return false;
  }
  return true;
}

/**
 * The last events of a kind, the last first.
 * @param {Object} app
 * @param {Object} params of `list_events`
 * @param {(event: Object) => void} take
 * @returns {Promise<boolean>} whether there are older ones than were read
 */
export async function eachEventBack(app, params, take) {
  let before;
  for (let read = 0; read < MOST_EVENTS;) {
    const asked = { ...params, last: true, limit: 1000, ...(before && { before }) };
    const { events, next } = await app.call("list_events", asked);
    events.reverse().forEach(take);
    read += events.length;
    before = next;
    if (!next) return false;
  }
  return true;
}

/**
 * The sessions of the journal, the last first.
 * @returns {Promise<{id: string, agent: string, name: string, at: number}[]>}
 */
export async function sessionsOf(app) {
  const sessions = new Map();
  await eachEvent(app, { types: ["session.start"] }, (event) => {
    if (event.session_id && !sessions.has(event.session_id)) {
      sessions.set(event.session_id, {
        id: event.session_id,
        agent: event.agent_id,
        name: event.payload?.session ?? event.session_id,
        at: event.timestamp,
      });
    }
  });
  return [...sessions.values()].reverse().slice(0, 1000);
}
