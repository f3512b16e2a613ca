#![allow(clippy::unwrap_used)]

use super::*;
use eisen_base::task;

#[tokio::test]
async fn the_agents_end_ends_running_and_queued_prompts() {
    let mut scene = open(settings()).await;
    let running = scene.prompt("running", Urgency::Normal);
    scene.agent.prompted().await;
    let queued = scene.prompt("queued", Urgency::Normal);
    let call = task::spawn({
        let host = scene.host.clone();
        async move { host.initialize().await }
    });
    scene.agent.expect("initialize").await;
    drop(scene.agent);
    let gone = "the agent ended: it closed its output";
    assert_eq!(running.await.unwrap().unwrap_err().to_string(), gone);
    assert_eq!(queued.await.unwrap().unwrap_err().to_string(), gone);
    assert_eq!(call.await.unwrap().unwrap_err().to_string(), gone);
    scene.task.await.unwrap();
    assert_eq!(scene.host.new_session().await.unwrap_err().to_string(), gone);
}

#[tokio::test]
async fn what_the_agent_said_last_is_heard() {
    let mut scene = open(settings()).await;
    let prompt = scene.prompt("p", Urgency::Normal);
    let (request, _) = scene.agent.prompted().await;
    scene.agent.say("s", "bye").await;
    let end =
        json!({ "jsonrpc": "2.0", "id": request["id"], "result": { "stopReason": "end_turn" } });
    // No newline at the end.
    scene.agent.writer.write_all(end.to_string().as_bytes()).await.unwrap();
    drop(scene.agent);
    assert_eq!(prompt.await.unwrap().unwrap().text, "bye");
}

#[tokio::test]
async fn a_stopped_host_answers_everyone() {
    let mut scene = open(settings()).await;
    let running = scene.prompt("running", Urgency::Normal);
    scene.agent.prompted().await;
    scene.cancel.cancel();
    scene.task.await.unwrap();
    let gone = "the agent ended: it was stopped";
    assert_eq!(running.await.unwrap().unwrap_err().to_string(), gone);
    assert_eq!(scene.host.cancel(None).await.unwrap_err().to_string(), gone);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_closed_its_input_is_heard_for_a_while() {
    let (near, mut output) = tokio::io::duplex(4096);
    let (closed, other_end) = tokio::io::duplex(64);
    drop(other_end);
    let cancel = CancellationToken::new();
    let (host, run) = HostHandle::spawn_with(
        settings(),
        Arc::new(shells::Shells),
        Arc::default(),
        near,
        closed,
        cancel,
    );
    let run = task::spawn(run);
    let (done, ()) = tokio::join!(host.initialize(), async {
        // It finds out that nothing can be written, and listens on.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let answer = json!({ "id": 0, "result": { "protocolVersion": 1 } });
        output.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
    });
    done.unwrap();
    let gone = "the agent ended: it closed its input";
    assert_eq!(host.new_session().await.unwrap_err().to_string(), gone);
    // Its output stays open, and it ends all the same.
    run.await.unwrap();
    drop(output);
}
