//! The enforcement of each agent's zone here, and its precision for each pattern.

use std::collections::BTreeMap;

use super::Kernel;
use crate::config::{Agent, Enforce, profiles};
use crate::zone::{Coverage, HELD_ALONE, PatternCoverage};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tier {
    Protocol,
    Kernel,
}

/// The enforcement of an agent's zone.
#[derive(Debug)]
pub(super) struct Holding {
    pub(super) tier: Tier,
    /// The tier in words.
    pub(super) said: String,
    /// The precision of the path rules for the patterns, one line for each distinct text.
    pub(super) patterns: Vec<String>,
}

impl Holding {
    /// Walks the agent's zone on the disk, as its start would.
    pub(super) fn of(agent: &Agent, kernel: &Kernel) -> Self {
        let tier = kernel.tier(agent);
        let patterns = match tier {
            Tier::Kernel => held(agent),
            Tier::Protocol => Vec::new(),
        };
        Self { tier, said: describe(agent, kernel), patterns }
    }
}

fn describe(agent: &Agent, kernel: &Kernel) -> String {
    let observed =
        "observed, not stopped: all of the workspace is open but what is denied or asked for";
    match (agent.zone.enforce, kernel.tier(agent)) {
        (Enforce::Observe, Tier::Kernel) => format!("kernel; {observed}"),
        (Enforce::Observe, Tier::Protocol) => format!("protocol; {observed}"),
        (Enforce::Protocol, _) => "protocol".to_owned(),
        (_, Tier::Protocol) => format!("protocol: {}", kernel.lacks()),
        (_, Tier::Kernel) if kernel.is_whole() => "kernel".to_owned(),
        (Enforce::Kernel, _) => format!("kernel, so it will not start: {}", kernel.lacks()),
        _ => format!("kernel, as far as it goes: {}", kernel.lacks()),
    }
}

fn held(agent: &Agent) -> Vec<String> {
    let Some(bounds) = agent.bounds() else { return Vec::new() };
    let patterns = bounds.wall().patterns;
    let base = profiles::base_patterns();
    let is_base =
        |held: &&PatternCoverage| held.list == "readable" && base.contains(&held.pattern.as_str());
    let (built_in, written): (Vec<&PatternCoverage>, Vec<&PatternCoverage>) =
        patterns.iter().partition(is_base);
    // In order of first appearance, exact ones first.
    let mut lines: Vec<(String, Vec<String>)> = Vec::new();
    let mut add = |how: &Coverage, name: String| {
        let said = words(how);
        match lines.iter_mut().find(|(other, _)| *other == said) {
            Some((_, names)) => names.push(name),
            None => lines.push((said, vec![name])),
        }
    };
    for held in written {
        add(&held.how, format!("{} `{}`", held.list, held.pattern));
    }
    let mut counts: BTreeMap<String, (&Coverage, usize)> = BTreeMap::new();
    for held in built_in {
        counts.entry(words(&held.how)).or_insert((&held.how, 0)).1 += 1;
    }
    for (how, count) in counts.into_values() {
        add(how, format!("{count} built-in (`base`)"));
    }
    lines.sort_by_key(|(said, _)| said != "exact");
    lines.into_iter().map(|(said, names)| format!("{}: {said}", names.join(", "))).collect()
}

fn words(how: &Coverage) -> String {
    match how {
        Coverage::Exact => "exact".to_owned(),
        Coverage::Narrowed(lost) => format!("narrowed: {lost}"),
        Coverage::Doorbell(why) => format!("by the doorbell: {why}"),
        Coverage::Alone => HELD_ALONE.to_owned(),
    }
}
