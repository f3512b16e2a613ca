//! The relay between an agent and its client.

mod conformance;
mod observe;
mod recordings;
