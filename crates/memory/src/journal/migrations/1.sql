CREATE TABLE meta(
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE sessions(
    id TEXT PRIMARY KEY,
    agent_id TEXT NOT NULL,
    wire_session_id TEXT,
    root_event_id TEXT NOT NULL,
    head_event_id TEXT NOT NULL,
    forked_from TEXT,
    status TEXT NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX sessions_by_wire ON sessions(agent_id, wire_session_id);

CREATE TABLE events(
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    parent_id TEXT,
    session_id TEXT,
    agent_id TEXT,
    sequence INTEGER,
    depth INTEGER,
    type TEXT NOT NULL,
    timestamp INTEGER NOT NULL,
    turn INTEGER,
    payload TEXT NOT NULL
);
CREATE UNIQUE INDEX events_by_session ON events(session_id, sequence) WHERE session_id IS NOT NULL;
CREATE INDEX events_by_agent ON events(agent_id, turn) WHERE agent_id IS NOT NULL;
CREATE INDEX events_by_type ON events(type);

CREATE VIRTUAL TABLE events_fts USING fts5(text, tokenize = 'unicode61');

CREATE TABLE contents(
    hash TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    encoding TEXT NOT NULL,
    data BLOB NOT NULL,
    created INTEGER NOT NULL
);

CREATE TABLE pins(
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    created INTEGER NOT NULL,
    PRIMARY KEY(kind, id)
) WITHOUT ROWID;

CREATE TABLE drafts(
    draft INTEGER NOT NULL,
    piece INTEGER NOT NULL,
    agent_id TEXT NOT NULL,
    wire_session_id TEXT NOT NULL,
    type TEXT NOT NULL,
    turn INTEGER NOT NULL,
    started INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY(draft, piece)
);
