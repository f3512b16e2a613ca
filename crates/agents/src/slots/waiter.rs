//! For whom a place is waited for, and the sentence about it.

use std::fmt;

use super::holder::SlotHolder;

/// Holders that a sentence names.
const NAMED: usize = 3;

/// The holders and the waiters before one that waits.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct SlotWaiter {
    /// The place that is waited for, in words.
    pub place: String,
    /// How many may hold it.
    pub limit: u32,
    pub holders: Vec<SlotHolder>,
    /// The number of earlier ones that wait too.
    pub waiting_before: usize,
}

impl fmt::Display for SlotWaiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "waits for {}", self.place)?;
        let mut before = ": held by ";
        for holder in self.holders.iter().take(NAMED) {
            write!(f, "{before}{holder}")?;
            before = ", ";
        }
        if self.holders.len() > NAMED {
            write!(f, " and {} more", self.holders.len() - NAMED)?;
        }
        match self.waiting_before {
            0 => Ok(()),
            1 => f.write_str("; 1 more waits before it"),
            more => write!(f, "; {more} more wait before it"),
        }
    }
}
