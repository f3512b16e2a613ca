//! The table of languages. A row is a grammar, a query beside this file, and a few words.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::OnceLock;

use tree_sitter::Language as Grammar;

use super::facts::Language;
use super::query::{Query, QueryError};

/// What is known of a language.
pub(super) struct Row {
    pub(super) name: &'static str,
    extensions: &'static [&'static str],
    grammar: fn() -> Grammar,
    /// Written one behind the other, they are the query.
    queries: &'static [&'static str],
    /// By which names a method means the object or type that it belongs to.
    pub(super) own: &'static [&'static str],
    tools: OnceLock<Option<Tools>>,
}

/// What a row is made into the first time it is needed.
pub(super) struct Tools {
    pub(super) grammar: Grammar,
    pub(super) query: Query,
    /// What each capture of the query means.
    pub(super) roles: Vec<Role>,
}

/// What the query's captures may be called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    Class,
    Function,
    Module,
    Constant,
    Extension,
    Name,
    Call,
    /// A call if a bracket follows it.
    CallIfBracket,
    ImportModule,
    ImportName,
    ImportAlias,
    ImportAll,
    ImportTree,
    /// It only serves the query itself.
    Nothing,
}

const ECMASCRIPT: &str = include_str!("languages/ecmascript.scm");
const JSX: &str = include_str!("languages/jsx.scm");
const TYPESCRIPT: &str = include_str!("languages/typescript.scm");
const JAVASCRIPT: &str = include_str!("languages/javascript.scm");

static ROWS: [Row; 6] = [
    Row {
        name: "rust",
        extensions: &["rs"],
        grammar: || tree_sitter_rust::LANGUAGE.into(),
        queries: &[include_str!("languages/rust.scm")],
        own: &["self", "Self"],
        tools: OnceLock::new(),
    },
    Row {
        name: "python",
        extensions: &["py", "pyi"],
        grammar: || tree_sitter_python::LANGUAGE.into(),
        queries: &[include_str!("languages/python.scm")],
        own: &["self", "cls"],
        tools: OnceLock::new(),
    },
    Row {
        name: "typescript",
        extensions: &["ts", "mts", "cts"],
        grammar: || tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
        queries: &[ECMASCRIPT, TYPESCRIPT],
        own: &["this"],
        tools: OnceLock::new(),
    },
    Row {
        name: "tsx",
        extensions: &["tsx"],
        grammar: || tree_sitter_typescript::LANGUAGE_TSX.into(),
        queries: &[ECMASCRIPT, TYPESCRIPT, JSX],
        own: &["this"],
        tools: OnceLock::new(),
    },
    Row {
        name: "javascript",
        extensions: &["js", "mjs", "cjs"],
        grammar: || tree_sitter_javascript::LANGUAGE.into(),
        queries: &[ECMASCRIPT, JAVASCRIPT, JSX],
        own: &["this"],
        tools: OnceLock::new(),
    },
    Row {
        name: "jsx",
        extensions: &["jsx"],
        grammar: || tree_sitter_javascript::LANGUAGE.into(),
        queries: &[ECMASCRIPT, JAVASCRIPT, JSX],
        own: &["this"],
        tools: OnceLock::new(),
    },
];

impl Language {
    /// By the end of the file's name.
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension().and_then(OsStr::to_str)?;
        let row = ROWS.iter().position(|row| row.extensions.contains(&extension))?;
        u8::try_from(row).ok().map(Self)
    }

    pub fn name(self) -> &'static str {
        self.row().map_or("unknown", |row| row.name)
    }

    /// None: no row of this program's table, as a cache of another's may say.
    pub(super) fn row(self) -> Option<&'static Row> {
        ROWS.get(usize::from(self.0))
    }
}

impl Row {
    /// None for a query that does not fit the grammar, which the tests rule out.
    pub(super) fn tools(&self) -> Option<&Tools> {
        self.tools.get_or_init(|| self.compile().ok()).as_ref()
    }

    fn compile(&self) -> Result<Tools, QueryError> {
        let grammar = (self.grammar)();
        let query = Query::new(&grammar, &self.queries.join("\n"))?;
        let roles = query.captures().iter().map(|name| role(name)).collect();
        Ok(Tools { grammar, query, roles })
    }
}

/// What the table is like: what was kept of a file holds as long as this stays the same.
pub(super) fn fingerprint() -> impl Iterator<Item = String> {
    ROWS.iter().map(|row| {
        let grammar = (row.grammar)();
        let size = (grammar.node_kind_count(), grammar.parse_state_count(), grammar.field_count());
        format!("{} {size:?} {:?} {:?}", row.name, row.own, row.queries)
    })
}

fn role(capture: &str) -> Role {
    match capture {
        "definition.class" => Role::Class,
        "definition.function" => Role::Function,
        "definition.module" => Role::Module,
        "definition.constant" => Role::Constant,
        "definition.extension" => Role::Extension,
        "name" => Role::Name,
        "call" => Role::Call,
        "call.if_bracket" => Role::CallIfBracket,
        "import.module" => Role::ImportModule,
        "import.name" => Role::ImportName,
        "import.alias" => Role::ImportAlias,
        "import.all" => Role::ImportAll,
        "import.tree" => Role::ImportTree,
        _ => Role::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_query_fits_its_grammar_and_captures_what_is_known() {
        for row in &ROWS {
            let tools = row.compile().map_err(|error| format!("{}: {error}", row.name));
            let tools = tools.unwrap_or_else(|error| panic!("{error}"));
            for (name, role) in tools.query.captures().iter().zip(&tools.roles) {
                let known = *role != Role::Nothing || name.starts_with('_');
                assert!(known, "{}: nobody knows @{name}", row.name);
            }
        }
    }
}
