//! The bounds of an agent that has a parent: in every part at most those of the parent.

use std::collections::BTreeMap;

use super::profiles::built_in;
use super::{Agent, AgentZone, Confine, Confined, Enforce};
use crate::zone::{self, GrantedPlace, common};

/// Bounds a child by its parent, whose own bounds are settled. What a person wrote of a child's places, limits
/// and environment stays. What an agent asked for is cut to what the parent has, in every part, and
/// [`Agent::without`] says what that leaves out.
pub(super) fn bound(child: &mut Agent, parent: &Agent) {
    bound_zone(&mut child.zone, &parent.zone);
    child.zone.enforce = match (&child.remote, &parent.remote) {
        _ if parent.zone.enforce == Enforce::Observe => {
            child.zone.spec.terminals &= child.remote.is_none() || parent.remote.is_some();
            Enforce::Observe
        }
        (Some(_), Some(_)) => Enforce::Protocol,
        (Some(_), None) => {
            // They would run here, where the kernel holds the parent's.
            child.zone.spec.terminals = false;
            Enforce::Protocol
        }
        // What holds the parent's zone elsewhere says nothing of what holds this one's here.
        (None, Some(_)) => Enforce::Auto,
        (None, None) => parent.zone.enforce,
    };
    if !child.is_asked_for {
        return;
    }
    cut_patterns(&mut child.zone, &parent.zone);
    child.memory_mb = least(child.memory_mb, parent.memory_mb);
    child.processes = least(child.processes, parent.processes);
    let variables = cut_environment(child, parent);
    // Those of its bounds: a place by a name in the workspace grants nothing.
    let reach = parent.bounds().map(|bounds| bounds.reach().clone());
    let (writable, readable) =
        reach.map(|reach| (reach.writable, reach.readable)).unwrap_or_default();
    let places = cut_places(&mut child.confined, &writable, &readable);
    // Without `strict` both reach them all.
    let places = places.into_iter().filter(|_| child.zone.confine == Confine::Strict);
    child.without = places.chain(variables).collect();
}

/// Takes over what the parent's zone denies, and how far it goes.
fn bound_zone(own: &mut AgentZone, parent: &AgentZone) {
    take_over(&mut own.denied, &parent.denied);
    take_over(&mut own.spec.denied, &parent.spec.denied);
    take_over(&mut own.spec.asked, &parent.spec.asked);
    own.spec.terminals = parent.spec.terminals;
    own.confine = parent.confine;
    own.sockets.clone_from(&parent.sockets);
    own.observe_files = parent.observe_files;
}

fn take_over(own: &mut Vec<String>, parents: &[String]) {
    let further: Vec<_> =
        parents.iter().filter(|pattern| !own.contains(pattern)).cloned().collect();
    own.extend(further);
}

/// Leaves the patterns that are within the parent's. Those of a profile's rule files may not be.
fn cut_patterns(own: &mut AgentZone, parent: &AgentZone) {
    let writes = [&parent.spec.allowed[..], &parent.spec.shared].concat();
    let reads = [&writes[..], &parent.spec.readable].concat();
    let leave = |patterns: &mut Vec<String>, widest: &[String]| {
        patterns.retain(|pattern| {
            let alone = std::slice::from_ref(pattern);
            // Equal ones are equally wide, whatever they say.
            widest.contains(pattern) || zone::uncovered(widest, alone).is_ok_and(|it| it.is_none())
        });
    };
    leave(&mut own.spec.allowed, &parent.spec.allowed);
    leave(&mut own.spec.shared, &parent.spec.shared);
    leave(&mut own.spec.readable, &reads);
    leave(&mut own.readable, &reads);
}

fn least(own: Option<u64>, parent: Option<u64>) -> Option<u64> {
    own.into_iter().chain(parent).min()
}

/// Leaves the variables that the parent has, too, with the parent's values, and what is known of the agent's
/// program to everybody. Returns the names of the others.
fn cut_environment(child: &mut Agent, parent: &Agent) -> Vec<String> {
    let known = built_in().get(&child.profile.base);
    let known = known.map(|it| [&it.env, &it.unattended_env, &it.confined_env]);
    let of_parent = [&parent.env, &parent.profile.unattended_env, &parent.profile.confined_env];
    let tables: Vec<_> = known.into_iter().flatten().chain(of_parent).collect();
    let has = |(name, value): &(&String, &String)| {
        tables.iter().any(|table| table.get(*name) == Some(*value))
    };
    let mut without = Vec::new();
    let mut cut = |own: &BTreeMap<String, String>| {
        let (kept, lost): (BTreeMap<_, _>, BTreeMap<_, _>) = own.iter().partition(has);
        let differs = lost.into_keys().filter(|name| !parent.env.contains_key(*name));
        without.extend(differs.map(|name| format!("${name}")));
        let kept = kept.into_iter().map(|(name, value)| (name.clone(), value.clone()));
        kept.collect::<BTreeMap<_, _>>()
    };
    let own = cut(&child.env);
    child.profile.unattended_env = cut(&child.profile.unattended_env);
    child.profile.confined_env = cut(&child.profile.confined_env);
    // A variable of the parent hides what this process has by that name.
    child.env.clone_from(&parent.env);
    child.env.extend(own);
    without
}

/// Leaves the places that the parent may write or read, too. Returns the names of those that are there, and of which
/// nothing is left.
fn cut_places(
    own: &mut Confined,
    writable: &[GrantedPlace],
    readable: &[GrantedPlace],
) -> Vec<String> {
    let reads = [writable, readable].concat();
    let mut read = common(&own.writable, &reads);
    read.extend(common(&own.readable, &reads));
    let lost = |asked: &[GrantedPlace], of_parent: &[GrantedPlace]| {
        let is_lost = |place: &&GrantedPlace| {
            common(std::slice::from_ref(place), of_parent).is_empty()
                && place.real.symlink_metadata().is_ok()
        };
        let lost = asked.iter().filter(is_lost).map(|place| place.name.display().to_string());
        lost.collect::<Vec<_>>()
    };
    let lost = [lost(&own.writable, writable), lost(&own.readable, &reads)].concat();
    *own = Confined {
        readable: read,
        writable: common(&own.writable, writable),
        made: common(&own.made, writable),
        harmless: own.harmless.clone(),
        programs: common(&own.programs, &reads),
        // Known when the whole file is read.
        sealed: own.sealed.clone(),
    };
    lost
}
