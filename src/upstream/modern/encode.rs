//! A request as a modern upstream wants it.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::catalog::ParamHeader;
use crate::jsonrpc::{Edit, Id, Object, quoted, request};
use crate::protocol::{LogLevel, Method, Revision, headers, meta};

/// A request before it has an id.
#[derive(Debug)]
pub(super) struct Outgoing<'a> {
    pub(super) revision: Revision,
    pub(super) method: Method,
    /// The raw params, empty for none.
    pub(super) params: &'a str,
    /// What the client can do, as raw JSON.
    pub(super) capabilities: &'a str,
    /// The `Mcp-Param-*` headers.
    pub(super) mirrored: &'a [(String, String)],
}

impl Outgoing<'_> {
    /// The headers that mirror the body, and the body: the params with Weir's own members in `_meta`, all else as it came.
    pub(super) fn written(
        &self,
        id: &Id,
        token: Option<&str>,
        level: Option<LogLevel>,
    ) -> (HeaderMap, String) {
        let params = Object::reopen(self.params).unwrap_or_default();
        (self.head(&params), self.body(&params, id, (token, level)))
    }

    fn body(&self, params: &Object<'_>, id: &Id, (token, level): (Option<&str>, Option<LogLevel>)) -> String {
        let old = params.object("_meta").unwrap_or_default();
        let mut edit = Edit::new()
            .set(meta::PROTOCOL_VERSION, quoted(self.revision.as_str()))
            .set(meta::CLIENT_INFO, CLIENT_INFO)
            .set(meta::CLIENT_CAPABILITIES, self.capabilities);
        edit = match level {
            Some(level) => edit.set(meta::LOG_LEVEL, quoted(level.as_str())),
            None => edit.remove(meta::LOG_LEVEL),
        };
        if let Some(token) = token {
            edit = edit.set(meta::PROGRESS_TOKEN, token);
        }
        let params = Edit::new().set("_meta", edit.apply(&old)).apply(params);
        request(Some(id), self.method.as_str(), &params)
    }

    fn head(&self, params: &Object<'_>) -> HeaderMap {
        let mut head = HeaderMap::with_capacity(8);
        for (name, value) in self.mirrored.iter().filter(|(name, _)| name.starts_with(headers::PARAM_PREFIX))
        {
            if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
                head.insert(name, value);
            }
        }
        let version = HeaderValue::from_static(self.revision.as_str());
        head.insert(headers::PROTOCOL_VERSION, version);
        let method = HeaderValue::from_static(self.method.as_str());
        head.insert(headers::METHOD, method);
        let name = self.method.name_member().and_then(|member| params.text(member));
        if let Some(name) = name.and_then(|name| HeaderValue::from_str(&headers::encode(&name)).ok()) {
            head.insert(headers::NAME, name);
        }
        head
    }
}

/// How Weir introduces itself to upstreams.
const CLIENT_INFO: &str = concat!(r#"{"name":"weir","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#);

/// The headers that the annotations of a tool ask for, from the arguments in raw params. What is absent or null has
/// none (2026-07-28, transports/streamable-http, "Custom Headers from Tool Parameters").
pub(in crate::upstream) fn mirror(annotations: &[ParamHeader], params: &str) -> Vec<(String, String)> {
    let Some(arguments) = Object::open(params).and_then(|params| params.get("arguments")) else {
        return Vec::new();
    };
    annotations
        .iter()
        .filter_map(|annotation| {
            let value = annotation.value(arguments)?;
            Some((annotation.header.clone(), headers::encode(&value)))
        })
        .collect()
}
