//! Helpers: agents with a `parent`. What they have from it, and that their zones are within its zone.

use super::agents::RawAgent;
use super::errors::quoted;
use super::fault::Fault;
use super::read::ConfigReader;
use super::{Agent, Enforce, child};
use crate::zone::{self, ZoneSpec};

/// Completes helpers by their parents, whose places `parents` has.
pub(super) fn inherit(
    reader: &ConfigReader<'_>,
    raw: &mut [RawAgent],
    parents: &[Option<usize>],
    max_depth: u32,
) {
    let mut order: Vec<_> = (0..raw.len()).map(|at| (levels(parents, at), at)).collect();
    // Parents are complete before their helpers.
    order.sort_unstable();
    for (depth, at) in order {
        let (Some(parent), Some(depth)) = (parents[at], depth) else { continue };
        let depth = u32::try_from(depth).unwrap_or(u32::MAX);
        if depth > max_depth {
            reader.fault(too_deep(&raw[at], depth, max_depth));
        }
        let parent = raw[parent].agent.clone();
        let helper = &mut raw[at];
        helper.agent.depth = depth;
        complete(helper, &parent);
        if let Some(fault) = reaches_out(helper, &parent) {
            reader.fault(fault);
        }
        if let Some(fault) = cannot_be_held(helper, &parent) {
            reader.fault(fault);
        }
        child::bound(&mut helper.agent, &parent);
        helper.agent.parent = Some(parent.id);
    }
}

/// How many parents an agent has one above the other; None in a circle.
fn levels(parents: &[Option<usize>], at: usize) -> Option<usize> {
    let above = std::iter::successors(parents[at], |above| parents[*above]);
    let levels = above.take(parents.len() + 1).count();
    (levels <= parents.len()).then_some(levels)
}

fn too_deep(helper: &RawAgent, depth: u32, max_depth: u32) -> Fault {
    let message = format!(
        "agent `{}` would be a helper {depth} levels deep, and `[team] max_depth` is {max_depth}",
        helper.agent.id
    );
    let fault = match &helper.parent {
        Some(parent) => Fault::new(parent.span.clone(), message),
        None => Fault::of_file(message, String::new()),
    };
    fault.help("give it a parent further up, or raise `max_depth`")
}

/// Fills in what the helper's table leaves out.
fn complete(helper: &mut RawAgent, parent: &Agent) {
    let RawAgent { agent, unset, provider, .. } = helper;
    let is_unset = |key| unset.contains(&key);
    if agent.command.is_empty() {
        provider.as_parent = true;
        agent.command.clone_from(&parent.command);
        agent.remote.clone_from(&parent.remote);
        if agent.remote.is_some() && is_unset("restart") {
            agent.restart = parent.restart;
        }
        agent.profile.clone_from(&parent.profile);
        agent.confined = parent.confined.clone();
        agent.plugin = agent.plugin.take().or_else(|| parent.plugin.clone());
        for (name, value) in &parent.env {
            agent.env.entry(name.clone()).or_insert_with(|| value.clone());
        }
        agent.model = agent.model.take().or_else(|| parent.model.clone());
        agent.mode = agent.mode.take().or_else(|| parent.mode.clone());
        agent.auth_method = agent.auth_method.take().or_else(|| parent.auth_method.clone());
        if is_unset("unattended") {
            agent.unattended = parent.unattended;
        }
        if is_unset("mcp_servers") {
            agent.mcp_servers.clone_from(&parent.mcp_servers);
        }
        if is_unset("initialize_timeout_s") {
            agent.initialize_timeout = parent.initialize_timeout;
        }
    }
    if is_unset("permissions") {
        agent.permissions = parent.permissions;
    }
    if is_unset("on_violation") {
        agent.on_violation = parent.on_violation;
    }
    if is_unset("stall_after_s") {
        agent.stall_after = parent.stall_after;
    }
    if is_unset("limits") {
        (agent.memory_mb, agent.processes) = (parent.memory_mb, parent.processes);
    }
    agent.owner = agent.owner.take().or_else(|| parent.owner.clone());
    agent.tools = agent.tools.or(parent.tools);
    agent.on_loop = agent.on_loop.or(parent.on_loop);
    agent.on_block = agent.on_block.or(parent.on_block);
    let (own, of_parent) = (&mut agent.zone, &parent.zone);
    if is_unset("zone") {
        own.spec.allowed.clone_from(&of_parent.spec.allowed);
    }
    if own.readable.is_empty() {
        own.readable.clone_from(&of_parent.readable);
        own.spec.readable.extend_from_slice(&of_parent.readable);
    }
}

/// The fault of a zone that reaches out of the parent's.
fn reaches_out(helper: &RawAgent, parent: &Agent) -> Option<Fault> {
    let (own, of_parent) = (&helper.agent.zone, &parent.zone.spec);
    let ZoneSpec { allowed, readable, .. } = of_parent;
    let may_read = [&allowed[..], readable].concat();
    // Patterns that cannot be read have a fault already.
    let further = zone::uncovered(allowed, &own.spec.allowed).ok().flatten();
    let further = further.or_else(|| zone::uncovered(&may_read, &own.readable).ok().flatten())?;
    let message = format!(
        "{} reaches out of the zone of `{}`, the parent of `{}`",
        quoted(further),
        parent.id,
        helper.agent.id
    );
    let span = helper.zone.clone().or_else(|| Some(helper.parent.as_ref()?.span.clone()));
    let allowed: Vec<_> = allowed.iter().take(20).map(|pattern| quoted(pattern)).collect();
    let help = format!("a helper can have {} and what is in it", allowed.join(", "));
    Some(match span {
        Some(span) => Fault::new(span, message).help(help),
        None => Fault::of_file(message, help),
    })
}

/// The fault of a helper elsewhere whose parent has to be held by the kernel.
fn cannot_be_held(helper: &RawAgent, parent: &Agent) -> Option<Fault> {
    if helper.agent.remote.is_none() || parent.zone.enforce != Enforce::Kernel {
        return None;
    }
    let message = format!(
        "`{}` runs elsewhere, where no kernel here holds its zone, and its parent `{}` has `enforce = \"kernel\"`",
        helper.agent.id, parent.id
    );
    let help = "give it a parent without that, or a command instead of the address";
    Some(match &helper.parent {
        Some(parent) => Fault::new(parent.span.clone(), message).help(help),
        None => Fault::of_file(message, help.to_owned()),
    })
}
