//! The two ends, both made of the protocol's own library. Messages to an end are queued; the test takes
//! and answers them.

use agent_client_protocol::role::HasPeer;
use agent_client_protocol::v1::schema::{
    AgentNotification, AgentRequest, ClientNotification, ClientRequest,
};
use agent_client_protocol::v1::{ConnectionTo, Responder, SentRequest};
use agent_client_protocol::{
    Agent, Client, Error, JsonRpcMessage, JsonRpcNotification, JsonRpcRequest, Role,
};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::methods::Notice;
use super::numbered::numbered;
use crate::harness::PATIENCE;

pub(super) type ClientEnd = End<Agent, AgentRequest, AgentNotification>;
pub(super) type AgentEnd = End<Client, ClientRequest, ClientNotification>;

/// An end that speaks to a `Peer`, whose requests and notifications are these.
pub(super) struct End<Peer: Role, Asked, Notified> {
    pub(super) peer: ConnectionTo<Peer>,
    requests: mpsc::UnboundedReceiver<(Asked, Responder)>,
    notified: mpsc::UnboundedReceiver<Notified>,
    connection: JoinHandle<()>,
}

macro_rules! end {
    ($name:ident, $role:ident, $end:ident, $asked:ident, $notified:ident) => {
        pub(super) async fn $name(
            hears: impl AsyncRead + Unpin + Send + 'static,
            says: impl AsyncWrite + Unpin + Send + 'static,
        ) -> $end {
            let (send_asked, requests) = mpsc::unbounded_channel();
            let (send_notified, notified) = mpsc::unbounded_channel();
            let (send_peer, peer) = oneshot::channel();
            let end = $role
                .v1()
                .on_receive_request(
                    async move |asked: $asked, responder, _| {
                        let _ = send_asked.send((asked, responder));
                        Ok(())
                    },
                    agent_client_protocol::on_receive_request!(),
                )
                .on_receive_notification(
                    async move |notified: $notified, _| {
                        let _ = send_notified.send(notified);
                        Ok(())
                    },
                    agent_client_protocol::on_receive_notification!(),
                );
            let connection = tokio::spawn(async move {
                let talk = end.connect_with(numbered(hears, says), async |peer| {
                    let _ = send_peer.send(peer);
                    std::future::pending().await
                });
                let _: Result<(), Error> = talk.await;
            });
            End { peer: soon(peer).await.unwrap(), requests, notified, connection }
        }
    };
}

end!(client, Client, ClientEnd, AgentRequest, AgentNotification);
end!(agent, Agent, AgentEnd, ClientRequest, ClientNotification);

impl<Peer, Asked, Notified> End<Peer, Asked, Notified>
where
    Peer: Role + HasPeer<Peer>,
    Asked: JsonRpcRequest<Response = Value>,
    Notified: JsonRpcNotification,
{
    /// Sends a request as it stands in the table.
    pub(super) fn ask<Q: JsonRpcRequest<Response = Value>>(
        &self,
        name: &str,
        params: &Value,
    ) -> SentRequest<Value> {
        self.peer.send_request(Q::parse_message(name, params).unwrap())
    }

    pub(super) fn notify<N: JsonRpcNotification>(&self, notice: &Notice) {
        let message = N::parse_message(notice.name, &notice.params).unwrap();
        self.peer.send_notification(message).unwrap();
    }

    /// Waits for a request, which must be this one.
    pub(super) async fn asked(&mut self, name: &str, params: &Value) -> Responder {
        let (asked, responder) = self.any_asked().await;
        assert_eq!(asked, (name.to_owned(), params.clone()));
        responder
    }

    /// Waits for a request; returns its method and params.
    pub(super) async fn any_asked(&mut self) -> ((String, Value), Responder) {
        let (asked, responder) = soon(self.requests.recv()).await.unwrap();
        (said(&asked), responder)
    }

    /// Waits for a notification; returns its method and params.
    pub(super) async fn notified(&mut self) -> (String, Value) {
        said(&soon(self.notified.recv()).await.unwrap())
    }

    /// The notifications that came and were not taken.
    pub(super) fn notified_by_now(&mut self) -> Vec<(String, Value)> {
        std::iter::from_fn(|| self.notified.try_recv().ok())
            .map(|notified| said(&notified))
            .collect()
    }

    /// Waits until it sees that its peer says no more.
    pub(super) async fn hears_the_end(&self) {
        soon(self.peer.incoming_closed()).await;
    }

    /// Is gone, in the middle of whatever it does.
    pub(super) async fn vanish(self) {
        self.connection.abort();
        let _ = self.connection.await;
    }
}

/// Waits for what comes of a request.
pub(super) async fn answer(request: SentRequest<Value>) -> Result<Value, Error> {
    soon(request.block_task()).await
}

/// Never waits in vain for long.
pub(super) async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.expect("nothing came any more, and no end")
}

fn said(message: &impl JsonRpcMessage) -> (String, Value) {
    message.to_untyped_message().unwrap().into_parts()
}
