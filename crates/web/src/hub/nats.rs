//! The connection with a server of NATS, which lasts over its absences.

use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event, ServerAddr};
use tokio::sync::watch;

use crate::model::NatsAccess;

/// How long a connection may take to be made, and how long is waited for it at first.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Messages that wait for the connection; past that, who sends waits.
const WAITING: usize = 32;

/// Messages of one subscription that wait to be read; more are dropped, which their numbers show.
const UNREAD: usize = 512;

/// A server that answers none of two pings is away.
const PING: Duration = Duration::from_secs(5);

/// The longest pause between two tries.
const PAUSE: Duration = Duration::from_secs(4);

#[derive(Debug, thiserror::Error)]
pub(super) enum NatsError {
    #[error("this is not an address of NATS")]
    Address,
    #[error("cannot use {file}: {why}")]
    Credentials { file: String, why: std::io::Error },
    #[error("{0}")]
    Connect(#[from] async_nats::ConnectError),
    #[error("{0}")]
    Subscribe(#[from] async_nats::SubscribeError),
}

/// A client, and whether it is connected.
pub(super) async fn connect(
    access: &NatsAccess,
    name: String,
    inbox: String,
) -> Result<(Client, watch::Receiver<bool>), NatsError> {
    let (state, connected) = watch::channel(false);
    let mut options = ConnectOptions::new()
        .name(name)
        .connection_timeout(TIMEOUT)
        .custom_inbox_prefix(inbox)
        .ping_interval(PING)
        .client_capacity(WAITING)
        .subscription_capacity(UNREAD)
        .retry_on_initial_connect()
        .reconnect_delay_callback(|tries| PAUSE.min(Duration::from_millis(100 << tries.min(6))))
        .event_callback(move |event| {
            let state = state.clone();
            async move {
                match event {
                    Event::Connected => drop(state.send_replace(true)),
                    Event::Disconnected | Event::Closed => drop(state.send_replace(false)),
                    Event::SlowConsumer(_) => tracing::warn!("messages of NATS were dropped"),
                    Event::ServerError(error) => tracing::warn!(%error, "NATS refuses something"),
                    _ => {}
                }
            }
        });
    if let Some(token) = &access.token {
        options = options.token(token.reveal().to_owned());
    }
    options = match access.login() {
        Some((name, Some(password))) => options.user_and_password(name, password),
        Some((token, None)) => options.token(token),
        None => options,
    };
    if let Some(file) = &access.credentials {
        let read = options.credentials_file(file).await;
        let wrong = |why| NatsError::Credentials { file: file.display().to_string(), why };
        options = read.map_err(wrong)?;
    }
    // It may have a password in it.
    let address = access.url.reveal().parse::<ServerAddr>().map_err(|_| NatsError::Address)?;
    let client = options.connect(address).await?;
    Ok((client, connected))
}
