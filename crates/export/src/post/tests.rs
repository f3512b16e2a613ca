//! Requests to servers that are trusted, that are not, and that are none.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::*;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi";

/// A server that takes one connection, and its address without a scheme.
fn serve(taken: impl FnOnce(TcpStream) + Send + 'static) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (address, std::thread::spawn(move || taken(listener.accept().unwrap().0)))
}

/// Takes a request with the body `x`, and answers.
fn answer(mut stream: impl Read + Write, with: &[u8]) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\nx") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        request.extend(byte);
    }
    stream.write_all(with)?;
    stream.flush()
}

/// A server with a certificate for a name, and the certificate in a file.
fn serve_tls(folder: &tempfile::TempDir, name: &str) -> (String, OsString, JoinHandle<()>) {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let file = folder.path().join("trusted.pem");
    std::fs::write(&file, made.cert.pem()).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let (address, serving) = serve(move |stream| {
        let connection = ServerConnection::new(Arc::new(config)).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        // It fails where the client does not trust.
        if answer(&mut stream, ANSWER).is_ok() {
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    });
    (address, file.into(), serving)
}

fn post(url: &str, trusted: Option<OsString>) -> Result<Vec<u8>, PostFailed> {
    let timeout = Duration::from_secs(20);
    Post { url, headers: &[], body: b"x", timeout, redirects: 0 }.send_trusting(trusted)
}

#[test]
fn a_server_is_trusted_by_the_certificate_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let (address, file, serving) = serve_tls(&folder, "127.0.0.1");
    assert_eq!(post(&format!("https://{address}/v1"), Some(file)).unwrap(), b"hi");
    serving.join().unwrap();
}

#[test]
fn a_server_that_is_not_trusted_gets_nothing_and_the_reason_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let (address, _, serving) = serve_tls(&folder, "127.0.0.1");
    let failed = post(&format!("https://{address}"), None).unwrap_err();
    assert!(failed.why.contains("UnknownIssuer"), "{failed:?}");
    assert!(failed.why.contains("set SSL_CERT_FILE to a PEM file"), "{failed:?}");
    assert!(!failed.is_transient);
    serving.join().unwrap();

    let (address, file, serving) = serve_tls(&folder, "otlp.example");
    let failed = post(&format!("https://{address}"), Some(file)).unwrap_err();
    assert!(failed.why.contains("write a name that it has in the address"), "{failed:?}");
    assert!(!failed.why.contains("SSL_CERT_FILE"), "{failed:?}");
    serving.join().unwrap();
}

#[test]
fn a_file_without_certificates_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let none = folder.path().join("none.pem");
    std::fs::write(&none, "nothing").unwrap();
    for (file, wanted) in [
        (none, "it has no certificate in PEM format"),
        (PathBuf::from("/nonexistent/ca.pem"), "No such file"),
    ] {
        let failed = post("https://127.0.0.1:1", Some(file.clone().into())).unwrap_err();
        let begins = format!("SSL_CERT_FILE, {}: ", file.display());
        assert!(failed.why.starts_with(&begins) && failed.why.contains(wanted), "{failed:?}");
    }
}

#[test]
fn a_server_that_is_none_is_told_apart() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = post(&format!("http://{closed}"), None).unwrap_err();
    assert_eq!(refused.why, "connection refused: nothing listens there");

    let (address, serving) = serve(|mut stream| {
        // As a server of plain HTTP does.
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let plain = post(&format!("https://{address}"), None).unwrap_err();
    assert!(plain.why.contains("speaks no TLS"), "{plain:?}");
    serving.join().unwrap();

    // The settings with which a server of gRPC begins.
    let (address, serving) = serve(|mut stream| {
        stream.write_all(b"\0\0\x06\x04\0\0\0\0\0\0\x05\0\0\x40\0").unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let grpc = post(&format!("http://{address}"), None).unwrap_err();
    assert!(grpc.why.contains("another protocol than HTTP/1.1"), "{grpc:?}");
    serving.join().unwrap();

    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let (url, timeout) =
        (format!("http://{}", silent.local_addr().unwrap()), Duration::from_millis(50));
    let silence = Post { url: &url, headers: &[], body: b"x", timeout, redirects: 0 }.send();
    assert_eq!(silence.unwrap_err().why, "no answer within 50ms");
    for failed in [refused, plain, grpc] {
        assert_eq!((failed.is_transient, failed.status), (true, None));
    }
}

#[test]
fn a_refusal_says_its_status_and_when_to_come_again() {
    let (address, serving) = serve(|stream| {
        let head = b"HTTP/1.1 503 Busy\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n";
        answer(stream, head).unwrap();
    });
    let failed = post(&format!("http://{address}"), None).unwrap_err();
    let why = "http status: 503".to_owned();
    let retry_after = Some(Duration::from_secs(7));
    assert_eq!(failed, PostFailed { why, is_transient: true, status: Some(503), retry_after });
    serving.join().unwrap();
}
