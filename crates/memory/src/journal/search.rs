//! Finds events by words.

use rusqlite::params;

use super::reader::{COLUMNS, MOST, event};
use super::{Found, OpenError, Store};

impl Store {
    /// The events that have all these words, the best first. A `*` behind a word finds all words
    /// that begin with it; words in quotes stand together.
    pub fn search(&self, words: &str, limit: usize) -> Result<Vec<Found>, OpenError> {
        self.search_of(None, words, limit, usize::MAX)
    }

    /// Like [`Self::search`], in the events of an agent, up to about `bytes` of payloads.
    pub fn search_of(
        &self,
        agent: Option<&str>,
        words: &str,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<Found>, OpenError> {
        let query = query_of(words);
        if query.is_empty() {
            return Ok(Vec::new());
        }
        let columns = COLUMNS.replace(", ", ", e.");
        let of_agent = match agent {
            Some(_) => "AND rowid IN (SELECT number FROM events WHERE agent_id = ?3)",
            None => "AND ?3 IS NULL",
        };
        // Each cursor that computes ranks first counts all matches. So one computes them (`+` keeps
        // FTS5 from sorting by a cursor of its own), and another only cuts the snippets.
        let sql = format!(
            "SELECT e.{columns}, snippet(events_fts, 0, '[', ']', '…', 16), f.best FROM \
             (SELECT rowid, rank AS best FROM events_fts \
             WHERE events_fts MATCH ?1 {of_agent} ORDER BY +rank LIMIT ?2) f \
             CROSS JOIN events_fts ON events_fts.rowid = f.rowid AND events_fts MATCH ?1 \
             JOIN events e ON e.number = f.rowid ORDER BY f.best"
        );
        let (mut found, mut read_bytes) = (Vec::new(), 0);
        let mut read = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare_cached(&sql)?;
            let mut rows = statement.query(params![query, limit.min(MOST), agent])?;
            while read_bytes < bytes
                && let Some(row) = rows.next()?
            {
                let event = event(row)?;
                read_bytes += event.payload.get().len();
                found.push(Found { event, snippet: row.get(10)?, rank: row.get(11)? });
            }
            Ok(())
        };
        read().map_err(|error| self.failed(error))?;
        Ok(found)
    }
}

/// Whether a search for these words could find anything.
pub fn is_searchable(words: &str) -> bool {
    !query_of(words).is_empty()
}

/// Words as a query of FTS5: everything but quotes and a last `*` is text.
fn query_of(words: &str) -> String {
    let mut terms = Vec::new();
    for (index, part) in words.split('"').enumerate() {
        let phrases: Vec<&str> =
            if index % 2 == 1 { vec![part.trim()] } else { part.split_whitespace().collect() };
        for phrase in phrases {
            let (text, star) = match phrase.strip_suffix('*') {
                Some(text) => (text, "*"),
                None => (phrase, ""),
            };
            if text.chars().any(char::is_alphanumeric) {
                terms.push(format!("\"{}\"{star}", text.replace('\0', " ")));
            }
        }
    }
    terms.join(" ")
}
