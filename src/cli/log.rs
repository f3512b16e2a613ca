//! The log on standard error.

use tracing_subscriber::EnvFilter;

use super::crates::{log_filter, unknown_rooms};
use super::output::{note, plain};
use crate::program;

/// The default log filter. `notify` warns about folders that were removed, `rmcp` about refusals; what ends a
/// connection to an agent elsewhere is said once, by `connect`.
pub(super) const DEFAULT_FILTER: &str =
    "warn,notify=error,rmcp=error,agent_client_protocol_http=off";

/// Logs to standard error by `EISEN_LOG`, else `RUST_LOG`, else `default`.
pub(super) fn log_to_stderr(default: &str) {
    let set = |name| std::env::var(name).ok().filter(|filter| !filter.is_empty());
    let filter = set("EISEN_LOG").or_else(|| set("RUST_LOG")).unwrap_or_else(|| default.to_owned());
    for room in unknown_rooms(&filter) {
        note(format_args!(
            "warning: the log filter names `{}`, and there is no such room",
            plain(room)
        ));
    }
    let filter = log_filter(&filter);
    let (filter, invalid) = match EnvFilter::try_new(&filter) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new(DEFAULT_FILTER), Some((filter, error))),
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| program::stderr().clone())
        .with_ansi(has_colors())
        .init();
    if let Some((filter, error)) = invalid {
        tracing::warn!(filter, %error, "invalid log filter: showing warnings");
    }
}

/// Whether standard error shows colours.
pub(super) fn has_colors() -> bool {
    anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never
}
