#![allow(clippy::unwrap_used)]

use std::borrow::Cow;
use std::path::Path;

use eisen_base::task;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::*;
use crate::extract::{Acp, Entry, Workspace};
use crate::model::ActivityKind;

struct Nowhere;

impl Workspace for Nowhere {
    fn root(&self) -> &Path {
        Path::new("/shop")
    }

    fn entry(&self, _: &Path) -> Option<Entry> {
        None
    }

    fn is_ignored(&self, _: &Path) -> bool {
        false
    }

    fn text(&self, _: &Path, _: usize) -> Option<String> {
        None
    }
}

/// Reads `began`, `ended`, `named ID`, `asks ID…` and `wrote PATH`; answers by `no ID`.
struct Words;

impl RecordReader for Words {
    fn call<'a>(
        &'a mut self,
        call: InstanceCall<'a>,
    ) -> BoxFuture<'a, Result<CallOutput, CallError>> {
        let mut answer = CallOutput::default();
        match call {
            InstanceCall::Read { block } => {
                answer.read = block.len();
                lines(block).map(content).for_each(|line| read(line, &mut answer.output));
            }
            InstanceCall::Sent { line } => read(line, &mut answer.output),
            InstanceCall::Deny { id, .. } => {
                Record::Line { body: format!("no {id}").as_bytes() }.write(&mut answer.output);
            }
            _ => {}
        }
        std::future::ready(Ok(answer)).boxed()
    }
}

fn read(line: &[u8], activities: &mut Vec<u8>) {
    let line = str::from_utf8(line).unwrap();
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let accesses = vec![(Cow::from("write"), Cow::from("src/cart.rs"))];
    let text = |text: &'static str| Cow::from(text);
    match word {
        "began" => Record::TurnBegan.write(activities),
        "ended" => {
            Record::TurnEnded { reason: text("end_turn"), body: text("") }.write(activities);
        }
        "named" => Record::Session { id: rest.into() }.write(activities),
        "wrote" => {
            Record::Touched { action: text("write"), path: rest.into(), call: text("") }
                .write(activities);
        }
        "asks" => rest.split(' ').for_each(|id| {
            let (title, command) = (text(""), text(""));
            Record::Ask { id: id.into(), title, accesses: accesses.clone(), command }
                .write(activities);
        }),
        _ => {}
    }
}

/// Lets a relay's part happen, with the task beside it.
async fn beside<T: Send>(
    session: Option<&str>,
    gated: bool,
    relay: impl FnOnce(&mut PluginExtractor) -> T + Send,
) -> T {
    let cwd = PathBuf::from("/shop");
    let session = session.map(str::to_owned);
    let subject = AgentInfo { name: "words".to_owned(), cwd: cwd.clone(), session, gated };
    let acp = Box::new(Acp::new(Arc::new(Nowhere), cwd).with_reasons());
    let concern = watch::channel(None).0;
    let (host, mut extractor, _news) = ExtractorHost::new(subject, Box::new(Words), acp, concern);
    let task = task::spawn(host.run());
    let came =
        std::thread::scope(|scope| scope.spawn(move || relay(&mut extractor)).join().unwrap());
    task.await.unwrap().unwrap();
    came
}

/// The activities of lines, which are the agent's unless they begin with `> `.
async fn activities(session: Option<&str>, lines: &[&str]) -> Vec<String> {
    let activities = beside(session, false, |extractor| {
        let mut activities = Vec::new();
        for line in lines {
            let (direction, line) = match line.strip_prefix("> ") {
                Some(line) => (Direction::ToAgent, line),
                None => (Direction::ToClient, *line),
            };
            extractor.observe(direction, line.as_bytes(), &mut activities);
        }
        extractor.end("it is over", &mut activities);
        activities
    });
    let of_interest = |Activity { session, kind }| {
        let kind = match kind {
            ActivityKind::TurnBegan => "began",
            ActivityKind::TurnEnded { .. } => "ended",
            ActivityKind::Touched { .. } => "touched",
            _ => return None,
        };
        Some(format!("{} {kind}", session.as_str()))
    };
    activities.await.into_iter().filter_map(of_interest).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_turn_is_of_the_session_that_the_agent_names_next() {
    let lines = ["> began", "named s1", "wrote a", "> began", "named s2", "ended", "ended"];
    assert_eq!(activities(None, &lines).await, ["s1 began", "s1 touched", "s1 ended"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_session_that_is_given_is_there_at_once() {
    let lines = ["> began", "wrote a", "ended"];
    assert_eq!(
        activities(Some("mine"), &lines).await,
        ["mine began", "mine touched", "mine ended"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_end_of_the_agent_ends_its_turn_behind_all_it_said() {
    let said = activities(Some("mine"), &["> began", "wrote a", "wrote b"]).await;
    assert_eq!(said, ["mine began", "mine touched", "mine touched", "mine ended"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_asked_for_is_refused_in_the_agents_words() {
    beside(None, true, |extractor| {
        assert!(matches!(extractor.gate(b"wrote a"), Gate::Pass));
        // Its client answers what passes, and the plugin may not see that it did.
        for id in 0..1000 {
            let line = format!("asks {}", id % 500 + 10);
            let Gate::Ask(ask) = extractor.gate(line.as_bytes()) else {
                panic!("it asks for something")
            };
            assert_eq!(ask.accesses[0].path, Path::new("/shop/src/cart.rs"));
        }
        let Gate::Ask(ask) = extractor.gate(b"asks 8") else { panic!("it asks for something") };
        assert!(extractor.awaits());
        assert_eq!(extractor.refuse(&ask, &Refusal::Cancelled).unwrap(), "no 8\n");
        let mut activities = Vec::new();
        extractor.observe(Direction::ToClient, b"ended", &mut activities);
        assert!(matches!(extractor.gate(b"ended"), Gate::Pass));
        assert!(!extractor.awaits());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_line_that_asks_for_two_things_is_refused_whole() {
    beside(None, true, |extractor| {
        let gate = extractor.gate(b"asks 1 2");
        let Gate::Ambiguous { replies, .. } = gate else { panic!("{gate:?}") };
        assert_eq!(replies, ["no 1\n", "no 2\n"]);
    })
    .await;
}
