//! Ids in answers: they count, so that the same requests get the same bytes.

/// The beginning of the id of each call of a tool.
pub(super) const CALL: &str = "call_";

/// The time in answers: no clock is read for them.
pub(super) const CREATED: u64 = 1_700_000_000;

/// The id of a call of a tool: `n` is the number of the answer, `index` that of the call in it.
pub(super) fn call(n: u64, index: usize) -> String {
    format!("{CALL}{n:06}_{index}")
}
