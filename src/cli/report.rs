//! The report on a command that failed.

use super::output;
use crate::config;

/// An error and its causes; a cause that the error's own text already contains is left out.
fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// An error with its causes, with colours that are stripped if the output is not a terminal.
pub(super) struct ErrorReport<'a>(pub(super) &'a anyhow::Error);

impl std::fmt::Display for ErrorReport<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Each configuration error has its own `error:` prefix.
        if let Some(errors) = self.0.downcast_ref::<config::ConfigErrors>() {
            return f.write_str(&errors.render(true));
        }
        // The text may quote an agent or a path.
        let error = output::escape_controls(&chain(self.0));
        write!(f, "error: {error}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_shown_once() {
        let cause = || std::io::Error::from_raw_os_error(13);
        let message = "cannot write: Permission denied (os error 13)";
        let repeated = anyhow::Error::new(cause()).context(message);
        assert_eq!(chain(&repeated), message);
        let plain = anyhow::Error::new(cause()).context("cannot write");
        assert_eq!(chain(&plain), message);
    }
}
