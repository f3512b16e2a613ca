#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};

use eisen_plugin::Record;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncBufReadExt, BufReader, DuplexStream, duplex};

use super::*;

const OPENS: &[u8] = b"{\"id\":1,\"method\":\"session/new\",\"params\":{\"cwd\":\"/shop\"}}\n";

/// An instance that answers prompts as they say, and records its calls.
struct Fake {
    outcomes: VecDeque<Result<(), CallError>>,
    asked: Arc<Mutex<Vec<&'static str>>>,
}

impl RecordReader for Fake {
    fn call<'a>(
        &'a mut self,
        call: InstanceCall<'a>,
    ) -> BoxFuture<'a, Result<CallOutput, CallError>> {
        let reported = match call {
            InstanceCall::Start { .. } => {
                Ok(self.reported("start", &Record::Session { id: "s".into() }))
            }
            InstanceCall::Prompt { .. } => {
                let reported = self.reported("prompt", &Record::Line { body: b"do it" });
                self.outcomes.pop_front().unwrap().map(|()| reported)
            }
            _ => Ok(Vec::new()),
        };
        std::future::ready(
            reported.map(|reported| CallOutput { output: reported, ..CallOutput::default() }),
        )
        .boxed()
    }
}

impl Fake {
    fn reported(&self, asked: &'static str, record: &Record<'_>) -> Vec<u8> {
        self.asked.lock().unwrap().push(asked);
        let mut reported = Vec::new();
        record.write(&mut reported);
        reported
    }
}

/// The result of one prompt.
struct Came {
    asked: Vec<&'static str>,
    to_agent: Vec<String>,
    /// The error that the client was answered with.
    refused: Vec<String>,
}

async fn prompted(outcomes: impl Into<VecDeque<Result<(), CallError>>>) -> Came {
    let asked = Arc::<Mutex<Vec<_>>>::default();
    let fake = Fake { outcomes: outcomes.into(), asked: Arc::clone(&asked) };
    let concern = watch::channel(None).0;
    let conversation = Conversation::default();
    let translator = Translator::new("words".into(), None, conversation, Box::new(fake), concern);

    let (mut from_agent, agents) = duplex(4096);
    let (to_agent, agent) = duplex(4096);
    let (mut client, relay) = duplex(4096);
    let relay = tokio::io::split(relay);
    let run = translator.run((agents, to_agent), relay, |why| panic!("{why}"));
    let plays = async {
        client.write_all(OPENS).await.unwrap();
        let mut client = BufReader::new(client);
        let opened = line(&mut client).await;
        assert!(opened.contains(r#""sessionId":"s""#), "{opened}");
        let prompt = r#"{"id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"x"}]}}"#;
        client.write_all(format!("{prompt}\n").as_bytes()).await.unwrap();
        client.shutdown().await.unwrap();
        // It gets all that it is sent before its input ends.
        let mut sent = Vec::new();
        let mut agent = BufReader::new(agent).lines();
        while let Some(line) = agent.next_line().await.unwrap() {
            sent.push(line);
        }
        from_agent.shutdown().await.unwrap();
        let mut refused = Vec::new();
        let mut lines = client.lines();
        while let Some(line) = lines.next_line().await.unwrap() {
            let line: serde_json::Value = serde_json::from_str(&line).unwrap();
            refused.extend(line["error"]["message"].as_str().map(str::to_owned));
        }
        (sent, refused)
    };
    let ((), (to_agent, refused)) = tokio::join!(run, plays);
    let asked = asked.lock().unwrap().clone();
    Came { asked, to_agent, refused }
}

async fn line(from: &mut BufReader<DuplexStream>) -> String {
    let mut line = String::new();
    from.read_line(&mut line).await.unwrap();
    line
}

fn died() -> Result<(), CallError> {
    Err(CallError::Died("it died".to_owned()))
}

#[tokio::test]
async fn what_died_of_something_else_is_asked_again_once() {
    let came = prompted([died(), Ok(())]).await;
    assert_eq!(came.asked, ["start", "prompt", "start", "prompt"]);
    assert_eq!((came.to_agent, came.refused), (vec!["do it".to_owned()], vec![]));

    let came = prompted([died(), died()]).await;
    assert_eq!(came.asked, ["start", "prompt", "start", "prompt"]);
    let refused = vec!["the plugin can't prompt: it died".to_owned()];
    assert_eq!((came.to_agent, came.refused), (vec![], refused));
}

/// A second attempt would take as long.
#[tokio::test]
async fn what_hung_is_not_asked_again() {
    let came = prompted([Err(CallError::Lost("it said nothing for 10 s".to_owned()))]).await;
    assert_eq!(came.asked, ["start", "prompt"]);
    let refused = vec!["the plugin can't prompt: it said nothing for 10 s".to_owned()];
    assert_eq!((came.to_agent, came.refused), (vec![], refused));
}
