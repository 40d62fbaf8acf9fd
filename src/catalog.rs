//! What clients see: all inventories under the naming rules.

pub mod definition;
mod inventory;

pub use inventory::{Entry, Inventories, Inventory, LeftOut, ParamHeader, Presence, Trouble};
