//! References between the agents of a file: ids, dependencies, the orchestrator.

use std::collections::{BTreeMap, HashMap};

use super::agents::RawAgent;
use super::errors::{code, quoted};
use super::fault::Fault;
use super::near::nearest;
use super::overlay::Layer;
use super::read::{ConfigReader, Text};
use super::routing::RawRouting;
use super::team::RawOrchestrator;
use super::{Agent, Orchestrator, Permissions, Provider, helpers, provider_choice};
use crate::model::{AgentId, RuleSpec};

/// Resolves every reference to an agent; rules may name agents of the file that were removed over
/// the port.
pub(super) fn link(
    reader: &ConfigReader<'_>,
    mut raw: Vec<RawAgent>,
    orchestrator: &RawOrchestrator,
    routing: Vec<RawRouting>,
    layer: &Layer,
    (max_depth, providers): (u32, &BTreeMap<String, Provider>),
) -> (Vec<Agent>, Orchestrator, Vec<RuleSpec>) {
    let ids = ids(reader, &raw);
    let known: Vec<&str> =
        raw.iter().filter_map(|agent| Some(agent.id.as_ref()?.value.as_str())).collect();
    let find = |name: &Text| {
        let found = ids.get(name.value.as_str()).copied();
        if found.is_none() {
            reader.fault(unknown(name, &known));
        }
        found
    };

    let mut edges: Vec<Vec<(usize, &Text)>> = Vec::with_capacity(raw.len());
    for agent in &raw {
        let mut found: Vec<(usize, &Text)> = Vec::new();
        for name in &agent.depends_on {
            let other = find(name);
            found.extend(
                other
                    .filter(|other| found.iter().all(|(known, _)| known != other))
                    .map(|other| (other, name)),
            );
        }
        edges.push(found);
    }
    report_circles(
        reader,
        &raw,
        &edges,
        &Circle { of: "wait for each other", mend: "dependencies" },
    );
    let parents: Vec<_> = raw.iter().map(|agent| agent.parent.as_ref().and_then(&find)).collect();
    let above = raw.iter().zip(&parents).map(|(agent, parent)| {
        parent.and_then(|parent| Some((parent, agent.parent.as_ref()?))).into_iter().collect()
    });
    let above: Vec<Vec<_>> = above.collect();
    report_circles(
        reader,
        &raw,
        &above,
        &Circle { of: "are parents of each other", mend: "parents" },
    );

    let named = orchestrator.agent.as_ref();
    let elsewhere = named.filter(|name| name.value.contains('/'));
    let lead = named.filter(|_| elsewhere.is_none()).and_then(&find);
    if let Some(lead) = lead.map(|lead| &raw[lead])
        && lead.agent.permissions == Permissions::Orchestrator
        && let Some(place) = &lead.permissions
    {
        let message = "the orchestrator can't decide its own permission requests";
        reader.fault(Fault::new(place.clone(), message).help("write \"allow\" or \"deny\""));
    }
    let check = |name: &Text| {
        if !layer.removed().contains(&name.value) {
            find(name);
        }
    };
    let routing = routing.into_iter().map(|rule| rule.resolved(check)).collect();
    let depends_on: Vec<Vec<AgentId>> = edges
        .iter()
        .map(|found| found.iter().map(|(other, _)| raw[*other].agent.id.clone()).collect())
        .collect();
    for RawAgent { agent, .. } in &mut raw {
        agent.is_asked_for = layer.asked_for().contains(agent.id.as_str());
    }
    helpers::inherit(reader, &mut raw, &parents, max_depth);
    provider_choice::resolve(reader, &mut raw, &parents, providers);
    report_shared_branches(reader, &raw);
    let orchestrator = Orchestrator {
        agent: lead.map(|lead| raw[lead].agent.id.clone()),
        elsewhere: elsewhere.map(|name| AgentId::new(name.value.as_str())),
        on_block: orchestrator.on_block,
        hold_timeout: orchestrator.hold_timeout,
        may_add: None,
    };
    let agents = raw
        .into_iter()
        .zip(depends_on)
        .map(|(raw, depends_on)| Agent { depends_on, ..raw.agent })
        .collect();
    (agents, orchestrator, routing)
}

/// Reports agents that would have one branch, and so one worktree.
fn report_shared_branches(reader: &ConfigReader<'_>, raw: &[RawAgent]) {
    let mut taken: HashMap<&str, &AgentId> = HashMap::new();
    for RawAgent { id, agent, .. } in raw {
        let (Some(id), Some(worktree)) = (id, &agent.worktree) else { continue };
        if !is_branch_name(&worktree.branch) {
            let message =
                format!("`{}` of agent `{}` is no name of a branch", worktree.branch, agent.id);
            let help = "letters, digits, `-`, `_`, `.` and `/`; git takes no `..`, no blank, and none of ~^:?*[\\";
            reader.fault(Fault::new(id.span.clone(), message).help(help));
        }
        let other = *taken.entry(&worktree.branch).or_insert(&agent.id);
        if *other != agent.id {
            let branch = &worktree.branch;
            let message = format!("agents `{other}` and `{}` have the branch `{branch}`", agent.id);
            let help = "give each a `branch` of its own in `[agents.worktree]`; a helper without a table works with its parent";
            reader.fault(Fault::new(id.span.clone(), message).help(help));
        }
    }
}

/// Whether git takes a name for a branch.
fn is_branch_name(name: &str) -> bool {
    let is_bad = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
    let is_part = |part: &str| {
        let is_lock = part.as_bytes().ends_with(b".lock");
        !part.is_empty() && !part.starts_with('.') && !is_lock
    };
    !name.starts_with('-')
        && name != "@"
        && !name.ends_with('.')
        && !name.contains("..")
        && !name.contains("@{")
        && !name.contains(is_bad)
        && name.split('/').all(is_part)
}

/// Returns the agents by id; of duplicates the first.
fn ids<'a>(reader: &ConfigReader<'_>, raw: &'a [RawAgent]) -> HashMap<&'a str, usize> {
    let mut ids = HashMap::new();
    for (index, agent) in raw.iter().enumerate() {
        let Some(id) = &agent.id else { continue };
        if ids.contains_key(id.value.as_str()) {
            let message = format!("there is another agent with the id {}", quoted(&id.value));
            reader.fault(Fault::new(id.span.clone(), message).help("give each its own"));
        } else {
            ids.insert(id.value.as_str(), index);
        }
    }
    ids
}

pub(super) fn unknown(name: &Text, known: &[&str]) -> Fault {
    let fault = Fault::new(name.span.clone(), format!("there is no agent {}", quoted(&name.value)));
    match nearest(&name.value, known) {
        Some(near) => fault.help(format!("did you mean {}?", quoted(near))),
        None if known.is_empty() => fault.help("add it as `[[agents]]`"),
        None => {
            let known: Vec<String> = known.iter().take(20).map(|id| code(id)).collect();
            fault.help(format!("there are {}", known.join(", ")))
        }
    }
}

/// The words for a circle.
struct Circle {
    of: &'static str,
    mend: &'static str,
}

/// Reports each cycle once, where it closes. Iterative, since the file decides the
/// length of a chain.
fn report_circles(
    reader: &ConfigReader<'_>,
    raw: &[RawAgent],
    edges: &[Vec<(usize, &Text)>],
    words: &Circle,
) {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        Unseen,
        OnPath,
        Done,
    }
    let mut marks = vec![Mark::Unseen; raw.len()];
    for root in 0..raw.len() {
        if marks[root] != Mark::Unseen {
            continue;
        }
        marks[root] = Mark::OnPath;
        // Each with the number of its dependencies that were followed.
        let mut path = vec![(root, 0)];
        while let Some((agent, followed)) = path.last_mut() {
            let agent = *agent;
            let Some((next, name)) = edges[agent].get(*followed) else {
                marks[agent] = Mark::Done;
                path.pop();
                continue;
            };
            *followed += 1;
            match marks[*next] {
                Mark::Unseen => {
                    marks[*next] = Mark::OnPath;
                    path.push((*next, 0));
                }
                Mark::OnPath => {
                    let circle =
                        path.iter().map(|(agent, _)| *agent).skip_while(|agent| agent != next);
                    let names: Vec<&str> =
                        circle.chain([*next]).map(|agent| raw[agent].agent.id.as_str()).collect();
                    let message = format!("agents {}: {}", words.of, names.join(" → "));
                    reader.fault(
                        Fault::new(name.span.clone(), message)
                            .help(format!("leave out one of these {}", words.mend)),
                    );
                }
                Mark::Done => {}
            }
        }
    }
}
