//! Kinds of tokens of code.

use super::named::named;

named! {
    /// The kind of a token of code.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum CodeTokenKind {
        Keyword = "keyword",
        String = "string",
        Comment = "comment",
        Number = "number",
        /// The name of a function, a method or a macro.
        Name = "name",
        Type = "type",
    }
}
