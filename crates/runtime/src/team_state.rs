//! Owns what a team keeps in its folder and in the registry over its end: the queue for a person, its sessions, the
//! use of its tools.

pub(crate) mod agent_owners;
pub(crate) mod person_queue;
pub(crate) mod recorder;
pub(crate) mod tool_use;

pub use tool_use::tool_lines;
