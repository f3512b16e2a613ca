//! The address of a provider.

use std::net::IpAddr;

use crate::config::errors::{code, quoted};
use crate::config::fault::Fault;
use crate::config::read::{Table, Text};
use crate::model::ProviderKind;

/// Reads `url`, with the vendor's own as its default. None: there is none that can be used.
pub(super) fn url(table: &Table<'_>, kind: Option<ProviderKind>) -> Option<String> {
    let unencrypted = table.flag("unencrypted", false);
    let Some(text) = table.word("url") else {
        let is_left_out = table.place_of("url").is_none();
        return kind.filter(|_| is_left_out).map(|kind| kind.vendor_url().to_owned());
    };
    let url = text.value.trim_end_matches('/');
    let fault = |message: &str, help: &str| {
        table.fault(Fault::new(text.span.clone(), message).help(help.to_owned()));
        None
    };
    let lower = url.to_ascii_lowercase();
    let rest = lower.strip_prefix("http://").or_else(|| lower.strip_prefix("https://"));
    let authority = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic());
    let why = match authority {
        _ if !is_plain => Some("has a blank, or another sign that no address has"),
        None => Some("begins with neither `https://` nor `http://`"),
        Some("") => Some("names no host"),
        Some(authority) if !has_good_port(authority) => {
            Some("has a port that is no number up to 65535")
        }
        Some(_) => None,
    };
    let (Some(authority), None) = (authority, why) else {
        // A value that comes from a variable may have a key in it, so that it is not shown.
        let is_written = table.verbatim("url").is_some_and(|it| it.value == text.value);
        let shown =
            if is_written && !url.contains(['@', '?']) { quoted(url) } else { "this".to_owned() };
        let message = format!("{shown} is no web address: it {}", why.unwrap_or_default());
        return fault(&message, "write one such as \"https://example.org/v1\"");
    };
    if authority.contains('@') {
        let help = "leave it out: the key comes by `key` or `key_command`";
        return fault("this address has a name or password in it", help);
    }
    if url.contains(['?', '#']) {
        let help = "leave it out: what an agent asks for is put behind the address";
        return fault("this address has a query or a fragment", help);
    }
    if lower.starts_with("http://") && !unencrypted && !is_loopback(authority) {
        let help = "write `https://…`; or `unencrypted = true`, where the way there is safe";
        return fault("the key would go to another machine unencrypted", help);
    }
    if let Some(end) = kind.and_then(version).filter(|end| lower.ends_with(end)) {
        return doubled(table, &text, end);
    }
    Some(url.to_owned())
}

/// Whether an authority has no port, or one that can be.
fn has_good_port(authority: &str) -> bool {
    let host_and_port = authority.rsplit('@').next().unwrap_or_default();
    let behind_ip = host_and_port.rsplit(']').next().unwrap_or_default();
    match behind_ip.split_once(':') {
        None => true,
        Some((_, port)) => port.parse::<u16>().is_ok(),
    }
}

/// The part that agents put behind the address themselves, in the form of the vendor's libraries.
fn version(kind: ProviderKind) -> Option<&'static str> {
    match kind {
        ProviderKind::Anthropic => Some("/v1"),
        ProviderKind::Gemini => Some("/v1beta"),
        ProviderKind::OpenAi => None,
    }
}

fn doubled(table: &Table<'_>, text: &Text, end: &str) -> Option<String> {
    let url = text.value.trim_end_matches('/');
    let message = format!("{} is in what agents ask for, too", code(end));
    let help = format!("write {}", quoted(&url[..url.len() - end.len()]));
    table.fault(Fault::new(text.span.clone(), message).help(help));
    None
}

/// Whether an authority is this machine.
pub(super) fn is_loopback(authority: &str) -> bool {
    let without_port = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let is_local = |ip: IpAddr| ip.to_canonical().is_loopback();
    without_port == "localhost" || without_port.parse().is_ok_and(is_local)
}
