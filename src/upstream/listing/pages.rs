//! All pages of one list.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;

use crate::config::Upstream;
use crate::exchange::Reason;
use crate::jsonrpc::Text;
use crate::protocol::{ListKind, Method, Page, Ttl, code};
use crate::upstream::conversation::Told;
use crate::upstream::fault::Fault;
use crate::upstream::peer::Peer;

/// A list as it was read.
#[derive(Debug)]
pub(super) enum Read {
    /// Its items.
    Items {
        /// In the upstream's order.
        items: Vec<Arc<str>>,
        /// The smallest cache hint of its pages.
        ttl: Option<Ttl>,
        /// Why it was not read to its end.
        trouble: Option<String>,
    },
    /// The upstream answered with an error.
    Refused {
        /// Its words.
        words: String,
        /// What it had given before that.
        items: Vec<Arc<str>>,
    },
}

/// A list being read.
pub(super) struct Pages<'a> {
    peer: &'a Peer,
    upstream: &'a Upstream,
    kind: ListKind,
    items: Vec<Arc<str>>,
    bytes: usize,
    ttl: Option<Ttl>,
    cursors: HashSet<String>,
}

enum Next {
    Page(String),
    End(Option<String>),
}

impl<'a> Pages<'a> {
    pub(super) fn of(peer: &'a Peer, upstream: &'a Upstream, kind: ListKind) -> Self {
        Self { peer, upstream, kind, items: Vec::new(), bytes: 0, ttl: None, cursors: HashSet::new() }
    }

    /// Follows the cursors to the last page, or to a limit, or until the upstream gives one that it gave before.
    pub(super) async fn read(mut self) -> Result<Read, Fault> {
        let mut params = String::from("{}");
        loop {
            let told = self.peer.ask(Method::List(self.kind), &params, self.upstream.timeout.call).await?;
            let page = match told {
                Told::Result(page) => page,
                Told::Error(error) if self.upstream.credential_error_codes.contains(&error.code) => {
                    return Err(Fault::unsent(Reason::Credential));
                }
                // Declared but not there is the same as empty, on the first page.
                Told::Error(error) if error.code == code::METHOD_NOT_FOUND && self.items.is_empty() => {
                    return Ok(Read::Items { items: self.items, ttl: None, trouble: None });
                }
                Told::Error(error) => {
                    let words = error.message().chars().take(200).collect();
                    return Ok(Read::Refused { words, items: self.items });
                }
            };
            match self.take(&page).ok_or_else(|| Fault::unsent(Reason::NotMcp))? {
                Next::Page(cursor) => {
                    let mut next = Text::object();
                    next.member("cursor", &cursor);
                    params = next.close();
                }
                Next::End(trouble) => {
                    return Ok(Read::Items { items: self.items, ttl: self.ttl, trouble });
                }
            }
        }
    }

    fn take(&mut self, result: &Bytes) -> Option<Next> {
        let limits = &self.upstream.limits;
        let list = self.kind.member();
        let page = Page::read(self.kind, std::str::from_utf8(result).ok()?)?;
        self.ttl = super::smaller(self.ttl, page.ttl);
        for item in page.items {
            self.bytes += item.len();
            if self.items.len() >= limits.tools {
                return Some(Next::End(Some(format!("{list}: cut after {} entries", limits.tools))));
            }
            if self.bytes > limits.list_bytes {
                return Some(Next::End(Some(format!("{list}: cut after {} bytes", limits.list_bytes))));
            }
            self.items.push(Arc::from(item));
        }
        Some(match page.next {
            None => Next::End(None),
            Some(cursor) if !self.cursors.insert(cursor.to_owned()) => {
                Next::End(Some(format!("{list}: the upstream repeats a cursor")))
            }
            Some(_) if self.cursors.len() >= limits.pages => {
                Next::End(Some(format!("{list}: cut after {} pages", limits.pages)))
            }
            Some(cursor) => Next::Page(cursor.to_owned()),
        })
    }
}
