//! Blocked accesses: by each policy and way, and the right to decide them.

mod deciding;
mod deny;
mod hold;
mod orchestrator;
mod permissions;
mod rules;
mod team_grants;
mod violations;
