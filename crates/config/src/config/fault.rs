//! An error of a file, with a byte range in place of line and column.

use std::ops::Range;

/// An error and its byte range.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    /// None: the file as a whole.
    pub(super) span: Option<Range<usize>>,
    pub(super) message: String,
    pub(super) help: Option<String>,
    /// The text of its place is a secret, which no excerpt shows.
    pub(super) is_secret: bool,
}

impl Fault {
    pub(super) fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span: Some(span), message: message.into(), help: None, is_secret: false }
    }

    pub(super) fn of_file(message: String, help: String) -> Self {
        Self { span: None, message, help: Some(help), is_secret: false }
    }

    /// Keeps the text of its place from being shown.
    pub(super) fn secret(self) -> Self {
        Self { is_secret: true, ..self }
    }

    /// Appends to the help.
    pub(super) fn further(mut self, help: &str) -> Self {
        self.help.get_or_insert_default().push_str(help);
        self
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}
