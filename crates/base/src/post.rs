//! Posts a body to a web address, with a timeout and the certificates that are trusted. Blocks its
//! thread.

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::rustls::crypto::aws_lc_rs;
use ureq::http::header::RETRY_AFTER;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

/// Bytes of an answer that are read.
const LONGEST_ANSWER: u64 = 64 << 10;

/// A POST request.
#[derive(Debug)]
pub struct Post<'a> {
    pub url: &'a str,
    pub headers: &'a [(String, String)],
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
    /// Of the answer; None: there was none.
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
    /// Sends it once; returns the beginning of the answer's body, empty if it can't be read. Trusts
    /// the certificates in the file that `SSL_CERT_FILE` names, else the public ones.
    pub fn send(&self) -> Result<Vec<u8>, PostFailed> {
        self.send_trusting(std::env::var_os("SSL_CERT_FILE").filter(|file| !file.is_empty()))
    }

    fn send_trusting(&self, file: Option<OsString>) -> Result<Vec<u8>, PostFailed> {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(self.timeout))
            .max_redirects(self.redirects)
            .http_status_as_error(false)
            .tls_config(trust(file)?);
        let agent: ureq::Agent = config.build().into();
        let request = self
            .headers
            .iter()
            .fold(agent.post(self.url), |request, (name, value)| request.header(name, value));
        let mut answer = request.send(self.body).map_err(|error| self.failed(&error))?;
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
        let body = answer.body_mut().with_config().limit(LONGEST_ANSWER).read_to_vec();
        Ok(body.unwrap_or_default())
    }

    /// The cause of a request without an answer, and whether to retry.
    fn failed(&self, error: &ureq::Error) -> PostFailed {
        let text = error.to_string();
        // The library wraps errors of rustls in an I/O error.
        if let Some((_, why)) = text.split_once("invalid peer certificate: ") {
            return PostFailed::for_good(distrusted(why));
        }
        let is_transient = !matches!(error, ureq::Error::BadUri(_) | ureq::Error::Http(_));
        let why = match error {
            ureq::Error::Timeout(_) => format!("no answer within {:?}", self.timeout),
            ureq::Error::Io(error) if error.kind() == ErrorKind::ConnectionRefused => {
                "connection refused: nothing listens there".to_owned()
            }
            ureq::Error::Io(_) if text.contains("InvalidContentType") => {
                "what listens there speaks no TLS: should the address begin with `http://`?"
                    .to_owned()
            }
            ureq::Error::Protocol(_) => {
                format!("what listens there answers by another protocol than HTTP/1.1: {text}")
            }
            _ => text,
        };
        PostFailed { why, is_transient, status: None, retry_after: None }
    }
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
fn trust(file: Option<OsString>) -> Result<TlsConfig, PostFailed> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = TlsConfig::builder().unversioned_rustls_crypto_provider(provider);
    let Some(file) = file else { return Ok(config.build()) };
    let wrong = |why: &dyn std::fmt::Display| {
        PostFailed::for_good(format!("SSL_CERT_FILE, {}: {why}", Path::new(&file).display()))
    };
    let pem = std::fs::read(&file).map_err(|error| wrong(&error))?;
    let certificates: Vec<_> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(wrong(&"it has no certificate in PEM format"));
    }
    Ok(config.root_certs(RootCerts::new_with_certs(&certificates)).build())
}
