//! An agent that is OpenCode's own server: speaks the Agent Client Protocol with a client, and requests and
//! events with the server.

mod api;
mod bridge;
mod client;
mod events;
mod rules;
mod session;
mod shapes;
mod show;
mod sse;
mod tasks;
#[cfg(test)]
mod tests;

use std::time::Duration;

use eisen_base::task;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::timeout;

use self::api::{Api, News};
use self::bridge::{Bridge, BridgeStep};
use self::tasks::TaskOutcome;
use super::{LAST_WORDS, RemoteError};
use crate::line::{LineReader, MAX_LINE};

/// Events that wait to be read: each is bounded, so their number bounds what they take.
const MOST_NEWS: usize = 16;
/// Until something is read that no event has told.
const A_WHILE: Duration = Duration::from_secs(1);

/// OpenCode's server.
#[derive(Debug)]
pub(super) struct Server {
    url: String,
    api: Api,
}

impl Server {
    pub(super) fn new(url: &str, http: reqwest::Client) -> Self {
        Self { url: url.to_owned(), api: Api::new(http, url) }
    }

    /// Is the agent until `input` ends, which is the orderly end, or the server is gone.
    pub(super) async fn connect(
        self,
        input: impl AsyncRead + Unpin,
        mut output: impl AsyncWrite + Unpin,
    ) -> Result<(), RemoteError> {
        let Self { url, api } = self;
        let version = api.health().await;
        let version = version
            .map_err(|why| RemoteError::Connect { url: url.clone(), why: why.to_string() })?;
        let mut bridge = Bridge::new(version);
        let mut lines = LineReader::new(input, MAX_LINE);
        let (done_to, mut done) = mpsc::unbounded_channel::<TaskOutcome>();
        let (news_to, mut news) = mpsc::channel::<(String, News)>(MOST_NEWS);
        loop {
            let steps = tokio::select! {
                biased;
                Some(done) = done.recv() => bridge.done(done),
                line = lines.next_whole() => match line? {
                    Some(line) => bridge.client(&line),
                    None => break,
                },
                Some((cwd, what)) = news.recv() => match what {
                    News::Event(data) => bridge.event(&data),
                    News::Connected => bridge.connected(&cwd),
                    News::Lost => {
                        bridge.lost(&cwd);
                        Vec::new()
                    }
                    News::LeftOut => {
                        bridge.lost(&cwd);
                        bridge.missed(&cwd)
                    }
                    News::Gone(why) => return Err(RemoteError::Ended { url, why }),
                },
            };
            for step in steps {
                match step {
                    BridgeStep::Say(message) => {
                        let mut line = message.to_string().into_bytes();
                        line.push(b'\n');
                        output.write_all(&line).await?;
                    }
                    BridgeStep::Do(task) => {
                        let (api, to) = (api.clone(), done_to.clone());
                        task::spawn(async move { to.send(api.perform(task).await) });
                    }
                    BridgeStep::Follow(cwd) => {
                        task::spawn(api.clone().follow(cwd, news_to.clone()));
                    }
                }
            }
            output.flush().await?;
        }
        // Nobody waits for their answers, or decides what they ask.
        let aborts = async {
            for (session, cwd) in bridge.working() {
                let _ = api.abort(&session, &cwd).await;
            }
        };
        let _ = timeout(LAST_WORDS, aborts).await;
        Ok(())
    }
}
