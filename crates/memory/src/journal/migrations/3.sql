-- The parts of large contents: `data` of a content with the encoding `chunks` is their hashes, in order.
CREATE TABLE chunks(
    hash BLOB PRIMARY KEY,
    size INTEGER NOT NULL,
    encoding TEXT NOT NULL,
    data BLOB NOT NULL
);

-- How often contents name a chunk: one that no content names any more goes with the last of them.
CREATE TABLE chunk_uses(
    hash BLOB PRIMARY KEY,
    uses INTEGER NOT NULL
) WITHOUT ROWID;
