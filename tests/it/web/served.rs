//! What the web server serves beside the page: by TLS, and to a real Prometheus.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::browser::Driver;
use super::client::Site;
use super::{WEB, team};
use crate::harness::{Stage, agent, eventually};

#[test]
fn the_page_comes_by_tls() {
    let stage = Stage::new();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    stage.file("cert.pem", &made.cert.pem());
    stage.file("key.pem", &made.signing_key.serialize_pem());
    let keys = format!("{WEB}\n")
        .replace("127.0.0.1:0\"", "127.0.0.1:0\"\ncert = \"cert.pem\"\nkey = \"key.pem\"");
    let team = stage.team(&keys, vec![agent("ui")]);
    let link = stage.run(&["web"]).stdout.trim().to_owned();
    let (host, path) = link.strip_prefix("https://").unwrap().split_once('/').unwrap();
    let answer = over_tls(host, &made.cert.der().clone(), &format!("/{path}"));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("; Secure"), "{answer}");
    // Plain HTTP gets nothing there, and disturbs nobody.
    let mut plain = TcpStream::connect(host).unwrap();
    plain.write_all(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).unwrap();
    let mut said = Vec::new();
    let _ = plain.read_to_end(&mut said);
    assert!(!said.starts_with(b"HTTP"), "{said:?}");
    assert!(over_tls(host, &made.cert.der().clone(), "/healthz").starts_with("HTTP/1.1 200"));
    drop(team);
    // Files that are none are an error that names them.
    stage.file("key.pem", "nothing");
    let ended = stage.run(&["up"]);
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("cannot read a private key from"), "{}", ended.stderr);
}

#[test]
fn the_page_can_be_put_on_a_home_screen() {
    let Some(driver) = Driver::shared() else { return };
    let stage = Stage::new();
    let _team = team(&stage);
    let (site, path) = Site::of(&stage, &[]);
    assert_eq!(site.get("/manifest.webmanifest", &[]).status, 401);
    let browser = driver.open(&stage, "phone", (400, 800));
    browser.goto(&format!("http://{}{path}", site.host));
    browser.shows("live");
    let manifest = browser.devtools("Page.getAppManifest");
    let url = format!("http://{}/manifest.webmanifest", site.host);
    assert_eq!((&manifest["url"], &manifest["errors"]), (&url.into(), &json!([])), "{manifest}");
    let data: Value = serde_json::from_str(manifest["data"].as_str().unwrap()).unwrap();
    assert_eq!((&data["display"], &data["start_url"]), (&json!("standalone"), &json!("./")));
    for (at, size) in [(0, 192), (1, 512)] {
        let icon = &data["icons"][at]["src"];
        browser.run(&format!("(window.icon = new Image()).src = {icon}"));
        browser.comes(&format!("icon.complete && icon.naturalWidth === {size}"));
    }
    // A browser that is no phone offers to install it by the same rules.
    let errors = browser.devtools("Page.getInstallabilityErrors");
    assert_eq!(errors["installabilityErrors"], json!([]), "{errors}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

fn over_tls(host: &str, cert: &CertificateDer<'static>, path: &str) -> String {
    let mut roots = RootCertStore::empty();
    roots.add(cert.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(client, TcpStream::connect(host).unwrap());
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // The end may come without a farewell.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn a_real_prometheus_scrapes_the_team() {
    if Command::new("prometheus").arg("--version").output().is_err() {
        return eprintln!("skipped: prometheus is not installed");
    }
    let stage = Stage::new();
    let team = team(&stage);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    assert_eq!(port.prompt("ui", "hello"), "hello");
    let (site, _) = Site::of(&stage, &[]);
    stage.file("token", &stage.run(&["web", "token", "--scope", "read"]).stdout);
    stage.file(
        "prometheus.yml",
        &format!(
            "scrape_configs:\n- job_name: eisen\n  scrape_interval: 1s\n  authorization:\n    credentials_file: \
             token\n  static_configs:\n  - targets: [\"{}\"]\n",
            site.host
        ),
    );
    let mut prometheus = Command::new("prometheus")
        .args(["--config.file=prometheus.yml", "--storage.tsdb.path=prometheus"])
        .arg("--web.listen-address=127.0.0.1:0")
        .current_dir(stage.path(""))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(prometheus.stderr.take().unwrap()).lines().map(Result::unwrap);
    let address = log.find_map(|line| {
        let (_, rest) = line.split_once("address=127.0.0.1:")?;
        let port = rest.split(' ').next().filter(|port| *port != "0")?;
        Some(format!("127.0.0.1:{port}"))
    });
    let address = address.expect("prometheus says where it listens");
    // What it logs goes on to be read.
    let reading = std::thread::spawn(move || log.for_each(drop));
    let runtime = Runtime::new().unwrap();
    let value = |query: &str| -> Option<String> {
        let url = format!("http://{address}/api/v1/query?query={query}");
        let answer = async { reqwest::get(url).await?.json::<Value>().await };
        let answer = runtime.block_on(answer).ok()?;
        Some(answer["data"]["result"][0]["value"][1].as_str()?.to_owned())
    };
    let has = |query: &str, wanted: &str| {
        eventually(query, || value(query).as_deref() == Some(wanted));
    };
    has("up", "1");
    has("eisen_agents%7Bstate%3D%22ready%22%7D", "2");
    has("eisen_turn_duration_seconds_count", "1");
    prometheus.kill().unwrap();
    prometheus.wait().unwrap();
    reading.join().unwrap();
}
