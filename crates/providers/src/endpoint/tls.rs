//! The certificates by which providers are trusted: the public ones, or those of the file in `SSL_CERT_FILE`.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use super::EndpointError;

/// The client's side of TLS.
pub(super) fn config() -> Result<ClientConfig, EndpointError> {
    let roots = roots(std::env::var_os("SSL_CERT_FILE").filter(|file| !file.is_empty()))?;
    ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map(|config| config.with_root_certificates(roots).with_no_client_auth())
        .map_err(|error: rustls::Error| EndpointError::Certificates(error.to_string()))
}

fn roots(file: Option<OsString>) -> Result<RootCertStore, EndpointError> {
    let mut roots = RootCertStore::empty();
    let Some(file) = file else {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        return Ok(roots);
    };
    let wrong = |why: &dyn std::fmt::Display| {
        let file = Path::new(&file).display();
        EndpointError::Certificates(format!("SSL_CERT_FILE, {file}: {why}"))
    };
    let pem = std::fs::read(&file).map_err(|error| wrong(&error))?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&pem).flatten().collect();
    if certificates.is_empty() {
        return Err(wrong(&"it has no certificate in PEM format"));
    }
    roots.add_parsable_certificates(certificates);
    Ok(roots)
}
