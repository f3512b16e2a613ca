//! The port of this process: which one it is, how it is announced, and how many clients it may have.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use tokio::net::TcpListener;

use super::outlet;
use crate::config;
use crate::model::one_line;
use crate::process::raise_descriptor_limit;
use crate::serve;

/// Descriptors that clients leave to the agents, their terminals and files.
pub(crate) const OWN_DESCRIPTORS: u64 = 256;

/// Raises the limit of open files, and bounds the number of clients by it. Call it before any
/// process is started.
pub(crate) fn limits(port: config::Port) -> serve::Limits {
    let available = match raise_descriptor_limit() {
        Ok(limit) => usize::try_from(limit.saturating_sub(OWN_DESCRIPTORS)).unwrap_or(usize::MAX),
        Err(error) => {
            tracing::warn!(%error, "cannot raise the limit of open files");
            usize::MAX
        }
    };
    let max_connections = port.max_connections.min(available.max(1));
    if max_connections < port.max_connections {
        tracing::warn!(
            max_connections,
            "the port serves fewer clients than configured, and agents may fail to start: the system's limit of \
             open files is too low (`eisen-core doctor` says how to raise it)"
        );
    }
    serve::Limits {
        max_connections,
        max_line_bytes: port.max_line_bytes,
        write_deadline: port.write_deadline,
    }
}

/// The default port of `up`, `observe` and `replay`.
const DEFAULT_PORT: u16 = 17320;

/// Binds a port of this machine: the default one if none is named, else any that is free.
pub(crate) async fn bind(port: Option<u16>, eisen_dir: &Path) -> anyhow::Result<TcpListener> {
    let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    match port {
        Some(port) => Ok(serve::bind(at(port), eisen_dir).await?),
        None => match serve::bind(at(DEFAULT_PORT), eisen_dir).await {
            Ok(listener) => Ok(listener),
            Err(_) => Ok(serve::bind(at(0), eisen_dir).await?),
        },
    }
}

/// Writes a line for the person to standard error. It may have what an agent's program put out.
pub(crate) fn note(line: &str) {
    let line = one_line(line) + "\n";
    let _ = outlet::stderr().clone().write_all(line.as_bytes());
}

/// Prints the bound port to standard error, in one write: clients parse exactly this line.
pub(crate) fn announce_port(port: u16) {
    let _ = outlet::stderr().clone().write_all(format!("eisen-core tcp port: {port}\n").as_bytes());
}
