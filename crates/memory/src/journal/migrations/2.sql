-- Which events name a content: one that no event names any more can go.
CREATE TABLE content_refs(
    hash TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY(hash, number)
) WITHOUT ROWID;

INSERT OR IGNORE INTO content_refs(hash, number)
SELECT part.value, event.number FROM events event,
    json_tree(CASE WHEN json_valid(event.payload) THEN event.payload ELSE '{}' END) part
WHERE (event.type GLOB 'file.*' OR event.type IN ('undo', 'redo'))
    AND part.key = 'hash' AND part.type = 'text' AND length(part.value) = 64;

-- Events of no session by their time: the oldest go first.
CREATE INDEX events_outside ON events(timestamp) WHERE session_id IS NULL;
