//! Publishes lines to NATS `JetStream`, each with the id of its event, so that what comes twice is stored
//! once, and waits until they are stored. Blocks its thread.

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::jetstream::context::{Context, ContextBuilder, PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::Config;
use async_nats::{Client, ConnectOptions, ServerAddr};
use futures_util::future::join_all;
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::batch::{LineFields, StreamLine};
use super::health::Failure;
use crate::model::{NatsAccess, NatsTarget};

/// Lines that are published before their acknowledgements are waited for.
const MOST: usize = 128;

/// How long a connection, an acknowledgement, and all of a batch may take.
const TIMEOUT: Duration = Duration::from_secs(5);
const WHOLE: Duration = Duration::from_secs(30);

/// For how long what comes twice is stored once, in a stream that is made here: as long as a server may be
/// away whose acknowledgements were lost.
const TWICE: Duration = Duration::from_hours(1);

/// The agent's part in the subject of an event of no agent.
const NOBODY: &str = "_";

#[derive(Debug)]
pub(super) struct Nats {
    target: NatsTarget,
    /// The beginning of each subject.
    subject: String,
    name: String,
    /// None: not connected, or a delivery failed.
    connection: Option<(Client, Context)>,
}

impl Nats {
    pub(super) fn new(target: NatsTarget, team: &str, stream: &str) -> Self {
        Self {
            subject: target.subject.clone().unwrap_or_else(|| default_subject(team)),
            target,
            name: format!("eisen-core {team} {stream}"),
            connection: None,
        }
    }

    pub(super) fn most() -> usize {
        MOST
    }

    pub(super) fn deliver(&mut self, lines: &[StreamLine]) -> Result<(), Failure> {
        let delivered = Handle::current().block_on(async {
            let delivered = timeout(WHOLE, self.publish(lines)).await;
            delivered.unwrap_or_else(|_| Err(Failure::new("NATS took too long")))
        });
        if delivered.is_err() {
            // What it holds back is not published later.
            self.connection = None;
        }
        delivered
    }

    async fn publish(&mut self, lines: &[StreamLine]) -> Result<(), Failure> {
        let connected = match self.connection.take() {
            Some(connected) => connected,
            None => self.connect().await?,
        };
        let (_, context) = self.connection.insert(connected);
        // The lines of one session one after the other, several sessions at once.
        let mut by_session = BTreeMap::<Option<String>, Vec<_>>::new();
        for line in lines {
            let fields = line.fields();
            let session = fields.session_id.as_deref().map(str::to_owned);
            by_session.entry(session).or_default().push((subject(&self.subject, &fields), line));
        }
        let context = &*context;
        let publish = async |of_one: Vec<(String, &StreamLine)>| {
            for (subject, line) in of_one {
                publish(context, subject, line).await?;
            }
            Ok(())
        };
        join_all(by_session.into_values().map(publish)).await.into_iter().collect()
    }

    async fn connect(&self) -> Result<(Client, Context), Failure> {
        let NatsTarget { access, stream, inbox, .. } = &self.target;
        let NatsAccess { url, token, credentials } = access;
        let mut options = ConnectOptions::new().name(&self.name).connection_timeout(TIMEOUT);
        // This stream connects anew itself.
        options = options.max_reconnects(1);
        if let Some(inbox) = inbox {
            options = options.custom_inbox_prefix(inbox);
        }
        if let Some(token) = token {
            options = options.token(token.reveal().to_owned());
        }
        options = match access.login() {
            Some((name, Some(password))) => options.user_and_password(name, password),
            Some((token, None)) => options.token(token),
            None => options,
        };
        if let Some(file) = credentials {
            let read = options.credentials_file(file).await;
            let wrong = |error| Failure::new(format!("cannot use {}: {error}", file.display()));
            options = read.map_err(wrong)?;
        }
        let address = url.reveal().parse::<ServerAddr>();
        // It may have a password.
        let address = address.map_err(|_| Failure::new("this is not an address of NATS"))?;
        let client = options.connect(address).await.map_err(|error| Failure::new(told(&error)))?;
        let context = ContextBuilder::new().timeout(TIMEOUT).build(client.clone());
        if let Some(name) = stream {
            let subjects = vec![format!("{}.>", self.subject)];
            let config = Config {
                name: name.clone(),
                subjects,
                duplicate_window: TWICE,
                ..Config::default()
            };
            let made = context.get_or_create_stream(config).await;
            made.map_err(|error| {
                Failure::new(format!("cannot make the stream {name}: {}", told(&error)))
            })?;
        }
        Ok((client, context))
    }
}

async fn publish(context: &Context, subject: String, line: &StreamLine) -> Result<(), Failure> {
    let message = PublishMessage::build().message_id(&line.id);
    let message = message.payload(line.json.clone().into());
    let sent = async { context.send_publish(subject.clone(), message).await?.await };
    sent.await.map(drop).map_err(|error| refused(&subject, &error))
}

fn refused(subject: &str, error: &PublishError) -> Failure {
    let why = match error.kind() {
        PublishErrorKind::StreamNotFound => {
            format!("no stream of JetStream takes `{subject}`: make one, or set `jetstream`")
        }
        _ => told(error),
    };
    let is_refusal = error.kind() == PublishErrorKind::MaxPayloadExceeded
        || why.contains("message size exceeds maximum");
    Failure { is_refusal, ..Failure::new(why) }
}

/// An error with its cause.
fn told(error: &dyn std::error::Error) -> String {
    let text = error.to_string();
    match error.source().map(ToString::to_string) {
        Some(cause) if !text.contains(&cause) => format!("{text}: {cause}"),
        _ => text,
    }
}

fn default_subject(team: &str) -> String {
    format!("eisen.{}", team.replace('.', "_"))
}

/// The subject of a line: the stream's, the agent, and the type.
fn subject(prefix: &str, fields: &LineFields<'_>) -> String {
    let agent = fields.agent_id.as_deref().unwrap_or(NOBODY);
    // One token, without wildcards.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let agent: String = agent.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let kind: String =
        fields.kind.chars().map(|c| if is_plain(c) || c == '.' { c } else { '_' }).collect();
    format!("{prefix}.{agent}.{kind}")
}
