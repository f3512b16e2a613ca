//! The client towards providers: HTTP/1.1, by TLS where the address says so, and HTTP/2 where a provider speaks nothing
//! else. It follows no redirects, knows no proxies, and adds no headers.

use std::error::Error;
use std::iter::successors;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::rustls::{self, AlertDescription, ClientConfig};
use tower_service::Service;

use super::EndpointError;
use super::bodies::RequestBody;
use super::shapes::OwnAnswer;
use super::tls;
use crate::counting::CallEnd;

/// How long a connection may take, and an answer. Providers think for minutes; agents wait less.
const CONNECT: Duration = Duration::from_secs(15);
const HEAD: Duration = Duration::from_secs(30 * 60);

/// Connections that are kept for later calls, of each provider, and for how long.
const MOST_IDLE: usize = 64;
const IDLE: Duration = Duration::from_secs(50);

/// Bytes that are read of a connection at once. A head has to fit.
const BUFFER: usize = 16 * 1024;

/// The client.
pub(super) struct Upstream(Client<ProviderConnector, RequestBody>);

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
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(MOST_IDLE)
            .http1_read_buf_exact_size(BUFFER)
            .set_host(false)
            .build(ProviderConnector::new(tls));
        Self(client)
    }

    /// Sends a request once, and waits for the head of its answer.
    pub(super) async fn send(
        &self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, NoAnswer> {
        let failed = |why, end| NoAnswer { answer: OwnAnswer::Away(why), end };
        let Ok(answer) = timeout(HEAD, self.0.request(request)).await else {
            let why = "eisen-core: the provider did not answer within 30 minutes";
            return Err(failed(why, CallEnd::Unanswered));
        };
        answer.map_err(|error| {
            let texts = successors(error.source(), |error| (*error).source());
            let texts: Vec<_> = texts.map(ToString::to_string).collect();
            tracing::debug!(why = texts.last(), "a provider did not answer");
            let is_distrusted = texts.iter().any(|text| text.contains("invalid peer certificate"));
            if is_distrusted {
                let why = "eisen-core: the provider's certificate is not trusted";
                failed(why, CallEnd::Unsent)
            } else if error.is_connect() {
                failed("eisen-core: the provider can't be reached", CallEnd::Unsent)
            } else {
                let why = "eisen-core: the connection to the provider ended before an answer";
                failed(why, CallEnd::Unanswered)
            }
        })
    }
}

/// Connects to providers. HTTP/2 would put all calls of a provider on one connection: those past its number of streams
/// would wait for whole answers, and all would break together. So it is spoken only where HTTP/1.1 is refused.
#[derive(Clone)]
struct ProviderConnector {
    one: HttpsConnector<HttpConnector>,
    two: HttpsConnector<HttpConnector>,
}

impl ProviderConnector {
    fn new(tls: &ClientConfig) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT));
        tcp.set_keepalive(Some(Duration::from_secs(60)));
        let by = |version: &[u8]| {
            let mut tls = tls.clone();
            tls.alpn_protocols = vec![version.to_vec()];
            HttpsConnector::from((tcp.clone(), tls))
        };
        Self { one: by(b"http/1.1"), two: by(b"h2") }
    }
}

impl Service<Uri> for ProviderConnector {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.one.poll_ready(cx)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let first = self.one.call(to.clone());
        let mut two = self.two.clone();
        async move {
            match first.await {
                Err(error) if speaks_another_version(&*error) => two.call(to).await,
                connected => connected,
            }
        }
        .boxed()
    }
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
    use std::convert::Infallible;
    use std::sync::Arc;

    use bytes::Bytes;
    use http::Version;
    use http_body_util::{BodyExt as _, Full};
    use hyper::server::conn::{http1, http2};
    use hyper::service::service_fn;
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::crypto::aws_lc_rs;
    use tokio_rustls::rustls::pki_types::PrivateKeyDer;
    use tokio_rustls::rustls::{RootCertStore, ServerConfig};

    use super::*;

    /// Answers with its request's body, by the versions that it speaks.
    async fn server(versions: &[&str]) -> (Upstream, u16) {
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
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
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
        (Upstream::by(&tls.with_root_certificates(roots).with_no_client_auth()), port)
    }

    #[tokio::test]
    async fn a_provider_is_spoken_with_by_the_first_version_that_it_knows() {
        for (versions, expected) in [
            (&["http/1.1"][..], Version::HTTP_11),
            (&["h2", "http/1.1"], Version::HTTP_11),
            (&["h2"], Version::HTTP_2),
            (&[], Version::HTTP_11),
        ] {
            let (upstream, port) = server(versions).await;
            for _ in 0..2 {
                let body = RequestBody::Whole(Full::new(Bytes::from_static(b"{}")), None);
                let request = Request::post(format!("https://localhost:{port}/v1/messages"));
                let request =
                    request.header("host", format!("localhost:{port}")).body(body).unwrap();
                let Ok(answer) = upstream.send(request).await else { panic!("{versions:?}") };
                assert_eq!(answer.version(), expected, "{versions:?}");
                assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "{}");
            }
        }
    }
}
