//! What clients see: all inventories under the naming rules.

mod definition;
mod inventory;

pub use definition::Checker;
pub use inventory::{Entry, Inventories, Inventory, LeftOut, ParamHeader, Presence, Trouble};
