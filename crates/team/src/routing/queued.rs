//! The accesses for a person, in the form that outlasts the team.

use std::time::SystemTime;

use super::Request;

/// An access that waits for a person, or that a person allowed and its agent has not tried again.
#[derive(Clone, PartialEq, Debug)]
pub struct Queued {
    pub access: Request,
    /// None: it waits.
    pub permit: Option<Allowance>,
}

/// A person's permission for the next try of an agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allowance {
    /// In spite of a matching pattern of `denied`.
    pub even_denied: bool,
    pub expires: Option<SystemTime>,
}
