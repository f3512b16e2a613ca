"""What is wrong with the journal of a team that was killed, and what a client saw that it has not."""

import json
import sqlite3
import threading
import time


def faults(path):
    """Sentences, one for each fault of a journal that no process has open."""
    database = sqlite3.connect(path)
    database.row_factory = sqlite3.Row
    found = []
    sound = [row[0] for row in database.execute("PRAGMA integrity_check")]
    if sound != ["ok"]:
        found.append(f"integrity_check says {sound[:3]}")
    if database.execute("PRAGMA user_version").fetchone()[0] == 0:
        # Killed before the first commit.
        return found if database.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0 else found + ["no version"]
    next_of, known, last = {}, {}, ""
    for event in database.execute("SELECT * FROM events ORDER BY number"):
        id, session = event["id"], event["session_id"]
        try:
            if not isinstance(json.loads(event["payload"]), dict):
                found.append(f"{id}: the payload is no object")
        except ValueError as error:
            found.append(f"{id}: {error}")
        if id <= last:
            found.append(f"{id} is not behind {last}")
        last = id
        if session is None:
            continue
        if event["sequence"] != next_of.get(session, 0):
            found.append(f"{id} has sequence {event['sequence']}, and {next_of.get(session, 0)} was next")
        next_of[session] = event["sequence"] + 1
        parent = event["parent_id"]
        if parent is not None and known.get(parent) != event["depth"] - 1:
            found.append(f"{id}: its parent {parent} has depth {known.get(parent)}, it has {event['depth']}")
        known[id] = event["depth"]
    for session in database.execute("SELECT * FROM sessions"):
        for end in ("root_event_id", "head_event_id"):
            if session[end] not in known:
                found.append(f"session {session['id']}: {end} is not there")
    for session in set(next_of) - {row[0] for row in database.execute("SELECT id FROM sessions")}:
        found.append(f"events of a session that is not there: {session}")
    database.close()
    return found


def turns(path, since_ms):
    """The turns that ended since then, as (agent, session, turn)."""
    database = sqlite3.connect(path)
    rows = database.execute(
        "SELECT s.agent_id, s.wire_session_id, e.turn FROM events e JOIN sessions s ON s.id = e.session_id"
        " WHERE e.type IN ('turn.end', 'turn.failed') AND e.timestamp >= ?", (since_ms,))
    ended = {tuple(row) for row in rows}
    database.close()
    return ended


class Witness(threading.Thread):
    """Notes when each turn ended, as a client of the port sees it."""

    def __init__(self, client):
        super().__init__(daemon=True)
        self.client, self.seen = client, []
        self.start()

    def run(self):
        try:
            for line in self.client:
                if line.get("type") == "turn":
                    key = (line["agent_id"], line["session_id"], line["turn"])
                    self.seen.append((time.monotonic(), key))
        except (OSError, ValueError):
            pass

    def missing(self, path, killed, since_ms):
        """How long before the kill the oldest turn ended that the journal has not, in seconds."""
        self.join(5)
        if not self.seen:
            return 0.0
        ended = turns(path, since_ms)
        return max((killed - at for at, key in self.seen if key not in ended), default=0.0)
