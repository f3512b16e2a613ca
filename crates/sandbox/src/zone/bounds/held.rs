//! Reports how well the rules of a wall enforce each pattern.

use std::path::{Path, PathBuf};

use super::found::WallRules;
use super::{Bounds, Coverage, Grant, PatternCoverage};
use crate::model::{KERNEL_FOLDERS, wire_real};
use crate::zone::patterns::Start;

/// Folders that are named; further ones are only counted.
const NAMED: usize = 3;

/// How a pattern is held that neither rules nor the doorbell's own hand hold.
pub const HELD_ALONE: &str =
    "held by the doorbell alone: a move of a folder above it, or a race, opens it";

pub(super) fn held(bounds: &Bounds, found: &WallRules) -> Vec<PatternCoverage> {
    let spec = &bounds.zone.spec;
    let [writes, reads] = &bounds.allowed;
    let to_write: Vec<Start> = writes.starts().collect();
    let to_read: Vec<Start> = reads.starts().collect();
    let granting = |starts: &[Start], at: usize, grant| {
        let mut starts = starts.iter().filter(|start| start.pattern == at);
        let lost: Option<String> = starts.find_map(|start| lost(bounds, found, start, grant));
        lost.map_or(Coverage::Exact, Coverage::Narrowed)
    };
    let shared = spec.allowed.len();
    let readable = shared + spec.shared.len();
    let mut all = Vec::new();
    let mut add = |list, pattern: &String, how| {
        all.push(PatternCoverage { list, pattern: pattern.clone(), how });
    };
    for (at, pattern) in spec.allowed.iter().enumerate() {
        add("allowed", pattern, granting(&to_write, at, Grant::Write));
    }
    for (at, pattern) in spec.shared.iter().enumerate() {
        add("shared", pattern, granting(&to_write, shared + at, Grant::Write));
    }
    for (at, pattern) in spec.closed().iter().enumerate() {
        let list = if at < spec.denied.len() { "denied" } else { "asked" };
        add(list, pattern, denying(bounds, found, at));
    }
    for (at, pattern) in spec.readable.iter().enumerate() {
        add("readable", pattern, granting(&to_read, readable + at, Grant::Read));
    }
    all
}

fn denying(bounds: &Bounds, found: &WallRules, at: usize) -> Coverage {
    let mut starts = bounds.denied.starts().filter(|start| start.pattern == at);
    if is_alone(bounds, at) {
        return Coverage::Alone;
    }
    if found.unsearched && starts.any(|start| start.searches) {
        let why = "there is more to search for it than is walked: what was not walked is opened \
                   by the doorbell, and can't be executed";
        return Coverage::Narrowed(why.to_owned());
    }
    if found.open.contains(&at) {
        let why = "what matches it now is held by rules; a file made later that matches is held \
                   by the doorbell only";
        return Coverage::Doorbell(why.to_owned());
    }
    Coverage::Exact
}

/// Whether the doorbell alone holds a pattern that denies.
pub(super) fn is_alone(bounds: &Bounds, at: usize) -> bool {
    let mut starts = bounds.denied.starts().filter(|start| start.pattern == at);
    starts.any(|start| is_of_the_kernel(&start))
}

/// Whether a pattern that denies names something in the kernel's own folders: what is there differs
/// for each process, so that neither rules nor the doorbell's own hand can hold it.
fn is_of_the_kernel(start: &Start) -> bool {
    let folder = KERNEL_FOLDERS.iter().find(|folder| start.path.starts_with(folder));
    folder
        .is_some_and(|folder| start.path != Path::new(folder) || !start.is_whole && !start.is_path)
}

/// Describes the part of a pattern from `start` that the rules do not grant.
fn lost(bounds: &Bounds, found: &WallRules, start: &Start, grant: Grant) -> Option<String> {
    let covering = |folder: &Path| {
        let rule = found.rules.get(folder);
        rule.is_some_and(|rule| rule.grant >= grant && rule.is_folder)
    };
    if start.path.ancestors().any(covering) {
        return None;
    }
    let opened = "opened by the doorbell, and can't be executed";
    if start.searches {
        return Some(format!(
            "it names files at any depth outside the workspace, where no walk looks for them: \
             what it matches is {opened}"
        ));
    }
    let cut =
        if found.cut { ", and so is some of what is there: it is too much to walk" } else { "" };
    if start.is_path || !start.is_whole {
        return Some(format!(
            "a file that is made later, or replaced in one step, is {opened}{cut}"
        ));
    }
    let broken: Vec<&PathBuf> =
        found.broken.iter().filter(|folder| folder.starts_with(&start.path)).collect();
    if broken.is_empty() && !start.path.is_dir() {
        return Some(format!("there is no such folder: what is made in it later is {opened}"));
    }
    let mut shown: Vec<String> = broken.iter().map(|folder| shown(bounds, folder)).collect();
    shown.sort_unstable();
    let more = shown.len().saturating_sub(NAMED);
    shown.truncate(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let place = if shown.is_empty() { shown_start(bounds, start) } else { shown.join(", ") };
    Some(format!(
        "what is made later, or replaced in one step, right in {place}{more} is {opened}{cut}"
    ))
}

fn shown_start(bounds: &Bounds, start: &Start) -> String {
    shown(bounds, &start.path)
}

fn shown(bounds: &Bounds, path: &Path) -> String {
    let workspace = bounds.zone.workspace();
    format!("`{}`", wire_real(workspace, path))
}
