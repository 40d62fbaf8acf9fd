//! What clients see: all inventories under the naming rules.
//!
//! `build` is pure: configuration and inventories in, catalog out. `keeper` is the one task that writes the
//! [`Snapshot`] that every request reads. Nothing here asks an upstream, knows a caller, or names an era: lists are
//! answered from memory. Invariant: every item's definition is serialised once per catalog, and a published name
//! belongs to at most one item of its kind.

mod build;
mod claims;
mod definition;
mod inventory;
mod item;
mod keeper;
mod snapshot;

pub use build::{Builder, build};
pub use definition::Checker;
pub use inventory::{Entry, Inventories, Inventory, LeftOut, ParamHeader, Presence, Trouble};
pub use item::{Catalog, Item};
pub use keeper::Keeper;
pub use snapshot::{Material, Snapshot};

#[cfg(test)]
pub(crate) mod tests;
