#![allow(clippy::unwrap_used)]
use std::fs;

use super::*;
use crate::bus::Backlog;
use crate::model::Lines;
use crate::watch::inbox::Inbox;

/// Keeps the graph of a folder with `a.py`.
fn kept(root: &Path, tell_written: impl Fn(Arc<str>) + Send + 'static) -> Kept {
    fs::create_dir(root).unwrap();
    fs::write(root.join("a.py"), "def open():\n    pass\n").unwrap();
    let mut kept = Kept::new(Keeper {
        root: root.to_owned(),
        settings: graph::Settings { jobs: 1, tokens: false, cache: None },
        shared: Arc::new(GraphShared::of(root)),
        bus: Bus::new(Backlog::of(8)),
        on_written: Box::new(tell_written),
        is_there: watch::channel(false).0,
    });
    kept.begin().unwrap();
    kept
}

#[test]
fn what_only_an_agent_told_of_is_looked_at_and_not_told_to_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("shop");
    let (telling, told) = std::sync::mpsc::channel();
    let mut kept = kept(&root, move |path| telling.send(path).unwrap());
    let write = Write { lines: Lines::range(1, 2), timestamp_ms: 7 };
    let writes = || Writes::from([("a.py".into(), write.clone())]);
    fs::write(root.join("a.py"), "def shut():\n    pass\n").unwrap();
    kept.follow(&Changed::Paths(BTreeSet::new()), writes());
    assert!(kept.snapshot().nodes.iter().any(|(id, _)| &**id == "a.py::shut"));
    assert_eq!(told.try_iter().count(), 0);
    kept.follow(&Changed::Paths(BTreeSet::from([root.join("a.py")])), writes());
    assert_eq!(told.try_iter().collect::<Vec<_>>(), ["a.py".into()]);
}

#[test]
fn what_an_agent_wrote_is_marked_once_the_disk_can_be_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let [root, away] = ["shop", "away"].map(|name| folder.path().join(name));
    let mut kept = kept(&root, |_| {});
    let written = |kept: &Kept| -> Vec<_> {
        let nodes = kept.snapshot().nodes;
        nodes
            .iter()
            .filter(|(_, node)| node.last_write.is_some())
            .map(|(id, _)| id.to_string())
            .collect()
    };
    let changed = Changed::Paths(BTreeSet::from([root.join("a.py")]));
    let write = Write { lines: Lines::range(1, 2), timestamp_ms: 7 };

    fs::rename(&root, &away).unwrap();
    kept.follow(&changed, Writes::from([("a.py".into(), write)]));
    assert!(written(&kept).is_empty());
    fs::rename(&away, &root).unwrap();
    kept.follow(&changed, Writes::new());
    assert_eq!(written(&kept), ["a.py", "a.py::open"]);
}

#[test]
fn an_inbox_without_tasks_asks_for_rest() {
    let inbox = Inbox::default();
    assert!(matches!(inbox.next(|| false, Some(Duration::ZERO)), GraphTask::Rest));
    let (reply, _answer) = tokio::sync::oneshot::channel();
    inbox.ask(reply);
    assert!(matches!(inbox.next(|| false, Some(Duration::ZERO)), GraphTask::Answer(_)));
}
