//! What clients see: all inventories under the naming rules.

mod inventory;

pub use inventory::{Entry, Inventories, Inventory, LeftOut, ParamHeader, Presence, Trouble};
