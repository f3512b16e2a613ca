//! Accesses that pass the door.

use super::*;
use crate::model::FileNode;

impl Bench {
    /// Hands over what was told, and returns the nodes of a session.
    async fn nodes(&self, session: &str) -> Vec<FileNode> {
        // Paused time passes when every task has had its turn.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let snapshots = self.tracker.snapshots().await.sessions;
        let of_session = snapshots.iter().find(|it| it.key.session.as_str() == session);
        of_session.map(|it| it.nodes.clone()).unwrap_or_default()
    }

    fn passed(&self, path: &str, action: Action) {
        self.keeper.passed(path.into(), action);
    }
}

fn lines(nodes: &[FileNode]) -> Vec<String> {
    let line = |node: &FileNode| {
        let place = if node.in_context { "in" } else { "out" };
        format!("{} {} {place}", node.last_action.as_str(), node.path)
    };
    nodes.iter().map(line).collect()
}

#[tokio::test(start_paused = true)]
async fn what_passes_is_hot_in_its_turn_and_not_in_context() {
    let bench = bench(false);
    bench.passed("ui/early.ts", Action::Read);
    bench.begins("s");
    bench.passed("ui/a.ts", Action::Read);
    bench.passed("ui/b.ts", Action::Read);
    bench.passed("ui/b.ts", Action::Write);
    // Seen a moment ago, but in another turn.
    bench.passed("ui/early.ts", Action::Read);
    assert_eq!(lines(&bench.nodes("").await), ["read ui/early.ts out"]);
    let nodes = bench.nodes("s").await;
    assert_eq!(lines(&nodes), ["read ui/a.ts out", "write ui/b.ts out", "read ui/early.ts out"]);
    assert!(nodes.iter().all(|node| node.heat > 0.99));
}

#[tokio::test(start_paused = true)]
async fn what_nobody_wants_on_the_map_is_left_out() {
    let bench = bench(false);
    std::fs::write(bench.workspace.join(".gitignore"), "*.log\n").unwrap();
    for path in [".git/config", "ui/.git/HEAD", "target/debug/x.o", "ui/x.log", "ui/x.ts"] {
        bench.passed(path, Action::Read);
    }
    assert_eq!(lines(&bench.nodes("").await), ["read ui/x.ts out"]);
}

#[tokio::test(start_paused = true)]
async fn a_flood_is_bounded() {
    let bench = bench(false);
    for number in 0..20_000 {
        bench.passed(&format!("ui/{number}"), Action::Read);
    }
    assert_eq!(bench.nodes("").await.len(), 4096);
    tokio::time::sleep(Duration::from_millis(100)).await;
    bench.passed("ui/19999", Action::Read);
    assert_eq!(bench.nodes("").await.len(), 4097);
}

#[tokio::test(start_paused = true)]
async fn what_was_let_through_is_in_context_if_it_was_meant() {
    let bench = bench(false);
    bench.begins("s");
    for path in ["core/meant.ts", "core/swept.ts", "core/denied.ts"] {
        bench.rings(named(path)).await;
    }
    bench.resolve("b1", ALLOW).await;
    bench.resolve("b2", ALLOW).await;
    assert!(bench.rings(named("core/meant.ts")).await);
    assert!(bench.rings(read("core/swept.ts")).await);
    let mut lines = lines(&bench.nodes("s").await);
    lines.sort();
    assert_eq!(
        lines,
        ["blocked core/denied.ts out", "read core/meant.ts in", "read core/swept.ts out"]
    );
}
