//! Who has which URI (design contract, section 4): of equal ones the upstream that stands first in the file keeps it,
//! the others get their label. A claim lasts while the upstream is configured, also while it is lost.

use std::collections::HashMap;

use crate::jsonrpc::{Edit, Object, quoted};
use crate::names::{UpstreamName, mark_uri};

/// Where a tool names its user interface (the extension `io.modelcontextprotocol/ui`, "Resource Discovery"), and where
/// older servers do.
const UI: &str = "ui";
const RESOURCE: &str = "resourceUri";
const FLAT: &str = "ui/resourceUri";

/// Whether the definition of a tool may name a user interface; it is not opened for that.
pub(super) fn may_name_interface(tool: &str) -> bool {
    // An escape may spell it, too.
    tool.contains(RESOURCE) || tool.contains("\\u")
}

/// The first upstream of each URI.
#[derive(Debug, Default)]
pub(super) struct Claims<'c> {
    owners: HashMap<String, &'c UpstreamName>,
}

impl<'c> Claims<'c> {
    /// An upstream claims a URI: whether it has it as it is.
    pub(super) fn claim(&mut self, uri: &str, upstream: &'c UpstreamName) -> bool {
        match self.owners.get(uri) {
            Some(owner) => *owner == upstream,
            None => {
                self.owners.insert(uri.to_owned(), upstream);
                true
            }
        }
    }

    /// The definition of a tool whose user interface another upstream has under the same URI; `None` where nothing
    /// has to change.
    pub(super) fn interface(&mut self, tool: &str, upstream: &'c UpstreamName) -> Option<String> {
        if !may_name_interface(tool) {
            return None;
        }
        let object = Object::open(tool)?;
        let inner = object.object("_meta")?;
        let mut edit = Edit::new();
        let mut is_changed = false;
        let ui = inner.object(UI);
        for (key, uri) in [(UI, ui.as_ref().and_then(|ui| ui.text(RESOURCE))), (FLAT, inner.text(FLAT))] {
            let Some(uri) = uri.filter(|uri| !self.claim(uri, upstream)) else { continue };
            let published = quoted(&mark_uri(&uri, upstream));
            let raw = match (&ui, key) {
                (Some(ui), UI) => Edit::new().set(RESOURCE, published).apply(ui),
                _ => published,
            };
            edit = edit.set(key, raw);
            is_changed = true;
        }
        is_changed.then(|| Edit::new().set("_meta", edit.apply(&inner)).apply(&object))
    }
}
