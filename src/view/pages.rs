//! List pages, joined once per view.

use std::collections::HashMap;

use bytes::Bytes;

use super::{Page, Shown};
use crate::config::PageSize;
use crate::protocol::ListKind;

/// In which form tool definitions are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// As they are.
    Whole,
    /// Without output schemas that are not of type object (design contract, section 5, "Losses between eras").
    ObjectOutput,
}

/// The pages of all lists of a view, by the position of their first item.
#[derive(Debug, Default)]
pub(super) struct Pages {
    pages: HashMap<(ListKind, Form), Vec<(usize, Page)>>,
}

impl Pages {
    /// Joins the items of one list into pages.
    pub(super) fn add(&mut self, kind: ListKind, items: &[Shown], size: PageSize) {
        self.pages.insert((kind, Form::Whole), split(items, Form::Whole, size));
        if items.iter().any(|shown| shown.item.object_output.is_some()) {
            self.pages.insert((kind, Form::ObjectOutput), split(items, Form::ObjectOutput, size));
        }
    }

    pub(super) fn get(&self, kind: ListKind, form: Form, position: usize) -> Option<Page> {
        let pages = self.pages.get(&(kind, form)).or_else(|| self.pages.get(&(kind, Form::Whole)))?;
        pages.iter().find(|(first, _)| *first == position).map(|(_, page)| page.clone())
    }
}

fn text(shown: &Shown, form: Form) -> &str {
    match (form, &shown.item.object_output) {
        (Form::ObjectOutput, Some(without)) => without,
        (Form::ObjectOutput, None) | (Form::Whole, _) => &shown.item.raw,
    }
}

fn split(items: &[Shown], form: Form, size: PageSize) -> Vec<(usize, Page)> {
    let mut pages = Vec::new();
    let mut first = 0;
    let mut joined = String::new();
    for (index, shown) in items.iter().enumerate() {
        let text = text(shown, form);
        let full = index - first >= size.items || joined.len() + text.len() > size.bytes;
        if full && index > first {
            let items = Bytes::from(std::mem::take(&mut joined));
            pages.push((first, Page { items, next: Some(index) }));
            first = index;
        }
        if !joined.is_empty() {
            joined.push(',');
        }
        joined.push_str(text);
    }
    pages.push((first, Page { items: Bytes::from(joined), next: None }));
    pages
}
