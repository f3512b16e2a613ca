//! Which run started which: what is below a run, and all runs in the order of a tree.

use std::collections::{BTreeMap, BTreeSet};

use super::RunState;

/// A line of the tree.
#[derive(Clone, Copy, Debug)]
pub struct Branch<'a> {
    /// Levels above it.
    pub level: usize,
    pub node: BranchNode<'a>,
}

#[derive(Clone, Copy, Debug)]
pub enum BranchNode<'a> {
    Run(&'a RunState),
    /// An agent of a team, or a run that is not among these.
    Starter(&'a str),
}

/// All runs, each behind the one that started it.
pub fn tree(runs: &[RunState]) -> Vec<Branch<'_>> {
    let known: BTreeSet<&str> = runs.iter().map(|run| run.id.as_str()).collect();
    let children = children(runs);
    let (mut all, mut shown) = (Vec::new(), BTreeSet::new());
    for run in runs {
        match run.parent.as_deref() {
            None => descend(run, 0, &children, &mut shown, &mut all),
            Some(parent) if known.contains(parent) => {}
            Some(starter) if shown.insert(starter) => {
                all.push(Branch { level: 0, node: BranchNode::Starter(starter) });
                for child in children.get(starter).into_iter().flatten() {
                    descend(child, 1, &children, &mut shown, &mut all);
                }
            }
            Some(_) => {}
        }
    }
    // What is its own ancestor has no place above it.
    for run in runs {
        descend(run, 0, &children, &mut shown, &mut all);
    }
    all
}

/// All runs below one.
pub fn below<'a>(runs: &'a [RunState], id: &'a str) -> Vec<&'a RunState> {
    let children = children(runs);
    let (mut found, mut shown) = (Vec::new(), BTreeSet::from([id]));
    let mut next = vec![id];
    while let Some(parent) = next.pop() {
        for child in children.get(parent).into_iter().flatten() {
            if shown.insert(&child.id) {
                found.push(*child);
                next.push(&child.id);
            }
        }
    }
    found
}

fn children(runs: &[RunState]) -> BTreeMap<&str, Vec<&RunState>> {
    let mut children: BTreeMap<&str, Vec<&RunState>> = BTreeMap::new();
    for run in runs {
        if let Some(parent) = &run.parent {
            children.entry(parent).or_default().push(run);
        }
    }
    children
}

/// Adds a run with all below it, unless it was added. Iterative, since files decide how deep it goes.
fn descend<'a>(
    run: &'a RunState,
    level: usize,
    children: &BTreeMap<&'a str, Vec<&'a RunState>>,
    shown: &mut BTreeSet<&'a str>,
    all: &mut Vec<Branch<'a>>,
) {
    let mut next = vec![(level, run)];
    while let Some((level, run)) = next.pop() {
        if !shown.insert(&run.id) {
            continue;
        }
        all.push(Branch { level, node: BranchNode::Run(run) });
        let below = children.get(run.id.as_str()).into_iter().flatten().rev();
        next.extend(below.map(|child| (level + 1, *child)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::spec::tests::run;

    fn drawn(runs: &[RunState]) -> String {
        let line = |branch: &Branch<'_>| {
            let name = match branch.node {
                BranchNode::Run(run) => run.id.as_str(),
                BranchNode::Starter(name) => name,
            };
            format!("{}{name}", "-".repeat(branch.level))
        };
        tree(runs).iter().map(line).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn each_run_stands_below_the_one_that_started_it() {
        let runs = [
            run("a", None),
            run("b", Some("shop/ui")),
            run("c", Some("a")),
            run("d", Some("b")),
            run("e", Some("shop/ui")),
            run("f", Some("c")),
            run("g", Some("a")),
            run("h", None),
        ];
        assert_eq!(drawn(&runs), "a -c --f -g shop/ui -b --d -e h");
        let names = |id| below(&runs, id).iter().map(|run| &*run.id).collect::<BTreeSet<_>>();
        assert_eq!(names("a"), ["c", "f", "g"].into());
        assert_eq!(names("b"), ["d"].into());
        assert_eq!(names("h"), BTreeSet::new());
    }

    #[test]
    fn a_circle_and_a_run_that_is_gone_hide_nothing() {
        let runs = [run("a", Some("b")), run("b", Some("a")), run("c", Some("gone"))];
        assert_eq!(drawn(&runs), "gone -c a -b");
        assert_eq!(below(&runs, "a").len(), 1);
    }
}
