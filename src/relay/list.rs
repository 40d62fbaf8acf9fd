//! Lists, from memory.

use bytes::Bytes;

use super::Seat;
use crate::exchange::Failure;
use crate::principal::Principal;
use crate::protocol::ListKind;
use crate::seal::{CursorSeal, Keyring, Owner};
use crate::view::Form;

/// What is asked of a list.
#[derive(Debug)]
pub struct ListCall<'c> {
    /// Which list.
    pub kind: ListKind,
    /// The raw cursor, where the client sent one.
    pub cursor: Option<&'c str>,
    /// In which form definitions are wanted.
    pub form: Form,
    /// Who asks.
    pub principal: &'c Principal,
}

/// One page.
#[derive(Debug)]
pub struct Listing {
    /// Which list.
    pub kind: ListKind,
    /// The items, joined with commas.
    pub items: Bytes,
    /// The cursor of the next page.
    pub next: Option<String>,
}

/// Finds the page that a cursor names, or the first one.
pub(super) fn page(keyring: &Keyring, seat: &Seat, call: &ListCall<'_>) -> Result<Listing, Failure> {
    let owner = Owner::new(&seat.route.name, &call.principal.subject);
    let hash = seat.view.sequence(call.kind);
    let refuse =
        || Failure::InvalidParams("this cursor is unknown or has expired; list again without one".to_owned());
    let position = match call.cursor {
        None => 0,
        Some(raw) => {
            let text: String = serde_json::from_str(raw).map_err(|_why| refuse())?;
            let cursor = CursorSeal::open(keyring, &text, owner).map_err(|_why| refuse())?;
            if cursor.list != call.kind || cursor.view != hash {
                return Err(refuse());
            }
            usize::try_from(cursor.position).map_err(|_why| refuse())?
        }
    };
    let page = seat.view.page(call.kind, call.form, position).ok_or_else(refuse)?;
    let next = page
        .next
        .and_then(|next| u32::try_from(next).ok())
        .map(|position| CursorSeal { list: call.kind, view: hash, position, owner }.seal(keyring));
    Ok(Listing { kind: call.kind, items: page.items, next })
}
