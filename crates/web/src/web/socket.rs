//! `/ws` and `/acp`: the lines of the port, or of the gateway, both ways, one in a frame.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use async_tungstenite::tungstenite::protocol::CloseFrame;
use async_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use async_tungstenite::tungstenite::{Message, Utf8Bytes};
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::io::{AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf, split};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tokio_util::sync::CancellationToken;

use super::connection::WebConnection;
use super::credential::Credential;
use super::credentials::Credentials;
use super::guard::TOO_MANY_ATTEMPTS;
use super::served::Served;
use super::upgrade::{SocketReceiver, SocketSender, WebSocket};
use crate::line::LineReader;
use crate::serve::{Refused, ScopeOfToken};

/// How often a client is asked whether it is still there, and how long it may take to take a frame or
/// to say anything.
const PING: Duration = Duration::from_secs(30);
const DEADLINE: Duration = Duration::from_secs(90);

/// Bytes of a line of the port; the code graph of a large workspace has some.
pub(super) const LONGEST_LINE: usize = 256 << 20;

/// Opens a connection of the port for the holder of a credential.
pub(super) fn open(served: &Arc<Served>, credential: &Credential) -> Option<DuplexStream> {
    let scope_of = scope_of(Arc::clone(&served.credentials), credential.clone());
    served.gateway.open(scope_of, served.cancel.clone())
}

/// Finds what the token of a client's `auth` opens. A wrong one is a failed attempt, as it is elsewhere.
fn scope_of(credentials: Arc<Credentials>, credential: Credential) -> ScopeOfToken {
    Arc::new(move |token: &str| match credential.opened_by(token) {
        Some(opened) => Ok(opened),
        None if credentials.failed() => Err(Refused::new(429, TOO_MANY_ATTEMPTS)),
        None => Err(Refused::new(401, "wrong token")),
    })
}

/// Carries lines until either side ends, or the credential is revoked.
pub(super) async fn serve(
    socket: WebSocket,
    port: DuplexStream,
    revoked: CancellationToken,
    connection: WebConnection,
) {
    connection.becomes_socket();
    let (mut frames, from_client) = socket.split();
    let (from_port, to_port) = split(port);
    let why = tokio::select! {
        () = revoked.cancelled() => Some((CloseCode::Policy, "the credential was revoked")),
        why = forward(from_port, &mut frames) => why,
        why = take(from_client, to_port) => why,
    };
    if let Some((code, reason)) = why {
        let close = CloseFrame { code, reason: Utf8Bytes::from_static(reason) };
        let _ = timeout(PING, frames.send(Message::Close(Some(close)))).await;
    }
}

/// Why a connection is closed, for its client; None: it is gone.
type CloseReason = Option<(CloseCode, &'static str)>;

/// Sends the port's lines.
async fn forward(port: ReadHalf<DuplexStream>, frames: &mut SocketSender) -> CloseReason {
    let mut lines = LineReader::new(port, LONGEST_LINE);
    let mut pings = interval_at(Instant::now() + PING, PING);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let frame = tokio::select! {
            line = lines.next_whole() => match line {
                Ok(Some(line)) => Utf8Bytes::try_from(line).map(Message::Text).ok(),
                Ok(None) => return Some((CloseCode::Normal, "the team has ended this connection")),
                Err(_) => return Some((CloseCode::Error, "a line is too long")),
            },
            _ = pings.tick() => Some(Message::Ping(Bytes::new())),
        };
        let Some(frame) = frame else { continue };
        if !matches!(timeout(DEADLINE, frames.send(frame)).await, Ok(Ok(()))) {
            return None;
        }
    }
}

/// Takes the client's lines.
async fn take(mut frames: SocketReceiver, mut port: WriteHalf<DuplexStream>) -> CloseReason {
    loop {
        let text = match timeout(DEADLINE, frames.next()).await {
            Ok(Some(Ok(Message::Text(text)))) => text,
            Ok(Some(Ok(Message::Binary(_)))) => {
                return Some((CloseCode::Unsupported, "lines are text"));
            }
            // The next read sends the answer to a ping, and that to a close, behind which nothing comes.
            Ok(Some(Ok(_))) => continue,
            Ok(Some(Err(_)) | None) => return None,
            Err(_) => return Some((CloseCode::Away, "nothing came for too long")),
        };
        // A frame is one line: what JSON says stays the same.
        let line: Cow<'_, str> = if text.contains('\n') {
            Cow::Owned(text.replace('\n', " "))
        } else {
            Cow::Borrowed(&text)
        };
        let written = async {
            port.write_all(line.as_bytes()).await?;
            port.write_all(b"\n").await
        };
        if written.await.is_err() {
            // The port has ended; its last lines are on their way.
            return std::future::pending().await;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::model::WebScope;
    use crate::serve::OpenedOnWeb;

    #[test]
    fn wrong_tokens_are_failed_attempts_and_the_right_one_never_is() {
        let folder = tempfile::tempdir().unwrap();
        let open = Credentials::open("shop", folder.path().join("web.json"));
        let credentials = Arc::new(open.unwrap());
        let (token, _) = credentials.token(WebScope::Decide).unwrap();
        let credential = credentials.by_bearer(&token).unwrap();
        let scope_of = scope_of(Arc::clone(&credentials), credential.clone());
        let refusals: Vec<_> =
            (0..22).map(|at| scope_of(&format!("guess {at}")).unwrap_err().code).collect();
        assert_eq!(refusals, [&[401; 20][..], &[429; 2][..]].concat());
        assert_eq!(scope_of(&token).unwrap(), OpenedOnWeb::Scope(WebScope::Decide));
        // The attempts of all ways are counted together.
        assert!(credentials.failed());
        credential.revoked.cancel();
        assert_eq!(scope_of(&token).unwrap_err().code, 429);
    }
}
