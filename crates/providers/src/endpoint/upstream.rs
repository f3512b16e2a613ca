//! The client towards providers: HTTP/1.1, by TLS where the address says so, and HTTP/2 where a provider speaks nothing
//! else. It follows no redirects, knows no proxies, and adds no headers.

use std::error::Error;
use std::iter::successors;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use tokio::time::timeout;
use tokio_rustls::rustls::{self, AlertDescription, ClientConfig};
use tower_service::Service as _;

use super::EndpointError;
use super::bodies::RequestBody;
use super::connection::ProviderConnection;
use super::pool::{ConnectionPlace, ConnectionPool};
use super::provider_body::ProviderBody;
use super::shapes::OwnAnswer;
use super::tls;
use crate::counting::CallEnd;

type BoxError = Box<dyn Error + Send + Sync>;

/// How long TCP may take to connect, a whole connection with TLS, and an answer. Providers think for minutes; agents wait
/// less.
const CONNECT_TCP: Duration = Duration::from_secs(15);
const CONNECT: Duration = Duration::from_secs(30);
const HEAD: Duration = Duration::from_secs(30 * 60);

/// The client.
pub(super) struct Upstream {
    pool: Arc<ConnectionPool>,
    http1: HttpsConnector<HttpConnector>,
    http2: HttpsConnector<HttpConnector>,
}

/// A call without an answer.
pub(super) struct NoAnswer {
    pub(super) answer: OwnAnswer,
    pub(super) end: CallEnd,
}

impl Upstream {
    pub(super) fn new() -> Result<Self, EndpointError> {
        Ok(Self::by(&tls::config()?))
    }

    fn by(tls: &ClientConfig) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TCP));
        tcp.set_keepalive(Some(Duration::from_secs(60)));
        let by = |version: &[u8]| {
            let mut tls = tls.clone();
            tls.alpn_protocols = vec![version.to_vec()];
            HttpsConnector::from((tcp.clone(), tls))
        };
        Self { pool: Arc::default(), http1: by(b"http/1.1"), http2: by(b"h2") }
    }

    /// Sends a request once, and waits for the head of its answer.
    pub(super) async fn send(
        &self,
        request: Request<RequestBody>,
    ) -> Result<Response<ProviderBody>, NoAnswer> {
        let Ok(answer) = timeout(HEAD, self.try_send(request)).await else {
            let why = "eisen-core: the provider did not answer within 30 minutes";
            return Err(NoAnswer { answer: OwnAnswer::Away(why), end: CallEnd::Unanswered });
        };
        answer
    }

    async fn try_send(
        &self,
        mut request: Request<RequestBody>,
    ) -> Result<Response<ProviderBody>, NoAnswer> {
        let to = request.uri().clone();
        let place = ConnectionPlace::of(&self.pool, &to);
        loop {
            let (mut connection, is_kept) = match place.take() {
                Some(kept) => (kept, true),
                None => (self.connect(&to).await.map_err(|error| not_sent(&*error))?, false),
            };
            if request.body().is_passing() {
                connection.detach();
            }
            match connection.send(request).await {
                Ok(answer) => {
                    return Ok(answer.map(|body| ProviderBody::new(body, connection, place)));
                }
                Err(mut error) => match error.take_message() {
                    // The provider had closed it meanwhile.
                    Some(again) if is_kept => request = again,
                    Some(_) => return Err(not_sent(&error.into_error())),
                    None => return Err(not_answered(&error.into_error())),
                },
            }
            *request.uri_mut() = to.clone();
        }
    }

    /// Connects to a provider. HTTP/2 would put all calls of a provider on one connection: those past its number of
    /// streams would wait for whole answers, and all would break together. So it is spoken only where HTTP/1.1 is
    /// refused, and there too a call takes a connection for itself.
    async fn connect(&self, to: &Uri) -> Result<ProviderConnection, BoxError> {
        let connecting = async {
            let stream = match self.http1.clone().call(to.clone()).await {
                Err(error) if speaks_another_version(&*error) => {
                    self.http2.clone().call(to.clone()).await?
                }
                connected => connected?,
            };
            Ok(ProviderConnection::begin(stream).await?)
        };
        timeout(CONNECT, connecting).await?
    }
}

/// A call of which nothing was sent.
fn not_sent(error: &(dyn Error + 'static)) -> NoAnswer {
    let texts = successors(Some(error), |error| (*error).source());
    let texts: Vec<_> = texts.map(ToString::to_string).collect();
    tracing::debug!(why = texts.last(), "a provider can't be reached");
    let is_distrusted = texts.iter().any(|text| text.contains("invalid peer certificate"));
    let why = if is_distrusted {
        "eisen-core: the provider's certificate is not trusted"
    } else {
        "eisen-core: the provider can't be reached"
    };
    NoAnswer { answer: OwnAnswer::Away(why), end: CallEnd::Unsent }
}

fn not_answered(error: &hyper::Error) -> NoAnswer {
    tracing::debug!(%error, "a provider did not answer");
    let why = "eisen-core: the connection to the provider ended before an answer";
    NoAnswer { answer: OwnAnswer::Away(why), end: CallEnd::Unanswered }
}

/// Whether a server refused the only version of HTTP that it was offered.
fn speaks_another_version(error: &(dyn Error + 'static)) -> bool {
    let refused = rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol);
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref() == Some(&refused) {
            return true;
        }
        // An `io::Error` does not count what it wraps as its source.
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        cause = inner.map(|inner| inner as &(dyn Error + 'static)).or_else(|| error.source());
    }
    false
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use eisen_base::task;
    use std::convert::Infallible;
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;

    use bytes::Bytes;
    use http::Version;
    use http_body_util::{BodyExt as _, Full};
    use hyper::body::Incoming;
    use hyper::server::conn::{http1, http2};
    use hyper::service::service_fn;
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::crypto::aws_lc_rs;
    use tokio_rustls::rustls::pki_types::PrivateKeyDer;
    use tokio_rustls::rustls::{RootCertStore, ServerConfig};

    use super::*;

    /// Answers with its request's body, by the versions that it speaks.
    async fn server(versions: &[&str]) -> (Upstream, u16, Arc<AtomicUsize>) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let certificate = made.cert.der().clone();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let mut config = config.with_single_cert(vec![certificate.clone()], key).unwrap();
        config.alpn_protocols = versions.iter().map(|it| it.as_bytes().to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connected = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connected);
        task::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, count) = (acceptor.clone(), Arc::clone(&count));
                task::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    count.fetch_add(1, Relaxed);
                    let is_two = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                    let echo = service_fn(async |request: Request<Incoming>| {
                        let body = request.into_body().collect().await.unwrap().to_bytes();
                        Ok::<_, Infallible>(Response::new(Full::new(body)))
                    });
                    let stream = TokioIo::new(stream);
                    if is_two {
                        let two = http2::Builder::new(TokioExecutor::new());
                        let _ = two.serve_connection(stream, echo).await;
                    } else {
                        let _ = http1::Builder::new().serve_connection(stream, echo).await;
                    }
                });
            }
        });
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        let tls = ClientConfig::builder_with_provider(provider);
        let tls = tls.with_safe_default_protocol_versions().unwrap();
        let upstream = Upstream::by(&tls.with_root_certificates(roots).with_no_client_auth());
        (upstream, port, connected)
    }

    #[tokio::test]
    async fn a_provider_is_spoken_with_by_the_first_version_that_it_knows() {
        for (versions, expected) in [
            (&["http/1.1"][..], Version::HTTP_11),
            (&["h2", "http/1.1"], Version::HTTP_11),
            (&["h2"], Version::HTTP_2),
            (&[], Version::HTTP_11),
        ] {
            let (upstream, port, connected) = server(versions).await;
            for _ in 0..2 {
                let body = RequestBody::Whole(Full::new(Bytes::from_static(b"{}")), None);
                let request = Request::post(format!("https://localhost:{port}/v1/messages"));
                let request =
                    request.header("host", format!("localhost:{port}")).body(body).unwrap();
                let Ok(answer) = upstream.send(request).await else { panic!("{versions:?}") };
                assert_eq!(answer.version(), expected, "{versions:?}");
                assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "{}");
            }
            assert_eq!(connected.load(Relaxed), 1, "{versions:?}: the first is used again");
        }
    }
}
