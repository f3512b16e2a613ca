//! The relay's answers to the agent's doorbell.

use std::path::Path;

use super::bench::Bench;
use super::*;
use crate::model::{Action, SessionId, SessionKey, Touch, Via};
use crate::routing::{Request, Settlement};

impl Bench {
    async fn client_says(&mut self, text: &str) {
        self.client.write_all(text.as_bytes()).await.unwrap();
        assert_eq!(line(&mut self.agent).await, text);
        self.handle.settled().await;
    }

    async fn agent_said(&mut self, text: &str) {
        self.agent_says(text).await;
        assert_eq!(line(&mut self.client).await, text);
        self.handle.settled().await;
    }

    /// A call that the kernel stopped.
    fn stopped(session: &str, path: &str) -> Request {
        Request {
            key: SessionKey::new(AgentId::new("a"), SessionId::new(session)),
            path: path.into(),
            action: Action::Read,
            via: Via::Kernel,
            scope: crate::routing::AccessScope::Path,
            making: crate::routing::Making::Nothing,
            hold: false,
            may_wait: false,
            grantable: true,
            denied_by: None,
            caller: Some(7),
            call: None,
            patience: None,
            reason: None,
            wanted: None,
        }
    }

    async fn passes(&self, session: &str, path: &str) -> bool {
        let settled = self.routing.request(Self::stopped(session, path)).await;
        settled == Some(Settlement::Allowed)
    }
}

#[tokio::test]
async fn turns_and_calls_are_known_as_long_as_they_run() {
    let mut bench = bench(&ZONED);
    let workspace = std::path::Path::new("/w");
    let place = NamedPath { wire: "core/x", workspace };
    bench.client_says("prompt s\n").await;
    assert_eq!(bench.running.moment().session.as_str(), "s");
    assert!(!bench.running.names(place));
    bench.agent_said("call s core/x\n").await;
    assert!(bench.running.names(place));
    bench.agent_said("done s\n").await;
    assert_eq!(bench.running.moment().session.as_str(), "");
    assert!(!bench.running.names(place));
    let moment = bench.running.moment();
    bench.handle.close_agent().await;
    moment.over().await;
}

#[tokio::test]
async fn cancelling_lets_go_of_what_the_kernel_holds() {
    let mut bench = bench(&ZONED);
    bench.client_says("prompt s\n").await;
    let moment = bench.running.moment();
    bench.client_says("cancel s\n").await;
    moment.over().await;
}

#[tokio::test]
async fn what_a_terminal_was_allowed_it_may_open_until_its_turn_ends() {
    let mut bench = bench(&Options { hold: true, ..ZONED });
    bench.client_says("prompt s\n").await;
    bench.agent_says("run 1 s out/a\n").await;
    assert_eq!(bench.blocked().await.0, BlockedId::new("b1"));
    bench.allow("b1").await;
    assert_eq!(line(&mut bench.client).await, "run 1 s out/a\n");
    // As often as the command likes; also where it is not known which turn it belongs to.
    assert!(bench.passes("s", "out/a").await);
    assert!(bench.passes("", "out/a").await);
    assert!(!bench.passes("s", "out/b").await);
    assert!(!bench.passes("other", "out/a").await);
    // A further command, and one of another path, is asked for anew.
    bench.agent_says("run 2 s out/a\n").await;
    let pending = (BlockedId::new("b4"), BlockedStatus::Pending);
    while bench.blocked().await != pending {}
    bench.agent_said("done s\n").await;
    assert!(!bench.passes("s", "out/a").await);
}

#[tokio::test]
async fn a_read_that_was_allowed_may_be_done_by_the_agent_itself() {
    let mut bench = bench(&Options { hold: true, ..ZONED });
    bench.client_says("prompt s\n").await;
    bench.agent_says("read 1 s out/a\n").await;
    bench.blocked().await;
    bench.allow("b1").await;
    assert_eq!(line(&mut bench.client).await, "read 1 s out/a\n");
    assert!(bench.passes("s", "out/a").await);
    bench.agent_said("done s\n").await;
    assert!(!bench.passes("s", "out/a").await);
}

#[tokio::test]
async fn what_the_kernel_prevents_is_neither_reported_nor_on_the_map() {
    // Outside, and no file of the system.
    let elsewhere = std::env::current_exe().unwrap();
    let elsewhere = elsewhere.to_str().unwrap();
    // Where only the protocol holds the zone, all of it may have happened.
    for (kernel, reported, on_map) in [
        (true, &[elsewhere][..], &[elsewhere, "in/a"][..]),
        (false, &["out/a", "out/b", elsewhere], &[elsewhere, "in/a", "in/link", "out/a"]),
    ] {
        let mut bench = bench(&Options { kernel, ..ZONED });
        let at = |path: &str| bench.folder.path().join(path);
        for folder in ["in", "out"] {
            std::fs::create_dir(at(folder)).unwrap();
        }
        std::fs::write(at("out/b"), "").unwrap();
        std::os::unix::fs::symlink("../out/b", at("in/link")).unwrap();
        for path in ["out/a", "in/a", "in/link", elsewhere] {
            // Reported as read, and then as done.
            bench.agent_said(&format!("{path}\n")).await;
            bench.agent_said(&format!("did s {path}\n")).await;
        }
        let observed = bench.routing.list(None).await;
        let observed: Vec<_> = observed.iter().map(|it| &*it.path).collect();
        assert_eq!(observed, reported);
        let snapshots = bench.tracker.snapshots().await.sessions;
        let nodes = snapshots.iter().flat_map(|it| it.nodes.iter());
        let mut nodes: Vec<_> = nodes.map(|node| node.path.to_string()).collect();
        nodes.retain(|path| path != "out/b");
        nodes.sort();
        assert_eq!(nodes, on_map);
    }
}

#[tokio::test]
async fn what_lies_outside_the_zone_is_on_the_map_once_it_is_done() {
    let mut bench = bench(&ZONED);
    for folder in ["in", "out"] {
        std::fs::create_dir(bench.folder.path().join(folder)).unwrap();
    }
    bench.client_says("prompt s\n").await;
    // Each is named as read; of those outside only one is reported as done in the same turn.
    for path in ["in/a", "out/a", "out/b", "out"] {
        bench.agent_said(&format!("names s {path}\n")).await;
    }
    for talk in ["did s out/b", "done s", "did s out/a"] {
        bench.agent_said(&format!("{talk}\n")).await;
    }
    let snapshots = bench.tracker.snapshots().await.sessions;
    let read = snapshots
        .iter()
        .flat_map(|it| it.nodes.iter())
        .filter(|node| node.last_action == Touch::Read || node.in_context);
    let mut read: Vec<_> = read.map(|node| node.path.to_string()).collect();
    read.sort();
    assert_eq!(read, ["in/a", "out", "out/b"]);
}

#[tokio::test]
async fn a_permission_for_what_the_kernel_refuses_is_passed_on() {
    let mut bench = bench(&Options { hold: true, kernel: true, ..ZONED });
    bench.client_says("prompt s\n").await;
    // Its call is what is held, once; whoever answers the permission.
    for is_editors in [false, true] {
        bench.permits.set_editor(&SessionId::new("s"), is_editors);
        bench.agent_said("may 1 s out/a\n").await;
        assert!(bench.routing.list(None).await.is_empty());
    }
}

#[tokio::test]
async fn what_the_kernel_would_let_through_is_withheld_until_the_turn_ends() {
    let mut bench = bench(&Options { kernel: true, ..ZONED });
    let withheld = |bench: &Bench, path: &str| {
        [Action::Read, Action::Write].map(|action| bench.running.withholds(Path::new(path), action))
    };
    // Without a turn nothing would end it.
    bench.agent_says("may 1 s /etc/hostname\n").await;
    assert_eq!(line(&mut bench.agent).await, "outside 1 /etc/hostname\n");
    bench.client_says("prompt s\n").await;
    bench.agent_said("may 2 s /etc/hostname\n").await;
    assert_eq!(withheld(&bench, "/etc/hostname"), [true, false]);
    assert_eq!(withheld(&bench, "/etc/hosts"), [false, false]);
    // Some name its folder beside it. Of another folder it is not known what will be opened there.
    bench.agent_said("may 4 s /etc/hosts /etc/\n").await;
    assert_eq!(withheld(&bench, "/etc/hosts"), [true, false]);
    bench.agent_says("may 5 s /etc/hosts /usr/\n").await;
    assert_eq!(line(&mut bench.agent).await, "outside 5 /usr\n");
    bench.agent_said("done s\n").await;
    assert_eq!(withheld(&bench, "/etc/hostname"), [false, false]);
    // Files are still the client's to open, and the gate's to judge.
    bench.client_says("prompt s\n").await;
    bench.agent_says("read 3 s out/a\n").await;
    assert_eq!(line(&mut bench.agent).await, "outside 3 out/a\n");
}

#[tokio::test]
async fn a_permission_that_is_the_orchestrators_to_give_is_asked_of_it() {
    let options = Options { kernel: true, orchestrator_permits: true, ..ZONED };
    let mut bench = bench(&options);
    bench.client_says("prompt s\n").await;
    bench.agent_says("may 1 s out/a\n").await;
    assert_eq!(line(&mut bench.agent).await, "outside 1 out/a\n");
}

#[tokio::test]
async fn who_takes_the_workspace_for_the_root_means_the_workspace() {
    let mut bench = bench(&ZONED);
    for folder in ["in", "out"] {
        std::fs::create_dir(bench.folder.path().join(folder)).unwrap();
    }
    let elsewhere = std::env::current_exe().unwrap();
    let elsewhere = elsewhere.to_str().unwrap();
    // A file of the system is nobody's.
    for path in ["/in/a", "/out/b", "/etc/hostname", elsewhere] {
        bench.agent_said(&format!("did s {path}\n")).await;
    }
    let observed = bench.routing.list(None).await;
    let observed: Vec<_> = observed.iter().map(|it| &*it.path).collect();
    assert_eq!(observed, ["out/b", elsewhere]);
}
