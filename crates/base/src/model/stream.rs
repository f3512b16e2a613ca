//! Streams: where events of the journal are delivered, which of them, and how that goes.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::percent_decode_str;

use super::named::named;
use super::secret::SecretText;
use super::time::TimestampMs;

/// A stream as it is configured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamSpec {
    /// The name of the stream, unique in the team.
    pub name: String,
    /// The place to deliver to.
    pub target: StreamTarget,
    /// The events that are delivered.
    pub scope: StreamScope,
    /// A new stream begins with the journal's first event.
    pub from_start: bool,
    /// Says each minute that it delivers.
    pub canary: bool,
}

/// Where a stream delivers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StreamTarget {
    /// Files on this machine.
    File(FileTarget),
    /// A web address.
    Webhook(WebhookTarget),
    /// A server of NATS.
    Nats(NatsTarget),
    /// A collector of OpenTelemetry, by OTLP over HTTP.
    Otlp(OtlpTarget),
}

/// Files of lines, the older ones under numbered names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileTarget {
    /// Absolute.
    pub path: PathBuf,
    /// The size that a file does not pass by another batch: it is put aside before.
    pub max_bytes: u64,
    /// Older files that stay.
    pub keep: u32,
}

impl FileTarget {
    /// Whether both would write one file: the stream's own, or one that it put aside (`PATH.1`, …).
    pub fn collides(&self, other: &Self) -> bool {
        let is_put_aside = |path: &Path, of: &Path| {
            let rest = path.as_os_str().as_bytes().strip_prefix(of.as_os_str().as_bytes());
            let number = rest.and_then(|rest| rest.strip_prefix(b"."));
            number.is_some_and(|it| !it.is_empty() && it.iter().all(u8::is_ascii_digit))
        };
        let (own, other) = (&self.path, &other.path);
        own == other || is_put_aside(own, other) || is_put_aside(other, own)
    }
}

/// A web address that batches are posted to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WebhookTarget {
    /// The address, which may have a key in it.
    pub url: SecretText,
    /// Signs requests, in base64; None: they are not signed.
    pub key: Option<SecretText>,
    /// Further headers of each request, by name.
    pub headers: BTreeMap<String, SecretText>,
    /// Events of one request.
    pub batch: usize,
    /// The time for one request with its answer.
    pub timeout: Duration,
}

/// Subjects of NATS, whose messages `JetStream` keeps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NatsTarget {
    /// The server, with the credentials for it.
    pub access: NatsAccess,
    /// The beginning of subjects; None: by the team.
    pub subject: Option<String>,
    /// The stream of `JetStream` that is made if it is not there; None: one takes the subjects.
    pub stream: Option<String>,
    /// The beginning of the subjects of answers; None: `_INBOX`.
    pub inbox: Option<String>,
}

/// A server of NATS, and by what it lets in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NatsAccess {
    /// The address, which may have a password in it.
    pub url: SecretText,
    /// A token that authenticates; None: `credentials` or the address do, or nothing does.
    pub token: Option<SecretText>,
    /// A file of credentials.
    pub credentials: Option<PathBuf>,
}

impl NatsAccess {
    /// The name in its address and the password, decoded. A name alone is a token.
    pub fn login(&self) -> Option<(String, Option<String>)> {
        let url = self.url.reveal();
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let (login, _) = rest.split(['/', '?']).next()?.rsplit_once('@')?;
        let decoded = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
        Some(match login.split_once(':') {
            Some((name, password)) => (decoded(name), Some(decoded(password))),
            None => (decoded(login), None),
        })
    }
}

/// A collector of OpenTelemetry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OtlpTarget {
    /// Its base address.
    pub url: SecretText,
    /// Further headers of each request, by name.
    pub headers: BTreeMap<String, SecretText>,
}

/// Which events a stream has; an empty list has all.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct StreamScope {
    /// Ids of agents; with any, events without an agent are left out.
    pub agents: Vec<String>,
    /// Ids of the journal or of the wire, or `AGENT/SESSION`.
    pub sessions: Vec<String>,
    /// Whole types of events, or the part before the dot.
    pub types: Vec<String>,
}

named! {
    /// Where a stream delivers to.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum StreamKind {
        File = "file",
        Webhook = "webhook",
        Nats = "nats",
        Otlp = "otlp",
    }
}

named! {
    /// How a stream's deliveries go.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum StreamState {
        Ok = "ok",
        Degraded = "degraded",
        Unavailable = "unavailable",
        /// The stream is in the configuration, and was detached.
        Detached = "detached",
    }
}

/// How a stream stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamReport {
    /// The name by the configuration or by `attach_stream`.
    pub name: Arc<str>,
    /// The kind of its target.
    pub kind: StreamKind,
    /// How its deliveries go.
    pub state: StreamState,
    /// Why the last delivery failed; None: it succeeded.
    pub reason: Option<Arc<str>>,
    /// Failures in a row.
    pub failures: u32,
    /// Events since the team began: delivered, removed before they were, and refused for good.
    pub delivered: u64,
    /// Events since the team began that left the journal before they were delivered.
    pub lost: u64,
    /// Events since the team began that the receiver refused for good.
    pub dead: u64,
    /// The number in the journal up to which it delivered; None: not known yet.
    pub position: Option<u64>,
    /// The time of this report.
    pub timestamp_ms: TimestampMs,
}

/// A session that was delivered to a stream once more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamReplay {
    /// The id by which the receiver knows the events of this replay.
    pub replay_id: Arc<str>,
    /// Its id in the journal.
    pub session: String,
    /// Events that were delivered.
    pub events: u64,
    /// Events that the receiver refused for good.
    pub dead: u64,
}

impl StreamTarget {
    /// The kind of this target.
    pub fn kind(&self) -> StreamKind {
        match self {
            Self::File(_) => StreamKind::File,
            Self::Webhook(_) => StreamKind::Webhook,
            Self::Nats(_) => StreamKind::Nats,
            Self::Otlp(_) => StreamKind::Otlp,
        }
    }
}

impl StreamSpec {
    /// Describes it in one line, without what may be secret.
    pub fn describe(&self) -> String {
        let place = match &self.target {
            StreamTarget::File(file) => format!(" {}", file.path.display()),
            StreamTarget::Webhook(_) | StreamTarget::Nats(_) | StreamTarget::Otlp(_) => {
                String::new()
            }
        };
        let StreamScope { agents, sessions, types } = &self.scope;
        let lists = [("agents", agents), ("sessions", sessions), ("types", types)];
        let lists = lists.into_iter().filter(|(_, list)| !list.is_empty());
        let scope: Vec<_> =
            lists.map(|(name, list)| format!("{name} {}", list.join(", "))).collect();
        let scope = if scope.is_empty() { "all".to_owned() } else { scope.join("; ") };
        format!("{}: {}{place}: {scope}", self.name, self.target.kind().as_str())
    }

    /// Its report before anything was delivered.
    pub fn report(&self, state: StreamState, timestamp_ms: TimestampMs) -> StreamReport {
        StreamReport {
            name: self.name.as_str().into(),
            kind: self.target.kind(),
            state,
            reason: None,
            failures: 0,
            delivered: 0,
            lost: 0,
            dead: 0,
            position: None,
            timestamp_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_login_of_an_address_is_decoded_and_a_name_alone_is_a_token() {
        let login = |url: &str| {
            let url = SecretText::new(url.to_owned());
            NatsAccess { url, token: None, credentials: None }.login()
        };
        let pair = |name: &str, password: &str| Some((name.to_owned(), Some(password.to_owned())));
        assert_eq!(login("nats://ada:p%2Fw%3A1@host:4222"), pair("ada", "p/w:1"));
        assert_eq!(login("tls://a@b:c@host/x@y"), pair("a@b", "c"));
        assert_eq!(login("nats://s3cret@host"), Some(("s3cret".to_owned(), None)));
        assert_eq!(login("nats://host:4222/a:b@c"), None);
    }
}
