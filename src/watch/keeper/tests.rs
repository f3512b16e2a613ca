#![allow(clippy::unwrap_used)]
use std::fs;

use super::*;
use crate::bus::Backlog;
use crate::model::Lines;

#[test]
fn what_an_agent_wrote_is_marked_once_the_disk_can_be_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let [root, away] = ["shop", "away"].map(|name| folder.path().join(name));
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a.py"), "def open():\n    pass\n").unwrap();
    let mut kept = Kept::new(Keeper {
        root: root.clone(),
        settings: graph::Settings { jobs: 1, tokens: false, cache: None },
        shared: Arc::default(),
        bus: Bus::new(Backlog::of(8)),
        tell_written: Box::new(|_| {}),
        is_there: watch::channel(false).0,
    });
    kept.begin().unwrap();
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
