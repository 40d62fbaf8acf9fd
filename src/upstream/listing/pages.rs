//! All pages of one list.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;

use crate::config::Upstream;
use crate::exchange::Reason;
use crate::jsonrpc::{RpcError, Text};
use crate::protocol::{ListKind, Method, Page, Ttl, code};
use crate::upstream::conversation::Told;
use crate::upstream::fault::Fault;
use crate::upstream::peer::Peer;

/// A list as it was read.
#[derive(Debug)]
pub(super) struct Read {
    /// Its items, in the upstream's order.
    pub(super) items: Vec<Arc<str>>,
    /// The smallest cache hint of its pages.
    pub(super) ttl: Option<Ttl>,
    /// Why there are no more.
    pub(super) end: End,
}

/// Why a list ended.
#[derive(Debug)]
pub(super) enum End {
    /// There is no further page.
    Last,
    /// More entries than the limit.
    Entries(usize),
    /// More bytes than the limit.
    Bytes(usize),
    /// More pages than the limit.
    Pages(usize),
    /// A cursor that had been there before.
    Repeated,
    /// The upstream answered with an error that says this.
    Refused(String),
}

impl End {
    /// What the operator should know of it.
    pub(super) fn warning(&self, kind: ListKind) -> Option<String> {
        let list = kind.member();
        match self {
            Self::Last => None,
            Self::Entries(most) => Some(format!("{list}: cut after {most} entries")),
            Self::Bytes(most) => Some(format!("{list}: cut after {most} bytes")),
            Self::Pages(most) => Some(format!("{list}: cut after {most} pages")),
            Self::Repeated => Some(format!("{list}: the upstream repeats a cursor")),
            Self::Refused(words) => Some(format!("{list}: the upstream refused: {words}")),
        }
    }
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
    End(End),
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
                Told::Error(error) => return Ok(self.refused(&error)),
                Told::Asks(_) => return Err(Fault::unsent(Reason::NotMcp)),
            };
            match self.take(&page).ok_or_else(|| Fault::unsent(Reason::NotMcp))? {
                Next::Page(cursor) => {
                    let mut next = Text::object();
                    next.member("cursor", &cursor);
                    params = next.close();
                }
                Next::End(end) => return Ok(self.ended(end)),
            }
        }
    }

    /// A list that was declared but is not there is the same as an empty one.
    fn refused(self, error: &RpcError) -> Read {
        if error.code == code::METHOD_NOT_FOUND && self.items.is_empty() {
            return self.ended(End::Last);
        }
        let words = error.message().chars().take(200).collect();
        self.ended(End::Refused(words))
    }

    fn ended(self, end: End) -> Read {
        Read { items: self.items, ttl: self.ttl, end }
    }

    fn take(&mut self, result: &Bytes) -> Option<Next> {
        let limits = &self.upstream.limits;
        let page = Page::read(self.kind, std::str::from_utf8(result).ok()?)?;
        self.ttl = super::smaller(self.ttl, page.ttl);
        for item in page.items {
            self.bytes += item.len();
            if self.items.len() >= limits.tools {
                return Some(Next::End(End::Entries(limits.tools)));
            }
            if self.bytes > limits.list_bytes {
                return Some(Next::End(End::Bytes(limits.list_bytes)));
            }
            self.items.push(Arc::from(item));
        }
        Some(match page.next {
            None => Next::End(End::Last),
            Some(cursor) if !self.cursors.insert(cursor.to_owned()) => Next::End(End::Repeated),
            Some(_) if self.cursors.len() >= limits.pages => Next::End(End::Pages(limits.pages)),
            Some(cursor) => Next::Page(cursor.to_owned()),
        })
    }
}
