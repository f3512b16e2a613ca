//! Posts a body to a web address, with a timeout and the certificates that are trusted. Blocks its
//! thread.

#[cfg(test)]
mod tests;

use std::error::Error;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::iter::successors;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::RETRY_AFTER;
use reqwest::redirect::Policy;
use tokio::runtime;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// How requests name this program.
const USER_AGENT: &str = concat!("eisen-core/", env!("CARGO_PKG_VERSION"));

/// Bytes of an answer that are read.
const LONGEST_ANSWER: usize = 64 << 10;

/// A POST request.
#[derive(Debug)]
pub struct Post<'a> {
    /// The address, `http://…` or `https://…`.
    pub url: &'a str,
    /// Names and values of headers; no content type is added.
    pub headers: &'a [(String, String)],
    /// The body as it is sent.
    pub body: &'a [u8],
    /// For all of it.
    pub timeout: Duration,
    /// Redirects that are followed.
    pub redirects: u32,
}

/// Why a request failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PostFailed {
    /// For people: with what to do, where that is certain.
    pub why: String,
    /// A retry may succeed.
    pub is_transient: bool,
    /// The status of the answer; None: there was none.
    pub status: Option<u16>,
    /// How long the server wants to be left alone.
    pub retry_after: Option<Duration>,
}

impl PostFailed {
    /// A failure that a retry does not mend.
    pub fn for_good(why: String) -> Self {
        Self { why, is_transient: false, status: None, retry_after: None }
    }
}

impl Post<'_> {
    /// Sends it once; returns the answer's body, empty if it can't be read or is long. Trusts the certificates in
    /// the file that `SSL_CERT_FILE` names, else the public ones.
    pub fn send(&self) -> Result<Vec<u8>, PostFailed> {
        self.send_trusting(std::env::var_os("SSL_CERT_FILE").filter(|file| !file.is_empty()))
    }

    fn send_trusting(&self, file: Option<OsString>) -> Result<Vec<u8>, PostFailed> {
        let tls = trusting(roots(file)?)?;
        let redirects = usize::try_from(self.redirects).unwrap_or(usize::MAX);
        let client = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            // The path of an address may be a secret.
            .referer(false)
            .timeout(self.timeout)
            .redirect(if redirects == 0 { Policy::none() } else { Policy::limited(redirects) })
            .tls_backend_preconfigured(tls)
            .build()
            .map_err(|error| self.failed(&error))?;
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| transient(error.to_string()))?;
        let sent = runtime.block_on(self.send_by(&client));
        // A name that is still looked up is not waited for.
        runtime.shutdown_background();
        sent
    }

    async fn send_by(&self, client: &reqwest::Client) -> Result<Vec<u8>, PostFailed> {
        let request = self
            .headers
            .iter()
            .fold(client.post(self.url), |request, (name, value)| request.header(name, value));
        let sent = request.body(self.body.to_vec()).send().await;
        let mut answer = sent.map_err(|error| self.failed(&error))?;
        let code = answer.status().as_u16();
        if !answer.status().is_success() {
            let after = answer.headers().get(RETRY_AFTER);
            let after = after.and_then(|after| after.to_str().ok()?.trim().parse().ok());
            return Err(PostFailed {
                why: format!("http status: {code}"),
                is_transient: code >= 500 || code == 429 || code == 408,
                status: Some(code),
                retry_after: after.map(Duration::from_secs),
            });
        }
        let mut body = Vec::new();
        loop {
            match answer.chunk().await {
                Ok(Some(chunk)) if body.len() + chunk.len() <= LONGEST_ANSWER => body.extend(chunk),
                Ok(None) => return Ok(body),
                Ok(Some(_)) | Err(_) => return Ok(Vec::new()),
            }
        }
    }

    /// The cause of a request without an answer, and whether to retry.
    fn failed(&self, error: &reqwest::Error) -> PostFailed {
        let text = chain(error).last().map(ToString::to_string).unwrap_or_default();
        if let Some((_, why)) = text.split_once("invalid peer certificate: ") {
            return PostFailed::for_good(distrusted(why));
        }
        if error.is_builder() {
            return PostFailed::for_good(text);
        }
        let is_refused = |error: &(dyn Error + 'static)| {
            let error = error.downcast_ref::<io::Error>();
            error.is_some_and(|error| error.kind() == ErrorKind::ConnectionRefused)
        };
        let is_other = |error: &(dyn Error + 'static)| {
            let error = error.downcast_ref::<hyper::Error>();
            // The library has no name for the second: a server that speaks before it is asked.
            error.is_some_and(|error| error.is_parse() || text.contains("unexpected message"))
        };
        transient(if error.is_timeout() {
            format!("no answer within {:?}", self.timeout)
        } else if chain(error).any(is_refused) {
            "connection refused: nothing listens there".to_owned()
        } else if text.contains("InvalidContentType") {
            "what listens there speaks no TLS: should the address begin with `http://`?".to_owned()
        } else if chain(error).any(is_other) {
            format!("what listens there answers by another protocol than HTTP/1.1: {text}")
        } else {
            text
        })
    }
}

/// An error, and those beneath it.
fn chain<'a>(error: &'a reqwest::Error) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let first: &'a (dyn Error + 'static) = error;
    successors(Some(first), |error| (*error).source())
}

fn transient(why: String) -> PostFailed {
    PostFailed { why, is_transient: true, status: None, retry_after: None }
}

/// Why a certificate is not accepted, as rustls says it, and what to do.
fn distrusted(why: &str) -> String {
    let what = if why.contains("UnknownIssuer") {
        "set SSL_CERT_FILE to a PEM file with the certificate of its issuer"
    } else if why.contains("CaUsedAsEndEntity") {
        "it is that of an issuer; the server needs one of its own, without `CA:TRUE`"
    } else if why.contains("not valid for name") {
        "write a name that it has in the address"
    } else {
        "the server needs another one"
    };
    format!("its certificate is not trusted ({why}): {what}")
}

/// The trusted certificates: those in a file, else the public ones.
fn roots(file: Option<OsString>) -> Result<RootCertStore, PostFailed> {
    let mut roots = RootCertStore::empty();
    let Some(file) = file else {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        return Ok(roots);
    };
    let wrong = |why: &dyn std::fmt::Display| {
        PostFailed::for_good(format!("SSL_CERT_FILE, {}: {why}", Path::new(&file).display()))
    };
    let pem = std::fs::read(&file).map_err(|error| wrong(&error))?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&pem).flatten().collect();
    if certificates.is_empty() {
        return Err(wrong(&"it has no certificate in PEM format"));
    }
    roots.add_parsable_certificates(certificates);
    Ok(roots)
}

fn trusting(roots: RootCertStore) -> Result<ClientConfig, PostFailed> {
    ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map(|config| config.with_root_certificates(roots).with_no_client_auth())
        .map_err(|error: rustls::Error| PostFailed::for_good(error.to_string()))
}
