//! Owns what agents are told with their next prompt, without being asked.

pub(crate) mod conflicts;
pub(crate) mod tasks;
