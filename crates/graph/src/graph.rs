//! The code graph: the folders, files, types and functions of a workspace, and the calls between them.
//!
//! Owns parsing, name resolution, edges and their order. Knows nothing of agents and heat: clients join
//! both by path and line.

mod cache;
mod calls;
mod compare;
mod facts;
mod highlight;
mod languages;
mod manifest;
mod parse;
mod query;
mod recent;
mod scan;
mod snapshot;
mod tokens;
mod walk;
mod whole;

pub use self::calls::Rule;
pub use self::compare::changed_symbols;
pub use self::facts::{Call, Facts, Import, Kind, Language, Lines, Receiver, Symbol};
pub use self::highlight::{CodeToken, LONGEST_CODE, MOST_CODE_TOKENS, highlight};
pub use self::recent::Recent;
pub use self::scan::{Progress, Settings, Work, read, reread, scan};
pub use self::snapshot::{CallEdge, Node, Snapshot};
pub use self::walk::{Entry, Listing, Only, list};
pub use self::whole::{Change, Files, Graph};
