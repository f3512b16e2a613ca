//! Checks that an agent can start: that the places of its profile lead where they led, and that it can read the
//! files that its own command names.

use super::{Tier, found, shown};
use crate::config::Agent;
use crate::model::Action;

/// Returns a place that keeps the agent from starting, and the scripts and programs of the command that the
/// zone denies to the agent: its start would be blocked.
pub(super) fn warnings(agent: &Agent, tier: Tier) -> Vec<String> {
    if tier == Tier::Protocol {
        return Vec::new();
    }
    let Some(bounds) = agent.bounds() else { return Vec::new() };
    let program = agent.command.first().and_then(|program| found(program, agent));
    let words = agent.command.iter().skip(1).map(|word| agent.cwd.join(word));
    let files = program.into_iter().chain(words).filter(|path| path.is_file());
    let moved = bounds.moved().map(|moved| format!("{}: it will not start: {moved}", agent.id));
    let denied = files
        .filter_map(|path| path.canonicalize().ok())
        .filter(|real| bounds.judge(real, Action::Read).is_err())
        .map(|real| {
            let path = shown(&real, &agent.zone.spec.workspace);
            format!(
                "{}: its command needs {path}, which its zone does not let it read, so that its \
                 start is blocked there: add it to `readable`",
                agent.id
            )
        });
    moved.into_iter().chain(denied).collect()
}
