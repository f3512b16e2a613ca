#![allow(clippy::unwrap_used)]
use std::fs;

use super::*;
use crate::bus::Backlog;
use crate::model::Lines;
use crate::watch::inbox::Inbox;

/// Keeps the graph of a folder with `a.py`.
fn updater(root: &Path, on_written: impl Fn(Arc<str>) + Send + 'static) -> Updater {
    fs::create_dir(root).unwrap();
    fs::write(root.join("a.py"), "def open():\n    pass\n").unwrap();
    let mut updater = Updater::new(UpdaterThread {
        root: root.to_owned(),
        settings: graph::Settings { jobs: 1, tokens: false, cache: None },
        shared: Arc::new(GraphShared::of(root)),
        bus: Bus::new(Backlog::of(8)),
        on_written: Box::new(on_written),
        on_changed: None,
        is_there: watch::channel(false).0,
    });
    updater.begin().unwrap();
    updater
}

#[test]
fn a_write_that_only_an_agent_claims_is_read_but_not_reported_as_written() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("shop");
    let (sender, written_paths) = std::sync::mpsc::channel();
    let mut updater = updater(&root, move |path| sender.send(path).unwrap());
    let write = Write { lines: Lines::range(1, 2), timestamp_ms: 7 };
    let writes = || Writes::from([("a.py".into(), write.clone())]);
    fs::write(root.join("a.py"), "def shut():\n    pass\n").unwrap();
    updater.update(&Changed::Paths(BTreeSet::new()), writes());
    assert!(updater.snapshot().nodes.iter().any(|(id, _)| &**id == "a.py::shut"));
    assert_eq!(written_paths.try_iter().count(), 0);
    updater.update(&Changed::Paths(BTreeSet::from([root.join("a.py")])), writes());
    assert_eq!(written_paths.try_iter().collect::<Vec<_>>(), ["a.py".into()]);
}

#[test]
fn a_write_is_reported_though_the_graph_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("shop");
    let (sender, written_paths) = std::sync::mpsc::channel();
    let mut updater = updater(&root, move |path| sender.send(path).unwrap());
    let mut update = |changed: &[&str]| {
        let paths = changed.iter().map(|path| root.join(path)).collect();
        updater.update(&Changed::Paths(paths), Writes::new());
        let mut written: Vec<_> = written_paths.try_iter().collect();
        written.sort_unstable();
        written
    };
    // A comment, which is in no node.
    fs::write(root.join("a.py"), "def open():\n    pass # x\n").unwrap();
    assert_eq!(update(&["a.py"]), ["a.py".into()]);
    fs::write(root.join("a.py"), "def open():\n    pass # y\n").unwrap();
    assert_eq!(update(&["a.py"]), ["a.py".into()]);
    // Beside an ignore file, for which all is read again.
    fs::write(root.join(".gitignore"), "out\n").unwrap();
    assert_eq!(update(&[".gitignore", "a.py"]), ["a.py".into()]);
    // In a folder that was not watched yet.
    fs::create_dir_all(root.join("lib/deep")).unwrap();
    fs::write(root.join("lib/deep/b.py"), "x = 1\n").unwrap();
    fs::write(root.join("lib/c.txt"), "").unwrap();
    assert_eq!(update(&["lib"]), ["lib/c.txt".into(), "lib/deep/b.py".into()]);
    assert_eq!(update(&["lib"]), Vec::<Arc<str>>::new());
}

#[test]
fn a_claimed_write_is_marked_once_the_disk_is_readable() {
    let folder = tempfile::tempdir().unwrap();
    let [root, away] = ["shop", "away"].map(|name| folder.path().join(name));
    let mut updater = updater(&root, |_| {});
    let written = |updater: &Updater| -> Vec<_> {
        let nodes = updater.snapshot().nodes;
        nodes
            .iter()
            .filter(|(_, node)| node.last_write.is_some())
            .map(|(id, _)| id.to_string())
            .collect()
    };
    let changed = Changed::Paths(BTreeSet::from([root.join("a.py")]));
    let write = Write { lines: Lines::range(1, 2), timestamp_ms: 7 };

    fs::rename(&root, &away).unwrap();
    updater.update(&changed, Writes::from([("a.py".into(), write)]));
    assert!(written(&updater).is_empty());
    fs::rename(&away, &root).unwrap();
    updater.update(&changed, Writes::new());
    assert_eq!(written(&updater), ["a.py", "a.py::open"]);
}

#[test]
fn an_inbox_without_tasks_asks_for_rest() {
    let inbox = Inbox::default();
    assert!(matches!(inbox.next(|| false, Some(Duration::ZERO)), GraphTask::Rest));
    let (reply, _answer) = tokio::sync::oneshot::channel();
    inbox.query(reply);
    assert!(matches!(inbox.next(|| false, Some(Duration::ZERO)), GraphTask::Answer(_)));
}
