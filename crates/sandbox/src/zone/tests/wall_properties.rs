//! Property tests on random trees and zones: the rules' grants, for existing and later files, are
//! compared with the verdicts of the bounds.

use globset::GlobBuilder;
use proptest::prelude::*;
use proptest::sample::select;

use super::bounds::bounds;
use super::*;

const GLOBS: &[&str] = &[
    "**",
    "a/**",
    "b",
    "a/b",
    "*/b/**",
    "**/c",
    "b/*",
    "{a,c}/b/**",
    "c/**/a",
    "*",
    "**/*.rs",
    "a/**/*",
    "?/a/**",
    ".git/**",
    "@/out/**",
    "@/out/a",
    "@/out/*/b",
    "@/*/a/b",
    "[!a]/**",
];

const DENIED: &[&str] = &[
    "**/.env",
    "a/b",
    "*/b/**",
    "**/c",
    "b/*",
    "@/out/a/**",
    "@/out/*/b",
    "@/*/c",
    ".git/refs",
    "**/*.rs",
    "a/**/b",
    "@/ws/b/**",
    "@/**/c",
    "@/out/**/b/**",
    "@/out/a/**/x.rs",
    "@/{out,ws}/*/**/a",
    "l",
    "..",
    "../out/c",
    "?",
    "**",
];

#[derive(Clone, Debug)]
struct Case {
    files: Vec<String>,
    folders: Vec<String>,
    links: Vec<(String, String)>,
    later: Vec<String>,
    repository: bool,
    git: GitAccess,
    confine: Confine,
    eisen: &'static str,
    allowed: Vec<&'static str>,
    readable: Vec<&'static str>,
    denied: Vec<&'static str>,
}

fn cases() -> impl Strategy<Value = Case> {
    let top = || select(vec!["ws", "ws", "ws", "ws", "out", "ws/.git", "ws/a/.git"]);
    let name = || {
        select(vec!["a", "b", "c", "a", "b", "c", "l", ".env", "x.rs", ".git", "refs", "objects"])
    };
    let path = move || {
        (top(), prop::collection::vec(name(), 1..5))
            .prop_map(|(top, names)| format!("{top}/{}", names.join("/")))
    };
    let target = select(vec!["../a", "b", "@/out/a", "@/eisen", "..", "@/ws/a/b"]);
    let paths = move |size| prop::collection::vec(path(), size);
    let globs = |from, size| prop::collection::vec(select(from), size);
    let tree =
        (paths(0..16), paths(0..4), prop::collection::vec((path(), target), 0..3), paths(1..6));
    let zone = (globs(GLOBS, 1..4), globs(GLOBS, 0..2), globs(DENIED, 0..3));
    let git = select(vec![GitAccess::None, GitAccess::Read, GitAccess::Commit]);
    let confine = select(vec![Confine::Workspace, Confine::Strict]);
    let eisen = select(vec!["eisen", "eisen", "ws/b/c", "out/a"]);
    (tree, zone, any::<bool>(), git, confine, eisen).prop_map(
        |(
            (files, folders, links, later),
            (allowed, readable, denied),
            repository,
            git,
            confine,
            eisen,
        )| {
            let links = links.into_iter().map(|(at, to)| (at, to.to_owned())).collect();
            Case {
                files,
                folders,
                links,
                later,
                repository,
                git,
                confine,
                eisen,
                allowed,
                readable,
                denied,
            }
        },
    )
}

/// The rules of a wall by what they grant.
struct Rules<'a>(&'a [Rule]);

impl Rules<'_> {
    fn grant(&self, file: &Path, action: Action) -> bool {
        let enough = |grant| match action {
            Action::Read => grant >= Grant::Read,
            Action::Write => grant >= Grant::Write,
        };
        self.0.iter().any(|rule| file.starts_with(&rule.path) && enough(rule.grant))
    }
}

impl Case {
    fn plant(&self) -> (Bed, Bounds) {
        let bed = Bed::new(&["out/", "needs/read/x", "needs/write/y", "eisen/tmp/ui/"]);
        if self.repository {
            bed.add(&["ws/.git/HEAD", "ws/.git/objects/ab/x", "ws/.git/refs/a", "ws/.git/hooks/h"]);
        }
        // What is in the way of another makes that fail: the tree is as random without it.
        for (at, to) in &self.links {
            let _ = bed.plant_beneath(at, |path| symlink(bed.expand(to), path));
        }
        for folder in &self.folders {
            let _ = bed.plant_beneath(folder, |path| fs::create_dir_all(path));
        }
        for file in &self.files {
            let _ = bed.plant_beneath(file, |path| fs::write(path, ""));
        }
        let mut spec = bed.spec(&self.allowed);
        spec.readable = bed.globs(&self.readable);
        spec.denied = bed.globs(&self.denied);
        spec.git = self.git;
        spec.eisen_dir = bed.path(self.eisen);
        let bounds = bounds(&bed, &spec, self.confine);
        (bed, bounds)
    }

    /// The `globs` that match a path, each in the words of the case.
    fn matching<'a>(bed: &Bed, globs: &'a [&'a str], path: &Path, above: bool) -> Vec<&'a str> {
        let inside = path.strip_prefix(bed.path("ws")).ok();
        let matches = |glob: &&&str| {
            let text = bed.expand(glob);
            let compiled = GlobBuilder::new(&text).literal_separator(true).build().unwrap();
            let matcher = compiled.compile_matcher();
            let path = if text.starts_with('/') { Some(path) } else { inside };
            path.is_some_and(|path| {
                path.ancestors()
                    .take(if above { 99 } else { 1 })
                    .any(|path| matcher.is_match(path) || matcher.is_match(path.join("")))
            })
        };
        globs.iter().filter(matches).copied().collect()
    }
}

impl Bed {
    /// Plants where no link leads elsewhere.
    fn plant_beneath(
        &self,
        at: &str,
        plant: impl FnOnce(&Path) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        let path = self.path(at);
        let parent = path.parent().unwrap();
        let nearest = parent.ancestors().find(|above| above.symlink_metadata().is_ok()).unwrap();
        if nearest.canonicalize()? != nearest {
            return Ok(());
        }
        fs::create_dir_all(parent)?;
        if path.symlink_metadata().is_ok() { Ok(()) } else { plant(&path) }
    }

    /// Every file that is there.
    fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut pending = vec![self.root.clone()];
        while let Some(folder) = pending.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let kind = entry.file_type().unwrap();
                if kind.is_dir() {
                    pending.push(entry.path());
                } else if kind.is_file() {
                    files.push(entry.path());
                }
            }
        }
        files
    }
}

/// Whether a wall says that it holds a pattern of a list by itself.
fn is_exact(wall: &Wall, bed: &Bed, list: &str, glob: &str) -> bool {
    let pattern = bed.expand(glob);
    let of_list = |held: &&PatternCoverage| {
        (held.list == "denied") == (list == "denied") && held.pattern == pattern
    };
    wall.patterns.iter().filter(of_list).all(|held| held.how == Coverage::Exact)
}

/// Git's objects are never written in place.
fn is_object(file: &Path) -> bool {
    file.iter().any(|name| name == "objects")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..Default::default() })]

    #[test]
    fn rules_grant_a_file_exactly_what_it_is_judged(case in cases()) {
        let (bed, bounds) = case.plant();
        let wall = bounds.wall();
        let rules = Rules(&wall.rules);
        for file in bed.files() {
            for action in [Action::Read, Action::Write] {
                let judged = bounds.judge(&file, action).is_ok();
                let granted = rules.grant(&file, action);
                prop_assert!(!granted || judged, "{action} {} is granted", file.display());
                prop_assert!(
                    granted || !judged || action == Action::Write && is_object(&file),
                    "{action} {} is lost", file.display()
                );
            }
        }
    }

    #[test]
    fn what_rules_can_not_hold_is_named(case in cases()) {
        let (bed, bounds) = case.plant();
        let wall = bounds.wall();
        let rules = Rules(&wall.rules);
        let exact = |list: &str, glob: &str| is_exact(&wall, &bed, list, glob);
        for later in &case.later {
            let file = bed.path(later);
            let made = bed.plant_beneath(later, |path| fs::write(path, ""));
            if made.is_err() || !file.symlink_metadata().is_ok_and(|found| found.is_file()) {
                continue;
            }
            for action in [Action::Read, Action::Write] {
                let granted = rules.grant(&file, action);
                let denying = Case::matching(&bed, &case.denied, &file, true);
                for glob in denying.iter().filter(|glob| granted && exact("denied", glob)) {
                    prop_assert!(false, "{glob} does not hold {}", file.display());
                }
                let inside_git = file.iter().any(|name| name == ".git");
                let allowing = Case::matching(&bed, &case.allowed, &file, false);
                let judged = bounds.judge(&file, action).is_ok();
                for glob in allowing.iter().filter(|glob| judged && !granted && exact("allowed", glob)) {
                    prop_assert!(inside_git, "{glob} loses {}", file.display());
                }
            }
        }
    }

    /// Where a rule lets names be moved, nothing below may be denied, now or later.
    #[test]
    fn no_rule_lets_a_folder_be_moved_that_may_hold_what_is_denied(case in cases()) {
        let (bed, bounds) = case.plant();
        for rule in bounds.rules().iter().filter(|rule| rule.grant == Grant::Whole) {
            if rule.path.starts_with(&bed.root) && rule.path.is_dir() {
                for action in [Action::Read, Action::Write] {
                    prop_assert_eq!(bounds.subtree(&rule.path, action), Subtree::All, "{:?}", rule);
                }
            }
        }
    }

    #[test]
    fn what_is_below_a_folder_is_what_its_files_are_judged(case in cases()) {
        let (bed, bounds) = case.plant();
        for file in bed.files() {
            for action in [Action::Read, Action::Write] {
                let judged = bounds.judge(&file, action).is_ok();
                for folder in file.ancestors().skip(1) {
                    let subtree = bounds.subtree(folder, action);
                    let wrong = if judged { Subtree::None } else { Subtree::All };
                    prop_assert_ne!(subtree, wrong, "{} of {}", folder.display(), file.display());
                }
            }
        }
    }
}

/// A pattern that leads out of the workspace to a folder above it is searched for there: what matches later
/// is held by the doorbell, and the wall says so.
#[test]
fn a_pattern_that_a_link_leads_above_the_workspace_is_named() {
    let case = Case {
        files: vec!["out/b".to_owned()],
        folders: vec![],
        links: vec![("ws/a".to_owned(), "..".to_owned())],
        later: vec![],
        repository: false,
        git: GitAccess::None,
        confine: Confine::Workspace,
        eisen: "eisen",
        allowed: vec!["**"],
        readable: vec![],
        denied: vec!["a/**/b"],
    };
    let (bed, bounds) = case.plant();
    assert!(bounds.judge(&bed.path("out/b"), Action::Read).is_err());
    assert!(!Rules(&bounds.rules()).grant(&bed.path("out/b"), Action::Read));
    assert!(!is_exact(&bounds.wall(), &bed, "denied", "a/**/b"));
}
