//! The certificates of the web server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read certificates from {}: {cause}", .file.display())]
    Cert { file: PathBuf, cause: pem::Error },
    #[error("cannot read a private key from {}: {cause}", .file.display())]
    Key { file: PathBuf, cause: pem::Error },
    #[error("certificates and key can't be used: {0}")]
    Unusable(rustls::Error),
}

/// Reads certificates and key, in PEM.
pub(super) fn acceptor(cert: &Path, key: &Path) -> Result<TlsAcceptor, TlsError> {
    let bad_cert = |cause| TlsError::Cert { file: cert.to_owned(), cause };
    let certs = CertificateDer::pem_file_iter(cert).map_err(bad_cert)?;
    let certs = certs.collect::<Result<Vec<_>, _>>().map_err(bad_cert)?;
    let key = PrivateKeyDer::from_pem_file(key)
        .map_err(|cause| TlsError::Key { file: key.to_owned(), cause })?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(certs, key))
        .map_err(TlsError::Unusable)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
