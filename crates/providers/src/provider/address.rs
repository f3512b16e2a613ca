//! The address of a provider.

use http::Uri;
use http::uri::{Authority, Scheme};

use super::ProviderFault;

/// The address of a provider: a scheme, a host, and the path that stands in front of all others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProviderUrl {
    scheme: Scheme,
    authority: Authority,
    /// Without a slash at its end.
    path: String,
}

impl ProviderUrl {
    /// Reads an address.
    pub fn new(url: &str) -> Result<Self, ProviderFault> {
        let url = url.trim_end_matches('/');
        if url.contains('#') {
            return Err(ProviderFault::Url);
        }
        let parts = url.parse::<Uri>().map_err(|_| ProviderFault::Url)?.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err(ProviderFault::Url);
        };
        let path = parts.path_and_query;
        let has_query = path.as_ref().is_some_and(|path| path.query().is_some());
        let is_web = scheme == Scheme::HTTP || scheme == Scheme::HTTPS;
        let has_user = authority.as_str().contains('@');
        if !is_web || has_user || has_query || authority.host().is_empty() {
            return Err(ProviderFault::Url);
        }
        let path = path.map(|path| path.path().trim_end_matches('/').to_owned());
        Ok(Self { scheme, authority, path: path.unwrap_or_default() })
    }

    /// The host and the port, as `Host` has them.
    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The address of a path there. None: it would be none.
    pub(crate) fn at(&self, path: &str, query: Option<&str>) -> Option<Uri> {
        let mut whole = self.path.clone();
        whole.push_str(path);
        if whole.is_empty() {
            whole.push('/');
        }
        if let Some(query) = query {
            whole.push('?');
            whole.push_str(query);
        }
        let uri = Uri::builder().scheme(self.scheme.clone()).authority(self.authority.clone());
        uri.path_and_query(whole).build().ok()
    }
}
