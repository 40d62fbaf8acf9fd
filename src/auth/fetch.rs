//! Fetching what issuers publish: metadata (RFC 8414, OpenID Connect Discovery) and key sets (RFC 7517).
//!
//! Only the operator's addresses, and what the metadata of a configured issuer names on a permitted host, are asked;
//! never through a redirect or a proxy, and never what a token names.

use std::time::Duration;

use http::Uri;

use crate::config::{Issuer, KeySource};
use crate::jsonrpc::Object;

/// How long a fetch may take.
const LONGEST: Duration = Duration::from_secs(5);
/// The largest document, in bytes.
const LARGEST: usize = 1024 * 1024;

/// Why there is no document. Says nothing of its content.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    #[error("the file cannot be read")]
    File(#[source] std::io::Error),
    #[error("the address cannot be reached")]
    Unreachable(#[source] reqwest::Error),
    #[error("answered with HTTP status {0}")]
    Status(u16),
    #[error("the document is too large, or no text")]
    Document,
    #[error("no metadata of this issuer was found")]
    NoMetadata,
    #[error("the document holds no usable key")]
    NoKey,
    #[error("the metadata names keys on a host that is not permitted, or not over https")]
    Host,
}

/// Asks issuers.
#[derive(Debug, Clone)]
pub(super) struct Fetcher(reqwest::Client);

impl Fetcher {
    /// # Errors
    /// When TLS cannot be set up.
    pub(super) fn new() -> Result<Self, reqwest::Error> {
        let builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .connect_timeout(LONGEST)
            .timeout(LONGEST)
            .user_agent(concat!("weir/", env!("CARGO_PKG_VERSION")));
        Ok(Self(builder.build()?))
    }

    /// The text of the key set of an issuer.
    pub(super) async fn keys(&self, issuer: &Issuer) -> Result<String, Trouble> {
        match &issuer.keys {
            KeySource::File(path) => {
                let bytes = tokio::fs::read(path).await.map_err(Trouble::File)?;
                if bytes.len() > LARGEST {
                    return Err(Trouble::Document);
                }
                String::from_utf8(bytes).map_err(|_not_text| Trouble::Document)
            }
            KeySource::Url(url) => self.document(url).await,
            KeySource::Discovery(hosts) => {
                let url = self.discovered(&issuer.issuer, hosts).await?;
                self.document(&url).await
            }
        }
    }

    /// Where the metadata of an issuer says that its keys are. The document must name the issuer itself (RFC 8414,
    /// section 3.3).
    async fn discovered(&self, issuer: &str, hosts: &[String]) -> Result<String, Trouble> {
        let mut trouble = Trouble::NoMetadata;
        for url in metadata_urls(issuer) {
            let text = match self.document(&url).await {
                Ok(text) => text,
                Err(why @ Trouble::Unreachable(_)) => return Err(why),
                Err(why) => {
                    trouble = why;
                    continue;
                }
            };
            let Some(document) = Object::open(&text) else { continue };
            if document.text("issuer").as_deref() != Some(issuer) {
                continue;
            }
            let keys = document.text("jwks_uri").ok_or(Trouble::NoMetadata)?;
            return if is_permitted(&keys, issuer, hosts) { Ok(keys) } else { Err(Trouble::Host) };
        }
        Err(trouble)
    }

    async fn document(&self, url: &str) -> Result<String, Trouble> {
        let request = self.0.get(url).header(http::header::ACCEPT, "application/json");
        let mut response = request.send().await.map_err(|why| Trouble::Unreachable(why.without_url()))?;
        if response.status() != http::StatusCode::OK {
            return Err(Trouble::Status(response.status().as_u16()));
        }
        let mut text = Vec::new();
        while let Some(chunk) =
            response.chunk().await.map_err(|why| Trouble::Unreachable(why.without_url()))?
        {
            if text.len() + chunk.len() > LARGEST {
                return Err(Trouble::Document);
            }
            text.extend_from_slice(&chunk);
        }
        String::from_utf8(text).map_err(|_not_text| Trouble::Document)
    }
}

/// Where the metadata of an issuer may be, most likely first (2025-11-25 and 2026-07-28, basic/authorization,
/// "Authorization Server Metadata Discovery").
fn metadata_urls(issuer: &str) -> Vec<String> {
    const OAUTH: &str = "/.well-known/oauth-authorization-server";
    const OPENID: &str = "/.well-known/openid-configuration";
    let bare = issuer.trim_end_matches('/');
    let host = bare.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = bare.split_at(host);
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let mut urls = vec![format!("{scheme}{host}{OAUTH}{path}"), format!("{scheme}{host}{OPENID}{path}")];
    if !path.is_empty() {
        urls.push(format!("{bare}{OPENID}"));
    }
    urls
}

/// Whether keys may be fetched from an address that a document names: over https, or on loopback where the issuer is
/// there, too, and from a permitted host.
fn is_permitted(url: &str, issuer: &str, hosts: &[String]) -> bool {
    let (Ok(url), Ok(issuer)) = (url.parse::<Uri>(), issuer.parse::<Uri>()) else { return false };
    let is_safe = match url.scheme_str() {
        Some("https") => true,
        Some("http") => issuer.scheme_str() == Some("http"),
        _ => false,
    };
    let plain = url.authority().is_some_and(|authority| !authority.as_str().contains('@'));
    is_safe
        && plain
        && url.host().is_some_and(|host| hosts.iter().any(|known| known.eq_ignore_ascii_case(host)))
}

#[cfg(test)]
mod tests {
    use super::{is_permitted, metadata_urls};

    #[test]
    fn metadata_is_looked_for_where_the_specification_says() {
        assert_eq!(
            metadata_urls("https://id.example/team/a"),
            [
                "https://id.example/.well-known/oauth-authorization-server/team/a",
                "https://id.example/.well-known/openid-configuration/team/a",
                "https://id.example/team/a/.well-known/openid-configuration",
            ]
        );
        assert_eq!(metadata_urls("https://id.example/").len(), 2);
    }

    #[test]
    fn t070_keys_are_fetched_from_permitted_hosts_only() {
        let hosts = ["id.example".to_owned()];
        for (url, issuer, permitted) in [
            ("https://id.example/keys", "https://id.example", true),
            ("https://ID.example:8443/keys", "https://id.example", true),
            ("http://id.example/keys", "https://id.example", false),
            ("https://169.254.169.254/keys", "https://id.example", false),
            ("https://id.example@evil.example/keys", "https://id.example", false),
            ("https://id.example.evil/keys", "https://id.example", false),
            ("file:///etc/passwd", "https://id.example", false),
            ("/keys", "https://id.example", false),
        ] {
            assert_eq!(is_permitted(url, issuer, &hosts), permitted, "{url}");
        }
    }
}
