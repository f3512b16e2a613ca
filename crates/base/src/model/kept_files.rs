//! The files that a room keeps below `$EISEN_DIR`.

/// The files of one room, as `purge` knows them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeptFiles {
    /// The name of the files' kind, for people.
    pub what: &'static str,
    /// Globs relative to `$EISEN_DIR`; `*` stands for no `/`.
    pub files: &'static [&'static str],
    /// The way in which `purge` takes a text out of them.
    pub form: KeptForm,
    /// The file that is locked while one of them is replaced, relative to its folder.
    pub lock: Option<&'static str>,
}

/// How a text is taken out of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeptForm {
    /// A journal, of which the room `journal` takes it out.
    Journal,
    /// Contents of a journal: one that has it once the room `journal` took it out is named.
    Content,
    /// JSON, or lines of it: a mark takes its place in strings.
    Json,
    /// A mark takes its place.
    Text,
    /// A process may be appending: as many bytes take its place.
    Log,
    /// Not at all: a file that has it is named.
    Fixed,
}

impl KeptFiles {
    /// Files that are replaced without a lock.
    pub const fn new(what: &'static str, form: KeptForm, files: &'static [&'static str]) -> Self {
        Self { what, files, form, lock: None }
    }

    /// The same files, with the name of the lock beside them.
    #[must_use]
    pub const fn locked_by(self, lock: &'static str) -> Self {
        Self { lock: Some(lock), ..self }
    }
}
