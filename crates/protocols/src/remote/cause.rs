//! Why an address can't be reached: the transport says only that it can't.

use std::error::Error;
use std::iter::successors;

use reqwest::ClientBuilder;

/// Tries the address once more, and returns the error beneath the one that comes up.
pub(super) async fn find(
    url: &str,
    configured: impl FnOnce(ClientBuilder) -> ClientBuilder,
) -> Option<String> {
    let address = match url.split_once("://")? {
        (scheme, rest) if scheme.eq_ignore_ascii_case("ws") => format!("http://{rest}"),
        (scheme, rest) if scheme.eq_ignore_ascii_case("wss") => format!("https://{rest}"),
        _ => url.to_owned(),
    };
    let http = configured(reqwest::Client::builder().timeout(super::CONNECT_TIMEOUT));
    let error = http.build().ok()?.head(address).send().await.err()?;
    Some(of(&error))
}

/// The innermost error.
pub(super) fn of(error: &(dyn Error + 'static)) -> String {
    let chain = successors(Some(error), |error: &&(dyn Error + 'static)| (*error).source());
    chain.last().map(ToString::to_string).unwrap_or_default()
}
