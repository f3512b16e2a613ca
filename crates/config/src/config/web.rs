//! `[web]`: where the team's web page is served, and for whom; the same for `[gateway]`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use super::errors::{code, quoted};
use super::fault::Fault;
use super::read::Table;

/// Where the page is served unless the file says otherwise.
pub const WEB_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 17321);

/// How the page, or the gateway, is served.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Web {
    pub listen: SocketAddr,
    /// Another port may be taken where that of `listen` is not free: the file says nothing.
    pub any_port: bool,
    /// Its origin as browsers have it; None: scheme and address of `listen`.
    pub origin: Option<String>,
    pub tls: Option<TlsFiles>,
    /// The only address that may connect: a reverse proxy with TLS of its own.
    pub trusted_proxy: Option<IpAddr>,
}

/// Files in PEM.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
}

impl Default for Web {
    fn default() -> Self {
        Self { listen: WEB_LISTEN, any_port: true, origin: None, tls: None, trusted_proxy: None }
    }
}

impl Web {
    /// Why `what` can't be served at `listen`: what passes over the network would be readable, or nobody
    /// could name it.
    pub fn refusal(&self, what: &str) -> Option<String> {
        if self.listen.ip().is_unspecified() && self.origin.is_none() && self.tls.is_some() {
            let why = "all addresses are listened on: set `origin`, as browsers will have it";
            return Some(why.to_owned());
        }
        let is_open = !self.listen.ip().to_canonical().is_loopback();
        let is_sealed = self.tls.is_some() || self.trusted_proxy.is_some();
        (is_open && !is_sealed).then(|| {
            format!(
                "other machines reach this address, and {what} would come without TLS: set `cert` and \
                 `key`, or `trusted_proxy`, or listen on 127.0.0.1"
            )
        })
    }
}

/// Reads `[web]`, if it is there.
pub(super) fn web(root: &Table<'_>) -> Option<Web> {
    let is_there = root.place_of("web").is_some();
    let web = root.section("web", "web", |table| served(table, "the page"));
    is_there.then_some(web)
}

/// Reads where and for whom `what` is served.
pub(super) fn served(table: &Table<'_>, what: &str) -> Web {
    let web = Web {
        listen: listen(table),
        any_port: table.place_of("listen").is_none(),
        origin: origin(table),
        tls: tls(table),
        trusted_proxy: trusted_proxy(table),
    };
    check(table, &web, what);
    web
}

fn listen(table: &Table<'_>) -> SocketAddr {
    let help = "write one such as \"127.0.0.1:17321\" or \"[::1]:17321\"; port 0 takes a free one";
    let Some(text) = table.text_or("listen", || help.to_owned()) else { return WEB_LISTEN };
    text.value.parse().unwrap_or_else(|_| {
        let message = format!("{} is not an IP address with a port", quoted(&text.value));
        table.fault(Fault::new(text.span, message).help(help));
        WEB_LISTEN
    })
}

fn origin(table: &Table<'_>) -> Option<String> {
    let text = table.text("origin")?;
    let origin = normal_origin(&text.value);
    if origin.is_none() {
        let message = format!("{} is not an origin", quoted(&text.value));
        let help = "write scheme and host, such as \"https://team.example.org\", without a path";
        table.fault(Fault::new(text.span, message).help(help));
    }
    origin
}

/// The origin as a browser writes it: in lower case, without the scheme's usual port. None if it is none, as one with a
/// path.
pub fn normal_origin(text: &str) -> Option<String> {
    let text = text.to_ascii_lowercase();
    let (scheme, authority) = text.split_once("://")?;
    let usual = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => return None,
    };
    let authority = authority.strip_suffix(usual).unwrap_or(authority);
    let uri: http::uri::Authority = authority.parse().ok()?;
    let is_plain = !authority.contains('@') && !uri.host().is_empty();
    is_plain.then(|| format!("{scheme}://{authority}"))
}

fn tls(table: &Table<'_>) -> Option<TlsFiles> {
    let (cert, key) = (table.word("cert"), table.word("key"));
    match (cert, key) {
        (Some(cert), Some(key)) => Some(TlsFiles {
            cert: table.reader.path(&cert.value),
            key: table.reader.path(&key.value),
        }),
        (None, None) => None,
        (Some(there), None) => {
            let fault = Fault::new(there.span, format!("{} needs {}", code("cert"), code("key")));
            table.fault(fault.help("name the file of its private key, in PEM"));
            None
        }
        (None, Some(there)) => {
            let fault = Fault::new(there.span, format!("{} needs {}", code("key"), code("cert")));
            table.fault(fault.help("name the file of its certificates, in PEM"));
            None
        }
    }
}

fn trusted_proxy(table: &Table<'_>) -> Option<IpAddr> {
    let text = table.text("trusted_proxy")?;
    let address = text.value.parse().ok();
    if address.is_none() {
        let message = format!("{} is not an IP address", quoted(&text.value));
        let help = "write the address from which the proxy connects, such as \"10.0.0.2\"";
        table.fault(Fault::new(text.span, message).help(help));
    }
    address
}

/// Reports the faults that only the keys together can have.
fn check(table: &Table<'_>, web: &Web, what: &str) {
    let place = |key| table.place_of(key).unwrap_or_else(|| table.span.clone());
    let is_sealed =
        ["cert", "key", "trusted_proxy"].iter().any(|key| table.place_of(key).is_some());
    if is_sealed && web.origin.as_ref().is_some_and(|origin| origin.starts_with("http://")) {
        let message = format!("{what} comes by TLS, and its origin does not say so");
        let fault = Fault::new(place("origin"), message);
        table.fault(fault.help("write `https://`"));
    }
    // A broken pair is reported already.
    let is_read = table.place_of("cert").is_none() || web.tls.is_some();
    if let Some(why) =
        web.refusal(what).filter(|_| is_read && table.place_of("trusted_proxy").is_none())
    {
        table.fault(Fault::new(place("listen"), format!("{what} can't be served there")).help(why));
    }
    if table.place_of("origin").is_some() {
        return;
    }
    let help = "write `origin = \"https://…\"`, as browsers will have it";
    if table.place_of("trusted_proxy").is_some() {
        let message = format!("{} needs {}", code("trusted_proxy"), code("origin"));
        table.fault(Fault::new(place("trusted_proxy"), message).help(help));
    } else if web.listen.ip().is_unspecified() {
        let message =
            format!("all addresses are listened on, so that {} is needed", code("origin"));
        table.fault(Fault::new(place("listen"), message).help(help));
    }
}
