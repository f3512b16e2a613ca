//! The known progress of a process's system call.

use tokio::process::{Child, Command};

use crate::capture::process_call::ProcessCall;
use crate::tests::eventually;

#[tokio::test]
async fn a_call_is_over_when_the_process_does_something_else() {
    let process = start("sh", &["-c", "while :; do :; done"]);
    let busy = process.id().unwrap();
    let look = |process, rings| ProcessCall::of(process, |_| rings);
    let runs = async || matches!(look(busy, false), ProcessCall::Runs(_));
    eventually("a busy process runs", runs).await;
    let mut waiting = start("sleep", &["600"]);
    let id = waiting.id().unwrap();
    eventually("it is in a call", async || look(id, true) == ProcessCall::Inside).await;
    eventually("it is in another", async || look(id, false) == ProcessCall::None).await;
    waiting.kill().await.unwrap();
    assert_eq!(look(id, true), ProcessCall::None);
}

fn start(program: &str, arguments: &[&str]) -> Child {
    Command::new(program).args(arguments).kill_on_drop(true).spawn().unwrap()
}
