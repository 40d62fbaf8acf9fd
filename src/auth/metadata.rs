//! Protected resource metadata (RFC 9728; 2025-11-25 and 2026-07-28, basic/authorization).
//!
//! Built from the configuration only, never from `Host` or forwarded headers, and only where `listen.public_url` says
//! what clients call this gateway. Static tokens have no authorization server, so only issuers of JWTs are named.

use std::sync::Arc;

use serde_json::json;

use crate::config::{Issuer, Route};
use crate::principal::Scope;

/// Where the documents stand.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// What a caller without any credential is told to ask for, before it is called otherwise by those who grant it.
const FIRST_SCOPE: &str = "mcp:read";

/// The first scope to ask for on a route, as its issuers call it.
pub(super) fn first_scope(route: &Route) -> String {
    route.policy.words.outward(&Scope::new(FIRST_SCOPE)).to_string()
}

/// The documents of all routes, by path.
#[derive(Debug, Default)]
pub(super) struct Metadata {
    documents: Vec<(String, String)>,
}

impl Metadata {
    pub(super) fn new<'r>(
        public_url: &str,
        issuers: &[Arc<Issuer>],
        routes: impl Iterator<Item = &'r Route>,
    ) -> Self {
        let issuers: Vec<&str> = issuers.iter().map(|issuer| issuer.issuer.as_str()).collect();
        // Behind a proxy that takes a prefix away, clients ask with it and without it.
        let (_, prefix) = split_origin(public_url);
        let mut documents = Vec::new();
        let mut first = None;
        for route in routes {
            let resource = route.policy.audiences.first().cloned();
            let mut document = json!({
                "resource": resource.unwrap_or_else(|| format!("{public_url}{}", route.path)),
                "scopes_supported": [first_scope(route)],
                "bearer_methods_supported": ["header"],
                "resource_name": format!("Weir, route {}", route.name),
            });
            if let Some(members) = document.as_object_mut().filter(|_| !issuers.is_empty()) {
                members.insert("authorization_servers".to_owned(), json!(issuers));
            }
            let document = document.to_string();
            first.get_or_insert_with(|| document.clone());
            if !prefix.is_empty() {
                documents.push((place(&prefix, &route.path), document.clone()));
            }
            documents.push((place("", &route.path), document));
        }
        // The bare path is that of a route at `/`, else the first route's.
        documents.extend(first.map(|document| (WELL_KNOWN.to_owned(), document)));
        Self { documents }
    }

    /// The document at a path, matched exactly.
    pub(super) fn at(&self, path: &str) -> Option<&str> {
        self.documents.iter().find(|(known, _)| known == path).map(|(_, document)| document.as_str())
    }
}

/// Where the document of the route at `path` is, below the prefix of the public URL (RFC 9728, section 3.1).
pub(super) fn place(prefix: &str, path: &str) -> String {
    format!("{WELL_KNOWN}{prefix}{}", path.trim_end_matches('/'))
}

pub(super) fn split_origin(url: &str) -> (String, String) {
    let url = url.trim_end_matches('/');
    let host = url.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = url.split_at(host);
    let (host, prefix) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    (format!("{scheme}{host}"), prefix.to_owned())
}
