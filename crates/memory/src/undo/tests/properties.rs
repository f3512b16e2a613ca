//! Random work of two agents and a person: an undo of one leaves all else byte for byte.

use proptest::prelude::*;
use tokio::runtime::Runtime;

use super::*;

/// The authors of changes: two agents, and a person whose changes are recorded.
const WHO: [Option<&str>; 3] = [Some("a"), Some("b"), None];

#[derive(Clone, Debug)]
enum Action {
    Write(usize, u8),
    /// Changes the line with this number.
    Edit(usize, usize, u8),
    Remove(usize),
    Rename(usize, usize),
    Mode(usize, u32),
    Folder(usize),
    Link(usize, u8),
}

const PATHS: [&str; 10] = ["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "x", "x/y", "x/y/z"];

fn action() -> impl Strategy<Value = Action> {
    let path = 0..PATHS.len();
    prop_oneof![
        3 => (path.clone(), any::<u8>()).prop_map(|(path, content)| Action::Write(path, content)),
        3 => (path.clone(), 0..20_usize, any::<u8>())
            .prop_map(|(path, line, content)| Action::Edit(path, line, content)),
        2 => path.clone().prop_map(Action::Remove),
        2 => (path.clone(), path.clone()).prop_map(|(from, to)| Action::Rename(from, to)),
        1 => (path.clone(), prop_oneof![Just(0o644), Just(0o755), Just(0o600)])
            .prop_map(|(path, mode)| Action::Mode(path, mode)),
        1 => path.clone().prop_map(Action::Folder),
        1 => (path, any::<u8>()).prop_map(|(path, target)| Action::Link(path, target)),
    ]
}

/// Does it as far as it can be done.
fn act(root: &Path, action: &Action) {
    let at = |path: usize| root.join(PATHS[path]);
    let is_file = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    match action {
        Action::Write(path, content) => {
            let lines = |n| format!("{content} {n}\n");
            let _ = fs::create_dir_all(at(*path).parent().unwrap());
            if !at(*path).is_symlink() {
                let _ = fs::write(at(*path), (0..20).map(lines).collect::<String>());
            }
        }
        Action::Edit(path, line, content) if is_file(&at(*path)) => {
            let text = fs::read_to_string(at(*path)).unwrap();
            let mut lines: Vec<_> = text.split('\n').map(str::to_owned).collect();
            if let Some(line) = lines.get_mut(*line) {
                *line = format!("edited {content}");
            }
            fs::write(at(*path), lines.join("\n")).unwrap();
        }
        Action::Remove(path) => {
            let _ = fs::remove_file(at(*path)).or_else(|_| fs::remove_dir_all(at(*path)));
        }
        Action::Rename(from, to) => {
            let _ = fs::rename(at(*from), at(*to));
        }
        Action::Mode(path, mode) if !at(*path).is_symlink() => {
            let mode = if at(*path).is_dir() { mode | 0o700 } else { *mode };
            let _ = fs::set_permissions(at(*path), fs::Permissions::from_mode(mode));
        }
        Action::Folder(path) => drop(fs::create_dir_all(at(*path))),
        Action::Link(path, target) => drop(symlink(format!("t{target}"), at(*path))),
        Action::Edit(..) | Action::Mode(..) => {}
    }
}

/// Work on paths of one's own, so that nothing clashes.
fn apart(root: &Path, who: usize, action: &Action) {
    let own = root.join(["of-a", "of-b", "of-person"][who]);
    let _ = fs::create_dir(&own);
    act(&own, action);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn an_undo_of_one_leaves_all_else_and_redo_brings_it_back(
        actions in proptest::collection::vec((0..3_usize, action()), 1..40),
    ) {
        Runtime::new().unwrap().block_on(async {
            let scene = Scene::new().await;
            let others = TempDir::new().unwrap();
            scene.doing(Some("a"), 0, |root| write(root, "first", "of a\n")).await;
            for (turn, (who, action)) in (0..).zip(&actions) {
                scene.doing(WHO[*who], turn, |root| apart(root, *who, action)).await;
                if *who != 0 {
                    apart(others.path(), *who, action);
                }
            }
            let after = look(&scene.workspace());
            let undone = scene.undo("a").await.unwrap();
            assert_eq!(undone.obstacles, []);
            assert_eq!(look(&scene.workspace()), look(others.path()));
            if undone.event_id.is_some() {
                scene.redo().await.unwrap();
            }
            assert_eq!(look(&scene.workspace()), after);
        });
    }

    #[test]
    fn an_undo_among_others_is_whole_or_nothing_and_redo_is_its_inverse(
        actions in proptest::collection::vec((0..3_usize, action()), 1..30),
        unseen in proptest::collection::vec(action(), 0..3),
        force in any::<bool>(),
    ) {
        Runtime::new().unwrap().block_on(async {
            let scene = Scene::new().await;
            for (turn, (who, action)) in (0..).zip(&actions) {
                scene.doing(WHO[*who], turn, |root| act(root, action)).await;
            }
            for action in &unseen {
                act(&scene.workspace(), action);
            }
            let after = look(&scene.workspace());
            let request = UndoRequest { aim: Scene::aim("a"), force, dry_run: false, outside: false, rewind: None };
            let undone = match scene.undoer.run(request).await {
                Ok(outcome) => outcome,
                Err(UndoError::InTheWay { .. } | UndoError::Asked(_)) => {
                    assert_eq!(look(&scene.workspace()), after);
                    return;
                }
                Err(error) => panic!("{error}"),
            };
            // What it did not name is as it was.
            let now = look(&scene.workspace());
            let named: Vec<_> =
                undone.paths.iter().map(|it| PathBuf::from(&it.path.path)).collect();
            for path in after.keys().chain(now.keys()) {
                if !named.contains(path) {
                    assert_eq!(after.get(path), now.get(path), "{}", path.display());
                }
            }
            if undone.event_id.is_some() {
                scene.redo().await.unwrap();
            }
            assert_eq!(look(&scene.workspace()), after);
        });
    }
}
